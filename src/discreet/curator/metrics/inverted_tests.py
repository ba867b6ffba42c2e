"""Intervals by inverting a test: all values that the noise does not refute.

At the true value a known combination of the exact sums is zero, so what was released of it is noise alone, of a known
law. The values at which it is no larger than that law allows at level alpha contain the true one with probability at
least 1 - alpha, also where a ratio of two noisy numbers has no useful distribution.
"""

from collections.abc import Callable


def kept(refuted: Callable[[float], bool], start: float, end: float, steps: int = 32) -> float:
    """How far from ``start`` toward ``end`` values are kept: the end itself where it is not refuted.

    ``start`` is where the released combination is zero. Bisection ends on the refuted side, which is the safe one.
    """
    if not refuted(end):
        return end
    inside, outside = start, end
    for _ in range(steps):
        middle = (inside + outside) / 2
        inside, outside = (inside, middle) if refuted(middle) else (middle, outside)
    return outside
