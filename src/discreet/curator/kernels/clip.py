"""Integer coefficients within their limit: the clip whose proof is in ``lattice.py``."""

import struct

import numpy as np
from llvmlite import ir
from numba import int64, njit, types
from numba.extending import intrinsic, overload


@njit(inline="always")
def bounded(value, limit):
    """The nearest integer to ``value`` within +-limit, as a float; 0 for NaN."""
    value = np.rint(value) if value == value else 0.0
    edge = float(limit)
    value = value if value > -edge else -edge
    return value if value < edge else edge


@njit(inline="always")
def within(value, bound):
    """``value`` clipped to +-bound; 0 for NaN: a null record adds 0, whatever its slope, since NaN * 0 is NaN."""
    value = value if value == value else 0.0
    value = value if value > -bound else -bound
    return value if value < bound else bound


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
        out[k] = int64(within(v, edge))  # toward zero, so that rounding cannot lengthen the vector
        total += abs(out[k]) if use_l1 else out[k] * out[k]
    most = limit if use_l1 else limit * limit
    while total > most:  # rounding of `factor` alone can bring us here, by a hair
        total = int64(0)
        for k in range(values.size):
            out[k] -= np.sign(out[k])
            total += abs(out[k]) if use_l1 else out[k] * out[k]


def rounded_bits(value: float) -> int:
    """The bits of a double as an integer: after adding 1.5 * 2^52, the low ones are the rounded number."""
    bits: int = struct.unpack("<q", struct.pack("<d", value))[0]
    return bits


@intrinsic
def _bitcast(typingctx, value):
    def codegen(context, builder, signature, args):
        return builder.bitcast(args[0], ir.IntType(64))

    return types.int64(types.float64), codegen


@overload(rounded_bits)
def _compiled_rounded_bits(value):
    return lambda value: _bitcast(value)
