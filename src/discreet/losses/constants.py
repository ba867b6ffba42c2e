"""The constants of a record's loss as a function of the coefficients, from what is declared of the data.

A record's gradient is f'(x.w) x and its Hessian f''(x.w) x x^T; hence, with R the bound on ||x|| and
r_j the bound on |x_j|, each constant is one of the loss times a power of R or r_j.
"""

from __future__ import annotations  # a loss brings the compiler, which its constants do not need

import math
from typing import TYPE_CHECKING

import numpy as np

from discreet.bounds import Domain
from discreet.errors import Unsupported
from discreet.typing import Floats

if TYPE_CHECKING:
    from discreet.losses.base import Loss


def _margin_bound(domain: Domain, radius: float | None) -> float:
    return math.inf if radius is None else radius * domain.row_norm


def _finite(bound: float, loss: Loss) -> float:
    if not math.isfinite(bound):
        raise Unsupported(
            f"the gradients of {type(loss).__name__} are unbounded: declare a ball that the coefficients stay in (the "
            "solver's radius=...), clip gradients (its clip=...), or use Huber's loss, such as DPHuberRegressor"
        )
    return bound


def gradient_bound(loss: Loss, domain: Domain, radius: float | None = None) -> float:
    """L = sup |f'| R: no record's gradient is longer. ``radius`` bounds ||w||, for the losses that need it."""
    return _finite(loss.lipschitz_for(domain.target_bound, _margin_bound(domain, radius)), loss) * domain.row_norm


def gradient_smoothness(loss: Loss, domain: Domain) -> float:
    """beta = sup f'' R**2: no record's Hessian has a larger eigenvalue."""
    return loss.smoothness * domain.row_norm**2


def coordinate_gradient_bounds(loss: Loss, domain: Domain, radius: float | None = None) -> Floats:
    """L_j = sup |f'| r_j, in the shape of the coefficients: no entry of a record's gradient is larger."""
    slope = _finite(loss.lipschitz_for(domain.target_bound, _margin_bound(domain, radius)), loss)
    slope = slope if loss.entry_lipschitz is None else loss.entry_lipschitz
    return _in_shape(slope * domain.feature_bounds, domain)


def coordinate_smoothness(loss: Loss, domain: Domain) -> Floats:
    """M_j = sup f'' r_j**2, in the shape of the coefficients: no diagonal entry of a record's Hessian is larger."""
    curvature = loss.smoothness if loss.entry_smoothness is None else loss.entry_smoothness
    return _in_shape(curvature * np.square(domain.feature_bounds), domain)


def _in_shape(per_feature: Floats, domain: Domain) -> Floats:
    if domain.n_outputs == 1:
        return per_feature
    return np.repeat(per_feature[:, np.newaxis], domain.n_outputs, axis=1)


def lipschitz_within(loss: Loss, domain: Domain, radius: float | None) -> Loss:
    """The loss itself where its gradients are bounded; else one that equals it on the ball and is bounded everywhere.

    On ||w|| <= radius the residuals of the squared loss are at most radius R + |target|: Huber's loss of that width is
    the same function there, convex and smooth everywhere, and its slope is bounded by the width.
    """
    found = loss if radius is None else loss.bounded_on(radius * domain.row_norm, domain.target_bound)
    _finite(found.lipschitz_for(domain.target_bound), loss)
    return found
