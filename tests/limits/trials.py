"""Means over seeds with their standard errors, and the rule by which a comparison fails.

A mean that is worse than it may be by more than two standard errors is measured again with four times as many fresh
seeds, and fails where it is worse by two standard errors again: about one in a thousand where there is no difference.
Ten standard errors need no second look. An excess beyond 1 counts as 1: few that are huge must not raise the error
that would excuse them.
"""

from collections.abc import Callable, Iterable

import numpy as np

ERRORS, CLEAR, MOST = 2.0, 10.0, 1.0


def mean_and_error(values: Iterable[float]) -> tuple[float, float]:
    """Return the mean of independent values and its standard error."""
    found = np.array(list(values))
    return float(found.mean()), float(found.std(ddof=1) / np.sqrt(len(found)))


def worse(one: Callable[[int], float], seeds: int) -> tuple[float, float] | None:
    """Return mean and error of an excess that should not be positive, where it is beyond chance; else None."""
    start = 0
    for count in (seeds, 4 * seeds):
        mean, error = mean_and_error(np.minimum(one(seed), MOST) for seed in range(start, start + count))
        if not mean > ERRORS * error:  # a NaN is worse
            return None if mean == mean else (mean, error)
        if mean > CLEAR * error:
            break
        start += count
    return mean, error
