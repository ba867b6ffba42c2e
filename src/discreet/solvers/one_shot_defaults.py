"""What ``solver="objective"`` and ``solver="output"`` stand for: standardized coordinates, numbers from public facts.

Facts: n, the columns p (with the intercept), epsilon, mu (the budget as Gaussian DP), the relation's factor a, the
loss, and J = n mu / (a sqrt(p)) (``information``). Rows are standardized and shrunk to length 1, so that the sum's
Hessian is about H = k n / p in every direction, k the loss's mean curvature, and a good model's squared coefficients
are about m each, m the variance of its margins. Noise s = a C / mu in each coordinate, C the clip.

``Standardized`` wherever the budget has a delta and n is declared; for sparse records from J = 20 on
    Objective perturbation's excess is s^2 trace(H^-1) / 2 for rows of length 1: least where all columns are alike. Mean
    gap of five label tables (bank marketing, credit default, electricity, German credit, IPUMS-BR) at epsilon .1 / 1 /
    4, zero_out: .286 / .085 / .057, against .155 at epsilon 1 in declared coordinates.
    Scales of thousands of sparse columns are hidden in noise below: accuracy on basehock (4,862 columns) at epsilon 8,
    J = 48, is .91 against .73 in declared coordinates; on rcv1 (47,118), J = 11, it is .53 against .60.
Slopes clipped at sqrt(J / 160) within [1/2, 1]: above J = 160 the logistic loss has no clip
    A clipped logistic loss is too certain of itself, at any n. On the problem ``labels-even`` (20,000 x 20) at epsilon
    1 the excess is .24 of the trivial model's with a clip at 1/2, .003 without. At epsilon .1 half a clip is better: no
    clip costs .024 of the gap.
Residuals clipped at .6 (J / 100)^(1/4) target deviations, within [.4, 6]; rows at (J / 300)^(1/8) >= 1 typical lengths
    Both widen with signal, so that their bias vanishes. Output perturbation, whose noise is larger, takes J / 100 for J
    in both clips, with .35 and .15 as the least.
``least_scale`` 20 / J within [.002, .1]
    The smallest spread in units of the declared range. Where there is signal, narrow columns stand out from noise: on
    ``numbers-uneven`` at epsilon 4 the excess falls from .0155 to .0002, and no table lost.
lambda of objective perturbation: the largest of
    (b s^2 / (m epsilon))^(1/3), where the price of a small lambda, a factor 1 + 2 b / (lambda epsilon) on s^2 (b the
    largest curvature of a record), balances its bias lambda^2 m p / (2 H), with m = 4 for classes and 2 for numbers;
    7.5 s^2 p / n (classes), 60 s^2 p / n (numbers): ridge's own optimum s^2 / (H m), for weaker margins, since noise is
    what matters there; and what keeps the curvature's term to half of epsilon.
lambda of output perturbation: (k n s / (p sqrt(m)))^(1/2), which balances k n (s / lambda)^2 / 2, the noise, and that
    bias; rows of up to L lengths divide it by L^(3/2).
"""

import math
from dataclasses import dataclass

from discreet.bounds import Domain
from discreet.budget import Budget
from discreet.losses.base import Loss
from discreet.solvers.default_rules import count_of, information

UNCLIPPED, RESIDUAL, MOST_RESIDUAL = 160.0, 0.6, 6.0
WIDENED = 300.0
SPARSE = 20.0
FINE, FINEST, COARSEST = 20.0, 0.002, 0.1
CURVATURE_SHARE = 0.5
"""The curvature's part of the price is at most this part of epsilon."""


@dataclass(frozen=True)
class Kind:
    """What is typical of a task: mean curvature, variance of margins, and how strongly noise is shrunk."""

    curvature: float
    margins: float
    shrinkage: float


@dataclass(frozen=True)
class ClipRule:
    """The narrowest clips of slopes and of residuals, and the share of J that counts."""

    least_slope: float
    least_residual: float
    share: float = 1.0


OBJECTIVE, OUTPUT = ClipRule(0.5, 0.4), ClipRule(0.35, 0.15, 0.01)
CLASSES, NUMBERS = Kind(0.2, 4.0, 7.5), Kind(1.0, 2.0, 60.0)


def kind_of(loss: Loss) -> Kind:
    """Return what is typical of the loss's task."""
    return NUMBERS if loss.task == "regression" else CLASSES


def can_standardize(domain: Domain, loss: Loss, budget: Budget) -> bool:
    """Say whether features are standardized first: Gaussian noise, a declared n, and targets that can follow."""
    known = domain.n is not None and not domain.grouped
    if known and domain.sparse and budget.is_private and information(domain, budget) < SPARSE:
        return False
    follows = loss.task == "classification" or loss.movable_target
    return budget.is_private and not budget.is_pure and known and follows


def slope_clip(domain: Domain, loss: Loss, budget: Budget, limits: ClipRule) -> float | None:
    """Return the clip of a row of length 1; None for several outputs, whose clipped gradients are no gradients."""
    if loss.n_outputs > 1:
        return None
    found = limits.share * information(domain, budget)
    if loss.task == "regression":
        return float(min(MOST_RESIDUAL, max(limits.least_residual, RESIDUAL * (found / 100.0) ** 0.25)))
    return min(1.0, max(limits.least_slope, math.sqrt(found / UNCLIPPED)))


def row_lengths(domain: Domain, budget: Budget) -> float:
    """Return how many typical lengths a row may have."""
    return max(1.0, float((information(domain, budget) / WIDENED) ** 0.125))


def least_scale(domain: Domain, budget: Budget) -> float:
    """Return the smallest spread that is distinguished from noise, in units of the declared range."""
    return min(COARSEST, max(FINEST, FINE / information(domain, budget)))


def objective_strength(domain: Domain, loss: Loss, budget: Budget, *, curvature: float, noise: float) -> float:
    """Return lambda of objective perturbation; ``curvature`` is the largest of a record."""
    kind, rank, square = kind_of(loss), max(1, domain.n_outputs - 1), row_lengths(domain, budget) ** 2
    by_price: float = (curvature * noise**2 / (budget.epsilon * kind.margins * square)) ** (1 / 3)
    by_noise = kind.shrinkage * noise**2 * domain.n_features / count_of(domain)
    least = 2 * curvature / (rank + 1) / math.expm1(min(CURVATURE_SHARE * budget.epsilon / rank, 700.0))
    return max(by_price, by_noise, least)


def output_strength(domain: Domain, loss: Loss, budget: Budget, *, noise: float) -> float:
    """Return lambda of output perturbation."""
    kind, spread = kind_of(loss), domain.n_features * row_lengths(domain, budget) ** 3
    return math.sqrt(kind.curvature * count_of(domain) * noise / (math.sqrt(kind.margins) * spread))
