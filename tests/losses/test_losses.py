import math
from typing import NamedTuple

import numpy as np
import pytest

from discreet.errors import Unsupported
from discreet.losses import (
    Gamma,
    Huber,
    Logistic,
    NegativeBinomial,
    Poisson,
    Quantile,
    SmoothedHinge,
    Softmax,
    Squared,
    Tweedie,
)
from discreet.losses.base import curvature, derivative, derivatives, value, values

SCALAR = [
    Logistic(),
    Logistic(sharpness=4.0),
    Squared(),
    Squared(weight=2.0),
    Huber(0.7),
    Quantile(0.9, 0.37),
    SmoothedHinge(),
    SmoothedHinge(0.1),
    Poisson(2.0),
    NegativeBinomial(0.5, 2.0, 3.0),
    NegativeBinomial(30.0, 2.0, 3.0),
    Gamma(2.0, 3.0),
    Tweedie(1.2, 2.0, 3.0),
    Tweedie(1.8, 2.0, 3.0),
]
BOUNDED = [loss for loss in SCALAR if not isinstance(loss, Squared)]
TARGET_BOUND = 3.0


def name(loss):
    return f"{type(loss).__name__}{tuple(loss)}"


def targets(loss):
    if loss.task == "classification":
        return [-1.0, 1.0]
    return [0.0, 0.4, TARGET_BOUND] if loss.log_link else [-TARGET_BOUND, 0.2, TARGET_BOUND]


def kinks(loss, target):
    """Where the second derivative jumps."""
    if isinstance(loss, Huber):
        return [target - loss.width, target + loss.width]
    if isinstance(loss, SmoothedHinge):
        return [target * (1 - loss.width), target * (1 + loss.width)]
    return [-loss.limit, loss.limit] if loss.log_link else []


MARGINS = np.concatenate([np.linspace(-9, 9, 721), [-40.0, 40.0]])


@pytest.mark.parametrize("loss", SCALAR, ids=name)
def test_derivatives_are_finite_differences(loss):
    step = 1e-5
    for target in targets(loss):
        for m in MARGINS.tolist():
            above, below = m + step, m - step
            slope = (value(loss, above, target) - value(loss, below, target)) / (above - below)
            smooth = all(abs(m - kink) > 2 * step for kink in kinks(loss, target))
            rough = 0.0 if smooth else 0.5 * step * loss.smoothness  # of a difference over a jump of the curvature
            assert derivative(loss, m, target) == pytest.approx(slope, abs=2e-5 + rough, rel=1e-6)
            if smooth:
                bend = (derivative(loss, above, target) - derivative(loss, below, target)) / (above - below)
                assert curvature(loss, m, target) == pytest.approx(bend, abs=1e-6, rel=1e-6)


@pytest.mark.parametrize("loss", SCALAR, ids=name)
def test_many_margins_at_once_are_as_one_by_one(loss):
    for target in targets(loss):
        for at, one in ((loss.slopes_at, derivative), (loss.bends_at, curvature)):
            expected = [one(loss, margin, target) for margin in MARGINS.tolist()]
            np.testing.assert_allclose(at(MARGINS, target), expected, rtol=1e-13, atol=1e-300)


@pytest.mark.parametrize("loss", SCALAR, ids=name)
def test_convex_and_as_smooth_as_declared(loss):
    for target in targets(loss):
        slopes = np.array([derivative(loss, m, target) for m in np.sort(MARGINS).tolist()])
        rises = np.diff(slopes)
        assert np.all(rises >= -1e-15)
        assert np.all(rises <= loss.smoothness * np.diff(np.sort(MARGINS)) * (1 + 1e-9) + 1e-15)
        bends = np.array([curvature(loss, m, target) for m in MARGINS.tolist()])
        assert np.all((bends >= 0) & (bends <= loss.smoothness * (1 + 1e-15)))
    assert max(curvature(loss, m, t) for t in targets(loss) for m in MARGINS.tolist()) > 0.99 * loss.smoothness


@pytest.mark.parametrize("loss", [*BOUNDED], ids=name)
@pytest.mark.parametrize("margin", [math.nan, math.inf, -math.inf, 1e308])
def test_the_bound_holds_for_every_bit_pattern(loss, margin):
    for target in targets(loss):
        assert abs(derivative(loss, margin, target)) <= loss.lipschitz_for(TARGET_BOUND) * (1 + 1e-15)


@pytest.mark.parametrize("loss", [loss for loss in SCALAR if loss.one_signed], ids=name)
def test_one_signed_losses_push_towards_their_target(loss):
    for m in MARGINS.tolist():
        assert derivative(loss, m, 1.0) <= 0 <= derivative(loss, m, -1.0)


SOFTMAX_MARGINS = np.random.default_rng(1).normal(size=(60, 4)) * np.repeat([0.1, 1.0, 30.0], 20)[:, np.newaxis]


def softmax_gradient(loss, margins, target):
    out = np.empty(loss.n_outputs)
    derivatives(loss, margins, target, out)
    return out


def test_softmax_gradients_are_finite_differences():
    loss, step = Softmax(4), 1e-6
    for i, margins in enumerate(SOFTMAX_MARGINS):
        target = float(i % 4)
        slopes = [
            (values(loss, margins + step * e, target) - values(loss, margins - step * e, target)) / (2 * step)
            for e in np.eye(4)
        ]
        np.testing.assert_allclose(
            softmax_gradient(loss, margins, target), slopes, atol=5e-9 * max(1, abs(margins).max())
        )


def test_a_second_class_of_the_same_name_is_refused():
    class Namesake(NamedTuple):
        sharpness: float

    Namesake.__name__ = "Logistic"
    with pytest.raises(TypeError, match="rename one of the two"):
        derivative.of(Namesake)


def test_a_widened_loss_clips_no_residual_below_the_width():
    """Clips of steps that come from afar are their own: a width below one deviation would cut slopes twice."""
    assert Huber(0.3).widened(1.0) == Huber(1.0)
    assert Huber(2.5).widened(1.0) == Huber(2.5)
    wide, narrow = Huber(0.3).widened(1.0), Huber(0.3)
    for residual in (-0.9, -0.2, 0.0, 0.2, 0.9):
        assert derivative(wide, residual, 0.0) == pytest.approx(residual)
        assert abs(derivative(narrow, residual, 0.0)) <= 0.3
    assert derivative(wide, 5.0, 0.0) == 1.0
    assert wide.lipschitz == 1.0


def test_offsets_whose_exponential_overflows_are_refused_as_declared():
    """Not when a record has one: an error, or a warning, would tell of it."""
    for loss in (Poisson(3.0), Gamma(3.0, 10.0), Tweedie(1.5, 3.0, 10.0)):
        for offsets in ((0.0, 1000.0), (-800.0, 0.0)):
            with pytest.raises(Unsupported, match="600"):
                loss.with_offsets(offsets)
        assert loss.with_offsets((-5.0, 5.0)) is not None


@pytest.mark.parametrize(("dispersion", "largest"), [(1.0, 1e300), (1e99, 100.0), (1e-9, 1e101), (1.0, 1e-300)])
def test_a_range_beyond_finite_squares_is_refused(dispersion, largest):
    """By declared facts, so before anything is charged."""
    with pytest.raises(Unsupported, match="shorter range"):
        NegativeBinomial(dispersion).for_targets((0.0, largest), intercept=True)
    assert NegativeBinomial(1.0).for_targets((0.0, 1e15), intercept=True).largest == 1e15
