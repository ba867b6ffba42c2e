"""One account, kept three times: by Python, by the database's trigger, and by whoever works the entries out again.

What an account says of itself: what is left is granted, and a little more is not.
Caps and charges against figures worked out elsewhere (``references``), which call nothing of what is tested.
"""

import math
from dataclasses import astuple
from fractions import Fraction

import mpmath
import numpy as np
import pytest

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
from discreet.accounting.pricing import price_plan
from discreet.budget import Budget
from discreet.errors import BudgetExceeded, LedgerError, Unsupported
from discreet.ledger import store as rows
from discreet.ledger.account import (
    FREE,
    NEVER,
    UNIT,
    WHOLE_DELTA,
    Account,
    Amounts,
    caps_for,
    charge_of,
    orders_for,
)
from discreet.ledger.chain import Entry
from discreet.ledger.store import OverCap
from tests.covering import covering
from tests.ledger.references import REFERENCES, SLACK, gaussian_delta, laplace, reference_limit, reference_mu, response

PLAN = Plan([Release("noisy_gradient", 10)])


class Keeper:
    """The rule, written anew: lists of charges for every name, and which charges concern it."""

    def __init__(self):
        self.caps, self.charges, self.whole, self.adds = {}, {}, {}, {}

    def concerned(self, name):
        return [one for one in self.caps if name in (one, self.whole[one])]

    def grant(self, name, caps):
        self.caps[name] = caps
        self.charges.setdefault(name, [])
        self.whole.setdefault(name, None)
        self.adds.setdefault(name, False)

    def divide(self, name, part):
        self.caps[part], self.charges[part] = self.caps[name], list(self.charges[name])
        self.whole[part], self.adds[part] = name, self.adds[name]

    def spent(self, name, *more):
        columns = zip(*map(astuple, [*self.charges[name], *more]), strict=True)
        return Amounts(*(min(sum(column), NEVER) for column in columns)) if self.charges[name] or more else FREE

    def is_within(self, name, caps, *more):
        charges = [*self.charges[name], *more]
        if not charges:
            return True
        adds = self.adds[name] if self.charges[name] else not shares(charges[0], caps)
        spent = self.spent(name, *more)
        return spent.epsilon <= caps.epsilon and spent.delta <= caps.delta if adds else shares(spent, caps)

    def charge(self, name, charge):
        """Whether it is granted; then it is kept."""
        if charge == FREE:
            return True
        if not all(self.is_within(one, self.caps[one], charge) for one in self.concerned(name)):
            return False
        for one in self.concerned(name):
            if not self.charges[one]:
                self.adds[one] = not shares(charge, self.caps[one])
            self.charges[one].append(charge)
        return True


def shares(spent, caps):
    pure = spent.epsilon <= caps.epsilon and spent.delta == 0
    return pure or any(getattr(spent, name) <= getattr(caps, name) for name in ("gaussian", "low", "high"))


def agree(ledger, keeper):
    """Python's replay, the trigger's accounts and the keeper's lists: the same, and within the caps."""
    ledger.verify()  # entries, chain and accounts, worked out again
    for account in ledger.accounts():
        name = account.name
        assert account.spent == keeper.spent(name)
        assert (account.caps, account.adds, account.parent) == (
            keeper.caps[name],
            keeper.adds[name],
            keeper.whole[name],
        )
        assert account.charges == len(keeper.charges[name])
        assert account.is_within
        assert keeper.is_within(name, account.caps)


def a_fit(rng, *, often_pure=False):
    """Events of many kinds and sizes, some far too dear, with a budget that covers them."""
    size = float(np.exp(rng.uniform(np.log(0.01), np.log(1.5))))
    kind = rng.integers(7)
    if often_pure and rng.random() < 0.5:
        return [PureDP(size / 4)], Budget(1e5, 0.0)
    if kind < 3:
        return [Gaussian(4 / size, int(rng.integers(1, 5)))], Budget(1e5, float(rng.choice([1e-9, 1e-6, 1e-4])))
    if kind == 3:
        return [PureDP(size)], Budget(1e5, float(rng.choice([0.0, 1e-6])))
    if kind == 4:
        return [BoundedRange(size), Gaussian(10 / size)], Budget(1e5, 1e-6)
    if kind == 5:
        return [ZCDP(size * size / 30)], Budget(1e5, 1e-7)
    return [PureDP(size), TotalVariation(1e-12)], Budget(1e5, 1e-6)


@covering(("delta", [0.0, 1e-6, 1e-4]), ("seed", range(4)))
def test_every_keeper_of_the_account_agrees_after_every_step(seed, delta):
    rng = np.random.default_rng([seed, int(1e6 * delta)])
    ledger, keeper = Ledger(":memory:"), Keeper()
    granted = refused = 0
    for name in ("a", "b"):
        keeper.grant(name, ledger.grant(name, 1.0 + (name == "b"), delta).caps)
    for step in range(40):
        names = list(keeper.caps)
        name, action = names[rng.integers(len(names))], rng.random()
        if action < 0.06 and len(keeper.concerned(name)) == 1 and keeper.whole[name] is None:
            parts = [f"{name}{step}", f"{name}{step}'"]
            ledger.divide(name, parts)
            for part in parts:
                keeper.divide(name, part)
        elif action < 0.06:  # a part, or divided already
            with pytest.raises(LedgerError, match="divided"):
                ledger.divide(name, [f"{name}{step}"])
        elif action < 0.14 and keeper.whole[name] is None:
            epsilon = float(rng.uniform(0.1, 4.0))
            caps = ledger.account(name).granted(epsilon).caps
            if all(keeper.is_within(one, caps) for one in keeper.concerned(name)):
                ledger.grant(name, epsilon)
                for one in keeper.concerned(name):
                    keeper.grant(one, caps)
            else:
                with pytest.raises(LedgerError, match="more than this cap"):
                    ledger.grant(name, epsilon)
        else:
            events, budget = a_fit(rng, often_pure=delta == 0)
            before = ledger.verify()
            if keeper.charge(name, ledger.account(name).charge(price_plan(events, budget))):
                ledger.reserve(name, price_plan(events, budget))
                granted += 1
            else:
                refused += 1
                with pytest.raises(BudgetExceeded):
                    ledger.reserve(name, price_plan(events, budget))
                assert ledger.verify() == before  # a refusal leaves nothing behind
        agree(ledger, keeper)
    assert granted >= 1
    assert refused >= 5


EDGES = (0, 1, NEVER - 1, NEVER)


@pytest.mark.parametrize("seed", range(4))
def test_the_trigger_alone_moves_accounts_as_python_does(seed):
    """Amounts at the edges, written past the Python rule: only the database stands in the way."""
    rng = np.random.default_rng(seed)
    for delta in (0.0, 1e-6):
        ledger = Ledger(":memory:")
        account = ledger.grant("a", 1.0, delta)
        caps = astuple(account.caps)
        granted = refused = 0
        for _ in range(60):
            near = [max(0, cap - spent) for cap, spent in zip(caps, astuple(account.spent), strict=True)]
            choices = [
                (*EDGES[:2], left, left + 1, left // 2, left // 7, *EDGES[2:]) if rng.random() < 0.3 else (0, left // 9)
                for left in near
            ]
            charge = Amounts(*(int(options[rng.integers(len(options))]) for options in choices))
            after = account.charged(charge)
            try:
                with ledger._store.writing() as at:
                    rows.append(at, Entry.after(*rows.last(at), "charge", "a", {}, charge=charge))
                account, granted = after, granted + 1
                assert after.is_within
            except OverCap:
                refused += 1
                assert not after.is_within
            assert ledger.account("a") == account
            ledger.verify()
        assert min(granted, refused) >= 3


# --- the first fit ---------------------------------------------------------------------------------


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


# --- what is within a cap keeps its promise --------------------------------------------------------


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


@covering(("epsilon", [0.1, 0.25, 0.3, 1.0, 3.0]), ("delta", [0.0, 1e-9, 1e-6]))
def test_a_first_fit_of_the_whole_cap_is_granted_and_no_second(epsilon, delta):
    assert fits_granted((epsilon, delta), (epsilon, delta), 2) == 1
