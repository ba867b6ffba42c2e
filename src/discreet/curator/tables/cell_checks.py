"""``TableChecks``: which cells do not hold what the schema declares, counted with noise while a table is read."""

from typing import Any

import numpy as np

from discreet.accounting.cell_counts import CHECKS, NULL
from discreet.accounting.plan import Plan, Release
from discreet.curator.tables.cell_states import States
from discreet.curator.tables.quantiles import release_for
from discreet.curator.tables.scale_column import mark_rows, number_cells
from discreet.schema.columns import Number
from discreet.schema.schema import Schema
from discreet.typing import Booleans, Floats, Integers

SHARE = 0.02
"""Of the budget (of mu^2): a hundredth more noise in the model."""


class TableChecks:
    """The cells that are counted: 0 for a null record, then two for each column (nothing there; something else).

    A row is in at most one cell per column, of the features and of the target, and in cell 0 if it counts as null.
    Which ones follows from that row, the schema, and ranges that were released before, so that the counts have the
    sensitivity that ``curator/queries/counts.py`` proves for ``per_row`` cells.
    """

    def __init__(self, schema: Schema) -> None:
        assert schema.target is not None
        kinds = dict(schema.columns)
        self._words = {name: _words(isinstance(kind, Number)) for name, kind in kinds.items()}
        self._words[schema.target.column] = _words(schema.target.classes is None)
        self.names = tuple(self._words)
        self.size, self.per_row = 1 + 2 * len(self._words), 1 + len(self._words)

    def release(self, plan: Plan, *, pure: bool) -> Release:
        """Return the counts' release next to a fit's plan."""
        return release_for(plan, pure=pure, share=SHARE, query=CHECKS)

    def cells(self, states: States, is_null: Booleans, *, all_rows: bool) -> Integers:
        """Return the cells of rows: ``states`` has a column per column of the schema, and one for the target.

        Rows that are in no cell add nothing to any count, and most are: they are left out unless ``all_rows``.
        """
        wanted = np.full(len(states), True) if all_rows else is_null.copy()
        count = len(states) if all_rows else mark_rows(states, wanted)
        out = np.empty((count, self.per_row), dtype=np.int64)
        number_cells(states, is_null, wanted, out)
        return out

    def described(self, counts: Floats, noise: float) -> dict[str, Any]:
        """Return the counts by column, whole numbers, as a certificate keeps them."""
        pairs = np.rint(counts[1:]).astype(int).reshape(-1, 2).tolist()
        columns = {
            name: dict(zip(words, pair, strict=True))
            for (name, words), pair in zip(self._words.items(), pairs, strict=True)
        }
        return {NULL: round(float(counts[0])), "columns": columns, "noise": float(f"{noise:.4g}")}


def _words(is_number: bool) -> tuple[str, str]:
    return ("no_number", "outside") if is_number else ("empty", "unknown")
