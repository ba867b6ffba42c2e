"""Two levels of tests: what everybody runs while working (``make test``), and the rest (``make test-all``).

A test is *thorough*, and left out of ``make test``, where

- it says so: ``@pytest.mark.thorough``, or ``pytest.param(..., marks=pytest.mark.thorough)``;
- or it is one of many cases of a function: a grid of parameters (two or more ``parametrize``) is thinned to few cases
  that show every value of every parameter, and of these, or of a list of parameters, three are kept, evenly spread.
  ``@pytest.mark.few(n)`` keeps n instead, ``@pytest.mark.whole`` all.

Both levels together are all tests, each once. Without ``-m``, pytest runs what it is given, whatever its level.
"""

from collections.abc import Sequence
from itertools import groupby

import pytest

MOST = 3
"""So many cases of a function are part of ``make test``, unless it says otherwise."""

Case = frozenset[tuple[object, ...]]
"""The parameters of one case: for each ``parametrize``, its names and the values that they have here."""


def covering(cases: Sequence[Case]) -> list[int]:
    """Return the positions of few cases that hold every value that any case holds: always the first with most news."""
    missing, kept = set[tuple[object, ...]]().union(*cases), list[int]()
    while missing:
        best = max(range(len(cases)), key=lambda at: (len(cases[at] & missing), -at))
        kept.append(best)
        missing -= cases[best]
    return sorted(kept)


def case_of(item: pytest.Item) -> Case:
    """Return the parameters of a test; none where it has no parameters. Values are told apart as objects."""
    callspec = getattr(item, "callspec", None)
    if callspec is None:
        return frozenset()
    lists = [mark.args[0] for mark in item.iter_markers("parametrize") if mark.args]
    together = [names.replace(",", " ").split() if isinstance(names, str) else list(names) for names in lists]
    alone = [[name] for name in callspec.params if not any(name in names for names in together)]  # of fixtures
    return frozenset(
        tuple((name, id(callspec.params[name])) for name in names if name in callspec.params)
        for names in (*together, *alone)
    )


def quick(group: Sequence[pytest.Item]) -> set[pytest.Item]:
    """Return those of a function's cases that ``make test`` runs."""
    left = [item for item in group if item.get_closest_marker("thorough") is None]
    if not left or left[0].get_closest_marker("whole") is not None:
        return set(left)
    left = [left[at] for at in covering([case_of(item) for item in left])] or left
    few = left[0].get_closest_marker("few")
    count = min(MOST if few is None else few.args[0], len(left))
    return {left[at * len(left) // count] for at in range(count)}


@pytest.hookimpl(tryfirst=True)  # before pytest looks at -m
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what ``make test`` leaves out."""
    functions = groupby(items, key=lambda item: (item.parent, getattr(item, "originalname", item.name)))
    for group in (list(members) for _, members in functions):
        kept = quick(group)
        for item in group:
            if item not in kept:
                item.add_marker(pytest.mark.thorough)
