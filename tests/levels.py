"""Two levels of tests: what everybody runs while working (``make test``), and the rest (``make test-all``).

A test is *thorough*, and left out of ``make test``, where

- it says so: ``@pytest.mark.thorough``, or ``pytest.param(..., marks=pytest.mark.thorough)``;
- it is one of a grid of parameters (two or more ``parametrize``) of which each value is tested already: a grid is
  thinned to few cases that show every value of every parameter once. ``@pytest.mark.whole`` keeps a grid as it is;
- or its function says ``@pytest.mark.few(n)``, and it is not among n of these cases, evenly spread.

Both levels together are all tests, each once. Without ``-m``, pytest runs what it is given, whatever its level.
"""

from collections.abc import Sequence
from itertools import groupby

import pytest

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
    if left and left[0].get_closest_marker("whole") is None:
        left = [left[at] for at in covering([case_of(item) for item in left])] or left
    if left and (few := left[0].get_closest_marker("few")) is not None:
        count = min(few.args[0], len(left))
        left = [left[at * len(left) // count] for at in range(count)]
    return set(left)


@pytest.hookimpl(tryfirst=True)  # before pytest looks at -m
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what ``make test`` leaves out."""
    functions = groupby(items, key=lambda item: (item.parent, getattr(item, "originalname", item.name)))
    for group in (list(members) for _, members in functions):
        kept = quick(group)
        for item in group:
            if item not in kept:
                item.add_marker(pytest.mark.thorough)
