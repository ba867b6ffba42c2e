"""Compressed sparse records: by rows as they were admitted, and by columns; only stored entries are touched."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.curator.certified.float_passes import SparseSmooth
from discreet.curator.engines.base import LocalEngine
from discreet.curator.kernels.coordinates import sparse_margins
from discreet.curator.records.admission import Records
from discreet.typing import Floats, Integers


class SparseEngine(LocalEngine):
    """Records as a sparse integer matrix: ``rows`` are (indptr, indices, data)."""

    def __init__(self, records: Records, *, threads: int | None = None) -> None:
        assert records.sparse is not None
        super().__init__(records, threads=threads)
        self.rows = records.sparse

    @cached_property
    def columns(self) -> tuple[Integers, NDArray[np.uint32], NDArray[Any]]:
        """The same entries by columns."""
        indptr, indices, data = self.rows
        order = np.argsort(indices, kind="stable")
        rows = np.repeat(np.arange(self.records.n_rows, dtype=np.uint32), np.diff(indptr))[order]
        starts = np.searchsorted(indices[order], np.arange(self.records.n_columns + 1)).astype(np.int64)
        return starts, rows, data[order]

    def margins(self, w: Floats) -> Floats:
        """Return exact integer margins as doubles: integer products and sums below 2^53."""
        margins = np.empty(self.records.n_rows)
        sparse_margins(*self.rows, w, margins)
        return margins

    @cached_property
    def _smooth(self) -> SparseSmooth:
        return SparseSmooth(self.records, self.workers, self.weights)

    def smooth(self) -> SparseSmooth:
        return self._smooth
