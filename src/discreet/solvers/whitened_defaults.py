"""The composition that ``solver="whitened"`` stands for: every number from public facts alone, with its reason.

Facts: n, the columns p (with the intercept), mu (the budget as Gaussian DP), the relation's factor a, the loss; the
signal J that they make is ``public_signal``'s. "Gap" is 0 for the non-private model and 1 for the trivial predictor:
the mean of the gaps in accuracy and AUC, or of R^2. Figures are means over public tables in floating-point sketches at
epsilon 0.1 / 0.5 / 1 / 4; differences below 0.015 are noise. Rules for classes: ``whitened_classes``; for numbers:
``whitened_numbers``.

A count, where n is private: .02 of mu^2
    One number with sensitivity 1 needs no more.
"""

from discreet.bounds import Domain
from discreet.budget import Budget
from discreet.losses.base import Loss
from discreet.solvers.base import Solver
from discreet.solvers.declared import WIDEST as WIDEST  # also for those who ask here
from discreet.solvers.declared import is_wide
from discreet.solvers.public_signal import signal
from discreet.solvers.whitened_classes import classes_for
from discreet.solvers.whitened_numbers import newton_for, plain_numbers, sees_numbers
from discreet.solvers.whitened_wide import wide_classes

PLAIN_CLASSES = 10.0


def whitened_for(domain: Domain, loss: Loss, budget: Budget) -> Solver:
    """Return the composition that public facts suggest: steps for classes, Newton steps for numbers."""
    numbers = loss.task == "regression"
    form = form_for(domain, budget, numbers=numbers)
    if form == "wide":
        return wide_classes(domain, loss, budget)
    if not numbers:
        return classes_for(domain, loss, budget, form)
    return plain_numbers(domain, budget) if form == "plain" else newton_for(domain, loss, budget)


def form_for(domain: Domain, budget: Budget, *, numbers: bool) -> str:
    """Return ``wide`` (classes, where there is noise to shrink rows for), ``plain``, ``diagonal`` or ``full``."""
    if is_wide(domain) and not numbers and budget.is_private:
        return "wide"
    if not (sees_numbers(domain, budget) if numbers else signal(domain, budget) >= PLAIN_CLASSES):
        return "plain"
    return "diagonal" if is_wide(domain) else "full"
