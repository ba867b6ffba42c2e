"""Families with a log link: without noise a GLM's model, whatever the unit; what is not proven is refused first."""

import math

import numpy as np
import pandas as pd
import pytest

from discreet import Bounds, DPPoissonRegressor, DPRandomizedSearch, TableModel, private_score
from discreet.errors import Unsupported
from discreet.losses import Gamma
from discreet.models import (
    DPGammaRegressor,
    DPNegativeBinomialRegressor,
    DPQuantileRegressor,
    DPRegressor,
    DPTweedieRegressor,
)
from discreet.schema.columns import Number, Target
from discreet.schema.schema import Schema

RANGES = [(-1.0, 1.0)] * 3
KINDS = {
    "poisson": (DPPoissonRegressor, (0, 40), {"alpha": 0.0}),
    "negative binomial": (DPNegativeBinomialRegressor, (0, 99), {"dispersion": 0.7}),
    "gamma": (DPGammaRegressor, (0, 40_000), {}),
    "tweedie": (DPTweedieRegressor, (0, 100), {"power": 1.4}),
}


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X, w, o = rng.uniform(-1, 1, (40_000, 3)), rng.uniform(0.5, 2, 40_000), rng.uniform(-1, 1, 40_000)
    return X, w, o, rng


def drawn(name, mean, rng):
    if name == "poisson":
        return np.minimum(rng.poisson(mean), 40)
    if name == "negative binomial":
        return np.minimum(rng.negative_binomial(1 / 0.7, 1 / (1 + 0.7 * mean)), 99)
    if name == "gamma":
        return 1000 * rng.gamma(2.0, mean / 2)
    return np.minimum(rng.gamma(2.0 * rng.poisson(mean) + 1e-9, 1.0), 100)


def family(name, sm):
    log = sm.families.links.Log()
    return {
        "poisson": sm.families.Poisson(),
        "negative binomial": sm.families.NegativeBinomial(alpha=0.7),
        "gamma": sm.families.Gamma(log),
        "tweedie": sm.families.Tweedie(log, var_power=1.4),
    }[name]


@pytest.mark.parametrize("beside", ["nothing", "weights", "offsets"])
@pytest.mark.parametrize("name", KINDS)
def test_without_noise_the_model_is_a_glm(table, name, beside, seeded):
    sm = pytest.importorskip("statsmodels.api")
    X, w, o, rng = table
    kind, ends, settings = KINDS[name]
    if (name, beside) == ("negative binomial", "offsets"):
        pytest.skip("refused: below")
    mean = np.exp(0.3 + X @ [0.5, -0.4, 0.3] + (o if beside == "offsets" else 0.0))
    y = drawn(name, mean, rng)
    facts = {"weights": {"weights": (0.5, 2)}, "offsets": {"offsets": (-1, 1)}}.get(beside, {})
    model = kind(1e6, 1e-6, bounds=Bounds(RANGES, target=ends, **facts), neighbors="zero_out", ledger=False, **settings)
    ours = {"weights": {"sample_weight": w}, "offsets": {"offset": o}}.get(beside, {})
    with seeded(1):
        model.fit(X, y, **ours)
    theirs = {"weights": {"freq_weights": w}, "offsets": {"offset": o}}.get(beside, {})
    exact = sm.GLM(y, sm.add_constant(X), family=family(name, sm), **theirs).fit(tol=1e-13, maxiter=200).params
    assert np.abs(np.r_[model.intercept_, model.coef_] - exact).max() < 2e-5  # the noise of epsilon = 1e6


def test_the_unit_of_amounts_moves_the_intercept_alone(table, seeded):
    X, _, _, rng = table
    y = rng.gamma(2.0, np.exp(X @ [0.5, -0.4, 0.3]) / 2)
    models = []
    for unit in (1.0, 1000.0):
        model = DPGammaRegressor(1.0, bounds=RANGES, target=(0, 20 * unit), ledger=False)
        with seeded(3):
            models.append(model.fit(X, unit * y))
    dollars, thousands = models
    np.testing.assert_allclose(dollars.coef_, thousands.coef_, atol=1e-9)
    assert thousands.intercept_ - dollars.intercept_ == pytest.approx(math.log(1000.0))
    np.testing.assert_allclose(1000 * dollars.predict(X[:9]), thousands.predict(X[:9]))


@pytest.mark.parametrize("name", ["negative binomial", "gamma", "tweedie"])
def test_little_signal_predicts_about_the_mean(table, name, seeded):
    X, _, _, rng = table
    kind, ends, settings = KINDS[name]
    y = drawn(name, np.exp(0.3 + X @ [0.5, -0.4, 0.3]), rng)
    for epsilon, n in ((0.5, 500), (0.5, 4000), (4.0, 40_000)):
        with seeded(5):
            model = kind(epsilon, 1e-6, bounds=RANGES, target=ends, ledger=False, **settings).fit(X[:n], y[:n])
        error = np.mean((model.predict(X) - y) ** 2)
        assert error < 1.3 * np.var(y)


def test_offsets_of_negative_binomial_counts_are_refused_before_a_charge(table):
    X, _, o, _ = table
    bounds = Bounds(RANGES, target=(0, 9), offsets=(-1, 1))
    with pytest.raises(Unsupported, match="offsets are not defined"):
        DPNegativeBinomialRegressor(bounds=bounds, ledger=False).quote(X, np.ones(len(X)), offset=o)


@pytest.mark.parametrize("quantile", [5e-324, 1e-310, 1e-290])
def test_a_quantile_whose_slopes_no_lattice_holds_is_refused_before_a_charge(table, quantile):
    X, _, _, _ = table
    with pytest.raises(Unsupported, match="quantile must be a number between 0 and 1"):
        DPQuantileRegressor(bounds=RANGES, target=(-3, 9), quantile=quantile, ledger=False).quote(X, X[:, 0])


def test_standard_errors_that_are_not_proven_are_refused_before_a_charge(table):
    X, _, _, _ = table
    model = DPRegressor(bounds=RANGES, target=(0, 9), loss=Gamma(), penalty=None, inference="sandwich", ledger=False)
    with pytest.raises(Unsupported, match="not proven for the Gamma loss"):
        model.quote(X, np.ones(len(X)))


@pytest.mark.parametrize("name", ["negative binomial", "gamma", "tweedie"])
def test_tables_files_scores_and_searches(table, name, tmp_path):
    X, _, _, rng = table
    kind, ends, settings = KINDS[name]
    frame = pd.DataFrame(X[:3000], columns=["a", "b", "c"])
    frame["y"] = drawn(name, np.exp(0.3 + X[:3000] @ [0.5, -0.4, 0.3]), rng)
    schema = Schema({c: Number((-1, 1)) for c in "abc"}, Target("y", range=ends))
    model = TableModel(schema, kind(5.0, ledger=False, **settings)).fit(frame)
    again = TableModel.load(model.save(tmp_path / "model"))
    np.testing.assert_array_equal(model.predict(frame), again.predict(frame))
    score = model.private_score(frame, metric="mae", epsilon=5.0, ledger=False)
    assert score.value >= 0
    arrays = kind(5.0, bounds=RANGES, target=ends, ledger=False, **settings)
    found = DPRandomizedSearch(arrays, {"alpha": [1e-4, 1e-3]}, epsilon=5.0).fit(X[:3000], frame["y"])
    best = found.best_estimator_
    assert private_score(best, X[:3000], frame["y"], metric="mae", epsilon=5.0, ledger=False).value >= 0
