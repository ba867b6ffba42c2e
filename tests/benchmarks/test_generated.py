"""Generated problems: what they declare is true of their law, and what they call the best is the best."""

import numpy as np
import pytest

from benchmarks.problems.generated import problem
from discreet.testing import seeded

SEEDS = range(60)


@pytest.fixture(scope="module")
def drawn():
    return [problem(seed) for seed in SEEDS]


def test_ranges_hold_nearly_all_values(drawn):
    for one in drawn:
        low, high = one.bounds.ranges(one.X.shape[1])
        inside = np.clip(one.X, low, high) == one.X
        assert inside.mean(axis=0).min() > 0.98
        if one.bounds.target is not None:
            assert np.mean(np.clip(one.y, *one.bounds.target) == one.y) > 0.98


@pytest.mark.few(2)
@pytest.mark.parametrize("seed", SEEDS[::2])
def test_the_minimizer_is_the_best(seed):
    """No model is below it: not the trivial one, not one nearby, not the default with hardly any noise."""
    one, rng = problem(seed), np.random.default_rng(0)
    least, w = one.objective.least, one.objective.minimizer
    above = least - 1e-9 * max(abs(least), 1e-3)
    assert above <= one.scores(one.nothing)["objective"]
    for size in (1e-4, 1e-2):
        assert above <= one.objective.value(w + size * rng.normal(size=w.shape))
    with seeded(0):
        assert above <= one.fitted(one.model(1e4).fit(one.X, one.y))["objective"]
