"""``public_moments``: means, scales and covariance that a user declares public take the place of noisy ones."""

import numpy as np
import pytest

from discreet import DPLinearRegression, DPLogisticRegression, DPPoissonRegressor
from discreet.default import Recipe
from discreet.errors import Unsupported
from discreet.solvers import CoordinateDescent, GradientDescent, Preconditioned

P = 12
STEPS = GradientDescent(n_steps=8, momentum=0.7, radius=100.0)
OWN = ("noisy_mean", "noisy_mean_squares", "noisy_second_moment")
STAGES = {
    "whitened": Preconditioned(STEPS),
    "standardized": Preconditioned(STEPS, "diagonal"),
    "coordinates": Preconditioned(CoordinateDescent(n_outer=1, n_inner=20), "diagonal", relative_row_norm=0.8),
    "declared": Preconditioned(STEPS, "declared"),
    "recipe": Recipe(n_steps=8),
    "newton": Recipe(n_steps=8, n_newton=4),
}


def law(seed):
    """Return means, a covariance and slopes of correlated features, for ranges of +-6 that are far too wide."""
    rng = np.random.default_rng(seed)
    loadings, sd = rng.normal(size=(P, 4)), rng.uniform(0.3, 1.2, P)
    covariance = loadings @ loadings.T + np.eye(P)
    sd /= np.sqrt(np.diag(covariance))
    covariance *= np.outer(sd, sd)
    slopes = rng.normal(size=P)
    return rng.uniform(-1, 1, P), covariance, 2.0 * slopes / np.sqrt(slopes @ covariance @ slopes)


def table(n=2000, seed=0, rows=7):
    mean, covariance, slopes = law(seed)
    rng = np.random.default_rng(rows)
    X = np.clip(rng.multivariate_normal(mean, covariance, n), -6, 6)
    margins = (X - mean) @ slopes
    return X, margins, (rng.random(n) < 1 / (1 + np.exp(-margins))).astype(int)


def classifier(epsilon=1.0, **words):
    settings = {"bounds": 6.0, "classes": (0, 1), "penalty": None, "neighbors": "zero_out", "ledger": False}
    return DPLogisticRegression(epsilon, **settings | words)


def regressor(epsilon=1.0, **words):
    return DPLinearRegression(epsilon, bounds=6.0, target=(-9.0, 9.0), neighbors="zero_out", ledger=False, **words)


def both(seed=0):
    mean, covariance, _ = law(seed)
    return {"scale": (mean, np.sqrt(np.diag(covariance))), "covariance": (mean, covariance)}


def releases(model, X, y):
    return {one.query: one for one in model.quote(X, y).priced.plan.releases}


@pytest.mark.parametrize(("kind", "left"), [("scale", ["noisy_second_moment"]), ("covariance", [])])
def test_recipes_release_what_is_not_public(kind, left):
    X, _, y = table()
    public = releases(classifier(solver=STAGES["recipe"], public_moments=both()[kind]), X, y)
    assert [query for query in OWN if query in public] == left
    plans = [
        classifier(solver=STAGES["recipe"], public_moments=known).quote(X, y).priced.plan.releases
        for known in (both()[kind], None)
    ]
    steps = [next(release for release in plan if release.query == "noisy_weighted_gradient") for plan in plans]
    assert steps[0].relative_noise < steps[1].relative_noise


def test_a_covariance_of_columns_that_do_not_vary_is_not_relied_on():
    X, _, y = table()
    mean, covariance = both()["covariance"]
    covariance[0] = covariance[:, 0] = 0.0
    asked = releases(classifier(solver=STAGES["recipe"], public_moments=(mean, covariance)), X, y)
    assert "noisy_second_moment" in asked


@pytest.mark.parametrize("make", [classifier, pytest.param(regressor, marks=pytest.mark.thorough)])
def test_without_noise_the_optimum_is_the_same(make):
    X, t, y = table(500)
    fits = [
        make(np.inf, public_moments=moments).fit(X, y if make is classifier else t)
        for moments in (None, (np.full(P, 5.0), np.full(P, 0.01)))
    ]
    assert fits[0].coef_ == pytest.approx(fits[1].coef_, abs=1e-6)


def test_a_solver_that_estimates_no_moments_refuses_them():
    X, t, y = table(100)
    with pytest.raises(Unsupported, match="leave public_moments out"):
        classifier(public_moments=both()["scale"], solver=GradientDescent(n_steps=3)).fit(X, y)
    moments = {"public_moments": both()["scale"], "solver": "gd"}
    counts = DPPoissonRegressor(1.0, bounds=6.0, target=(0, 9), ledger=False, **moments)
    with pytest.raises(Unsupported, match="leave public_moments out"):
        counts.fit(X, np.round(np.abs(t)))
