"""Intervals cover what the same steps would have found without noise, at their level: fits over many seeds.

The run without noise is the same run with the exact sums in place of the noisy ones (``observe``): the same seed, so
the same samples and public coins, the same clips, steps and seen coordinates, for numbers the same filters.
"""

import math

import numpy as np
import pytest
from scipy import stats

from discreet import (
    DPHuberRegressor,
    DPLasso,
    DPLinearRegression,
    DPLinearSVC,
    DPLogisticRegression,
    DPRidge,
)
from discreet.curator.noise import use_entropy
from discreet.curator.session import observe
from discreet.default import Recipe, rows, weighted
from discreet.inference.intervals import log_concave_quantile
from discreet.solvers import (
    CoordinateDescent,
    GradientDescent,
    ObjectivePerturbation,
    OutputPerturbation,
    Preconditioned,
    StochasticGradientDescent,
    VarianceReducedDescent,
)


class Quick:
    """As ``SeededEntropy``, at the speed of numpy: thousands of fits are drawn here."""

    name = "a test generator"
    is_private = False

    def __init__(self, seed):
        self._rng = np.random.default_rng(seed)

    def words(self, count):
        words = self._rng.integers(0, 2**64, count, dtype=np.uint64)
        words.flags.writeable = False
        return words


STEPS = (
    *("noisy_gradient", "noisy_gradient_change", "noisy_coordinate_gradient", "noisy_weighted_gradient"),
    *("noisy_minimizer", "noisy_descent"),
)


def a_table(kind, n=1000, p=4):
    rng = np.random.default_rng(3)
    mix = np.linalg.cholesky(0.4 * np.ones((p, p)) + 0.6 * np.eye(p))
    X = np.clip(rng.normal(size=(n, p)) @ mix.T * 0.35, -1, 1)
    margins = X @ rng.normal(size=p) * 2 + 0.3
    if kind == "numbers":
        return X, np.clip(margins / 3 + 0.4 * rng.normal(size=n), -2, 2)
    if kind == "classes":
        return X, (rng.random(n) < 1 / (1 + np.exp(-margins))).astype(int)
    scores = X @ rng.normal(size=(p, 3)) * 2 + rng.gumbel(size=(n, 3))
    return X, scores.argmax(axis=1)


def logistic(solver, epsilon=2.0, classes=(0, 1), **settings):
    return DPLogisticRegression(epsilon, bounds=1.0, classes=classes, solver=solver, **settings)


CASES = {
    "recipe": (logistic("recipe"), "classes"),
    "recipe svm": (DPLinearSVC(2.0, bounds=1.0, classes=(0, 1)), "classes"),
    "recipe softmax": (logistic("recipe", 4.0, (0, 1, 2)), "three"),
    "declared": (logistic(Recipe("declared"), 0.05), "classes"),
    "diagonal": (logistic(Recipe("diagonal"), 0.5), "classes"),
    "recipe, two Hessians": (logistic(Recipe(n_steps=8, n_newton=8), 4.0), "classes"),
    "recipe, Newton steps": (logistic(Recipe(n_steps=8, n_newton=5), 4.0), "classes"),
    "recipe, travel": (logistic(Recipe(n_steps=8, n_travel=5, n_newton=5), 4.0), "classes"),
    "numbers": (DPLinearRegression(4.0, bounds=1.0, target=(-2, 2)), "numbers"),
    "numbers huber": (DPHuberRegressor(4.0, bounds=1.0, target=(-2, 2)), "numbers"),
    "numbers lasso": (DPLasso(4.0, bounds=1.0, target=(-2, 2)), "numbers"),
    "gd": (logistic(GradientDescent(n_steps=10)), "classes"),
    "gd momentum": (logistic(GradientDescent(n_steps=10, momentum="nesterov", average="suffix")), "classes"),
    "gd pure": (logistic(GradientDescent(n_steps=5), 8.0, delta=0.0), "classes"),
    "sgd": (logistic(StochasticGradientDescent(n_steps=15, batch_size=500)), "classes"),
    "svrg": (logistic(VarianceReducedDescent(n_epochs=3, n_inner=3, batch_size=500)), "classes"),
    "cd": (logistic("cd"), "classes"),
    "cd blocks": (logistic(CoordinateDescent(n_inner=12, block_size=3, schedule="cyclic")), "classes"),
    "stage cd": (logistic(Preconditioned(CoordinateDescent(n_inner=30, schedule="cyclic"), "diagonal")), "classes"),
    "stage gd": (
        DPRidge(4.0, bounds=1.0, target=(-2, 2), solver=Preconditioned(GradientDescent(n_steps=8), "diagonal")),
        "numbers",
    ),
    "stage sgd": (logistic(Preconditioned(StochasticGradientDescent(n_steps=15, batch_size=500))), "classes"),
    "stage svrg": (logistic(Preconditioned(VarianceReducedDescent(n_epochs=3, n_inner=3, batch_size=500))), "classes"),
    "output": (logistic("output"), "classes"),
    "output steps": (logistic(OutputPerturbation(n_steps=10)), "classes"),
    "output pure": (logistic("output", 4.0, delta=0.0), "classes"),
}
EXACT = ("output", "output steps", "output pure")
RUNS = 60


def flat(coef, intercept):
    return np.append(np.ravel(coef), np.ravel(intercept))


class Filters:
    """Records the filters of a noisy run, then plays them back."""

    def __init__(self, monkeypatch):
        self.kept, self.own, self.replays = [], weighted.posterior_weights, False
        for module in (rows, weighted):
            monkeypatch.setattr(module, "posterior_weights", self)

    def __call__(self, *numbers, **known):
        if self.replays:
            return self.kept.pop(0)
        self.kept.append(self.own(*numbers, **known))
        return self.kept[-1]


def runs(model, X, y, monkeypatch, count=RUNS):
    """Noisy coefficients, those of the same run without noise, and the stated deviations and intervals."""
    filters, found = Filters(monkeypatch), []
    for seed in range(1, count + 1):
        filters.replays = False
        with use_entropy(Quick(seed)):
            model.fit(X, y)
        noisy, spread = flat(model.coef_, model.intercept_), flat(model.coef_noise_, model.intercept_noise_)
        made = model.intervals()
        low, high = flat(made.coef.low, made.intercept.low), flat(made.coef.high, made.intercept.high)
        filters.replays = True
        quiet = observe(lambda seen: seen.exact if seen.query in STEPS else seen.noisy)
        with use_entropy(Quick(seed)), quiet:
            model.fit(X, y)
        found.append((noisy, flat(model.coef_, model.intercept_), spread, low, high))
    return (np.array(part) for part in zip(*found, strict=True))


def least_coverage(count, level=0.95):
    """What an interval that holds its level misses once in ten thousand times."""
    return stats.binom.ppf(1e-4, count, level) / count


@pytest.mark.few(1)
@pytest.mark.parametrize("name", CASES)
def test_intervals_hold_their_level(name, monkeypatch):
    model, kind = CASES[name]
    noisy, quiet, spread, low, high = runs(model, *a_table(kind), monkeypatch)
    covered = ((low <= quiet) & (quiet <= high)).mean(axis=0)
    assert (covered >= least_coverage(RUNS)).all(), covered
    errors = np.sqrt(np.square(noisy - quiet).mean(axis=0))
    moved = errors > 0  # a penalty's corners hold some at 0
    assert moved.any()
    ratio = float(np.median(np.median(spread, axis=0)[moved] / errors[moved]))
    if name.startswith("recipe") or name in ("numbers", "numbers huber", *EXACT):
        assert 0.8 <= ratio <= (1.2 if name in EXACT else 2.0)


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["recipe", "numbers", "output"])
def test_halved_noise_would_be_found(name, monkeypatch):
    """The test above is not blind: figures that are half of the noise fail it in at least one coefficient."""
    model, kind = CASES[name]
    noisy, quiet, spread, _, _ = runs(model, *a_table(kind), monkeypatch)
    covered = (np.abs(noisy - quiet) <= 0.5 * 1.96 * spread).mean(axis=0)
    assert (covered < least_coverage(RUNS)).any()


@pytest.mark.few(1)
@pytest.mark.parametrize("solver", ["recipe", "gd", "cd", "gcd", "agd", "output", "objective"])
def test_without_noise_there_is_nothing_to_cover(solver):
    X, y = a_table("classes", 200, 2)
    model = logistic(solver, math.inf).fit(X, y)
    assert not model.coef_noise_.any()
    made = model.intervals(0.99)
    np.testing.assert_array_equal(made.coef.low, model.coef_)
    np.testing.assert_array_equal(made.intercept.high, model.intercept_)


def test_objective_perturbation_is_bounded():
    """Its noise is inside the objective: compared with the minimizer without it."""
    X, y = a_table("classes", 800, 3)
    model = logistic(ObjectivePerturbation(), 4.0).fit(X, y)
    settings = {key: value for key, value in model.certificate_.solver.items() if key != "name"}
    limit = logistic(ObjectivePerturbation(**settings), math.inf).fit(X, y)
    found = []
    for seed in range(40):
        with use_entropy(Quick(seed)):
            model.fit(X, y)
        made = model.intervals().coef
        found.append((made.low <= limit.coef_) & (limit.coef_ <= made.high))
    assert np.mean(found) >= least_coverage(40)


@pytest.mark.parametrize("level", [1e-9, 1e-4, 0.5, 0.9, 0.95, 0.99, 1 - 1e-9])
def test_the_log_concave_quantile_is_never_too_small(level):
    unit = [stats.norm(), stats.laplace(scale=1 / math.sqrt(2)), stats.uniform(-math.sqrt(3), 2 * math.sqrt(3))]
    unit += [stats.logistic(scale=math.sqrt(3) / math.pi)]
    assert all(log_concave_quantile(level) >= law.ppf(0.5 + 0.5 * level) * (1 - 1e-12) for law in unit)
    assert log_concave_quantile(0.95) < 2.4
