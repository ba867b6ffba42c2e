"""Audit of a fit as a black box: its outputs on two neighbors, and nothing of how it came to them.

Any function will do: another library's model too. One half of the runs learns a score (the direction in which the
outputs of the two sides differ, relative to their spread) and a threshold; the other half is counted. Whatever the
score, the bound holds; a poor score only makes it low.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from discreet.accounting.events import Event
from discreet.accounting.pricing import remembered_prices
from discreet.audit import statistical_bounds
from discreet.audit.audit_result import SYNTHETIC, Audit, Sides
from discreet.budget import Neighbors
from discreet.errors import Unsupported
from discreet.typing import Floats


def vector(output: Any) -> Floats:
    """What a fit gave out as numbers: an array, or a model's (a pipeline's last step's) coefficients and intercept."""
    if hasattr(output, "steps"):
        output = output[-1]
    if hasattr(output, "coef_"):
        return np.concatenate([np.ravel(output.coef_), np.ravel(getattr(output, "intercept_", ()))])
    return np.ravel(np.asarray(output, dtype=np.float64))


def model(
    fit: Callable[..., Any],
    data: Sequence[Any],
    neighbor: Sequence[Any],
    *,
    epsilon: float,
    delta: float = 0.0,
    neighbors: str = "replace_one",
    runs: int = 2000,
    confidence: float = 0.99,
    events: Sequence[Event] | None = None,
    subject: str = "a fit",
    named: str = SYNTHETIC,
    progress: Callable[[int, int], None] | None = None,
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
    confidence : float, default=0.99
        The chance that the bound does not exceed the truth.
    events : sequence of Event, default=None
        What the claim says was released (a certificate's events): then the accuracy of a guess is enough, and the bound
        is much tighter where there is a formula for it. Else it follows from the rates of one event alone.
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
    outputs: tuple[list[Floats], list[Floats]] = ([], [])
    with remembered_prices():
        for index in range(runs):
            for side, given in zip(outputs, (data, neighbor), strict=True):
                side.append(_outcome(fit, given))
            if progress is not None:
                progress(index + 1, runs)
    low, high = _aligned(*outputs)
    half, relation = runs // 2, Neighbors(neighbors)

    def price(accuracy: float) -> float | None:
        return None if events is None else statistical_bounds.accuracy_epsilon(accuracy, events, delta, relation)

    by_accuracy = price(0.75) is not None
    score = _learned(low[:half], high[:half])
    (a, b), (c, d) = ((score(side[:half]), score(side[half:])) for side in (low, high))
    threshold = _threshold(a, c, delta, confidence, by_accuracy=by_accuracy)
    bound = _bound(b, d, threshold, delta, confidence, by_accuracy=by_accuracy)
    if by_accuracy:
        bound = price(bound) or 0.0
    return Audit(
        level="model",
        subject=subject,
        neighbors=str(relation),
        claimed=epsilon,
        delta=delta,
        bound=bound,
        confidence=confidence,
        runs=runs - half,
        data=named,
        settings={"learned_on": half, "by_accuracy": by_accuracy},
        sides=Sides.of(b, d, threshold),
    )


def _outcome(fit: Callable[..., Any], data: Sequence[Any]) -> Floats:
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

    one, other = squeezed(low[finite[0]]), squeezed(high[finite[1]])
    covariance = np.atleast_2d(np.cov(one.T) + np.cov(other.T)) / 2 + 1e-6 * np.eye(low.shape[1])
    direction = np.linalg.solve(covariance, other.mean(axis=0) - one.mean(axis=0))
    sign = 1.0 if finite[1].mean() <= finite[0].mean() else -1.0

    def score(outputs: Floats) -> Floats:
        return np.where(np.isfinite(outputs).all(axis=1), squeezed(outputs) @ direction, sign * 1e9)

    return score


def _center(values: Floats) -> tuple[Floats, Floats]:
    quartiles = np.quantile(np.clip(values, -1e150, 1e150), [0.25, 0.5, 0.75], axis=0)
    spread = quartiles[2] - quartiles[0]
    return quartiles[1], np.where(spread > 0, spread, 1.0)


def _threshold(low: Floats, high: Floats, delta: float, confidence: float, *, by_accuracy: bool) -> float:
    both = np.concatenate([low, high])
    tried = np.unique(np.quantile(both, np.linspace(0.002, 0.998, 200)))
    return float(max(tried, key=lambda at: _bound(low, high, at, delta, confidence, by_accuracy=by_accuracy)))


def _bound(low: Floats, high: Floats, threshold: float, delta: float, confidence: float, *, by_accuracy: bool) -> float:
    """A lower bound on the accuracy of the guess "above the threshold", or on epsilon by the rates of that event."""
    hits, others = int((high >= threshold).sum()), int((low >= threshold).sum())
    if by_accuracy:
        return statistical_bounds.least_accuracy(hits + len(low) - others, len(low) + len(high), confidence)
    return statistical_bounds.either_epsilon(hits, len(high), others, len(low), delta, confidence)
