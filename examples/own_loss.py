"""A loss of one's own, in one file: log-cosh, a Huber loss without a corner in its derivative.

    f(u) = c^2 log cosh(u / c),   u = margin - target,   c: the width

Constants. f'(u) = c tanh(u / c), so |f'| < c. f''(u) = 1 - tanh(u / c)^2, which lies in (0, 1]: f is convex, and its
curvature is at most 1, attained at u = 0. Both hold for all margins and targets, hence ``proven``. Solvers that clip do
not rely on it; output and objective perturbation do, and would refuse the loss without.

    python examples/own_loss.py
    DISCREET_PLUGINS=examples/own_loss.py discreet fit table.csv --schema schema.toml --model regressor --loss log_cosh
"""

import math
from decimal import Decimal
from typing import NamedTuple

import numpy as np

from discreet import load
from discreet.losses.base import (
    Loss,
    curvature,
    derivative,
    exp_in_decimals,
    one_output,
    register_loss,
    slopes_in_decimals,
    value,
)
from discreet.losses.sigmoid import log1p_exp, quotient, sigmoid  # the same bits in every loop
from discreet.models import DPRegressor
from discreet.testing import Privacy


class _Fields(NamedTuple):
    width: float = 0.25


@register_loss("log_cosh")
class LogCosh(_Fields, Loss):
    """c^2 log cosh(u / c)."""

    __slots__ = ()
    task = "regression"
    smoothness = 1.0
    movable_target = True  # it sees residuals only, so that targets may be centered and scaled
    nonnegative = True
    proven = True  # at the top of this file

    @property
    def lipschitz(self) -> float:
        """c."""
        return self.width

    def with_target_scale(self, scale: float) -> "LogCosh":
        """The same loss in other units of the target."""
        return LogCosh(self.width / scale)


@value.of(LogCosh)
def _value(loss, margin, target):
    size = quotient(abs(margin - target), loss.width)
    return loss.width * loss.width * (size + log1p_exp(-2.0 * size) - math.log(2.0))


@derivative.of(LogCosh)
def _derivative(loss, margin, target):
    return loss.width * (2.0 * sigmoid(quotient(2.0 * (margin - target), loss.width)) - 1.0)  # tanh


@curvature.of(LogCosh)
def _curvature(loss, margin, target):
    twice = quotient(2.0 * (margin - target), loss.width)
    return 4.0 * sigmoid(twice) * sigmoid(-twice)


@slopes_in_decimals.register
def _slopes(loss: LogCosh, margins, target):  # for certified minimizers: the derivative once more, in any precision
    growth = exp_in_decimals(2 * (margins[0] - target) / Decimal(loss.width))
    return [Decimal(loss.width) * (growth - 1) / (growth + 1)]


one_output(LogCosh)


def main() -> None:
    Privacy().check(loss=LogCosh(0.25), relations=("zero_out",), runs=0)  # raises where a constant is wrong

    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (20_000, 5))
    y = np.clip(20 * X[:, 0] - 10 * X[:, 1] + rng.standard_t(2, 20_000), -50, 50)  # outliers

    settings = {"bounds": 1.0, "target": (-50, 50), "neighbors": "zero_out", "ledger": False}
    model = DPRegressor(1.0, loss=LogCosh(5.0), **settings).fit(X, y)  # 5, in the target's units
    print(model.certificate_, end="\n\n")
    again = load(model.save("log_cosh.discreet"))
    print("R2 on public rows:", 1 - np.var(y - again.predict(X)) / np.var(y))


if __name__ == "__main__":
    main()
