"""The composition that ``solver="whitened"`` stands for: every number from public facts alone, with its reason.

Facts: n, the columns p (with the intercept), mu (the budget as Gaussian DP), the relation's factor a, the loss; the
signal J that they make is ``public_signal``'s. "Gap" is 0 for the non-private model and 1 for the trivial predictor:
the mean of the gaps in accuracy and AUC, or of R^2. Figures are means over public tables in floating-point sketches at
epsilon 0.1 / 0.5 / 1 / 4; differences below 0.015 are noise. Rules for classes: ``whitened_classes``; for numbers:
``whitened_numbers``.

A count, where n is private: .02 of mu^2
    One number with sensitivity 1 needs no more.
Public moments: the plain form up to J = 22, in their coordinates
    With scales that fit, the plain form is good for longer. Accuracy and R^2 on 1,000 rows of 20 correlated columns in
    ranges 4 to 20 times too wide, seeds 100 to 115, at J = 11.5 / 17 / 27 / 42: plain .741 / .745 / .749 / .750 and .36
    / .46 / .54 / .58, full .719 / .737 / .753 / .768 and .18 / .41 / .55 / .59; without public moments .711 / .737 /
    .752 / .766 and .18 / .33 / .50 / .56. A public covariance instead of scales: full .700 / .732 / .758 / .773.
"""

from discreet.bounds import Domain
from discreet.budget import Budget
from discreet.losses.base import Loss
from discreet.solvers.base import Solver
from discreet.solvers.declared import WIDEST as WIDEST  # also for those who ask here
from discreet.solvers.declared import is_wide
from discreet.solvers.public_signal import signal
from discreet.solvers.whitened_classes import classes_for
from discreet.solvers.whitened_numbers import (
    LEAST_TARGET_SIGNAL,
    newton_for,
    plain_numbers,
    sees_numbers,
    target_signal,
)
from discreet.solvers.whitened_wide import wide_steps

PLAIN_CLASSES = 10.0
PLAIN_WITH_PUBLIC_MOMENTS = 22.0


def whitened_for(domain: Domain, loss: Loss, budget: Budget, *, corners: bool = False) -> Solver:
    """Return the composition that public facts suggest: steps for classes, Newton steps for numbers.

    ``corners``: the penalty has some, and is followed on standardized rows only.
    """
    numbers = loss.task == "regression"
    form = form_for(domain, budget, numbers=numbers)
    if form == "wide":
        return wide_steps(domain, loss, budget)
    if not numbers:
        return classes_for(domain, loss, budget, form)
    return plain_numbers(domain, budget) if form == "plain" else newton_for(domain, loss, budget, corners=corners)


def form_for(domain: Domain, budget: Budget, *, numbers: bool) -> str:
    """Return ``wide`` (where there is noise to shrink rows for), ``plain``, ``diagonal`` or ``full``."""
    weak = numbers and target_signal(domain, budget) < LEAST_TARGET_SIGNAL
    if is_wide(domain) and budget.is_private and not budget.is_pure and not weak:
        return "wide"
    if not (sees_numbers(domain, budget) if numbers else signal(domain, budget) >= PLAIN_CLASSES):
        return "plain"
    if domain.moments is not None and signal(domain, budget) < PLAIN_WITH_PUBLIC_MOMENTS:
        return "plain"
    return "diagonal" if is_wide(domain) else "full"
