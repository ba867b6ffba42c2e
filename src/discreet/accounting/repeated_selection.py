"""The price of "repeat and select": run a private mechanism K times, release the best outcome only.

K is random and secret (``number_of_runs.py``); each run releases an outcome with a score in it, and neighbors obey the
same Renyi-DP curve D_a and privacy profile in every run, in both directions. Papernot and Steinke (2022) bound the
selected outcome's Renyi divergence of order a:

*Truncated negative binomial* (Theorem 2), for any order b >= 1:
    D_a + (1 + eta) [(1 - 1/b) D_b + log(1/gamma) / b] + log E[K] / (a - 1).
    For pure epsilon, a and b -> infinity: (2 + eta) epsilon.
*Poisson* with mean m (Theorem 6), where the runs are (e, d)-DP at e^e = a / (a - 1):
    log[e^-m + m exp((a - 1)(D_a + m d))] / (a - 1).
    *Proof.* Let the outcomes be ordered by score (ties by a uniform tag, which is data-independent), p and q the
    probabilities of at most y under neighbors P and Q. The best of the runs has the density P(y) m e^{-m (1 - p)}.
    In the moment of order a the exponents are -a m (1 - p) + (a - 1) m (1 - q), and 1 - q <= e^e (1 - p) + d makes
    them at most m (1 - p) ((a - 1) e^e - a) + (a - 1) m d = (a - 1) m d. So the moment over y is at most
    m e^{(a - 1)(D_a + m d)}; and no run at all, which has no data in it, adds e^-m. QED
    (The paper leaves out e^-m, which matters below a mean of 1 only.)

Several kinds of runs (candidates; parts of the records of which a neighbor changes one) cost the largest of their
curves, order by order. Every order gives a valid price, so that grids need not be fine to be safe.
"""

import math
from collections.abc import Iterable
from contextlib import suppress

import numpy as np
from scipy.special import ndtr, ndtri

from discreet.accounting import gaussian, lower_bounds, pure_dp, rdp
from discreet.accounting.events import ZCDP, Event, Gaussian, RepeatedSelection
from discreet.accounting.number_of_runs import Stopping
from discreet.accounting.root_finding import bracketed, find_root
from discreet.budget import Neighbors
from discreet.errors import AccountingError, Unsupported
from discreet.typing import Floats

Runs = tuple[tuple[Event, ...], ...]

ORDERS: Floats = 1 + np.exp(np.linspace(math.log(1e-3), math.log(1e5), 1600))
"""Real orders, in steps of about 1 %."""

_UP = 1 + 1e-10


def price_of(events: tuple[Event, ...], delta: float, neighbors: Neighbors) -> tuple[float, dict[str, float]] | None:
    """The epsilon of a composition in which something was selected, and what the accountants say; else None."""
    selections = [event for event in events if isinstance(event, RepeatedSelection)]
    if not selections:
        return None
    others = tuple(event for event in events if not isinstance(event, RepeatedSelection))
    if delta == 0:
        return _pure_price(selections, others)
    curve = divergences((others,), neighbors, ORDERS)
    for event in selections:
        curve = curve + moments(event, neighbors, ORDERS) / (ORDERS - 1)
    epsilon = _epsilon_of(curve, delta)
    refuted = max(
        [lower_bounds.epsilon_of(others, delta, neighbors), *(refuted_below(event, delta) for event in selections)]
    )
    if refuted > epsilon:
        raise AccountingError("a test refutes the price of a selection: nothing was released; please report this plan")
    return epsilon, {"rdp": epsilon, "refuted below": refuted}


def _epsilon_of(curve: Floats, delta: float) -> float:
    """The best conversion of a curve of divergences at ``ORDERS``."""
    tail = np.log1p(-1 / ORDERS) - (math.log(delta) + np.log(ORDERS)) / (ORDERS - 1)
    best = float(np.min(curve + tail)) * _UP
    if math.isnan(best):  # max(0, nan) would be 0
        raise AccountingError("the price of a selection is not a number: please report this plan")
    return max(0.0, best)


def _pure_price(selections: list[RepeatedSelection], others: tuple[Event, ...]) -> tuple[float, dict[str, float]]:
    """(2 + eta) times the most expensive kind of run, and the rest by basic composition; once more in decimals."""
    total, checked = pure_dp.composed(others), pure_dp.composed_in_decimals(others)
    for event in selections:
        if event.shape is None:
            raise Unsupported(
                "a Poisson number of runs has no pure guarantee: use geometric or logarithmic stopping, or set a delta"
            )
        total += (2 + event.shape) * max(pure_dp.composed(run) for run in event.runs)
        checked += (2 + event.shape) * max(pure_dp.composed_in_decimals(run) for run in event.runs)
    total *= 1 + 2.0**-48
    if not checked * (1 - 1e-12) <= total <= checked * (1 + 1e-9):
        raise AccountingError("pure epsilon in floats and in decimals disagree: please report this plan")
    return total, {"basic": total, "decimal": checked}


# --- one run ---------------------------------------------------------------------------------------


def divergences(runs: Iterable[tuple[Event, ...]], neighbors: Neighbors, orders: Floats) -> Floats:
    """The largest Renyi divergence of any kind of run, at real orders above 1."""
    curves = [_divergence(run, neighbors, orders) for run in runs]
    return np.asarray(np.max(np.stack(curves), axis=0)) if curves else np.zeros_like(orders)


def _divergence(run: tuple[Event, ...], neighbors: Neighbors, orders: Floats) -> Floats:
    """Exact for Gaussian and zCDP events; for others chords of the log-moments, and pure epsilon beyond them."""
    rho = math.fsum(_rho(event) for event in run)
    rest = [event for event in run if not isinstance(event, (Gaussian, ZCDP))]
    curve: Floats = rho * orders
    if not rest:
        return curve
    known = np.concatenate([[1.0], rdp.orders()])
    at_known = np.concatenate([[0.0], np.sum([rdp.moments_of(event, neighbors) for event in rest], axis=0)])
    chord: Floats = np.interp(orders, known, at_known, right=np.inf) / (orders - 1)
    with suppress(Unsupported):
        chord = np.minimum(chord, pure_dp.composed(rest))
    return curve + chord


def _rho(event: Event) -> float:
    if isinstance(event, Gaussian):
        return event.count * rdp.zcdp_of_gaussian(event.noise_multiplier)
    return event.rho if isinstance(event, ZCDP) else 0.0


def profile(runs: Runs, neighbors: Neighbors, epsilons: Floats) -> Floats:
    """The largest delta of any kind of run at each epsilon: exact for Gaussian runs, from the curve for others."""
    return np.asarray(np.max(np.stack([_profile(run, neighbors, epsilons) for run in runs]), axis=0))


def _profile(run: tuple[Event, ...], neighbors: Neighbors, epsilons: Floats) -> Floats:
    if all(isinstance(event, Gaussian) for event in run):
        mu = gaussian.mu_of_noise((e.count, e.noise_multiplier) for e in run if isinstance(e, Gaussian))
        return np.array([gaussian.delta_of(epsilon, mu) for epsilon in epsilons.tolist()])
    return profile_of_curve(_divergence(run, neighbors, ORDERS), epsilons)


def profile_of_curve(curve: Floats, epsilons: Floats) -> Floats:
    """The least delta over ``ORDERS``: exp((a - 1)(D - epsilon)) (1 - 1/a)^(a - 1) / a (Canonne et al. 2020)."""
    fixed = (ORDERS - 1) * (curve + np.log1p(-1 / ORDERS)) - np.log(ORDERS)
    least = [float(np.min(fixed - (ORDERS - 1) * epsilon)) for epsilon in epsilons.tolist()]
    return np.minimum(np.exp(np.minimum(least, 0.0)) * _UP, 1.0)


# --- the best of the runs --------------------------------------------------------------------------


def moments(event: RepeatedSelection, neighbors: Neighbors, orders: Floats) -> Floats:
    """The log-moments (a - 1) D_a of the selected outcome."""
    law, curve = Stopping(event.mean, event.shape), divergences(event.runs, neighbors, orders)
    if event.shape is None:
        epsilons = -np.log1p(-1 / orders) * (1 - 2.0**-45)
        grown = curve + event.mean * profile(event.runs, neighbors, epsilons)
        return np.asarray(np.logaddexp(-event.mean, law.log_mean + (orders - 1) * grown))
    other = divergences(event.runs, neighbors, ORDERS)
    least = float(np.min((1 - 1 / ORDERS) * other + law.log_reciprocal / ORDERS))
    return np.asarray((orders - 1) * (curve + (1 + event.shape) * least * _UP) + law.log_mean)


def refuted_below(event: RepeatedSelection, delta: float) -> float:
    """A lower bound on epsilon: runs that release a number with Gaussian noise, ordered by a malicious score.

    The best outcomes are those above t, which the neighbor's law favors; then the smaller the better. A release below
    s < t says that no run was above t: under N(0, 1) it has the probability E[(1 - a)^K] - E[(1 - a - c)^K] with
    a = P(above t), c = P(below s). Explicit tests for many t and s.
    """
    law = Stopping(event.mean, event.shape)
    mu = max(gaussian.mu_of_noise((e.count, e.noise_multiplier) for e in run if isinstance(e, Gaussian))
             for run in event.runs)  # fmt: skip
    if mu == 0:
        return 0.0
    below = ndtri(np.exp(np.linspace(math.log(1e-15), math.log(0.5), 120)))[:, None]
    above = -ndtri(np.exp(np.linspace(math.log(1e-15), math.log(0.9), 80)))[None, :]
    p, q = (_no_better(law, ndtr(move - above), ndtr(below - move)) for move in (0.0, mu))
    keep = (p * (1 - 1e-6) > delta) & (q > 1e-12) & (below <= above)
    if not keep.any():
        return 0.0
    # A millionth off, for the rounding of differences of probabilities.
    return max(0.0, float(np.log((p[keep] * (1 - 1e-6) - delta) / q[keep]).max()) - 1e-3)


def _no_better(law: Stopping, better: Floats, chosen: Floats) -> Floats:
    """The probability that no run is among the ``better`` and at least one among the ``chosen`` outcomes."""
    return law.best_beyond(better + chosen) - law.best_beyond(better)


# --- what each run may spend -----------------------------------------------------------------------


def run_mu(stopping: Stopping, epsilon: float, delta: float) -> float:
    """The largest mu at which selecting among mu-GDP runs costs (epsilon, delta), rounded down."""

    def cost(mu: float) -> float:
        event = RepeatedSelection(((Gaussian(1 / mu),),), stopping.mean, stopping.shape)
        return _epsilon_of(moments(event, Neighbors.ZERO_OUT, ORDERS) / (ORDERS - 1), delta)

    # a mean below 1 may cost less than one run
    high = bracketed(lambda mu: cost(mu) > epsilon, gaussian.mu_of(epsilon, delta))
    low = high
    while cost(low) > epsilon:
        low /= 2
        if low < 1e-6 * high:
            raise Unsupported("this budget is too small for a selection: raise epsilon or delta, or lower mean_runs")
    return find_root(lambda mu: cost(mu) <= epsilon, low, high, steps=40)[0]
