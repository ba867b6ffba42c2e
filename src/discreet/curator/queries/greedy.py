"""A private choice among coordinates: greedy scores on exact sums, an exact choice on integer scores.

Each rule's score is 1/sqrt(M_j)-Lipschitz in the mean gradient entry g_j (GS and GS-s, GS-r: prox and
distance are non-expansive; GS-q: with V = -q, dV/dg = -d* and strong convexity gives V >= M d*^2 / 2, so
|d sqrt(2 V)/dg| = |d*| / sqrt(2 V) <= 1/sqrt(M)). One record moves g_j by at most a C_j / n. Hence every
score moves by at most s = max_j a C_j / (n sqrt(M_j)): ONE common scale, whatever the coordinates' own
(noise in proportion to each coordinate's own sensitivity would not be private).
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.accounting.plan import Release
from discreet.curator.known_answers.coordinates import check_coordinate_kernels
from discreet.curator.lattice.lattice import Unit, unit_for
from discreet.curator.queries.coordinates import check_count, checked, coordinate_query
from discreet.errors import PlanViolation, Unsupported
from discreet.penalties import NoPenalty
from discreet.penalties.base import Penalty, Strength
from discreet.typing import Floats, Integers

if TYPE_CHECKING:
    from discreet.curator.session import Session

RULES = ("gs", "gs-s", "gs-r", "gs-q")
_SLACK = 2  # one step for rounding down, one for double precision: scores stay below 2^48


def _strengths(penalty: Penalty) -> tuple[Strength, Strength]:
    """Return (l1, l2) of a penalty l1 |w| + l2 w^2 / 2. The scores' proof needs both to be at least 0."""
    strengths = penalty.l1_l2
    if strengths is None or not all(np.all((np.asarray(s) >= 0) & np.isfinite(s)) for s in strengths):
        raise Unsupported("greedy selection knows the penalties none, L1, L2 and elastic net")
    return strengths


def scores(rule: str, g: Floats, w: Floats, smoothness: Floats, penalty: Penalty) -> Floats:
    """The rule's score of each coordinate, from the mean gradient of the losses."""
    l1, l2 = _strengths(penalty)
    if rule == "gs":
        return np.abs(g + l2 * w) / np.sqrt(smoothness)
    if rule == "gs-s":
        at_zero = np.maximum(np.abs(g) - l1, 0.0)
        return np.where(w == 0.0, at_zero, np.abs(g + l2 * w + l1 * np.sign(w))) / np.sqrt(smoothness)
    shifted = w - g / smoothness
    landed = np.copysign(np.maximum(np.abs(shifted) - l1 / smoothness, 0.0), shifted) / (1.0 + l2 / smoothness)
    d = landed - w
    if rule == "gs-r":
        return np.sqrt(smoothness) * np.abs(d)
    if rule == "gs-q":
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
    most = min(1 << 24, int((1 << 48) / n))
    for m in range(57, 0, -1):
        step = int((1 << m) * Fraction(epsilon) / 2) - _SLACK
        if step <= most:
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
    clips: Any,
    smoothness: Any,
    n: float,
    rule: str = "gs",
    penalty: Penalty | None = None,
    count: int = 1,
) -> Integers:
    """Return ``count`` different coordinates that a private rule picks one after the other from the same exact sums.

    Privacy
    -------
    Sensitivity: each score is 1/sqrt(M_j)-Lipschitz in the mean clipped gradient entry (above), so one record moves
    every score by at most s = max_j a clip_j / (n sqrt(M_j)); on the lattice of scores by at most S + 2 (rounding
    included).
    Mechanism: exponential with weight exp(score / 2^m), 2 (S + 2) / 2^m <= 1/multiplier; permute-and-flip with the same
    scale for pure budgets; the papers' noisy max where it is sound.
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
        _check_noisy_max(rule, penalty, clips / np.sqrt(smoothness))
        draw = _noisy_max(session, release, sums, unit)
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
        left = np.delete(left, at)
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


def _check_noisy_max(rule: str, penalty: Penalty, scaled: Floats) -> None:
    if rule != "gs" or penalty.strong_convexity > 0 or not np.allclose(scaled, scaled[0], rtol=1e-9):
        raise Unsupported(
            "report-noisy-max with noise inside the rule is private for plain GS with clips in proportion to sqrt(M_j) "
            "and no L2 penalty only: use the default selection"
        )


def _noisy_max(session: Session, release: Release, sums: Integers, unit: Unit) -> Callable[[Integers], int]:
    """The papers' report-noisy-max, noise inside |g_j + chi_j|: plain GS with equal scaled clips only.

    The integer sums all have the bound B, and the scaled clips are equal, so the noise is common: discrete
    Laplace of scale 2^m with 2 a B / 2^m <= 1/multiplier. Fix the other noises: a record moves a coordinate's
    own sum and the others' maximum by at most a B each, so each tail of its noise is shifted by 2 a B.
    """
    m = unit.m
    if m is None:
        return lambda left: int(np.argmax(np.abs(sums[left])))

    def draw(left: Integers) -> int:
        noisy = sums[left] + session.discrete_laplace(left.size, m)
        at = np.array([int(np.argmax(np.abs(noisy)))])
        return int(session.release(release, unit, sums[left], at, norm="linf")[0])

    return draw
