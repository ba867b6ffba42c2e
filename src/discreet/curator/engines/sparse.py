"""Compressed sparse rows: only stored entries are touched, and the sums are those of the dense engine."""

from __future__ import annotations  # nested functions would build their annotations on every call

import numpy as np
from numpy.typing import NDArray

from discreet.curator.door import Records
from discreet.curator.engines.base import GradientQuery, Limits, row_weights, rows_of_units
from discreet.curator.engines.threads import Workers
from discreet.curator.kernels.rows import gradient_over_sparse_rows


class SparseEngine:
    """Exact sums over a sparse integer matrix."""

    def __init__(self, records: Records, *, threads: int | None = None) -> None:
        assert records.sparse is not None
        self.grid = records.grid
        self.n_units = records.n_units
        self._records = records
        self._workers = Workers(threads)
        self._weights = row_weights(records.n_rows, records.shares)
        self._limits = Limits(records.norms, records.sums, records.shares)

    def gradient_sum(self, query: GradientQuery) -> NDArray[np.int64]:
        records, w = self._records, query.weights.integers
        assert records.sparse is not None
        indptr, indices, data = records.sparse
        units = np.arange(self.n_units, dtype=np.int64) if query.units is None else query.units
        chosen = rows_of_units(units, records.starts)
        limits = self._limits.of(query.bound, query.use_l1)
        margin_scale = query.weights.margin_scale(self.grid)

        def part(first: int, last: int) -> NDArray[np.int64]:
            out = np.zeros(w.shape, dtype=np.int64)
            gradient_over_sparse_rows(
                indptr, indices, data, chosen[first:last], records.targets, self._weights, limits,
                w, margin_scale, query.scale, query.use_l1, query.loss, out,
            )  # fmt: skip
            return out

        work = len(w) * len(chosen) * (data.size // max(1, records.n_rows))
        return self._workers.sum(part, len(chosen), work)
