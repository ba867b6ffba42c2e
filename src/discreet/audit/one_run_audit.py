"""Audit by a single release: many canaries, each in or out by a fair coin, and a guess of every coin.

For wide models, where one release is expensive. Steinke, Nasr and Jagielski (2023), Theorem 5.2: if the release is
(epsilon, delta)-DP, the number of right guesses of m independent fair coins, of which r are guessed at all, exceeds v
with a chance of at most

    P(B >= v) + m delta max_{1 <= i <= v} (2/i) P(v - i <= B < v),   B ~ Binomial(r, e^epsilon / (1 + e^epsilon)).

The largest epsilon at which that chance is below 1 - confidence is refuted. No independence of the noise is assumed.
"""

import math

import numpy as np
from scipy.stats import binom

from discreet.accounting.plan import Plan, Release
from discreet.accounting.priced_plan import price_plan
from discreet.accounting.root_finding import find_root
from discreet.audit.audit_result import Audit, Sides
from discreet.audit.gradient_audit import CLIP
from discreet.audit.gradient_audit import canaries as canaries_of
from discreet.bounds import Bounds
from discreet.budget import Budget, Neighbors
from discreet.curator import PrivateData, current_entropy
from discreet.losses import Logistic


def one_run(
    epsilon: float = 1.0,
    delta: float = 1e-6,
    *,
    neighbors: str = "replace_one",
    canaries: int = 1000,
    guessed: float = 0.2,
    confidence: float = 0.99,
) -> Audit:
    """Audit one noisy gradient of a model with as many features as canaries, from a single release.

    Parameters
    ----------
    epsilon : float, default=1.0
        The claim.
    delta : float, default=1e-6
        Of the claim.
    neighbors : str, default="replace_one"
        The relation.
    canaries : int, default=1000
        Records with a feature of their own, each in or out (or its label one or the other) by a fair coin.
    guessed : float, default=0.2
        The share of coins that is guessed: those of the most extreme coordinates.
    confidence : float, default=0.99
        The chance that the bound does not exceed the truth.

    Returns
    -------
    Audit
        Its bound and its verdict.

    Examples
    --------
    >>> from discreet import audit
    >>> audit.one_run(epsilon=4.0, canaries=200).runs
    1
    """
    relation = Neighbors(neighbors)
    budget = Budget(epsilon, delta, relation)
    priced = price_plan(Plan([Release("noisy_gradient", 1, clip=CLIP)]), budget)
    coins = (current_entropy().words(canaries) >> np.uint64(63)).astype(bool)
    table = canaries_of(relation, coins)
    data = PrivateData(table.X, table.y, Bounds(features=1.0, classes=(0, 1)), fit_intercept=False, ledger=False)
    released = -data.open(priced, Logistic()).noisy_gradient(np.zeros(canaries), clip=CLIP)
    middle = 0.0 if relation is Neighbors.REPLACE_ONE else 0.5 * CLIP
    tried = np.argsort(-np.abs(released - middle))[: max(1, round(guessed * canaries))]
    right = int(((released[tried] >= middle) == coins[tried]).sum())
    return Audit(
        level="one_run",
        subject=f"one noisy gradient of {canaries} features",
        neighbors=str(relation),
        claimed=epsilon,
        delta=delta,
        bound=least_epsilon(right, len(tried), canaries, delta, confidence),
        confidence=confidence,
        runs=1,
        settings={
            "canaries": canaries,
            "guessed": len(tried),
            "right": right,
            "noise_multiplier": priced.noise_multiplier,
        },
        sides=Sides.of(released[~coins], released[coins], middle),
    )


def chance_of(right: int, guessed: int, canaries: int, epsilon: float, delta: float) -> float:
    """An upper bound on the chance of so many right guesses under (epsilon, delta)-DP."""
    law = binom(guessed, 1 / (1 + math.exp(-epsilon)))
    below = law.cdf(right - 1 - np.arange(0, right + 1))  # P(B <= v - 1 - i), i = 0..v
    excess = 2 * (below[0] - below[1:]) / np.arange(1, right + 1)
    return float(law.sf(right - 1) + canaries * delta * (excess.max() if right else 0.0))


def least_epsilon(right: int, guessed: int, canaries: int, delta: float, confidence: float) -> float:
    """The epsilon below which so many right guesses would be too much of a chance."""

    def is_refuted(epsilon: float) -> bool:
        return chance_of(right, guessed, canaries, epsilon, delta) <= 1 - confidence

    return find_root(is_refuted, 0.0, 64.0, steps=60)[0] if is_refuted(0.0) else 0.0
