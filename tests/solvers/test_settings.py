"""What solvers by name stand for: settings from public facts, and what they are worth."""

import math

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from discreet import Budget, DPLinearRegression, DPLogisticRegression
from discreet.accounting.gaussian import mu_of
from discreet.bounds import Domain
from discreet.budget import Neighbors
from discreet.losses import Logistic, Poisson, Squared
from discreet.models.fit import choose_solver
from discreet.penalties import L1, L2, NoPenalty
from discreet.solvers import settings
from discreet.solvers.settings import Setting
from discreet.solvers.signal import Signal
from discreet.testing import seeded
from tests.covering import covering

NAMES = ("gd", "sgd", "svrg", "agd")


def domain(n=20_000, p=21, relation="zero_out", **facts):
    return Domain(np.ones(p), math.sqrt(p), n, Neighbors(relation), **facts)


def made(name, given=None, loss=None, penalty=None, budget=None):
    facts = given or domain(), loss or Logistic(), penalty or NoPenalty(), budget or Budget(1.0, 1e-6, "zero_out")
    return choose_solver(name, *facts)[0]


@pytest.mark.parametrize("name", NAMES)
def test_the_shape_is_estimated_where_that_pays(name):
    for loss, penalty in ((Logistic(), L2(1e-6)), (Squared(), NoPenalty())):
        found = made(name, loss=loss, penalty=penalty)
        assert found.coordinates == "full"
        assert found.solver.name == name
    assert made(name, domain(n=30)).coordinates == "declared"


@pytest.mark.parametrize("name", NAMES)
def test_numbers_have_no_probabilities_to_calibrate(name):
    assert made(name).settings()["calibrate"] is True
    assert made(name, loss=Squared()).settings()["calibrate"] is False


@pytest.mark.parametrize("name", ["auto", "gd"])
def test_steps_without_an_intercept_are_not_longer(name):
    """Where there is little signal, most of a row's length is its constant: without one, features are as short."""
    n, p, rng = 1000, 100, np.random.default_rng(0)
    X, facts = rng.normal(size=(n, p)).clip(-4, 4), {"solver": name, "fit_intercept": False}
    margins = 1.5 * X @ rng.normal(size=p) / math.sqrt(p)
    labels, numbers = rng.random(n) < 1.0 / (1.0 + np.exp(-margins)), margins + rng.normal(size=n)
    given = {"epsilon": 1.0, "delta": 1e-6, "neighbors": "replace_one", "bounds": 4.0, **facts}
    with seeded(1):
        classes = DPLogisticRegression(classes=(False, True), **given).fit(X, labels)
        line = DPLinearRegression(target=(-8.0, 8.0), **given).fit(X, numbers)
    assert log_loss(labels, classes.predict_proba(X)) < 1.3  # a coin: .69
    assert line.score(X, numbers) > -0.5


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "facts",
    [
        {"budget": Budget(math.inf)},
        {"given": domain(sparse=True)},
        {"given": domain(p=3000)},
        {"loss": Poisson(2.0)},
        {"penalty": L1(0.1)},
        {"budget": Budget(1.0, 0.0)},
    ],
    ids=["no noise", "sparse", "wide", "counts", "corners", "pure"],
)
def test_declared_coordinates_elsewhere(name, facts):
    if name == "agd" and ("penalty" in facts or facts.get("budget") == Budget(1.0, 0.0)):
        pytest.skip("agd knows L2 penalties and approximate budgets only")
    assert made(name, **facts).name == name


@pytest.mark.parametrize("name", ["gd", "sgd", "svrg"])
def test_steps_are_short_where_corners_meet_few_rows_per_column(name):
    found = [made(name, domain(n=n), penalty=L1(0.1)).step_size for n in (100, 300, 20_000)]
    assert found == sorted(found)
    for n, step in zip((100, 300), found, strict=False):
        assert step == pytest.approx(
            found[2] * (Signal.of(domain(n=n), Budget(1.0, 1e-6, "zero_out")).per_coefficient / 4) ** 2
        )
    assert made(name, domain(n=50_000), penalty=L1(0.1)).step_size == found[2]


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
    monkeypatch.setitem(settings.SETTINGS, "plain.step", Setting("plain.step", 1.0))
    assert loss() > 1.2


@pytest.mark.parametrize("name", ["gd", "sgd"])
def test_classes_with_little_signal_are_worth_fewer_steps(name):
    """Right below and right above n mu / (a p) = 30; numbers take the same number at both."""
    p, budget = 101, Budget(1.0, 1e-6, "zero_out")
    n = math.ceil(30 * p / mu_of(1.0, 1e-6))
    steps = [made(name, domain(n=rows, p=p), budget=budget).solver.n_steps for rows in (n - 1, n)]
    assert steps == [round(2.5 * math.sqrt(p)), 40]
    numbers = [made(name, domain(n=rows, p=p), Squared(), budget=budget).solver.n_steps for rows in (n - 1, n)]
    assert numbers == [40, 40]


def test_a_pure_budget_is_worth_few_steps():
    found = [made("gd", domain(n=n), budget=Budget(1.0, 0.0, "zero_out")) for n in (50, 1000, 20_000, 10**9)]
    assert [steps.n_steps for steps in found] == [2, 6, 38, 150]
    assert found[0].step_size < found[1].step_size == found[3].step_size == 4.0 / 21
    assert all(steps.clip == pytest.approx(0.5 * 21) for steps in found)
    unknown = made("gd", domain(n=None), budget=Budget(1.0, 0.0, "zero_out"))
    assert unknown == made("gd", domain(n=2000), budget=Budget(1.0, 0.0, "zero_out"))


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
    monkeypatch.setitem(settings.SETTINGS, "pure.n_steps", Setting("pure.n_steps", lambda s: 50 * s.single**0.6))
    assert np.mean([excess(seed) for seed in range(3)]) > 1.1


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("facts", [{"sparse": True}, {"p": 3000}], ids=str)
def test_numbers_of_wide_records_are_fitted_in_rows_of_typical_length(name, facts):
    found = made(name, domain(**facts), loss=Squared(), penalty=NoPenalty())
    assert found.coordinates == "declared"
    assert found.solver.name == name


def test_sampling_noise_is_a_quarter_of_the_privacy_noise():
    found, mu, n, p = made("sgd", budget=Budget(0.5, 1e-6, "zero_out")).solver, mu_of(0.5, 1e-6), 20_000, 21
    q = found.sampling_probability
    assert (1 - q) / (q * n) == pytest.approx(0.25 * found.n_steps * p / (n * mu) ** 2)
    budgets = [Budget(epsilon, 1e-6, "zero_out") for epsilon in (0.1, 1.0, 10.0)]
    fractions = [made("sgd", budget=budget).solver.sampling_probability for budget in budgets]
    assert fractions == sorted(fractions)
    assert made("sgd", budget=Budget(math.inf)).sampling_probability == 1.0


def test_more_signal_allows_more_rounds():
    rounds = [made("agd", budget=Budget(e, 1e-6, "zero_out")).solver.n_rounds for e in (0.05, 0.1, 1.0, 10.0)]
    assert rounds == sorted(rounds)
    assert rounds[0] >= 6


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


@pytest.mark.parametrize("name", NAMES)
def test_defaults_for_numbers_learn_too(name, far_columns):
    X, _, y = far_columns
    with seeded(1):
        model = DPLinearRegression(2.0, bounds=1.0, target=(-8, 8), solver=name, neighbors="zero_out").fit(X, y)
    full = np.column_stack([X, np.ones(len(X))])
    best = np.mean((y - full @ np.linalg.lstsq(full, y, rcond=None)[0]) ** 2)
    assert np.mean((y - model.predict(X)) ** 2) - best < 0.1 * (y.var() - best)


def test_sgd_without_noise_is_at_the_optimum(far_columns):
    X, y, _ = far_columns
    model = DPLogisticRegression(
        math.inf, bounds=1.0, classes=(0, 1), solver="sgd", penalty=None, neighbors="zero_out"
    ).fit(X, y)
    full = np.column_stack([X, np.ones(len(X))])
    gradient = full.T @ (model.predict_proba(X)[:, 1] - y) / len(y)
    assert np.abs(gradient).max() < 1e-6
