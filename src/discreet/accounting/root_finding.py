"""Roots, approached from the private side: where a condition changes, and where a decreasing cost meets its target."""

import math
from collections.abc import Callable

from discreet.errors import AccountingError


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


def solve(
    cost: Callable[[float], float],
    target: float,
    start: float,
    *,
    tolerance: float,
    slope: float = -1.0,
) -> float:
    """A z with (1 - tolerance) target <= cost(z) <= target, for a decreasing cost.

    Log-cost is almost a line in log z: a secant step aimed just inside the target, kept within the
    bracket. Ends on a point whose cost was computed and found affordable.
    """
    aim = math.log(target) + math.log1p(-0.4 * tolerance)
    short: tuple[float, float] | None = None  # the largest z known to be too little, with its log-cost
    enough: tuple[float, float] | None = None  # the smallest z known to be enough
    z = start
    for _ in range(200):
        spent = cost(z)
        here = (z, math.log(max(spent, 1e-300)))
        if spent <= target:
            if spent >= target * (1 - tolerance) or (short and z - short[0] <= 1e-13 * z):
                return z
            enough = here
        else:
            short = here
        if short and enough and short[1] > enough[1]:
            slope = (enough[1] - short[1]) / math.log(enough[0] / short[0])
        z = following(here, aim, slope, short, enough)
    if enough is None:
        raise AccountingError("no amount of noise meets this budget: allow a larger epsilon or take fewer steps")
    return enough[0]


def following(
    here: tuple[float, float],
    aim: float,
    slope: float,
    short: tuple[float, float] | None,
    enough: tuple[float, float] | None,
) -> float:
    """The secant's guess from the nearest point; the middle of the bracket where it would leave it."""
    jump = min(max((aim - here[1]) / slope, -3.0), 3.0)
    guess = here[0] * math.exp(jump)
    low = short[0] if short else 0.0
    high = enough[0] if enough else math.inf
    if low < guess < high:
        return guess
    return math.sqrt(low * high) if short and enough else (2 * low if short else 0.5 * high)
