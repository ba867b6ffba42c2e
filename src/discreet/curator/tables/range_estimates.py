"""Ranges that are estimated: private quantiles of the columns whose range a schema calls private, in one release."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from discreet.accounting.plan import Plan, Release
from discreet.curator.tables import cells
from discreet.curator.tables.quantiles import (
    Tree,
    cells_per_record,
    joint_cells,
    quantile_range,
    release_for,
    size_of,
    split_counts,
)
from discreet.schema.columns import Number, are_apart
from discreet.typing import Floats, Integers

if TYPE_CHECKING:
    from discreet.curator.tables.table_stream import TableStream

_BLOCK_CELLS = 1 << 20


class RangeEstimates:
    """Counts on a dyadic tree over each private column's limits, and the ranges that they allow.

    A row's cells depend on that row and on the schema; the counts are released by ``queries/counts.py``, which has the
    proof, under the charge of the fit that they are for; ranges are post-processing.
    """

    def __init__(self, stream: "TableStream") -> None:
        self._stream, self.names = stream, stream.schema.private_columns
        kinds = [stream.schema.columns[name] for name in self.names]
        self._trees = [Tree(*kind.limits) for kind in kinds if isinstance(kind, Number)]
        self.size, self.per_row = size_of(self._trees), cells_per_record(self._trees)

    def release(self, plan: Plan, *, pure: bool) -> Release:
        """The counts next to a fit's plan, with their share of the budget."""
        return release_for(plan, pure=pure)

    def cells(self) -> Iterator[Integers]:
        """Each row's cells, in the order of the rows."""
        missing = frozenset(self._stream.schema.missing_texts)
        for batch in self._stream.source.read_ahead(self.names, max(256, _BLOCK_CELLS // self.per_row)):
            values = [cells.numbers(batch.columns[name], missing) for name in self.names]
            yield joint_cells(self._trees, np.column_stack(values))

    def settled(self, counts: Floats, noise: float, n: int | None) -> "TableStream":
        """The table with the ranges that the counts tell."""
        parts = zip(self.names, self._trees, split_counts(self._trees, counts), strict=True)
        return self._stream.settled({name: _range(tree, part, noise, n) for name, tree, part in parts})


def _range(tree: Tree, counts: Floats, noise: float, n: int | None) -> tuple[float, float]:
    """The quantiles, or all of the limits where these are too close to divide by: never an error."""
    found = quantile_range(tree, counts, noise, n)
    return found if are_apart(*found) else (tree.low, tree.high)
