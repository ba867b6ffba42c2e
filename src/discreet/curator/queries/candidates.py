"""A private choice among points: the exponential mechanism on integer sums of clipped losses.

A record adds an integer in [0, B] to the score of each candidate, so one record more moves the *differences* of scores
within an interval of length B (every difference of two numbers in [0, B], less a common shift), and an exchange
within 2 B. ``exponential_choice`` with weight exp(-score / 2^m) is then of bounded range a B / 2^m.
"""

from __future__ import annotations  # nested functions would build their annotations on every call

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.curator.engines.base import ExactSum, LocalEngine, unit_bounds
from discreet.curator.engines.dense import DenseEngine
from discreet.curator.engines.sparse import SparseEngine
from discreet.curator.kernels import values as kernels
from discreet.curator.known_answers.gradients import check_value_kernels
from discreet.curator.lattice.lattice import Weights, place_weights, unit_for
from discreet.errors import PlanViolation
from discreet.losses.base import Valued
from discreet.typing import Floats, Integers

if TYPE_CHECKING:
    from discreet.curator.session import Session


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


def select_candidate(
    session: Session, points: Any, *, loss_bound: float, offsets: Any = None, rho: float | None = None
) -> int:
    """Return the index of the point with (nearly) the least sum of losses, each clipped to [0, loss_bound].

    Privacy
    -------
    Sensitivity: a record adds an integer in [0, B] to each score (a person's k rows B // k each, a null record 0), so
    *differences* of scores move within a range of B, 2 B under ``replace_one`` (above).
    Mechanism: exponential with weight exp(-score / 2^m), a B / 2^m <= 1/multiplier; or the papers' noisy max, discrete
    Laplace noise of the same scale on each score.
    Event: ``BoundedRange`` (``PureDP`` for noisy max) of 1/multiplier; adaptive plans: rho-zCDP, charged first.
    Conditions: points and offsets depend on public and released values only. Noisy max: losses have one sign, so that a
    record more moves all scores in one direction.
    """
    points, shape = np.asarray(points, dtype=np.float64), session.domain.shape
    if points.ndim != len(shape) + 1 or points.shape[1:] != shape or len(points) == 0:
        raise PlanViolation(f"candidates must be points of shape {shape}, one next to the other")
    extra = np.zeros(len(points)) if offsets is None else np.asarray(offsets, dtype=np.float64)
    if extra.shape != (len(points),) or not np.isfinite(extra).all():
        raise PlanViolation("offsets must be one finite, public number for each candidate")
    check_value_kernels(session.loss, sparse=session.engine.is_sparse)
    release = session.spend("select_candidate", loss_bound, rho=rho)
    unit = unit_for(session.multiplier(release), session.factor, loss_bound, session.largest_n_of_choices)
    placed = tuple(place_weights(point, session.engine.grid) for point in points)
    query = ValueQuery(placed, session.loss, unit.bound, 1 / unit.step)
    shift = np.rint((extra - extra.min()) / unit.step)
    if float(shift.max(initial=0.0)) >= 2.0**61:
        raise PlanViolation("offsets lie too far apart for the losses' scale")
    exact = -(session.engine.total(query) + shift.astype(np.int64))
    if unit.m is None:
        chosen = int(np.argmax(exact))
    elif release.mechanism == "noisy_max":
        chosen = int(np.argmax(exact + session.discrete_laplace(len(points), unit.m)))
    else:
        chosen = session.choice(exact, unit.m)
    return int(session.release(release, unit, exact, np.array([chosen]), norm="range")[0])
