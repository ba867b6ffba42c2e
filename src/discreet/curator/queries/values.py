"""Sums over records of clipped losses or scores, at several points: what choices and scores are made of."""

from __future__ import annotations  # nested functions would build their annotations on every call

from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.curator.engines.base import ExactSum, LocalEngine, unit_bounds
from discreet.curator.engines.dense import DenseEngine
from discreet.curator.engines.sparse import SparseEngine
from discreet.curator.kernels import values as kernels
from discreet.curator.lattice.lattice import Weights
from discreet.losses.base import Valued
from discreet.typing import Floats, Integers


@dataclass(frozen=True)
class ValueQuery(ExactSum):
    """Sums of losses clipped to [0, bound] lattice steps, at each point; ``scale`` is steps per unit of loss."""

    points: tuple[Weights, ...]
    loss: Valued
    bound: int
    scale: float

    def over(self, engine: LocalEngine) -> Integers:
        """Return the exact sum of clipped losses at each point: tiles for one output, rows for several."""
        records = engine.records
        w = np.stack([point.integers for point in self.points])
        asked = (w, np.array([point.margin_scale(engine.grid) for point in self.points]), self.loss)
        scales = engine.weights * self.scale
        limits = np.where(records.norms > 0, unit_bounds(self.bound, records), 0).astype(np.int64)
        if isinstance(engine, DenseEngine) and w.shape[1] == 1:
            return self._over_tiles(engine, engine.tiled(scales), engine.tiled(limits), (w[:, 0], *asked[1:]))
        facts = (records.targets, scales, limits)

        def part(first: int, last: int) -> Integers:
            out = np.zeros(len(w), dtype=np.int64)
            if isinstance(engine, SparseEngine):
                kernels.values_over_sparse_rows(*engine.rows, *facts, first, last, *asked, out)
            else:
                kernels.values_over_rows(records.rows, *facts, first, last, *asked, out)
            return out

        work = len(w) * engine.rows[2].size if isinstance(engine, SparseEngine) else records.n_rows * w.size
        return engine.workers.sum(part, records.n_rows, work)

    def _over_tiles(self, engine: DenseEngine, scales: Floats, limits: Integers, asked: tuple[Any, ...]) -> Integers:
        tiles = engine.tiles

        def part(first: int, last: int) -> Integers:
            out, cut = np.zeros(len(self.points), dtype=np.int64), slice(first, last)
            kernels.values_over_tiles(tiles.cells[cut], tiles.targets[cut], scales[cut], limits[cut], *asked, out)
            return out

        return engine.workers.sum(part, len(tiles.cells), engine.records.n_rows * asked[0].size)
