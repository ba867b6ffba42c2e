"""How far rows may count in full where effects are estimated, and when they are not estimated: public facts only.

``breadth`` q = sqrt(n / p) mu / a: a sampling error in units of the noise that steps with the whole budget would have,
for rows of length sqrt(p) and slopes of one deviation. Limits widen with signal:

``reach`` R times a typical row's length r: rows beyond it count less, with the weight min(R / r, slack (R / r)^2)
    Bounded slopes (logistic, Huber): .4 q, at least 1.5. Weights do not bias these estimates where the model holds.
    Where it does not, with far-out features, they move the target; but noise is in proportion to the reach, and that of
    the Hessian to its square. What is left is allowed for (``refinement.ALLOWED``).
    Other slopes (least squares, Poisson): chosen from noisy counts (``influence``), below a largest one.
    The Hessian's noise is in proportion to the square of the reach, which is therefore held below the root of .035
    (bounded slopes: .02) sharpness.
``slack`` 1.5
    With a weight of R / r, the largest whose gradients are no longer than R, the same table's target was 2.5 plain
    standard errors off at a reach of 1.55, and 4.2 with (R / r)^2: at the same noise. Beyond 1.5 R weights fall with
    the square, so that a record's Hessian is at most 1.5 times what its clip of sup f'' R^2 leaves: steps contract.
``leading`` 4 short steps before the Hessian, for counts and for three classes or more
    At a start that is 1.5 too low the curvature of a rare cell is a fifth of what it should be, and chords overshoot.
    Clipped steps make classes too certain: they start from .6 of the start (``class_refinement``).
``settling`` 1 + log2(q) / 1.5 steps, 2 to 8, between two Hessians
    Each brings the distance to the root down to about a third where the start is poor.
``sharpness`` n mu / (a_M p^1.5), a_M = sqrt(2) under ``replace_one``
    How far a Hessian in whitened coordinates stands out of its noise, with all of the budget. Below 30 there is too
    little signal for standard errors: nothing is released.
``steadiness`` n mu / (a p), for classes
    How little one step's noise moves a typical row's margin. Below 125 single steps overshoot the sigmoid, and so many
    effects are hidden that the rest cover too seldom (one slope, 500 rows at epsilon 3, 2,000 at 1, 200 at 10, under
    ``replace_one``: slopes covered in 91 to 94 % of the 60 to 89 % of fits that had a summary): nothing is released.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from discreet.accounting.gaussian import mu_of
from discreet.bounds import Domain
from discreet.budget import Budget
from discreet.losses.base import Loss
from discreet.parameters import Positive, check_fields
from discreet.penalties.base import Penalty
from discreet.solvers.default_rules import count_of
from discreet.solvers.registry import register_part

LEAST_SHARPNESS, LEAST_STEADINESS = 30.0, 125.0
LEAST_SETTLING, MOST_SETTLING, LEADING = 2, 8, 4
WIDEST = 256
LEAST_REACH, BOUNDED, SLACK = 1.5, 0.4, 1.5
SEEN, SEEN_BOUNDED = 0.035, 0.02
UNLIMITED = 1e3
FORECAST = "discreet forecast --effects, or forecast_effects(), says how many rows a standard error needs"
"""Of numbers and two classes."""


@register_part("Limits")
@dataclass(frozen=True)
class Limits:
    """How far rows (in typical lengths) and slopes (in deviations) count in full.

    Parameters
    ----------
    reach, slope : float
        Beyond these a row's weight falls, and a slope is clipped.

    Examples
    --------
    >>> from discreet.solvers import Limits
    >>> Limits(reach=3.0, slope=8.0).reach
    3.0
    """

    reach: Positive
    slope: Positive

    def __post_init__(self) -> None:
        check_fields(self)


def breadth(domain: Domain, budget: Budget) -> float:
    """Return q, infinite without privacy."""
    if not budget.is_private:
        return math.inf
    mu = mu_of(budget.epsilon, budget.delta)
    return math.sqrt(count_of(domain) / columns_of(domain)) * mu / budget.neighbors.sum_factor


def columns_of(domain: Domain) -> float:
    """Return p, for K outputs p K / 2: as with two classes, where entries of slopes are about sqrt(1 / K) each."""
    return domain.n_features * max(1.0, domain.n_outputs / 2.0)


def sharpness(domain: Domain, budget: Budget) -> float:
    """Return how far a Hessian stands out of its noise, infinite without privacy."""
    if not budget.is_private:
        return math.inf
    mu, factor = mu_of(budget.epsilon, budget.delta), math.sqrt(budget.neighbors.sum_factor)
    return float(count_of(domain) * mu / (factor * columns_of(domain) ** 1.5))


def steadiness(domain: Domain, budget: Budget) -> float:
    """Return how little one step's noise moves a typical row's margin, infinite without privacy."""
    if not budget.is_private:
        return math.inf
    mu = mu_of(budget.epsilon, budget.delta)
    return count_of(domain) * mu / (budget.neighbors.sum_factor * columns_of(domain))


def settling_for(domain: Domain, budget: Budget) -> int:
    """Return how many steps follow a Hessian before the next: the more signal, the nearer the root they must come."""
    q = breadth(domain, budget)
    return MOST_SETTLING if q >= 2.0**MOST_SETTLING else max(LEAST_SETTLING, round(math.log2(q) / 1.5) + 1)


def leading_for(loss: Loss) -> int:
    """Return how many short steps come before the Hessian: an exponential curvature at a poor start misleads."""
    return LEADING if loss.log_link or loss.softmax_link else 0


def hessians_for(loss: Loss) -> int:
    """Return how often the Hessian is estimated: once where it is the same everywhere."""
    return 1 if loss.quadratic else 3


def limits_for(domain: Domain, loss: Loss, budget: Budget) -> Limits:
    """Return the limits that public signal allows."""
    if not budget.is_private:
        return Limits(UNLIMITED, UNLIMITED)
    q = breadth(domain, budget)
    if math.isfinite(loss.lipschitz):
        return Limits(
            max(LEAST_REACH, min(BOUNDED * q, math.sqrt(SEEN_BOUNDED * sharpness(domain, budget)))), UNLIMITED
        )
    return Limits(max(LEAST_REACH, math.sqrt(SEEN * sharpness(domain, budget))), UNLIMITED)


def refusal(domain: Domain, loss: Loss, penalty: Penalty, budget: Budget, cov_type: str) -> str | None:
    """Return why effects are not estimated, and what would help; None where they are. Public facts only."""
    if not penalty.ridge:
        return "a penalty with corners (L1) moves effects to 0 and has no sandwich: use no penalty, or L2"
    if not (loss.sigmoid_link or loss.softmax_link or loss.movable_target or loss.log_link):
        return "effects are estimated for logistic, softmax, squared, Huber and Poisson losses: use one of these"
    if budget.is_pure:
        return "effects are estimated with Gaussian noise, which needs a delta above 0: leave delta out"
    if domain.sparse:
        return "effects are estimated in whitened coordinates, which fill sparse records: pass a dense array"
    if domain.n_features * domain.n_outputs > WIDEST:
        most = WIDEST // domain.n_outputs - 1
        return f"effects are estimated of at most {most} features{_of_classes(domain)}: use fewer columns"
    if cov_type == "model" and loss.movable_target and math.isfinite(loss.lipschitz):
        return "cov_type='model' trusts a likelihood, which Huber's loss has not: use cov_type='robust'"
    if cov_type == "cluster" and not domain.grouped:
        return "cov_type='cluster' needs persons: pass groups, or name the person in the schema"
    if domain.n is None or _shortage(domain, loss, budget) <= 1.0:  # what noise hides is reported afterwards
        return None
    return _too_few(domain, loss, budget)


def _shortage(domain: Domain, loss: Loss, budget: Budget) -> float:
    """Return how many times the signal is short of what standard errors need; at most 1 where it suffices."""
    steady = LEAST_STEADINESS / steadiness(domain, budget) if loss.task == "classification" else 0.0
    return max(LEAST_SHARPNESS / sharpness(domain, budget), steady)


def _too_few(domain: Domain, loss: Loss, budget: Budget) -> str:
    """Say which rows, epsilon or columns would do: each found by the rule itself, rounded to the safe side.

    A default delta falls with the square of n; so does the one here, which is safe for a delta that stays.
    """
    n, p = count_of(domain), domain.n_features - domain.intercept

    def with_rows(rows: float) -> float:
        known = replace(domain, n=math.ceil(rows))
        return _shortage(known, loss, replace(budget, delta=budget.delta * (n / rows) ** 2))

    def with_epsilon(epsilon: float) -> float:
        return _shortage(domain, loss, replace(budget, epsilon=epsilon))

    def with_columns(columns: int) -> float:
        known = replace(domain, feature_bounds=np.ones(columns + domain.intercept), ranges=None)
        return _shortage(known, loss, budget)

    rows, epsilon = _least(with_rows, n), _least(with_epsilon, budget.epsilon)
    columns = max((k for k in range(1, p) if with_columns(k) <= 1.0), default=0)
    unit = "persons" if domain.grouped else "rows"
    fewer = f", or at most {_counted(columns)}" if columns else ""
    return (
        f"Too few {unit} for standard errors: {_counted(p)} at epsilon = {budget.epsilon:g} need about {rows:,.0f} "
        f"{unit}; you have {n:,}. With these {unit}, epsilon = {epsilon:g} would do{fewer}. Nothing was released"
        f"{f' ({FORECAST})' if domain.n_outputs == 1 else ''}"
    )


def _least(shortage: Callable[[float], float], start: float) -> float:
    """Return about the least value from ``start`` on at which there is no shortage: two digits, rounded up."""
    high = start
    while shortage(high) > 1.0:
        high *= 2.0
    low = high / 2.0
    for _ in range(12):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if shortage(middle) > 1.0 else (low, middle)
    digit = 10.0 ** (math.floor(math.log10(high)) - 1)
    return math.ceil(high / digit) * digit


def _counted(columns: int) -> str:
    return f"{columns} feature column{'' if columns == 1 else 's'}"


def _of_classes(domain: Domain) -> str:
    return f" and {domain.n_outputs} classes" if domain.n_outputs > 1 else ""
