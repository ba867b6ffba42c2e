"""Effects without much noise are those of statsmodels, on ugly tables; and limits alone bias them little."""

from contextlib import suppress
from functools import partial

import numpy as np
import pytest

from benchmarks.problems.ugly import MODELS, WIDTH, plain_fit, ugly
from discreet import Bounds, DPHuberRegressor, DPLinearRegression, DPLogisticRegression, DPPoissonRegressor, DPRidge
from discreet.curator import observe
from discreet.errors import Unsupported
from discreet.testing import seeded

N = 20_000
ESTIMATORS = {
    "logistic": DPLogisticRegression,
    "softmax": DPLogisticRegression,
    "linear": DPLinearRegression,
    "ridge": DPRidge,
    "huber": partial(DPHuberRegressor, width=WIDTH),
    "poisson": DPPoissonRegressor,
}
SHARE_NEAR = {"logistic": 0.9, "softmax": 0.99, "linear": 0.9, "ridge": 0.95, "huber": 0.99, "poisson": 0.95}
"""Of the effects of a model's tables: those shown, and as near to the plain ones as they should be. A covariance of
scores of dozens of columns with far-out values, or of persons, has noise of more than 5 % even at epsilon = 1e5."""
SHARE_UNBIASED = {"logistic": 0.98, "linear": 0.95, "poisson": 0.93}
SEEDS = tuple(range(1, 15, 2))


def drawn(model, seed):
    """Return a law, a table of it, and the plain fit."""
    law = ugly(model, seed)
    X, y = law.draw(np.random.default_rng([seed, 5]), N)
    return law, X, y, plain_fit(X, y, model, law.fit_intercept, law.groups(N))


def fitted(law, X, y, epsilon):
    words = {"neighbors": "zero_out", "inference": "sandwich", "fit_intercept": law.fit_intercept, "ledger": False}
    model = ESTIMATORS[law.model](epsilon, 1 / N**2, bounds=law.bounds, **words)
    with seeded(law.seed):
        return model.fit(X, y, groups=law.groups(N)).summary().columns()


def near_plain(model, seed):
    """Say of each effect at epsilon = 1e5 whether it is shown, within .1 plain errors and with its standard error."""
    law, X, y, (plain, se) = drawn(model, seed)
    found = fitted(law, X, y, 1e5)
    with np.errstate(invalid="ignore"):
        return (np.abs(found["coef"] - plain) <= 0.1 * se) & (np.abs(found["se"] / se - 1) <= 0.05)


def within_errors(model, seed, epsilon):
    """Say of each shown effect whether limits, without noise, leave a bias below half a standard error."""
    law, X, y, (plain, _) = drawn(model, seed)
    try:
        with observe(lambda measurement: measurement.exact):
            found = fitted(law, X, y, epsilon)
    except Unsupported:
        return np.ones(0, dtype=bool)
    gap = np.abs(found["coef"] - plain) / found["se"]
    return gap[~np.isnan(gap)] < 0.5


@pytest.mark.whole
@pytest.mark.parametrize(
    ("model", "seed"),
    [
        *[("logistic", seed) for seed in (1, 3, 7, 56, 60)],
        *[("linear", 3), ("huber", 3), ("huber", 42), ("ridge", 338), ("poisson", 13)],
    ],
)
def test_one_ugly_table_has_the_plain_effects(model, seed):
    assert near_plain(model, seed).all()


@pytest.mark.parametrize(("mean", "most"), [(0.004, 10), (300.0, 2000)])
def test_rare_and_large_counts_have_the_plain_effects(mean, most):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(-1, 1, N), rng.random(N) < 0.1]).astype(float)
    y = np.minimum(rng.poisson(mean * np.exp(X @ [0.5, -0.5])), most).astype(float)
    plain, se = plain_fit(X, y, "poisson")
    bounds = Bounds([(-1, 1), (0, 1)], target=(0, most))
    with seeded(0):
        model = DPPoissonRegressor(1e5, 1 / N**2, bounds=bounds, inference="sandwich", ledger=False).fit(X, y)
    found = model.summary().columns()
    np.testing.assert_allclose(found["coef"], plain, atol=0.1 * float(se.min()))
    np.testing.assert_allclose(found["se"], se, rtol=0.05)


def test_effects_on_a_rare_class_are_shown():
    """One percent of outcomes: slopes vary little, and rows count in full only as far as that allows."""
    shown = 0
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X = np.column_stack([rng.uniform(-1, 1, N), rng.random(N) < 0.1]).astype(float)
        y = (rng.random(N) < 1 / (1 + np.exp(4.6 - X @ [0.6, 1.0]))).astype(float)
        bounds = Bounds([(-1, 1), (0, 1)], classes=(0, 1))
        words = {"neighbors": "zero_out", "inference": "sandwich", "ledger": False}
        with seeded(seed):
            model = DPLogisticRegression(3.0, 1 / N**2, bounds=bounds, **words).fit(X, y)
        with suppress(Unsupported):
            shown += np.isfinite(model.summary().columns()["coef"]).sum()
    assert shown >= 6  # of 12


@pytest.mark.thorough
@pytest.mark.parametrize("model", MODELS)
def test_ugly_tables_have_the_plain_effects(model):
    found = np.concatenate([near_plain(model, seed) for seed in SEEDS])
    assert found.mean() >= SHARE_NEAR[model]


@pytest.mark.whole
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0, 10.0])
def test_limits_leave_a_skewed_outcome_unbiased(epsilon):
    assert within_errors("linear", 9, epsilon).all()


@pytest.mark.thorough
@pytest.mark.parametrize("model", SHARE_UNBIASED)
def test_limits_alone_bias_few_effects(model):
    found = [within_errors(model, seed, epsilon) for seed in SEEDS for epsilon in (0.5, 1.0, 3.0, 10.0)]
    assert np.concatenate(found).mean() >= SHARE_UNBIASED[model]


@pytest.mark.parametrize("model", ["logistic", "linear", "poisson", "softmax"])
def test_the_plain_fit_is_that_of_statsmodels(model):
    """Coefficients and robust standard errors."""
    sm = pytest.importorskip("statsmodels.api")
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(-1, 1, 3000), rng.random(3000) < 0.1]).astype(float)
    m = X @ [0.8, -0.5]
    outcomes = {"logistic": rng.random(3000) < 1 / (1 + np.exp(-m)), "poisson": rng.poisson(np.exp(m))}
    outcomes["softmax"] = np.argmax(np.column_stack([0 * m, m, -m]) + rng.gumbel(size=(3000, 3)), axis=1)
    y = np.asarray(outcomes.get(model, m + rng.normal(size=3000))).astype(float)
    Z = np.column_stack([X, np.ones(3000)])
    kinds = {"logistic": sm.Logit, "poisson": sm.Poisson, "softmax": sm.MNLogit, "linear": sm.OLS}
    words = {} if model == "linear" else {"disp": 0}
    known = kinds[model](y, Z).fit(cov_type="HC0", **words)
    w, se = plain_fit(X, y, model)
    np.testing.assert_allclose(w, np.asarray(known.params).T.ravel(), atol=1e-6)
    np.testing.assert_allclose(se, np.asarray(known.bse).T.ravel(), rtol=1e-4)
