"""Audits that guess from noisy answers which of two neighbors was used, and count how often that is right.

They share a frame (``_Claim``): scores of runs on either side, a threshold between them, and the epsilon below which so
many right guesses would be too much of a chance (``least_accuracy``).

**gradient**: one answer of the curator, with a canary at exactly the clip bound, many times. Each canary is a record
with one feature of its own, whose gradient is longer than the clip, so that it contributes exactly the clip to one
coordinate of the sum and nothing to the others. One release shows all canaries at once: its coordinates are as many
independent runs. On the other side every canary is exchanged (blanked, removed). What is released goes through the real
admission, kernels, lattice and noise, at the noise that the real calibration gives a claim of (epsilon, delta) for one
release; so whatever is wrong with any of them counts.

**one_run**: a single release, for wide models, where one is expensive. Many canaries are each in or out by a fair coin,
and every coin is guessed. Steinke, Nasr and Jagielski (2023), Theorem 5.2: if the release is (epsilon, delta)-DP, the
number of right guesses of m independent fair coins, of which r are guessed at all, exceeds v with a chance of at most

    P(B >= v) + m delta max_{1 <= i <= v} (2/i) P(v - i <= B < v),   B ~ Binomial(r, e^epsilon / (1 + e^epsilon)).

The largest epsilon at which that chance is below 1 - confidence is refuted. No independence of the noise is assumed.

**transcript**: a whole fit, from everything that was released. A fit is run on a data set, and every answer that it
got is written down. The same fit is replayed on the neighbor with those answers forced upon it, so that each release's
exact sum is known on both sides for the very same history. The log-likelihood ratio of the answers under the announced
noise is then the best score there is, and 0 the threshold: nothing is learned from the runs that are counted. It needs
no knowledge of the solver; it sees what the observer of ``curator/session.py`` sees. Samples, and noise inside an
objective, are part of a release's secret: such fits have no such score.

**model**: a fit as a black box, by its outputs on two neighbors and nothing of how it came to them. Any function will
do: another library's model too. One half of the runs learns a score (the direction in which the outputs of the two
sides differ, relative to their spread) and a threshold; the other half is counted. Whatever the score, the bound holds;
a poor score only makes it low.

What many runs on two neighbors prove are lower bounds on epsilon, each at a stated confidence.

*Accuracy.* Guess from each run's output on which of the two data sets it ran. No test's accuracy, averaged over the two
sides, exceeds (1 + d)/2, where d is the total variation distance between the laws: for mu-Gaussian-DP Phi(mu/2). The
number of right guesses over both sides is a sum of independent coins whose mean chance is at most that; among such
sums the binomial has the heaviest upper tail (Hoeffding 1956), so that the Clopper-Pearson bound of the pooled count
is one of the accuracy. One bound for both sides is tighter than one for each.

*Rates.* For any event S, (epsilon, delta)-DP says P(S) <= e^epsilon Q(S) + delta. A lower Clopper-Pearson bound of P(S)
and an upper one of Q(S) bound epsilon from below, whatever the mechanism.

The event must be fixed before the runs that are counted.

*Solvers.* Registered solvers are audited with settings under which a canary shows all it can: one feature, a handful of
records, and steps so short that the weights stay near 0: there the canary's gradient is longer than the clip, whatever
the noise did before, so that it contributes the whole sensitivity to every answer.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from scipy.special import betaincinv, ndtri
from scipy.stats import binom

from discreet.accounting import gaussian, pld
from discreet.accounting.certificate import Certificate
from discreet.accounting.events import (
    ZCDP,
    BoundedRange,
    Event,
    Gaussian,
    Laplace,
    PerturbedMinimum,
    PoissonSampled,
    PureDP,
)
from discreet.accounting.gaussian import find_root
from discreet.accounting.plan import Plan, Release
from discreet.accounting.pricing import PricedPlan, epsilon_of, price_plan
from discreet.audit.replay_pair import Fit
from discreet.audit.result import SYNTHETIC, Audit, Sides
from discreet.bounds import Bounds
from discreet.budget import Budget, Neighbors
from discreet.curator import Measurement, PrivateData, current_entropy, observe
from discreet.errors import Unsupported
from discreet.losses import Logistic
from discreet.models.classification import DPLogisticRegression
from discreet.solvers.base import SOLVERS, AuditCase, audit_case
from discreet.typing import Array, Booleans, Floats, Integers


def least_rate(count: int, trials: int, chance: float) -> float:
    """The Clopper-Pearson lower bound of a rate: a smaller one shows so many only with this chance."""
    return 0.0 if count <= 0 else float(betaincinv(count, trials - count + 1, chance))


def largest_rate(count: int, trials: int, chance: float) -> float:
    """The Clopper-Pearson upper bound of a rate."""
    return 1.0 if count >= trials else float(betaincinv(count + 1, trials - count, 1 - chance))


def least_accuracy(right: int, guesses: int, confidence: float) -> float:
    """A lower bound on the accuracy of a fixed test from its right guesses over both sides.

    Hoeffding's comparison of tails holds from one above the mean on, hence for confidences of at least 3/4.
    """
    if not 0.75 <= confidence < 1:
        raise Unsupported("confidence lies in [0.75, 1), such as 0.99")
    return least_rate(right, guesses, 1 - confidence)


def accuracy_epsilon(accuracy: float, events: Sequence[Event], delta: float, neighbors: Neighbors) -> float | None:
    """The price of the noisiest releases of the claimed kinds that admit this accuracy; None where no formula has one.

    Gaussian releases: mu = 2 Phi^-1(accuracy). Others: all their noise is multiplied by one factor, and the largest is
    sought at which the total variation distance may still be 2 accuracy - 1: by their privacy loss distribution for
    Gaussian noise on samples, by Pinsker's inequality (2 d^2 <= rho) for what is rho-zCDP. Infinite where no noise is
    little enough, as on samples, whose distance is at most the chance of being drawn.
    """
    wanted = 2 * accuracy - 1
    distance = _distance_of(events, neighbors)
    if distance is None:
        return None
    if wanted <= 0:
        return 0.0
    if delta > 0 and all(isinstance(event, Gaussian) for event in events):
        return gaussian.epsilon_of(2 * float(ndtri(accuracy)), delta)
    if wanted > _largest_distance(events):
        return math.inf
    near = find_root(
        lambda factor: distance([event.with_noise(factor) for event in events]) >= wanted,
        2.0**-10,
        2.0**10,
        steps=20,
        ratio=True,
    )
    return epsilon_of([event.with_noise(near[1]) for event in events], delta, neighbors).epsilon


def _largest_distance(events: Sequence[Event]) -> float:
    """What no noise at all would admit: on samples, the chance of being drawn at least once."""
    missed = 0.0
    for event in events:
        if not isinstance(event, PoissonSampled):
            return 1.0
        missed += event.count * math.log1p(-min(float(event.probability), 1 - 1e-16))
    return -math.expm1(missed)


def _distance_of(events: Sequence[Event], neighbors: Neighbors) -> Callable[[Sequence[Event]], float] | None:
    """A bound on the total variation distance of releases of these kinds; None where there is none."""
    inner = [event.inner for event in events]
    if any(isinstance(event, PoissonSampled) for event in events):
        is_gaussian = all(isinstance(event, Gaussian) for event in inner)
        return partial(_sampled_distance, neighbors) if is_gaussian else None
    if all(isinstance(event, (Gaussian, Laplace, BoundedRange, PureDP, ZCDP)) for event in inner):
        return lambda scaled: math.sqrt(0.5 * math.fsum(event.zcdp for event in scaled))
    return None


def _sampled_distance(neighbors: Neighbors, events: Sequence[Event]) -> float:
    try:
        return pld.delta_of(events, 0.0, neighbors)
    except Unsupported:  # too little noise for its grid
        return 1.0


def rate_epsilon(hits: int, trials: int, others: int, other_trials: int, delta: float, confidence: float) -> float:
    """From an event's counts on both sides: the epsilon below which P <= e^epsilon Q + delta cannot be."""
    chance = (1 - confidence) / 2
    high, low = least_rate(hits, trials, chance) - delta, largest_rate(others, other_trials, chance)
    return max(0.0, math.log(high / low)) if high > 0 else 0.0


def either_epsilon(hits: int, trials: int, others: int, other_trials: int, delta: float, confidence: float) -> float:
    """``rate_epsilon`` for the event and for its complement, in both directions, at one confidence for all."""
    each = 1 - (1 - confidence) / 4
    here, there = (hits, trials), (others, other_trials)
    pairs = [(here, there), (there, here)]
    pairs += [((n - k, n), (m - j, m)) for (k, n), (j, m) in pairs]
    return max(rate_epsilon(*first, *other, delta, each) for first, other in pairs)


CLIP = 0.25  # half of a canary's gradient at w = 0
CANARIES = 20
MECHANISMS = ("gaussian", "sampled", "laplace")
SAMPLING = Fraction(1, 4)

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class _Claim:
    """What is audited: a claim, and the releases behind it where they are known."""

    level: str
    subject: str
    epsilon: float
    delta: float
    neighbors: Neighbors
    confidence: float
    events: Sequence[Event] | None = None

    def priced(self, accuracy: float) -> float | None:
        """Return the epsilon that this accuracy of guesses refutes; None where the releases do not tell."""
        if self.events is None:
            return None
        return accuracy_epsilon(accuracy, self.events, self.delta, self.neighbors)

    def by_accuracy(self, right: int, guesses: int) -> float | None:
        """Return the bound on epsilon from the number of right guesses; None where the releases do not tell."""
        return self.priced(least_accuracy(right, guesses, self.confidence))

    def by_rates(self, low: Floats, high: Floats, threshold: float) -> float:
        """Return the bound on epsilon from how often each side's score reaches the threshold."""
        hits, others = int((high >= threshold).sum()), int((low >= threshold).sum())
        return either_epsilon(hits, high.size, others, low.size, self.delta, self.confidence)

    def at(self, low: Floats, high: Floats, threshold: float) -> float:
        """Return the bound from the guess "the neighbor where the score reaches the threshold"."""
        bound = self.by_accuracy(_right(low, high, threshold), low.size + high.size)
        return self.by_rates(low, high, threshold) if bound is None else bound

    def result(self, bound: float, runs: int, sides: Sides, **more: Any) -> Audit:
        """Return the audit."""
        return Audit(
            level=self.level,
            subject=self.subject,
            neighbors=str(self.neighbors),
            claimed=self.epsilon,
            delta=self.delta,
            bound=bound,
            confidence=self.confidence,
            runs=runs,
            sides=sides,
            **more,
        )


def _right(low: Floats, high: Floats, threshold: float) -> int:
    return int((high >= threshold).sum()) + int((low < threshold).sum())


def _both_sides(
    runs: int, first: Callable[[], object], second: Callable[[], object], progress: Progress | None
) -> tuple[list[Any], list[Any]]:
    """Run both sides in turn."""
    low, high = [], []
    for index in range(runs):
        low.append(first())
        high.append(second())
        if progress is not None:
            progress(index + 1, runs)
    return low, high


# --- one answer of the curator ---------------------------------------------------------------------


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


def canary_table(relation: Neighbors, inside: Booleans) -> Sample:
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
        -_releases(canary_table(relation, np.full(CANARIES, inside)), releases, mechanism, single)
        for inside in (False, True)
    )
    near, far = (CLIP if relation is Neighbors.REPLACE_ONE else 0.0) * -1, CLIP
    subject = f"one noisy gradient ({mechanism})"
    claim = _Claim("gradient", subject, budget.epsilon, budget.delta, relation, confidence, single.events)
    if mechanism == "laplace":
        threshold = far
        bound = claim.by_rates(low, high, far)
    else:
        threshold = 0.5 * (near + far)
        bound = claim.by_accuracy(_right(low, high, threshold), 2 * low.size) or 0.0
    settings = {"mechanism": mechanism, "canaries": CANARIES, "clip": CLIP, "noise_multiplier": single.noise_multiplier}
    findings = () if _is_fresh(low) and _is_fresh(high) else ("two releases have the same noise",)
    return claim.result(bound, low.size, Sides.of(low, high, threshold), findings=findings, settings=settings)


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


# --- a single release ------------------------------------------------------------------------------


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
    table = canary_table(relation, coins)
    data = PrivateData(table.X, table.y, Bounds(features=1.0, classes=(0, 1)), fit_intercept=False, ledger=False)
    released = -data.open(priced, Logistic()).noisy_gradient(np.zeros(canaries), clip=CLIP)
    middle = 0.0 if relation is Neighbors.REPLACE_ONE else 0.5 * CLIP
    tried = np.argsort(-np.abs(released - middle))[: max(1, round(guessed * canaries))]
    right = int(((released[tried] >= middle) == coins[tried]).sum())
    bound = least_epsilon(right, len(tried), canaries, delta, confidence)
    claim = _Claim("one_run", f"one noisy gradient of {canaries} features", epsilon, delta, relation, confidence)
    settings = {
        "canaries": canaries,
        "guessed": len(tried),
        "right": right,
        "noise_multiplier": priced.noise_multiplier,
    }
    return claim.result(bound, 1, Sides.of(released[~coins], released[coins], middle), settings=settings)


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


# --- a whole fit, from its transcript --------------------------------------------------------------


def transcript(
    fit: Fit,
    data: Sequence[object],
    neighbor: Sequence[object],
    *,
    runs: int = 2000,
    confidence: float = 0.99,
    subject: str = "a fit",
    named: str = SYNTHETIC,
    progress: Progress | None = None,
) -> Audit:
    """Audit everything that a fit asks the curator, on two neighbors.

    Parameters
    ----------
    fit : callable
        ``fit(X, y, groups)`` returns an object with a ``certificate_``.
    data, neighbor : sequence
        (X, y) or (X, y, groups).
    runs : int, default=2000
        On each side; a run is two fits.
    confidence : float, default=0.99
        The chance that the bound does not exceed the truth.
    subject : str, default="a fit"
        What is audited, for the result.
    named : str, default="synthetic"
        What the data are called in the result; they should be synthetic.
    progress : callable, default=None
        Called with the number of runs done, and of all.

    Raises
    ------
    Unsupported
        If samples, or noise inside an objective, hide what happened.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet import DPLogisticRegression, audit
    >>> from discreet.solvers import GradientDescent
    >>> model = DPLogisticRegression(delta=1e-6, bounds=1.0, classes=(0, 1), solver=GradientDescent(n_steps=2))
    >>> X = np.eye(4)
    >>> audit.transcript(model.fit, (X, np.array([0, 1, 0, 1])), (X, np.array([1, 1, 0, 1])), runs=20).refuted
    False
    """
    stated: Certificate = fit(*data).certificate_
    if any(isinstance(event, (PoissonSampled, PerturbedMinimum)) for event in stated.events):
        raise Unsupported("samples, and noise inside an objective, are secret: audit the model, or its gradient")
    claim = _Claim("transcript", subject, stated.epsilon, stated.delta, stated.neighbors, confidence, stated.events)
    sides = _both_sides(runs, lambda: -_ratio(fit, data, neighbor), lambda: _ratio(fit, neighbor, data), progress)
    low, high = (np.array(side) for side in sides)
    # A score of exactly 0 tells nothing: it is a guess by a fair coin, half a right one.
    right = int((high > 0).sum() + (low < 0).sum()) + int((high == 0).sum() + (low == 0).sum()) // 2
    bound = claim.by_accuracy(right, 2 * runs)
    if bound is None:
        bound = _any_epsilon(claim, low, high)
    settings = {"releases": len(_written(fit, data)[0])}
    return claim.result(bound, runs, Sides.of(low, high, 0.0), data=named, settings=settings)


def _any_epsilon(claim: _Claim, low: Floats, high: Floats) -> float:
    """Without a family: the event that the likelihood ratio exceeds a threshold, which the first halves choose."""
    half = len(low) // 2
    finite = np.clip(np.concatenate([low[:half], high[:half]]), -1e300, 1e300)
    tried = np.nextafter(np.quantile(finite, np.linspace(0.05, 0.95, 37)), np.inf)
    best = max(tried.tolist(), key=lambda threshold: claim.by_rates(low[:half], high[:half], threshold))
    return claim.by_rates(low[half:], high[half:], best)


def _written(
    fit: Fit, data: Sequence[object], forced: Sequence[Integers] = ()
) -> tuple[list[Measurement], list[Integers]]:
    """What a fit asked, and what it was answered: the forced answers, where there are some."""
    measurements: list[Measurement] = []
    answered: list[Integers] = []

    def look(measurement: Measurement) -> Integers:
        if measurement.query.startswith("sample_"):
            raise Unsupported("an answer that is itself drawn has no transcript score: audit the model")
        index = len(measurements)
        measurements.append(measurement)
        answered.append(forced[index] if index < len(forced) else measurement.noisy)
        return answered[-1].copy()

    with observe(look):
        fit(*data)
    return measurements, answered


def _ratio(fit: Fit, data: Sequence[object], other: Sequence[object]) -> float:
    """The log-likelihood ratio of one run's answers: its own data set over the other."""
    measurements, answered = _written(fit, data)
    replayed, _ = _written(fit, other, answered)
    pairs = zip(measurements, replayed, answered, strict=False)
    return float(sum(_log_ratio(mine, theirs, answer) for mine, theirs, answer in pairs))


def _log_ratio(mine: Measurement, theirs: Measurement, answer: Integers) -> float:
    """Of one answer, by the law that its measurement announces."""
    if mine.exact.shape != theirs.exact.shape:
        return 0.0
    if mine.unit.m is None:  # no noise at all: what differs gives itself away
        return 0.0 if (mine.exact == theirs.exact).all() else math.inf
    scale = 2.0**mine.unit.m
    if mine.norm in ("linf", "range"):
        choice = int(answer[0])
        return _log_chance(mine.exact, choice, scale) - _log_chance(theirs.exact, choice, scale)
    a, b = ((answer - side.exact).astype(np.float64) / scale for side in (mine, theirs))
    if mine.norm == "l1":
        return float(np.abs(b).sum() - np.abs(a).sum())
    return float((b * b).sum() - (a * a).sum()) / 2


def _log_chance(scores: Integers, chosen: int, scale: float) -> float:
    """Of a choice by the exponential mechanism; for its kin a good score still."""
    exponents = scores.astype(np.float64) / scale
    top = exponents.max()
    return float(exponents[chosen] - top - np.log(np.exp(exponents - top).sum()))


# --- a black box -----------------------------------------------------------------------------------


def vector(output: Any) -> Floats:
    """What a fit gave out as numbers: an array, or a model's (a pipeline's last step's) coefficients and intercept."""
    if hasattr(output, "steps"):
        output = output[-1]
    if hasattr(output, "coef_"):
        return np.concatenate([np.ravel(output.coef_), np.ravel(getattr(output, "intercept_", ()))])
    return np.ravel(np.asarray(output, dtype=np.float64))


def model(
    fit: Callable[..., object],
    data: Sequence[object],
    neighbor: Sequence[object],
    *,
    epsilon: float,
    delta: float = 0.0,
    neighbors: str = "replace_one",
    runs: int = 2000,
    confidence: float = 0.99,
    events: Sequence[Event] | None = None,
    subject: str = "a fit",
    named: str = SYNTHETIC,
    progress: Progress | None = None,
) -> Audit:
    """Audit what ``fit(*data)`` returns against its claim of (epsilon, delta)-DP.

    Parameters
    ----------
    fit : callable
        Any function of (X, y) or (X, y, groups) with fresh randomness in every call; returns a model with ``coef_`` or
        an array.
    data, neighbor : sequence
        Two data sets that are neighbors under the claim's relation.
    epsilon : float
        The claim.
    delta : float, default=0.0
        Of the claim.
    neighbors : str, default="replace_one"
        The relation.
    runs : int, default=2000
        On each side; half of them are counted.
    events : sequence of Event, default=None
        What the claim says was released (a certificate's events): then the accuracy of a guess is enough, and the bound
        is much tighter where there is a formula for it. Else it follows from the rates of one event alone.
    confidence, subject, named, progress
        As in ``transcript``.

    Raises
    ------
    Unsupported
        If there are too few runs.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet import audit
    >>> X, y = np.ones((4, 1)), np.zeros(4)
    >>> def fit(X, y):  # the exact mean: not private at all
    ...     return np.array([y.mean()])
    >>> audit.model(fit, (X, y), (X, y + 1), epsilon=1.0, runs=50).refuted
    True
    """
    if runs < 2:
        raise Unsupported("a black box needs runs to learn from and runs to count: at least 2 on each side")
    first, second = _both_sides(runs, lambda: _outcome(fit, data), lambda: _outcome(fit, neighbor), progress)
    low, high = _aligned(first, second)
    half, relation = runs // 2, Neighbors(neighbors)
    claim = _Claim("model", subject, epsilon, delta, relation, confidence, events)
    score = _learned(low[:half], high[:half])
    (a, b), (c, d) = ((score(side[:half]), score(side[half:])) for side in (low, high))
    threshold = _threshold(claim, a, c)
    settings = {"learned_on": half, "by_accuracy": claim.priced(0.75) is not None}
    sides = Sides.of(b, d, threshold)
    return claim.result(claim.at(b, d, threshold), runs - half, sides, data=named, settings=settings)


def _outcome(fit: Callable[..., object], data: Sequence[object]) -> Floats:
    """What a fit shows; that it failed is an outcome too, without numbers."""
    try:
        return vector(fit(*data))
    except Exception:
        return np.empty(0)


def _aligned(*sides: list[Floats]) -> list[Floats]:
    """The outputs as rows of the commonest length; one of another length is a row of NaN."""
    lengths = [len(output) for side in sides for output in side]
    width = max(set(lengths), key=lambda length: (lengths.count(length), length)) or 1
    missing = np.full(width, np.nan)
    return [np.stack([output if len(output) == width else missing for output in side]) for side in sides]


def _learned(low: Floats, high: Floats) -> Callable[[Floats], Floats]:
    """A score of outputs: Fisher's direction on ranks' scale, and a place of its own for what is not finite."""
    finite = np.isfinite(low).all(axis=1), np.isfinite(high).all(axis=1)
    if min(part.sum() for part in finite) < 2:
        sign = 1.0 if finite[1].mean() <= finite[0].mean() else -1.0
        return lambda outputs: np.where(np.isfinite(outputs).all(axis=1), 0.0, sign)
    center, spread = _center(np.vstack([low[finite[0]], high[finite[1]]]))

    def squeezed(outputs: Floats) -> Floats:  # far values must not decide the direction
        with np.errstate(over="ignore"):
            return np.clip((np.nan_to_num(outputs) - center) / spread, -6.0, 6.0)

    lower, higher = squeezed(low[finite[0]]), squeezed(high[finite[1]])
    covariance = np.atleast_2d(np.cov(lower.T) + np.cov(higher.T)) / 2 + 1e-6 * np.eye(low.shape[1])
    direction = np.linalg.solve(covariance, higher.mean(axis=0) - lower.mean(axis=0))
    sign = 1.0 if finite[1].mean() <= finite[0].mean() else -1.0

    def score(outputs: Floats) -> Floats:
        return np.where(np.isfinite(outputs).all(axis=1), squeezed(outputs) @ direction, sign * 1e9)

    return score


def _center(values: Floats) -> tuple[Floats, Floats]:
    quartiles = np.quantile(np.clip(values, -1e150, 1e150), [0.25, 0.5, 0.75], axis=0)
    spread = quartiles[2] - quartiles[0]
    return quartiles[1], np.where(spread > 0, spread, 1.0)


def _threshold(claim: _Claim, low: Floats, high: Floats) -> float:
    """Return the threshold at which the runs to learn from prove most."""
    tried = np.unique(np.quantile(np.concatenate([low, high]), np.linspace(0.002, 0.998, 200)))
    if claim.priced(0.75) is not None:  # more right guesses prove more, whatever their price
        return float(max(tried, key=lambda at: _right(low, high, at)))
    return float(max(tried, key=lambda at: claim.by_rates(low, high, at)))


ROWS = 2
BOUNDS = Bounds(features=1.0, classes=(0, 1), n=None)


@dataclass(frozen=True, kw_only=True)
class SolverCase(AuditCase):
    """How the solver of this name is audited."""

    name: str

    def fit(self, epsilon: float, delta: float, relation: Neighbors) -> Fit:
        """A fit function at this claim."""
        return partial(_fit, self, epsilon, delta, relation)


def _fit(
    subject: SolverCase, epsilon: float, delta: float, relation: Neighbors, X: object, y: object, groups: object = None
) -> DPLogisticRegression:
    bounds = BOUNDS if relation.n_is_public else BOUNDS.with_facts(n=ROWS)
    model = DPLogisticRegression(
        epsilon=epsilon,
        delta=delta,
        bounds=bounds,
        penalty="l2" if subject.alpha else None,
        alpha=subject.alpha,
        solver=subject.solver,
        neighbors=str(relation),
        fit_intercept=False,
        ledger=False,
    )
    return model.fit(X, y, groups)


def solver_case(name: str) -> SolverCase:
    """Return the case that a registered solver makes, as its own file says."""
    return SolverCase(**vars(audit_case(name)), name=name)


def solver_cases() -> tuple[SolverCase, ...]:
    """Return all that can be audited by name."""
    return tuple(solver_case(name) for name in SOLVERS.names())


def neighbors_of(relation: Neighbors) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    """Two tables of one feature: a canary's label is exchanged, or it is blanked, or there is one more."""
    X, y = np.ones((ROWS, 1)), np.ones(ROWS, dtype=int)
    if relation is Neighbors.REPLACE_ONE:
        other = y.copy()
        other[0] = 0
        return (X, y), (X, other)
    if relation is Neighbors.ZERO_OUT:
        blank = X.copy()
        blank[0] = np.nan
        return (X, y), (blank, y)
    return (X, y), (np.ones((ROWS + 1, 1)), np.ones(ROWS + 1, dtype=int))


def audited(
    subject: SolverCase,
    relation: Neighbors | str,
    *,
    epsilon: float,
    delta: float,
    runs: int,
    confidence: float,
    progress: Callable[[int, int], None] | None = None,
) -> Audit:
    """One solver under one relation, at the level that suits it."""
    relation = Neighbors(relation)
    data, neighbor = neighbors_of(relation)
    fit, count = subject.fit(epsilon, delta, relation), max(50, round(runs * subject.effort))
    if subject.level == "transcript":
        return transcript(
            fit, data, neighbor, runs=count, confidence=confidence, subject=subject.name, progress=progress
        )
    return model(
        fit,
        data,
        neighbor,
        epsilon=epsilon,
        delta=delta,
        neighbors=str(relation),
        runs=count,
        confidence=confidence,
        events=fit(*data).certificate_.events,
        subject=subject.name,
        progress=progress,
    )
