"""Seeded and noiseless fits."""

import numpy as np
import pytest

from discreet import DPLogisticRegression
from discreet.solvers import GradientDescent
from discreet.testing import noiseless, seeded
from tests.testing.small_fits import bounds_of, fit_of, table


@pytest.mark.parametrize("kind", ["gd", "sgd", "pure"])
def test_one_seed_one_answer(kind):
    fit, data = fit_of("logistic", kind), table("logistic")

    def coefficients(seed):
        with seeded(seed):
            return fit(*data).coef_

    assert np.array_equal(coefficients(1), coefficients(1))
    assert not np.array_equal(coefficients(1), coefficients(2))


def test_noiseless_is_the_clipped_gradient_step():
    """One step from zero, against the sum written out in floats."""
    X, y, _ = table("logistic")
    clip = 0.7
    solver = GradientDescent(n_steps=1, clip=clip, step_size=1.0)
    model = DPLogisticRegression(1.0, 1e-5, bounds=bounds_of("logistic"), penalty=None, solver=solver)
    with noiseless():
        model.fit(X, y)
    assert "NOT PRIVATE" in model.certificate_.stamp
    assert not model.certificate_.is_private
    scale = np.array([1.0, 10.0, 5.0])
    rows = np.column_stack([X / scale, np.ones(len(X))])
    gradients = -0.5 * (2 * y - 1)[:, None] * rows
    norms = np.linalg.norm(gradients, axis=1, keepdims=True)
    step = -(gradients * np.minimum(1.0, clip / norms)).mean(axis=0)
    assert model.coef_[0] == pytest.approx(step[:-1] / scale, abs=1e-4)
    assert model.intercept_[0] == pytest.approx(step[-1], abs=1e-4)
