"""Two levels of tests: what everybody runs while working (``make test``), and the rest (``make test-all``).

A test is *thorough*, and left out of ``make test``, where it says so (``@pytest.mark.thorough``), or where it is one of
many cases of a function: of these, three are part of ``make test``, evenly spread. ``@pytest.mark.few(n)`` keeps n
instead, ``@pytest.mark.whole`` all. Both levels together are all tests, each once. Without ``-m``, pytest runs what it
is given, whatever its level.
"""

from collections.abc import Sequence
from itertools import groupby

import pytest

MOST = 3
"""So many cases of a function are part of ``make test``, unless it says otherwise."""


def quick(group: Sequence[pytest.Item]) -> set[pytest.Item]:
    """Return those of a function's cases that ``make test`` runs."""
    cases = [item for item in group if item.get_closest_marker("thorough") is None]
    if not cases or cases[0].get_closest_marker("whole") is not None:
        return set(cases)
    few = cases[0].get_closest_marker("few")
    count = min(MOST if few is None else few.args[0], len(cases))
    return {cases[at * len(cases) // count] for at in range(count)}


@pytest.hookimpl(tryfirst=True)  # before pytest looks at -m
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what ``make test`` leaves out."""
    functions = groupby(items, key=lambda item: (item.parent, getattr(item, "originalname", item.name)))
    for group in (list(members) for _, members in functions):
        kept = quick(group)
        for item in group:
            if item not in kept:
                item.add_marker(pytest.mark.thorough)
