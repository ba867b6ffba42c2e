"""Prices of plans and events.

Every price is computed twice, by accountants that share no formula, and a disagreement is an
``AccountingError``, never a warning:

====================================  ==========================  ==================================
what was released                     the price                   checked against
====================================  ==========================  ==================================
full-batch Gaussian                   exact Gaussian DP           zCDP, tight conversion
a perturbed minimum, with Gaussians   integral of a loss bound    our own Renyi DP from above,
                                                                  Gaussian DP from below
Poisson sampling, Laplace, mixtures   privacy loss distribution   our own Renyi DP from above,
                                      (Renyi DP where lower)      explicit tests from below
selections; a zCDP claim; tiny delta  our own Renyi DP or zCDP    each other; explicit tests below
the best of several runs              Renyi DP (``selection``)    explicit tests from below
nothing but pure, delta = 0           basic composition           the same in 50-digit decimals
====================================  ==========================  ==================================

An assumed distance in total variation is no release: it takes (1 + e^epsilon) times itself from delta, because
P~(S) <= P(S) + d <= e^epsilon Q(S) + delta + d <= e^epsilon (Q~(S) + d) + delta + d, and the rest is priced as above.
"""

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from discreet.accounting import gaussian, lower_bounds, rdp
from discreet.accounting.events import (
    BoundedRange,
    Event,
    Gaussian,
    NonPrivate,
    PerturbedMinimum,
    PoissonSampled,
    RepeatedSelection,
    TotalVariation,
    decimal_pure_epsilon,
    divergences,
    gaussian_mu,
    merged,
    pure_epsilon,
    renyi_epsilon,
)
from discreet.accounting.plan import Plan
from discreet.accounting.selection import ORDERS, epsilon_of_curve, refuted_below
from discreet.budget import Neighbors
from discreet.errors import AccountingError, DiscreetError, Unsupported

ARITHMETIC = (ArithmeticError, ValueError, LookupError)
"""How arithmetic ends beyond what doubles hold; accounting itself raises none of them."""
BEYOND = (
    "this cannot be priced in double precision: take an epsilon, a delta, a noise multiplier and a sampling "
    "probability that are neither huge nor tiny"
)


@dataclass(frozen=True)
class Price:
    """An epsilon that may be claimed, and what each accountant said."""

    epsilon: float
    accountants: dict[str, float] = field(default_factory=dict)


@contextmanager
def in_double_precision(*errors: type[Exception]) -> Iterator[None]:
    """Refuse numbers for which arithmetic inside the block ends in one of these errors, such as noise of 1e-320."""
    try:
        with np.errstate(all="ignore"):  # what overflows is infinite, and compared as such
            yield
    except DiscreetError:
        raise
    except errors:
        raise Unsupported(BEYOND) from None


@in_double_precision(*ARITHMETIC)
def epsilon_of(events: Iterable[Event], delta: float, neighbors: Neighbors | str = Neighbors.REPLACE_ONE) -> Price:
    """The price of a composition of events, by two accountants that agree."""
    if not 0 <= delta < 1:
        raise AccountingError("delta must lie in [0, 1)")
    price = _price(merged(events), delta, Neighbors(neighbors))
    return Price(price.epsilon, dict(price.accountants))


@lru_cache(maxsize=256)
def _price(listed: tuple[Event, ...], delta: float, relation: Neighbors) -> Price:
    if any(isinstance(event, NonPrivate) for event in listed):
        return Price(math.inf, {"none": math.inf})
    if not listed:
        return Price(0.0, {"nothing released": 0.0})
    distance = math.fsum(event.distance for event in listed if isinstance(event, TotalVariation))
    if distance:
        return _assuming_price(listed, delta, relation, distance)
    if any(isinstance(event, RepeatedSelection) for event in listed):
        return _selection_price(listed, delta, relation)
    if delta == 0:
        return _pure_price(listed)
    listed = merged(event.simplified(relation) for event in listed)
    gaussians = [event for event in listed if isinstance(event, Gaussian)]
    if len(gaussians) == len(listed):
        return _gaussian_price(gaussians, delta)
    if is_integrable(listed):
        return _perturbed_price(listed, delta, relation)
    return _numerical_price(listed, delta, relation)


def price(
    plan: Plan, noise_multiplier: float, delta: float, neighbors: Neighbors | str = Neighbors.REPLACE_ONE
) -> float:
    """Return the epsilon of a plan at a noise multiplier; delta = 0 means Laplace noise.

    Parameters
    ----------
    plan : Plan
        What is released.
    noise_multiplier : float
        Noise over sensitivity.
    delta : float
        Of the guarantee.
    neighbors : Neighbors or str, default="replace_one"
        The relation.

    Returns
    -------
    float
        Epsilon, by two accountants that agree.

    Examples
    --------
    >>> from discreet.accounting import Plan, Release, price
    >>> round(price(Plan([Release("noisy_gradient", 100)]), 40.0, 1e-6), 3)
    1.061
    """
    return epsilon_of(plan.events(noise_multiplier, pure=delta == 0), delta, neighbors).epsilon


# --- full-batch Gaussian -------------------------------------------------------------------------


def _gaussian_price(events: Iterable[Gaussian], delta: float) -> Price:
    """Exact; and zCDP, whose loss is at most 5 % + 1.25 mu for mu <= 300 and delta <= 0.9 (by a scan)."""
    mu = gaussian_mu(events)
    exact, bound = gaussian.epsilon_of(mu, delta), rdp.epsilon_of_zcdp(0.5 * mu * mu, delta)
    must_hold(exact <= bound * (1 + 1e-9) + 1e-15, "Gaussian DP exceeds zCDP")
    must_hold(bound <= 1.06 * exact + 1.35 * mu, "zCDP exceeds Gaussian DP by more than its known slack")
    return Price(exact, {"gdp": exact, "zcdp": bound})


def must_hold(agreed: bool, what: str) -> None:
    """Refuse a price on which accountants disagree."""
    if not agreed:
        raise AccountingError(f"two accountants disagree ({what}): nothing was released; please report this plan")


# --- a perturbed minimum, alone or with Gaussians; total variation --------------------------------


def is_integrable(events: tuple[Event, ...]) -> bool:
    """Whether one perturbed minimum is composed with Gaussian releases only: then its price is an integral."""
    perturbed = sum(isinstance(event, PerturbedMinimum) and event.noise == "gaussian" for event in events)
    return perturbed == 1 and all(isinstance(event, (PerturbedMinimum, Gaussian)) for event in events)


def _perturbed_price(events: tuple[Event, ...], delta: float, neighbors: Neighbors) -> Price:
    """The integral, between Gaussian DP at the same noise and Renyi DP, whose slack is that of a few mu (by a scan)."""
    bound = next(event.loss_bound(neighbors) for event in events if isinstance(event, PerturbedMinimum))
    exact, renyi = bound.epsilon_of(delta, gaussian_mu(events)), renyi_epsilon(events, delta, neighbors)
    refuted = lower_bounds.epsilon_of(events, delta, neighbors)
    mu = math.hypot(gaussian_mu(events), *(1 / e.noise_multiplier for e in events if isinstance(e, PerturbedMinimum)))
    must_hold(refuted <= exact * (1 + 1e-9), "a test refutes the loss integral")
    must_hold(exact <= renyi * (1 + 1e-6) + 1e-12, "the loss integral exceeds Renyi DP")
    slack = 1.5 * mu - math.log(delta) / 4096  # the orders end at 2^13
    must_hold(renyi <= 2.1 * exact + slack, "Renyi DP exceeds the loss integral by more than its slack")
    return Price(min(exact, renyi), {"loss integral": exact, "rdp": renyi, "refuted below": refuted})


def left_of_delta(distance: float, epsilon: float, delta: float) -> float:
    """What an assumed distance in total variation leaves of delta at epsilon, rounded down."""
    if delta == 0:
        raise Unsupported("an approximate sampler has no pure guarantee: set a delta above 0, or sample exactly")
    rest = delta - (1 + math.exp(min(epsilon, 700.0))) * distance * (1 + 1e-12)
    if rest <= 0:
        raise Unsupported(
            "delta is below (1 + e^epsilon) times the sampler's assumed distance in total variation: "
            "take a larger delta, a smaller epsilon, or more steps of the sampler for a smaller distance"
        )
    return rest * (1 - 2.0**-50)


def _assuming_price(events: tuple[Event, ...], delta: float, neighbors: Neighbors, distance: float) -> Price:
    """The least epsilon at which the rest costs no more at what is left of delta.

    A larger epsilon leaves less of delta, so that the rest costs more: from below, the iteration climbs to the
    least solution; it ends where a step of one part in 10^9 more suffices.
    """
    rest = [event for event in events if not isinstance(event, TotalVariation)]
    epsilon = 0.0
    for _ in range(200):
        tried = epsilon * (1 + 1e-9)
        price = epsilon_of(rest, left_of_delta(distance, tried, delta), neighbors)
        if price.epsilon <= tried:
            return Price(tried, price.accountants)
        epsilon = price.epsilon
    raise Unsupported("delta is too small for the sampler's assumed distance in total variation: take a larger delta")


# --- Poisson sampling, Laplace, mixtures ---------------------------------------------------------


def _numerical_price(events: tuple[Event, ...], delta: float, neighbors: Neighbors) -> Price:
    from discreet.accounting import pld

    renyi, refuted = renyi_epsilon(events, delta, neighbors), lower_bounds.epsilon_of(events, delta, neighbors)
    distribution = None if selects(events) else distribution_price(events, delta, neighbors)
    if distribution is None:
        must_hold(refuted <= renyi * (1 + 1e-9), "a test refutes Renyi DP")
        return _renyi_price(events, delta, renyi)
    accountants = {"pld": distribution, "rdp": renyi, "refuted below": refuted}
    must_hold(refuted <= min(distribution, renyi) * (1 + 1e-9), "a test refutes a price")
    # Both are upper bounds, so the lower one holds. The distribution is almost always it, but for sampled
    # selections (it knows them only as pure) and for very many tiny pure events (rounded up to its grid).
    factor = 5.0 if any(isinstance(event, BoundedRange) for event in events) else 1.5
    allowed = factor * renyi + 0.05 + pld.rounding_slack(events, neighbors)
    must_hold(distribution <= allowed, "the privacy loss distribution exceeds Renyi DP by far")
    return Price(min(distribution, renyi), accountants)


def selects(events: tuple[Event, ...]) -> bool:
    """Whether selections of bounded range are composed unsampled: there concentrated DP beats distributions."""
    sampled = any(isinstance(event, (PoissonSampled, PerturbedMinimum)) for event in events)
    return not sampled and any(isinstance(event, BoundedRange) for event in events)


def distribution_price(events: tuple[Event, ...], delta: float, neighbors: Neighbors) -> float | None:
    """The price by privacy loss distributions, or None where they have none that can be trusted."""
    from discreet.accounting import pld

    try:
        return pld.epsilon_of(events, delta, neighbors)
    except Unsupported:
        return None


def _renyi_price(events: tuple[Event, ...], delta: float, renyi: float) -> Price:
    """Where no distribution can be had: Renyi DP, against zCDP where each event has a rho.

    A composition of zCDP events cannot be cheaper than the tight conversion of the sum of their rho by
    much, nor costlier; sampled events and perturbed minima have no rho here and are left out of the sum, which
    only lowers it.
    """
    rho = math.fsum(event.zcdp for event in events)
    concentrated = rdp.epsilon_of_zcdp(rho, delta) if rho > 0 else 0.0
    if not any(isinstance(event, (PoissonSampled, PerturbedMinimum)) for event in events):
        # The best order is 1 + sqrt(ln(1/delta)/rho). Below 2 a chord from K(1) = 0 stands for the curve:
        # 2 rho (a - 1) for rho a (a - 1), up to twice as much.
        slack = 1.02 if 4 * rho <= -math.log(delta) else 2.0
        # Orders end at about 2^13, below which Renyi DP cannot see: ln(1/delta) over that.
        seen = 1e-3 - math.log(delta) / 4096
        must_hold(renyi <= slack * concentrated + seen, "Renyi DP exceeds zCDP")
        return Price(min(renyi, concentrated), {"rdp": renyi, "zcdp": concentrated})
    return Price(renyi, {"rdp": renyi, "unsampled": concentrated})


# --- the best of several runs ---------------------------------------------------------------------


def _selection_price(events: tuple[Event, ...], delta: float, neighbors: Neighbors) -> Price:
    """Renyi DP at real orders, above explicit tests."""
    selections = [event for event in events if isinstance(event, RepeatedSelection)]
    others = tuple(event for event in events if not isinstance(event, RepeatedSelection))
    if delta == 0:
        return _pure_selection_price(selections, others)
    curve = divergences(others, neighbors, ORDERS)
    for event in selections:
        curve = curve + event.log_moments(neighbors, ORDERS) / (ORDERS - 1)
    epsilon = epsilon_of_curve(curve, delta)
    tests = [refuted_below(event.stopping, event.mu, delta) for event in selections]
    refuted = max(lower_bounds.epsilon_of(others, delta, neighbors), *tests)
    must_hold(refuted <= epsilon, "a test refutes the price of a selection")
    return Price(epsilon, {"rdp": epsilon, "refuted below": refuted})


def _pure_selection_price(selections: list[RepeatedSelection], others: tuple[Event, ...]) -> Price:
    """(2 + eta) times the most expensive kind of run, and the rest by basic composition; once more in decimals."""
    total, checked = pure_epsilon(others), decimal_pure_epsilon(others)
    for event in selections:
        if event.shape is None:
            raise Unsupported(
                "a Poisson number of runs has no pure guarantee: use geometric or logarithmic stopping, or set a delta"
            )
        total += (2 + event.shape) * max(map(pure_epsilon, event.runs))
        checked += (2 + event.shape) * max(map(decimal_pure_epsilon, event.runs))
    total *= 1 + 2.0**-48
    must_hold(checked * (1 - 1e-12) <= total <= checked * (1 + 1e-9), "pure epsilon in floats and in decimals")
    return Price(total, {"basic": total, "decimal": checked})


# --- pure ----------------------------------------------------------------------------------------


def _pure_price(events: tuple[Event, ...]) -> Price:
    """Basic composition, summed exactly and rounded up; checked in decimals by another formula."""
    epsilon, checked = pure_epsilon(events), decimal_pure_epsilon(events)
    must_hold(checked <= epsilon <= checked * (1 + 1e-10), "pure epsilon in floats and in decimals")
    return Price(epsilon, {"basic": epsilon, "decimal": checked})
