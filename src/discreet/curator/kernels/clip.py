"""Integer coefficients within their limit: the clip whose proof is in ``lattice.py``."""

import numpy as np
from numba import int64, njit


@njit(inline="always")
def bounded(value, limit):
    """The nearest integer to ``value`` within +-limit, as a float; 0 for NaN."""
    value = np.rint(value) if value == value else 0.0
    edge = float(limit)
    return min(max(value, -edge), edge)


@njit(inline="always")
def bound_vector(values, limit, use_l1, out):
    """Integers near ``values`` whose L2 norm (L1 where ``use_l1``) is at most ``limit``, checked in integers."""
    size = 0.0
    for k in range(values.size):
        v = values[k]
        size += abs(v) if use_l1 else v * v
    if not use_l1:
        size = np.sqrt(size)
    edge = float(limit)
    factor = 1.0 if size <= edge else edge / size
    total = int64(0)
    for k in range(values.size):
        v = values[k] * factor
        v = min(max(v, -edge), edge) if v == v else 0.0
        out[k] = int64(v)  # toward zero, so that rounding cannot lengthen the vector
        total += abs(out[k]) if use_l1 else out[k] * out[k]
    most = limit if use_l1 else limit * limit
    while total > most:  # rounding of `factor` alone can bring us here, by a hair
        total = int64(0)
        for k in range(values.size):
            out[k] -= np.sign(out[k])
            total += abs(out[k]) if use_l1 else out[k] * out[k]
