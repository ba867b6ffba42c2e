"""What ``"gd"``, ``"sgd"``, ``"svrg"`` and ``"agd"`` stand for: the solver inside a stage that estimates the shape.

Public facts in, a composition out. J is the signal of ``whitened_defaults``; p counts the intercept. Excess losses are
means over three noise seeds (not the seeds that are reported) of four problems of 20,000 x 20, labels and numbers, with
even and with uneven columns, zero_out, at epsilon 0.1 / 1 / 4. Figures of the finished rules: ``docs/experiments.md``.

``Whitened`` where the second moment can be estimated and the penalty is L2 or none
    Excess of the same steps in declared coordinates: .050 / .023 / .018 (labels, uneven), in whitened ones .009 / .0003
    / .0001. Below the signal at which nothing can be estimated: ``Declared``, with a large constant.
Declared coordinates without a stage
    For other penalties, losses whose target cannot move, labels of sparse or very wide records, pure budgets, and
    without noise. Numbers of sparse or very wide records: the steps of ``whitened_wide``, in rows of typical length.
    Where a penalty has corners and K = n mu / (a p) is below 4, steps are (K / 4)^2 as long. Excess of gd with L1 at
    epsilon .1 / 1 / 4, where 1 is no columns, whole steps and these: madelon 3.1 / 1.9 / 1.7 and 1.00 / 1.00 / 1.12,
    1,000 x 1,000 numbers 1.7 / 1.15 / 1.08 and 1.00 / 1.00 / 1.00, 1,000 x 100 labels 1.6 / .90 / .45 and 1.00 / .96 /
    .44. svrg, of the same length (three seeds): 1,000 x 100 labels 28 / 1.6 / .43 and .99 / .86 / .43, numbers 29 / .84
    / .56 and 1.00 / .83 / .56; 1,000 x 500 labels 28 / 2.4 / .93 and 1.00 / 1.00 / .96.
Pure budgets: T = 0.25 (n epsilon / (a sqrt(p)))^0.6 steps within [2, 150], as long as declared rows allow
    T answers cost T / z, not sqrt(T) / z, so few steps are worth it. Where T would be below 2, the two steps are (T /
    2)^3 as long. Clips are in L1, where a row is up to p long: clips for L2 lengths left slopes of 1 / sqrt(p), and
    margins far too sure of themselves. A step for typical rows is too long for equal columns. Excess at epsilon .1 / 1
    / 4 of gd on 5,000 x 20 (replace_one, three seeds) with 8 sqrt(I) steps and L2 clips, and so: labels, even columns
    26 / 35 / 18 and .90 / .54 / .09, equal ones 8 / 8 / 6 and .40 / .25 / .22; numbers, even 19 / 20 / 5 and .90 / .53
    / .04. With a private n that is 10,000 in this rule, labels of 1,000 rows had 4 / 2.5 / 2.4. Wide records keep the
    rule above: words of 3,000 x 2,100 have .97 of the trivial loss at epsilon 4, and 1.00 by this one.
``n_steps`` 5.2 sqrt(p) within [16, 40], for classes 2.5 sqrt(p) where K = n mu / (a p) is below 30; momentum 0.7, the
mean of the last half
    Half as many without a mean leave .012 / .0003 / .0001 on the same problem, twice as many without momentum .021 /
    .0006 / .0001: momentum brings the flat directions along, the mean takes the noise out. Fewer with little signal:
    gap at epsilon .5 / 1, mean of German credit and of 2,000 to 4,000 rows of electricity, credit default, bank and
    IPUMS (8 splits), with 5.2, 3 and 2 sqrt(p) steps: gd .40 / .22, .31 / .19 and .30 / .18, sgd .44 / .22 and .41 /
    .17 with 3.
``relative_clip``, labels 0.8 |f'(0)|; numbers 0.4 (J / 800)^(1/4)
    In whitened coordinates a row has about the length sqrt(p), a residual the deviation 1 at first. Labels are brought
    back to scale by one more gradient (``probability_calibration``), so their clip may bite.
``sampling_probability`` of sgd: q / (1 - q) = 4 n mu^2 / (T p)
    Privacy noise in a mean gradient has the variance T p (C / (n mu))^2 for every q, sampled or not, to first order: a
    smaller sample saves work, not privacy. A sample adds (1 - q) / (q n) C^2. The rule makes that a quarter of the
    former; q tends to 1 as the budget grows, and sgd to gd.
Epochs of svrg: 8 anchors and 3 steps from each on 0.3 of the records with momentum; 6 and 2 without below J = 250; 8
anchors and 1 step below J = 70
    A change's noise is felt where signal is weak: at J = 45 the first leaves 20 times the excess of the last, and at
    J = 800 a hundredth (numbers, uneven).
Rounds of agd: J / 12 within [12, 60], the mean of the last half; a clip twice that of gd, steps up to 1
    A tighter clip turns the gradient away from where the losses that are compared descend; for labels, which no further
    gradient brings back to scale, it widens with (J / 400)^(1/3) from there on. Excess over the trivial model's at
    epsilon .1 / 1 / 4, six seeds, with half as many rounds and the last iterate, and now: labels even .14 / .027 / .011
    and .08 / .009 / .006, uneven .40 / .026 / .004 and .30 / .009 / .001, numbers even .14 / .010 / .004 and .025 /
    .0008 / .0003, uneven .24 / .007 / .002 and .20 / .0006 / .0001.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from discreet.bounds import Domain
from discreet.budget import Budget
from discreet.losses.base import Loss
from discreet.penalties.base import Penalty
from discreet.solvers.base import Solver
from discreet.solvers.declared import Declared, is_wide
from discreet.solvers.default_rules import (
    count_of,
    mu_for,
    step_count,
    typical_clip,
    typical_row_norm,
    typical_step,
)
from discreet.solvers.gd import GradientDescent
from discreet.solvers.gradient_loop import TYPICAL_SLOPE, slope_at_zero
from discreet.solvers.signal import Signal
from discreet.solvers.stage import Stage
from discreet.solvers.whitened import Whitened

LARGEST = 100.0
"""The radius of the ball that steps stay in: margins of a hundred are certain of everything."""
SEEN_CLASSES, SEEN_NUMBERS, SEEN_TARGET, SEEN_WITH_MOMENTS = 10.0, 5.0, 40.0, 22.0
"""The signal per row (for a target: of one number) from which coordinates are worth estimating."""
CALIBRATED = 20.0
"""The signal per row from which a gradient more, for calibration, is worth its part of the budget."""
LEAST_STEPS, MOST_STEPS, STEPS_PER_ROOT = 16, 40, 5.2
CLEAR, FEWER_PER_ROOT = 30.0, 2.5
NUMBERS_CLIP, NUMBERS_SIGNAL, LEAST_CLIP, MOST_CLIP = 0.4, 800.0, 0.15, 4.0
SAMPLED = 4.0
"""How many times the sampling noise the privacy noise is, in variance."""
SHORT_EPOCHS, SINGLE_STEPS = 250.0, 70.0
WHOLE_STEPS, COUNTED_STEPS, WIDE_SIGNAL = 4.0, 16.0, 100.0
"""The signal per coefficient (of counts, whose slopes are long), and of one number for wide records, below which steps
are short: they would find noise."""
PURE_STEPS, LEAST_PURE, MOST_PURE, PURE_NUMBERS = 0.25, 2, 150, 0.3


def staged(
    domain: Domain, loss: Loss, penalty: Penalty, budget: Budget, own: Callable[[GradientDescent], Solver]
) -> Stage | None:
    """Return the stage around the solver that ``own`` makes of full-batch steps; None where none is worth it."""
    numbers = loss.task == "regression"
    known = budget.is_private and not budget.is_pure and penalty.ridge and not (numbers and not loss.movable_target)
    form = form_for(domain, budget, numbers=numbers) if known else ""
    if form not in ("plain", "full", *(("wide",) if numbers else ())):
        return None
    if form != "full":
        few = plain_numbers(domain, budget) if numbers else plain_classes(domain, loss, budget)
        plain = wide_steps(domain, loss, budget) if form == "wide" else few
        assert isinstance(plain.solver, GradientDescent)
        return replace(plain, solver=own(plain.solver))
    per_root = STEPS_PER_ROOT if numbers or Signal.of(domain, budget).per_coefficient >= CLEAR else FEWER_PER_ROOT
    steps = round(per_root * math.sqrt(domain.n_features))
    inner = GradientDescent(
        n_steps=min(MOST_STEPS, max(LEAST_STEPS, steps)),
        relative_clip=clip_for_signal(domain, loss, budget),
        momentum=0.7,
        average="tail",
        radius=LARGEST,
    )
    signal = Signal.of(domain, budget).per_row
    constant, calibrated = min(2.0, max(0.5, 24.0 / signal)), not numbers and signal >= CALIBRATED
    return Whitened(own(inner), constant=constant, calibrate_probabilities=calibrated)


def form_for(domain: Domain, budget: Budget, *, numbers: bool) -> str:
    """Return ``wide`` (where there is noise to shrink rows for), ``plain``, ``diagonal`` or ``full``."""
    signal = Signal.of(domain, budget)
    seen = signal.per_row >= (SEEN_NUMBERS if numbers else SEEN_CLASSES)
    weak = numbers and signal.total / math.sqrt(domain.n_outputs) < SEEN_TARGET
    if is_wide(domain) and budget.is_private and not budget.is_pure and not weak:
        return "wide"
    if weak or not seen or (domain.moments is not None and signal.per_row < SEEN_WITH_MOMENTS):
        return "plain"
    return "diagonal" if is_wide(domain) else "full"


def plain_classes(domain: Domain, loss: Loss, budget: Budget) -> Declared:
    """Return few short steps in declared coordinates, with a large constant where there is little signal."""
    signal = Signal.of(domain, budget).per_row
    length = min(2.0, max(0.05, 0.27 * (signal - 1.0)))
    inner = GradientDescent(
        8, momentum=0.7, relative_step=0.75 * min(1.0, signal / 4.0), relative_clip=slope_at_zero(loss), radius=LARGEST
    )
    return Declared(inner, constant=1.0 / length)


def wide_steps(domain: Domain, loss: Loss, budget: Budget) -> Declared:
    """Return safe steps with Nesterov's momentum for sparse or very wide records, whose rows have their typical length.

    A row that is no longer than a typical one has the noise of its own length only, never that of all p columns: the
    signal is that of one number.
    """
    signal, numbers = Signal.of(domain, budget).total / math.sqrt(domain.n_outputs), loss.task == "regression"
    least, each = (30, 1.15) if numbers else (8, 2.2)
    inner = GradientDescent(
        n_steps=int(min(200, max(least, round(each * math.sqrt(signal))))),
        momentum="nesterov",
        relative_clip=0.2 if numbers else 0.5 * slope_at_zero(loss),
        relative_step=min(1.0, (signal / WIDE_SIGNAL) ** 2),
        radius=LARGEST,
    )
    return Declared(inner, constant=max(0.3, 30.0 / signal))


def unstaged(domain: Domain, loss: Loss, penalty: Penalty, budget: Budget) -> GradientDescent:
    """Return steps in declared coordinates with Nesterov's momentum, free: T travel as far as T^2 / 4 plain ones."""
    if budget.is_private and budget.is_pure and not is_wide(domain):
        return pure_steps(domain, loss, budget)
    made = GradientDescent(step_count(domain, budget), momentum="nesterov", restart=not budget.is_private)
    whole = COUNTED_STEPS if loss.log_link else WHOLE_STEPS
    short = min(1.0, (Signal.of(domain, budget).per_coefficient / whole) ** 2)
    return made if short == 1 else replace(made, step_size=short * typical_step(domain, loss, budget))


def pure_steps(domain: Domain, loss: Loss, budget: Budget) -> GradientDescent:
    """Return few steps for Laplace noise: as long as declared rows allow, shorter where there is little signal."""
    columns = domain.n_features * domain.n_outputs
    n = count_of(domain)
    steps = PURE_STEPS * (n * budget.epsilon / (budget.neighbors.sum_factor * math.sqrt(columns))) ** 0.6
    short = min(1.0, steps / LEAST_PURE) ** 3
    slope = typical_clip(domain, loss, budget) / typical_row_norm(domain)
    longest = min(float(np.sum(domain.feature_bounds)), math.sqrt(domain.n_features) * domain.row_norm)
    return GradientDescent(
        n_steps=int(min(MOST_PURE, max(LEAST_PURE, round(steps)))),
        clip=(1.0 if loss.task == "classification" else PURE_NUMBERS) * slope * longest,
        step_size=short / (float(loss.typical_curvature(domain.target_bound)) * domain.row_norm**2),
        momentum="nesterov",
    )


def plain_numbers(domain: Domain, budget: Budget) -> Declared:
    """Return short steps in declared coordinates, as many as the signal bears, their second half averaged."""
    signal = Signal.of(domain, budget)
    steps, short = int(min(40, max(10, round(2.0 * signal.per_row)))), min(1.0, signal.total / SEEN_TARGET) ** 2
    inner = GradientDescent(steps, relative_step=3.0 * short, relative_clip=0.2, average="tail", radius=LARGEST)
    return Declared(inner, constant=1.0 / min(2.0, max(0.3, 0.25 * Signal.of(domain, budget).per_row)))


def clip_for_signal(domain: Domain, loss: Loss, budget: Budget) -> float:
    """Return the clip in units of a typical row's length."""
    if loss.task != "regression":
        return TYPICAL_SLOPE * slope_at_zero(loss)
    wide = math.sqrt(math.sqrt(Signal.of(domain, budget).per_row / NUMBERS_SIGNAL))
    return min(MOST_CLIP, max(LEAST_CLIP, NUMBERS_CLIP * wide))


def sampling_for(domain: Domain, budget: Budget, n_steps: int) -> float:
    """Return q, at which the sampling noise is a quarter of the privacy noise."""
    if not budget.is_private:
        return 1.0
    mu = mu_for(domain, budget) / budget.neighbors.sum_factor
    odds = SAMPLED * count_of(domain) * mu**2 / (n_steps * domain.n_features * domain.n_outputs)
    return odds / (1.0 + odds)


class Epochs(NamedTuple):
    """svrg's numbers of anchors and of steps from each, its samples and its momentum."""

    n_epochs: int
    n_inner: int
    sampling_probability: float
    momentum: float


def epochs_for(domain: Domain, budget: Budget) -> Epochs:
    """Return what svrg takes at this signal."""
    found = Signal.of(domain, budget).per_row
    if found < SINGLE_STEPS:
        return Epochs(8, 1, 1.0, 0.0)
    return Epochs(6, 2, 0.3, 0.0) if found < SHORT_EPOCHS else Epochs(8, 3, 0.3, 0.7)


def rounds_for(domain: Domain, budget: Budget) -> int:
    """Return the number of rounds that agd's budget is divided by."""
    return int(min(60, max(12, round(Signal.of(domain, budget).per_row / 12.0))))


def wider_clip(steps: GradientDescent, domain: Domain, loss: Loss, budget: Budget) -> float | None:
    """Return agd's clip: twice that of full-batch steps, and more for labels where there is signal."""
    if steps.relative_clip is None:
        return None
    wide = max(1.0, (Signal.of(domain, budget).per_row / 400.0) ** (1 / 3)) if loss.task == "classification" else 1.0
    return 2.0 * wide * steps.relative_clip
