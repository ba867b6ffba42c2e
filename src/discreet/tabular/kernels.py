"""Columns into features, one pass, each row for itself."""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def scale_column(values, low, high, middle, half, absent, out):  # type: ignore[no-untyped-def]
    """(x - middle) / half with x clipped to [low, high], within [-1, 1]; ``absent`` where x is not finite."""
    for i in range(values.size):
        x = values[i]
        if abs(x) < np.inf:  # False for NaN too
            scaled = (min(max(x, low), high) - middle) / half
            out[i] = min(max(scaled, -1.0), 1.0)
        else:
            out[i] = absent
