"""Effects of columns that few rows have: whole rows, so that a rare value keeps its own effect."""

import numpy as np
import pytest

from benchmarks.problems.ugly import plain_fit
from discreet import Bounds, DPHuberRegressor, DPLinearRegression, DPLogisticRegression, DPPoissonRegressor
from discreet.inference import estimate
from discreet.testing import neighbor_pairs, seeded
from tests.covering import covering
from tests.replaying import worst_ratio
from tests.solvers.perturbation.cases import bounds_of, fit_of, table

RELATIONS = ("replace_one", "zero_out", "add_remove")
MODELS = {
    "linear": (DPLinearRegression, {"target": (-10.0, 12.0)}, 5.0),
    "huber": (DPHuberRegressor, {"target": (-10.0, 12.0)}, 5.0),
    "logistic": (DPLogisticRegression, {"classes": (0, 1)}, 1.0),
    "poisson": (DPPoissonRegressor, {"target": (0.0, 30.0)}, 1.0),
    "softmax": (DPLogisticRegression, {"classes": (0, 1, 2)}, 1.0),
}


def rare(name, n, share=0.0075, seed=0):
    """A column that ``share`` of the rows have, one number, one common yes or no; the outcome, and the true effects."""
    rng, effect = np.random.default_rng(seed), MODELS[name][2]
    X = np.column_stack([rng.random(n) < share, rng.uniform(-1, 1, n), rng.random(n) < 0.4]).astype(float)
    truth = np.array([effect, 0.5, -0.3])
    m = X @ truth
    if name == "softmax":
        margins = np.column_stack([np.zeros(n), m, -m / 2])
        return X, np.argmax(margins + rng.gumbel(size=margins.shape), axis=1), truth
    if name == "logistic":
        return X, (rng.random(n) < 1 / (1 + np.exp(1 - m))).astype(int), truth
    if name == "poisson":
        return X, np.minimum(rng.poisson(np.exp(m)), 30).astype(float), truth
    return X, m + rng.normal(0, 1, n), truth


def fitted(name, X, y, epsilon, relation="zero_out", seed=0):
    cls, facts, _ = MODELS[name]
    bounds = Bounds([(0, 1), (-1, 1), (0, 1)])
    model = cls(epsilon, bounds=bounds, neighbors=relation, inference="sandwich", ledger=False, **facts)
    with seeded(seed):
        return model.fit(X, y)


def assert_near_least_squares(name, n, epsilon, relation, seed=4):
    X, y, _ = rare(name, n, seed=seed)
    plain = np.linalg.lstsq(np.column_stack([X, np.ones(n)]), y, rcond=None)[0]
    found = fitted(name, X, y, epsilon, relation, seed).summary().columns()
    assert np.all(np.abs(found["coef"] - plain) < 3 * found["se"])
    assert found["se"][0] < 0.6, "wide enough to cover anything"
    return found


@pytest.mark.whole
@pytest.mark.parametrize("relation", ["zero_out", "replace_one"])
@pytest.mark.parametrize("epsilon", [3.0, 1000.0])
@pytest.mark.parametrize("name", ["linear", "huber"])
def test_a_rare_column_of_numbers_has_its_least_squares_effect(name, epsilon, relation):
    """A rare row is longer than 16 typical ones: shrunk, its effect was 3 times too large, at every epsilon."""
    assert_near_least_squares(name, 30_000, epsilon, relation)


@pytest.mark.whole
@pytest.mark.parametrize("epsilon", [3.0, 1000.0])
@pytest.mark.parametrize("name", ["logistic", "poisson", "softmax"])
def test_steps_of_a_rare_column_do_not_run_away(name, epsilon):
    """At the start its curvature is a part of what it is at the root: chords overshot, to -445 for a true 1."""
    X, y, truth = rare(name, 20_000)
    model = fitted(name, X, y, epsilon)
    assert np.abs(model.coef_).max() < 6
    if epsilon > 3 and name != "softmax":  # whose summary may be refused: too many effects are hidden
        found = model.summary().columns()
        assert abs(found["coef"][0] - truth[0]) < 2.5 * found["se"][0]


@pytest.mark.whole
@pytest.mark.parametrize("deviation", [0.1, 0.01, 0.001])
@pytest.mark.parametrize("name", ["logistic", "poisson", "huber"])
def test_a_column_far_narrower_than_its_range_is_right_or_hidden(name, deviation):
    """Its coefficient is large over the range: steps that are limited may not arrive, and then nothing is shown."""
    rng, n = np.random.default_rng(0), 30_000
    X, truth = np.column_stack([rng.normal(0, deviation, n), rng.uniform(-1, 1, n)]), np.array([0.3 / deviation, 0.5])
    m = X @ truth
    outcomes = {"logistic": (rng.random(n) < 1 / (1 + np.exp(-m))).astype(int), "huber": m + rng.normal(0, 1, n)}
    y = outcomes[name] if name in outcomes else np.minimum(rng.poisson(np.exp(m)), 30).astype(float)
    cls, facts, _ = MODELS[name]
    model = cls(1e5, 1e-6, bounds=1.0, neighbors="zero_out", inference="sandwich", ledger=False, **facts)
    with seeded(0):
        found = model.fit(X, y).summary().columns()
    gap = np.abs(found["coef"][:2] - truth) / found["se"][:2]
    assert not np.any(gap > 4)
    assert deviation < 0.1 or not np.isnan(gap).any()


@pytest.mark.few(1)
@covering(("name", ["linear", "logistic", "poisson"]), ("relation", RELATIONS))
def test_fits_that_drop_rows_replay_on_neighbors(monkeypatch, name, relation):
    """Rows beyond the lattice do not count: here those beyond three deviations, with hostile rows on either side."""
    monkeypatch.setattr(estimate, "FARTHEST", 3.0)
    fit = fit_of(name, "auto", relation, epsilon=60_000.0, inference="sandwich")
    pairs = list(neighbor_pairs(*table(name), relation=relation, bounds=bounds_of(name)))
    assert 0.1 < worst_ratio(fit, pairs[::12], relation) <= 1.0


def test_rows_of_several_rare_values_are_as_long_as_they_are_rare():
    """Shrunk rows make rare values look rarer than they are; stretched by as much, they hardly counted."""
    widths = []
    for seed in range(3):
        rng, n = np.random.default_rng(seed), 20_000
        cells = np.column_stack([rng.random(n) < share for share in (0.02, 0.02, 0.03, 0.05, 0.3)])
        X = np.column_stack([rng.uniform(-1, 1, n), rng.normal(0, 0.3, n).clip(-1, 1), cells]).astype(float)
        y = (rng.random(n) < 1 / (1 + np.exp(-X @ [0.5, -0.5, 1.0, -0.8, 0.6, 0.0, 0.4]))).astype(float)
        bounds = Bounds([(-1, 1), (-1, 1), *[(0, 1)] * 5], classes=(0, 1))
        words = {"neighbors": "zero_out", "inference": "sandwich", "ledger": False}
        with seeded(seed):
            found = DPLogisticRegression(1.0, 1e-9, bounds=bounds, **words).fit(X, y).summary().columns()["se"]
        widths.append(found / plain_fit(X, y, "logistic")[1])
    assert np.nanmedian(widths, axis=0)[2:4].max() < 3.0
