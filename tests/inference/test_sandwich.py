"""Inference as a stage after a solver: its plan, its limit without noise, neighbors, refusals, coverage."""

import math

import numpy as np
import pytest

from benchmarks.problems.effects import plain_fit
from discreet import Budget, DPHuberRegressor, DPLinearRegression, DPLogisticRegression, DPPoissonRegressor, DPRidge
from discreet.bounds import Domain
from discreet.budget import Neighbors
from discreet.errors import Unsupported
from discreet.inference.estimate import skewness
from discreet.inference.limits import FEWEST_HESSIANS, MOST_HESSIANS, Excess, Rare, chosen_norm, grid, refusal, shortage
from discreet.inference.scales import CHECKS, ROUNDS
from discreet.losses import Logistic, SmoothedHinge, Softmax, Squared
from discreet.penalties import L1, NoPenalty
from discreet.solvers import GradientDescent, Limits, Preconditioned, Sandwich, coordinates
from discreet.solvers.base import Effects
from discreet.solvers.coordinates import longest_row
from discreet.testing import neighbor_pairs, seeded
from tests.covering import covering
from tests.replaying import worst_ratio
from tests.solvers.perturbation.cases import bounds_of, fit_of, table

RELATIONS = ("replace_one", "zero_out", "add_remove")
MODELS = {
    "logistic": (DPLogisticRegression, {"classes": (0, 1)}),
    "linear": (DPLinearRegression, {"target": (-6.0, 6.0)}),
    "ridge": (DPRidge, {"target": (-6.0, 6.0), "alpha": 1e-3}),
    "huber": (DPHuberRegressor, {"target": (-6.0, 6.0), "width": 1.0}),
    "poisson": (DPPoissonRegressor, {"target": (0.0, 40.0)}),
}


def drawn(name, n=4000, seed=0):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.uniform(-1, 1, n), rng.normal(0, 0.3, n).clip(-1, 1), rng.random(n) < 0.3])
    m = X @ [0.8, -0.5, 0.4] - 0.2
    if name == "logistic":
        return X, (rng.random(n) < 1 / (1 + np.exp(-m))).astype(int)
    if name == "poisson":
        return X, np.minimum(rng.poisson(np.exp(m)), 40).astype(float)
    return X, m + rng.normal(0, 1, n) * (0.5 + np.abs(X[:, 0]))


def model_of(name, epsilon=4.0, **settings):
    cls, facts = MODELS[name]
    return cls(epsilon, 1e-6, bounds=1.0, ledger=False, **{"inference": "sandwich", **facts, **settings})


@pytest.mark.parametrize("name", MODELS)
def test_without_noise_it_is_the_plain_sandwich(name):
    """Least squares, maximum likelihood and Huber's estimate, with heteroscedasticity-robust standard errors."""
    X, y = drawn(name)
    model = model_of(name, math.inf).fit(X, y)
    plain = {"ridge": "linear"}.get(name, name)
    w, se = plain_fit(X, y.astype(float), plain, 1.0)
    found = model.summary().columns()
    np.testing.assert_allclose(found["coef"], w, atol=0.02 * se.max())
    np.testing.assert_allclose(found["se"], se, rtol=0.02)
    assert not found["se_privacy"].any()


def test_persons_are_clusters():
    """Each row four times over: standard errors of persons, not of rows."""
    X, y = drawn("linear", 2000)
    groups = np.repeat(np.arange(len(y)), 4)
    whole = model_of("linear", math.inf).fit(X, y).summary().columns()["se"]
    rows, labels = np.repeat(X, 4, axis=0), np.repeat(y, 4)
    persons = model_of("linear", math.inf, cov_type="cluster").fit(rows, labels, groups=groups)
    np.testing.assert_allclose(persons.summary().columns()["se"], whole, rtol=0.02)
    alone = model_of("linear", math.inf).fit(rows, labels).summary().columns()["se"]
    np.testing.assert_allclose(alone, whole / 2, rtol=0.05)


@covering(("relation", RELATIONS), ("name", MODELS))
def test_the_budget_is_spent_and_not_more(name, relation):
    X, y = drawn(name)
    quote = model_of(name, neighbors=relation).quote(X, y)
    assert 0.999 * 4.0 <= quote.price.epsilon <= 4.0
    releases = quote.priced.plan.releases
    asked = {query: sum(r.count for r in releases if r.query == query) for query in ("noisy_curvature", "noisy_shells")}
    hessians = asked["noisy_curvature"]
    assert hessians == 1 if name in ("linear", "ridge") else FEWEST_HESSIANS <= hessians <= MOST_HESSIANS
    assert asked["noisy_shells"] == 2 + ROUNDS + len(CHECKS)
    shares = sum(r.count / r.relative_noise**2 for r in releases if r.query != "noisy_count")
    assert shares == pytest.approx(1.0, rel=1e-6)


def test_signal_buys_hessians_and_a_sharper_covariance():
    """The more signal, the more often the Hessian is estimated, and the larger the share of the scores' covariance."""
    X, y = drawn("logistic", 20_000)
    plans = [model_of("logistic", epsilon).quote(X, y).priced.plan.releases for epsilon in (0.3, 1.0, 10.0, 1e4)]
    counts = [sum(r.count for r in plan if r.query == "noisy_curvature") for plan in plans]
    noises = [r.relative_noise for plan in plans for r in plan if r.query == "noisy_score_covariance"]
    assert counts == sorted(counts)
    assert (counts[0], counts[-1]) == (FEWEST_HESSIANS, MOST_HESSIANS)
    assert noises == sorted(noises, reverse=True)


@pytest.mark.few(1)
@covering(("name", ["logistic", "linear", "softmax"]), ("relation", RELATIONS))
def test_persons_replay_on_neighbors(name, relation):
    fit = fit_of(
        name, "auto", relation, epsilon=200_000.0, inference="sandwich", cov_type="cluster", even_if_empty=True
    )
    data = table(name, "dense", groups=True)
    pairs = list(neighbor_pairs(*data, relation=relation, bounds=bounds_of(name)))
    assert 0.05 < worst_ratio(fit, pairs[::6], relation) <= 1.0


def facts(n=20_000, p=6, **changes):
    known = {"intercept": True, "neighbors": Neighbors.ZERO_OUT, **changes}
    return Domain(feature_bounds=np.ones(p), row_norm=math.sqrt(p), n=n, **known)


def test_what_is_refused_before_anything_is_released():
    budget = Budget(1.0, 1e-8, "zero_out")
    plain = (NoPenalty(), budget, "robust")
    assert refusal(facts(), Logistic(), *plain) is None
    assert "L1" in refusal(facts(), Logistic(), L1(0.1), budget, "robust")
    assert "softmax" in refusal(facts(), SmoothedHinge(0.5), *plain)
    assert refusal(facts(n=50_000, n_outputs=3), Softmax(3), *plain) is None
    assert "of at most 24 features and 10 classes" in refusal(facts(n_outputs=10, p=26), Softmax(10), *plain)
    assert "delta" in refusal(facts(), Logistic(), NoPenalty(), Budget(1.0, 0.0, "zero_out"), "robust")
    assert "dense" in refusal(facts(sparse=True), Logistic(), *plain)
    assert "groups" in refusal(facts(), Logistic(), NoPenalty(), budget, "cluster")
    assert "columns" in refusal(facts(p=300), Logistic(), *plain)


@pytest.mark.parametrize("solver", ["gcd", "agd", "output", "objective", "exponential"])
def test_choices_and_one_shot_answers_are_refused(solver):
    X, y = drawn("logistic")
    with pytest.raises(Unsupported):
        model_of("logistic", solver=solver).quote(X, y)


def test_effects_that_single_steps_overshoot_are_hidden():
    """A rare cell's log odds with a standard error of .6 by nine steps: each of them moved it by 1.8."""
    privacy, metric = np.diag([0.6**2, 0.4**2]), np.diag([2.0, 3.0])
    effects = Effects(privacy, privacy, metric, np.zeros((2, 2)), metric)
    found = skewness(effects, np.ones(2), np.ones(2), 9, counts=False)
    np.testing.assert_array_equal(np.diag(found.blind), [2.0, 0.0])
    np.testing.assert_array_equal(np.diag(skewness(effects, np.ones(2), np.ones(2), 9, counts=True).blind), [2.0, 3.0])
    assert np.all(np.diag(found.covariance) > np.diag(privacy)), "what noise leaves in a curved slope is counted"


def test_no_declared_row_is_longer_than_the_longest_corner():
    """Against many rows of the box and its corners; of too many columns to try all corners it is a bound."""
    rng = np.random.default_rng(2)
    linear, ranges = rng.normal(size=(4, 4)), np.array([[0.0, 1.0], [-1.0, 1.0], [0.2, 0.4]])
    known = facts(p=4, ranges=ranges)
    rows = np.column_stack([rng.uniform(*ranges.T, size=(2000, 3)), np.ones(2000)])
    corner = np.column_stack([ranges[np.arange(3), rng.integers(0, 2, (400, 3))], np.ones(400)])
    found = longest_row(linear, known)
    assert np.linalg.norm(rows @ linear, axis=1).max() <= found
    assert np.linalg.norm(corner @ linear, axis=1).max() == pytest.approx(found)
    assert longest_row(linear, facts(p=4)) == math.inf
    linear, ranges = rng.normal(size=(20, 20)), np.column_stack([rng.uniform(-2, 0, 19), rng.uniform(0, 2, 19)])
    corner = np.column_stack([ranges[np.arange(19), rng.integers(0, 2, (20_000, 19))], np.ones(20_000)])
    lengths = np.linalg.norm(corner @ linear, axis=1)
    assert lengths.max() <= longest_row(linear, facts(p=20, ranges=ranges)) < 3 * lengths.max()
    assert longest_row(linear, facts(p=20)) == math.inf


def test_the_reach_stops_at_the_corners_of_declared_ranges(monkeypatch):
    """A number, with a scaled target: with the wrong unit rows would be cut, and standard errors off."""
    X, y = drawn("linear", 20_000)
    solver = Sandwich(Preconditioned(GradientDescent(8)), limits=Limits(12.0, 5.0))
    plain, se = plain_fit(X, y, "linear", 1.0)
    found = []
    for most in (coordinates.MOST_CORNERED, 0):
        monkeypatch.setattr(coordinates, "MOST_CORNERED", most)
        with seeded(3):
            found.append(model_of("linear", 4.0, solver=solver, inference=None).fit(X, y).summary().columns())
    near, far = found
    assert np.all(near["se_privacy"] < 0.8 * far["se_privacy"])
    sampling = np.sqrt(near["se"] ** 2 - near["se_privacy"] ** 2)
    np.testing.assert_allclose(sampling, se, rtol=0.2)
    assert np.all(np.abs(near["coef"] - plain) < 5 * near["se_privacy"])


def test_classes_with_unsteady_steps_are_refused_before_anything_is_released():
    """One logistic slope: 500 rows at epsilon 3 are too few, 1,000 are not; numbers have no sigmoid."""
    asked = [facts(n, p=2, neighbors=Neighbors.REPLACE_ONE) for n in (500, 1_000)]
    told = [shortage(one, Logistic(), Budget(3.0, 1.0 / one.n**2, "replace_one")) for one in asked]
    assert told[0] > 1 >= told[1]
    assert shortage(asked[0], Squared(), Budget(3.0, 4e-6, "replace_one")) <= 1


@pytest.mark.thorough
@covering(("name", ["logistic", "linear"]), ("relation", ["zero_out", "replace_one"]))
def test_intervals_cover(name, relation):
    """100 fits, 4 coefficients each: .95 within four errors; the noise left out would cover far less."""
    covered, narrow = [], []
    for seed in range(100):
        X, y = drawn(name, 12_000, seed)
        with seeded(seed):
            made = model_of(name, 0.5, neighbors=relation).fit(X, y).summary()
        found, truth = made.columns(), np.array([0.8, -0.5, 0.4, -0.2])
        covered.append((found["low"] <= truth) & (truth <= found["high"]))
        sampling = np.sqrt(found["se"] ** 2 - found["se_privacy"] ** 2)
        narrow.append(np.abs(found["coef"] - truth) <= 1.96 * sampling)
    assert 0.90 <= np.mean(covered) <= 0.99
    assert np.mean(narrow) < 0.92 or relation == "zero_out"


@pytest.mark.parametrize("share", [0.01, 0.3])
def test_noise_far_out_does_not_set_a_limit(share):
    """Few rows beyond the first edge, so that no count is clear: the limit stays near the sizes that rows have."""
    rng, n, noise = np.random.default_rng(4), 20_000, 60.0
    edges = grid(1.0, 1e4)
    sizes = np.where(rng.random(n) < share, rng.uniform(1.0, 2.0, n), 0.5)
    counts = np.bincount(np.searchsorted(edges, sizes), minlength=len(edges) + 1)
    limits = [
        chosen_norm(counts + noise * rng.normal(size=len(counts)), edges, noise=20.0, hidden=noise) for _ in range(100)
    ]
    assert np.quantile(limits, 0.9) < 20
    assert max(limits) < 100, "noise that looks like rows is bounded by the mean size"
    assert np.median(limits) >= 1.5 * (share > 0.1)


def test_clear_counts_far_out_set_a_limit():
    edges = grid(1.0, 1e4)
    counts = np.zeros(len(edges) + 1)
    counts[0], counts[7] = 18_000, 2_000
    assert chosen_norm(counts, edges, noise=20.0, hidden=30.0) >= edges[6]


def test_usual_rows_tell_what_rare_values_lose():
    """Exponential slopes; 200 of 100,000 rows are 20 times longer, and counts do not see those of them that are cut."""
    rng, n, share, times, noise = np.random.default_rng(2), 100_000, 0.002, 20.0, 40.0
    is_rare = rng.random(n) < share
    sizes = rng.exponential(1.0, n) * np.where(is_rare, times, 1.0)
    edges = grid(1.0, 1e4)
    counts = np.bincount(np.searchsorted(edges, sizes), minlength=len(edges) + 1) + noise * rng.normal(
        size=len(edges) + 1
    )
    rare = Rare(np.array([share, 0.0]), np.array([times, 1.0]), np.array([1.0, 0.0]))
    found = Excess.of(counts, edges, noise, rare=rare)
    for limit in (30.0, 50.0, 80.0):
        expected = n * share * times * np.exp(-limit / times)
        lost, none = found.in_rare(limit)
        assert 0.7 * expected < lost < 2.0 * expected
        assert none == 0.0
        assert found.at(limit) < 0.5 * expected, "counts of all rows see too little of it"
    assert found.least(noise=10.0) > chosen_norm(counts, edges, noise=10.0, hidden=noise)
