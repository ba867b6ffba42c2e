"""How a session answers for moments: lattice, noise, release. The proofs are at ``Curator``."""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from discreet.accounting.plan import Release
from discreet.curator.engines.base import MomentQuery
from discreet.curator.engines.coordinates import unit_bounds
from discreet.curator.engines.moments import square_shift
from discreet.curator.known_answers.moments import check_shape_kernels
from discreet.curator.lattice.lattice import ROOT_TWO
from discreet.curator.queries.coordinates import check_count
from discreet.curator.session import Integers, Session
from discreet.errors import PlanViolation

Vector = NDArray[np.float64]


def noisy_mean(session: Session, clip: float, n: float) -> Vector:
    """The sum of rows, each at most ``clip`` long, over n."""
    release = _asked(session, "noisy_mean", clip, n)
    return _answer(session, release, clip, n, session.engine.mean_sum, power=1)


def noisy_mean_squares(session: Session, clip: float, n: float) -> Vector:
    """The sum of squared rows, each vector of squares at most ``clip`` long, over n."""
    release = _asked(session, "noisy_mean_squares", clip, n)
    return _answer(session, release, clip, n, session.engine.diagonal_sum, power=2)


def noisy_second_moment(session: Session, clip: float, n: float) -> Vector:
    """The sum of outer products of norm at most ``clip``, over n, made symmetric."""
    release = _asked(session, "noisy_second_moment", clip, n)
    whole = _answer(session, release, clip, n, session.engine.outer_sum, power=2)
    return np.asarray(whole + whole.T) / 2.0


def _asked(session: Session, query: str, clip: float, n: float) -> Release:
    check_count(n)
    check_shape_kernels(sparse=session.admitted.sparse is not None)
    return session.spend(query, clip)


def _answer(
    session: Session, release: Release, clip: float, n: float, exactly: Callable[[MomentQuery], Integers], *, power: int
) -> Vector:
    """The noisy sum; squares and outer products have no two of opposite sign, so replacing one moves it less."""
    use_l1, grid = session.uses_l1(release), session.engine.grid
    factor = ROOT_TWO if power == 2 and session.factor == 2 and not use_l1 else session.factor
    unit = session.unit(release, clip, factor)
    p = session.domain.n_features
    size = p * p if exactly == session.engine.outer_sum else p
    drawn = session.noise(release, unit, size)
    scale = 1.0 / (unit.step * float(grid.one) ** power)
    exact = exactly(MomentQuery(unit.bound, scale, use_l1))
    released = session.release(release, unit, exact, exact + drawn.reshape(exact.shape), factor=factor)
    steps = scale * 2.0 ** (square_shift(session.engine.records) if exactly == session.engine.diagonal_sum else 0)
    whole = steps / math.floor(steps) if power == 2 and steps >= 1 else 1.0  # what rounding coefficients down took away
    return np.asarray(released * (unit.step * whole / n), dtype=np.float64)


def noisy_target_moments(session: Session, n: float) -> tuple[float, float]:
    """Means of t and of t^2, t the target from the middle of its declared range, over half of it."""
    if session.admitted_domain is not session.domain or session.domain.target_range is None:
        raise PlanViolation("a numeric target's moments are asked for before records are recoded")
    check_count(n)
    release = session.spend("noisy_target_moments")
    unit = session.unit(release, math.sqrt(2.0))
    drawn = session.noise(release, unit, 2)
    records, (low, high) = session.engine.records, session.domain.target_range
    one = unit.bound // 2 if session.uses_l1(release) else math.isqrt(unit.bound**2 // 2)
    entries = unit_bounds(one, records)
    t = np.clip((records.targets - (low + high) / 2.0) / half_range(low, high), -1.0, 1.0) * (records.norms > 0)
    exact = np.array([_total(t, entries), _total(t * t, entries)])
    released = session.release(release, unit, exact, exact + drawn) / (one * n)
    return float(released[0]), float(released[1])


def half_range(low: float, high: float) -> float:
    """Half of a declared range; 1 where it is a point."""
    return (high - low) / 2.0 or 1.0


def _total(values: Vector, entries: Integers) -> int:
    """The sum of integers toward zero within +-entries: row by row, then exact."""
    return int(np.trunc(values * entries).astype(np.int64).sum())
