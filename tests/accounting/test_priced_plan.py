"""A priced plan is made at one place, and nothing else is charged or opened."""

import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest

from discreet import Bounds, Budget, Ledger
from discreet.accounting import Plan, Release
from discreet.accounting.events import Gaussian, NonPrivate
from discreet.accounting.plan import AdaptivePlan
from discreet.accounting.pricing import Price, PricedPlan, calibrate, epsilon_of, price_plan
from discreet.curator.private_data import PrivateData
from discreet.errors import PlanViolation, Unsupported
from discreet.losses import Logistic
from tests.covering import covering

PLAN = Plan([Release("noisy_gradient", 10)])
BUDGET = Budget(1.0, 1e-6)


@covering(
    ("budget", [BUDGET, Budget(np.inf, 1e-6, "add_remove")]),
    ("plan", [PLAN, Plan([Release("noisy_gradient", 8, 0.1)]), Plan([]), AdaptivePlan(PLAN.releases)]),
)
def test_it_is_what_the_accountants_say(plan, budget):
    priced = price_plan(plan, budget)
    assert priced.noise_multiplier == calibrate(plan, budget)
    assert priced.events == plan.events(priced.noise_multiplier, pure=False)
    assert priced.price == epsilon_of(priced.events, budget.delta, budget.neighbors)
    assert (priced.plan, priced.budget) == (plan, budget)


@pytest.mark.parametrize("events", [[Gaussian(0.1)], [NonPrivate()]])
def test_events_beyond_the_budget_have_no_price(events):
    with pytest.raises(Unsupported, match="cost more than their budget"):
        price_plan(events, BUDGET)


def cheaper(priced):
    """An object that says that it costs less than it does."""
    made = object.__new__(PricedPlan)
    for name in ("plan", "budget", "noise_multiplier"):
        object.__setattr__(made, name, getattr(priced, name))
    object.__setattr__(made, "events", (Gaussian(1e6),))
    object.__setattr__(made, "price", Price(1e-9))
    return made


def changed(priced):
    object.__setattr__(priced, "events", (Gaussian(1e6),))
    return priced


class Pretended(PricedPlan):
    events = (Gaussian(1e6),)


def inherited(priced):
    made = object.__new__(Pretended)
    vars(made).update(vars(priced))
    return made


def changed_inside(_):
    """A plan whose release was changed after it was priced."""
    priced = price_plan(Plan([Release("noisy_gradient", 10)]), BUDGET)
    object.__setattr__(priced.plan.releases[0], "relative_noise", 1e-3)
    return priced


@pytest.mark.parametrize(
    "forge",
    [
        cheaper,
        changed,
        changed_inside,
        inherited,
        copy.copy,
        lambda priced: pickle.loads(pickle.dumps(priced)),
        lambda _: PLAN,
    ],
)
def test_what_was_not_priced_is_neither_charged_nor_opened(forge):
    ledger = Ledger(":memory:")
    ledger.grant("rows", 5.0, 1e-5)
    data = PrivateData(np.zeros((3, 1)), [0, 1, 0], Bounds(1.0, classes=(0, 1)), ledger=ledger, dataset="rows")
    bare = PrivateData(np.zeros((3, 1)), [0, 1, 0], Bounds(1.0, classes=(0, 1)), ledger=False)
    forged = forge(price_plan(PLAN, BUDGET))
    for attempt in (
        lambda: ledger.reserve("rows", forged),
        lambda: data.open(forged, Logistic()),
        lambda: data.reserve(forged),
        lambda: bare.open(forged, Logistic()),
        lambda: (bare.reserve(forged), bare.open(forged, Logistic())),
    ):
        with pytest.raises(PlanViolation, match="price_plan"):
            attempt()
    assert ledger.account("rows").charges == 0


def test_it_is_made_by_price_plan_alone():
    priced = price_plan(PLAN, BUDGET)
    with pytest.raises(PlanViolation, match="price_plan"):
        PricedPlan(PLAN, BUDGET, 1e9, (), Price(0.0))
    with pytest.raises(PlanViolation, match="price_plan"):
        replace(priced, events=())


class CheapPlan(Plan):
    def events(self, noise_multiplier, *, pure):
        return (Gaussian(100 * noise_multiplier),)


class GrowingPlan(AdaptivePlan):
    def total(self, budget):
        return 100.0


class CheapRelease(Release):
    def event(self, noise_multiplier, *, pure):
        return Gaussian(100 * noise_multiplier)


@pytest.mark.parametrize(
    "plan", [CheapPlan(PLAN.releases), GrowingPlan(PLAN.releases), Plan([CheapRelease("noisy_gradient", 10)])]
)
def test_no_class_of_ones_own_says_what_a_release_costs(plan):
    with pytest.raises(PlanViolation, match="follows from its mechanism"):
        price_plan(plan, BUDGET)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda data: data])
def test_a_charge_is_opened_once_by_the_data_and_its_copies(copied):
    ledger = Ledger(":memory:")
    ledger.grant("rows", 5.0, 1e-5)
    data = PrivateData(np.zeros((3, 1)), [0, 1, 0], Bounds(1.0, classes=(0, 1)), ledger=ledger, dataset="rows")
    priced = price_plan(PLAN, BUDGET)
    reserved = data.reserve(priced)
    other = copied(data)
    assert data.open(priced, Logistic()).reservation == reserved
    assert other.open(priced, Logistic()).reservation != reserved
    assert ledger.account("rows").charges == 2
