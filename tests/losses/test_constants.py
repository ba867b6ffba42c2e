import math

import numpy as np
import pytest

from discreet.bounds import Domain
from discreet.budget import Neighbors
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
from discreet.losses.base import (
    coordinate_gradient_bounds,
    coordinate_smoothness,
    curvature,
    derivative,
    derivatives,
    gradient_bound,
    gradient_smoothness,
    value,
)

FEATURE_BOUNDS = np.array([1.0, 0.25, 2.0])
ROW_NORM = 1.8
TARGET_BOUND = 2.0
RADIUS = 3.0
COUNTED = [Poisson(1.5), NegativeBinomial(0.5, 1.5, 2.0), Gamma(1.5, 2.0), Tweedie(1.4, 1.5, 2.0)]
SCALAR = [Logistic(), Logistic(3.0), Squared(), Huber(0.5), Quantile(0.8, 0.3), SmoothedHinge(0.2), *COUNTED]


def domain(n_outputs=1):
    return Domain(
        feature_bounds=FEATURE_BOUNDS,
        row_norm=ROW_NORM,
        n=100,
        neighbors=Neighbors.REPLACE_ONE,
        n_outputs=n_outputs,
        target_bound=TARGET_BOUND,
    )


def records(count=400):
    """Records that the bounds allow, many of them at the bounds."""
    rng = np.random.default_rng(0)
    x = np.clip(rng.normal(size=(count, 3)) * 2, -FEATURE_BOUNDS, FEATURE_BOUNDS)
    norms = np.linalg.norm(x, axis=1)
    return x * np.minimum(1.0, ROW_NORM / norms)[:, np.newaxis], rng


def scalar_targets(loss):
    if loss.task == "classification":
        return (-1.0, 1.0)
    return (0.0, TARGET_BOUND) if loss.log_link else (-TARGET_BOUND, TARGET_BOUND)


@pytest.mark.parametrize("loss", SCALAR, ids=repr)
def test_constants_bound_sampled_gradients_and_hessians(loss):
    radius = RADIUS if isinstance(loss, Squared) else None
    x, rng = records()
    w = rng.normal(size=x.shape)
    w *= RADIUS / np.linalg.norm(w, axis=1)[:, np.newaxis]
    w[:100] = RADIUS * x[:100] / np.linalg.norm(x[:100], axis=1)[:, np.newaxis]
    w[50:100] *= -1
    longest, steepest = 0.0, 0.0
    largest, bent = np.zeros(3), np.zeros(3)
    for row, point in zip(x, w, strict=True):
        for target in scalar_targets(loss):
            m = float(row @ point)
            gradient = derivative(loss, m, target) * row
            longest, largest = max(longest, float(np.linalg.norm(gradient))), np.maximum(largest, np.abs(gradient))
            hessian = curvature(loss, m, target) * np.outer(row, row)
            steepest = max(steepest, float(np.linalg.eigvalsh(hessian).max()))
            bent = np.maximum(bent, np.diag(hessian))
    slack = 1 + 1e-12
    assert 0.5 * gradient_bound(loss, domain(), radius) < longest <= gradient_bound(loss, domain(), radius) * slack
    assert 0.4 * gradient_smoothness(loss, domain()) < steepest <= gradient_smoothness(loss, domain()) * slack
    assert np.all(largest <= coordinate_gradient_bounds(loss, domain(), radius) * slack)
    assert np.all(bent <= coordinate_smoothness(loss, domain()) * slack)


def test_softmax_constants_bound_sampled_gradients_and_hessians():
    loss, facts = Softmax(3), domain(n_outputs=3)
    assert gradient_bound(loss, facts) == pytest.approx(math.sqrt(2) * ROW_NORM)
    assert gradient_smoothness(loss, facts) == pytest.approx(ROW_NORM**2 / 2)
    x, rng = records(200)
    for row in x:
        w, out = rng.normal(size=(3, 3)) * rng.choice([0.1, 3.0, 50.0]), np.empty(3)
        derivatives(loss, row @ w, float(rng.integers(3)), out)
        gradient = np.outer(row, out)
        assert np.linalg.norm(gradient) <= gradient_bound(loss, facts)
        assert np.all(np.abs(gradient) <= coordinate_gradient_bounds(loss, facts))
        derivatives(loss, row @ w, -1.0, out)
        hessian = np.kron(np.outer(row, row), np.diag(out) - np.outer(out, out))
        assert np.linalg.eigvalsh(hessian).max() <= gradient_smoothness(loss, facts)
        assert np.all(np.diag(hessian).reshape(3, 3) <= coordinate_smoothness(loss, facts))


def huberised(loss, target, slope):
    """The loss with its derivative clipped to [-slope, slope]: the loss itself between two points, tangents outside."""

    def crossing(level):
        low, high = -60.0, 60.0
        for _ in range(200):
            middle = (low + high) / 2
            low, high = (middle, high) if derivative(loss, middle, target) < level else (low, middle)
        return (low + high) / 2

    left, right = crossing(-slope), crossing(slope)

    def clipped(m):
        inside = min(max(m, left), right)
        outside = slope * max(m - right, 0.0) + slope * max(left - m, 0.0)
        return value(loss, inside, target) + outside

    return clipped


@pytest.mark.parametrize("loss", [Logistic(), Squared(), SmoothedHinge(0.5), Poisson(2.0)], ids=repr)
def test_a_clipped_gradient_is_the_gradient_of_a_convex_loss(loss):
    clip, step = 0.6, 1e-6
    x, rng = records(25)
    target = scalar_targets(loss)[1]
    for row in x:
        norm = float(np.linalg.norm(row))
        convex = huberised(loss, target, clip / norm)
        w = rng.normal(size=3) * 2
        gradient = derivative(loss, float(row @ w), target) * row
        gradient *= clip / max(clip, float(np.linalg.norm(gradient)))
        slopes = [
            (convex(float(row @ (w + step * e))) - convex(float(row @ (w - step * e)))) / (2 * step) for e in np.eye(3)
        ]
        np.testing.assert_allclose(gradient, slopes, atol=1e-5)
        line = [convex(m) for m in np.linspace(-6, 6, 121).tolist()]
        assert np.all(np.diff(line, 2) >= -1e-9)
