"""What a solver's name stands for: one table of settings, a line each with its reason, and the compositions they make.

Public facts in, a solver out; no record is looked at. The signal N = n mu / a and its powers of p are ``signal``'s.
``python -m benchmarks tuned`` measures these settings against tuned ones.

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
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from scipy.optimize import brentq
from scipy.special import lambertw

from discreet.bounds import Domain
from discreet.budget import Budget
from discreet.errors import Unsupported
from discreet.losses.base import Loss, gradient_smoothness, slope_at_zero, value
from discreet.penalties.base import Penalty
from discreet.solvers.base import Solver
from discreet.solvers.coordinates import Preconditioned, is_wide
from discreet.solvers.signal import PRIVATE_N, Signal

if TYPE_CHECKING:
    from discreet.solvers.cd import CoordinateDescent
    from discreet.solvers.gcd import GreedyCoordinateDescent
    from discreet.solvers.gd import GradientDescent
    from discreet.solvers.perturbation import OneShot

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
            numbers=lambda s: _steps(5.2, s),
            reason="wide tables have more directions that are not quite white; fewer where each step is mostly noise"),
    Setting("whitened.momentum", 0.7,
            reason="brings flat directions along; the mean of the last half takes noise out"),
    Setting("whitened.clip", TYPICAL_SLOPE, numbers=lambda s: within(0.15, 0.4 * (s.per_row / 800) ** 0.25, 4.0),
            reason="of the slope at 0; one more gradient brings labels back to scale, so their clip may bite"),
    Setting("whitened.constant", lambda s: within(0.5, 24 / s.per_row, 2),
            reason="an intercept is learned first where it is large"),
    Setting("whitened.calibrate", lambda s: s.per_row >= 20, numbers=0.0,
            reason="a gradient is worth its part of the budget"),
    # gradient steps in declared coordinates, with little signal
    Setting("declared.n_steps", 8.0, numbers=lambda s: within(10, 2 * s.per_row, 40),
            reason="as many as the signal bears"),
    Setting("declared.step", lambda s: 0.75 * min(1.0, s.per_row / 4),
            numbers=lambda s: 3 * min(1.0, s.total / 40) ** 2,
            reason="long steps would find noise"),
    Setting("declared.clip", 1.0, numbers=0.2, reason="of the slope at 0"),
    Setting("declared.length", lambda s: within(0.05, 0.27 * (s.per_row - 1), 2),
            numbers=lambda s: within(0.3, 0.25 * s.per_row, 2),
            reason="of features over the constant: without signal the constant is all"),
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
            reason="more steps divide the budget among them"),
    Setting("plain.step", lambda s: min(1.0, s.per_coefficient / 4) ** 2, reason="long steps would find noise"),
    Setting("pure.n_steps", lambda s: 0.25 * s.single**0.6,
            reason="T answers cost T / z, not sqrt(T) / z: few are worth it; below 2 they are shorter"),
    Setting("pure.clip", 1.0, numbers=0.3, reason="of a typical slope, for the longest row in L1"),
    # what differs by gradient method
    Setting("sgd.odds", lambda s: 4 * s.single**2 / (s.n * s.coefficients),
            reason="over T, of joining a sample: sampling noise is then a quarter of the privacy noise, in variance"),
    Setting("svrg.anchors", lambda s: 6 if 70 <= s.per_row < 250 else 8,
            reason="a change's noise is felt where signal is weak"),
    Setting("svrg.inner", lambda s: 1 + (s.per_row >= 70) + (s.per_row >= 250), reason="the same"),
    Setting("agd.rounds", lambda s: within(12, s.per_row / 12, 60), reason="a round is a gradient and a choice"),
    Setting("agd.clip", lambda s: 2 * beyond(400, s.per_row) ** (1 / 3), numbers=2.0,
            reason="of gd's: a tighter one turns the gradient away from where the losses that are compared descend"),
    # coordinate steps
    Setting("cd.passes", lambda s: within(4, 10 * (s.per_row / 85) ** 0.4, 30),
            numbers=lambda s: within(10, 24 * (s.per_row / 85) ** (1 / 3), 50),
            reason="all iterates of labels are averaged"),
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
    Setting("output.clip", lambda s: within(0.35, math.sqrt(s.single_per_row / 16_000), 1),
            numbers=lambda s: within(0.15, 0.6 * (s.single_per_row / 10_000) ** 0.25, 6),
            reason="its noise is larger"),
    Setting("one_shot.lengths", lambda s: beyond(300, s.single_per_row) ** 0.125,
            reason="rows may be longer as signal makes their bias matter"),
    Setting("one_shot.least_scale", lambda s: within(0.002, 20 / s.single_per_row, 0.1),
            reason="with signal narrow columns stand out from noise"),
    Setting("one_shot.curvature", 0.2, numbers=1.0, reason="mean curvature of a loss"),
    Setting("one_shot.margins", 4.0, numbers=2.0, reason="variance of a good model's margins"),
    Setting("output.margins", 1.0, numbers=0.5, reason="the same: what is left of it where a model is mostly noise"),
    Setting("one_shot.shrinkage", 7.5, numbers=60.0, reason="how strongly objective perturbation shrinks noise"),
)}  # fmt: skip

SEEN_CLASSES, SEEN_NUMBERS, SEEN_TARGET, SEEN_WITH_MOMENTS = 10.0, 5.0, 40.0, 22.0
"""The signal per row (for a target: of one number) from which coordinates are worth estimating for gradient steps."""
SEEN_BY_CD, SEEN_BY_GCD, SEEN_SPARSE = 10.0, 40.0, 20.0
"""The signal per row from which scales are worth estimating for coordinate steps, and of sparse records."""
COUNTED_STEPS = 16.0
"""The signal per coefficient below which steps on counts, whose slopes are long, are short."""
SHIFT_NOISE, SEEN_SHIFT = 4.5, 150.0
"""The noise of the mean of residuals that moves an intercept, which has a twentieth of the budget, over that of a mean
with all of it; and the signal from which it is worth asking for."""
ROW = 1.3
"""Coordinates are clipped one by one, so that shrinking rows saves no noise, but it bounds the curvature."""
CURVATURE_SHARE = 0.5
"""The curvature's part of objective perturbation's price is at most this part of epsilon."""


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

    def value(self, name: str) -> float:
        """Return a setting's value for these facts."""
        return SETTINGS[name].value(self.signal, is_regression=self.is_regression)

    def count(self, name: str) -> int:
        """Return a setting's value as a whole number."""
        return round(self.value(name))


# --- gradient methods ----------------------------------------------------------------------------------


def descent(facts: Facts, method: "Callable[[GradientDescent], Solver]") -> Solver | None:
    """Return the method that full-batch steps make, in the coordinates that are worth it; None where none are."""
    if not facts.can_recode or not facts.penalty.ridge:
        return None
    coordinates = _coordinates(facts)
    if coordinates == "full":
        return whitened_steps(facts, method)
    if coordinates == "wide":
        return wide_steps(facts, method) if facts.is_regression else None
    return few_steps(facts, method) if coordinates == "declared" else None


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


def whitened_steps(facts: Facts, method: "Callable[[GradientDescent], Solver]") -> Preconditioned:
    """Return steps in whitened coordinates, the mean of the last half."""
    from discreet.solvers.gd import GradientDescent

    steps = GradientDescent(
        n_steps=facts.count("whitened.n_steps"),
        relative_clip=facts.value("whitened.clip") * facts.slope,
        momentum=facts.value("whitened.momentum"),
        average="tail",
        radius=LARGEST,
    )
    calibrate, constant = bool(facts.value("whitened.calibrate")), facts.value("whitened.constant")
    return Preconditioned(method(steps), constant=constant, calibrate=calibrate, shift_clip=facts.shift_clip)


def few_steps(facts: Facts, method: "Callable[[GradientDescent], Solver]") -> Preconditioned:
    """Return few short steps in declared coordinates, with a large constant where there is little signal."""
    from discreet.solvers.gd import GradientDescent

    steps = GradientDescent(
        n_steps=facts.count("declared.n_steps"),
        momentum=0.0 if facts.is_regression else facts.value("whitened.momentum"),
        average="tail" if facts.is_regression else "last",
        relative_step=facts.value("declared.step"),
        relative_clip=facts.value("declared.clip") * facts.slope,
        radius=LARGEST,
    )
    return Preconditioned(method(steps), "declared", constant=1.0 / facts.value("declared.length"))


def wide_steps(facts: Facts, method: "Callable[[GradientDescent], Solver]") -> Preconditioned:
    """Return safe steps with Nesterov's momentum for sparse or very wide records, whose rows have a measured length.

    A row that is no longer than a typical one has the noise of its own length only, never that of all p columns.
    """
    from discreet.solvers.gd import GradientDescent

    steps = GradientDescent(
        n_steps=facts.count("wide.n_steps"),
        momentum="nesterov",
        relative_clip=facts.value("wide.clip") * facts.slope,
        relative_step=facts.value("wide.step"),
        radius=LARGEST,
    )
    return Preconditioned(method(steps), "declared", constant=facts.value("wide.constant"))


def plain_steps(facts: Facts) -> "GradientDescent":
    """Return steps in plain declared coordinates with Nesterov's momentum: T travel as far as T^2 / 4 plain ones."""
    from discreet.solvers.gd import GradientDescent

    domain, loss, budget = facts.domain, facts.loss, facts.budget
    if budget.is_private and budget.is_pure and not is_wide(domain):
        return _pure_steps(facts)
    steps = GradientDescent(step_count(domain, budget), momentum="nesterov", restart=not budget.is_private)
    short = facts.value("plain.step")
    if loss.log_link:
        short = min(1.0, facts.signal.per_coefficient / COUNTED_STEPS) ** 2
    return steps if short == 1 else replace(steps, step_size=short * typical_step(domain, loss, budget))


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


def gd(facts: Facts) -> Solver:
    """Return full-batch steps."""
    return descent(facts, lambda steps: steps) or plain_steps(facts)


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
        return StochasticGradientDescent(**vars(steps), sampling_probability=share)

    return descent(facts, sampled) or sampled(plain_steps(facts))


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
            momentum=facts.value("whitened.momentum") if inner > 2 else 0.0,
            anchor_share=0.8,
            relative_clip=steps.relative_clip,
            relative_step=steps.relative_step,
            radius=steps.radius,
        )

    recoded = descent(facts, in_epochs)
    if recoded is not None:
        return recoded
    steps = plain_steps(facts)
    if steps.clip is not None:  # a pure budget
        return VarianceReducedDescent(steps.n_steps, 1, clip=steps.clip, step_size=steps.step_size)
    epochs, step = round(within(3, steps.n_steps**2 / 2000, 20)), steps.step_size
    if loss.movable_target:  # changes of residuals are not cut off as gradients are: steps for the longest rows
        step = min(step or typical_step(domain, loss, budget), 1.0 / gradient_smoothness(loss, domain))
    batch = float(min(domain.n, max(BATCH, domain.n / 10)))
    return VarianceReducedDescent(epochs, 6, batch_size=batch, step_size=step, momentum="nesterov")


def agd(facts: Facts) -> Solver:
    """Return few rounds in estimated coordinates, many cheap ones in declared coordinates: steepest descent needs many.

    There steps move a margin of a typical row by up to 2.
    """
    from discreet.solvers.agd import AdaptiveDescent

    def in_rounds(steps: "GradientDescent") -> Solver:
        clip = None if steps.relative_clip is None else facts.value("agd.clip") * steps.relative_clip
        return AdaptiveDescent(n_rounds=facts.count("agd.rounds"), relative_clip=clip, largest_step=1.0, average="tail")

    plain = AdaptiveDescent(largest_step=2.0 / typical_row_norm(facts.domain), average="tail")
    return descent(facts, in_rounds) or plain


# --- coordinate methods ----------------------------------------------------------------------------------


def _recodes_coordinates(facts: Facts) -> bool:
    return facts.can_recode and facts.penalty.separable and facts.domain.n_outputs == 1


def _in_scales(facts: Facts, solver: Solver) -> Preconditioned:
    """Return coordinate steps where columns are alike: whitened with an L2 penalty or none, else standardized."""
    if facts.penalty.ridge and not is_wide(facts.domain) and solver.name == "cd":
        return Preconditioned(solver, calibrate=False, shift_clip=facts.shift_clip)
    return Preconditioned(solver, "diagonal", relative_row_norm=ROW, shift_clip=facts.shift_clip)


def cd(facts: Facts) -> Solver:
    """Return cyclic passes over recoded coordinates where there is signal, two short ones over declared ones."""
    from discreet.solvers.cd import CoordinateDescent
    from discreet.solvers.coordinate_geometry import Geometry

    if not _recodes_coordinates(facts):
        return plain_cd(facts)
    domain, loss, step = facts.domain, facts.loss, facts.value("cd.step")
    average = "uniform" if facts.penalty.ridge else "last"  # a mean of iterates has no exact zeros
    weak = facts.signal.per_row / SEEN_BY_CD
    if weak < 1:
        geometry = Geometry(relative_clip=TYPICAL_RMS * loss.typical_slope(domain.target_bound))
        few = CoordinateDescent(
            1, 2 * domain.n_features, geometry, min(weak**2, step), schedule="cyclic", average=average
        )
        return Preconditioned(few, "declared", constant=max(0.5, 1.0 / weak))
    rounds = 2 if facts.is_regression else 1
    passes = facts.count("cd.passes" if facts.penalty.ridge else "cd.corners")
    geometry = Geometry(relative_clip=facts.value("coordinate.clip"))
    inner = passes // rounds * domain.n_features
    return _in_scales(facts, CoordinateDescent(rounds, inner, geometry, step, schedule="cyclic", average=average))


def plain_cd(facts: Facts) -> "CoordinateDescent":
    """Return cyclic passes in two rounds, smoothness estimated from a tenth of the budget; more drown in noise."""
    from discreet.solvers.cd import CoordinateDescent
    from discreet.solvers.coordinate_geometry import Geometry

    domain, loss, budget = facts.domain, facts.loss, facts.budget
    p, slope = domain.n_features, 1.5
    if not budget.is_private:
        geometry = Geometry(clip=limit_clip(domain, loss) * math.sqrt(p))
        return CoordinateDescent(n_inner=LIMIT_STEPS * p, geometry=geometry, schedule="cyclic", average="last")
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


def gcd(facts: Facts) -> Solver:
    """Return choices among standardized coordinates where there is signal, among declared ones elsewhere."""
    from discreet.solvers.coordinate_geometry import Geometry
    from discreet.solvers.gcd import GreedyCoordinateDescent

    if facts.penalty.l1_l2 is None or not _recodes_coordinates(facts):
        return plain_gcd(facts)
    if facts.signal.per_row < SEEN_BY_GCD:
        geometry = Geometry(relative_clip=facts.value("gcd.few_clip"))
        few = replace(plain_gcd(facts), geometry=geometry, backtrack=True)
        return Preconditioned(few, "declared", measure=True)
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


def one_shot(facts: Facts, method: type[P]) -> "Preconditioned | P":
    """Return output or objective perturbation on standardized rows of length 1; by itself where these cannot be had.

    With noise s = a C / mu in each coordinate, C the clip, the sum's Hessian about H = k n / p in every direction, k
    the loss's mean curvature, and a good model's squared coefficients about m each, lambda is

    objective   the larger of (b s^2 / (m epsilon))^(1/3), where the price of a small lambda, a factor
                1 + 2 b / (lambda epsilon) on s^2 (b the largest curvature of a record), balances its bias
                lambda^2 m p / (2 H); of ridge's own optimum s^2 / (H m); and of what keeps the curvature's term to half
                of epsilon
    output      the argmin of (s / lambda)^2 + m (lambda / (H + lambda))^2, noise and bias of a coefficient
    """
    domain, loss, signal = facts.domain, facts.loss, facts.signal
    has_count = domain.n is not None and not domain.grouped
    is_hidden = domain.sparse and signal.single_per_row < SEEN_SPARSE
    if not facts.can_recode or not has_count or is_hidden or not facts.penalty.ridge:
        return method()
    clip = None if loss.n_outputs > 1 else facts.value(f"{method.name}.clip")  # clipped gradients of several are none
    solver = method(clip=clip, row_norm=1.0)
    rows, problem, lengths = replace(domain, row_norm=1.0), solver.problem(1.0, 1.0), facts.value("one_shot.lengths")
    noise = problem.bound_for(loss, rows) * signal.n / signal.single
    if method.name == "output":
        hessian = facts.value("one_shot.curvature") * signal.n / (domain.n_features * lengths**2)
        total = _output_strength(noise, hessian, facts.value("output.margins") * lengths**2)
    else:
        total = _objective_strength(facts, problem.perturbation_for(loss, rows).curvature, noise, lengths)
    solver = replace(solver, regularization=total / signal.n)
    least, shift = facts.value("one_shot.least_scale"), facts.shift_clip if method.name == "output" else None
    return Preconditioned(solver, "diagonal", lengths=lengths, least_scale=least, shift_clip=shift)


def _output_strength(noise: float, hessian: float, square: float) -> float:
    """Return the lambda at which s^2 (H + lambda)^3 = m H lambda^4: where the derivative of noise and bias is 0.

    At most exp(300), where no lambda is large enough for the noise.
    """

    def excess(log: float) -> float:
        return 2 * math.log(noise) + 3 * math.log(hessian + math.exp(log)) - math.log(square * hessian) - 4 * log

    return math.exp(300.0 if excess(300.0) > 0 else float(brentq(excess, -300.0, 300.0)))


def _objective_strength(facts: Facts, curvature: float, noise: float, lengths: float) -> float:
    rank, square = max(1, facts.domain.n_outputs - 1), lengths**2
    by_price: float = (curvature * noise**2 / (facts.budget.epsilon * facts.value("one_shot.margins") * square)) ** (
        1 / 3
    )
    by_noise = facts.value("one_shot.shrinkage") * noise**2 * facts.domain.n_features / facts.signal.n
    return max(by_price, by_noise, least_strength(curvature, rank, CURVATURE_SHARE * facts.budget.epsilon))


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
    if not budget.is_private:
        return limit_clip(domain, loss)
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
