"""Where a condition changes, as a bracket of which the caller takes the private end."""

import math
from collections.abc import Callable


def find_root(
    holds: Callable[[float], bool],
    low: float,
    high: float,
    *,
    steps: int = 200,
    width: float = 0.0,
    ratio: bool = False,
) -> tuple[float, float]:
    """Bisect between a point at which a condition holds and a higher one at which it fails.

    Returns the last point at which it was found to hold and the first at which it was found to fail: the caller takes
    the end that is safe. Ends at a relative ``width``, at two neighboring doubles, or after so many ``steps``; halves
    the logarithm of the bracket where ``ratio``.
    """
    for _ in range(steps):
        middle = math.sqrt(low * high) if ratio else 0.5 * (low + high)
        if not low < middle < high or high - low <= width * high:
            break
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low, high


def bracketed(reached: Callable[[float], bool], start: float, factor: float = 2.0) -> float:
    """Multiply ``start`` by ``factor`` until a condition holds; an OverflowError where no double meets it."""
    point = start
    while not reached(point):
        point *= factor
        if not 0 < point < math.inf:
            raise OverflowError("no double meets the condition")
    return point
