"""Synthetic rows of a schema: cells that its columns could hold, drawn from the declarations alone."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from discreet.models.forecast.synthetic import Stream
from discreet.parameters import Count, CountOrZero, checked
from discreet.schema.columns import Boolean, Category, ColumnKind, Number, Ordinal, Target
from discreet.schema.schema import Schema


@checked
def sample_rows(schema: Schema, n: Count = 1000, *, seed: CountOrZero = 0) -> dict[str, Any]:
    """Return columns of ``n`` made-up rows, target and persons among them, for developing code.

    Numbers are uniform in their declared range, categories and classes equally likely, and no column depends on
    another: the rows say nothing of anybody, and a model of them is worth nothing.
    """
    columns = {name: _cells(kind, Stream(seed, j).uniforms(n)) for j, (name, kind) in enumerate(schema.columns.items())}
    if schema.person is not None:
        columns[schema.person] = np.arange(n).astype(str)
    if schema.target is not None:
        columns[schema.target.column] = _cells(schema.target, Stream(seed, len(columns)).uniforms(n))
    return columns


def _cells(kind: ColumnKind | Target, uniforms: Any) -> Any:
    if isinstance(kind, Number):
        low, high = kind.limits
        return low + uniforms * (high - low)
    if isinstance(kind, Target) and kind.range is not None:
        return kind.range[0] + uniforms * (kind.range[1] - kind.range[0])
    labels = np.array(_labels(kind))
    return labels[(uniforms * len(labels)).astype(int)]


def _labels(kind: ColumnKind | Target) -> Sequence[Any]:
    if isinstance(kind, Category):
        return kind.categories
    if isinstance(kind, Ordinal):
        return kind.levels
    if isinstance(kind, Boolean):
        return kind.false[0], kind.true[0]
    assert isinstance(kind, Target)
    return kind.classes or ()
