"""How a session answers coordinate queries: blocks, fused programs, squared norms. The proofs are at ``Curator``."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.accounting.plan import Release
from discreet.curator.engines.coordinates import CoordinateProgram, CoordinateQuery, SquareQuery
from discreet.curator.engines.sparse import SparseEngine
from discreet.curator.known_answers.gradients import check_coordinate_kernels
from discreet.curator.lattice.lattice import (
    LEAST_CLIP,
    ROOT_TWO,
    Unit,
    block_bounds,
    on_weight_grid,
    weight_room,
    weight_scale,
)
from discreet.curator.session import Session
from discreet.errors import PlanViolation, Unsupported
from discreet.penalties.base import prox_coordinate

Vector = NDArray[np.float64]
Integers = NDArray[np.int64]
QUERY = "noisy_coordinate_gradient"


@dataclass(frozen=True)
class CoordinateRun:
    """What a program of steps leaves: the last iterate, and the mean of the iterates after each step."""

    last: Vector
    mean: Vector


def checked(session: Session, w: Vector, coordinates: Any, clips: Any) -> tuple[Integers, Vector]:
    """The coordinates and their clips, of the right kind for these records."""
    columns, limits = np.atleast_1d(np.asarray(coordinates)), np.atleast_1d(np.asarray(clips, dtype=np.float64))
    if len(session.domain.shape) != 1:
        raise Unsupported("coordinate methods know one output: use gd or sgd for softmax")
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
    session: Session, loss: Any, integers: Vector, columns: Integers, steps: Vector | float, bounds: Integers
) -> CoordinateQuery:
    """The engine's question for sums whose lattice step is ``steps``."""
    grid = session.engine.grid
    return CoordinateQuery(
        w=integers,
        loss=loss,
        columns=columns,
        scales=np.broadcast_to(1.0 / (np.asarray(steps) * grid.one), columns.shape).astype(np.float64),
        bounds=bounds,
        margin_scale=1.0 / (weight_scale(grid) * grid.one),
    )


def block_gradient(session: Session, loss: Any, w: Vector, columns: Integers, clips: Vector) -> Vector:
    """A noisy block of the gradient's sum."""
    if len(set(columns.tolist())) != columns.size or clips.shape != columns.shape:
        raise PlanViolation("a block names each coordinate once, with a clip for each")
    release = session.spend(QUERY)
    use_l1 = session.uses_l1(release)
    size = float(clips.sum()) if use_l1 else float(np.linalg.norm(clips))
    unit = session.unit(release, size)
    drawn = session.noise(release, unit, columns.size)
    bounds = block_bounds(clips, unit.bound, use_l1)
    query = coordinate_query(session, loss, on_weight_grid(w, session.engine.grid), columns, unit.step, bounds)
    exact = session.engine.coordinate_sums(query)
    return session.release(release, unit, exact, exact + drawn).astype(np.float64) * unit.step


def run_steps(
    session: Session, loss: Any, w: Vector, columns: Integers, *, clips: Vector, steps: Vector, penalty: Any, n: float
) -> CoordinateRun:
    """A fused program of proximal steps; a loop of single sums where a test looks on, with the same bits."""
    if clips.shape != w.shape or np.shape(steps) != w.shape or not np.isfinite(steps).all():
        raise PlanViolation("a program needs a clip and a finite step size for every coordinate")
    check_count(n)
    check_coordinate_kernels(loss, penalty, sparse=isinstance(session.engine, SparseEngine))
    release = session.spend(QUERY, count=columns.size)
    unit = session.unit(release, 1.0)
    grid = session.engine.grid
    program = CoordinateProgram(
        w=on_weight_grid(w, grid),
        loss=loss,
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
    run = _observed_steps if session.is_observed else _fused_steps
    last, sums = run(session, release, unit, program)
    return CoordinateRun(last / program.to_grid, sums / (max(1, columns.size) * program.to_grid))


def _fused_steps(session: Session, release: Release, unit: Unit, program: CoordinateProgram) -> tuple[Vector, Vector]:
    return session.engine.coordinate_steps(program)


def _observed_steps(
    session: Session, release: Release, unit: Unit, program: CoordinateProgram
) -> tuple[Vector, Vector]:
    """The kernel's arithmetic, step by step, so that every sum passes through the window."""
    w, sums = program.w.copy(), np.zeros(program.w.size)
    for k, j in enumerate(program.coordinates.tolist()):
        query = CoordinateQuery(
            w, program.loss, np.array([j]), program.scales[[j]], np.array([program.bound]), program.margin_scale
        )
        exact = session.engine.coordinate_sums(query)
        released = session.release(release, unit, exact, exact + program.noise[k])
        gradient, step = float(released[0]) * program.units[j] / program.n, program.steps[j]
        real = prox_coordinate(program.penalty, w[j] / program.to_grid - step * gradient, step, j)
        room = program.room - (float(np.abs(w).sum()) - abs(w[j]))
        w[j] = min(max(np.rint(real * program.to_grid), -room), room) + 0.0  # no negative zero
        sums += w
    return w, sums


def share_within(session: Session, loss: Any, w: Vector, columns: Integers, clip: float) -> float:
    """A noisy count of records within the clip, less half of all."""
    release = session.spend("noisy_share_within")
    unit = session.unit(release, 0.5)
    drawn = session.noise(release, unit, 1)
    grid = session.engine.grid
    query = coordinate_query(session, loss, on_weight_grid(w, grid), columns, 1.0, np.array([unit.bound]))
    exact = session.engine.within_sum(query, clip * grid.one)
    return float(session.release(release, unit, exact, exact + drawn)[0] * unit.step)


def squared_norms(session: Session, clip: float) -> Vector:
    """Noisy sums of squared features, each record's total at most clip^2."""
    release = session.spend("noisy_squared_norms", clip)
    if release.mechanism == "laplace":
        return _squares_by_coordinate(session, release)
    factor = ROOT_TWO if session.factor == 2 and not session.uses_l1(release) else session.factor
    unit = session.unit(release, clip * clip, factor)
    p = session.domain.n_features
    drawn = session.noise(release, unit, p)
    per_square = 1.0 / (unit.step * float(session.engine.grid.one) ** 2)  # lattice steps per squared grid unit
    exact = session.engine.square_sums(SquareQuery(np.full(p, per_square), np.full(p, unit.bound), unit.bound))
    return session.release(release, unit, exact, exact + drawn, factor=factor).astype(np.float64) * unit.step


def _squares_by_coordinate(session: Session, release: Release) -> Vector:
    """The papers': x_j^2 relative to its declared bound, so p entries in [0, 1] and L1 sensitivity p, always."""
    unit = session.unit(release, 1.0, 1)
    drawn = session.noise(release, unit, session.domain.n_features)
    squares = np.maximum(np.square(session.domain.feature_bounds), 1e-12)
    cap = unit.bound // squares.size
    scales = cap / (squares * float(session.engine.grid.one) ** 2)
    exact = session.engine.square_sums(SquareQuery(scales, np.full(squares.size, cap), unit.bound))
    released = session.release(release, unit, exact, exact + drawn, norm="l1", factor=1)
    return released * (squares / cap)
