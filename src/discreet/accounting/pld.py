"""Privacy loss distributions: the price of Poisson sampling, of Laplace noise and of mixtures.

The only importer of dp_accounting, which is reached through ``dp_accounting.pld`` alone and inside
functions (it takes a second to import). Its distributions are pessimistic: a coarser grid costs
epsilon, never validity. Its RDP accountant is never used.

Which pair of distributions stands for an event, with z the noise multiplier in units of the
sensitivity *under the declared relation*:

* Gaussian, full batch: N(0, z^2) and N(1, z^2), for every relation.
* Poisson-sampled Gaussian under ``add_remove`` and ``zero_out``: (1-q) N(0, z^2) + q N(1, z^2) and N(0, z^2),
  both orders (dp_accounting: ADD_OR_REMOVE_ONE at z).
* Poisson-sampled Gaussian under ``replace_one``: (1-q) N(0) + q N(1) and (1-q) N(0) + q N(-1) at standard
  deviation 2z (dp_accounting: REPLACE_ONE, which counts in units of C with distance 2C, at 2z).
* Laplace: scalars by their own pair; vectors, and Poisson-sampled scalars under ``replace_one``, as pure DP.
* A perturbed minimum: the bound on its loss (``objective.py``), every loss rounded up to the grid.
* Pure and bounded-range events: randomized response; where sampled, at log(1 + q (e^epsilon - 1)).

*Why the replace_one pair dominates for vectors too.* Given the other records' sample, which is mixed over
on both sides, compare P = (1-q) N(0) + q N(x) and Q = (1-q) N(0) + q N(x') with norms at most C. For g >= 1,

    H_g(P||Q) = q H_h(N(x) || (1-w) N(0) + w N(x')),  h = g + (1-q)(g-1)/q,  w = g/h.

Seen from x, the mixture's centers are at distances s_0 <= C and s_1 <= 2C, and the divergence is
E max(0, 1 - h [(1-w) e^{G_0 - s_0^2/2} + w e^{G_1 - s_1^2/2}]), G_i ~ N(0, s_i^2) jointly, in units of the noise:
a convex function of a sum. For given marginals the comonotone coupling makes such a sum largest in
convex order (G_0 and G_1 multiples of one normal: x, 0 and x' on a line), and then the expected
shortfalls of the terms add, each of which grows with s_i (e^{sZ - s^2/2} grows in convex order). So
x = -x' of norm C is the worst case. For g < 1 swap P and Q. QED
"""

import math
from collections.abc import Iterable
from typing import Any

from discreet.accounting import objective_perturbation, rdp
from discreet.accounting.events import (
    SAMPLING_DENOMINATOR,
    ZCDP,
    BoundedRange,
    Event,
    Gaussian,
    Laplace,
    NonPrivate,
    PerturbedMinimum,
    PoissonSampled,
    PureDP,
    RepeatedSelection,
    TotalVariation,
    unwrapped,
)
from discreet.budget import Neighbors
from discreet.errors import Unsupported

_FINEST, _COARSEST, _LOOSEST = 1e-6, 1e-3, 1.0
_MOST_POINTS, _MOST_SINGLE_POINTS = 2**21, 2**16


def _reach(events: tuple[Event, ...], neighbors: Neighbors) -> float:
    """About how far the composed loss extends to each side: its epsilon at the truncated mass, by our own RDP."""
    return max(rdp.epsilon_of(events, 1e-16, neighbors), 1e-6)


def _step(event: Event) -> float:
    """About the standard deviation of one release's privacy loss: what the grid has to resolve."""
    event = unwrapped(event)
    if isinstance(event, PoissonSampled):
        inner, q = event.event, event.numerator / SAMPLING_DENOMINATOR
        if isinstance(inner, Gaussian):
            return q * math.sqrt(math.expm1(min(1 / inner.noise_multiplier**2, 50.0)))
        return rdp.amplified_pure(inner.epsilon, q)
    if isinstance(event, Gaussian):
        return math.sqrt(event.count) / event.noise_multiplier
    if isinstance(event, PerturbedMinimum):
        return 1 / event.noise_multiplier
    if isinstance(event, (Laplace, PureDP, BoundedRange)):
        return event.epsilon
    raise Unsupported("no privacy loss distribution is known for this event: price it by RDP")


def interval_for(events: Iterable[Event], neighbors: Neighbors, reach: float) -> float:
    """The grid's spacing h: fine enough for the price to be tight, coarse enough for memory and time.

    Each release adds about h^2/12 to the variance of the loss, so that h is compared with the root mean
    square step: a sixteenth is 0.03 %. Pure events are rounded up, up to h each, which is compared with
    the whole composition's standard deviation. Whatever h is, the price is valid.
    """
    events = tuple(events)
    variance = math.fsum(_draws(event) * _step(event) ** 2 for event in events)
    wanted = min(_COARSEST, math.sqrt(variance / sum(map(_draws, events))) / 16)
    rounded = sum(event.count for event in events if _is_rounded_up(event, neighbors))
    if rounded:
        wanted = min(wanted, 5e-3 * math.sqrt(variance) / rounded)
    widest = max(_width(event) for event in events)
    return max(wanted, _FINEST, 3 * reach / _MOST_POINTS, widest / _MOST_SINGLE_POINTS)


def rounding_slack(events: Iterable[Event], neighbors: Neighbors) -> float:
    """By how much the rounding of pure events to the grid may raise epsilon: up to h for each."""
    events = tuple(events)
    rounded = sum(event.count for event in events if _is_rounded_up(event, neighbors))
    return rounded * interval_for(events, neighbors, _reach(events, neighbors)) if rounded else 0.0


def _draws(event: Event) -> int:
    """How many distributions are convolved: full-batch Gaussian releases are one."""
    return 1 if isinstance(unwrapped(event), Gaussian) else event.count


def _width(event: Event) -> float:
    """About how far one Gaussian release's loss extends, at ten standard deviations; building it takes long."""
    inner = event.inner
    if isinstance(inner, PerturbedMinimum):
        mu = 1 / inner.noise_multiplier
        return 10 * mu + mu * mu + objective_perturbation.determinant_term(inner)
    if not isinstance(inner, Gaussian):
        return 0.0
    mu = (math.sqrt(inner.count) if inner is unwrapped(event) else 1.0) / inner.noise_multiplier
    return 10 * mu + mu * mu


def _is_rounded_up(event: Event, neighbors: Neighbors) -> bool:
    """Whether the event's losses are rounded up to the grid: those of randomized response, and of loss bounds."""
    inner = event.inner
    if isinstance(inner, Gaussian):
        return False
    if isinstance(inner, Laplace) and inner.dimension == 1:
        return isinstance(event, PoissonSampled) and neighbors is Neighbors.REPLACE_ONE
    return True


def _single(event: Event, neighbors: Neighbors, interval: float) -> tuple[Any, int]:
    """The distribution of one release and how many there are."""
    from dp_accounting.pld import common, privacy_loss_distribution
    from dp_accounting.privacy_accountant import NeighboringRelation

    event, q = unwrapped(event), 1.0
    was = event
    if isinstance(event, PoissonSampled):
        q, event = event.numerator / SAMPLING_DENOMINATOR, event.event
    if isinstance(event, (NonPrivate, ZCDP, PoissonSampled, RepeatedSelection, TotalVariation)):
        raise Unsupported("no privacy loss distribution is known for this event: price it by RDP")
    options = {"value_discretization_interval": interval, "sampling_prob": q}
    if isinstance(event, Gaussian):
        if q == 1.0:  # count releases are one, at the exact composed multiplier (rounded down)
            composed = event.noise_multiplier / math.sqrt(event.count) * (1 - 2.0**-50)
            return privacy_loss_distribution.from_gaussian_mechanism(composed, **options), 1
        replaced = neighbors is Neighbors.REPLACE_ONE
        relation = NeighboringRelation.REPLACE_ONE if replaced else NeighboringRelation.ADD_OR_REMOVE_ONE
        scale = 2 * event.noise_multiplier if replaced else event.noise_multiplier
        return (
            privacy_loss_distribution.from_gaussian_mechanism(scale, neighboring_relation=relation, **options),
            event.count,
        )
    if isinstance(event, PerturbedMinimum):
        masses, beyond = objective_perturbation.loss_bound(event, neighbors).masses(interval)
        build = privacy_loss_distribution.PrivacyLossDistribution.create_from_rounded_probability
        return build(masses, beyond, interval), 1
    if isinstance(event, Laplace) and not _is_rounded_up(was, neighbors):
        return privacy_loss_distribution.from_laplace_mechanism(event.noise_multiplier, **options), event.count
    epsilon = rdp.amplified_pure(event.epsilon, q)
    parameters = common.DifferentialPrivacyParameters(epsilon, 0.0)
    return privacy_loss_distribution.from_privacy_parameters(parameters, interval), event.count


def hidden_delta(composed: Any, count: int) -> float:
    """How much delta the rounding of the fast Fourier transforms may hide, read off the result itself.

    dp_accounting does not allow for it, and can report *less* than the truth. Probabilities are not
    negative, so that the most negative one found shows the size of the transforms' noise; twice that, in
    every bin, is allowed for; and 4 roundings per self-composition, which scale the whole. This is an
    estimate, not a theorem: the tests compare it with direct convolution, whose terms are all positive.
    """
    noise = 0.0
    for pmf in (composed._pmf_remove, composed._pmf_add):
        values = getattr(pmf, "_probs", None)  # sparse ones are convolved directly
        if values is not None and len(values):
            noise = max(noise, 2 * len(values) * max(0.0, -float(min(values.min(), 0.0))))
    return 1e-14 + noise + 4 * count * 2.0**-53


def compose(events: Iterable[Event], neighbors: Neighbors, interval: float | None = None) -> Any:
    """The distribution of the whole composition, after a look at how large it will be."""
    events = tuple(events)
    reach = _reach(events, neighbors)
    spacing = interval_for(events, neighbors, reach) if interval is None else interval
    if spacing > _LOOSEST or 3 * reach / spacing > 8 * _MOST_POINTS:
        raise Unsupported("this plan's privacy loss is too wide to compute: add noise or take fewer steps")
    total: Any = None
    for event in events:
        single, count = _single(event, neighbors, spacing)
        composed = single.self_compose(count) if count > 1 else single
        total = composed if total is None else total.compose(composed)
    return total


def epsilon_of(
    events: Iterable[Event], delta: float, neighbors: Neighbors = Neighbors.REPLACE_ONE, interval: float | None = None
) -> float:
    """The epsilon of a composition at delta, an upper bound; refused where rounding could hide half of delta."""
    events = tuple(events)
    composed = compose(events, neighbors, interval)
    hidden = hidden_delta(composed, sum(map(_draws, events)))
    if hidden > delta / 2:
        raise Unsupported("privacy loss distributions are not exact enough at so small a delta: price by RDP")
    epsilon = float(composed.get_epsilon_for_delta(delta - hidden))
    return max(0.0, epsilon) * (1 + 1e-12)


def delta_of(
    events: Iterable[Event], epsilon: float, neighbors: Neighbors = Neighbors.REPLACE_ONE, interval: float | None = None
) -> float:
    """The delta of a composition at epsilon, an upper bound."""
    events = tuple(events)
    composed = compose(events, neighbors, interval)
    return min(1.0, float(composed.get_delta_for_epsilon(epsilon)) + hidden_delta(composed, sum(map(_draws, events))))
