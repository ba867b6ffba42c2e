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
def _fetch(typingctx, array, start, length):
    """Fetch ``length`` bytes from the byte ``start`` on."""
    size, byte, flag = ir.IntType(64), ir.IntType(8), ir.IntType(32)

    def codegen(context, builder, signature, args):
        _, start, length = args
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        begin = builder.gep(builder.bitcast(data, byte.as_pointer()), [start])
        kind = ir.FunctionType(ir.VoidType(), [byte.as_pointer(), flag, flag, flag])
        ask = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        for_reading, to_second_cache, of_data = (ir.Constant(flag, value) for value in (0, 2, 1))
        steps = (ir.Constant(size, 0), length, ir.Constant(size, _LINE))
        with cgutils.for_range_slice(builder, *steps, intp=size) as (offset, _):
            builder.call(ask, [builder.gep(begin, [offset]), for_reading, to_second_cache, of_data])
        end = builder.gep(begin, [builder.sub(length, ir.Constant(size, 1))])  # which may lie in one line more
        builder.call(ask, [end, for_reading, to_second_cache, of_data])
        return context.get_dummy_value()

    return types.void(array, types.int64, types.int64), codegen


@overload(prefetch_row)
def _compiled_prefetch_row(table, i):
    return lambda table, i: _fetch(table, i * table.strides[0], table.shape[1] * table.itemsize)


@overload(prefetch_entries)
def _compiled_prefetch_entries(array, first, last):
    return lambda array, first, last: _fetch(array, first * array.itemsize, (last - first) * array.itemsize)
