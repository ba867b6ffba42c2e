"""The parametric bootstrap: free of budget, repeatable, right about laws and about a bias that is there."""

import numpy as np
import pandas as pd
import pytest

import discreet
from discreet import DPLinearRegression, DPLogisticRegression, DPPoissonRegressor
from discreet.models.forecast.synthetic import Stream
from discreet.models.inference import bootstrap
from discreet.models.inference.quantiles import percentile_t
from discreet.testing import seeded

TRUTH = np.array([0.8, -0.4, 0.1])


def drawn(kind, n=5000, seed=0):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.uniform(-1, 1, n), rng.random(n) < 0.3])
    m = X @ TRUTH[:2] + TRUTH[2]
    if kind is DPLogisticRegression:
        return X, (rng.random(n) < 1 / (1 + np.exp(-m))).astype(int)
    if kind is DPPoissonRegressor:
        return X, np.minimum(rng.poisson(np.exp(m)), 20).astype(float)
    return X, m + rng.normal(size=n)


def model_of(kind, **settings):
    facts = {DPLogisticRegression: {"classes": (0, 1)}, DPPoissonRegressor: {"target": (0, 20)}}
    known = facts.get(kind, {"target": (-6, 6)})
    given = {"epsilon": 2.0, "delta": 1e-6, "inference": "bootstrap", "ledger": False, **known, **settings}
    return kind(bounds=[(-1, 1), (0, 1)], **given)


@pytest.fixture(autouse=True)
def _fewer(monkeypatch):
    monkeypatch.setattr(bootstrap, "TABLES", 30)


@pytest.mark.few(2)
@pytest.mark.parametrize("kind", [DPLogisticRegression, DPLinearRegression, DPPoissonRegressor])
def test_the_truth_is_within_reach(kind, tmp_path):
    X, y = drawn(kind)
    with seeded(1):
        model = model_of(kind).fit(X, y)
    frame = model.summary().frame
    assert (np.abs(frame.coef - TRUTH) < 5 * frame.se).all()
    assert ((frame.low < frame.coef) & (frame.coef < frame.high)).all()
    assert model.effects_.draws.shape == (30, 4)
    np.testing.assert_allclose(model.effects_.draws[:, :-1].mean(axis=0), 0.0, atol=1e-12)
    same = discreet.load(model.save(tmp_path / "model.discreet"))
    pd.testing.assert_frame_equal(same.summary().frame, frame)


def test_it_costs_nothing_and_can_be_had_again():
    X, y = drawn(DPLinearRegression)
    plain = model_of(DPLinearRegression, inference="sandwich")
    quotes = [model.quote(X, y) for model in (model_of(DPLinearRegression), plain)]
    assert quotes[0].priced.events == quotes[1].priced.events
    found = []
    for _ in range(2):
        with seeded(3):
            found.append(model_of(DPLinearRegression).fit(X, y).summary().frame)
    pd.testing.assert_frame_equal(*found)


def test_simulated_tables_have_the_released_moments():
    X, y = drawn(DPLinearRegression, 20_000)
    model = model_of(DPLinearRegression, epsilon=50.0, inference="sandwich").fit(X, y)
    told = model._told(*model._facts())
    made = bootstrap._features(told, model.effects_, 50_000, Stream(1))
    np.testing.assert_allclose(made.mean(axis=0), X.mean(axis=0), atol=0.03)
    assert set(np.unique(made[:, 1])) == {0.0, 1.0}
    assert abs(made[:, 0].std() - X[:, 0].std()) < 0.15
    assert abs(model.effects_.deviation - 1.0) < 0.05


def test_a_bias_is_taken_away(monkeypatch):
    """An estimator that is .3 too high on every table, the real one and the simulated ones, is corrected by .3."""
    X, y = drawn(DPLinearRegression)
    honest = bootstrap.fit_model

    def lifted(*args, **words):
        from dataclasses import replace

        found = honest(*args, **words)
        return replace(found, coef=found.coef + 0.3)

    with seeded(4):
        before = model_of(DPLinearRegression).fit(X, y).coef_
    monkeypatch.setattr(bootstrap, "fit_model", lifted)
    with seeded(4):
        after = model_of(DPLinearRegression).fit(X, y).coef_
    np.testing.assert_allclose(before - after, 0.3, atol=1e-9)


def test_a_fit_is_kept_where_simulated_tables_fail(monkeypatch):
    def failing(*args, **words):
        raise discreet.errors.Unsupported("too little signal")

    monkeypatch.setattr(bootstrap, "fit_model", failing)
    X, y = drawn(DPLinearRegression)
    model = model_of(DPLinearRegression).fit(X, y)
    assert model.effects_.draws is None
    assert "too few simulated tables" in str(model.summary())


def test_quantiles_of_few_draws_are_gaussian():
    draws = np.random.default_rng(0).normal(0.5, 2.0, 4000)
    low, high = percentile_t(draws, 0.9)
    np.testing.assert_allclose((low, high), np.quantile(draws, [0.05, 0.95]))
    low, high = percentile_t(draws[:50], 0.95)
    half = 1.959964 * draws[:50].std()
    np.testing.assert_allclose((low, high), (draws[:50].mean() - half, draws[:50].mean() + half), rtol=1e-5)
