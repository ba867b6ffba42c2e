"""Composition theorems of the textbooks, as baselines to print; nothing is calibrated with them. And groups."""

import math

from discreet.errors import AccountingError


def basic(epsilon: float, count: int, delta: float = 0.0) -> tuple[float, float]:
    """Basic composition: (count epsilon, count delta)."""
    return count * epsilon, min(1.0, count * delta)


def advanced(epsilon: float, count: int, slack: float, delta: float = 0.0) -> tuple[float, float]:
    """Advanced composition (Dwork, Rothblum and Vadhan 2010), with an additional delta of ``slack``.

    epsilon sqrt(2 T ln(1/slack)) + T epsilon (e^epsilon - 1), and T delta + slack.
    """
    total = epsilon * math.sqrt(2 * count * math.log(1 / slack)) + count * epsilon * math.expm1(epsilon)
    return total, min(1.0, count * delta + slack)


def group(epsilon: float, delta: float, size: int) -> tuple[float, float]:
    """The guarantee for ``size`` records at once: (k epsilon, delta (e^{k epsilon} - 1)/(e^epsilon - 1)).

    *Proof.* Along a chain of k neighbors, P_i(S) <= e^epsilon P_{i+1}(S) + delta; unroll: the deltas
    add up to delta (1 + e^epsilon + ... + e^{(k-1) epsilon}). Rounded up; a delta of 1 promises nothing.
    """
    if isinstance(size, bool) or not isinstance(size, int) or size < 1:
        raise AccountingError("the size of a group must be a whole number, at least 1")
    total = size * epsilon
    if size == 1 or delta == 0:
        return (epsilon, delta) if size == 1 else (math.nextafter(total, math.inf), 0.0)
    if total > 700:
        return total, 1.0
    factor = math.expm1(total) / math.expm1(epsilon) if epsilon > 0 else float(size)
    return math.nextafter(total, math.inf), min(1.0, delta * factor * (1 + 2.0**-48))
