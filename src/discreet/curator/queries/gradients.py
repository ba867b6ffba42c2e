"""Noisy gradients: of all records or a Poisson sample, of their changes, and of single coordinates.

Coordinates are asked in blocks or by fused programs of proximal steps. There margins live as exact integers in doubles,
on the fixed weight grid of ``lattice.weight_scale``.
"""

from __future__ import annotations  # nested functions would build their annotations on every call

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.accounting.plan import Release
from discreet.curator.engines import DenseEngine, ExactSum, LocalEngine, SparseEngine, unit_bounds
from discreet.curator.kernels import gradients as kernels
from discreet.curator.known_answers import (
    check_change_kernels,
    check_coordinate_kernels,
    check_coordinate_sums,
    check_share_sums,
)
from discreet.curator.lattice import (
    LEAST_CLIP,
    Grid,
    Unit,
    Weights,
    block_bounds,
    on_weight_grid,
    place_weights,
    weight_room,
    weight_scale,
)
from discreet.errors import PlanViolation, Unsupported
from discreet.losses.base import Loss
from discreet.penalties.base import Penalty, prox_coordinate
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
            limits = engine.tiles.limits.of(self.bound, self.use_l1)
            return sum_over_tiles(engine, self.weights, engine.tiles.weights, limits, self.scale, self.loss)[None, :]
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

    def _over_rows(self, engine: DenseEngine | SparseEngine) -> Integers:
        chosen, facts = engine.chosen_rows(self.units), engine.facts(self.bound, self.use_l1)
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


def sum_over_tiles(
    engine: DenseEngine, weights: Weights, row_weights: Floats, limits: NDArray[np.int32], scale: float, loss: Loss
) -> Integers:
    """Return the exact sum of gradients of one output over all records; weights and limits of rows are cut in tiles."""
    tiles, w = engine.tiles, weights.integers[0].astype(np.int64)
    point = (w, weights.margin_scale(engine.grid), scale, loss)

    def part(first: int, last: int) -> Integers:
        out, cut = np.zeros(w.size, dtype=np.int64), slice(first, last)
        facts = (tiles.targets[cut], row_weights[cut], limits[cut])
        room = np.empty(tiles.cells.shape[2], dtype=np.int64), np.empty(tiles.cells.shape[2], dtype=np.int32)
        kernels.gradient_over_tiles(tiles.cells[cut], *facts, *point, *room, out)
        return out

    return engine.workers.sum(part, len(tiles.cells), tiles.cells.size)


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


QUERY = "noisy_coordinate_gradient"
_FEW = 2
"""Columns that are read from the rows as they lie; for more of them the table is cut into tiles, once."""


@dataclass(frozen=True)
class CoordinateQuery(ExactSum):
    """Sums of single gradient entries at integer weights ``w`` (grid units, as doubles).

    Column ``columns[c]`` is scaled by ``scales[c]`` (lattice steps per unit of slope times grid value) and
    each record's entry clipped at the integer ``bounds[c]``.
    """

    w: Floats
    loss: Loss
    columns: Integers
    scales: Floats
    bounds: Integers
    margin_scale: float

    def over(self, engine: LocalEngine) -> Integers:
        """Return exact sums of single gradient entries, one per column asked."""
        sums = (self.scales, self.bounds.astype(np.float64), self.margin_scale, self.loss)
        if isinstance(engine, SparseEngine):
            out = np.zeros(self.columns.size, dtype=np.int64)
            kernels.sparse_coordinate_sums(*_sparse_facts(engine, self.w, self.bounds), self.columns, *sums, out)
            return out
        assert isinstance(engine, DenseEngine)
        is_used = self.w != 0
        is_used[self.columns] = True
        used = np.flatnonzero(is_used)
        if len(used) <= _FEW < engine.n_columns and "tiles" not in vars(engine):  # often the constant: no copy then
            tiles, columns = engine.tiles_of(used), np.searchsorted(used, self.columns)
            margins = tiles.margins(self.w[used])
        else:
            tiles, columns, margins = engine.tiles, self.columns, engine.margins(self.w)
        row_bounds = person_bounds(self.bounds, tiles.shares, dimensions=2)

        def part(first: int, last: int) -> Integers:
            out, cut = np.zeros(self.columns.size, dtype=np.int64), slice(first, last)
            facts = (tiles.cells[cut], margins[cut], tiles.targets[cut], tiles.weights[cut], row_bounds[:, cut])
            kernels.coordinate_sums(*facts, columns, *sums, np.empty(tiles.cells.shape[2]), out)
            return out

        return engine.workers.sum(part, len(tiles.cells), tiles.cells.size)


@dataclass(frozen=True)
class ShareQuery(ExactSum):
    """How many records' gradient entries are within ``threshold`` (in grid values): +B for each, -B for the others."""

    entry: CoordinateQuery
    threshold: float

    def over(self, engine: LocalEngine) -> Integers:
        """Return the sum of +B where |slope x| <= threshold, -B where not, 0 for null records."""
        entry, records, j = self.entry, engine.records, self.entry.columns[0]
        if isinstance(engine, SparseEngine):
            starts, rows, data = engine.columns
            column = np.zeros(records.n_rows, dtype=engine.grid.dtype)
            column[rows[starts[j] : starts[j + 1]]] = data[starts[j] : starts[j + 1]]
            margins = engine.margins(entry.w).astype(np.int64)
        else:
            assert isinstance(engine, DenseEngine)
            column = np.ascontiguousarray(engine.rows[:, j])
            used = np.flatnonzero(entry.w)  # often the constant alone: no copy of the table then
            margins = engine.rows[:, used].astype(np.int64) @ entry.w[used].astype(np.int64)
        signs = unit_bounds(int(entry.bounds[0]), records) * (records.norms > 0)
        facts, out = (records.targets, signs, entry.margin_scale), np.zeros(1, dtype=np.int64)
        kernels.within_sum(column, margins, *facts, self.threshold, entry.loss, out)
        return out


@dataclass(frozen=True)
class CoordinateProgram:
    """A fused run of proximal steps on ``coordinates``, one noise each; per-coordinate arrays are full length.

    ``units`` and ``n`` turn a noisy lattice sum into a mean gradient; ``room`` bounds the integer weights' L1 norm.
    """

    w: Floats
    loss: Loss
    penalty: Penalty
    coordinates: Integers
    noise: Integers
    scales: Floats
    bound: int
    units: Floats
    n: float
    steps: Floats
    margin_scale: float
    to_grid: float
    room: float

    def over(self, engine: LocalEngine) -> tuple[Floats, Floats]:
        """Return the integer weights after the program, and the sum of the iterates after each step, in grid units."""
        w, sums, bounds = self.w.copy(), np.zeros(self.w.size), np.array([self.bound])
        program = (
            self.coordinates, self.noise, w, sums, self.room, self.scales, float(self.bound), self.units, self.n,
            self.steps, self.margin_scale, self.to_grid, self.loss, self.penalty,
        )  # fmt: skip
        if isinstance(engine, SparseEngine):
            kernels.sparse_coordinate_steps(*_sparse_facts(engine, self.w, bounds), *program)
        else:
            assert isinstance(engine, DenseEngine)
            tiles = engine.tiles
            row_bounds = person_bounds(bounds, tiles.shares, dimensions=2)
            kernels.coordinate_steps(
                tiles.cells, tiles.margins(self.w), tiles.targets, tiles.weights, row_bounds, *program
            )
        return w, sums


def _sparse_facts(engine: SparseEngine, w: Floats, bounds: Integers) -> tuple[object, ...]:
    """Return the columns, each record's margin next to its target, its weight, and each row's own bounds."""
    records = engine.records
    margins = np.column_stack((engine.margins(w), records.targets))
    return *engine.columns, margins, engine.weights, person_bounds(bounds, records.shares, dimensions=1)


def person_bounds(bounds: Integers, shares: Integers | None, *, dimensions: int) -> Floats:
    """Return each row's own bound B // k, one table for each bound, of the rows' dimensions; empty for records."""
    if shares is None:
        return np.empty((0,) + (1,) * dimensions)
    return np.stack([(int(bound) // shares).astype(np.float64) for bound in bounds])


@dataclass(frozen=True)
class CoordinateRun:
    """What a program of steps leaves: the last iterate, and the mean of the iterates after each step."""

    last: Floats
    mean: Floats


def checked(session: Session, w: Floats, coordinates: ArrayLike, clips: ArrayLike) -> tuple[Integers, Floats]:
    """The coordinates and their clips, of the right kind for these records."""
    columns, limits = np.atleast_1d(coordinates), np.atleast_1d(np.asarray(clips, dtype=np.float64))
    if len(session.domain.shape) != 1:
        raise Unsupported("coordinate methods know one output: use solver='gd' for softmax")
    if w.shape != session.domain.shape:
        raise PlanViolation(f"weights must have shape {session.domain.shape}")
    if columns.dtype.kind not in "iu" or ((columns < 0) | (columns >= w.size)).any():
        raise PlanViolation("coordinates must be column numbers of the training coordinates")
    if not ((limits >= LEAST_CLIP) & (limits <= 1.0 / LEAST_CLIP)).all():
        raise PlanViolation("clips must be positive and finite, of a size that double precision can scale")
    return columns.astype(np.int64), limits


def check_count(n: float) -> None:
    """Refuse a number of records that would scale answers out of range."""
    if not 1 <= n < 2**63:
        raise PlanViolation("n must be at least 1: the declared number of records, or a noisy count")


def coordinate_query(
    session: Session, w: Floats, columns: Integers, steps: Floats | float, bounds: Integers
) -> CoordinateQuery:
    """The engine's question for sums whose lattice step is ``steps``."""
    grid = session.engine.grid
    return CoordinateQuery(
        w=on_weight_grid(w, grid),
        loss=session.loss,
        columns=columns,
        scales=np.full(columns.shape, 1.0 / (np.asarray(steps) * grid.one)),
        bounds=bounds,
        margin_scale=1.0 / (weight_scale(grid) * grid.one),
    )


def noisy_coordinate_gradient(session: Session, w: Floats, coordinates: ArrayLike, *, clips: ArrayLike) -> Floats:
    """Return entries of the gradient's SUM at ``w``: one coordinate or a block, each entry clipped, plus noise.

    Privacy
    -------
    Sensitivity: a record's entry is the integer round(clip(f'(margin) x_j / step, +-B_j)); for one coordinate B_j = B,
    for a block the B_j are in proportion to ``clips`` with sum B_j^2 <= B^2 (L1: sum B_j <= B), checked in integers; a
    person's k rows get B_j // k each. The block moves by at most B, 2 B under ``replace_one``.
    Mechanism: sum + round(2^m N(0, I)); discrete Laplace of scale 2^m for pure budgets and Laplace releases.
    Event: ``Gaussian`` (``Laplace``) at 2^m / sensitivity >= the planned multiplier, whatever the coordinates.
    Conditions: w, coordinates and clips depend on public and released values only.
    """
    columns, clips = checked(session, w, coordinates, clips)
    if len(set(columns.tolist())) != columns.size or clips.shape != columns.shape:
        raise PlanViolation("a block names each coordinate once, with a clip for each")
    check_coordinate_sums(session.loss, sparse=session.engine.is_sparse)
    release = session.spend(QUERY)
    use_l1 = session.uses_l1(release)
    size = float(clips.sum()) if use_l1 else float(np.linalg.norm(clips))
    unit = session.unit(release, size)
    drawn = session.noise(release, unit, columns.size)
    bounds = block_bounds(clips, unit.bound, use_l1)
    exact = session.engine.total(coordinate_query(session, w, columns, unit.step, bounds))
    return session.release(release, unit, exact, exact + drawn).astype(np.float64) * unit.step


def noisy_coordinate_steps(
    session: Session,
    w: Floats,
    coordinates: ArrayLike,
    *,
    clips: ArrayLike,
    steps: ArrayLike,
    penalty: Penalty,
    n: float,
) -> CoordinateRun:
    """Take proximal coordinate steps w_j <- prox(w_j - step_j g_j), thousands in one compiled call.

    ``g_j`` is the noisy mean gradient entry (the sum over ``n``). ``clips`` and ``steps`` hold one number for every
    coordinate. Iterates live on a fixed dyadic grid (2^-24, 2^-17 for ``scale="global"``). A loop of single sums, with
    the same bits, serves tests, which look at every sum, and records in parts elsewhere.

    Privacy
    -------
    Sensitivity: that of ``noisy_coordinate_gradient`` with one coordinate, for each step in turn.
    Mechanism: the same; all noise is drawn before the first record is read. The fused kernel does the arithmetic of a
    loop of single sums on exact integer margins: the same bits.
    Event: one ``Gaussian`` (``Laplace``) per step, whatever its coordinate.
    Conditions: the coordinates are fixed beforehand; a step's w comes from earlier noisy sums only.
    """
    columns, clips = checked(session, w, coordinates, clips)
    if clips.shape != w.shape or np.shape(steps) != w.shape or not np.isfinite(steps).all():
        raise PlanViolation("a program needs a clip and a finite step size for every coordinate")
    check_count(n)
    check_coordinate_kernels(session.loss, penalty, sparse=session.engine.is_sparse)
    release = session.spend(QUERY, count=columns.size)
    unit = session.unit(release, 1.0)
    grid = session.engine.grid
    program = CoordinateProgram(
        w=on_weight_grid(w, grid),
        loss=session.loss,
        penalty=penalty,
        coordinates=columns,
        noise=session.noise(release, unit, columns.size, answers=columns.size),
        scales=1.0 / (clips / unit.bound * grid.one),  # rounded as a single query's
        bound=unit.bound,
        units=clips / unit.bound,
        n=float(n),
        steps=np.asarray(steps, dtype=np.float64),
        margin_scale=1.0 / (weight_scale(grid) * grid.one),
        to_grid=weight_scale(grid),
        room=weight_room(grid),
    )
    if session.is_observed or not session.engine.runs_programs:
        last, sums = _observed_steps(session, release, unit, program)
    else:
        last, sums = program.over(session.engine.whole())
    return CoordinateRun(last / program.to_grid, sums / (max(1, columns.size) * program.to_grid))


def _observed_steps(
    session: Session, release: Release, unit: Unit, program: CoordinateProgram
) -> tuple[Floats, Floats]:
    """The kernel's arithmetic, step by step: every sum passes the observer, or comes in parts."""
    w, sums = program.w.copy(), np.zeros(program.w.size)
    for k, j in enumerate(program.coordinates.tolist()):
        query = CoordinateQuery(
            w, program.loss, np.array([j]), program.scales[[j]], np.array([program.bound]), program.margin_scale
        )
        total = session.engine.total(query)
        released = session.release(release, unit, total, total + program.noise[k])
        gradient, step = float(released[0]) * program.units[j] / program.n, program.steps[j]
        real = prox_coordinate(program.penalty, w[j] / program.to_grid - step * gradient, step, j)
        room = program.room - (float(np.abs(w).sum()) - abs(w[j]))
        landed = np.rint(real * program.to_grid) if real == real else 0.0
        w[j] = min(max(landed, -room), room) + 0.0  # no negative zero
        sums += w
    return w, sums


def noisy_share_within(session: Session, w: Floats, coordinate: int, *, clip: float) -> float:
    """Return how many records' gradient entries lie within +-clip, less half of all records, plus noise.

    Privacy
    -------
    Sensitivity: a record adds +B or -B lattice steps (1/2 in real units), a null record 0, a person's k rows +-(B // k)
    each: B, 2 B under ``replace_one``.
    Mechanism: sum + round(2^m N(0, 1)), or discrete Laplace of scale 2^m.
    Event: ``Gaussian`` (``Laplace``) at 2^m / sensitivity >= the planned multiplier.
    Conditions: w, coordinate and clip are public or released.
    """
    columns, limits = checked(session, w, coordinate, clip)
    check_share_sums(session.loss, sparse=session.engine.is_sparse)
    release = session.spend("noisy_share_within")
    unit = session.unit(release, 0.5)
    drawn = session.noise(release, unit, 1)
    query = coordinate_query(session, w, columns, 1.0, np.array([unit.bound]))
    exact = session.engine.total(ShareQuery(query, float(limits[0]) * session.engine.grid.one))
    return float(session.release(release, unit, exact, exact + drawn)[0] * unit.step)
