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
* A perturbed minimum: the bound on its loss (``objective_perturbation.py``), every loss rounded up to the grid.
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

from discreet.accounting.events import Event, LossLaw, renyi_epsilon
from discreet.budget import Neighbors
from discreet.errors import Unsupported

_FINEST, _COARSEST, _LOOSEST = 1e-6, 1e-3, 1.0
_MOST_POINTS, _MOST_SINGLE_POINTS = 2**21, 2**16


def _reach(events: tuple[Event, ...], neighbors: Neighbors) -> float:
    """Return about how far the composed loss extends: its epsilon at the truncated mass, by our own RDP."""
    return max(renyi_epsilon(events, 1e-16, neighbors), 1e-6)


def interval_for(events: Iterable[Event], neighbors: Neighbors, reach: float) -> float:
    """Return a grid spacing that is fine enough for the price to be tight, coarse enough for memory and time.

    Each release adds about h^2/12 to the variance of the loss, so that h is compared with the root mean
    square step: a sixteenth is 0.03 %. Pure events are rounded up, up to h each, which is compared with
    the whole composition's standard deviation. Whatever h is, the price is valid.
    """
    laws = [event.loss_law(neighbors) for event in events]
    variance = math.fsum(law.count * law.deviation**2 for law in laws)
    wanted = min(_COARSEST, math.sqrt(variance / sum(law.count for law in laws)) / 16)
    rounded = sum(law.count for law in laws if law.is_rounded_up)
    if rounded:
        wanted = min(wanted, 5e-3 * math.sqrt(variance) / rounded)
    widest = max(law.width for law in laws)
    return max(wanted, _FINEST, 3 * reach / _MOST_POINTS, widest / _MOST_SINGLE_POINTS)


def rounding_slack(events: Iterable[Event], neighbors: Neighbors) -> float:
    """Return by how much the rounding of pure events to the grid may raise epsilon: up to h for each."""
    events = tuple(events)
    laws = [event.loss_law(neighbors) for event in events]
    rounded = sum(law.count for law in laws if law.is_rounded_up)
    return rounded * interval_for(events, neighbors, _reach(events, neighbors)) if rounded else 0.0


def _distribution(law: LossLaw, neighbors: Neighbors, interval: float) -> Any:
    """Return the distribution of one of a law's losses."""
    from dp_accounting.pld import common, privacy_loss_distribution
    from dp_accounting.privacy_accountant import NeighboringRelation

    if law.bound is not None:
        masses, beyond = law.bound.masses(interval)
        build = privacy_loss_distribution.PrivacyLossDistribution.create_from_rounded_probability
        return build(masses, beyond, interval)
    if law.mechanism == "pure":
        parameters = common.DifferentialPrivacyParameters(law.parameter, 0.0)
        return privacy_loss_distribution.from_privacy_parameters(parameters, interval)
    options: dict[str, Any] = {"value_discretization_interval": interval, "sampling_prob": law.probability}
    if law.mechanism == "laplace":
        return privacy_loss_distribution.from_laplace_mechanism(law.parameter, **options)
    if law.probability < 1:
        replaced = neighbors is Neighbors.REPLACE_ONE
        relation = NeighboringRelation.REPLACE_ONE if replaced else NeighboringRelation.ADD_OR_REMOVE_ONE
        options["neighboring_relation"] = relation
    return privacy_loss_distribution.from_gaussian_mechanism(law.parameter, **options)


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


def _losses(events: tuple[Event, ...], neighbors: Neighbors) -> int:
    """Return how many distributions are convolved."""
    return sum(event.loss_law(neighbors).count for event in events)


def compose(events: Iterable[Event], neighbors: Neighbors, interval: float | None = None) -> Any:
    """The distribution of the whole composition, after a look at how large it will be."""
    events = tuple(events)
    reach = _reach(events, neighbors)
    spacing = interval_for(events, neighbors, reach) if interval is None else interval
    if spacing > _LOOSEST or 3 * reach / spacing > 8 * _MOST_POINTS:
        raise Unsupported("this plan's privacy loss is too wide to compute: add noise or take fewer steps")
    total: Any = None
    for law in (event.loss_law(neighbors) for event in events):
        single = _distribution(law, neighbors, spacing)
        composed = single.self_compose(law.count) if law.count > 1 else single
        total = composed if total is None else total.compose(composed)
    return total


def epsilon_of(
    events: Iterable[Event], delta: float, neighbors: Neighbors = Neighbors.REPLACE_ONE, interval: float | None = None
) -> float:
    """The epsilon of a composition at delta, an upper bound; refused where rounding could hide half of delta."""
    events = tuple(events)
    composed = compose(events, neighbors, interval)
    hidden = hidden_delta(composed, _losses(events, neighbors))
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
    return min(1.0, float(composed.get_delta_for_epsilon(epsilon)) + hidden_delta(composed, _losses(events, neighbors)))
