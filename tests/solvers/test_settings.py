"""What solvers by name stand for: settings from public facts, and what they are worth."""

import math

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from discreet import Bounds, DPLogisticRegression
from discreet.losses import Gamma, Huber, Logistic, Poisson, Quantile, SmoothedHinge, Softmax, Squared
from discreet.models import DPClassifier, DPOrdinalRegression, DPRegressor
from discreet.penalties import L1, L2
from discreet.solvers import settings
from discreet.solvers.settings import Setting
from discreet.testing import seeded
from tests.covering import covering

NAMES = ("gd", "sgd", "svrg", "agd")


@covering(("name", ["gd", "sgd", "svrg"]), ("epsilon", [0.1, 1.0]))
def test_with_corners_noise_alone_is_not_fitted(name, epsilon, monkeypatch):
    """Labels without signal, 2 rows per column. Whole steps of svrg had 10 and 1.5 times the loss of no columns."""
    rng = np.random.default_rng(4)
    X, y = rng.uniform(-1, 1, (600, 300)), rng.integers(0, 2, 600)

    def loss():
        model = DPLogisticRegression(
            epsilon, 1e-6, bounds=1.0, classes=(0, 1), solver=name, penalty=L1(1e-3), neighbors="zero_out"
        )
        with seeded(1):
            margins = model.fit(X, y).decision_function(rng.uniform(-1, 1, (600, 300)))
        return np.mean(np.logaddexp(0, margins) - margins / 2) / math.log(2.0)

    assert loss() < 1.01
    monkeypatch.setattr(settings, "as_declared", lambda facts, solver: solver)  # shrinking would hide long steps
    monkeypatch.setitem(settings.SETTINGS, "plain.step", Setting("plain.step", 1.0))
    assert loss() > 1.2


@covering(("name", ["gd", "sgd", "svrg"]), ("columns", ["equal", "even"]), ("epsilon", [0.1, 1.0, 4.0]))
def test_a_pure_budget_is_not_worse_than_no_columns(name, columns, epsilon, monkeypatch):
    """Excess losses of 1,000 x 20 labels, where 1 is the trivial model. With 8 sqrt(I) steps they were 9 to 40."""
    rng = np.random.default_rng(6)
    X = rng.choice([-1.0, 1.0], (1000, 1)) * np.ones(20) if columns == "equal" else rng.uniform(-1, 1, (1000, 20))
    margins = X @ rng.uniform(-0.5, 1.0, 20)
    y = (rng.random(1000) < 1 / (1 + np.exp(-margins / margins.std()))).astype(int)
    best = LogisticRegression(C=1e4, max_iter=1000).fit(X, y)

    def loss(model):
        return -np.log(np.maximum(model.predict_proba(X)[np.arange(1000), y], 1e-300)).mean()

    def excess(seed):
        with seeded(seed):
            model = DPLogisticRegression(epsilon, 0.0, bounds=1.0, classes=(0, 1), solver=name).fit(X, y)
        return (loss(model) - loss(best)) / (-np.log([1 - y.mean(), y.mean()])[y].mean() - loss(best))

    assert np.mean([excess(seed) for seed in range(3)]) < 1.1
    monkeypatch.setattr(settings, "as_declared", lambda facts, solver: solver)  # shrinking would hide many steps
    monkeypatch.setitem(settings.SETTINGS, "pure.n_steps", Setting("pure.n_steps", lambda s: 50 * s.single**0.6))
    assert np.mean([excess(seed) for seed in range(3)]) > 1.1


@pytest.fixture(scope="module")
def far_columns():
    """Correlated columns of unlike spread, far from the middle of their ranges."""
    rng = np.random.default_rng(3)
    spread = np.geomspace(0.02, 0.3, 6)
    X = np.clip(rng.uniform(-0.5, 0.5, 6) + spread * rng.normal(size=(8000, 6)), -1, 1)
    margins = (X - X.mean(axis=0)) @ (rng.normal(size=6) / spread) * 0.7 + 0.3
    return X, (rng.random(8000) < 1 / (1 + np.exp(-margins))).astype(int), margins + rng.normal(size=8000)


@pytest.mark.parametrize("name", NAMES)
def test_defaults_learn_columns_of_unlike_spread(name, far_columns):
    """Steps in declared coordinates had an excess loss of a third to a half of what can be learned."""
    X, y, _ = far_columns
    best = LogisticRegression(C=np.inf, max_iter=5000).fit(X, y)

    def loss(model):
        chance = model.predict_proba(X)[np.arange(len(y)), y]
        return -np.log(chance).mean()

    with seeded(1):
        model = DPLogisticRegression(2.0, bounds=1.0, classes=(0, 1), solver=name, neighbors="zero_out").fit(X, y)
    entropy = -(y.mean() * np.log(y.mean()) + (1 - y.mean()) * np.log(1 - y.mean()))
    assert loss(model) - loss(best) < 0.1 * (entropy - loss(best))


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["gd", "svrg", "agd", "cd", "output", "objective"])
def test_rare_columns_of_rare_labels_are_not_taken_for_what_their_rows_lost(name):
    """Rows that are shrunk have a smaller constant, which the slopes of rare columns made up for: -10 of labels -2."""
    rng = np.random.default_rng(8)
    X, y = (rng.random((15_000, 4)) < 0.01).astype(float), (rng.random(15_000) < 0.1).astype(int)
    bounds = Bounds(features=[(0.0, 1.0)] * 4, classes=(0, 1))
    with seeded(0):
        model = DPLogisticRegression(4.0, 1e-6, bounds=bounds, solver=name, neighbors="zero_out").fit(X, y)
    assert np.abs(model.coef_).max() < 6.0


LOSSES = {
    "logistic": Logistic(),
    "smoothed hinge": SmoothedHinge(0.5),
    "squared": Squared(),
    "huber": Huber(0.3),
    "quantile": Quantile(0.5, 0.2),
    "poisson": Poisson(5.0),
    "gamma": Gamma(5.0),
    "softmax": Softmax(3),
    "ordered classes": None,
}


@pytest.mark.few(4)
@pytest.mark.parametrize("name", ["auto", "gd", "svrg", "agd"])
@pytest.mark.parametrize("loss", LOSSES)
def test_without_noise_a_pure_budget_has_the_optimum_of_others(loss, name):
    """What is clipped in L1 has a larger bound: clips of L2 moved thresholds of ordered classes by .1."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (300, 3))
    margins = X @ [1.0, -0.7, 0.4]
    places = np.digitize(margins + rng.logistic(size=300), [-0.5, 0.8])
    kind, made, given = DPRegressor, LOSSES[loss], {"penalty": L2(1e-3)}
    y, bounds = np.clip(np.exp(margins), 0.1, 10.0), Bounds(features=1.0, target=(0.1, 10.0))
    if loss == "ordered classes":
        kind, y, bounds = DPOrdinalRegression, places, 1.0
        given = {"alpha": 1e-3, "classes": (0, 1, 2)}
    elif made.task == "classification":
        classes = (0, 1, 2) if loss == "softmax" else (0, 1)
        kind, y, bounds = DPClassifier, np.minimum(places, classes[-1]), Bounds(features=1.0, classes=classes)
    given |= {} if made is None else {"loss": made}

    def margins_of(delta):
        model = kind(math.inf, delta, bounds=bounds, solver=name, ledger=False, **given).fit(X, y)
        return X @ np.atleast_2d(model.coef_).T + model.intercept_

    np.testing.assert_allclose(margins_of(0.0), margins_of(1e-6), atol=2e-3)
