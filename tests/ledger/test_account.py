"""One account, kept three times: by Python, by the database's trigger, and by whoever works the entries out again.

A fourth keeps the rule of this file: fits are granted while some filter is within its cap, and the first one may settle
the account on adding up. After every step of a random history all four agree, and no cap is crossed.
"""

from dataclasses import astuple, replace

import numpy as np
import pytest

from discreet import Ledger
from discreet.accounting import Plan, Release, gaussian
from discreet.accounting.events import ZCDP, BoundedRange, Gaussian, PureDP, TotalVariation
from discreet.accounting.priced_plan import price_plan
from discreet.budget import Budget
from discreet.errors import BudgetExceeded, LedgerError, Unsupported
from discreet.ledger import rows
from discreet.ledger.account import Account
from discreet.ledger.chain import Entry
from discreet.ledger.privacy_filters import AMOUNT_NAMES, FREE, NEVER, UNIT, Amounts
from discreet.ledger.store import OverCap

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


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("delta", [0.0, 1e-6, 1e-4])
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


def test_negative_charges_are_refused_by_the_database():
    for name in AMOUNT_NAMES:
        ledger = Ledger(":memory:")
        ledger.grant("a", 1.0, 1e-6)
        with pytest.raises(LedgerError), ledger._store.writing() as at:
            rows.append(at, Entry.after(*rows.last(at), "charge", "a", {}, charge=replace(FREE, **{name: -1})))


def test_sums_stop_where_nothing_has_a_price():
    account = Account.opened("a", 1.0, 1e-6, "replace_one", "record")
    for _ in range(20):
        account = account.charged(Amounts(NEVER, NEVER, NEVER - 1, NEVER, NEVER))
    assert account.spent == Amounts(NEVER, NEVER, NEVER, NEVER, NEVER)
    assert not account.is_within


# --- the first fit ---------------------------------------------------------------------------------


def dear(account, share=1.02):
    """Gaussian noise that is too dear for half of delta, and within all of it."""
    event = Gaussian(1 / (np.sqrt(account.caps.gaussian / UNIT) * share))
    assert gaussian.epsilon_of(1 / event.noise_multiplier, account.delta) < account.epsilon
    return event


def test_a_dear_first_fit_settles_the_account_on_adding_up():
    ledger = Ledger(":memory:")
    ledger.grant("a", 1.0, 1e-6)
    ledger.reserve("a", price_plan([dear(ledger.account("a"))], Budget(1.0, 1e-6)))
    assert ledger.account("a").adds
    with pytest.raises(BudgetExceeded):  # all of delta is gone
        ledger.reserve("a", price_plan([Gaussian(1e4)], Budget(0.1, 1e-9)))
    ledger.reserve("a", price_plan([PureDP(1e-3)], Budget(1e-3, 0.0)))


def test_a_dear_second_fit_is_refused_whatever_was_spent_before():
    """What was released may have led to it: only the first choice owes nothing to the data."""
    ledger = Ledger(":memory:")
    account = ledger.grant("a", 1.0, 1e-6)
    ledger.reserve("a", price_plan([Gaussian(1e6)], Budget(0.1, 1e-12)))
    with pytest.raises(BudgetExceeded):
        ledger.reserve("a", price_plan([dear(account)], Budget(1.0, 1e-6)))
    assert not ledger.account("a").adds


def test_refusals_and_free_fits_are_no_first_fit():
    ledger = Ledger(":memory:")
    account = ledger.grant("a", 1.0, 1e-6)
    with pytest.raises(BudgetExceeded):
        ledger.reserve("a", price_plan([Gaussian(0.5)], Budget(1e4, 1e-6)))
    ledger.reserve("a", price_plan([], Budget(0.1, 1e-9)))
    assert ledger.account("a").charges == 0
    ledger.reserve("a", price_plan([dear(account)], Budget(1.0, 1e-6)))
    assert ledger.account("a").adds


def test_raising_the_cap_does_not_change_how_an_account_is_kept():
    ledger = Ledger(":memory:")
    account = ledger.grant("a", 1.0, 1e-6)
    ledger.reserve("a", price_plan([dear(account)], Budget(1.0, 1e-6)))
    raised = ledger.grant("a", 5.0)
    assert raised.adds
    assert raised.orders == account.orders  # fixed when it was opened
    with pytest.raises(BudgetExceeded):
        ledger.reserve("a", price_plan([Gaussian(1e4)], Budget(0.1, 1e-9)))
    ledger.verify(prices=True)


def test_the_first_fit_of_a_part_is_its_own():
    """A part's records are in no other part: what was released of those tells nothing of these."""
    ledger = Ledger(":memory:")
    account = ledger.grant("all", 1.0, 1e-6)
    ledger.divide("all", ["north", "south"])
    ledger.reserve("north", price_plan([dear(account)], Budget(1.0, 1e-6)))
    ledger.reserve("south", price_plan([Gaussian(50.0)], Budget(0.5, 1e-6)))
    assert [ledger.account(name).adds for name in ("all", "north", "south")] == [False, True, False]
    with pytest.raises(BudgetExceeded):  # the whole holds what is in the north, where nothing is left
        ledger.reserve("all", price_plan([Gaussian(1e3)], Budget(0.1, 1e-6)))
    assert ledger.account("all").charges == 0
    ledger.reserve("south", price_plan([Gaussian(50.0)], Budget(0.5, 1e-6)))
    ledger.verify(prices=True)


def test_a_part_that_is_declared_late_has_spent_what_the_whole_has():
    ledger = Ledger(":memory:")
    account = ledger.grant("all", 1.0, 1e-6)
    ledger.reserve("all", price_plan([dear(account)], Budget(1.0, 1e-6)))
    (part,) = ledger.divide("all", ["late"])
    assert (part.spent, part.adds, part.charges) == (ledger.account("all").spent, True, 1)
    with pytest.raises(BudgetExceeded):
        ledger.reserve("late", price_plan([dear(account)], Budget(1.0, 1e-6)))


def test_a_data_set_is_divided_once():
    ledger = Ledger(":memory:")
    ledger.grant("people", 1.0, 1e-6)
    ledger.divide("people", ["women", "men"])
    with pytest.raises(LedgerError, match="two caps"):
        ledger.divide("people", ["young", "old"])
    assert [account.name for account in ledger.accounts()] == ["men", "people", "women"]


def test_a_lone_name_is_not_divided_into_letters():
    ledger = Ledger(":memory:")
    ledger.grant("people", 1.0, 1e-6)
    with pytest.raises(Unsupported):
        ledger.divide("people", "north")


def test_caps_that_fall_and_rise_never_give_back():
    ledger = Ledger(":memory:")
    ledger.grant("a", 2.0, 1e-6)
    ledger.reserve("a", price_plan(PLAN, Budget(0.5, 1e-6)))
    spent = ledger.account("a").spent
    with pytest.raises(LedgerError):
        ledger.grant("a", 0.4)
    ledger.grant("a", 0.7)
    with pytest.raises(BudgetExceeded):
        ledger.reserve("a", price_plan(PLAN, Budget(0.6, 1e-6)))
    ledger.grant("a", 3.0)
    assert ledger.account("a").spent == spent
    assert ledger.account("a").caps.epsilon == 3 * UNIT


def test_entries_say_what_was_granted_and_when():
    ledger = Ledger(":memory:")
    account = ledger.grant("a", 1.0, 1e-6)
    ledger.divide("a", ["b"])
    raised = ledger.grant("a", 2.0)
    first, part, second = (entry.contents for entry in ledger.entries())
    for body, granted in ((first, account), (second, raised)):
        assert (body["caps"], body["orders"]) == (list(granted.caps), list(account.orders))
    assert part == {"of": "a", "time": part["time"], "nonce": part["nonce"]}
    assert len({body["nonce"] for body in (first, part, second)}) == 3
    assert part["time"] >= first["time"]


def test_verification_does_not_depend_on_the_last_digit_of_a_cap(monkeypatch):
    """Another machine's logarithms round otherwise: an honest ledger is still whole there."""
    ledger = Ledger(":memory:")
    ledger.grant("a", 1.0, 1e-6)
    ledger.reserve("a", price_plan(PLAN, Budget(0.1, 1e-6)))
    exact = gaussian.mu_of
    for factor in (1 - 1e-12, 1 + 1e-12):
        monkeypatch.setattr(gaussian, "mu_of", lambda epsilon, delta, by=factor: exact(epsilon, delta) * by)
        ledger.verify()
    monkeypatch.setattr(gaussian, "mu_of", lambda epsilon, delta: exact(epsilon, delta) * (1 - 1e-6))
    with pytest.raises(LedgerError, match="not one that a ledger writes"):  # more was granted than rounding explains
        ledger.verify()


@pytest.mark.parametrize("fit", [([Gaussian(3.0)], Budget(1e4, 0.5)), ([PureDP(1.0)], Budget(1.0, 0.0))])
def test_a_fit_must_be_for_the_relation_and_unit_of_its_data_set(fit):
    events, budget = fit
    ledger = Ledger(":memory:")
    ledger.grant("a", 5.0, 1e-6, neighbors="add_remove", unit="person")
    with pytest.raises(LedgerError, match="registered for"):
        ledger.reserve("a", price_plan(events, budget), unit="person")
    with pytest.raises(LedgerError, match="registered for"):
        ledger.reserve("a", price_plan(events, replace(budget, neighbors="add_remove")))
    assert ledger.account("a").spent == FREE


def test_what_is_not_private_is_never_charged():
    ledger = Ledger(":memory:")
    ledger.grant("a", 5.0, 1e-6)
    for epsilon in (0.5, float("inf")):
        with pytest.raises(Unsupported):
            ledger.reserve("a", price_plan([Gaussian(0.1)], Budget(epsilon, 1e-6)))
