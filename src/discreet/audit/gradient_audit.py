"""Audit of one answer of the curator: a canary at exactly the clip bound, many times.

Each canary is a record with one feature of its own, whose gradient is longer than the clip, so that it contributes
exactly the clip to one coordinate of the sum and nothing to the others. One release shows all canaries at once: its
coordinates are as many independent runs. On the other side every canary is exchanged (blanked, removed). What is
released goes through the real admission, kernels, lattice and noise, at the noise that the real calibration gives a
claim of (epsilon, delta) for one release; so whatever is wrong with any of them counts.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from discreet.accounting.plan import Plan, Release
from discreet.accounting.priced_plan import PricedPlan, price_plan
from discreet.audit import statistical_bounds
from discreet.audit.audit_result import Audit, Sides
from discreet.bounds import Bounds
from discreet.budget import Budget, Neighbors
from discreet.curator import PrivateData
from discreet.errors import Unsupported
from discreet.losses import Logistic
from discreet.typing import Booleans, Floats

CLIP = 0.25  # half of a canary's gradient at w = 0
CANARIES = 20
MECHANISMS = ("gaussian", "sampled", "laplace")
SAMPLING = Fraction(1, 4)


@dataclass(frozen=True)
class Sample:
    """The records that the curator holds."""

    X: Floats
    y: Floats


class _AtNoise(Plan):
    """A plan whose noise is given: releases that are counted one by one promise nothing together."""

    def __init__(self, releases: Iterable[Release], noise_multiplier: float) -> None:
        super().__init__(releases)
        object.__setattr__(self, "_noise_multiplier", noise_multiplier)

    def multiplier_for(self, budget: Budget) -> float:
        """The given noise, whatever the budget."""
        return float(self._noise_multiplier)  # type: ignore[attr-defined]


def canaries(relation: Neighbors, inside: Booleans) -> Sample:
    """A table of canaries, each in or out; a coordinate of the sum differs by the whole sensitivity between the two."""
    rows, ones = np.eye(len(inside)), np.ones(len(inside))
    if relation is Neighbors.REPLACE_ONE:
        return Sample(rows, np.where(inside, 1.0, 0.0))
    if relation is Neighbors.ZERO_OUT:
        rows[~inside] = np.nan
        return Sample(rows, ones)
    return Sample(np.vstack([np.zeros(len(inside)), rows[inside]]), np.ones(1 + int(inside.sum())))


def gradient(
    epsilon: float = 1.0,
    delta: float = 1e-6,
    *,
    neighbors: str = "replace_one",
    mechanism: str = "gaussian",
    runs: int = 100_000,
    confidence: float = 0.99,
) -> Audit:
    """Audit one noisy gradient of the curator at a claim of (epsilon, delta).

    Parameters
    ----------
    epsilon : float, default=1.0
        The claim.
    delta : float, default=1e-6
        Of the claim; ``mechanism="laplace"`` has none.
    neighbors : str, default="replace_one"
        The relation.
    mechanism : {"gaussian", "sampled", "laplace"}, default="gaussian"
        ``"gaussian"``: the threshold halfway between the two sums, and the accuracy that Gaussian DP allows.
        ``"sampled"``: the same on a Poisson sample of a quarter of the records, against the trade-off of its privacy
        loss distribution. ``"laplace"``: the event beyond the farther sum, where the likelihood ratio is e^epsilon.
    runs : int, default=100_000
        On each side.
    confidence : float, default=0.99
        The chance that the bound does not exceed the truth.

    Returns
    -------
    Audit
        Its bound and its verdict.

    Raises
    ------
    Unsupported
        If the mechanism is unknown, or Gaussian noise is asked for without a delta.

    Examples
    --------
    >>> from discreet import audit
    >>> audit.gradient(epsilon=1.0, runs=1000).refuted
    False
    """
    if mechanism not in MECHANISMS:
        raise Unsupported(f"mechanism must be one of {', '.join(MECHANISMS)}")
    if delta == 0 and mechanism != "laplace":
        raise Unsupported("Gaussian noise needs a delta above 0: for delta=0 use Laplace noise, mechanism='laplace'")
    relation = Neighbors(neighbors)
    budget = Budget(epsilon, 0.0 if mechanism == "laplace" else delta, relation)
    single = price_plan(Plan([_release(1, mechanism)]), budget)
    releases = -(-runs // CANARIES)
    low, high = (
        -_releases(canaries(relation, np.full(CANARIES, inside)), releases, mechanism, single)
        for inside in (False, True)
    )
    near, far = (CLIP if relation is Neighbors.REPLACE_ONE else 0.0) * -1, CLIP
    total = low.size
    if mechanism == "laplace":
        bound = statistical_bounds.either_epsilon(
            int((high >= far).sum()), total, int((low >= far).sum()), total, 0.0, confidence
        )
        threshold = far
    else:
        threshold = 0.5 * (near + far)
        right = int((high >= threshold).sum()) + int((low < threshold).sum())
        accuracy = statistical_bounds.least_accuracy(right, 2 * total, confidence)
        bound = statistical_bounds.accuracy_epsilon(accuracy, single.events, budget.delta, relation) or 0.0
    return Audit(
        level="gradient",
        subject=f"one noisy gradient ({mechanism})",
        neighbors=str(relation),
        claimed=budget.epsilon,
        delta=budget.delta,
        bound=bound,
        confidence=confidence,
        runs=total,
        findings=() if _is_fresh(low) and _is_fresh(high) else ("two releases have the same noise",),
        settings={
            "mechanism": mechanism,
            "canaries": CANARIES,
            "clip": CLIP,
            "noise_multiplier": single.noise_multiplier,
        },
        sides=Sides.of(low, high, threshold),
    )


def _release(count: int, mechanism: str) -> Release:
    return Release("noisy_gradient", count, SAMPLING if mechanism == "sampled" else 1, clip=CLIP)


def _releases(side: Sample, count: int, mechanism: str, single: PricedPlan) -> Floats:
    """Noisy sums of the side's clipped gradients, one row per release, all at the same noise."""
    bounds = Bounds(features=1.0, classes=(0, 1), n=None)
    plan = _AtNoise([_release(count, mechanism)], single.noise_multiplier)
    data = PrivateData(side.X, side.y, bounds, fit_intercept=False, ledger=False)
    curator = data.open(price_plan(plan, replace(single.budget, epsilon=math.inf)), Logistic())
    w = np.zeros(side.X.shape[1])
    return np.array([curator.noisy_gradient(w, clip=CLIP) for _ in range(count)])


def _is_fresh(released: Floats) -> bool:
    """Whether no two releases are equal: of twenty noisy coordinates that is no accident."""
    return len(np.unique(released, axis=0)) == len(released)
