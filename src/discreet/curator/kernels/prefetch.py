"""A hint to the processor: this row will be read soon. It changes times, never results.

Rows are fetched to the second-level cache: the nearest has room for few that are on their way, and sums would wait.
"""

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload

_LINE = 64  # bytes that memory hands over at once


def prefetch_row(table, i):
    """Ask for row ``i`` of a table of contiguous rows; plain Python needs nothing of the kind."""


@intrinsic
def _compiled_prefetch(typingctx, table, i):
    size, byte, flag = ir.IntType(64), ir.IntType(8), ir.IntType(32)

    def codegen(context, builder, signature, args):
        array = context.make_array(signature.args[0])(context, builder, args[0])
        length = builder.mul(builder.extract_value(array.shape, 1), ir.Constant(size, table.dtype.bitwidth // 8))
        start = builder.mul(args[1], builder.extract_value(array.strides, 0))
        data = builder.bitcast(array.data, byte.as_pointer())
        kind = ir.FunctionType(ir.VoidType(), [byte.as_pointer(), flag, flag, flag])
        ask = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        for_reading, to_second_cache, of_data = (ir.Constant(flag, value) for value in (0, 2, 1))

        def fetch(offset):
            place = builder.gep(data, [builder.add(start, offset)])
            builder.call(ask, [place, for_reading, to_second_cache, of_data])

        steps = (ir.Constant(size, 0), length, ir.Constant(size, _LINE))
        with cgutils.for_range_slice(builder, *steps, intp=size) as (offset, _):
            fetch(offset)
        fetch(builder.sub(length, ir.Constant(size, 1)))  # a row may begin in the midst of a line, and end in another
        return context.get_dummy_value()

    return types.void(table, types.int64), codegen


@overload(prefetch_row)
def _prefetch_row(table, i):
    return lambda table, i: _compiled_prefetch(table, i)
