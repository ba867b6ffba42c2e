"""What a solver's name stands for: one table of settings, a line each with its reason, and the compositions they make.

Public facts in, a solver out; no record is looked at. Steps, clips and regularization are those of least predicted
excess (``prediction``), but where a line of the table was measured to be no worse: of labels in whitened coordinates,
of svrg's epochs and of greedy steps. What is found is shrunk by what is noise in it (``shrinkage``). The signal
N = n mu / a and its powers of p are ``signal``'s. ``python -m benchmarks tuned`` measures these settings against tuned
ones.

Where the second moment can be estimated, the penalty is L2 or none and the target can be moved, gradient methods run in
whitened coordinates; with less signal in declared ones with a large constant; sparse and very wide records in rows of
measured length. Coordinate steps are as long as their column is narrow: where there is signal, centers and scales are
estimated first. One-shot methods want rows of length 1 whose columns are alike: standardized ones. Pure budgets, losses
whose target cannot be moved and other penalties have plain declared coordinates.

``typical row norm``: rho^2 = 0.4^2 sum of squared feature bounds + the intercept's constant^2, or the declared row norm
where that is smaller. The worst case, every value at its bound, does not occur in tables of people, and steps and clips
made for it starve. A clip is a typical slope times rho, a step 1 / (typical curvature rho^2). Privacy does not depend
on rho: the clip is executed. Without noise nothing is clipped, constants are the worst case's, and many steps reach the
optimum.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from scipy.special import lambertw

from discreet.bounds import Domain
from discreet.budget import Budget
from discreet.errors import Unsupported
from discreet.losses.base import Loss, gradient_smoothness, slope_at_zero, value
from discreet.penalties.base import Penalty
from discreet.solvers.base import Solver
from discreet.solvers.coordinates import TYPICAL_ROW, Preconditioned, is_wide, largest_curvature
from discreet.solvers.prediction import (
    EFFECTS,
    RARE,
    Best,
    Problem,
    Rows,
    Shot,
    Steps,
    best_shot,
    best_steps,
    spectrum,
)
from discreet.solvers.signal import PRIVATE_N, Signal
from discreet.typing import Floats

if TYPE_CHECKING:
    from discreet.solvers.cd import CoordinateDescent
    from discreet.solvers.gcd import GreedyCoordinateDescent
    from discreet.solvers.gd import GradientDescent
    from discreet.solvers.output import OneShot

P = TypeVar("P", bound="OneShot")
Rule = float | Callable[[Signal], float]

LARGEST = 100.0
"""The radius of the ball that steps stay in: margins of a hundred are certain of everything."""
LIMIT_STEPS = 5000
"""Steps without noise, with restarts."""
LIMIT_LOSS = 1e3
"""Beyond any loss on the way to an optimum."""
LIMIT_STRENGTH = 1e-9
"""Without noise any strong convexity will do."""
LIMIT_MARGIN = 16.0
"""Without noise: the largest margin on the way to an optimum of an unbounded loss."""
TYPICAL_RMS = 0.4
"""A feature within +-1 has a root mean square of 0.58 if uniform, of about 0.3 if one-hot or skewed."""
STEEP = 1.6
"""How much steeper than typical rows the mean of features is that are not centered: residuals grow along it."""
TYPICAL_LENGTH = 25.0
"""How long a good model's coefficients are, over 1 / rho."""
TYPICAL_SLOPE = 0.8
"""Clip in units of |f'(0)| and a typical row's length, where that length was estimated."""
COUNTS_WIDEN = 250.0
"""The signal per row from which clips of counts, two typical slopes, are wider: counts are skewed, and a clip cuts what
is rare and large."""
BATCH = 1024
"""The usual batch of svrg in declared coordinates."""


@dataclass(frozen=True)
class Setting:
    """A setting: its rule, another one for numbers where theirs differs, and the reason."""

    name: str
    rule: Rule
    numbers: Rule | None = None
    reason: str = ""

    def value(self, signal: Signal, *, is_regression: bool) -> float:
        """Return its value for this signal."""
        rule = self.rule if self.numbers is None or not is_regression else self.numbers
        return float(rule(signal) if callable(rule) else rule)


def within(low: float, number: float, high: float) -> float:
    """Return the number, or the end of the range that it is beyond."""
    return min(high, max(low, number))


def beyond(start: float, signal: float) -> float:
    """Return how many times the signal is beyond a start, at least 1."""
    return max(1.0, signal / start)


def skew_clip(noise: float) -> float:
    """Return the clip C, in deviations, at which a mean of skewed residuals loses as much as its noise, C ``noise``.

    Residuals of an exponential law lose e^-(1 + C) of their mean, so C e^(1 + C) = 1 / noise: Lambert's W.
    """
    return float(lambertw(math.exp(-1.0) / noise).real)


def _steps(per_root: float, signal: Signal) -> float:
    return within(16, per_root * math.sqrt(signal.columns), 40)


SETTINGS = {row.name: row for row in (
    # gradient steps in whitened coordinates
    Setting("whitened.n_steps", lambda s: _steps(5.2 if s.per_coefficient >= 30 else 2.5, s),
            reason="of labels: wide tables have more directions that are not quite white; fewer where steps are noise"),
    Setting("whitened.momentum", 0.7,
            reason="brings flat directions along; the mean of the last half takes noise out"),
    Setting("whitened.clip", TYPICAL_SLOPE,
            reason="of labels, over the slope at 0: one more gradient brings them back to scale, so that it may bite"),
    Setting("whitened.constant", lambda s: within(0.5, 24 / s.per_row, 2),
            reason="an intercept is learned first where it is large"),
    Setting("whitened.lengths", lambda s: within(1, math.sqrt(s.per_row / 50), 3), numbers=1.0,
            reason="of labels: a row that is shrunk has another margin, and with signal noise matters less than that"),
    Setting("whitened.calibrate", lambda s: s.per_row >= 20, numbers=0.0,
            reason="a gradient is worth its part of the budget"),
    # gradient steps on sparse or very wide records: the signal is that of one number, rows have their own noise only
    Setting("wide.n_steps", lambda s: within(8, 2.2 * math.sqrt(s.per_output), 200),
            numbers=lambda s: within(30, 1.15 * math.sqrt(s.per_output), 200),
            reason="signal bears steps"),
    Setting("wide.step", lambda s: min(1.0, s.per_output / 100) ** 2, reason="long steps would find noise"),
    Setting("wide.clip", 0.5, numbers=0.2, reason="of the slope at 0"),
    Setting("wide.constant", lambda s: max(0.3, 30 / s.per_output),
            reason="an intercept is learned first where it is large"),
    # gradient steps in plain declared coordinates
    Setting("plain.n_steps", lambda s: within(8, 8 * math.sqrt(s.single_per_row), 200),
            reason="of labels, and of sparse or very wide records: more steps divide the budget among them"),
    Setting("plain.step", lambda s: min(1.0, s.per_coefficient / 4) ** 2,
            reason="of these: long steps would find noise"),
    Setting("pure.n_steps", lambda s: 0.25 * s.single**0.6,
            reason="T answers cost T / z, not sqrt(T) / z: few are worth it; below 2 they are shorter"),
    Setting("pure.clip", 1.0, numbers=0.3, reason="of a typical slope, for the longest row in L1"),
    # what differs by gradient method
    Setting("sgd.odds", lambda s: 4 * s.single**2 / (s.n * s.coefficients),
            reason="over T, of joining a sample: sampling noise is then a quarter of the privacy noise, in variance"),
    Setting("svrg.anchors", lambda s: 6 if 70 <= s.per_row < 250 else 8,
            reason="a change's noise is felt where signal is weak"),
    Setting("svrg.inner", lambda s: 1 + (s.per_row >= 70) + (s.per_row >= 250), reason="the same"),
    Setting("svrg.step", lambda s: 0.75 * min(1.0, s.per_row / 4),
            numbers=lambda s: 3 * min(1.0, s.total / 40) ** 2,
            reason="in declared coordinates: long steps would find noise, of changes too"),
    Setting("svrg.clip", 1.0, numbers=0.2, reason="there, of the slope at 0"),
    Setting("svrg.length", lambda s: within(0.05, 0.27 * (s.per_row - 1), 2),
            numbers=lambda s: within(0.3, 0.25 * s.per_row, 2),
            reason="there, of features over the constant: without signal the constant is all"),
    Setting("agd.rounds", lambda s: within(12, s.per_row / 12, 60), reason="a round is a gradient and a choice"),
    Setting("agd.clip", lambda s: 2 * beyond(400, s.per_row) ** (1 / 3), numbers=1.0,
            reason="of gd's: a tighter one turns the gradient away from where the losses that are compared descend"),
    Setting("agd.step", 3.0,
            reason="at most, in units of 1 / curvature: where a gradient is small, longer ones are chosen by noise"),
    # coordinate steps
    Setting("cd.passes", lambda s: within(4, 10 * (s.per_row / 85) ** 0.4, 30),
            reason="of labels: all iterates are averaged"),
    Setting("cd.corners", lambda s: within(4, s.per_row / 33, 35),
            numbers=lambda s: within(10, 24 * (s.per_row / 85) ** (1 / 3), 50),
            reason="passes to the last iterate: means have no zeros"),
    Setting("cd.step", lambda s: min(1.0, s.per_coefficient / 4) ** 2, reason="long steps would find noise"),
    Setting("gcd.n_steps", lambda s: within(8, 0.85 * min(s.per_row, 85) * beyond(85, s.per_row) ** 0.36, 200),
            reason="even columns want few, uneven ones many"),
    Setting("gcd.few", lambda s: within(4, 0.4 * s.single ** (2 / 3), 500),
            reason="steps in declared coordinates: the order of the theory"),
    Setting("gcd.few_clip", 0.5, numbers=0.3, reason="in root mean squares of a column"),
    Setting("coordinate.clip", lambda s: within(0.4, 0.5 * (s.per_row / 85) ** 0.45, 1.6),
            numbers=lambda s: within(0.4, 0.4 * (s.per_row / 85) ** 0.35, 2.5),
            reason="in root mean squares of a column: hardly bites where there is signal for it"),
    # one-shot methods on standardized rows
    Setting("objective.clip", lambda s: within(0.5, math.sqrt(s.single_per_row / 160), 1),
            numbers=lambda s: within(0.4, 0.6 * (s.single_per_row / 100) ** 0.25, 6),
            reason="a clipped logistic loss is too certain of itself; residuals in target deviations"),
    Setting("one_shot.lengths", lambda s: min(3.0, beyond(300, s.single_per_row) ** 0.4),
            numbers=lambda s: beyond(300, s.single_per_row) ** 0.125,
            reason="rows may be longer as signal makes their bias matter"),
    Setting("one_shot.least_scale", lambda s: within(0.002, 20 / s.single_per_row, 0.1),
            reason="with signal narrow columns stand out from noise"),
)}  # fmt: skip

SEEN_CLASSES, SEEN_NUMBERS, SEEN_TARGET, SEEN_WITH_MOMENTS = 10.0, 5.0, 40.0, 22.0
"""The signal per row (for a target: of one number) from which coordinates are worth estimating for gradient steps."""
SEEN_BY_CD, SEEN_BY_GCD, SEEN_SPARSE = 10.0, 40.0, 20.0
"""The signal per row from which scales are worth estimating for coordinate steps, and of sparse records."""
COUNTED_STEPS = 16.0
"""The signal per coefficient below which steps on sparse or very wide counts, whose slopes are long, are short."""
SEEN_SQUARES = 100.0
"""The signal per row from which the smoothness of columns is worth estimating, of counts."""
SHIFT_NOISE, SEEN_SHIFT = 4.5, 150.0
"""The noise of the mean of residuals that moves an intercept, which has a twentieth of the budget, over that of a mean
with all of it; and the signal from which it is worth asking for."""
ROW = 1.3
"""Coordinates are clipped one by one, so that shrinking rows saves no noise, but it bounds the curvature."""
CURVATURE_SHARE = 0.5
"""The curvature's part of objective perturbation's price is at most this part of epsilon."""


STARTED = 100.0
"""The signal of one number from which no more is asked of where steps start: steps move on from there."""


@dataclass(frozen=True)
class Facts:
    """The public facts that settings are chosen from."""

    domain: Domain
    loss: Loss
    penalty: Penalty
    budget: Budget

    @cached_property
    def signal(self) -> Signal:
        """N and its powers."""
        return Signal.of(self.domain, self.budget)

    @property
    def is_regression(self) -> bool:
        """Whether targets are numbers."""
        return self.loss.task == "regression"

    @property
    def slope(self) -> float:
        """The size of a slope at 0: of a number that was standardized 1."""
        return 1.0 if self.is_regression else slope_at_zero(self.loss)

    @property
    def can_recode(self) -> bool:
        """Whether records may be recoded by noisy estimates: Gaussian noise, and a target that can follow."""
        return (
            self.budget.is_private and not self.budget.is_pure and (not self.is_regression or self.loss.movable_target)
        )

    @property
    def shift_clip(self) -> float | None:
        """The clip of the mean of residuals that moves an intercept at last: wide, for it is one number."""
        if not self.is_regression or self.signal.total < SEEN_SHIFT:
            return None
        return skew_clip(SHIFT_NOISE / self.signal.total)

    @property
    def bias(self) -> float:
        """The part of what clips lose that stays: all of it where no answer is left to bring it back."""
        return 1.0 if self.is_regression and self.shift_clip is None else SHIFTED

    @property
    def start_share(self) -> float:
        """The share of mu^2 for the constant that steps start from: one number next to p, and as much as is of use."""
        asked = self.budget.is_private and not self.budget.is_pure and self.penalty.l1_l2 is not None
        if not (asked and self.domain.intercept) or self.loss.movable_target:
            return 0.0
        whole = 1.0 / (1.0 + math.sqrt(self.domain.n_features))
        return min(whole, (STARTED / self.signal.total) ** 2)

    def value(self, name: str) -> float:
        """Return a setting's value for these facts."""
        return SETTINGS[name].value(self.signal, is_regression=self.is_regression)

    def count(self, name: str) -> int:
        """Return a setting's value as a whole number."""
        return round(self.value(name))


# --- what settings are predicted to cost ----------------------------------------------------------------

OFF_CENTER = 0.1
"""What is left of a numeric target's mean once it was centered, in deviations."""
MOMENT_SHARE = 0.2
"""What a second moment gets of mu^2 (``Preconditioned``)."""
COUNTS = (1, 2, 4, 8, 16, 32, 64)
LENGTHS = (1.0, 0.5, 0.25, 0.1, 0.03, 0.01)
"""Steps in units of 1 / curvature: none longer, which might not come to rest."""
CLIPS, LABEL_CLIPS = (0.1, 0.2, 0.4, 0.8, 1.2, 1.6, 2.4, 3.2, 4.8), (0.2, 0.4, 0.6, 0.8, 1.0, 1.4, 2.0)
"""In deviations of a number, and in slopes at 0 of labels, twice which is the largest."""
COUNT_CLIPS = (*CLIPS, 9.6, 19.2, 38.4)
"""Counts are skewed."""
STRENGTHS = tuple(10.0 ** (power / 4) for power in range(-24, 8))
ROW_LENGTHS = (0.25, 0.5, 1.0, 2.0)
"""Of features over the constant, in declared coordinates."""
CONSTANTS = (0.5, 1.0, 2.0, 4.0)
"""Of the constant over the length of features, on standardized rows."""
HALF_WHITE = 0.4
"""What half of the directions are of the other half's mean square after whitening."""
NARROW = 0.2
"""The mean square of features over that of ones that fill their ranges: many are declared too wide."""
TARGET_UNIT, SLOPE_UNIT = 0.15, 0.3
"""A number's deviation in half-ranges, and in typical slopes."""
ESTIMATED = 0.63
"""What estimates leave the steps of mu^2."""
ANCHORS = 0.8
"""What svrg's anchors get of mu^2: their noise, which stays for an epoch, is that of as many gradients as steps."""
CHANGES = 0.25
"""What svrg's anchors and changes are worth of gradients, of mu^2."""
SHIFTED = 0.3
"""The part of what clips lose that stays where one more answer moves the intercept, or brings labels back to scale."""
FLAT = 0.01
"""What half of the directions of standardized rows are of the other half's mean square."""
STRONG = 1e-3
"""The strength of an L2 penalty from which the settings of labels in whitened coordinates depend on it."""
LEAST_SAMPLE = 2.0
"""Samples are at least this many mu / sqrt(T): noise would not shrink with smaller ones."""


def likely_problems(facts: Facts, unit: float, off: float) -> tuple[Problem, ...]:
    """Return the problems that settings are for; a number's deviation is ``unit``, its mean ``off`` deviations off."""
    loss, intercept = facts.loss, float(facts.domain.intercept)
    if loss.log_link:  # the declared range is wide: a fifth of the typical curvature is the usual mean
        usual = 0.2 * loss.typical_curvature(facts.domain.target_bound)
        return tuple(Problem(effect / 3.0, intercept, usual, 2.0 * usual) for effect in EFFECTS)
    if facts.is_regression:
        parts = [(effect / math.hypot(1.0, effect), 1.0 / math.hypot(1.0, effect)) for effect in EFFECTS]
        return tuple(Problem(unit * effect, unit * off * intercept, 1.0, unit * errors) for effect, errors in parts)
    starts = (0.0, RARE) if intercept else (0.0,)
    return tuple(
        Problem(effect, start, loss.smoothness / math.sqrt(1.0 + 0.3 * (effect**2 + start**2)), facts.slope, False)
        for effect in EFFECTS
        for start in starts
    )


def clips_of(facts: Facts, unit: float) -> tuple[float, ...]:
    """Return the clips in question."""
    if not facts.is_regression:
        return tuple(facts.slope * clip for clip in LABEL_CLIPS)
    return tuple(unit * clip for clip in (COUNT_CLIPS if facts.loss.log_link else CLIPS))


def best_of(
    facts: Facts, rows: Rows, *, share: float = 1.0, unit: float = 1.0, bias: float = 1.0,
    smoothness: float | None = None, momentum: float | str = 0.0, average: str = "last",
    counts: tuple[int, ...] = COUNTS,
) -> Best:  # fmt: skip
    """Return the steps of least predicted excess, which get this share of mu^2; ``bias`` stays of what clips lose.

    A number's deviation is ``unit``: 1 where it was estimated, and the number centered.
    """
    signal = facts.signal
    bend = smoothness if smoothness is not None else 1.0 if facts.is_regression else float(facts.loss.smoothness)
    steps = Steps(
        clips_of(facts, unit), LENGTHS, counts, signal.total * math.sqrt(share), signal.n, bias, bend, momentum, average
    )
    return best_steps(rows, steps, likely_problems(facts, unit, OFF_CENTER if unit == 1.0 else 1.0))


def plain_best(facts: Facts, momentum: float | str, counts: tuple[int, ...] = COUNTS, share: float = 1.0) -> Best:
    """Return the best steps in plain declared coordinates."""
    domain, loss = facts.domain, facts.loss
    unit = SLOPE_UNIT * loss.typical_slope(domain.target_bound) if facts.is_regression else 1.0
    bend = float(loss.typical_curvature(domain.target_bound))
    return best_of(facts, plain_rows(facts), share=share, unit=unit, smoothness=bend, momentum=momentum, counts=counts)


def _feature_spectrum(facts: Facts) -> tuple[Floats, Floats]:
    return spectrum(max(1, facts.domain.n_features - facts.domain.intercept))


def whitened_rows(facts: Facts) -> Rows:
    """Return rows of whitened coordinates: short along directions that do not stand out of noise, or are half white.

    Rows are whitened by what a penalty adds to their second moment too.
    """
    p, intercept = facts.domain.n_features, float(facts.domain.intercept)
    values, counts = _feature_spectrum(facts)
    edge = math.sqrt(2.0 * p / MOMENT_SHARE) / facts.signal.total
    penalty, parts = penalty_of_white(facts)
    seen = values / (values + 0.5 * p * edge) * parts[0]
    squares, halves = np.concatenate([seen, HALF_WHITE * seen]), np.concatenate([counts, counts]) / 2.0
    constant = intercept * parts[1]
    return Rows.of(squares, halves, constant, norm=math.sqrt(float(seen @ counts) + constant), penalty=penalty)


def penalty_of_white(facts: Facts) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return the strengths of an L2 penalty where it is part of columns' squares, and what is left of these to rows.

    Of features, and of the constant.
    """
    ridge, curvature = facts.penalty.strong_convexity, largest_curvature(facts.loss)
    strengths = ridge / (NARROW * TYPICAL_RMS**2), ridge
    parts = tuple(1.0 / (1.0 + strength / curvature) for strength in strengths)
    return (strengths[0] * parts[0], strengths[1] * parts[1]), (parts[0], parts[1])


def declared_rows(facts: Facts, length: float) -> Rows:
    """Return rows of declared coordinates, whose typical ones have features of this length next to a constant 1."""
    values, counts = _feature_spectrum(facts)
    squares = NARROW * length**2 / counts.sum() * values
    square, ridge = 1.0 + length**2, facts.penalty.strong_convexity
    penalty = (ridge * length**2 / (TYPICAL_ROW**2 * counts.sum()), ridge)
    return Rows.of(
        squares, counts, float(facts.domain.intercept), norm=math.sqrt(square), moment=square, penalty=penalty
    )


def coordinate_rows(facts: Facts) -> Rows:
    """Return rows of declared coordinates as coordinate steps see them: each column in units of its smoothness."""
    values, counts = _feature_spectrum(facts)
    norm, ridge = math.sqrt(facts.domain.n_features), facts.penalty.strong_convexity
    squares = NARROW * TYPICAL_ROW**2 * values
    return Rows.of(squares, counts, float(facts.domain.intercept), norm=norm, penalty=(ridge, ridge))


def plain_rows(facts: Facts) -> Rows:
    """Return rows as declared."""
    domain = facts.domain
    values, counts = _feature_spectrum(facts)
    squares = np.square(domain.feature_bounds)
    constant, rho = float(squares[-1]) if domain.intercept else 0.0, typical_row_norm(domain)
    parts = NARROW * TYPICAL_RMS**2 * (float(squares.sum()) - constant) / counts.sum() * values
    steep = min(domain.row_norm, STEEP * rho) if facts.is_regression else rho
    ridge = facts.penalty.strong_convexity
    return Rows.of(parts, counts, constant, norm=rho, moment=steep**2, penalty=(ridge, ridge))


# --- gradient methods ----------------------------------------------------------------------------------


def stage(facts: Facts, solver: Solver, coordinates: str = "full", **given: Any) -> Preconditioned:
    """Return a solver in these coordinates, which starts from the target's constant, and whose result is shrunk.

    An adaptive plan names a question once, so that its steps start at 0 where there are several outputs.
    """
    share = 0.0 if solver.name == "agd" and facts.domain.n_outputs > 1 else facts.start_share
    return Preconditioned(solver, coordinates, start_share=share, denoise=True, **given)


def descent(facts: Facts, method: "Callable[[GradientDescent], Solver]", *, epochs: bool = False) -> Solver | None:
    """Return the method that full-batch steps make, in the coordinates that are worth it; None where none are.

    ``epochs``: the method counts its own steps, whose noise is more than that of gradients.
    """
    if not facts.can_recode or not facts.penalty.ridge:
        return None
    coordinates = _coordinates(facts)
    if coordinates == "full":
        return whitened_steps(facts, method, epochs=epochs)
    if coordinates == "wide":
        return wide_steps(facts, method) if facts.is_regression else None
    return few_steps(facts, method, epochs=epochs)


def _coordinates(facts: Facts) -> str:
    signal, domain = facts.signal, facts.domain
    is_weak = facts.is_regression and signal.per_output < SEEN_TARGET
    if is_wide(domain) and not is_weak:
        return "wide"
    needed = SEEN_NUMBERS if facts.is_regression else SEEN_CLASSES
    needed = max(needed, SEEN_WITH_MOMENTS) if domain.moments is not None else needed
    if is_weak or signal.per_row < needed:
        return "declared"
    return "full"


def whitened_steps(facts: Facts, method: "Callable[[GradientDescent], Solver]", *, epochs: bool) -> Preconditioned:
    """Return steps in whitened coordinates, the mean of the last half."""
    from discreet.solvers.gd import GradientDescent

    momentum = facts.value("whitened.momentum")
    found = Best(facts.count("whitened.n_steps"), facts.value("whitened.clip") * facts.slope, 1.0)
    depends = facts.domain.n_outputs > 1 or facts.penalty.strong_convexity >= STRONG
    if facts.is_regression and epochs:
        count, share = facts.count("svrg.anchors") * facts.count("svrg.inner"), ESTIMATED * ANCHORS
        found = best_of(
            facts, whitened_rows(facts), share=share, bias=facts.bias, momentum=_epoch_momentum(facts), counts=(count,)
        )
    elif facts.is_regression or (depends and not epochs):
        found = best_of(
            facts, whitened_rows(facts), share=ESTIMATED, bias=facts.bias, momentum=momentum, average="tail"
        )
    steps = GradientDescent(
        n_steps=found.count,
        relative_clip=found.clip,
        relative_step=found.length,
        momentum=momentum,
        average="tail",
        radius=LARGEST,
    )
    calibrate, constant = bool(facts.value("whitened.calibrate")), facts.value("whitened.constant")
    return stage(
        facts,
        method(steps),
        constant=constant,
        lengths=facts.value("whitened.lengths"),
        calibrate=calibrate,
        shift_clip=facts.shift_clip,
    )


def few_steps(facts: Facts, method: "Callable[[GradientDescent], Solver]", *, epochs: bool) -> Preconditioned:
    """Return few short steps in declared coordinates, with a large constant where there is little signal."""
    from discreet.solvers.gd import GradientDescent

    momentum = 0.0 if facts.is_regression else facts.value("whitened.momentum")
    average, bias = ("tail", 1.0) if facts.is_regression else ("last", SHIFTED)
    unit = TARGET_UNIT if facts.is_regression else 1.0

    def costs(length: float) -> Best:
        rows = declared_rows(facts, length)
        return best_of(facts, rows, unit=unit, bias=bias, momentum=momentum, average=average)

    if epochs:
        found = Best(1, facts.value("svrg.clip") * facts.slope, facts.value("svrg.step"))
        length = facts.value("svrg.length")
    else:
        found, length = min(((costs(length), length) for length in ROW_LENGTHS), key=lambda pair: pair[0].excess)
    steps = GradientDescent(
        n_steps=found.count,
        momentum=momentum,
        average=average,
        relative_step=found.length,
        relative_clip=found.clip,
        radius=LARGEST,
    )
    return stage(facts, method(steps), "declared", constant=1.0 / length)


def wide_steps(facts: Facts, method: "Callable[[GradientDescent], Solver]") -> Preconditioned:
    """Return safe steps with Nesterov's momentum for sparse or very wide records, whose rows have a measured length.

    A row that is no longer than a typical one has the noise of its own length only, never that of all p columns. What
    steps found is kept as far as their gradients say that it gained (``decrease``).
    """
    from discreet.solvers.gd import GradientDescent

    steps = GradientDescent(
        n_steps=facts.count("wide.n_steps"),
        momentum="nesterov",
        relative_clip=facts.value("wide.clip") * facts.slope,
        relative_step=facts.value("wide.step"),
        radius=LARGEST,
    )
    return Preconditioned(method(steps), "declared", constant=facts.value("wide.constant"), weigh=True)


def plain_steps(facts: Facts) -> "GradientDescent":
    """Return steps in plain declared coordinates with Nesterov's momentum: T travel as far as T^2 / 4 plain ones."""
    from discreet.solvers.gd import GradientDescent

    domain, loss, budget = facts.domain, facts.loss, facts.budget
    if budget.is_private and budget.is_pure and not is_wide(domain):
        return _pure_steps(facts)
    steps = GradientDescent(step_count(domain, budget), momentum="nesterov", restart=not budget.is_private)
    if not budget.is_private:
        return steps
    if is_wide(domain) or not facts.is_regression:
        short = facts.value("plain.step")
        if loss.log_link:
            short = min(1.0, facts.signal.per_coefficient / COUNTED_STEPS) ** 2
        return steps if short == 1 else replace(steps, step_size=short * typical_step(domain, loss, budget))
    found = plain_best(facts, "nesterov", (*COUNTS, 128))
    clip, step = found.clip * typical_row_norm(domain), found.length * typical_step(domain, loss, budget)
    return replace(steps, n_steps=found.count, clip=clip, step_size=step)


def _pure_steps(facts: Facts) -> "GradientDescent":
    """Return few steps for Laplace noise: as long as declared rows allow, shorter where there is little signal."""
    from discreet.solvers.gd import GradientDescent

    domain, loss = facts.domain, facts.loss
    wanted = facts.value("pure.n_steps")
    slope = typical_clip(domain, loss, facts.budget) / typical_row_norm(domain)
    longest = min(float(np.sum(domain.feature_bounds)), math.sqrt(domain.n_features) * domain.row_norm)
    curvature = float(loss.typical_curvature(domain.target_bound)) * domain.row_norm**2
    return GradientDescent(
        n_steps=round(within(2, wanted, 150)),
        clip=facts.value("pure.clip") * slope * longest,
        step_size=min(1.0, wanted / 2) ** 3 / curvature,
        momentum="nesterov",
    )


def as_declared(facts: Facts, solver: Solver) -> Solver:
    """Return a solver in plain declared coordinates, whose result is shrunk where there is noise."""
    return stage(facts, solver, "training") if facts.budget.is_private else solver


def gd(facts: Facts) -> Solver:
    """Return full-batch steps."""
    return descent(facts, lambda steps: steps) or as_declared(facts, plain_steps(facts))


def sgd(facts: Facts) -> Solver:
    """Return the steps of ``gd`` on samples as large as privacy noise makes worthwhile: all records without noise."""
    from discreet.solvers.sgd import StochasticGradientDescent

    if facts.domain.n is None:
        raise Unsupported(
            "n is private here: configure StochasticGradientDescent(sampling_probability=...), or declare Bounds(n=...)"
        )

    def sampled(steps: "GradientDescent") -> Solver:
        odds = facts.value("sgd.odds") / steps.n_steps if facts.budget.is_private else math.inf
        share = 1.0 if math.isinf(odds) else odds / (1.0 + odds)
        if facts.budget.is_private:
            spent = facts.signal.single * facts.budget.neighbors.sum_factor / facts.signal.n  # mu
            share = max(share, min(1.0, LEAST_SAMPLE * spent / math.sqrt(steps.n_steps)))
        return StochasticGradientDescent(**vars(steps), sampling_probability=share)

    return descent(facts, sampled) or as_declared(facts, sampled(plain_steps(facts)))


def _epoch_momentum(facts: Facts) -> float:
    return facts.value("whitened.momentum") if facts.count("svrg.inner") > 2 else 0.0


def svrg(facts: Facts) -> Solver:
    """Return a few epochs; in declared coordinates 3 to 20 anchors with six steps from each, on a tenth of the records.

    There steps for numbers are at most as long as the longest rows bear. A pure budget is worth few answers: anchors
    alone, one step from each.
    """
    from discreet.solvers.svrg import VarianceReducedDescent

    domain, loss, budget = facts.domain, facts.loss, facts.budget
    if domain.n is None:
        raise Unsupported(
            "n is private here: configure VarianceReducedDescent(sampling_probability=...), or declare Bounds(n=...)"
        )
    if not budget.is_private:
        return VarianceReducedDescent(n_epochs=400, n_inner=20, batch_size=max(1.0, domain.n / 4))

    def in_epochs(steps: "GradientDescent") -> Solver:
        inner = facts.count("svrg.inner")
        return VarianceReducedDescent(
            facts.count("svrg.anchors"),
            inner,
            sampling_probability=0.3 if inner > 1 else 1.0,
            momentum=_epoch_momentum(facts),
            anchor_share=ANCHORS,
            relative_clip=steps.relative_clip,
            relative_step=steps.relative_step,
            radius=steps.radius,
        )

    recoded = descent(facts, in_epochs, epochs=True)
    if recoded is not None:
        return recoded
    steps = plain_steps(facts)
    if budget.is_pure and not is_wide(domain):
        anchors = VarianceReducedDescent(steps.n_steps, 1, clip=steps.clip, step_size=steps.step_size)
        return as_declared(facts, anchors)
    epochs, step, clip = round(within(3, facts.value("plain.n_steps") ** 2 / 2000, 20)), steps.step_size, steps.clip
    if facts.is_regression and not is_wide(domain):
        found, alone = plain_best(facts, "nesterov", (6 * epochs,), share=CHANGES), plain_best(facts, 0.0)
        best = min(found, alone, key=lambda one: one.excess)
        clip, step = best.clip * typical_row_norm(domain), best.length * typical_step(domain, loss, budget)
        if best is alone:  # anchors, one step from each
            return as_declared(facts, VarianceReducedDescent(best.count, 1, clip=clip, step_size=step))
    if loss.movable_target:  # changes of residuals are not cut off as gradients are: steps for the longest rows
        step = min(step or typical_step(domain, loss, budget), 1.0 / gradient_smoothness(loss, domain))
    batch = float(min(domain.n, max(BATCH, domain.n / 10)))
    inner = VarianceReducedDescent(epochs, 6, clip=clip, batch_size=batch, step_size=step, momentum="nesterov")
    return as_declared(facts, inner)


def agd(facts: Facts) -> Solver:
    """Return few rounds in estimated coordinates, many cheap ones in declared coordinates: steepest descent needs many.

    There steps move a margin of a typical row by up to 2.
    """
    from discreet.solvers.agd import AdaptiveDescent

    def in_rounds(steps: "GradientDescent") -> Solver:
        clip = None if steps.relative_clip is None else facts.value("agd.clip") * steps.relative_clip
        is_declared = facts.is_regression and _coordinates(facts) == "declared"
        largest = TARGET_UNIT if is_declared else 1.0
        return AdaptiveDescent(
            n_rounds=facts.count("agd.rounds"),
            relative_clip=clip,
            largest_step=largest,
            relative_step=facts.value("agd.step"),
            average="tail",
        )

    recoded = descent(facts, in_rounds)
    if recoded is not None:
        return recoded
    plain = AdaptiveDescent(largest_step=2.0 / typical_row_norm(facts.domain), average="tail")
    is_planned = facts.is_regression and facts.budget.is_private and not facts.budget.is_pure
    if not is_planned or is_wide(facts.domain):
        return as_declared(facts, plain)
    clip = plain_best(facts, "nesterov").clip * typical_row_norm(facts.domain)
    return as_declared(facts, replace(plain, clip=clip))


# --- coordinate methods ----------------------------------------------------------------------------------


def _recodes_coordinates(facts: Facts) -> bool:
    return facts.can_recode and facts.penalty.separable and facts.domain.n_outputs == 1


def _in_scales(facts: Facts, solver: Solver) -> Preconditioned:
    """Return coordinate steps where columns are alike: whitened with an L2 penalty or none, else standardized."""
    if facts.penalty.ridge and not is_wide(facts.domain) and solver.name == "cd":
        lengths = facts.value("whitened.lengths")
        return stage(facts, solver, calibrate=False, lengths=lengths, shift_clip=facts.shift_clip)
    return stage(facts, solver, "diagonal", relative_row_norm=ROW, shift_clip=facts.shift_clip)


def cd(facts: Facts) -> Solver:
    """Return cyclic passes over recoded coordinates where there is signal, few short ones over declared ones."""
    from discreet.solvers.cd import CoordinateDescent
    from discreet.solvers.coordinate_geometry import Geometry

    if not _recodes_coordinates(facts):
        return as_declared(facts, plain_cd(facts))
    domain = facts.domain
    average = "uniform" if facts.penalty.ridge else "last"  # a mean of iterates has no exact zeros
    weak = facts.signal.per_row / SEEN_BY_CD
    if weak < 1:
        short = min(weak**2, facts.value("cd.step"))
        few = Best(2, TYPICAL_RMS * facts.loss.typical_slope(domain.target_bound), short)
        if not facts.is_regression:
            few = best_of(facts, coordinate_rows(facts), average=average, counts=COUNTS[:-1])
        geometry, inner = Geometry(relative_clip=few.clip), few.count * domain.n_features
        passes = CoordinateDescent(1, inner, geometry, few.length, schedule="cyclic", average=average)
        return stage(facts, passes, "declared", constant=max(0.5, 1.0 / weak))
    rounds = 2 if facts.is_regression else 1
    count = facts.count("cd.passes" if facts.penalty.ridge else "cd.corners")
    found = Best(count, facts.value("coordinate.clip"), facts.value("cd.step"))
    if facts.is_regression and facts.penalty.ridge and not is_wide(domain):  # whitened; the mean of the second half
        found = best_of(facts, whitened_rows(facts), share=ESTIMATED, bias=facts.bias, average="tail")
        rounds = min(2, found.count)
    inner, geometry = found.count // rounds * domain.n_features, Geometry(relative_clip=found.clip)
    solver = CoordinateDescent(rounds, inner, geometry, found.length, schedule="cyclic", average=average)
    return _in_scales(facts, solver)


def plain_cd(facts: Facts) -> "CoordinateDescent":
    """Return cyclic passes in two rounds, smoothness estimated from a tenth of the budget; more drown in noise."""
    from discreet.solvers.cd import CoordinateDescent
    from discreet.solvers.coordinate_geometry import Geometry

    domain, loss, budget = facts.domain, facts.loss, facts.budget
    p, slope = domain.n_features, 1.5
    if not budget.is_private:
        geometry = Geometry(clip=limit_clip(domain, loss) * math.sqrt(p))
        return CoordinateDescent(n_inner=LIMIT_STEPS * p, geometry=geometry, schedule="cyclic", average="last")
    if loss.log_link and not budget.is_pure and facts.signal.per_row < SEEN_SQUARES:
        return counted_cd(facts)
    if facts.is_regression:
        slope = (1.0 if loss.log_link else 2.0) * typical_width(domain, loss, budget)
        passes = within(2, facts.signal.single_per_row / 10, 40 / budget.neighbors.sum_factor)
    else:
        noise = (p * slope / facts.signal.single) ** 2 / (2 * loss.smoothness)
        passes = within(2, 0.003 * math.log(2.0) / noise, 100)
    return CoordinateDescent(
        n_outer=2,
        n_inner=max(1, round(passes / 2)) * p,
        geometry=Geometry(relative_clip=slope, smoothness="private"),
        relative_step=typical_coordinate_step(domain, loss),
        schedule="cyclic",
        average="uniform" if facts.penalty.ridge else "last",
    )


def counted_cd(facts: Facts) -> "CoordinateDescent":
    """Return the passes of least predicted excess for counts, by declared smoothness."""
    from discreet.solvers.cd import CoordinateDescent
    from discreet.solvers.coordinate_geometry import Geometry

    domain, loss = facts.domain, facts.loss
    unit, bend = (
        SLOPE_UNIT * loss.typical_slope(domain.target_bound),
        float(loss.typical_curvature(domain.target_bound)),
    )
    average = "uniform" if facts.penalty.ridge else "last"
    best = best_of(facts, coordinate_rows(facts), unit=unit, smoothness=bend, average=average, counts=COUNTS[:-1])
    step, geometry = best.length * typical_coordinate_step(domain, loss), Geometry(relative_clip=best.clip)
    return CoordinateDescent(1, best.count * domain.n_features, geometry, step, schedule="cyclic", average=average)


def gcd(facts: Facts) -> Solver:
    """Return choices among standardized coordinates where there is signal, among declared ones elsewhere."""
    from discreet.solvers.coordinate_geometry import Geometry
    from discreet.solvers.gcd import GreedyCoordinateDescent

    if facts.penalty.l1_l2 is None or not _recodes_coordinates(facts):
        return as_declared(facts, plain_gcd(facts))
    if facts.signal.per_row < SEEN_BY_GCD:
        geometry = Geometry(relative_clip=facts.value("gcd.few_clip"))
        few = replace(plain_gcd(facts), geometry=geometry, backtrack=True)
        return stage(facts, few, "declared", measure=True)
    geometry = Geometry(relative_clip=facts.value("coordinate.clip"))
    return _in_scales(facts, GreedyCoordinateDescent(facts.count("gcd.n_steps"), geometry))


def plain_gcd(facts: Facts) -> "GreedyCoordinateDescent":
    """Return steps by declared smoothness: an estimate costs p squares."""
    from discreet.solvers.coordinate_geometry import Geometry
    from discreet.solvers.gcd import GreedyCoordinateDescent

    domain, loss, budget = facts.domain, facts.loss, facts.budget
    if not budget.is_private:
        geometry = Geometry(clip=limit_clip(domain, loss) * math.sqrt(domain.n_features))
        return GreedyCoordinateDescent(LIMIT_STEPS, geometry)
    geometry = Geometry(relative_clip=TYPICAL_RMS * typical_width(domain, loss, budget))
    selection = "permute_and_flip" if budget.is_pure else "exponential"
    return GreedyCoordinateDescent(
        facts.count("gcd.few"),
        geometry,
        selection=selection,
        selection_share=0.65,
        relative_step=typical_coordinate_step(domain, loss),
    )


# --- one-shot methods ------------------------------------------------------------------------------------


def one_shot(facts: Facts, method: type[P]) -> Solver:
    """Return output or objective perturbation on standardized rows of length 1; by itself where these cannot be had.

    The clip and lambda are those of least predicted excess.
    """
    domain, signal = facts.domain, facts.signal
    has_count = domain.n is not None and not domain.grouped
    is_hidden = domain.sparse and signal.single_per_row < SEEN_SPARSE
    if not facts.can_recode or not has_count or is_hidden or not facts.penalty.ridge:
        return as_declared(facts, plain_shot(facts, method))
    lengths, least = facts.value("one_shot.lengths"), facts.value("one_shot.least_scale")
    shift = facts.shift_clip if method.name == "output" else None
    ridge, seen = facts.penalty.strong_convexity, replace(domain, row_norm=1.0)
    values, counts = _feature_spectrum(facts)
    strengths, parts = penalty_of_white(facts)
    squares, halves = np.concatenate([values, FLAT * values]), np.concatenate([counts, counts]) / 2.0
    bias = facts.bias if method.name == "output" or not facts.is_regression else 1.0
    bounds = domain.feature_bounds[: domain.n_features - domain.intercept]
    widest = float(np.square(bounds).max(initial=0.0)) + ridge / largest_curvature(facts.loss) or 1.0

    def planned(constant: float) -> tuple[float, P]:
        square = 1.0 / ((1.0 + constant**2 * domain.intercept) * lengths**2)
        unit, level = square / counts.sum(), square * constant**2
        penalty = (unit * strengths[0], level * ridge)
        rows = Rows.of(unit * parts[0] * squares, halves, level * domain.intercept, penalty=penalty)
        certain = min(level * ridge if domain.intercept else math.inf, unit * ridge / widest)
        return best_shot_of(facts, method(row_norm=1.0), rows, seen, bias=bias, certain=certain)

    found = {constant: planned(constant) for constant in (CONSTANTS if domain.intercept else CONSTANTS[:1])}
    constant = min(found, key=lambda one: found[one][0])
    return stage(
        facts,
        found[constant][1], "diagonal", constant=constant, lengths=lengths, least_scale=least, shift_clip=shift,
    )  # fmt: skip


def plain_shot(facts: Facts, method: type[P]) -> P:
    """Return a one-shot method in plain declared coordinates: of least predicted excess where it is output's of counts.

    What else has no other coordinates has the strengths that its bounds make.
    """
    domain, budget = facts.domain, facts.budget
    is_planned = method.name == "output" and facts.loss.log_link and budget.is_private and not budget.is_pure
    if not is_planned or domain.sparse or domain.grouped or domain.n is None:
        return method()
    rows, square = plain_rows(facts), typical_row_norm(domain) ** 2
    scaled = Rows.of(rows.all[:-1] / square, rows.numbers[:-1], rows.constant / square)
    unit = SLOPE_UNIT * facts.loss.typical_slope(domain.target_bound)
    certain = facts.penalty.strong_convexity / square
    _, found = best_shot_of(facts, method(), scaled, domain, unit, 1.0, certain)
    assert found.clip is not None
    assert found.regularization is not None
    return method(clip=found.clip * math.sqrt(square), regularization=found.regularization * square)


def best_shot_of(
    facts: Facts,
    solver: P,
    rows: Rows,
    domain: Domain,
    unit: float = 1.0,
    bias: float = SHIFTED,
    certain: float = 0.0,
) -> tuple[float, P]:
    """Return a one-shot method with the clip and the strength of least predicted excess, for rows of about length 1.

    And the logarithm of that.

    Clipped gradients of several outputs are no gradients: these are not clipped. The curvature's part of objective
    perturbation's price is at most half of epsilon.
    """
    loss, signal, clips, strengths, price = facts.loss, facts.signal, clips_of(facts, unit), STRENGTHS, None
    problem = replace(solver, clip=clips[0] if loss.n_outputs == 1 else None).problem(1.0, 1.0)
    if loss.n_outputs > 1:
        clips = (float(problem.bound_for(loss, domain)),)
    if solver.name == "objective":
        curvature, epsilon = problem.perturbation_for(loss, domain).curvature, facts.budget.epsilon
        least = least_strength(curvature, max(1, domain.n_outputs - 1), CURVATURE_SHARE * epsilon) / signal.n
        price, strengths = 2.0 * curvature / (signal.n * epsilon), (least, *(s for s in STRENGTHS if s > least))
    likely = likely_problems(facts, unit, OFF_CENTER if unit == 1.0 else 1.0)
    found = best_shot(rows, Shot(clips, strengths, signal.single, signal.n, bias, price, certain), likely)
    return found.excess, replace(solver, clip=found.clip if loss.n_outputs == 1 else None, regularization=found.length)


def least_strength(curvature: float, rank: int, epsilon: float) -> float:
    """Return the least lambda of objective perturbation whose curvature costs at most this much of epsilon."""
    return 2 * curvature / (rank + 1) / math.expm1(min(epsilon / rank, 700.0))


# --- what is left open ---------------------------------------------------------------------------------


def count_of(domain: Domain) -> int:
    """Return n, or what stands for it where it is private."""
    return domain.n if domain.n is not None else PRIVATE_N


def step_count(domain: Domain, budget: Budget) -> int:
    """Return how many full-batch gradients to release."""
    if not budget.is_private:
        return LIMIT_STEPS
    return round(SETTINGS["plain.n_steps"].value(Signal.of(domain, budget), is_regression=False))


def typical_row_norm(domain: Domain) -> float:
    """Return rho, from declared bounds; an intercept's constant is as long as it is."""
    squares = np.square(domain.feature_bounds)
    constant = float(squares[-1]) if domain.intercept else 0.0
    return min(domain.row_norm, math.sqrt(constant + TYPICAL_RMS**2 * (float(np.sum(squares)) - constant)))


def typical_clip(domain: Domain, loss: Loss, budget: Budget) -> float:
    """Return (typical slope) rho, or more than any gradient where there is no noise to fear."""
    if not budget.is_private:  # in L1 where that is what is clipped
        return limit_clip(domain, loss) * (math.sqrt(domain.n_features * domain.n_outputs) if budget.is_pure else 1.0)
    return typical_width(domain, loss, budget) * typical_row_norm(domain)


def typical_width(domain: Domain, loss: Loss, budget: Budget) -> float:
    """Return a typical slope; for counts two, and more where there is signal."""
    slope = loss.typical_slope(domain.target_bound)
    if loss.log_link:
        slope *= 2.0 * math.sqrt(beyond(COUNTS_WIDEN, Signal.of(domain, budget).single_per_row))
    return slope


def limit_clip(domain: Domain, loss: Loss) -> float:
    """Return more than any gradient on the way to an optimum, within the lattice's precision."""
    largest = loss.lipschitz_for(domain.target_bound, math.inf)
    if not math.isfinite(largest):
        largest = loss.lipschitz_for(domain.target_bound, LIMIT_MARGIN)
    return float(largest) * domain.row_norm


def typical_loss(domain: Domain, loss: Loss) -> float:
    """Return a bound on a record's loss where losses are compared: 3 for the logistic one, others as far above theirs.

    For numbers it is that of a residual twice a typical one, which is the target's deviation in estimated coordinates.
    """
    if loss.log_link:
        return 3.0
    if loss.task == "classification":
        without_slopes = math.log(loss.n_outputs) if loss.n_outputs > 1 else float(value(loss, 0.0, 1.0))
        return 3.0 * (without_slopes / math.log(2.0))
    residual = 2.0 * (1.0 if domain.typical is not None else loss.typical_slope(domain.target_bound))
    return float(value(loss, residual, 0.0))


def typical_step(domain: Domain, loss: Loss, budget: Budget) -> float:
    """Return one over the curvature of a typical row; without noise, of the longest one."""
    if not budget.is_private:
        return 1.0 / gradient_smoothness(loss, domain)
    rho = typical_row_norm(domain)
    if loss.task == "regression":
        rho = min(domain.row_norm, STEEP * rho)
    return 1.0 / (float(loss.typical_curvature(domain.target_bound)) * rho**2)


def typical_coordinate_step(domain: Domain, loss: Loss) -> float:
    """Return the largest curvature over a typical one: what steps by the largest are too short by."""
    return float(loss.smoothness / loss.typical_curvature(domain.target_bound))
