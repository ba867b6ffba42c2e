"""The inflation that a summary states is that of its standard errors over plain ones, or is not stated."""

import numpy as np
import pytest

from benchmarks.problems.ugly import plain_fit, ugly
from discreet.errors import Unsupported
from discreet.testing import seeded
from tests.limits.test_effects import ESTIMATORS

N = 20_000


def stated_over_true(model, law_seed, seed, relation):
    """Return the ratio for each effect whose inflation is stated."""
    law = ugly(model, law_seed)
    X, y = law.draw(np.random.default_rng([law_seed, seed, 7]), N)
    words = {"neighbors": relation, "inference": "sandwich", "fit_intercept": law.fit_intercept, "ledger": False}
    words["even_if_empty"] = True  # what is shown is right, however little that is
    try:
        with seeded(seed):
            fit = ESTIMATORS[model](1.0, 1 / N**2, bounds=law.bounds, **words).fit(X, y, groups=law.groups(N))
            found = fit.summary().columns()
    except Unsupported:
        return np.empty(0)
    plain = plain_fit(X, y, model, law.fit_intercept, law.groups(N))[1]
    ratios = found["inflation"] * plain / found["se"]
    return ratios[~np.isnan(ratios)]


@pytest.mark.parametrize(("model", "law"), [("linear", 8), ("logistic", 2), ("huber", 4)])
def test_inflation_is_about_that_of_the_standard_errors(model, law):
    ratios = stated_over_true(model, law, 1, "zero_out")
    assert len(ratios) > 1
    assert np.all((ratios > 0.6) & (ratios < 1.7))


@pytest.mark.thorough
@pytest.mark.parametrize("relation", ["zero_out", "replace_one"])
@pytest.mark.parametrize("model", ["logistic", "linear", "ridge", "huber"])
def test_inflation_is_nowhere_far_off(model, relation):
    """Noise in the covariance of scores is not taken for sampling, and far-out rows that count less for none."""
    every = [stated_over_true(model, law, seed, relation) for law in range(0, 10, 2) for seed in (0, 1)]
    ratios = np.concatenate(every)
    assert 0.85 < np.median(ratios) < 1.2
    assert np.quantile(ratios, 0.02) > 0.6
    assert np.quantile(ratios, 0.98) < 1.8
