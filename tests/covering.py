"""Few cases for many values: ``@covering(("relation", RELATIONS), ("loss", LOSSES))`` shows each value at least once.

A product of lists has a case for every combination, most of which test nothing new. Here there are as many cases as the
longest list has values; the others repeat, shifted by one each time, so that their values meet different partners.
"""

from collections.abc import Iterable
from typing import Any

import pytest
from _pytest.mark.structures import ParameterSet

Names = str | tuple[str, ...]


def covering(*lists: tuple[Names, Iterable[Any]]) -> pytest.MarkDecorator:
    """Make one ``parametrize`` of several lists of values, each given with the name or names that it has values for."""
    names = [[key] if isinstance(key, str) else list(key) for key, _ in lists]
    columns = [list(values) for _, values in lists]
    longest = max(map(len, columns))
    rows = [[column[(i + i // len(column)) % len(column)] for column in columns] for i in range(longest)]
    return pytest.mark.parametrize([key for keys in names for key in keys], [_joined(row, names) for row in rows])


def _joined(row: list[Any], names: list[list[str]]) -> ParameterSet:
    values: list[Any] = []
    marks: list[Any] = []
    for value, keys in zip(row, names, strict=True):
        if isinstance(value, ParameterSet):
            values += value.values
            marks += value.marks
        else:
            values += [value] if len(keys) == 1 else list(value)
    return pytest.param(*values, marks=marks)
