"""The noise of a recipe's answers is Gaussian and as wide as its entry of the plan says, at a significance of 1e-6."""

import math

import numpy as np
import pytest
from scipy import stats

from discreet.losses import Logistic, Poisson, Softmax
from tests.covering import covering
from tests.default.cases import RECIPES, run

pytestmark = pytest.mark.statistical

SIGNIFICANCE, RUNS = 1e-6, 60
CASES = {
    "shares of classes": ("diagonal", Logistic()),
    "shares of three classes": ("diagonal", Softmax(3)),
    "two Hessians": ("two Hessians", Logistic()),
    "counts": ("two Hessians", Poisson(2.0)),
    "counts, declared": ("declared, weighted", Poisson(2.0)),
}


def deviates(kind, loss, relation, runs=RUNS):
    """Noise over its planned deviation, by query; answers of the first entry of a query apart from the rest."""
    found = {}
    for seed in range(runs):
        curator, plan, seen, _ = run(RECIPES[kind], loss, relation, seed=seed)
        entries = {}
        for release in plan.releases:
            entries.setdefault(release.query, []).extend([release.relative_noise] * release.count)
        for one in seen:
            asked = entries[one.query]
            first = len(asked) == sum(r.count for r in plan.releases if r.query == one.query)
            planned = asked.pop(0) * curator.noise_multiplier * float(one.factor) * one.unit.bound
            noise = np.ravel(np.asarray(one.noisy - one.exact, dtype=np.float64)) / planned
            found.setdefault((one.query, first), []).append(noise)
    return {key: np.concatenate(parts) for key, parts in found.items()}


def p_value(noise):
    """Of a standard normal law, by its shape and by its width."""
    width = stats.chi2.cdf(float(noise @ noise), noise.size)
    return min(float(stats.kstest(noise, "norm").pvalue), 2.0 * min(width, 1.0 - width))


@covering(("case", CASES), ("relation", ["replace_one", "zero_out", "add_remove"]))
def test_every_answer_has_the_planned_noise(case, relation):
    for query, noise in deviates(*CASES[case], relation).items():
        assert p_value(noise) > SIGNIFICANCE, query


def test_the_noise_of_another_entry_would_be_found():
    """Shares of classes with the noise of a step, and a gradient of a step with that of the shares."""
    found = deviates("diagonal", Softmax(3), "zero_out")
    _, plan, _, _ = run(RECIPES["diagonal"], Softmax(3))
    shares, steps = [r.relative_noise for r in plan.releases if r.query == "noisy_gradient"][:2]
    assert not math.isclose(shares, steps, rel_tol=0.2)
    for first, ratio in ((True, steps / shares), (False, shares / steps)):
        assert p_value(found["noisy_gradient", first] * ratio) < SIGNIFICANCE
