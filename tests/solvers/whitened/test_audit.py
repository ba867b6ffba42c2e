"""A statistical audit of the moments: what the worst record betrays through the real release path.

One release at noise multiplier 1 is exactly 1-Gaussian-DP, so the best test between the worst neighbors must come near
mu = 1 and never above.
"""

import numpy as np
import pytest
from scipy import stats

from discreet.accounting.plan import Plan, Release
from discreet.bounds import Bounds
from discreet.budget import Budget
from discreet.curator.private_data import PrivateData
from discreet.curator.queries import moments
from discreet.losses import Logistic
from tests.covering import covering
from tests.priced import at_noise

RUNS = 20_000
CONFIDENCE = 1e-6
CLIPS = {"noisy_mean": 1.0, "noisy_mean_squares": 1.0, "noisy_second_moment": 1.0}
WORST = {  # rows of length 1 whose contributions are as far apart as any
    "replace_one": {"noisy_mean": ([1.0, 0.0], [-1.0, 0.0])},
    "zero_out": {},
}
ORTHOGONAL, NOBODY = ([1.0, 0.0], [0.0, 1.0]), ([1.0, 0.0], [np.nan, 0.0])


def releases(query, row, relation, monkeypatch):
    """RUNS answers about a table of one row."""
    data = PrivateData(np.array([row]), [0], Bounds(features=1.0, classes=(0, 1)), fit_intercept=False)
    curator = data.open(at_noise(Plan([Release(query, RUNS)]), Budget(1.0, 1e-6, relation), 1.0), Logistic())
    return np.array([getattr(curator, query)(clip=CLIPS[query], n=1.0) for _ in range(RUNS)]).reshape(RUNS, -1)


def lower_bound_on_mu(query, relation, monkeypatch):
    """Clopper-Pearson bound on mu, from the projection onto the line between the two sides' means."""
    pair = WORST[relation].get(query, ORTHOGONAL if relation == "replace_one" else NOBODY)
    one, other = (releases(query, row, relation, monkeypatch) for row in pair)
    line = other[::2].mean(axis=0) - one[::2].mean(axis=0)  # learned on one half, tested on the other
    middle = (other[::2].mean(axis=0) + one[::2].mean(axis=0)) @ line / 2
    alarms, misses = int((one[1::2] @ line >= middle).sum()), int((other[1::2] @ line < middle).sum())
    rates = [stats.beta.ppf(1 - CONFIDENCE, errors + 1, RUNS // 2 - errors) for errors in (alarms, misses)]
    return float(stats.norm.isf(rates[0]) - stats.norm.ppf(rates[1]))


@pytest.mark.few(1)
@covering(("query", CLIPS), ("relation", ["zero_out", "replace_one"]))
def test_a_moment_gives_away_what_is_claimed_and_no_more(query, relation, monkeypatch):
    assert 0.75 <= lower_bound_on_mu(query, relation, monkeypatch) <= 1.0


@pytest.mark.thorough
def test_a_factor_of_one_for_the_root_of_two_is_refuted(monkeypatch):
    monkeypatch.setattr(moments, "ROOT_TWO", 1)
    assert lower_bound_on_mu("noisy_second_moment", "replace_one", monkeypatch) > 1.0
