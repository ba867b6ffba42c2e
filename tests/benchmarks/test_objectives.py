"""The objectives that limits and comparisons are measured with are scikit-learn's, and so are their minimizers."""

import numpy as np
import pytest
from sklearn.linear_model import ElasticNet, LinearRegression, LogisticRegression, PoissonRegressor

from benchmarks.measures.objectives import Coordinates, Loss, Objective
from discreet import Bounds


def theirs(name, n, l1, l2):
    if name in ("logistic", "softmax"):
        if l1:
            ratio, C = l1 / (l1 + l2), 1 / (n * (l1 + l2))
            return LogisticRegression(
                C=C, l1_ratio=ratio, solver="saga", fit_intercept=False, tol=1e-9, max_iter=100_000
            )
        return LogisticRegression(C=1 / (n * l2), fit_intercept=False, tol=1e-12, max_iter=10_000, solver="newton-cg")
    if name == "poisson":
        return PoissonRegressor(alpha=l2, fit_intercept=False, tol=1e-12, max_iter=10_000, solver="newton-cholesky")
    if l1 + l2 == 0:
        return LinearRegression(fit_intercept=False)
    return ElasticNet(alpha=l1 + l2, l1_ratio=l1 / (l1 + l2), fit_intercept=False, tol=1e-14, max_iter=100_000)


@pytest.mark.whole
@pytest.mark.parametrize(
    ("name", "l1", "l2"),
    [
        ("logistic", 0.0, 1e-4),
        ("logistic", 0.01, 0.0),
        ("logistic", 0.01, 0.02),
        ("softmax", 0.0, 1e-3),
        ("squared", 0.0, 0.0),
        ("squared", 0.03, 0.0),
        ("squared", 0.03, 0.02),
        ("poisson", 0.0, 1e-3),
    ],
)
def test_the_minimizer_is_scikit_learns(table, name, l1, l2):
    y = {"logistic": table.signs, "softmax": table.labels, "poisson": table.counts}.get(name, table.numbers)
    made = Objective(table.with_ones, y.astype(float), Loss(name, 20.0), l1, l2, 3 if name == "softmax" else 1)
    found = theirs(name, len(y), l1, l2).fit(table.with_ones, y)
    w = found.coef_.T if name == "softmax" else np.ravel(found.coef_)
    assert made.least == pytest.approx(made.value(w), rel=1e-9)
    assert made.least <= made.value(w) + 1e-12
    assert made.least < made.trivial < made.value(np.zeros(made.shape))


@pytest.mark.whole
@pytest.mark.parametrize("name", ["logistic", "squared", "huber", "hinge", "poisson", "softmax"])
def test_slopes_and_curvatures_are_derivatives(table, name):
    y = {"softmax": table.labels, "poisson": table.counts, "squared": table.numbers, "huber": table.numbers}
    made = Objective(
        table.with_ones,
        y.get(name, table.signs).astype(float),
        Loss(name, 0.3),
        0.0,
        0.1,
        3 if name == "softmax" else 1,
    )
    w, step = np.random.default_rng(0).normal(size=made.shape), 1e-6
    for j in range(w.size):
        move = step * np.eye(w.size)[j].reshape(w.shape)
        slope = (made.value(w + move) - made.value(w - move)) / (2 * step)
        assert np.ravel(made.gradient(w))[j] == pytest.approx(slope, abs=1e-6)
        if name not in ("huber", "hinge"):  # their curvatures jump
            change = np.ravel(made.gradient(w + move) - made.gradient(w - move)) / (2 * step)
            np.testing.assert_allclose(made.hessian(w)[j], change, atol=1e-5)


@pytest.mark.whole
@pytest.mark.parametrize("name", ["logistic", "squared", "softmax"])
def test_an_l1_penalty_meets_its_conditions_where_columns_are_nearly_alike(table, name):
    """Kept coefficients balance the slope, others bound it."""
    y = {"squared": table.numbers, "softmax": table.labels}.get(name, table.signs).astype(float)
    rows = 1.0 + 0.01 * table.X
    made = Objective(rows, y, Loss(name), 2e-3, classes=3 if name == "softmax" else 1)
    w = made.minimizer
    slope = made.gradient(w)
    assert (w == 0).any()
    np.testing.assert_allclose(slope[w != 0], -2e-3 * np.sign(w[w != 0]), atol=1e-7)
    assert np.abs(slope).max() < 2e-3 + 1e-7


@pytest.mark.whole
@pytest.mark.parametrize("name", ["huber", "hinge"])
def test_corners_do_not_stop_the_minimizer(table, name):
    y = table.numbers if name == "huber" else table.signs.astype(float)
    made = Objective(table.with_ones, y, Loss(name, 0.1), 0.0, 1e-6)
    assert np.abs(made.gradient(made.minimizer)).max() < 1e-8


def test_coordinates_are_those_of_the_declared_ranges():
    """Clipped, divided by the bound; centered where the range leaves out 0 and there is an intercept."""
    bounds = Bounds([(-2, 1), (10, 20), (3, 3)], target=(100, 140))
    X, y = np.array([[-5.0, 12.5, 3.0]]), np.array([150.0])
    made = Coordinates.of(bounds, 3, Loss("squared"), True)
    np.testing.assert_allclose(made.rows(X), [[-1, -0.5, 1, 1]])
    np.testing.assert_allclose(made.targets(y), [1.0])
    made = Coordinates.of(bounds, 3, Loss("squared"), False)
    np.testing.assert_allclose(made.rows(X), [[-1, 0.625, 1]])
    np.testing.assert_allclose(made.targets(y), [1.0])
    assert Coordinates.of(bounds, 3, Loss("poisson"), True).targets(y)[0] == 140
    labels = Coordinates.of(Bounds(1.0, classes=("no", "yes")), 1, Loss("logistic"), True)
    np.testing.assert_array_equal(labels.targets(["yes", "no"]), [1, -1])
