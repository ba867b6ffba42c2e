"""How the default behaves where data are few, odd or empty: never much worse than the trivial one, never NaN.

What "much" is comes from the noise of the trivial model itself: a private majority vote, or a private mean.
"""

import math
import warnings

import numpy as np
import pytest
from scipy import sparse

from discreet import Budget, DPHuberRegressor, DPLinearRegression, DPLinearSVC, DPLogisticRegression, DPRidge
from discreet.curator.records.recoding import Recoding
from discreet.default import Recipe
from discreet.testing import seeded
from tests.covering import covering
from tests.replaying import window
from tests.solvers.perturbation.cases import stream
from tests.solvers.whitened.cases import descent, opened, rows_through


def fitted(model, X, y, seed=0, groups=None):
    """A fit that must not warn: a warning is an answer."""
    with stream(seed), warnings.catch_warnings():
        warnings.simplefilter("error")
        return model.fit(X, y, groups=groups)


# ------------------------------------------------------------------------------- odd tables

MODELS = {
    "logistic": lambda **facts: DPLogisticRegression(**{"classes": (-1, 1), **facts}),
    "svc": lambda **facts: DPLinearSVC(**{"classes": (-1, 1), **facts}),
    "ridge": lambda **facts: DPRidge(**{"target": (-1.0, 1.0), "alpha": 1e-7, **facts}),
    "huber": lambda **facts: DPHuberRegressor(**{"target": (-1.0, 1.0), "alpha": 1e-7, **facts}),
}
SIZE = 1500


def odd_table(kind, n=SIZE):
    rng = np.random.default_rng(3)
    X = rng.uniform(-1, 1, (n, 4))
    bounds = [(-1.0, 1.0)] * 4
    if kind == "too wide":
        bounds = [(-30.0, 30.0)] * 4
    elif kind == "constant":
        X[:, 1:3] = 0.0, 1.0
    elif kind == "declared constant":
        X[:, 1:3], bounds = (0.0, 5.0), [(-1.0, 1.0), (0.0, 0.0), (5.0, 5.0), (-1.0, 1.0)]
    elif kind == "duplicated":
        X = np.hstack([X, X, -X, X[:, :1] + X[:, 1:2]])
        bounds = [(-1.0, 1.0)] * 12 + [(-2.0, 2.0)]
    elif kind == "years":
        X, bounds = 2005 + 15 * X, [(1990.0, 2020.0)] * 4
    elif kind == "one feature":
        X, bounds = X[:, :1], bounds[:1]
    elif kind == "far":
        X, bounds = 1e6 + (X + 1) / 2, [(1e6, 1e6 + 1)] * 4
    elif kind == "negative":
        X, bounds = X - 11.0, [(-12.0, -10.0)] * 4
    standard = (X[:, 0] - np.mean(bounds[0])) / np.ptp(bounds[0]) * 2 * (30 if kind == "too wide" else 1)
    return X, np.clip(0.8 * standard + rng.normal(0, 0.2, n), -1, 1), bounds


ODD = ["too wide", "constant", "declared constant", "duplicated", "years", "one feature", "negative"]


@covering(("relation", ["zero_out", "replace_one"]), ("name", MODELS), ("kind", ODD))
def test_odd_tables_are_learned(kind, name, relation):
    X, target, bounds = odd_table(kind)
    y = target if name in ("ridge", "huber") else np.where(target > 0, 1, -1)
    scores = []
    for seed in range(2):
        model = MODELS[name](epsilon=4.0, delta=1e-6, bounds=bounds, neighbors=relation)
        fitted(model, X, y, seed)
        assert np.isfinite(model.coef_).all()
        assert np.isfinite(model.intercept_).all()
        scores.append(model.score(X, y))
    assert min(scores) > (0.5 if name in ("ridge", "huber") else 0.8)


@pytest.mark.parametrize("name", MODELS)
def test_ranges_very_far_from_zero_are_learned_without_a_penalty(name):
    """A range of a millionth of its distance from 0: three points of the grid."""
    X, target, bounds = odd_table("far")
    free = {"alpha": 0.0} if name in ("ridge", "huber") else {"penalty": None}
    y = target if name in ("ridge", "huber") else np.where(target > 0, 1, -1)
    model = fitted(MODELS[name](epsilon=4.0, bounds=bounds, **free), X, y)
    assert model.score(X, y) > (0.5 if name in ("ridge", "huber") else 0.8)


@pytest.mark.parametrize(
    ("kind", "estimator"),
    [
        ("years", DPLogisticRegression),
        ("years", DPLinearSVC),
        ("years", DPRidge),
        ("years", DPHuberRegressor),
        ("far", DPRidge),
        ("far", DPLogisticRegression),
    ],
)
def test_the_default_penalty_lets_far_ranges_count(kind, estimator):
    X, target, bounds = odd_table(kind)
    numbers = estimator in (DPRidge, DPHuberRegressor)
    facts = {"target": (-1.0, 1.0)} if numbers else {"classes": (-1, 1)}
    y = target if numbers else np.where(target > 0, 1, -1)
    model = fitted(estimator(4.0, bounds=bounds, **facts), X, y)
    assert model.score(X, y) > (0.5 if numbers else 0.8)


@covering(
    ("form", ["full", "diagonal", "plain", "recipe", "declared recipe"]),
    ("epsilon", [0.05, 1.0, 50.0]),
    ("kind", ["too wide", "duplicated", "one feature", "constant"]),
)
def test_nothing_diverges(kind, epsilon, form):
    """Too many steps with too much momentum, on any table: margins stay within what the ball allows."""
    X, target, bounds = odd_table(kind, n=200)
    wild = {"n_steps": 60, "momentum": 0.95}
    recipes = {
        "recipe": Recipe(**wild, clip=4.0, n_travel=20, n_newton=20, weight_radius=8.0),
        "declared recipe": Recipe("declared", **wild, clip=4.0, n_newton=20, weight_radius=8.0),
    }
    solver = recipes.get(form) or descent(form, step=3.0, **wild)
    model = MODELS["logistic"](epsilon=epsilon, bounds=bounds, solver=solver, neighbors="zero_out")
    fitted(model, X, np.where(target > 0, 1, -1))
    assert np.abs(model.decision_function(X)).max() < 1e7


def test_no_intercept_learns_slopes():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (2000, 3))
    y = 0.5 * X[:, 0]
    for name in ("logistic", "ridge"):
        model = MODELS[name](epsilon=4.0, bounds=1.0, fit_intercept=False)
        fitted(model, X, np.where(y > 0, 1, -1) if name == "logistic" else y)
        assert not np.any(model.intercept_)
        assert np.argmax(np.abs(model.coef_)) == 0


@pytest.mark.parametrize("wrap", [np.asarray, sparse.csr_array])
def test_many_columns(wrap):
    """Beyond p^2: no matrix, dense and sparse."""
    rng = np.random.default_rng(0)
    n, p = 600, 2100
    X = np.zeros((n, p))
    X[np.arange(n), rng.integers(0, p, n)] = 1.0
    y = rng.choice([-1, 1], n)
    X[:, 0] = y * 0.9
    solver = descent("diagonal", n_steps=4, momentum=0.9)
    for chosen in (solver, "auto"):
        model = MODELS["logistic"](epsilon=20.0, bounds=1.0, neighbors="zero_out", solver=chosen)
        fitted(model, wrap(X), y)
        assert model.certificate_.solver["coordinates"] == "diagonal" or chosen == "auto"
        assert np.isfinite(model.decision_function(X)).all()
        assert np.argmax(model.coef_[0]) == 0 or chosen == "auto"


@pytest.mark.parametrize("name", ["logistic", "ridge"])
def test_a_narrow_sparse_table_is_fitted_as_the_dense_one_is(name):
    """With the same noise it is the same model, where n is public; where n is private its zeros are not stored."""
    X, target, bounds = odd_table("plain")
    y = np.where(target > 0, 1, -1) if name == "logistic" else target
    for relation, same in (("zero_out", True), ("replace_one", True), ("add_remove", False)):
        made = []
        for wrap in (np.asarray, sparse.csr_array, sparse.coo_array):
            with seeded(1):
                made.append(
                    fitted(MODELS[name](epsilon=4.0, delta=1e-6, bounds=bounds, neighbors=relation), wrap(X), y)
                )
        solvers = [model.certificate_.solver["name"] for model in made]
        assert solvers[0] == "recipe"
        assert (solvers[1] == solvers[2] == solvers[0]) is same
        if same:
            for model in made[1:]:
                np.testing.assert_array_equal(model.coef_, made[0].coef_)
                np.testing.assert_array_equal(model.intercept_, made[0].intercept_)


@pytest.mark.parametrize("relation", ["zero_out", "add_remove"])
def test_persons_with_hundreds_of_rows_are_seen(relation):
    """A person's k rows count 1/k each, however many they are."""
    rng = np.random.default_rng(0)
    X, persons = rng.uniform(-1, 1, (6000, 3)), np.repeat(np.arange(20), 300)
    recoding = Recoding(np.zeros(3), np.ones(3), 0.5, 1.0)
    curator = opened(
        X, np.ones(6000), ["noisy_second_moment"], Budget(math.inf, 1e-6, relation), groups=persons, intercept=True,
        recoding=recoding,
    )  # fmt: skip
    rows, _ = rows_through(recoding, X, 2**14)
    np.testing.assert_allclose(curator.noisy_second_moment(clip=1.0, n=20), rows.T @ rows / 6000, atol=0.03)


@pytest.mark.parametrize("scale", [4.0, 6.0, 20.0])
def test_second_moments_of_short_rows_where_n_is_private(scale):
    """Wide tables have short entries: their second moment is neither cut to whole coefficients nor refused."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (300, 3))
    recoding = Recoding(np.zeros(3), np.full(3, scale), 1 / scale, 1.0)
    curator = opened(
        X, np.ones(300), ["noisy_second_moment"], Budget(1.3, 1e-6, "add_remove"), intercept=True, recoding=recoding
    )
    with window() as seen:
        curator.noisy_second_moment(clip=1.0, n=300)
    rows, _ = rows_through(recoding, X, 2**14)
    found = seen[0].exact * seen[0].unit.step
    np.testing.assert_allclose(found, rows.T @ rows, atol=0.02 * np.abs(rows.T @ rows).max())


@pytest.mark.thorough
def test_a_wide_regression_where_n_is_private():
    rng = np.random.default_rng(0)
    X = rng.choice([-1.0, 1.0], (2000, 600))
    model = DPRidge(4.0, 1e-6, bounds=1.0, target=(-1, 1), neighbors="add_remove")
    assert np.isfinite(fitted(model, X, 0.5 * X[:, 0]).coef_).all()


def test_directions_in_which_rows_hardly_vary_are_learned():
    """In declared coordinates their coefficients have the noise of rows that are many times as long."""
    rng = np.random.default_rng(0)
    X = np.clip(0.3 * (rng.normal(size=(8000, 1)) + 0.1 * rng.normal(size=(8000, 8))), -1, 1)
    differences = X - X.mean(axis=1, keepdims=True)
    y = np.clip(differences @ np.linspace(-8, 8, 8) + 0.1 * rng.normal(size=8000), -4, 4)
    found = []
    for solver in ("auto", Recipe("declared")):
        model = DPLinearRegression(0.5, 1e-6, bounds=1.0, target=(-4.0, 4.0), solver=solver, neighbors="zero_out")
        found.append(np.mean([fitted(model, X, y, seed).score(X, y) for seed in range(3)]))
    assert found[0] > 0.75 > 0.5 > found[1]
