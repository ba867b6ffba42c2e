"""Caps and charges against figures worked out elsewhere (``references``), which call nothing of what is tested."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import Ledger
from discreet.accounting import Plan, Release, rdp
from discreet.accounting.events import (
    ZCDP,
    BoundedRange,
    Gaussian,
    Laplace,
    NonPrivate,
    PoissonSampled,
    PureDP,
    TotalVariation,
)
from discreet.accounting.priced_plan import price_plan
from discreet.budget import Budget
from discreet.errors import BudgetExceeded, Unsupported
from discreet.ledger.account import Account
from discreet.ledger.privacy_filters import (
    FREE,
    NEVER,
    UNIT,
    WHOLE_DELTA,
    Amounts,
    caps_for,
    charge_of,
    epsilon_spent,
    orders_for,
)
from tests.ledger.references import (
    REFERENCES,
    SLACK,
    gaussian_delta,
    laplace,
    reference_limit,
    reference_mu,
    replaced_gaussian,
    response,
    sampled_gaussian,
)

CAPS = [(0.1, 1e-6), (0.5, 1e-9), (1.0, 1e-2), (1.0, 1e-6), (3.0, 1e-5), (10.0, 1e-12), (100.0, 1e-4)]
ONE_PLAN = Plan([Release("noisy_gradient", 10)])


def units(value):
    """A number of the reference in units, not rounded."""
    return mpmath.mpf(value) * UNIT


# --- caps ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("epsilon", "delta"), CAPS)
def test_caps_are_just_below_the_references(epsilon, delta):
    orders = orders_for(epsilon, delta)
    caps = caps_for(epsilon, delta, orders)
    with mpmath.workdps(60):
        whole = {
            "gaussian": units(reference_mu(epsilon, delta / 2) ** 2),
            "low": units(reference_limit(epsilon, delta / 4, orders[0])),
            "high": units(reference_limit(epsilon, delta / 4, orders[1])),
        }
        for name, exact in whole.items():
            assert exact * (1 - mpmath.mpf(10) ** -9) - 1 <= getattr(caps, name) <= exact, name
    assert caps.epsilon == math.floor(Fraction(epsilon) * UNIT)
    assert caps.delta == WHOLE_DELTA


@pytest.mark.thorough
def test_the_orders_are_whole_and_near_the_best_for_concentrated_noise():
    for epsilon, delta in CAPS:
        low, high = orders_for(epsilon, delta)
        assert isinstance(low, int)
        assert high == 3 * low
        with mpmath.workdps(30):
            here = reference_limit(epsilon, delta / 4, low) / low
            best = max(reference_limit(epsilon, delta / 4, a) / a for a in range(2, 2000))
        assert here >= best * mpmath.mpf("0.99")


def test_a_share_that_allows_nothing_is_closed():
    assert caps_for(1.0, 0.0, (2, 6)) == Amounts(-1, -1, -1, UNIT, 0)
    tiny = caps_for(1e-5, 1e-9, orders_for(1e-5, 1e-9))
    assert tiny.low == tiny.high == -1  # no whole order below 2^13 sees so little
    assert tiny.gaussian > 0


@pytest.mark.parametrize("epsilon", [2.0**20, 1e9])
def test_caps_beyond_64_bits_are_refused(epsilon):
    with pytest.raises(Unsupported):
        caps_for(epsilon, 1e-6, (2, 6))


def test_the_largest_caps_stay_below_what_has_no_price():
    caps = caps_for(math.nextafter(2.0**20, 0), 0.5, orders_for(math.nextafter(2.0**20, 0), 0.5))
    assert max(caps.gaussian, caps.low, caps.high, caps.epsilon) < NEVER
    total = Amounts(NEVER, NEVER, NEVER, NEVER, NEVER) + Amounts(NEVER, 1, 0, NEVER, NEVER)
    assert total == Amounts(NEVER, NEVER, NEVER, NEVER, NEVER)
    assert not total.within_a_share(caps)
    assert 2 * NEVER < 2**63


@pytest.mark.parametrize("delta", [1e-100, 0.5, 0.999])
def test_caps_at_extreme_deltas_are_below_the_references(delta):
    orders = orders_for(1.0, delta)
    caps = caps_for(1.0, delta, orders)
    with mpmath.workdps(60):
        assert caps.gaussian <= units(reference_mu(1.0, delta / 2) ** 2)
        for order, cap in zip(orders, (caps.low, caps.high), strict=True):
            assert cap <= units(reference_limit(1.0, delta / 4, order))


@pytest.mark.parametrize("delta", [5e-324, 1e-300, 9e-101])
def test_deltas_of_no_use_are_refused(delta):
    with pytest.raises(Unsupported, match="at least 1e-100"):
        Account.opened("a", 1.0, delta, "replace_one", "record")


# --- charges ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("orders", [(2, 6), (15, 45), (60, 180)])
@pytest.mark.parametrize("name", REFERENCES)
def test_charges_are_just_above_the_references(name, orders):
    event, neighbors, reference = REFERENCES[name]
    charge = charge_of(price_plan([event], Budget(1e3, 1e-6, neighbors)), orders, 1e-6)
    slack = mpmath.mpf(SLACK.get(name, 1e-8))
    with mpmath.workdps(60):
        for order, charged in zip(orders, (charge.low, charge.high), strict=True):
            exact = units(reference(order))
            assert exact <= charged <= exact * (1 + slack) + 2


@pytest.mark.few(1)
@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one"])
def test_high_orders_neither_overflow_nor_vanish(neighbors):
    event, orders = PoissonSampled(66, Gaussian(4.0, 50)), (800, 2400)
    charge = charge_of(price_plan([event], Budget(1e3, 1e-6, neighbors)), orders, 1e-6)
    reference = sampled_gaussian if neighbors == "add_remove" else replaced_gaussian
    with mpmath.workdps(40):
        for order, charged in zip(orders, (charge.low, charge.high), strict=True):
            exact = units(50 * reference(Fraction(66, 2**16), 4.0, order))
            assert exact <= charged <= exact * (1 + mpmath.mpf(1e-7)) + 2
    highest = charge_of(price_plan([event, PureDP(2.0)], Budget(1e3, 1e-6, neighbors)), (8000, 24000), 1e-6)
    assert charge.low < charge.high < highest.high <= NEVER


@given(st.lists(st.tuples(st.floats(0.05, 1e4), st.integers(1, 10**6)), min_size=1, max_size=5))
def test_gaussian_charges_are_exact(listed):
    events = [Gaussian(z, count) for z, count in listed]
    total = sum(count / Fraction(z) ** 2 for z, count in listed)
    charge = charge_of(price_plan(events, Budget(1e9, 1e-6)), (2, 6), 1e-6)
    assert charge.gaussian == min(math.ceil(total * UNIT), NEVER)


@pytest.mark.parametrize(
    ("event", "reference"),
    [
        (PureDP(1e-6, 10**6), lambda a: 10**6 * response(1e-6, a)),
        (PureDP(1e-7, 10**7), lambda a: 10**7 * response(1e-7, a)),
        (PureDP(3.3e-9, 10**9), lambda a: 10**9 * response(3.3e-9, a)),
        (Laplace(1e4, 10**4, 1), lambda a: 10**4 * laplace(1e-4, a)),
        (Laplace(1e7, 10**7, 1), lambda a: 10**7 * laplace(1e-7, a)),
        (BoundedRange(3.3e-9, 10**9), lambda a: 10**9 * a * mpmath.mpf(3.3e-9) ** 2 / 8),
    ],
    ids=lambda value: repr(value) if not callable(value) else "",
)
def test_very_many_tiny_pure_events_are_not_undercharged(event, reference):
    orders = (2, 6)
    charge = charge_of(price_plan([event], Budget(1e3, 0.0)), orders, 0.1)
    with mpmath.workdps(60):
        for order, charged in zip(orders, (charge.low, charge.high), strict=True):
            exact = units(reference(order))
            assert exact <= charged <= exact * (1 + mpmath.mpf(1e-9)) + 2


@pytest.mark.parametrize(("moments", "reference"), [(rdp.moments_of_pure, response), (rdp.moments_of_laplace, laplace)])
def test_log_moments_of_pure_events_neither_cancel_nor_fall_short(moments, reference):
    """But for the last digit, which charges and prices make up for (1e-12)."""
    orders = np.array([2.0, 3.0, 6.0, 25.0, 75.0, 1000.0, 24000.0])
    epsilons = np.exp(np.random.default_rng(0).uniform(np.log(1e-15), np.log(50.0), 80)).tolist()
    for epsilon in [*epsilons, 0.1, 15.0, 30.0, 30 / 24000]:
        for order, found in zip(orders, moments(epsilon, orders), strict=True):
            with mpmath.workdps(60):
                exact = (order - 1) * reference(epsilon, order)
                assert abs(mpmath.mpf(float(found)) / exact - 1) <= 1e-14
                assert mpmath.mpf(float(found)) >= exact * (1 - mpmath.mpf(2) ** -52)


def test_what_has_no_price_in_a_filter_never_fits_there():
    orders = (15, 45)
    assert charge_of(price_plan([], Budget(1.0, 1e-6)), orders, 1e-6) == FREE
    mixed = charge_of(price_plan([Gaussian(50.0), PureDP(0.01)], Budget(1.0, 1e-6)), orders, 1e-6)
    assert mixed.gaussian == NEVER > mixed.low
    assumed = charge_of(price_plan([PureDP(0.1), TotalVariation(1e-9)], Budget(1.0, 1e-6)), orders, 1e-6)
    assert assumed.gaussian == assumed.low == assumed.high == NEVER
    assert 0.0999 * UNIT <= assumed.epsilon < UNIT
    no_delta = charge_of(price_plan([Gaussian(50.0)], Budget(1.0, 1e-6)), orders, 0.0)
    assert no_delta.epsilon == no_delta.delta == NEVER
    for events, budget in (([NonPrivate()], Budget(1.0, 1e-6)), ([Gaussian(1.0)], Budget(math.inf, 1e-6))):
        with pytest.raises(Unsupported):
            charge_of(price_plan(events, budget), orders, 1e-6)


@pytest.mark.parametrize("fit_delta", [1e-6, 9.999999e-7, 1e-7 / 3, 1e-19, 1e-22])
def test_the_epsilon_that_is_added_holds_at_the_delta_that_is_added(fit_delta):
    cap_delta = 1e-6
    event = Gaussian(6.0)
    charge = charge_of(price_plan([event], Budget(1e3, fit_delta)), (15, 45), cap_delta)
    with mpmath.workdps(60):
        claimed = mpmath.mpf(charge.epsilon) / UNIT
        delta = min(mpmath.mpf(charge.delta) * mpmath.mpf(cap_delta) / WHOLE_DELTA, mpmath.mpf(1))
        assert gaussian_delta(claimed, 1 / mpmath.mpf(6)) <= delta
        assert charge.delta <= max(1, math.ceil(Fraction(fit_delta) / Fraction(cap_delta) * WHOLE_DELTA))


def test_more_delta_than_the_cap_has_no_price_for_adding_up():
    """In the other filters it has: their price does not depend on the claim."""
    for fit_delta in (math.nextafter(1e-6, 1) * (1 + 1e-14), 1e-5, 0.5):
        charge = charge_of(price_plan([Gaussian(6.0)], Budget(1e3, fit_delta)), (15, 45), 1e-6)
        assert charge.epsilon == charge.delta == NEVER
        assert (charge.gaussian, charge.low) == (
            math.ceil(Fraction(UNIT, 36)),
            charge_of(price_plan([Gaussian(6.0)], Budget(1e3, 1e-6)), (15, 45), 1e-6).low,
        )


def test_a_pure_fit_adds_no_delta():
    charge = charge_of(price_plan([PureDP(0.25, 2)], Budget(0.5, 0.0)), (2, 6), 1e-6)
    assert (charge.epsilon, charge.delta) == (UNIT // 2, 0)


EVENTS = st.one_of(
    st.builds(Gaussian, st.floats(2.0, 200.0), st.integers(1, 50)),
    st.builds(PureDP, st.floats(0.01, 0.5), st.integers(1, 5)),
    st.builds(BoundedRange, st.floats(0.01, 0.5), st.integers(1, 5)),
    st.builds(ZCDP, st.floats(1e-6, 1e-2)),
)


@pytest.mark.thorough
@settings(max_examples=25)
@given(st.lists(EVENTS, min_size=2, max_size=5), st.integers(1, 4))
def test_charges_of_a_list_are_the_sum_of_its_charges(events, cut):
    budget, orders = Budget(1e6, 1e-6), (15, 45)
    whole = charge_of(price_plan(events, budget), orders, 1e-6)
    parts = charge_of(price_plan(events[:cut], budget), orders, 1e-6) + charge_of(
        price_plan(events[cut:], budget), orders, 1e-6
    )
    for name in ("gaussian", "low", "high"):
        one, two = getattr(whole, name), getattr(parts, name)
        assert one <= two <= one * (1 + 1e-9) + 2


@pytest.mark.thorough
@settings(max_examples=12)
@given(st.floats(2.0, 100.0), st.integers(1, 100), st.floats(1.0, 3.0), st.integers(0, 5))
def test_charges_grow_with_the_count_and_fall_with_the_noise(z, count, factor, more):
    budget, orders = Budget(1e6, 1e-6), (15, 45)

    def charges(noise, many):
        events = [Gaussian(noise, many)], [Laplace(noise, many, 1)], [PoissonSampled(3000, PureDP(1 / noise, many))]
        return [charge_of(price_plan(listed, budget), orders, 1e-6) for listed in events]

    for less, more_of_it in zip(charges(z * factor, count), charges(z, count + more), strict=True):
        assert less.gaussian <= more_of_it.gaussian
        assert less.low <= more_of_it.low * (1 + 1e-12) + 1
        assert less.high <= more_of_it.high * (1 + 1e-12) + 1


# --- what is within a cap keeps its promise --------------------------------------------------------


@settings(max_examples=25)
@given(st.sampled_from(CAPS[:5]), st.lists(st.floats(0.02, 1.0), min_size=1, max_size=6))
def test_gaussian_fits_within_the_cap_are_within_epsilon_and_half_of_delta(cap, sizes):
    epsilon, delta = cap
    account = Account.opened("a", epsilon, delta, "replace_one", "record")
    limit = math.sqrt(account.caps.gaussian / UNIT)
    square = Fraction(0)
    for size in sizes:
        event = Gaussian(1 / (size * limit))
        after = account.charged(account.charge(price_plan([event], Budget(1e6, delta))))
        if after.spent.gaussian <= after.caps.gaussian:
            account, square = after, square + 1 / Fraction(event.noise_multiplier) ** 2
    with mpmath.workdps(60):
        mu = mpmath.sqrt(mpmath.mpf(square.numerator) / square.denominator)
        if mu:
            assert gaussian_delta(mpmath.mpf(epsilon), mu) <= mpmath.mpf(delta) / 2
    assert epsilon_spent(account.spent, delta, account.orders) <= epsilon * (1 + 1e-12)


@pytest.mark.parametrize(
    "event",
    [Laplace(12.0, 1, 1), PoissonSampled(1311, Gaussian(2.0, 10)), Gaussian(20.0)],
    ids=["laplace", "sampled", "gaussian"],
)
def test_as_many_fits_as_a_cap_takes_are_within_it_by_privacy_loss_distributions(event):
    """A fixed list is one thing an analyst may do: another library's accountant must find it within the cap."""
    dp_event = pytest.importorskip("dp_accounting").dp_event
    from dp_accounting import NeighboringRelation
    from dp_accounting.pld import PLDAccountant

    account = Account.opened("a", 1.0, 1e-5, "add_remove", "record")
    charge = account.charge(price_plan([event], Budget(1e6, 1e-5, "add_remove")))
    fits = 0
    while account.charged(charge).is_within:
        account, fits = account.charged(charge), fits + 1
    if isinstance(event, PoissonSampled):
        one = dp_event.PoissonSampledDpEvent(event.numerator / 2**16, dp_event.GaussianDpEvent(2.0))
        fits *= event.event.count
    elif isinstance(event, Gaussian):
        one = dp_event.GaussianDpEvent(20.0)
    else:
        one = dp_event.LaplaceDpEvent(12.0)
    ledger = PLDAccountant(NeighboringRelation.ADD_OR_REMOVE_ONE, value_discretization_interval=1e-3)
    found = ledger.compose(one, fits).get_epsilon(1e-5)
    assert 0.8 < found <= 1.0


@pytest.mark.parametrize(("epsilon", "delta"), CAPS)
def test_the_reading_of_a_full_share_is_the_cap(epsilon, delta):
    orders = orders_for(epsilon, delta)
    caps = caps_for(epsilon, delta, orders)
    for spent in (
        Amounts(caps.gaussian, NEVER, NEVER, NEVER, 1),
        Amounts(NEVER, caps.low, NEVER, NEVER, 1),
        Amounts(NEVER, NEVER, caps.high, NEVER, 1),
        Amounts(NEVER, NEVER, NEVER, caps.epsilon, 0),
    ):
        read = epsilon_spent(spent, delta, orders)
        assert epsilon * (1 - 1e-6) - 1e-9 <= read <= epsilon * (1 + 1e-12) + 1e-12
    assert epsilon_spent(Amounts(NEVER, NEVER, NEVER, caps.epsilon, 1), delta, orders) == math.inf


# --- how much a cap takes --------------------------------------------------------------------------


def fits_granted(cap, fit, most, plan=ONE_PLAN):
    """How many equal fits are granted before the first refusal."""
    ledger = Ledger(":memory:")
    ledger.grant("a", *cap)
    for done in range(most):
        try:
            ledger.reserve("a", price_plan(plan, Budget(*fit)))
        except BudgetExceeded:
            return done
    return most


@pytest.mark.parametrize("delta", [0.0, 1e-9, 1e-6])
@pytest.mark.parametrize("epsilon", [0.1, 0.25, 0.3, 1.0, 3.0])
def test_a_first_fit_of_the_whole_cap_is_granted_and_no_second(epsilon, delta):
    assert fits_granted((epsilon, delta), (epsilon, delta), 2) == 1


@pytest.mark.parametrize(("epsilon", "fits"), [(0.5, 2), (0.25, 4), (0.125, 8), (0.1, 10), (0.2, 5), (1 / 3, 3)])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_pure_fits_add_up_to_their_cap(epsilon, fits, delta):
    """Whether or not the cap has a delta: with one, single pure answers have a share for them."""
    one = Plan([Release("noisy_gradient", 1)])
    assert fits_granted((1.0, delta), (epsilon, 0.0), fits + 2, one) >= fits
    if delta == 0:
        assert fits_granted((1.0, delta), (epsilon, 0.0), fits + 2, one) == fits


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("cap", "fit", "naive", "granted"),
    [((1.0, 1e-6), (0.1, 1e-8), 10, 110), ((1.0, 1e-6), (0.2, 1e-8), 5, 29), ((3.0, 1e-5), (0.3, 1e-7), 10, 102)],
)
def test_equal_gaussian_fits_against_naive_adding(cap, fit, naive, granted):
    """Figures for the page on the ledger; the exact number follows from mu^2 alone."""
    ratio = (reference_mu(cap[0], cap[1] / 2) / reference_mu(*fit)) ** 2
    assert fits_granted(cap, fit, 200) == granted == math.floor(ratio)
    assert granted > 2 * naive
