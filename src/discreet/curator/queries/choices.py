"""Private choices among coordinates and among points, and noisy scores of points.

**Coordinates.** Each rule's score is 1/sqrt(M_j)-Lipschitz in the mean gradient entry g_j (GS and GS-s, GS-r: prox and
distance are non-expansive; GS-q: with V = -q, dV/dg = -d* and strong convexity gives V >= M d*^2 / 2, so
|d sqrt(2 V)/dg| = |d*| / sqrt(2 V) <= 1/sqrt(M)). One record moves g_j by at most a C_j / n. Hence every
score moves by at most s = max_j a C_j / (n sqrt(M_j)): ONE common scale, whatever the coordinates' own
(noise in proportion to each coordinate's own sensitivity would not be private).

**Candidates.** A record adds an integer in [0, B] to the score of each candidate, so one record more moves the
*differences* of scores within an interval of length B (every difference of two numbers in [0, B], less a common shift),
and an exchange within 2 B. ``exponential_choice`` with weight exp(-score / 2^m) is then of bounded range a B / 2^m.
The 0/1 loss is such a loss, within [0, 1] as it is: a record adds B where a candidate predicts the wrong class and 0
where it predicts the right one. With loss_bound = 1 a score is B times the number of errors, whose sensitivity is 1.

**Scores.** A record is *bad* by a number in [0, 1]: 1 for a wrong class and 0 for the right one; for numbers the
squared error over that of a declared error, at most 1. The score is the sum over records of 1/2 - bad. Centering halves
what one record can do under ``zero_out`` and ``add_remove``, since a null record counts 0. On the lattice
a row's limit is L = B (B // k for one of a person's k rows, 0 for a null row), its badness an integer v in [0, L], and
it adds L - 2 v, within +-L. Both the sum of L and that of v come from the engines' sums of clipped losses, the first as
the badness of a score for which every record is bad.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from discreet.accounting.plan import Release
from discreet.curator.engines import DenseEngine, ExactSum, LocalEngine, SparseEngine, unit_bounds
from discreet.curator.kernels import gradients as kernels
from discreet.curator.known_answers import check_coordinate_kernels, check_value_kernels
from discreet.curator.lattice import Unit, Weights, place_weights, unit_for
from discreet.curator.queries.gradients import check_count, checked, coordinate_query
from discreet.errors import PlanViolation, Unsupported
from discreet.losses.base import LEAST_LOG, Loss, Valued, least, nothing, value, values
from discreet.losses.sigmoid import exp
from discreet.penalties import NoPenalty
from discreet.penalties.base import Penalty, Strength
from discreet.typing import Floats, Integers

if TYPE_CHECKING:
    from discreet.curator.session import Session


RULES = ("gs", "gs-s", "gs-r", "gs-q")
_LARGEST_OFFSET = 2.0**60  # sums of the lattice stay below 2^62
_SLACK = 2  # one step for rounding down, one for double precision: scores stay below 2^48


def _strengths(penalty: Penalty) -> tuple[Strength, Strength]:
    """Return (l1, l2) of a penalty l1 |w| + l2 w^2 / 2. The scores' proof needs both to be at least 0."""
    strengths = penalty.l1_l2
    if strengths is None or not all(map(_is_strength, strengths)):
        raise Unsupported("greedy selection knows the penalties none, L1, L2 and elastic net")
    return strengths


def _is_strength(strength: Strength) -> bool:
    if isinstance(strength, float):
        return 0.0 <= strength < math.inf
    return bool(np.all((np.asarray(strength) >= 0) & np.isfinite(strength)))


def scores(rule: str, g: Floats, w: Floats, smoothness: Floats, penalty: Penalty) -> Floats:
    """The rule's score of each coordinate, from the mean gradient of the losses."""
    l1, l2 = _strengths(penalty)
    if rule == "gs":
        return np.abs(g + l2 * w) / np.sqrt(smoothness)
    if rule == "gs-s":
        at_zero = np.maximum(np.abs(g) - l1, 0.0)
        return np.where(w == 0.0, at_zero, np.abs(g + l2 * w + l1 * np.sign(w))) / np.sqrt(smoothness)
    shifted, is_smooth = w - g / smoothness, not np.any(l1)
    soft = shifted if is_smooth else np.copysign(np.maximum(np.abs(shifted) - l1 / smoothness, 0.0), shifted)
    landed = soft / (1.0 + l2 / smoothness)
    d = landed - w
    if rule == "gs-r":
        return np.sqrt(smoothness) * np.abs(d)
    if rule == "gs-q":
        if is_smooth:  # most often: what _decrease is then, to the last bit
            return np.sqrt(2.0 * (0.5 * (smoothness + l2) * d * d))
        return np.sqrt(2.0 * _decrease(g, w, landed, d, smoothness, l1, l2))
    raise Unsupported(f"rule must be one of {', '.join(RULES)}")


def _decrease(
    g: Floats, w: Floats, landed: Floats, d: Floats, smoothness: Floats, l1: Strength, l2: Strength
) -> Floats:
    """-q_j as a sum of non-negative terms (no cancellation): (M + l2) d^2 / 2 + the l1 part's Bregman distance.

    At the minimizer g + M d + l2 (w + d) + xi = 0 with xi in l1 d|.|(w + d), so
    -q = (M + l2) d^2 / 2 + [l1 |w| - l1 |w + d| + xi d]; the bracket is 0 where w + d keeps the sign of w,
    2 l1 |w| where it flips, and |w| (l1 - xi sign w) where it stops at 0.
    """
    xi = -(g + smoothness * d + l2 * landed)
    stopped = np.abs(w) * np.maximum(l1 - np.clip(xi, -l1, l1) * np.sign(w), 0.0)
    bregman = np.where(landed == 0.0, stopped, np.where(landed * w < 0.0, 2.0 * l1 * np.abs(w), 0.0))
    return 0.5 * (smoothness + l2) * d * d + bregman


def _largest_offset(w: Floats, smoothness: Floats, penalty: Penalty) -> float:
    """What the penalty and the weights, which are public, can add to a score beyond the gradient's part."""
    l1, l2 = _strengths(penalty)
    sizes = np.abs(w)
    parts = (l1 + l2 * sizes) / np.sqrt(smoothness) + np.sqrt(smoothness + l2) * sizes + 2.0 * np.sqrt(l1 * sizes)
    return float(parts.max())


def score_lattice(epsilon: float, n: float) -> tuple[int, int]:
    """(S, m): one record moves an integer score by at most S + 2, and 2 (S + 2) / 2^m <= epsilon.

    ``n`` bounds a score in units of the sensitivity. S is so small that integer scores stay below 2^48, where
    double precision errs by far less than one step.
    """
    return _score_lattice(epsilon, min(1 << 24, int((1 << 48) / n)))


@lru_cache(maxsize=64)
def _score_lattice(epsilon: float, most: int) -> tuple[int, int]:
    """Return (S, m) with S at most ``most``: the same for every choice of a plan."""
    above = math.frexp(2.0 * (most + _SLACK + 1) / epsilon)[1]  # 2^above is more than the largest 2^m, rounded or not
    for m in range(max(1, min(57, above)), 0, -1):
        step = int((1 << m) * Fraction(epsilon) / 2) - _SLACK
        if step <= most or m == 1:  # more than the finest noise costs is not needed
            step = min(step, most)
            if step < 1 << 8:
                break
            return step, m
    raise Unsupported(
        "the selection's share of the budget is beyond the lattice's range: raise it, or take fewer steps"
    )


def select_coordinate(
    session: Session,
    w: Floats,
    *,
    clips: ArrayLike,
    smoothness: ArrayLike,
    n: float,
    rule: str = "gs",
    penalty: Penalty | None = None,
    count: int = 1,
) -> Integers:
    """Return the coordinate with (nearly) the best greedy score at ``w``: a private argmax; ``count``, in turn.

    Privacy
    -------
    Sensitivity: each score is 1/sqrt(M_j)-Lipschitz in the mean clipped gradient entry (above), so one record moves
    every score by at most s = max_j a clip_j / (n sqrt(M_j)); on the lattice of scores by at most S + 2 (rounding
    included).
    Mechanism: exponential with weight exp(score / 2^m), 2 (S + 2) / 2^m <= 1/multiplier; permute-and-flip with the same
    scale for pure budgets; the papers' noisy max where it is sound (``_noisy_max``).
    Event: ``BoundedRange`` (``PureDP``) of 1/multiplier, once for each coordinate picked.
    Conditions: w, clips, smoothness and n are public or released; one common scale for all coordinates.
    """
    columns, clips = checked(session, w, np.arange(w.size), clips)
    smoothness, penalty = np.asarray(smoothness, dtype=np.float64), NoPenalty() if penalty is None else penalty
    if rule not in RULES:
        raise PlanViolation(f"rule must be one of {', '.join(RULES)}")
    usable = bool(((smoothness > 1e-100) & (smoothness < 1e100)).all())
    if not (smoothness.shape == clips.shape == w.shape and usable and 1 <= count <= w.size):
        raise PlanViolation(
            "a selection needs a clip and a positive, finite smoothness for every coordinate, and enough of them"
        )
    check_count(n)
    check_coordinate_kernels(session.loss, penalty, sparse=session.engine.is_sparse)
    release = session.spend("select_coordinate", count=count)
    # noisy max adds noise of scale 2^m to the sums themselves, which may move apart by twice their sensitivity
    inside = release.mechanism == "noisy_max"
    unit = unit_for(
        session.multiplier(release) if inside else 0.0, 2 * session.factor, 1.0, session.largest_n_of_choices
    )
    steps, bounds = clips / unit.bound, np.full(w.size, unit.bound)
    sums = session.engine.total(coordinate_query(session, w, columns, steps, bounds))
    if inside:
        _check_noisy_max(rule, clips / np.sqrt(smoothness))
        draw = _noisy_max(session, release, sums, _public_offsets(w, steps, n, penalty), unit)
    else:
        values = scores(rule, sums * steps / n, w, smoothness, penalty)
        sensitivity = session.factor * float(np.max(clips / np.sqrt(smoothness))) / n
        largest = session.largest_n_of_choices + _largest_offset(w, smoothness, penalty) / sensitivity
        draw = _weighted(session, release, values, sensitivity, largest)
    left = columns
    chosen = []
    for _ in range(count):
        at = draw(left)
        chosen.append(int(left[at]))
        left = np.delete(left, at) if count > 1 else left
    return np.array(chosen)


def _weighted(
    session: Session, release: Release, values: Floats, sensitivity: float, largest: float
) -> Callable[[Integers], int]:
    """Draw among the coordinates that are left, by the exponential mechanism or permute-and-flip."""
    multiplier = session.multiplier(release)
    if multiplier == 0:
        return lambda left: int(np.argmax(values[left]))
    step, m = score_lattice(1.0 / multiplier, largest)
    exact = np.floor(values * (step / sensitivity)).astype(np.int64)
    unit = Unit(step + _SLACK, m, sensitivity / step)
    flips = release.mechanism == "permute_and_flip"

    def draw(left: Integers) -> int:
        at = np.array([session.choice(exact[left], m, permute_and_flip=flips)])
        return int(session.release(release, unit, exact[left], at, norm="linf", factor=1)[0])

    return draw


def _check_noisy_max(rule: str, scaled: Floats) -> None:
    if rule != "gs" or not float(np.abs(scaled - scaled[0]).max()) <= 1e-9 * float(scaled[0]):
        raise Unsupported(
            "report-noisy-max with noise inside the rule is private for plain GS with clips in proportion to sqrt(M_j) "
            "only: use the default selection"
        )


def _public_offsets(w: Floats, steps: Floats, n: float, penalty: Penalty) -> Integers:
    """Return n l2 w_j in the lattice steps of each coordinate's sum: the L2 penalty's part of n times the gradient."""
    _, l2 = _strengths(penalty)
    return np.rint(np.clip(n * l2 * w / steps, -_LARGEST_OFFSET, _LARGEST_OFFSET)).astype(np.int64)


def _noisy_max(
    session: Session, release: Release, sums: Integers, offsets: Integers, unit: Unit
) -> Callable[[Integers], int]:
    """Choose by the papers' report-noisy-max, noise inside |g_j + l2 w_j + chi_j|: plain GS, equal scaled clips only.

    With equal scaled clips, comparing |g_j + l2 w_j| / sqrt(M_j) is comparing |S_j + o_j|, S_j the integer sums, which
    all have the bound B, and o_j = n l2 w_j in their steps. The noise is common: discrete Laplace of scale 2^m with
    2 a B / 2^m <= 1/multiplier.

    Proof. w, n, l2 and the steps are public or released, so neighbors have the same o_j, and S_j + o_j moves by as much
    as S_j, at most a B. Fix the noises of all coordinates but j, and let t be the largest |S_i + o_i + chi_i| of those.
    j is chosen where chi_j lies in the upper tail from t - (S_j + o_j) or in the lower one from -t - (S_j + o_j). For a
    neighbor t moves by at most a B, so each threshold moves by at most 2 a B and each tail's probability by a factor of
    at most exp(2 a B / 2^m). The two tails are disjoint, or they are everything: in both cases the probability of their
    union is at least exp(-2 a B / 2^m) times the sum, hence the union, of the neighbor's. Ties go by the index.
    """
    m = unit.m
    shifted = sums + offsets
    if m is None:
        return lambda left: int(np.argmax(np.abs(shifted[left])))

    def draw(left: Integers) -> int:
        noisy = shifted[left] + session.discrete_laplace(left.size, m)
        at = np.array([int(np.argmax(np.abs(noisy)))])
        return int(session.release(release, unit, shifted[left], at, norm="linf")[0])

    return draw


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
        point = (w, np.array([point.margin_scale(engine.grid) for point in self.points]), self.loss)
        scales = engine.weights * self.scale
        limits = np.where(records.norms > 0, unit_bounds(self.bound, records), 0).astype(np.int64)
        if isinstance(engine, DenseEngine) and w.shape[1] == 1:
            return self._over_tiles(engine, engine.tiled(scales), engine.tiled(limits), (w[:, 0], *point[1:]))
        facts = (records.targets, scales, limits)

        def part(first: int, last: int) -> Integers:
            out = np.zeros(len(w), dtype=np.int64)
            if isinstance(engine, SparseEngine):
                kernels.values_over_sparse_rows(*engine.rows, *facts, first, last, *point, out)
            else:
                kernels.values_over_rows(records.rows, *facts, first, last, *point, out)
            return out

        work = len(w) * engine.rows[2].size if isinstance(engine, SparseEngine) else records.n_rows * w.size
        return engine.workers.sum(part, records.n_rows, work)

    def _over_tiles(self, engine: DenseEngine, scales: Floats, limits: Integers, point: tuple[Any, ...]) -> Integers:
        tiles = engine.tiles

        def part(first: int, last: int) -> Integers:
            out, cut = np.zeros(len(self.points), dtype=np.int64), slice(first, last)
            kernels.values_over_tiles(tiles.cells[cut], tiles.targets[cut], scales[cut], limits[cut], *point, out)
            return out

        return engine.workers.sum(part, len(tiles.cells), engine.records.n_rows * point[0].size)


QUERY = "noisy_score"


class WrongSign(NamedTuple):
    """Badness of a classifier of two classes, -1 and 1: 1 for the wrong one, and never below ``floor``."""

    floor: float
    n_outputs: int = 1


class WrongClass(NamedTuple):
    """Badness of a classifier of several: 1 where the predicted class is not the target, and never below ``floor``."""

    floor: float
    n_outputs: int


class ClippedError(NamedTuple):
    """Badness of a regression: min(1, (prediction - target)^2 / bound^2), and never below ``floor``.

    ``limit`` is 0 where the margin is the prediction, else that of a Poisson loss, whose prediction is exp(margin).
    """

    floor: float
    bound: float
    limit: float
    n_outputs: int = 1


Score = WrongSign | WrongClass | ClippedError


@value.of(WrongSign)
def _wrong_sign(score, margin, target):  # type: ignore[no-untyped-def]
    predicted = 1.0 if margin > 0.0 else -1.0
    return score.floor if predicted == target else 1.0


@values.of(WrongClass)
def _wrong_class(score, margins, target):  # type: ignore[no-untyped-def]
    top = 0
    for k in range(1, margins.shape[0]):
        if margins[k] > margins[top]:
            top = k
    return score.floor if top == target else 1.0


@value.of(ClippedError)
def _error(score, margin, target):  # type: ignore[no-untyped-def]
    prediction = margin
    if score.limit > 0.0:
        prediction = exp(min(max(margin, LEAST_LOG), score.limit))
    share = (prediction - target) / score.bound
    bad = share * share
    return max(score.floor, bad if bad < 1.0 else 1.0)


def _of_one(score, margins, target):  # type: ignore[no-untyped-def]
    return value(score, margins[0], target)


values.of(WrongSign)(_of_one)
values.of(ClippedError)(_of_one)
least.of(WrongSign)(nothing)
least.of(WrongClass)(nothing)
least.of(ClippedError)(nothing)


def score_of(loss: Loss, error: float, floor: float = 0.0) -> Score:
    """The score that belongs to a loss; ``error`` is the error that counts as wholly bad, in training coordinates."""
    if loss.task == "classification":
        return WrongSign(floor) if loss.n_outputs == 1 else WrongClass(floor, loss.n_outputs)
    if not (math.isfinite(error) and error > 0):
        raise PlanViolation("the error that counts as wholly bad must be positive and finite: declare a target range")
    return ClippedError(floor, float(error), loss.prediction_limit if loss.log_link else 0.0)


def noisy_score(session: Session, w: Floats, *, error: float = 1.0) -> float:
    """Return how well ``w`` predicts: the SUM over records of 1/2 - bad, plus noise; bad is 1 for a wrong class.

    For numeric targets bad is the squared error over ``error`` squared, at most 1, in training coordinates.

    Privacy
    -------
    Sensitivity: a record adds an integer within +-B lattice steps (1/2 in real units; above), a null record 0, a
    person's k rows +-(B // k) each: B, 2 B under ``replace_one``.
    Mechanism: sum + round(2^m N(0, 1)), or discrete Laplace of scale 2^m.
    Event: ``Gaussian`` (``Laplace``) at 2^m / sensitivity >= the planned multiplier.
    Conditions: w and error are public or released; here the model was fitted on other records, so that both may cost
    the whole budget of a run (``records/derived.py``).
    """
    if w.shape != session.domain.shape:
        raise PlanViolation(f"weights must have shape {session.domain.shape}")
    bad = score_of(session.loss, error)
    check_value_kernels(bad, sparse=session.engine.is_sparse)
    point = place_weights(w, session.engine.grid)
    release = session.spend(QUERY)
    unit = session.unit(release, 0.5)
    drawn = session.noise(release, unit, 1)
    limits, badness = (
        session.engine.total(ValueQuery((point,), score, unit.bound, float(unit.bound)))
        for score in (bad._replace(floor=1.0), bad)
    )
    exact = limits - 2 * badness
    return float(session.release(release, unit, exact, exact + drawn)[0] * unit.step)


def scored_by(score: str, loss: Loss) -> Valued:
    """Return what candidates are compared by: the loss itself, or whether the predicted class is wrong."""
    if score not in ("loss", "zero_one") or (score == "zero_one" and loss.task != "classification"):
        raise PlanViolation("score must be loss, or zero_one where targets are classes")
    return score_of(loss, 1.0) if score == "zero_one" else loss


def select_candidate(
    session: Session,
    points: ArrayLike,
    *,
    loss_bound: float,
    offsets: ArrayLike | None = None,
    rho: float | None = None,
    score: str = "loss",
) -> int:
    """Return the index of the point with (nearly) the least sum of losses, each clipped to [0, loss_bound].

    ``offsets`` are public numbers added to the sums, such as n times the penalty at each point. Under an adaptive plan
    ``rho`` is what the answer may cost. ``score="zero_one"`` counts wrong classes in place of losses.

    Privacy
    -------
    Sensitivity: a record adds an integer in [0, B] to each score (a person's k rows B // k each, a null record 0), so
    *differences* of scores move within a range of B, 2 B under ``replace_one`` (above). The clip is in integers, after
    the kernel, so this holds for the 0/1 loss too.
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
    scored = scored_by(score, session.loss)
    check_value_kernels(scored, sparse=session.engine.is_sparse)
    release = session.spend("select_candidate", loss_bound, rho=rho)
    unit = unit_for(session.multiplier(release), session.factor, loss_bound, session.largest_n_of_choices)
    placed = tuple(place_weights(point, session.engine.grid) for point in points)
    query = ValueQuery(placed, scored, unit.bound, 1 / unit.step)
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
