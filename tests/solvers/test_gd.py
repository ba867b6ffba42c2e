"""Private gradient descent on real records: its noiseless limit, and the lecture's bound on its error."""

import math

import numpy as np
import pytest

from discreet import Bounds, Budget
from discreet.accounting.pricing import price_plan
from discreet.curator import PrivateData
from discreet.losses import Huber, Logistic
from discreet.losses.base import derivative
from discreet.penalties import L2, NoPenalty
from discreet.solvers import GradientDescent
from tests.covering import covering

LIMIT = Budget(math.inf, 1e-6)  # no noise, clipped in the L2 norm


def opened(solver, X, y, loss, budget, bounds, penalty=None, **options):
    data = PrivateData(X, y, bounds, **options)
    domain = data.domain(budget.neighbors, loss)
    return data.open(price_plan(solver.plan(domain, loss, penalty or NoPenalty()), budget), loss)


def plain_descent(A, targets, loss, penalty, *, n_steps, step, clip, weight, average):
    """The algorithm box with numpy: clipped per-record gradients, momentum, prox, average."""
    w = previous = np.zeros(A.shape[1])
    path = [w]
    for t in range(n_steps):
        point = w + weight(t) * (w - previous)
        slopes = np.array([derivative(loss, margin, target) for margin, target in zip(A @ point, targets, strict=True)])
        gradients = slopes[:, None] * A
        norms = np.linalg.norm(gradients, axis=1)
        gradients *= np.minimum(1, clip / np.maximum(norms, 1e-300))[:, None]
        previous, w = w, penalty.prox(point - step * gradients.mean(axis=0), step)
        path.append(w)
    return np.mean(path, axis=0) if average == "uniform" else w


@pytest.mark.parametrize("loss", [Logistic(), Huber(0.4)], ids=["logistic", "huber"])
@pytest.mark.parametrize("clip", [10.0, 0.3], ids=["loose", "tight"])
@covering(("average", ["last", "uniform"]), ("momentum", [0.0, 0.7, "nesterov"]))
def test_without_noise_it_is_plain_gradient_descent(small_table, loss, clip, momentum, average):
    n_steps, step, penalty = 12, 0.4, L2(0.01)
    y = small_table.signs if loss.task == "classification" else small_table.numbers
    solver = GradientDescent(n_steps=n_steps, clip=clip, step_size=step, momentum=momentum, average=average)
    bounds = Bounds(1.0, classes=(-1, 1), target=(-1, 1))
    curator = opened(solver, small_table.X, y, loss, LIMIT, bounds, penalty)
    root = math.sqrt(step * 0.01)
    weight = {0.0: lambda t: 0.0, 0.7: lambda t: 0.7, "nesterov": lambda t: min(t / (t + 3), (1 - root) / (1 + root))}[
        momentum
    ]
    expected = plain_descent(
        small_table.with_ones, y, loss, penalty, n_steps=n_steps, step=step, clip=clip, weight=weight, average=average
    )
    # the clip divides by a row's norm rounded up to the grid: one part in 2^14 of a clipped gradient
    np.testing.assert_allclose(solver.solve(curator, penalty).coefficients, expected, rtol=2**-14, atol=1e-6)
