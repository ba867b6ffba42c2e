"""A statistical audit of the real release path: a canary at exactly the clip bound, and what it betrays.

One release at noise multiplier z is exactly (1/z)-Gaussian-DP. On the worst pair of neighbors the best
threshold test has error rates a, b with Phi^-1(1 - a) + Phi^-1(1 - b) = 1/z. From many releases on each
side we bound both rates by Clopper-Pearson at 1e-6 and so get a lower bound on mu that must not exceed
the claim, and must come near it (the audit has power).
"""

import numpy as np
import pytest
from scipy import stats

from discreet.accounting.plan import Plan, Release
from discreet.bounds import Bounds
from discreet.budget import Budget, Neighbors
from discreet.curator import session
from discreet.curator.private_data import PrivateData
from discreet.losses import Logistic
from tests.priced import at_noise

RUNS = 20_000
CLIP = 0.25
CONFIDENCE = 1e-6


def releases(X, y, neighbors, monkeypatch, *, narrow=1.0):
    """RUNS noisy sums of one clipped gradient (first coordinate), at noise multiplier ``narrow``."""
    plan = Plan([Release("noisy_gradient", RUNS, clip=CLIP)])
    data = PrivateData(X, y, Bounds(features=1.0, classes=(0, 1)), fit_intercept=False)
    curator = data.open(at_noise(plan, Budget(1.0, 1e-6, neighbors), narrow), Logistic())
    w = np.zeros(1)
    return np.array([curator.noisy_gradient(w, clip=CLIP)[0] for _ in range(RUNS)])


def lower_bound_on_mu(out, inside):
    """Clopper-Pearson bound on mu from the test 'above the middle'."""
    middle = (np.median(out[::2]) + np.median(inside[::2])) / 2  # threshold from one half, rates from the other
    out, inside = out[1::2], inside[1::2]
    false_alarms, misses = int((out >= middle).sum()), int((inside < middle).sum())
    rates = [
        stats.beta.ppf(1 - CONFIDENCE, errors + 1, len(side) - errors)
        for errors, side in ((false_alarms, out), (misses, inside))
    ]
    return float(stats.norm.isf(rates[0]) - stats.norm.ppf(rates[1]))


def worst_pair(neighbors):
    """Data sets whose sums differ by the whole sensitivity: gradients at -clip and +clip, or a null record."""
    low = (np.array([[1.0]]), [1])
    if neighbors is Neighbors.REPLACE_ONE:
        return low, (np.array([[1.0]]), [0])
    if neighbors is Neighbors.ZERO_OUT:
        return low, (np.array([[np.nan]]), [1])
    return (np.array([[1.0], [1.0]]), [1, 1]), low


@pytest.mark.few(1)
@pytest.mark.parametrize("neighbors", list(Neighbors))
def test_a_release_gives_away_what_is_claimed_and_no_more(neighbors, monkeypatch):
    small, large = (releases(*side, neighbors, monkeypatch) for side in worst_pair(neighbors))
    bound = lower_bound_on_mu(small, large)
    assert 0.75 <= bound <= 1.0  # 0.88 on average with a deviation of 0.019: more than six from either end


@pytest.mark.thorough
def test_noise_three_tenths_too_small_is_refuted(monkeypatch):
    small, large = (
        releases(*side, Neighbors.REPLACE_ONE, monkeypatch, narrow=0.7) for side in worst_pair(Neighbors.REPLACE_ONE)
    )
    assert lower_bound_on_mu(small, large) > 1.0


def test_the_wrong_sensitivity_factor_is_refuted(monkeypatch):
    original = session.unit_for
    monkeypatch.setattr(session, "unit_for", lambda z, factor, clip, n: original(z, 1, clip, n))
    small, large = (releases(*side, Neighbors.REPLACE_ONE, monkeypatch) for side in worst_pair(Neighbors.REPLACE_ONE))
    assert lower_bound_on_mu(small, large) > 1.5


@pytest.mark.thorough
def test_reused_noise_is_refuted(monkeypatch):
    frozen = {}
    original = session.noise.rounded_gaussian
    monkeypatch.setattr(
        session.noise,
        "rounded_gaussian",
        lambda count, m, entropy: frozen.setdefault((count, m), original(count, m, entropy)),
    )
    small, large = (releases(*side, Neighbors.REPLACE_ONE, monkeypatch) for side in worst_pair(Neighbors.REPLACE_ONE))
    assert len(np.unique(small)) == 1
    assert lower_bound_on_mu(small, large) > 1.0
