"""How the default behaves where data are few, odd or empty: never much worse than the trivial one, never NaN.

What "much" is comes from the noise of the trivial model itself: a private majority vote, or a private mean."""

import math
import warnings

import numpy as np
import pytest
from scipy import sparse

from discreet import (
    Bounds,
    Budget,
    DPHuberRegressor,
    DPLinearRegression,
    DPLinearSVC,
    DPLogisticRegression,
    DPPoissonRegressor,
    DPRidge,
)
from discreet.accounting.gaussian import mu_of
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
    """With the same noise it is the same model under every relation."""
    X, target, bounds = odd_table("plain")
    y = np.where(target > 0, 1, -1) if name == "logistic" else target
    for relation in ("zero_out", "replace_one", "add_remove"):
        made = []
        for wrap in (np.asarray, sparse.csr_array, sparse.coo_array):
            with seeded(1):
                made.append(
                    fitted(MODELS[name](epsilon=4.0, delta=1e-6, bounds=bounds, neighbors=relation), wrap(X), y)
                )
        assert {model.certificate_.solver["name"] for model in made} == {"recipe"}
        for model in made[1:]:
            np.testing.assert_array_equal(model.coef_, made[0].coef_)
            np.testing.assert_array_equal(model.intercept_, made[0].intercept_)


@pytest.mark.parametrize(("relation", "name"), [("zero_out", "recipe"), ("add_remove", "preconditioned")])
def test_of_many_sparse_columns_zeros_are_stored_where_n_is_public(relation, name):
    X = sparse.csr_array(np.eye(2000, 40))
    y = np.arange(2000) % 2
    bounds = Bounds([(0.0, 1.0)] * 40, classes=(0, 1))
    model = MODELS["logistic"](epsilon=4.0, delta=1e-6, bounds=bounds, neighbors=relation)
    assert model.quote(X, y).solver["name"] == name


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


RECORDS = [(150, "auto", True), (1500, "auto", False), (150, Recipe(), False)]


@pytest.mark.parametrize(("n", "solver", "follows"), RECORDS)
def test_settings_follow_a_count_of_far_fewer_records_than_they_were_chosen_for(n, solver, follows, monkeypatch):
    ran, chosen = [], Recipe._for_count

    def kept(self, *facts):
        ran.append((self, chosen(self, *facts)))
        return ran[-1][1]

    monkeypatch.setattr(Recipe, "_for_count", kept)
    known = {"bounds": 1.0, "target": (-1, 1), "solver": solver, "neighbors": "add_remove", "ledger": False}
    fitted(DPLinearRegression(1.0, 1e-6, **known), *tilted(n, 0.4))
    ((planned, taken),) = ran
    assert (taken is not planned) == follows
    assert taken.n_steps == planned.n_steps  # what is asked is the plan's
    assert not follows or (planned.coordinates, taken.coordinates) == ("full", "declared")


# --- where there is nothing to learn, or a target's range says little about

TARGETS = {
    "fitting": (lambda e: e, (-4.0, 4.0)),
    "ten times too wide": (lambda e: e, (-40.0, 40.0)),
    "at the end": (lambda e: e - 36.0, (-40.0, 40.0)),
    "lognormal": (np.exp, (0.0, 100.0)),
}


def mean_r2(kind, n, epsilon, relation, target, slope=0.0, seeds=4):
    make, ends = TARGETS[target]
    found = []
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(n, 8))
        y = np.clip(make(slope * X[:, 0] + np.sqrt(1 - slope**2) * rng.normal(size=n)), *ends)
        with seeded(seed):
            bounds = Bounds([(-4.0, 4.0)] * 8, target=ends)
            model = kind(epsilon, bounds=bounds, neighbors=relation, ledger=False).fit(X, y)
        found.append(1 - np.mean((y - model.predict(X)) ** 2) / np.var(y))
    return float(np.mean(found))


@pytest.mark.few(4)
@covering(("target", TARGETS), ("relation", ["zero_out", "replace_one"]))
def test_signal_is_found_whatever_the_declared_range(relation, target):
    least = 0.2 if target == "lognormal" else 0.4  # of .39 and .64
    assert mean_r2(DPLinearRegression, 3000, 1.0, relation, target, slope=0.8) > least


def tilted(n, slope):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (n, 10))
    return X, np.clip(0.3 + slope * X[:, 0] + rng.normal(0, 0.2, n), -1, 1)


def explained(model, X, y):
    return 1 - np.mean((y - model.predict(X)) ** 2) / np.var(y)


@pytest.mark.parametrize(("slope", "low", "high"), [(0.0, -0.05, 0.02), (0.4, 0.1, 0.7)])
def test_steps_in_declared_coordinates_find_a_slope_or_the_mean(slope, low, high):
    X, y = tilted(1000, slope)
    with seeded(0):
        model = DPLinearRegression(
            0.5, bounds=1.0, target=(-1, 1), solver=Recipe("declared", n_steps=8), neighbors="zero_out"
        ).fit(X, y)
    assert low < explained(model, X, y) < high
    assert (model.coef_noise_ >= 0).all()


@covering(("relation", ["zero_out", "replace_one"]), (("slope", "low"), [(0.0, -0.05), (0.4, 0.3)]))
def test_pure_budgets_learn_a_slope_and_stay_at_the_mean_without_one(slope, low, relation):
    X, y = tilted(4000, slope)
    with seeded(0):
        model = DPLinearRegression(1.0, 0.0, bounds=1.0, target=(-1, 1), neighbors=relation).fit(X, y)
    assert model.certificate_.solver["name"] == "recipe"
    assert (model.certificate_.epsilon, model.certificate_.delta) == (1.0, 0.0)
    assert explained(model, X, y) > low


# --- designs that are hard for private regression

COLUMNS, SEEDS, SIGNIFICANT = 12, 3, 4.0


def design(kind, seed, n=15_000):
    """Return rows, targets, the features' ranges and the target's."""
    rng = np.random.default_rng(seed)
    n, p = {"few rows": (300, COLUMNS), "wide table": (3000, 150)}.get(kind, (n, COLUMNS))
    X = rng.normal(size=(n, p))
    w = rng.normal(size=p) / math.sqrt(p) if kind != "wide table" else np.where(np.arange(p) < 15, 0.3, 0.0)
    signal = X @ w * {"no signal": 0.0, "weak signal": 0.2}.get(kind, 1.0)
    y, ends, bounds = signal + rng.normal(0, 0.77, n), (-4.0, 4.0), [(-4.0, 4.0)] * p
    if kind == "features 100 times too wide":
        bounds = [(-400.0, 400.0)] * p
    elif kind == "target 10 times too wide":
        ends = (-40.0, 40.0)
    elif kind == "lognormal target":
        y, ends = np.exp(1.5 * y), (0.0, 1000.0)
    elif kind == "years":
        X, bounds = 1985.0 + 8.0 * X, [(1950.0, 2020.0)] * p
    elif kind == "target far from 0":
        y, ends = y + 1000.0, (996.0, 1004.0)
    elif kind == "collinear":
        X[:, 1] = X[:, 0] + 0.01 * rng.normal(size=n)
    low, high = np.array(bounds).T
    return np.clip(X, low, high), np.clip(y, *ends), bounds, ends


def r_squared(kind, epsilon, seed, estimator=DPLinearRegression, **settings):
    X, y, bounds, ends = design(kind, seed)
    with seeded(seed):
        model = estimator(epsilon, bounds=bounds, target=ends, **settings).fit(X, y)
    return 1 - np.mean((y - np.clip(model.predict(X), *ends)) ** 2) / np.var(y)


KINDS = [
    *("plain", "no signal", "weak signal", "few rows", "wide table", "features 100 times too wide"),
    *("target 10 times too wide", "lognormal target", "years", "target far from 0", "collinear"),
]


@pytest.mark.few(4)
@covering(("kind", KINDS), ("epsilon", [0.01, 0.1, 1.0]), ("relation", ["zero_out", "replace_one"]))
def test_never_below_a_private_mean(kind, epsilon, relation):
    found = [r_squared(kind, epsilon, seed, neighbors=relation) for seed in range(SEEDS)]
    _, y, _, (low, high) = design(kind, 0)
    factor = 2.0 if relation == "replace_one" else 1.0
    noise = factor * (high - low) / 2.0 / (len(y) * mu_of(epsilon, min(1e-6, len(y) ** -2.0)))
    allowed = 0.01 + 10.0 * noise**2 / float(np.var(y))
    assert np.mean(found) >= -allowed - SIGNIFICANT * np.std(found) / math.sqrt(SEEDS)


@pytest.mark.parametrize(("epsilon", "least"), [(1.0, 0.6), (64.0, 0.95)])
def test_skewed_counts_are_learned(epsilon, least):
    """A clip that cut rare, large counts kept half of the deviance at every epsilon."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (15_000, 6))
    means = np.exp(0.5 + X @ [0.6, -0.4, 0.3, 0.0, 0.0, 0.2]) * rng.gamma(0.5, 2.0, len(X))
    y = np.clip(rng.poisson(means), 0, 30).astype(float)

    def deviance(model):
        found = np.log(model.predict(X))
        return np.mean(np.exp(found) - y * found)

    trivial = y.mean() - y.mean() * math.log(y.mean())
    with seeded(0):
        private, free = (DPPoissonRegressor(e, bounds=1.0, target=(0, 30)).fit(X, y) for e in (epsilon, math.inf))
    assert trivial - deviance(private) > least * (trivial - deviance(free))


@pytest.mark.parametrize("rate", [0.5, 3.0])
def test_the_mean_of_few_counts_is_found(rate):
    """The noise of the mean of all that counts may be is larger than most means: one answer is shorter."""
    rng, found = np.random.default_rng(0), []
    for seed in range(4):
        X, y = rng.uniform(-1, 1, (600, 5)), np.minimum(rng.poisson(rate, 600), 20.0 * rate)
        model = DPPoissonRegressor(0.1, 1e-6, bounds=1.0, target=(0.0, 20.0 * rate), neighbors="zero_out", ledger=False)
        means = np.log(fitted(model, X, y, seed).predict(X))
        found.append(np.mean(np.exp(means) - y * means) - y.mean() * (1.0 - math.log(y.mean())))
    assert np.mean(found) < 0.06 * max(1.0, rate)
