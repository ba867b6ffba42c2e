"""The guarantee for several records at once."""

import math

from discreet.errors import AccountingError


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
