"""Prices of (epsilon_i, delta_i) claims: against closed forms, another library's composition, and explicit attacks."""

import math

import numpy as np
import pytest
from scipy.stats import binom

from discreet.accounting import (
    advanced_composition,
    basic_composition,
    composed_epsilon,
    heterogeneous_composition,
)
from discreet.accounting.events import Gaussian, PureDP
from discreet.accounting.pricing import epsilon_of
from discreet.errors import AccountingError

UNEQUAL = [(0.1, 1e-7)] * 20 + [(0.3, 0.0)] * 5 + [(0.02, 1e-8)] * 50


def test_one_claim_is_itself_and_pure_ones_add_up():
    assert composed_epsilon([(0.7, 1e-6)], 1e-6 * (1 + 1e-9)) == pytest.approx(0.7, rel=1e-9)
    assert composed_epsilon([(0.7, 0.0), (0.2, 0.0)], 0.0) == pytest.approx(0.9, rel=1e-12)
    assert composed_epsilon([], 1e-6) == 0.0
    assert composed_epsilon([(0.0, 1e-7)], 1e-6) == 0.0


def test_without_claims_it_is_the_price_of_the_events():
    events = [Gaussian(5.0, 10), PureDP(0.1)]
    assert composed_epsilon([], 1e-6, events) == epsilon_of(events, 1e-6).epsilon


@pytest.mark.parametrize("claims", [UNEQUAL, [(0.1, 1e-8)] * 100])
def test_exact_is_below_the_closed_forms(claims):
    slack = 1e-5
    closed, delta = heterogeneous_composition(claims, slack)
    assert composed_epsilon(claims, delta) <= closed < basic_composition(claims)[0]


def test_equal_ones_are_no_worse_than_in_the_older_theorem():
    assert heterogeneous_composition([(0.1, 0.0)] * 100, 1e-6)[0] < advanced_composition(0.1, 0.0, 100, 1e-6)[0]
    assert heterogeneous_composition([(2.0, 0.0)] * 2, 1e-6)[0] == 4.0  # few large ones: the sum
    assert heterogeneous_composition([(0.1, 0.5)] * 2, 0.5)[1] == pytest.approx(0.875)


def test_another_composition_of_the_same_claims_agrees():
    """dp_accounting has these mechanisms, deltas included, as distributions of their own."""
    from dp_accounting.pld import common
    from dp_accounting.pld import privacy_loss_distribution as distributions

    total = None
    for epsilon, delta in UNEQUAL:
        one = distributions.from_privacy_parameters(common.DifferentialPrivacyParameters(epsilon, delta), 1e-4)
        total = one if total is None else total.compose(one)
    assert composed_epsilon(UNEQUAL, 1e-5) == pytest.approx(total.get_epsilon_for_delta(1e-5), rel=0.01)


def test_an_attack_attains_nearly_the_price():
    """Randomized responses, and coins that show everything: the best test's delta at a smaller epsilon is too large."""
    count, epsilon, share, delta = 50, 0.2, 1e-8, 1e-5
    claimed = composed_epsilon([(epsilon, share)] * count, delta)
    k, chance = np.arange(count + 1), 1 / (1 + math.exp(-epsilon))
    P, Q = binom.pmf(k, count, chance), binom.pmf(k, count, 1 - chance)

    def exact(e):
        return 1 - (1 - share) ** count * (1 - np.maximum(P - math.exp(e) * Q, 0).sum())

    assert exact(claimed) <= delta * (1 + 1e-6)
    assert exact(0.97 * claimed) > delta


@pytest.mark.parametrize(
    ("claims", "delta"), [([(0.1, 1e-6)], 1e-7), ([(0.1, 1e-6)], 0.0), ([(0.1, 1.0)], 1e-6), ([(-1.0, 0.0)], 1e-6)]
)
def test_what_cannot_be_is_refused(claims, delta):
    with pytest.raises(AccountingError):
        composed_epsilon(claims, delta)
