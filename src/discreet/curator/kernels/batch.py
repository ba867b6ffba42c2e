"""Sums over a sampled batch of dense rows, for one output: blocks of rows, gathered before they are used.

The rows of a sample lie far apart in memory. Copying a block of them first lets the loads overlap;
margins, slopes and sums then run on what is in the nearest cache. The arithmetic is that of
``tiles.py``, so the integers are the same bit for bit.
"""

import numpy as np
from numba import int32, int64, njit

from discreet.curator.kernels.clip import bounded
from discreet.losses.base import derivative

BLOCK = 64


@njit(cache=True, nogil=True)
def _add_rows(block, coefficients, count, out):
    """Add each of the first ``count`` rows times its coefficient, two at a time to halve the passes over ``out``."""
    for k in range(0, count - 1, 2):
        x0, x1 = block[k], block[k + 1]
        c0, c1 = int64(coefficients[k]), int64(coefficients[k + 1])
        for j in range(out.size):
            out[j] += c0 * int64(x0[j]) + c1 * int64(x1[j])
    if count % 2 == 1:
        x0, c0 = block[count - 1], int64(coefficients[count - 1])
        for j in range(out.size):
            out[j] += c0 * int64(x0[j])


@njit(cache=True, nogil=True)
def gradient_over_batch(rows, facts, chosen, w, margin_scale, scale, loss, out):
    """Add to ``out`` the sum over the chosen records of clip(loss'(margin)) x, in lattice steps.

    ``facts`` holds each row's target, weight and coefficient limit side by side: one fetch from memory, not three.
    """
    p = w.size
    block = np.empty((BLOCK, p), dtype=rows.dtype)
    margins, coefficients = np.empty(BLOCK, dtype=np.int64), np.empty(BLOCK, dtype=np.int32)
    target, weight, limit = np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK)
    for first in range(0, chosen.size, BLOCK):
        part = chosen[first : first + BLOCK]
        for k in range(part.size):
            i = part[k]
            source, copy = rows[i], block[k]
            for j in range(p):
                copy[j] = source[j]
            target[k], weight[k], limit[k] = facts[i, 0], facts[i, 1], facts[i, 2]
        for k in range(part.size):
            x, total = block[k], int64(0)
            for j in range(p):
                total += int64(x[j]) * int64(w[j])
            margins[k] = total
        for k in range(part.size):
            slope = derivative(loss, float(margins[k]) * margin_scale, target[k])
            coefficients[k] = int32(bounded(slope * (weight[k] * scale), limit[k]))
        _add_rows(block, coefficients, part.size, out)
