"""Shares of classes from a noisy gradient of constant rows, and the constant that predicts them best."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize

from discreet import Bounds, DPLogisticRegression
from discreet.default.recipe import Recipe
from discreet.losses import Logistic, SmoothedHinge, Softmax
from discreet.losses.base import derivative, derivatives, value, values
from discreet.solvers.calibration import best_constant, class_shares
from tests.covering import covering
from tests.default.cases import RECIPES, run

TWO = {"logistic": Logistic(), "hinge": SmoothedHinge(0.5)}
SHARES = [(0.5, 0.5), (0.98, 0.02), (0.3, 0.7), (1.0, 0.0)]
THREE = [(1 / 3, 1 / 3, 1 / 3), (0.9, 0.08, 0.02), (0.2, 0.5, 0.3)]
STRENGTHS = [0.0, 1e-3, 0.1, 1.0]


def gradient_of(loss, shares):
    """The mean gradient at 0 of rows that are the constant 1, with these shares of classes."""
    if loss.n_outputs == 1:
        return np.array(
            [math.fsum(s * float(derivative(loss, 0.0, t)) for s, t in zip(shares, (-1.0, 1.0), strict=True))]
        )
    each = np.empty((loss.n_outputs, loss.n_outputs))
    for label in range(loss.n_outputs):
        derivatives(loss, np.zeros(loss.n_outputs), float(label), each[label])
    return np.asarray(shares) @ each


def label_draws(loss, n=40, p=3):
    """The labels of the table that ``run`` fits."""
    rng = np.random.default_rng(1)
    rng.uniform(-1, 1, (n, p))
    return rng.integers(0, max(2, loss.n_outputs), n)


def height(loss, shares, strength, margins):
    """The expected loss of constant margins, with the penalty."""
    labels = (-1.0, 1.0) if loss.n_outputs == 1 else tuple(float(one) for one in range(loss.n_outputs))
    each = [float(values(loss, np.atleast_1d(margins), label)) for label in labels]
    return float(np.dot(shares, each)) + strength * float(np.sum(np.square(margins))) / 2.0


@pytest.mark.whole
@pytest.mark.parametrize("loss", TWO)
def test_a_gradient_without_noise_is_inverted(loss):
    for shares in SHARES:
        np.testing.assert_allclose(class_shares(TWO[loss], gradient_of(TWO[loss], shares), 0.0), shares, atol=1e-8)


@pytest.mark.whole
@pytest.mark.parametrize("loss", [*TWO.values(), Softmax(3)], ids=lambda one: type(one).__name__)
def test_where_noise_hides_all_they_are_even(loss):
    count = max(2, loss.n_outputs)
    lonely = np.eye(count)[0]
    rng = np.random.default_rng(0)
    for noise in (10.0, 1e4):
        gradient = gradient_of(loss, lonely) + noise * rng.normal(size=loss.n_outputs)
        np.testing.assert_allclose(class_shares(loss, gradient, noise), 1.0 / count, atol=0.15 * 10.0 / noise)


@pytest.mark.whole
@pytest.mark.parametrize("strength", STRENGTHS)
@pytest.mark.parametrize("loss", TWO)
def test_the_best_constant_of_two_classes_is_that_of_brute_force(loss, strength):
    grid = np.linspace(-8, 8, 3201)
    for shares in SHARES[:3]:
        expected = [
            math.fsum(s * float(value(TWO[loss], m, t)) for s, t in zip(shares, (-1.0, 1.0), strict=True))
            + strength * m**2 / 2
            for m in grid
        ]
        found = best_constant(TWO[loss], np.array(shares), strength)
        assert height(TWO[loss], shares, strength, found) <= min(expected) + 1e-8


@pytest.mark.whole
@pytest.mark.parametrize("strength", STRENGTHS)
@pytest.mark.parametrize("shares", THREE)
def test_the_best_constants_of_several_classes_are_those_of_another_minimizer(shares, strength):
    loss = Softmax(3)
    found = np.asarray(best_constant(loss, np.array(shares), strength))
    other = minimize(
        lambda m: height(loss, shares, strength, m), np.zeros(3), method="Nelder-Mead",
        options={"xatol": 1e-9, "fatol": 1e-13, "maxiter": 20_000},
    ).fun  # fmt: skip
    assert height(loss, shares, strength, found) <= other + 1e-9
    if not strength:
        np.testing.assert_allclose(found - found[0], np.log(shares) - math.log(shares[0]), atol=1e-3)


def first_gradient(seen):
    """Of two classes an entry of it, asked of records as they are; of several the gradient of constant rows."""
    return next(one for one in seen if one.query in ("noisy_gradient", "noisy_coordinate_gradient"))


@covering(("kind", ["clipped", "declared", "diagonal"]), ("loss", ["logistic", "hinge", "softmax"]))
def test_the_first_gradient_is_that_of_the_counts(kind, loss):
    """No record's slope is cut: the exact sum is n times the mean gradient of the true shares, up to the lattice."""
    loss = {**TWO, "softmax": Softmax(3)}[loss]
    _, _, seen, _ = run(RECIPES[kind], loss, epsilon=300.0)
    first = first_gradient(seen)
    labels = np.bincount(label_draws(loss), minlength=max(2, loss.n_outputs))
    expected = len(label_draws(loss)) * gradient_of(loss, labels / labels.sum())
    np.testing.assert_allclose(np.ravel(first.exact) * first.unit.step, expected, rtol=1e-3, atol=1e-3 * labels.sum())


@pytest.mark.parametrize("coordinates", ["full", "diagonal", "declared"])
def test_a_rare_class_is_rare_from_the_start(coordinates):
    """One step cannot bring an intercept to log odds of -5: a start there can."""
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-1, 1, (20_000, 3)), (np.arange(20_000) % 150 == 0).astype(int)
    solver = Recipe(coordinates, n_steps=1)
    bounds = Bounds(1.0, classes=(0, 1))
    model = DPLogisticRegression(20.0, 1e-6, bounds=bounds, penalty=None, solver=solver, ledger=False).fit(X, y)
    assert float(model.predict_proba(X)[:, 1].mean()) == pytest.approx(1 / 150, rel=0.5)
