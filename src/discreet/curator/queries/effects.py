"""What intervals for a population's effects need: weighted gradients, curvature, scores' covariance, slopes' size.

All are sums over records at a released point, in recoded coordinates. ``reach`` is a length: a row of length r counts
with the weight min(1, reach / r, slack (reach / r)^2), a function of its features alone. Where the loss has a slope of
at most L, a clip of L reach then cuts nothing off, and an equation of weighted gradients stays centered at the model's
coefficients. Curvatures of at most K add at most K slack reach^2.

Contributions are bounded in the L2 norm, so all four are answered with Gaussian noise: plans with Laplace noise are
refused before they are charged (``session.check_answers_match_prices``).

**Shells**: how many records lie where, by the length of rows and the size of Hessians and scores. They say how large
limits must be before little is cut, and how many rows a limit does cut: so that limits are chosen by the records and
not by a guess, and what they change is reported. The last kind counts rows with a far-out entry by the column that goes
farthest: it tells columns whose effects a few rows decide.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from discreet.curator.engines import DenseEngine, ExactSum, LocalEngine, coefficient_limits, unit_bounds
from discreet.curator.kernels import gradients as kernels
from discreet.curator.kernels.moments import outer_sums
from discreet.curator.known_answers import check_effect_kernels
from discreet.curator.lattice import COEFFICIENT_LIMIT, LARGEST_BOUND, Unit, Weights, place_weights
from discreet.curator.queries.gradients import sum_over_tiles
from discreet.errors import PlanViolation, Unsupported
from discreet.losses.base import Loss
from discreet.typing import Floats, Integers

if TYPE_CHECKING:
    from discreet.accounting.plan import Release
    from discreet.curator.session import Session


_MOST_BOUND = 1 << 40
_TOO_WIDE = "the bound of an outer product must not exceed 2^40"
_LONGEST = 1 << 31
_UNITS = 4096
"""Units whose scores are held at a time."""


@dataclass(frozen=True)
class EffectQuery(ExactSum):
    """Sums at a point: which weights, which loss, on which lattice; ``reach`` in units of the grid, and its slack.

    ``bound`` is B; ``scale`` is lattice steps per unit of what is summed, in units of the grid.
    """

    weights: Weights
    loss: Loss
    bound: int
    scale: float
    reach: float = math.inf
    slack: float = 1.0

    def _facts(self, engine: LocalEngine, limits: Floats) -> tuple[Floats, Integers, float]:
        if not isinstance(engine, DenseEngine):
            raise Unsupported("effects are estimated for dense records")
        facts = np.column_stack([engine.records.targets, engine.weights_within(self.reach, self.slack), limits])
        w = self.weights.integers.astype(np.int64)
        return facts, w if self._several else w[0], self.weights.margin_scale(engine.grid)

    @property
    def _several(self) -> bool:
        return len(self.weights.integers) > 1


@dataclass(frozen=True)
class WeightedGradientQuery(EffectQuery):
    """The sum of weighted gradients c x^T, ||c|| ||x|| <= B; ``scale`` as in ``GradientQuery``."""

    def over(self, engine: LocalEngine) -> Integers:
        """Return the exact sum in lattice steps, (p,) or (K, p)."""
        if not isinstance(engine, DenseEngine):
            raise Unsupported("effects are estimated for dense records")
        if self._several:
            return self._over_rows(engine)
        limits = engine.tiles.limits.of(self.bound, False)
        row_weights = engine.tiled(engine.weights_within(self.reach, self.slack))
        return sum_over_tiles(engine, self.weights, row_weights, limits, self.scale, self.loss)

    def _over_rows(self, engine: DenseEngine) -> Integers:
        limits, w = coefficient_limits(engine.records.norms, engine.records.shares, self.bound), self.weights.integers
        facts = np.column_stack([engine.records.targets, engine.weights_within(self.reach, self.slack), limits])
        point = (w, self.weights.margin_scale(engine.grid), self.scale, False, self.loss)

        def part(first: int, last: int) -> Integers:
            out, cut = np.zeros(w.shape, dtype=np.int64), slice(first, last)
            kernels.gradient_over_rows(engine.rows[cut], facts[cut], np.arange(last - first), *point, out)
            return out

        return engine.workers.sum(part, len(facts), len(facts) * w.size)


@dataclass(frozen=True)
class CurvatureQuery(EffectQuery):
    """The sum of c x x^T with c >= 0 a row's weighted curvature (couplings) and ||c|| ||x||^2 <= B."""

    def over(self, engine: LocalEngine) -> Integers:
        """Return the exact sum in lattice steps, (p, p); for several outputs one such matrix for each pair of them."""
        if self.bound > _MOST_BOUND:
            raise Unsupported(_TOO_WIDE)
        squared = np.square(np.minimum(engine.records.norms, _LONGEST))
        limits = np.where(squared > 0, unit_bounds(self.bound, engine.records) // np.maximum(squared, 1), 0)
        if self._several:  # so that squares of coefficients fit 64 bits
            limits = np.minimum(limits, COEFFICIENT_LIMIT)
        facts, w, margin = self._facts(engine, limits.astype(np.float64))
        rows = engine.records.rows
        assert rows is not None
        if self._several:
            return self._of_pairs(engine, rows, facts, (w, margin, self.scale, self.loss))

        def part(first: int, last: int) -> Integers:
            out, cut = np.zeros((w.size, w.size), dtype=np.int64), slice(first, last)
            coefficients = np.empty(last - first, dtype=np.int64)
            kernels.curvature_coefficients(rows[cut], facts[cut], w, margin, self.scale, self.loss, coefficients)
            outer_sums(rows[cut], coefficients, out)
            return out

        return engine.workers.sum(part, len(rows), rows.size * w.size)

    def _of_pairs(self, engine: LocalEngine, rows: Integers, facts: Floats, point: tuple[Any, ...]) -> Integers:
        (outputs, p), pairs = point[0].shape, math.comb(len(point[0]), 2)

        def part(first: int, last: int) -> Integers:
            out = np.zeros((pairs, p, p), dtype=np.int64)
            for begin in range(first, last, _UNITS):
                cut = slice(begin, min(last, begin + _UNITS))
                coefficients = np.empty((pairs, cut.stop - begin), dtype=np.int64)
                kernels.coupling_coefficients(rows[cut], facts[cut], *point, coefficients)
                for coefficient, total in zip(coefficients, out, strict=True):
                    outer_sums(rows[cut], coefficient, total)
            return out

        return engine.workers.sum(part, len(rows), rows.size * outputs * p)


@dataclass(frozen=True)
class ScoreQuery(EffectQuery):
    """The sum over records (persons) of s s^T, s a unit's whole score, of norm at most the root of B.

    ``scale`` is steps of s per unit of weighted slope times row, in units of the grid. With K outputs s has K p
    entries, output by output.
    """

    def over(self, engine: LocalEngine) -> Integers:
        """Return the exact sum in lattice steps, (K p, K p)."""
        if self.bound > _MOST_BOUND:
            raise Unsupported(_TOO_WIDE)
        records = engine.records
        facts, w, margin = self._facts(engine, np.zeros(records.n_rows))
        assert records.rows is not None
        starts = np.arange(records.n_rows + 1, dtype=np.int64) if records.starts is None else records.starts
        rows, limit = records.rows, math.isqrt(self.bound)
        scores_of = kernels.class_scores if self._several else kernels.unit_scores

        def part(first: int, last: int) -> Integers:
            out = np.zeros((w.size, w.size), dtype=np.int64)
            for begin in range(first, last, _UNITS):
                end = min(last, begin + _UNITS)
                scores, some = np.empty((end - begin, w.size), dtype=np.int32), starts[begin : end + 1]
                scores_of(rows, facts, some, w, margin, self.scale, self.loss, limit, scores)
                outer_sums(scores, np.ones(len(scores), dtype=np.int64), out)
            return out

        return engine.workers.sum(part, len(starts) - 1, rows.size * w.size)


@dataclass(frozen=True)
class SlopeQuery(EffectQuery):
    """The sum of squared slopes (of norms, for several outputs), each at most B, a person's k rows B // k each."""

    def over(self, engine: LocalEngine) -> Integers:
        """Return the exact sum in lattice steps, an array of one number."""
        limits = unit_bounds(self.bound, engine.records) * (engine.records.norms > 0)
        facts, w, margin = self._facts(engine, limits.astype(np.float64))
        rows = engine.records.rows
        assert rows is not None
        total = kernels.squared_slopes_sum if self._several else kernels.squared_slope_sum

        def part(first: int, last: int) -> Integers:
            cut = slice(first, last)
            return np.array([total(rows[cut], facts[cut], w, margin, self.scale, self.loss)])

        return engine.workers.sum(part, len(rows), rows.size)


def noisy_weighted_gradient(session: Session, w: Floats, *, clip: float, reach: float, slack: float = 1.0) -> Floats:
    """Return the SUM of gradients at ``w``, weighted by their rows' lengths, each clipped, plus noise.

    Privacy
    -------
    Sensitivity: as ``noisy_gradient``. A row's weight depends on that row, ``reach`` and ``slack`` alone; it multiplies
    its coefficient c before the executed clip |c| <= B // r, r >= ||x|| (a person's k rows (B // k) // r); a null
    record contributes 0. Several outputs: c is a vector of integers with ||c|| <= B // r, checked in integers, and
    ||c x^T||_F = ||c|| ||x||. B under ``zero_out`` and ``add_remove``, 2 B under ``replace_one``, whatever the weights.
    Rows with room for far-out ones are on a coarse grid, so B is small enough for coefficients of 32 bits to be cut by
    B // r, and not by their own limit (``Grid.largest_bound``): either cut is safe, but only the first is planned.
    Mechanism: sum + round(2^m N(0, I)).
    Event: ``Gaussian`` at 2^m / sensitivity >= the planned multiplier.
    Conditions: w, clip, reach and slack depend on public and released values only.
    """
    release, unit, weights = spend(session, "noisy_weighted_gradient", w, clip, reach, session.factor)
    drawn = session.noise(release, unit, w.size)
    query = WeightedGradientQuery(weights, session.loss, unit.bound, *_scaled(session, unit, reach, 1), slack)
    exact = session.engine.total(query)
    released = session.release(release, unit, exact, exact + drawn.reshape(exact.shape)) * unit.step
    return np.ascontiguousarray(released.T, dtype=np.float64).reshape(w.shape)


def noisy_curvature(session: Session, w: Floats, *, clip: float, reach: float, slack: float = 1.0) -> Floats:
    """Return the SUM of the weighted losses' Hessians at ``w``, symmetric, each within a Frobenius norm of ``clip``.

    For K outputs one matrix A_kl for each pair k < l, (K (K - 1) / 2, p, p): the Hessian is the sum of
    (e_k - e_l) (e_k - e_l)^T (x) A_kl (``losses.base``), and ``clip`` bounds a record's matrices together.

    Privacy
    -------
    Sensitivity: a record contributes c x x^T with an integer 0 <= c <= B // r^2, r >= ||x||, checked in integers,
    whatever the loss returns, and ||x x^T||_F = ||x||^2; a person's k rows B // k each; a null record 0. So B under
    ``zero_out`` and ``add_remove``. Under ``replace_one`` contributions P and Q are positive semidefinite, so
    <P, Q> >= 0 and ||P - Q||^2 <= ||P||^2 + ||Q||^2 <= 2 B^2: sqrt(2) B.
    Several outputs: a record contributes c_e x x^T for each pair e, integers c_e >= 0 with ||c|| <= B // r^2, checked
    in integers: sum_e ||c_e x x^T||^2 = ||c||^2 ||x||^4 <= B^2, and <P, Q> = sum_e c_e c'_e (x.x')^2 >= 0. The same.
    Mechanism: sum + round(2^m N(0, I)) with p^2 independent entries (for each pair); making the noisy matrix symmetric
    is post-processing. The sum is exact (``kernels/moments.py``).
    Event: ``Gaussian`` at 2^m / sensitivity >= the planned multiplier.
    Conditions: w, clip, reach and slack depend on public and released values only.
    """
    release, unit, weights = spend(session, "noisy_curvature", w, clip, reach, session.nonnegative_factor)
    pairs = 1 if w.ndim == 1 else math.comb(w.shape[1], 2)
    drawn = session.noise(release, unit, pairs * len(w) ** 2)
    query = CurvatureQuery(weights, session.loss, unit.bound, *_scaled(session, unit, reach, 2), slack)
    return _symmetric(session, release, unit, session.engine.total(query), drawn)


def noisy_score_covariance(session: Session, w: Floats, *, clip: float, reach: float, slack: float = 1.0) -> Floats:
    """Return the SUM over records (persons) of s s^T, s the weighted gradient at ``w``, within a norm of ``clip``.

    For K outputs s has K p entries, output by output; the proof is the same.

    Privacy
    -------
    Sensitivity: a record (a person, whose k rows are added up first, a k-th each) contributes s s^T with an integer
    vector s of norm at most b, b^2 <= B, checked in integers; ||s s^T||_F = ||s||^2 <= B; a null record has s = 0. So
    B under ``zero_out`` and ``add_remove``, and sqrt(2) B under ``replace_one``, as s s^T is positive semidefinite
    (``noisy_curvature``).
    Mechanism: sum + round(2^m N(0, I)) with p^2 independent entries; making the noisy matrix symmetric is
    post-processing. Entries of s s^T are integers of at most B <= 2^40, so sums are exact (``kernels/moments.py``).
    Event: ``Gaussian`` at 2^m / sensitivity >= the planned multiplier.
    Conditions: w, clip, reach and slack depend on public and released values only. ``clip`` bounds ||s||^2.
    """
    release, unit, weights = spend(session, "noisy_score_covariance", w, clip, reach, session.nonnegative_factor)
    drawn = session.noise(release, unit, w.size**2)
    scale = math.isqrt(unit.bound) / (math.sqrt(clip) * session.engine.grid.one)
    query = ScoreQuery(weights, session.loss, unit.bound, scale, reach * session.engine.grid.one, slack)
    whole = unit.bound / math.isqrt(unit.bound) ** 2
    return _symmetric(session, release, unit, session.engine.total(query), drawn) * whole


def noisy_squared_slopes(session: Session, w: Floats, *, clip: float) -> float:
    """Return the SUM of squared slopes of the loss at ``w``, each at most ``clip``, plus noise: a residual's scale.

    Privacy
    -------
    Sensitivity: a record contributes an integer from 0 to B, a person's k rows from 0 to B // k each, a null record 0.
    Two numbers in [0, B] are at most B apart: B under every relation.
    Mechanism: sum + round(2^m N(0, 1)).
    Event: ``Gaussian`` at 2^m / B >= the planned multiplier.
    Conditions: w and clip depend on public and released values only.
    """
    release, unit, weights = spend(session, "noisy_squared_slopes", w, clip, math.inf, 1)
    drawn = session.noise(release, unit, 1)
    exact = session.engine.total(SlopeQuery(weights, session.loss, unit.bound, 1.0 / unit.step))
    return float(session.release(release, unit, exact, exact + drawn, factor=1)[0]) * unit.step


def spend(
    session: Session, query: str, w: Floats, clip: float, reach: float, factor: int | Fraction
) -> tuple[Release, Unit, Weights]:
    """Check what is asked, spend, and return the release, its lattice, and the weights on theirs."""
    if w.shape != session.domain.shape:
        raise PlanViolation(f"weights must have shape {session.domain.shape}")
    if w.ndim != 1 and query != "noisy_weighted_gradient" and not session.loss.softmax_link:
        raise Unsupported("curvatures and scores of several outputs are estimated for the softmax loss")
    if session.engine.is_sparse:
        raise Unsupported("effects are estimated of dense records")
    if not reach > 0:
        raise PlanViolation("reach is a length: give a positive number")
    check_effect_kernels(session.loss)
    release, grid = session.spend(query, clip), session.engine.grid
    largest = grid.largest_bound if query == "noisy_weighted_gradient" else LARGEST_BOUND
    return release, session.unit(release, clip, factor, largest), place_weights(w, grid)


def _scaled(session: Session, unit: Unit, reach: float, power: int) -> tuple[float, float]:
    """Return lattice steps per unit of the grid (squared), and the reach in units of the grid."""
    unity = float(session.engine.grid.one)
    return 1.0 / (unit.step * unity**power), reach * unity


def _symmetric(session: Session, release: Release, unit: Unit, exact: Integers, drawn: Integers) -> Floats:
    noisy = exact + drawn.reshape(exact.shape)
    whole = session.release(release, unit, exact, noisy, factor=session.nonnegative_factor) * unit.step
    return np.asarray(whole + np.swapaxes(whole, -1, -2)) / 2.0


KINDS = 4
"""Lengths, Hessians, scores, columns: a row is in one shell of each that is asked for."""
MOST_EDGES = 256


class Edges(NamedTuple):
    """Ends of shells, increasing, one array for each kind: of a row's length, weighted Hessian, score, largest entry.

    Parameters
    ----------
    lengths, hessians, scores : ndarray
        Edges; with k of them there are k + 1 shells, and with none no record is counted.
    columns : ndarray
        One edge for each column of the rows, or none: rows with no entry beyond its column's edge are in the first
        shell, others in that of the column whose edge they exceed most.
    """

    lengths: Floats
    hessians: Floats
    scores: Floats
    columns: Floats

    @property
    def shells(self) -> list[int]:
        """How many shells each kind has; none without edges."""
        return [len(some) + 1 if len(some) else 0 for some in self]


class Shells(NamedTuple):
    """Noisy counts of records in each shell, and the standard deviation of each count's noise: a public number.

    Parameters
    ----------
    lengths, hessians, scores : ndarray
        Counts from the innermost shell on.
    columns : ndarray
        Counts of rows without a far-out entry, and of others column by column.
    noise : float
        Standard deviation of each.
    """

    lengths: Floats
    hessians: Floats
    scores: Floats
    columns: Floats
    noise: float


@dataclass(frozen=True)
class ShellQuery(EffectQuery):
    """Counts of rows by shells at a point; ``bound`` is what a record adds to each of its shells."""

    edges: Edges = field(default_factory=lambda: Edges(*(np.empty(0) for _ in range(KINDS))))

    def over(self, engine: LocalEngine) -> Integers:
        """Return how many times ``bound`` is in each shell, the kinds after one another."""
        counted = unit_bounds(self.bound, engine.records) * (engine.records.norms > 0)
        facts, w, margin = self._facts(engine, counted.astype(np.float64))
        rows = engine.records.rows
        assert rows is not None
        measured = np.empty((len(rows), 2))
        measure = kernels.class_slopes_and_curvatures if self._several else kernels.slopes_and_curvatures
        measure(rows, facts, w, margin, self.loss, measured)
        lengths = engine.records.norms / self.scale
        weights = engine.weights_within(self.reach, self.slack) / engine.parts
        slopes, bends = measured.T
        values = (lengths, weights * bends * np.square(lengths), weights * slopes * lengths)
        places = [np.searchsorted(edges, value) for edges, value in zip(self.edges[:-1], values, strict=True)]
        parts = []
        for place, shells in zip([*places, self._farthest(rows)], self.edges.shells, strict=True):
            parts.append(np.zeros(shells, dtype=np.int64))
            if shells:
                np.add.at(parts[-1], place, counted)
        return np.concatenate(parts)

    def _farthest(self, rows: Integers) -> Integers:
        """Return the column in which each row goes farthest, in its edges, from 1 on; 0 where none is beyond one."""
        places = np.zeros(len(rows), dtype=np.int64)
        for begin in range(0, len(rows) if len(self.edges.columns) else 0, _UNITS):
            sizes = np.abs(rows[begin : begin + _UNITS] / (self.scale * self.edges.columns))
            places[begin : begin + _UNITS] = np.where(sizes.max(axis=1) > 1, sizes.argmax(axis=1) + 1, 0)
        return places


def noisy_shells(session: Session, w: Floats, *, edges: Edges, reach: float, slack: float = 1.0) -> Shells:
    """Return how many records are in each shell at ``w``; Hessians and scores are weighted by ``reach``.

    Privacy
    -------
    Sensitivity: a row adds the integer b to one shell of each of the m kinds that have edges, whatever its numbers are
    (NaN is in the last shell; of several columns in which a row goes as far the first counts), so the norm of what it
    adds is b sqrt(m); with b = isqrt(B^2 // m), at most B. Each of a person's k rows adds b // k to its shells, so that
    the sum of k such vectors is no longer than one of b. A null record adds 0. So B under ``zero_out`` and
    ``add_remove``. Under ``replace_one`` no entry is negative, so ||q - q'||^2 <= ||q||^2 + ||q'||^2 <= 2 B^2:
    sqrt(2) B.
    Mechanism: sum + round(2^m N(0, I)). Sums of integers are exact.
    Event: ``Gaussian`` at 2^m / sensitivity >= the planned multiplier.
    Conditions: w, edges, reach and slack depend on public and released values only.
    """
    if any(len(some) > MOST_EDGES or not np.all(np.diff(some) > 0) for some in edges[:-1]):
        raise PlanViolation(f"edges of shells increase, and are at most {MOST_EDGES} of a kind")
    if len(edges.columns) not in (0, session.domain.n_features) or not np.all(edges.columns > 0):
        raise PlanViolation("each column of the rows has one positive edge, or none has")
    kinds = sum(len(some) > 0 for some in edges)
    if not kinds:
        raise PlanViolation("shells need edges of at least one kind")
    release, unit, weights = spend(session, "noisy_shells", w, math.sqrt(kinds), reach, session.nonnegative_factor)
    share = math.isqrt(unit.bound**2 // kinds)
    sizes = edges.shells
    drawn = session.noise(release, unit, sum(sizes))
    grid = float(session.engine.grid.one)
    query = ShellQuery(weights, session.loss, share, grid, reach * grid, slack, edges)
    exact = session.engine.total(query)
    released = session.release(release, unit, exact, exact + drawn, factor=session.nonnegative_factor) / share
    spread = 0.0 if unit.m is None else 2.0**unit.m / share
    lengths, hessians, scores, columns = np.split(released, np.cumsum(sizes)[:-1])
    return Shells(lengths, hessians, scores, columns, spread)
