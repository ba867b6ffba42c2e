"""The composition that ``solver="whitened"`` stands for where targets are numbers: settings from public facts alone.

Facts, signal J and gap: as in ``whitened_defaults``.

``Declared`` below J = 25
    There is nothing to see: the shape would cost more than it shows. Averaged gradient steps in declared coordinates
    with a large constant feature, so that the intercept is learned first.
``row_norm`` 0.8, ``relative_clip`` 1.05 (J/100)^(1/4), 3 Newton steps
    Rows longer than 0.8 sqrt(p) standard deviations are shrunk, residuals clipped at about one standard deviation, more
    where the noise allows (skewed targets want it). 2 to 5 steps are the same within noise. Noise is filtered by its
    likelihood in each direction (``newton``).
From J = 1000 on: limits on rows times (J/1000)^(1/4)
    So that the model tends to least squares as signal grows. Gap at epsilon 4 / 16 / 64 / 256, mean of six tables:
    -.002 / -.007 / -.010 / -.011 without, -.004 / -.012 / -.015 / -.016 with; the largest at 256 is .011 without, .003
    with. Below J = 1000, and where n is private, nothing changes.
"""

import math
from dataclasses import replace

from discreet.bounds import Domain
from discreet.budget import Budget
from discreet.losses.base import Loss
from discreet.solvers.declared import Declared
from discreet.solvers.gd import GradientDescent
from discreet.solvers.newton import NewtonDescent
from discreet.solvers.public_signal import signal
from discreet.solvers.whitened import LENGTHS, Whitened

NUMBERS = {"mean_share": 0.05, "scale_share": 0.10, "target_share": 0.05, "moment_share": 0.30}
LIMIT_NEWTON = 100
PLAIN_RESIDUAL = 0.2
RELAXED = 1000.0
LARGEST = 100.0


def newton_for(domain: Domain, loss: Loss, budget: Budget) -> Whitened:
    """Return filtered Newton steps; many without noise where Huber's loss needs them."""
    if not budget.is_private:
        inner = NewtonDescent(n_steps=4 if loss.quadratic else LIMIT_NEWTON, floor=1e-9)
    else:
        inner = NewtonDescent(relative_clip=residual_clip(domain, budget))
    wide = relaxed(domain, budget)
    stage = Whitened(inner, constant=None, relative_row_norm=0.8 * wide, calibrate_probabilities=False, **NUMBERS)
    return replace(stage, lengths=LENGTHS * wide)


def plain_numbers(domain: Domain, budget: Budget) -> Declared:
    """Return short, averaged steps in declared coordinates."""
    inner = GradientDescent(
        plain_steps(domain, budget), relative_step=3.0, relative_clip=PLAIN_RESIDUAL, average="tail", radius=LARGEST
    )
    return Declared(inner, constant=1.0 / plain_length(domain, budget))


def plain_length(domain: Domain, budget: Budget) -> float:
    """Return the features' length in units of the constant's where the signal is weak."""
    return min(2.0, max(0.3, 0.25 * signal(domain, budget)))


def plain_steps(domain: Domain, budget: Budget) -> int:
    """Return as many gradients as the signal bears."""
    return int(min(40, max(10, round(2.0 * signal(domain, budget)))))


def relaxed(domain: Domain, budget: Budget) -> float:
    """Return what limits on rows are multiplied by: the fourth root of a known signal beyond J = 1000."""
    if domain.n is None or not budget.is_private:
        return 1.0
    return max(1.0, math.sqrt(math.sqrt(signal(domain, budget) / RELAXED)))


def residual_clip(domain: Domain, budget: Budget) -> float:
    """Return the clip of residuals, in standard deviations of the target."""
    return min(6.0, max(0.75, 1.05 * math.sqrt(math.sqrt(signal(domain, budget) / 100.0))))
