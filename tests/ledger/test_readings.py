"""What an account says of itself: what is left is granted, and a little more is not."""

from itertools import pairwise

import numpy as np
import pytest

from discreet import Ledger
from discreet.accounting import Plan, Release
from discreet.accounting.events import Gaussian, PureDP, TotalVariation
from discreet.accounting.priced_plan import price_plan
from discreet.budget import Budget
from discreet.errors import BudgetExceeded
from discreet.ledger.privacy_filters import UNIT
from tests.ledger.test_account import a_fit

PLAN = Plan([Release("noisy_gradient", 10)])


@pytest.mark.parametrize("seed", range(12))
def test_what_is_left_is_granted_and_little_more_is_not(seed):
    rng = np.random.default_rng(seed)
    epsilon, delta = float(rng.choice([0.5, 1.0, 3.0])), float(rng.choice([1e-4, 1e-8]))
    ledger = Ledger(":memory:")
    ledger.grant("a", epsilon, delta)
    for _ in range(3):
        ledger.reserve("a", price_plan(PLAN, Budget(float(rng.uniform(0.1, 0.3)) * epsilon, delta)))
    left = ledger.spent("a").left
    with pytest.raises(BudgetExceeded):
        ledger.reserve("a", price_plan(PLAN, Budget(left * (1 + 1e-6), delta)))
    ledger.reserve("a", price_plan(PLAN, Budget(left, delta)))
    assert ledger.spent("a").left < 1e-3
    assert ledger.spent("a").share > 1 - 1e-6


def test_what_is_left_is_granted_where_epsilons_are_added_up():
    ledger = Ledger(":memory:")
    ledger.grant("a", 2.0, 1e-6)
    assert ledger.spent("a").left_delta == 1e-6
    ledger.reserve("a", price_plan(PLAN, Budget(1.96, 9e-7)))
    assert ledger.account("a").adds
    spent = ledger.spent("a")
    assert spent.left == pytest.approx(0.04, rel=1e-6)
    assert spent.left_delta == pytest.approx(1e-7)
    for more in (Budget(spent.left * (1 + 1e-6), spent.left_delta), Budget(spent.left / 2, spent.left_delta * 1.001)):
        with pytest.raises(BudgetExceeded, match=r"about epsilon 0\.04 at delta 1e-07 is left"):
            ledger.reserve("a", price_plan(PLAN, more))
    ledger.reserve("a", price_plan(PLAN, Budget(spent.left, spent.left_delta)))
    assert ledger.spent("a").left < 1e-6
    assert ledger.spent("a").left_delta < 1e-20


def test_what_is_left_of_a_whole_is_granted_where_a_part_adds_up():
    ledger = Ledger(":memory:")
    ledger.grant("all", 2.0, 1e-6)
    ledger.divide("all", ["north", "south"])
    ledger.reserve("north", price_plan(PLAN, Budget(1.96, 9e-7)))
    assert ledger.account("north").adds
    spent = ledger.spent("all")
    ledger.reserve("all", price_plan(PLAN, Budget(0.9 * spent.left, spent.left_delta)))


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_the_refusal_names_epsilon_and_delta(delta):
    ledger = Ledger(":memory:")
    ledger.grant("a", 1.0, delta)
    ledger.reserve("a", price_plan([PureDP(0.5)], Budget(0.5)))
    left = ledger.spent("a")
    with pytest.raises(BudgetExceeded) as refused:
        ledger.reserve("a", price_plan([PureDP(30.0)], Budget(30.0)))
    assert f"about epsilon {left.left:.3g} at delta {left.left_delta:.3g} is left" in str(refused.value)
    assert left.left_delta == delta


def test_pure_fits_may_add_up_to_the_cap_until_something_has_a_delta():
    """The share without a delta: one unit of delta closes it, whatever is left of epsilon."""
    ledger = Ledger(":memory:")
    cap = ledger.grant("a", 1.0, 1e-6)
    for _ in range(2):
        ledger.reserve("a", price_plan([PureDP(0.5)], Budget(0.5)))
    spent = ledger.account("a").spent
    assert (spent.epsilon, spent.delta) == (UNIT, 0)
    assert spent.low > cap.caps.low  # granted by this share alone
    assert spent.high > cap.caps.high
    with pytest.raises(BudgetExceeded):
        ledger.reserve("a", price_plan([PureDP(1e-11)], Budget(1e-11)))
    ledger.grant("b", 1.0, 1e-6)
    ledger.reserve("b", price_plan([PureDP(0.5)], Budget(0.5)))
    ledger.reserve("b", price_plan([Gaussian(1e5)], Budget(0.1, 1e-30)))
    assert ledger.account("b").spent.delta == 1
    with pytest.raises(BudgetExceeded):
        ledger.reserve("b", price_plan([PureDP(0.49)], Budget(0.49)))
    ledger.verify(prices=True)


@pytest.mark.parametrize("seed", range(6))
def test_the_reading_is_never_above_the_sum_while_delta_is_within_the_cap(seed):
    rng = np.random.default_rng(seed)
    ledger = Ledger(":memory:")
    ledger.grant("a", 4.0, 1e-5)
    for _ in range(8):
        events, _ = a_fit(rng)
        events = [one for one in events if not isinstance(one, TotalVariation)]
        pure = all(isinstance(one, PureDP) for one in events)
        try:
            ledger.reserve("a", price_plan(events, Budget(1e5, 0.0 if pure and rng.random() < 0.7 else 1e-6)))
        except BudgetExceeded:
            continue
        spent = ledger.spent("a")
        assert spent.summed_delta <= 1e-5
        assert 0 < spent.epsilon <= spent.summed_epsilon


def test_the_composed_reading_grows_and_stays_below_the_sum():
    ledger = Ledger(":memory:")
    ledger.grant("a", 3.0, 1e-5)
    readings = []
    for _ in range(8):
        ledger.reserve("a", price_plan(PLAN, Budget(0.3, 1e-6)))
        readings.append(ledger.spent("a"))
    assert all(one.epsilon < two.epsilon for one, two in pairwise(readings))
    assert all(one.share < two.share for one, two in pairwise(readings))
    assert all(one.left > two.left for one, two in pairwise(readings))
    assert readings[-1].epsilon < 0.5 * readings[-1].summed_epsilon
    assert readings[-1].summed_epsilon == pytest.approx(2.4)
    assert readings[-1].summed_delta == pytest.approx(8e-6)
