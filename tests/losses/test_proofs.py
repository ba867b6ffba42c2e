"""What a loss of one's own says of itself is compared with its kernels before any noise rests on it."""

from decimal import Decimal
from typing import NamedTuple

import numpy as np
import pytest

from discreet.bounds import Domain
from discreet.budget import Neighbors
from discreet.curator import Problem
from discreet.errors import Unsupported
from discreet.losses import Logistic
from discreet.losses.base import Loss, curvature, derivative, one_output, slopes_in_decimals, value
from discreet.losses.proofs import require_proof, wrong_constants

DOMAIN = Domain(np.ones(2), 1.5, 1000, Neighbors("zero_out"), target_range=(-1.0, 1.0))


def hinge(cls):
    """Give a class the kernels of a hinge whose corner is rounded between -2 and 2: |f'| <= 1, f'' <= 1/4."""

    @value.of(cls)
    def _value(loss, margin, target):
        gap = 2.0 - target * margin
        return 0.0 if gap <= 0.0 else (gap * gap / 8.0 if gap < 4.0 else gap - 2.0)

    @derivative.of(cls)
    def _derivative(loss, margin, target):
        gap = 2.0 - target * margin
        return -target * min(max(gap / 4.0, 0.0), 1.0)

    @curvature.of(cls)
    def _curvature(loss, margin, target):
        return 0.25 if -2.0 < target * margin < 2.0 else 0.0

    one_output(cls)
    return cls


@hinge
class LogisticByName(Logistic):
    """Other kernels under what is proven of the logistic loss."""

    __slots__ = ()


@hinge
class DeclaredLogistic(Logistic):
    __slots__ = ()
    proven = True


@slopes_in_decimals.register
def _hinge_in_decimals(loss: DeclaredLogistic, margins, target):
    return [-target * min(max((2 - target * margins[0]) / 4, Decimal(0)), Decimal(1))]


class _Fields(NamedTuple):
    share: float = 1.0


class Residual(_Fields, Loss):
    """u^2 / 2 of a residual u, twice as steep for negative targets."""

    __slots__ = ()
    task = "regression"
    smoothness = 1.0
    proven = True

    def lipschitz_for(self, target_bound, margin_bound=float("inf")):
        return self.share * (target_bound + margin_bound)


@value.of(Residual)
def _value(loss, margin, target):
    return 0.5 * (margin - target) * (margin - target) * (1.0 if target >= 0.0 else 2.0)


@derivative.of(Residual)
def _derivative(loss, margin, target):
    return (margin - target) * (1.0 if target >= 0.0 else 2.0)


@curvature.of(Residual)
def _curvature(loss, margin, target):
    return 1.0 if target >= 0.0 else 2.0


@slopes_in_decimals.register
def _in_decimals(loss: Residual, margins, target):
    return [(margins[0] - target) * (1 if target >= 0 else 2)]


one_output(Residual)


class WrongDecimals(Residual):
    __slots__ = ()
    quadratic = True


for _kernel in (value, derivative, curvature):
    _kernel.of(WrongDecimals)(_kernel.table[Residual])
one_output(WrongDecimals)


@slopes_in_decimals.register
def _wrong_decimals(loss: WrongDecimals, margins, target):
    return [margins[0]]


def test_a_proof_is_not_inherited():
    with pytest.raises(Unsupported, match="declare them proven"):
        require_proof(LogisticByName(), DOMAIN)
    with pytest.raises(Unsupported, match="declare them proven"):
        Problem(0.01, 1000).perturbation_for(LogisticByName(), DOMAIN)


def test_a_price_of_another_loss_is_refused():
    """The kernels keep lipschitz and smoothness, but objective perturbation would be priced as logistic."""
    assert "perturbation_slopes: the curvature is not that of a logistic loss" in wrong_constants(DeclaredLogistic())
    with pytest.raises(Unsupported, match="perturb"):
        Problem(0.01, 1000).perturbation_for(DeclaredLogistic(), DOMAIN)


def test_negative_targets_are_looked_at():
    assert wrong_constants(Residual()) == []
    with pytest.raises(Unsupported, match="curvature exceeds"):
        require_proof(Residual(), DOMAIN)
    require_proof(Residual(), Domain(np.ones(2), 1.5, 1000, Neighbors("zero_out"), target_range=(0.0, 1.0)))


def test_bounds_on_margins_are_looked_at():
    assert wrong_constants(Residual(0.5)) == [
        "lipschitz_for: a derivative at a bounded margin is longer than the loss declares"
    ]


def test_slopes_in_decimals_are_looked_at():
    assert "slopes_in_decimals: they are not the derivative" in wrong_constants(WrongDecimals())


class Stand(Residual):
    """Bounded by a loss that nobody has proven."""

    __slots__ = ()
    proven = True

    def bounded_on(self, margin_bound, target_bound):
        return LogisticByName()


for _kernel in (value, derivative, curvature):
    _kernel.of(Stand)(_kernel.table[Residual])
one_output(Stand)
slopes_in_decimals.register(Stand)(_in_decimals)


def test_a_bounded_stand_in_is_proven_itself():
    domain = Domain(np.ones(2), 1.5, 1000, Neighbors("zero_out"), target_range=(0.0, 1.0))
    with pytest.raises(Unsupported, match="LogisticByName"):
        Problem(0.01, 1000, radius=1.0).loss_for(Stand(), domain)
