"""Losses, one file each, and the constants that follow from them and the declared bounds."""

from discreet.losses.base import Loss, curvature, derivative, derivatives, register_loss, value, values
from discreet.losses.constants import (
    coordinate_gradient_bounds,
    coordinate_smoothness,
    gradient_bound,
    gradient_smoothness,
)
from discreet.losses.huber import Huber
from discreet.losses.logistic import Logistic
from discreet.losses.poisson import Poisson
from discreet.losses.smoothed_hinge import SmoothedHinge
from discreet.losses.softmax import Softmax
from discreet.losses.squared import Squared

__all__ = [
    "Huber",
    "Logistic",
    "Loss",
    "Poisson",
    "SmoothedHinge",
    "Softmax",
    "Squared",
    "coordinate_gradient_bounds",
    "coordinate_smoothness",
    "curvature",
    "derivative",
    "derivatives",
    "gradient_bound",
    "gradient_smoothness",
    "register_loss",
    "value",
    "values",
]
