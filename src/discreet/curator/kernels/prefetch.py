"""Hints to the processor: these entries will be read soon. They change times, never results; plain Python needs none.

Memory is fetched to the second-level cache: the nearest has room for few lines that are on their way, and sums would
wait for it.
"""

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload

_LINE = 64  # bytes that memory hands over at once


def prefetch_row(table, i):
    """Fetch row ``i`` of a table whose rows are contiguous."""


def prefetch_entries(array, first, last):
    """Fetch the entries ``first`` to ``last - 1`` of a contiguous array."""


@intrinsic
def _fetch_line(typingctx, array, start):
    """Fetch the line that holds the byte ``start`` of an array."""
    byte, flag = ir.IntType(8), ir.IntType(32)

    def codegen(context, builder, signature, args):
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        place = builder.gep(builder.bitcast(data, byte.as_pointer()), [args[1]])
        kind = ir.FunctionType(ir.VoidType(), [byte.as_pointer(), flag, flag, flag])
        ask = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        for_reading, to_second_cache, of_data = (ir.Constant(flag, value) for value in (0, 2, 1))
        builder.call(ask, [place, for_reading, to_second_cache, of_data])
        return context.get_dummy_value()

    return types.void(array, types.int64), codegen


@overload(prefetch_row)
def _compiled_prefetch_row(table, i):
    def fetch(table, i):
        start, length = i * table.strides[0], table.shape[1] * table.itemsize
        for offset in range(0, length, _LINE):
            _fetch_line(table, start + offset)
        _fetch_line(table, start + length - 1)  # a row may end in one line more

    return fetch


@overload(prefetch_entries)
def _compiled_prefetch_entries(array, first, last):
    def fetch(array, first, last):
        start, length = first * array.itemsize, (last - first) * array.itemsize
        for offset in range(0, length, _LINE):
            _fetch_line(array, start + offset)
        _fetch_line(array, start + length - 1)

    return fetch
