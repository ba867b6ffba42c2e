"""Audit of a whole fit by its transcript: everything that was released, weighed by its likelihood on either side.

A fit is run on a data set, and every answer that it got is written down. The same fit is replayed on the neighbor with
those answers forced upon it, so that each release's exact sum is known on both sides for the very same history. The
log-likelihood ratio of the answers under the announced noise is then the best score there is, and 0 the threshold:
nothing is learned from the runs that are counted. It needs no knowledge of the solver; it sees what the observer of
``curator/observer.py`` sees. Samples, and noise inside an objective, are part of a release's secret: such fits have
no such score.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from discreet.accounting.certificate import Certificate
from discreet.accounting.events import PerturbedMinimum, PoissonSampled
from discreet.accounting.pricing import remembered_prices
from discreet.audit import statistical_bounds
from discreet.audit.audit_result import SYNTHETIC, Audit, Sides
from discreet.curator import Measurement, observe
from discreet.errors import Unsupported
from discreet.typing import Floats, Integers

Fit = Callable[..., Any]


def transcript(
    fit: Fit,
    data: Sequence[Any],
    neighbor: Sequence[Any],
    *,
    runs: int = 2000,
    confidence: float = 0.99,
    subject: str = "a fit",
    named: str = SYNTHETIC,
    progress: Callable[[int, int], None] | None = None,
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

    Returns
    -------
    Audit
        Its bound and its verdict.

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
    claim: Certificate = fit(*data).certificate_
    if any(isinstance(event, (PoissonSampled, PerturbedMinimum)) for event in claim.events):
        raise Unsupported("samples, and noise inside an objective, are secret: audit the model, or its gradient")
    sides: list[list[float]] = [[], []]
    with remembered_prices():
        for index in range(runs):
            sides[0].append(-_ratio(fit, data, neighbor))
            sides[1].append(_ratio(fit, neighbor, data))
            if progress is not None:
                progress(index + 1, runs)
    low, high = (np.array(side) for side in sides)
    # A score of exactly 0 tells nothing: it is a guess by a fair coin, half a right one.
    right = int((high > 0).sum() + (low < 0).sum()) + int((high == 0).sum() + (low == 0).sum()) // 2
    accuracy = statistical_bounds.least_accuracy(right, 2 * runs, confidence)
    bound = statistical_bounds.accuracy_epsilon(accuracy, claim.events, claim.delta, claim.neighbors)
    if bound is None:
        bound = _any_epsilon(low, high, claim.delta, confidence)
    return Audit(
        level="transcript",
        subject=subject,
        neighbors=str(claim.neighbors),
        claimed=claim.epsilon,
        delta=claim.delta,
        bound=bound,
        confidence=confidence,
        runs=runs,
        data=named,
        settings={"releases": len(_written(fit, data)[0])},
        sides=Sides.of(low, high, 0.0),
    )


def _any_epsilon(low: Floats, high: Floats, delta: float, confidence: float) -> float:
    """Without a family: the event that the likelihood ratio exceeds a threshold, which the first halves choose."""
    half = len(low) // 2
    finite = np.clip(np.concatenate([low[:half], high[:half]]), -1e300, 1e300)
    tried = np.quantile(finite, np.linspace(0.05, 0.95, 37))

    def at(threshold: float, first: slice) -> float:
        hits, others = int((high[first] > threshold).sum()), int((low[first] > threshold).sum())
        count = len(low[first])
        return statistical_bounds.either_epsilon(hits, count, others, count, delta, confidence)

    best = max(tried.tolist(), key=lambda threshold: at(threshold, slice(None, half)))
    return at(best, slice(half, None))


def _written(
    fit: Fit, data: Sequence[Any], forced: Sequence[Integers] = ()
) -> tuple[list[Measurement], list[Integers]]:
    """What a fit asked, and what it was answered: the forced answers, where there are some."""
    asked: list[Measurement] = []
    answered: list[Integers] = []

    def look(measurement: Measurement) -> Integers:
        if measurement.query.startswith("sample_"):
            raise Unsupported("an answer that is itself drawn has no transcript score: audit the model")
        index = len(asked)
        asked.append(measurement)
        answered.append(forced[index] if index < len(forced) else measurement.noisy)
        return answered[-1].copy()

    with observe(look):
        fit(*data)
    return asked, answered


def _ratio(fit: Fit, own: Sequence[Any], other: Sequence[Any]) -> float:
    """The log-likelihood ratio of one run's answers: its own data set over the other."""
    asked, answered = _written(fit, own)
    replayed, _ = _written(fit, other, answered)
    pairs = zip(asked, replayed, answered, strict=False)
    return float(sum(_log_ratio(mine, theirs, answer) for mine, theirs, answer in pairs))


def _log_ratio(mine: Measurement, theirs: Measurement, answer: Integers) -> float:
    """Of one answer, by the law that its measurement announces."""
    if mine.exact.shape != theirs.exact.shape:
        return 0.0
    if mine.unit.m is None:  # no noise at all: what differs gives itself away
        return 0.0 if (mine.exact == theirs.exact).all() else math.inf
    scale = 2.0**mine.unit.m
    if mine.norm in ("linf", "range"):
        chosen = int(answer[0])
        return _log_chance(mine.exact, chosen, scale) - _log_chance(theirs.exact, chosen, scale)
    a, b = ((answer - side.exact).astype(np.float64) / scale for side in (mine, theirs))
    if mine.norm == "l1":
        return float(np.abs(b).sum() - np.abs(a).sum())
    return float((b * b).sum() - (a * a).sum()) / 2


def _log_chance(scores: Integers, chosen: int, scale: float) -> float:
    """Of a choice by the exponential mechanism; for its kin a good score still."""
    exponents = scores.astype(np.float64) / scale
    top = exponents.max()
    return float(exponents[chosen] - top - np.log(np.exp(exponents - top).sum()))
