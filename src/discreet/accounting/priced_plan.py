"""``PricedPlan``: what will be released, with how much noise, at what price. ``price_plan`` alone makes one.

The curator answers it, the ledger charges it, the certificate claims it: none of them works out a noise multiplier,
the events or their epsilon again. So all three speak of the same release.
"""

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from math import inf
from typing import Any
from weakref import WeakKeyDictionary

from discreet.accounting.events import Event
from discreet.accounting.noise_for import calibrate
from discreet.accounting.plan import AdaptivePlan, Plan, Release
from discreet.accounting.pricing import Price, epsilon_of
from discreet.budget import Budget
from discreet.errors import PlanViolation, Unsupported


@dataclass(frozen=True, eq=False, init=False)
class PricedPlan:
    """A plan, the budget that it keeps, its noise, its events, and what they cost at the budget's delta.

    ``plan`` has no releases where the events themselves were priced. Objects that ``price_plan`` did not make (copies
    with other fields, for example) are refused by the ledger and by the curator.

    Examples
    --------
    >>> from discreet import Budget
    >>> from discreet.accounting import Plan, Release, price_plan
    >>> price_plan(Plan([Release("noisy_gradient", 10)]), Budget(1.0, 1e-6)).budget.epsilon
    1.0
    """

    plan: Plan
    budget: Budget
    noise_multiplier: float
    events: tuple[Event, ...]
    price: Price

    def __init__(self, *_: object, **__: object) -> None:
        raise PlanViolation("a priced plan is made by price_plan(plan, budget) alone")

    def only(self, place: int, clip: float) -> "PricedPlan":
        """Return one release of the plan by itself, at its own noise and with a clip: it was paid for with the rest."""
        part = Plan((replace(self.plan.releases[place], clip=clip),))
        return _sealed(part, self.budget, self.noise_multiplier, _events(part, self), self.price)


def price_plan(plan: Plan | Iterable[Event], budget: Budget) -> PricedPlan:
    """Find the least noise with which a plan keeps a budget, its events, and their price: all three once.

    Parameters
    ----------
    plan : Plan or iterable of events
        What will be released. The noise of a plan is calibrated to the budget; events have theirs.
    budget : Budget
        What may be claimed of it afterwards.

    Returns
    -------
    PricedPlan
        For ``Ledger.reserve``, ``PrivateData.open`` and ``Certificate.of``.

    Raises
    ------
    Unsupported
        Where the events cost more than the budget, or no noise keeps it.
    PlanViolation
        Where a class of one's own says what a release costs.

    Examples
    --------
    >>> from discreet.accounting.plan import Plan, Release
    >>> from discreet.accounting.priced_plan import price_plan
    >>> from discreet.budget import Budget
    >>> priced = price_plan(Plan([Release("noisy_gradient", 10)]), Budget(1.0, 1e-6))
    >>> round(priced.noise_multiplier, 2), round(priced.price.epsilon, 6)
    (13.36, 1.0)
    """
    if isinstance(plan, Plan):
        _refuse_own_events(plan)
        noise_multiplier, listed = calibrate(plan, budget), plan
        events = plan.events(noise_multiplier, pure=budget.is_pure)
    else:
        noise_multiplier, listed, events = 0.0, Plan(()), tuple(plan)
    if events and not budget.is_private:
        price = Price(inf, {"none": inf})
    else:
        price = epsilon_of(events, budget.delta, budget.neighbors)
    if not price.epsilon <= budget.epsilon:
        raise Unsupported("these events cost more than their budget: nothing was charged")
    return _sealed(listed, budget, noise_multiplier, events, price)


def require_priced(priced: PricedPlan) -> PricedPlan:
    """Return what ``price_plan`` made, unchanged since then; PlanViolation for anything else."""
    seal = _seals.get(priced) if type(priced) is PricedPlan else None
    same = seal is not None and all(getattr(priced, name) is value for name, value in seal.items())
    if not same or (priced.plan.releases and priced.events != _events(priced.plan, priced)):
        raise PlanViolation("only a plan that price_plan(plan, budget) priced can be charged and opened: price it")
    return priced


def _events(plan: Plan, priced: PricedPlan) -> tuple[Event, ...]:
    """Return what a plan costs at the noise of a priced one."""
    return plan.events(priced.noise_multiplier, pure=priced.budget.is_pure)


def _refuse_own_events(plan: Plan) -> None:
    """Refuse plans and releases whose class says itself what they cost: it might be less than what is answered."""
    base = AdaptivePlan if isinstance(plan, AdaptivePlan) else Plan
    names = ("events", "total", "assumed_distance")
    changed = any(getattr(type(plan), name, None) is not getattr(base, name, None) for name in names)
    if changed or any(type(release) is not Release for release in plan.releases):
        raise PlanViolation("what a release costs follows from its mechanism: plan with Plan, AdaptivePlan and Release")


_seals: "WeakKeyDictionary[PricedPlan, dict[str, Any]]" = WeakKeyDictionary()


def _sealed(plan: Plan, budget: Budget, noise_multiplier: float, events: tuple[Event, ...], price: Price) -> PricedPlan:
    """Make a priced plan, and remember what is in it."""
    priced, names = object.__new__(PricedPlan), (item.name for item in fields(PricedPlan))
    _seals[priced] = dict(zip(names, (plan, budget, noise_multiplier, events, price), strict=True))
    for name, value in _seals[priced].items():
        object.__setattr__(priced, name, value)
    return priced
