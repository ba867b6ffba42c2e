"""Priced plans that no ``price_plan`` would make: at a noise that is given, whatever it costs."""

from collections.abc import Callable

from discreet.accounting import pricing
from discreet.accounting.plan import Plan
from discreet.accounting.pricing import Price, PricedPlan
from discreet.budget import Budget


def at_noise(plan: Plan, budget: Budget, noise_multiplier: float) -> PricedPlan:
    """The plan at this noise, said to cost its budget: for planted bugs, and for oracles of the noise itself."""
    events = plan.events(noise_multiplier, pure=budget.is_pure)
    return pricing._sealed(plan, budget, noise_multiplier, events, Price(budget.epsilon))


def priced_at(noise_multiplier: float) -> Callable[[Plan, Budget], PricedPlan]:
    """What stands in for ``price_plan``: every plan at this noise."""
    return lambda plan, budget: at_noise(plan, budget, noise_multiplier)
