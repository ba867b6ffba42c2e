"""Noisy sums of clipped gradients, over all records or a Poisson sample of them, and of their changes."""

from __future__ import annotations  # nested functions would build their annotations on every call

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from discreet.curator.engines.base import ExactSum, LocalEngine
from discreet.curator.engines.local import DenseEngine, SparseEngine
from discreet.curator.kernels import gradients as kernels
from discreet.curator.known_answers import check_change_kernels
from discreet.curator.lattice.lattice import Grid, Weights, place_weights
from discreet.errors import PlanViolation
from discreet.losses.base import Loss
from discreet.typing import Floats, Integers

if TYPE_CHECKING:
    from discreet.curator.session import Session


@dataclass(frozen=True)
class GradientQuery(ExactSum):
    """A sum of clipped gradients: at which weights, of which loss, on which lattice.

    ``bound`` is B; ``use_l1`` bounds contributions in the L1 norm (Laplace) instead of L2 (Gaussian);
    ``scale`` is ``Unit.coefficient_scale``; ``units`` are the sampled records or persons, None for all. With an
    ``anchor`` it is the change of the gradient from there to ``weights`` that is clipped and summed.
    """

    weights: Weights
    loss: Loss
    bound: int
    scale: float
    use_l1: bool = False
    units: Integers | None = None
    anchor: Weights | None = None

    def over(self, engine: LocalEngine) -> Integers:
        """Return the exact sum in lattice steps, one row per output."""
        assert isinstance(engine, (DenseEngine, SparseEngine))
        everybody = self.units is None and self.anchor is None
        if isinstance(engine, DenseEngine) and everybody and len(self.weights.integers) == 1:
            return self._over_tiles(engine)
        return self._over_rows(engine)

    def of_units(self, first: int, last: int) -> GradientQuery:
        if self.units is None:
            return self
        start, stop = np.searchsorted(self.units, (first, last))
        return replace(self, units=self.units[start:stop] - first)

    def with_units_at(self, places: Integers) -> GradientQuery:
        return self if self.units is None else replace(self, units=np.sort(places[self.units]))

    @property
    def is_sampled(self) -> bool:
        return self.units is not None

    def _over_tiles(self, engine: DenseEngine) -> Integers:
        tiles, w = engine.tiles, self.weights.integers[0].astype(np.int64)
        limits = tiles.limits.of(self.bound, self.use_l1)
        point = (w, self.weights.margin_scale(engine.grid), self.scale, self.loss)

        def part(first: int, last: int) -> Integers:
            out = np.zeros(w.size, dtype=np.int64)
            cut = slice(first, last)
            facts = (tiles.targets[cut], tiles.weights[cut], limits[cut])
            room = np.empty(tiles.cells.shape[2], dtype=np.int64), np.empty(tiles.cells.shape[2], dtype=np.int32)
            kernels.gradient_over_tiles(tiles.cells[cut], *facts, *point, *room, out)
            return out

        return engine.workers.sum(part, len(tiles.cells), tiles.cells.size)[None, :]

    def _over_rows(self, engine: DenseEngine | SparseEngine) -> Integers:
        chosen, facts = engine.chosen_rows(self.units), engine.facts.of(self.bound, self.use_l1)
        points, sparse, one_output = self._points(engine.grid), engine.is_sparse, len(self.weights.integers) == 1
        if self.anchor is not None:
            kernel = kernels.change_over_sparse_rows if sparse else kernels.change_over_rows
        elif one_output:
            kernel = kernels.gradient_over_sparse_batch if sparse else kernels.gradient_over_batch
        else:
            kernel = kernels.gradient_over_sparse_rows if sparse else kernels.gradient_over_rows
        rows = engine.rows if isinstance(engine, SparseEngine) else (engine.rows,)

        def part(first: int, last: int) -> Integers:
            out, some = np.zeros(self.weights.integers.shape, dtype=np.int64), chosen[first:last]
            if self.anchor is None and one_output:
                kernel(*rows, facts, some, *points, self.scale, self.loss, out[0])
            else:
                kernel(*rows, facts, some, *points, self.scale, self.use_l1, self.loss, out)
            return out

        entries = rows[-1].size // max(1, engine.records.n_rows)  # of a row
        return engine.workers.sum(part, len(chosen), len(self.weights.integers) * len(chosen) * entries)

    def _points(self, grid: Grid) -> tuple[object, ...]:
        """Return the weights and their margin scale as kernels take them; both points where there is an anchor."""
        w, scale = self.weights.integers, self.weights.margin_scale(grid)
        if self.anchor is not None:
            return w, self.anchor.integers, scale, self.anchor.margin_scale(grid)
        return w[0] if len(w) == 1 else w, scale


def noisy_gradient(session: Session, w: Floats, *, clip: float, rho: float | None = None) -> Floats:
    """Return the SUM over the (Poisson-sampled) records of the loss's gradients at ``w``, each clipped, plus noise.

    Divide it by n, or by the expected batch size: the declared ones, never the realized. Under an adaptive plan
    ``rho`` is what the answer may cost.

    Privacy
    -------
    Sensitivity: a record (a person) contributes an integer vector q with ||q|| <= B exactly (``lattice``: |c| <= B // r
    with r >= ||x||; a person's k rows B // k each; several outputs ||c|| ||x|| <= B); ``clip`` is B in real units. A
    null record contributes 0. Hence the sum moves by at most B under ``zero_out`` and ``add_remove`` and by 2 B under
    ``replace_one``.
    Mechanism: sum + round(2^m N(0, I)), the ideal Gaussian mechanism rounded; for pure budgets the norm is L1 and the
    noise discrete Laplace of scale 2^m.
    Event: ``Gaussian`` (``Laplace``) at 2^m / sensitivity >= the planned multiplier; ``PoissonSampled`` where the plan
    samples, each record (person) by its own exact coin. Adaptive plans: rho-zCDP, charged to the filter first.
    Conditions: w depends on released values only; both norms are of integers, checked in integers.
    """
    return _noisy_sum(session, "noisy_gradient", w, None, clip, rho)


def noisy_gradient_change(session: Session, w: Floats, anchor: Floats, *, clip: float) -> Floats:
    """Return the SUM over the (Poisson-sampled) records of the gradient's change from ``anchor`` to ``w``, plus noise.

    Each record's change is clipped; beta ||w - anchor|| bounds it, and is public since both points are.

    Privacy
    -------
    Sensitivity: a record's change is (f'(x.w) - f'(x.anchor)) x, an integer coefficient times x, and is clipped on the
    lattice exactly like a gradient: B, 2 B under ``replace_one``. It is the executed clip, not the smoothness, that the
    proof rests on.
    Mechanism: as ``noisy_gradient``.
    Event: ``Gaussian`` (``Laplace``) at the planned multiplier, ``PoissonSampled`` where the plan samples: noise is in
    proportion to the clip, so the event is the same for every clip.
    Conditions: w, anchor and clip depend on released values only.
    """
    if anchor.shape != w.shape:
        raise PlanViolation(f"the anchor must have shape {session.domain.shape}")
    check_change_kernels(session.loss, sparse=session.engine.is_sparse)
    return _noisy_sum(session, "noisy_gradient_change", w, anchor, clip, None)


def _noisy_sum(session: Session, name: str, w: Floats, anchor: Floats | None, clip: float, rho: float | None) -> Floats:
    if w.shape != session.domain.shape:
        raise PlanViolation(f"weights must have shape {session.domain.shape}")
    release = session.spend(name, clip, rho=rho)
    unit = session.unit(release, clip)
    drawn = session.noise(release, unit, w.size)
    grid = session.engine.grid
    query = GradientQuery(
        weights=place_weights(w, grid),
        loss=session.loss,
        bound=unit.bound,
        scale=unit.coefficient_scale(grid),
        use_l1=session.uses_l1(release),
        units=session.sample(release),
        anchor=None if anchor is None else place_weights(anchor, grid),
    )
    exact = session.engine.total(query)
    released = session.release(release, unit, exact, exact + drawn.reshape(exact.shape))
    answer = np.ascontiguousarray(released.T, dtype=np.float64).reshape(w.shape)
    return answer * unit.step
