"""Noisy moments: means, squares and magnitudes of features, second moments, moments of the target.

There are two noisy sums of squared features, and they are two mechanisms. ``noisy_squared_norms`` bounds a record's
*total* of squares, an L1 norm, and truncates each square by itself: what coordinate methods scale their clips by, and
the only one that can be relative to each feature's own bound. ``noisy_mean_squares`` bounds the *length* of the vector
of squares, an L2 norm, and multiplies it by one integer, which keeps its direction: long rows lose less. Their clips,
their contributions and their realized noise differ, so neither can answer for the other.
"""

from __future__ import annotations  # nested functions would build their annotations on every call

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from discreet.curator.engines import ExactSum, LocalEngine, coefficient_limits, unit_bounds
from discreet.curator.kernels import moments as kernels
from discreet.curator.known_answers import check_magnitude_kernel, check_moment_kernels, check_square_sums
from discreet.curator.lattice import Grid
from discreet.curator.queries.gradients import check_count
from discreet.errors import PlanViolation, Unsupported
from discreet.typing import Floats, Integers

if TYPE_CHECKING:
    from discreet.accounting.plan import Release
    from discreet.curator.session import Session

Moment = Literal["mean", "squares", "outer"]

_SQUARE_BITS = 22
_MOST_BOUND = 1 << 40
_MOST = 2.0**50
_LONGEST = 1 << 31
_FARTHEST = 2.0**20
DIGITS = 16
"""Binary digits of a distance that are counted: more is for distances beyond 16-bit grids, which lose low bits."""


@dataclass(frozen=True)
class MomentQuery(ExactSum):
    """A sum of vectors clipped at ``bound`` lattice steps; ``scale`` is steps per unit of the grid (squared).

    ``center`` is what squares are taken about, in steps of the grid; None: 0.
    """

    bound: int
    scale: float
    use_l1: bool = False
    moment: Moment = "mean"
    center: Integers | None = None

    def over(self, engine: LocalEngine) -> Integers:
        """Return the exact sum of rows, of squared rows or of outer products."""
        sums = {"mean": self.mean_over, "squares": self.squares_over, "outer": self.outer_over}
        return sums[self.moment](engine)

    def mean_over(self, engine: LocalEngine) -> Integers:
        """Return the exact sum of rows, each within the bound."""
        records = engine.records
        limits = coefficient_limits(records.sums if self.use_l1 else records.norms, records.shares, self.bound)
        coefficients = np.minimum(_most(engine, self.scale), limits)

        def part(first: int, last: int) -> Integers:
            out = np.zeros(records.n_columns, dtype=np.int64)
            if records.sparse is None:
                kernels.row_sums(records.rows[first:last], coefficients[first:last], out)  # type: ignore[index]
            else:
                indptr, indices, data = records.sparse
                kernels.sparse_row_sums(indptr[first : last + 1], indices, data, coefficients[first:last], out)
            return out

        return engine.workers.sum(part, records.n_rows, records.n_rows * records.n_columns)

    def squares_over(self, engine: LocalEngine) -> Integers:
        """Return the exact sum of squared rows, each within the bound; a person's are averaged over the rows."""
        records, p = engine.records, engine.n_columns
        shift = square_shift(p, engine.grid, centered=self.center is not None)
        bounds = unit_bounds(self.bound, records) * (records.norms > 0)  # null rows are away from the center, too
        facts = (shift, bounds, _most(engine, self.scale * 2.0**shift), self.use_l1)
        if records.sparse is not None:
            if self.center is not None:
                raise Unsupported("squares of sparse records are taken about 0")
            out = np.zeros(p, dtype=np.int64)
            kernels.sparse_clipped_square_sums(*records.sparse, *facts, out)
            return out
        rows, center = records.rows, np.zeros(p, dtype=np.int64) if self.center is None else self.center
        assert rows is not None

        def part(first: int, last: int) -> Integers:
            squares, out = np.empty(p, dtype=np.int64), np.zeros(p, dtype=np.int64)
            limits = (facts[0], facts[1][first:last], facts[2][first:last], facts[3])
            kernels.clipped_square_sums(rows[first:last], center, *limits, squares, out)
            return out

        return engine.workers.sum(part, len(rows), rows.size)

    def outer_over(self, engine: LocalEngine) -> Integers:
        """Return the exact sum of outer products c x x^T, c |x_j| |x_k| <= c ||x||^2 <= bound <= 2^40 for each row."""
        rows, p = engine.records.rows, engine.records.n_columns
        if rows is None:
            raise Unsupported(
                "second moments of sparse records are released as a diagonal: p^2 numbers would fill them"
            )
        if self.bound > _MOST_BOUND:
            raise Unsupported("the bound of an outer product must not exceed 2^40")
        if self.scale < 1:
            raise Unsupported("these records' grid is too fine for outer products: recode them first")
        coefficients = outer_coefficients(engine, self)

        def part(first: int, last: int) -> Integers:
            out = np.zeros((p, p), dtype=np.int64)
            kernels.outer_sums(rows[first:last], coefficients[first:last], out)
            return out

        return engine.workers.sum(part, len(rows), len(rows) * p * p)


@dataclass(frozen=True)
class SquareQuery(ExactSum):
    """Sums of squared grid values times ``scales``, truncated: entry j at most ``caps[j]``, all at most ``bound``."""

    scales: Floats
    caps: Integers
    bound: int

    def over(self, engine: LocalEngine) -> Integers:
        """Return each column's exact sum of scaled squares; a person's squares are averaged over the rows."""
        records = engine.records
        shares = np.ones(records.n_rows, dtype=np.int64) if records.shares is None else records.shares
        facts = (shares, unit_bounds(self.bound, records), self.scales, self.caps)
        out = np.zeros(records.n_columns, dtype=np.int64)
        if records.sparse is None:
            kernels.square_sums(records.rows, *facts, out)
        else:
            kernels.sparse_square_sums(*records.sparse, *facts, out)
        return out


@dataclass(frozen=True)
class MagnitudeQuery(ExactSum):
    """Counts of rows by the binary digits of each feature's distance from a center, in ``bound`` per row and feature.

    ``center`` is in steps of the grid.
    """

    bound: int
    center: Integers

    def over(self, engine: LocalEngine) -> Integers:
        """Return ``bound`` times how many rows have a distance of k digits, (features, digits + 1)."""
        records = engine.records
        if records.rows is None:
            raise Unsupported("magnitudes are counted for dense records")
        rows, shift = records.rows, magnitude_shift(records.grid)
        counted = unit_bounds(self.bound, records) * (records.norms > 0)

        def part(first: int, last: int) -> Integers:
            out = np.zeros((self.center.size, DIGITS + 1), dtype=np.int64)
            room = np.empty(self.center.size, dtype=np.int64)
            kernels.add_magnitudes(rows[first:last], counted[first:last], self.center, shift, room, out)
            return out

        return engine.workers.sum(part, records.n_rows, rows.size)


@dataclass(frozen=True)
class TargetQuery(ExactSum):
    """Sums of t and of t^2, t the target from ``center`` over ``half``, in ``unity`` lattice steps per unit."""

    unity: int
    center: float
    half: float

    def over(self, engine: LocalEngine) -> Integers:
        """Return both exact sums, of integers toward zero; a person's are averaged over the rows."""
        records, entries = engine.records, unit_bounds(self.unity, engine.records)
        t = np.clip((records.targets - self.center) / self.half, -1.0, 1.0) * (records.norms > 0)
        weights = 1.0 if records.weights is None else records.weights
        return np.array([_total(weights * t, entries), _total(weights * t * t, entries)])


def _most(engine: LocalEngine, scale: float) -> Integers:
    """Return each row's unclipped coefficient: its weight times the scale; any bound is below ``_MOST``."""
    return np.floor(engine.weights * min(scale, _MOST)).astype(np.int64)


def square_shift(n_columns: int, grid: Grid, *, centered: bool = False) -> int:
    """Return how many bits squares lose: each then fits 22 bits, fewer for wide rows, whose sum stays below 2^62.

    Two numbers of the grid differ by one bit more than each has.
    """
    bits = min(_SQUARE_BITS, (61 - n_columns.bit_length()) // 2)
    return max(0, 2 * ((15 if np.dtype(grid.dtype).itemsize == 2 else grid.bits + 1) + centered) - bits)


def magnitude_shift(grid: Grid) -> int:
    """Return how many bits distances lose, so that two ends of a range of [-1, 1] differ by at most 16 digits."""
    return max(0, grid.bits + 2 - DIGITS)


def outer_coefficients(engine: LocalEngine, query: MomentQuery) -> Integers:
    """Return each row's coefficient: the scale, or what keeps its outer product within the bound."""
    records = engine.records
    squared = np.square(np.minimum(records.sums if query.use_l1 else records.norms, _LONGEST))  # its limit is 0 anyway
    limits = np.where(squared > 0, unit_bounds(query.bound, records) // np.maximum(squared, 1), 0)
    return np.minimum(_most(engine, query.scale), limits)


def noisy_mean(session: Session, *, clip: float, n: float) -> Floats:
    """Return the sum of the records (their features, the constant among them), each shrunk to ``clip``, over ``n``.

    Privacy
    -------
    Sensitivity: a record contributes c x with an integer c <= B // r, r >= ||x|| (``lattice``), a person's k rows
    with c <= (B // k) // r each, a null record 0: B, and 2 B under ``replace_one``. L1 norms for pure budgets.
    Mechanism: sum + round(2^m N(0, I)), or discrete Laplace of scale 2^m.
    Event: ``Gaussian`` (``Laplace``) at 2^m / sensitivity >= the planned multiplier.
    Conditions: clip and n are public or released.
    """
    return _answer(session, "noisy_mean", clip, n, "mean", power=1)


def noisy_mean_squares(session: Session, *, clip: float, n: float, center: Floats | None = None) -> Floats:
    """Return the sum of each squared feature over ``n``; a record's vector of squares is scaled to length ``clip``.

    Squares are those of distances from ``center``, one number for each column of the records as they are; None: 0.
    The diagonal of ``noisy_second_moment``, for sparse and wide records too.

    Privacy
    -------
    Sensitivity: a record contributes c s, s its vector of squares (low bits cut off) and c an integer <= B // r,
    r >= ||s||; a person's k rows B // k each; a null record 0, wherever the center is. So B under ``zero_out`` and
    ``add_remove``; under ``replace_one`` no entry is negative, so ||q - q'||^2 <= ||q||^2 + ||q'||^2 <= 2 B^2:
    sqrt(2) B (2 B in L1, for pure budgets). There is no factor of p.
    Mechanism: sum + round(2^m N(0, I)), or discrete Laplace of scale 2^m.
    Event: ``Gaussian`` (``Laplace``) at 2^m / sensitivity >= the planned multiplier.
    Conditions: clip, n and the center are public or released.
    """
    columns, grid = session.domain.n_features, session.engine.grid
    if center is None:
        return _answer(session, "noisy_mean_squares", clip, n, "squares", power=2)
    if session.engine.is_sparse:
        raise Unsupported("squares of sparse records are taken about 0")
    if center.shape != (columns,) or not np.isfinite(center).all():
        raise PlanViolation(f"squares need a finite center for each of {columns} columns")
    farthest = session.domain.feature_bounds  # no record is beyond
    places = np.rint(np.clip(center, -farthest, farthest) * grid.one).astype(np.int64)
    return _answer(session, "noisy_mean_squares", clip, n, "squares", power=2, center=places)


def noisy_second_moment(session: Session, *, clip: float, n: float) -> Floats:
    """Return the sum of outer products x x^T over ``n``, symmetric, each scaled to a Frobenius norm of ``clip``.

    Privacy
    -------
    Sensitivity: a record contributes c x x^T with an integer c <= B // r^2, r >= ||x||, and ||x x^T||_F = ||x||^2;
    a person's k rows B // k each; a null record 0. So B under ``zero_out`` and ``add_remove``. Under
    ``replace_one`` contributions P and Q are positive semidefinite, so <P, Q> >= 0 and ||P - Q||^2 <= ||P||^2 +
    ||Q||^2 <= 2 B^2: sqrt(2) B. In L1, for pure budgets, 2 B.
    Mechanism: sum + round(2^m N(0, I)) with p^2 independent entries, or discrete Laplace of scale 2^m; making the
    noisy matrix symmetric is post-processing. The sum is exact: in double precision, of integers below 2^53
    (``kernels/moments.py``).
    Event: ``Gaussian`` (``Laplace``) at 2^m / sensitivity >= the planned multiplier.
    Conditions: clip and n are public or released.
    """
    whole = _answer(session, "noisy_second_moment", clip, n, "outer", power=2)
    return np.asarray(whole + whole.T) / 2.0


def _answer(
    session: Session, query: str, clip: float, n: float, moment: Moment, *, power: int, center: Integers | None = None
) -> Floats:
    """Return the noisy sum; no two squares or outer products have opposite signs, so replacing one moves it less."""
    check_count(n)
    check_moment_kernels(moment=moment, sparse=session.admitted.is_sparse)
    release = session.spend(query, clip)
    use_l1, grid = session.uses_l1(release), session.engine.grid
    factor = session.nonnegative_factor if power == 2 and not use_l1 else session.factor
    unit = session.unit(release, clip, factor)
    p = session.domain.n_features
    drawn = session.noise(release, unit, p * p if moment == "outer" else p)
    scale = 1.0 / (unit.step * float(grid.one) ** power)
    exact = session.engine.total(MomentQuery(unit.bound, scale, use_l1, moment, center))
    released = session.release(release, unit, exact, exact + drawn.reshape(exact.shape), factor=factor)
    steps = scale * 2.0 ** (square_shift(p, grid, centered=center is not None) if moment == "squares" else 0)
    whole = steps / math.floor(steps) if power == 2 and steps >= 1 else 1.0  # what rounding coefficients down took away
    return np.asarray(released * (unit.step * whole / n), dtype=np.float64)


class Magnitudes(NamedTuple):
    """Noisy counts of rows by the size of each feature's distance from a center.

    Parameters
    ----------
    counts : ndarray
        (features, sizes): rows whose distance is below the size's edge, and not below the edge before.
    edges : ndarray
        Increasing, each twice the one before.
    noise : float
        Standard deviation of each count: a public number.
    """

    counts: Floats
    edges: Floats
    noise: float


def noisy_magnitudes(session: Session, center: Floats) -> Magnitudes:
    """Return how many rows are how far from ``center``, feature by feature, by powers of two.

    Shares of rows have the same noise whatever range was declared, so that this finds out where in a range that is far
    too wide the rows are.

    Privacy
    -------
    Sensitivity: a row adds the integer b to one cell of each of p features, whatever its numbers are, so the norm of
    what it adds is b sqrt(p); with b = isqrt(B^2 // p), at most B. Each of a person's k rows adds b // k to its cells,
    so that the sum of k such vectors is no longer than one of b. A null record adds 0. So B under ``zero_out`` and
    ``add_remove``. Under ``replace_one`` no entry is negative, so ||q - q'||^2 <= ||q||^2 + ||q'||^2 <= 2 B^2:
    sqrt(2) B.
    Mechanism: sum + round(2^m N(0, I)). Sums of integers are exact.
    Event: ``Gaussian`` at 2^m / sensitivity >= the planned multiplier.
    Conditions: the center is public or released. Asked of records as they were admitted, however they were recoded.
    """
    engine, domain = session.admitted, session.admitted_domain
    features = domain.n_features - domain.intercept
    if engine.is_sparse:
        raise Unsupported("magnitudes are counted for dense records")
    if center.shape != (features,) or not np.isfinite(center).all():
        raise PlanViolation(f"magnitudes need a finite center for each of {features} features")
    check_magnitude_kernel()
    release = session.spend("noisy_magnitudes")
    factor = session.nonnegative_factor
    unit = session.unit(release, math.sqrt(features), factor)
    drawn = session.noise(release, unit, features * (DIGITS + 1))
    share, grid = math.isqrt(unit.bound**2 // features), engine.grid
    places = np.rint(np.clip(center, -_FARTHEST, _FARTHEST) * grid.one).astype(np.int64)
    exact = engine.total(MagnitudeQuery(share, places))
    released = session.release(release, unit, exact, exact + drawn.reshape(exact.shape), factor=factor) / share
    edges = 2.0 ** (np.arange(DIGITS + 1) + magnitude_shift(grid)) / grid.one
    return Magnitudes(released, edges, 0.0 if unit.m is None else 2.0**unit.m / share)


def noisy_squared_norms(session: Session, *, clip: float) -> Floats:
    """Return the SUM over records of each squared feature, plus noise; a record's squares have a total of clip^2.

    A release planned with ``mechanism="laplace"`` is the papers': each square relative to its own declared bound,
    Laplace noise; ``clip`` is then the declared row norm, and is not used.

    Privacy
    -------
    Sensitivity: a record contributes a vector q >= 0 with ||q||_2 <= ||q||_1 <= B, checked in integers. B under
    ``zero_out`` and ``add_remove``; under ``replace_one`` ||q - q'||^2 <= ||q||^2 + ||q'||^2 <= 2 B^2, so
    sqrt(2) B (2 B in L1). The papers' version: p entries in [0, B/p] each, so the sum moves by at most B in L1
    under every relation.
    Mechanism: sum + round(2^m N(0, I)), or discrete Laplace of scale 2^m.
    Event: ``Gaussian`` (``Laplace``) at 2^m / sensitivity >= the planned multiplier. The joint version
    has no factor of p.
    Conditions: none.
    """
    check_square_sums(sparse=session.engine.is_sparse)
    release = session.spend("noisy_squared_norms", clip)
    if release.mechanism == "laplace":
        return _squares_by_coordinate(session, release)
    factor = session.factor if session.uses_l1(release) else session.nonnegative_factor
    unit = session.unit(release, clip * clip, factor)
    p = session.domain.n_features
    drawn = session.noise(release, unit, p)
    per_square = 1.0 / (unit.step * float(session.engine.grid.one) ** 2)  # lattice steps per squared grid unit
    exact = session.engine.total(SquareQuery(np.full(p, per_square), np.full(p, unit.bound), unit.bound))
    return session.release(release, unit, exact, exact + drawn, factor=factor).astype(np.float64) * unit.step


def _squares_by_coordinate(session: Session, release: Release) -> Floats:
    """Return the papers' sums: x_j^2 relative to its declared bound, so p entries in [0, 1] and L1 sensitivity p."""
    unit = session.unit(release, 1.0, 1)
    drawn = session.noise(release, unit, session.domain.n_features)
    squares = np.maximum(np.square(session.domain.feature_bounds), 1e-12)
    cap = unit.bound // squares.size
    scales = cap / (squares * float(session.engine.grid.one) ** 2)
    exact = session.engine.total(SquareQuery(scales, np.full(squares.size, cap), unit.bound))
    released = session.release(release, unit, exact, exact + drawn, norm="l1", factor=1)
    return released * (squares / cap)


def noisy_target_moments(session: Session, *, n: float) -> tuple[float, float]:
    """Return the means of t and of t^2, t the numeric target from the middle of its declared range, over half of it.

    Privacy
    -------
    Sensitivity: a record contributes two integers toward zero from (t b, t^2 b), |t| <= 1, with b the root of
    B^2 / 2 (B / 2 in L1), so a vector of norm at most B; a person's k rows b // k each; a null record 0; a weight
    of at most 1 makes it no longer: B, and
    2 B under ``replace_one`` (loose: sqrt(2) B would do).
    Mechanism: sum + round(2^m N(0, I)), or discrete Laplace of scale 2^m.
    Event: ``Gaussian`` (``Laplace``) at 2^m / sensitivity >= the planned multiplier.
    Conditions: n is public or released; asked before records are recoded.
    """
    if session.admitted_domain is not session.domain or session.domain.target_range is None:
        raise PlanViolation("a numeric target's moments are asked for before records are recoded")
    check_count(n)
    release = session.spend("noisy_target_moments")
    unit = session.unit(release, math.sqrt(2.0))
    drawn = session.noise(release, unit, 2)
    low, high = session.domain.target_range
    unity = unit.bound // 2 if session.uses_l1(release) else math.isqrt(unit.bound**2 // 2)
    exact = session.engine.total(TargetQuery(unity, (low + high) / 2.0, (high - low) / 2.0 or 1.0))
    released = session.release(release, unit, exact, exact + drawn) / (unity * n)
    return float(released[0]), float(released[1])


def _total(values: Floats, entries: Integers) -> int:
    """Return the sum of integers toward zero within +-entries: row by row, then exact."""
    return int(np.trunc(values * entries).astype(np.int64).sum())
