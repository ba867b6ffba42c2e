"""A private number of records: what sums are divided by is never smaller than twice the number's own noise."""

import math

import numpy as np
import pytest

from discreet import Bounds, Budget
from discreet.accounting import Plan
from discreet.accounting.pricing import price_plan
from discreet.curator import PrivateData
from discreet.losses import Logistic
from discreet.solvers.base import count_release, public_count
from discreet.testing import seeded


def opened(n, budget, weights=None):
    """A curator that has a noisy count of n records to give, or the noisy sum of their weights."""
    bounds = Bounds(1.0, classes=(0, 1), weights=None if weights is None else (0.0, 1.0))
    data = PrivateData(np.zeros((n, 2)), np.arange(n) % 2, bounds, weights=weights)
    domain = data.domain(budget.neighbors, Logistic())
    return data.open(price_plan(Plan(count_release(domain)), budget), Logistic())


@pytest.mark.parametrize("delta", [1e-6, 0.0], ids=["gaussian", "laplace"])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_it_is_at_least_twice_its_noise_and_the_same_when_asked_again(delta, is_weighted):
    budget, weights = Budget(0.1, delta, "add_remove"), np.full(10, 0.5) if is_weighted else None
    counts = []
    for seed in range(8):
        with seeded(seed):
            curator = opened(10, budget, weights)
            counts.append(public_count(curator))
            assert public_count(curator) == counts[-1]
    least = 2.0 * curator.noise_multiplier * (1.0 if delta else math.sqrt(2.0))
    assert min(counts) == pytest.approx(least)


def test_a_number_far_above_its_noise_stays_what_it_is():
    with seeded(0):
        curator = opened(5_000, Budget(4.0, 1e-6, "add_remove"))
        assert public_count(curator) == pytest.approx(5_000, abs=10)
        assert public_count(curator) == curator.domain.count


def test_without_noise_it_is_the_number():
    assert public_count(opened(7, Budget(math.inf, 1e-6, "add_remove"))) == 7.0
