"""Hints to compiler and processor, and blocks laid out as kernels read them: they change times, never results.

A loop over a logistic derivative is one long chain of dependent operations, and the compiler deems its body too
large to overlap with the next: most of the time the processor waits. ``interleaved`` asks for four chains side by
side; each element is computed by the same operations in the same order, whatever becomes of the hint.

``prefetch_row`` and ``prefetch_entries`` say what will be read soon. Memory is fetched to the second-level cache: the
nearest has room for few lines that are on their way, and sums would wait for it. Plain Python needs none.
"""

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload

from discreet.curator.kernels.kernel import kernel

_CHAINS = 4


def interleaved(body):
    """The loop that calls ``body(i, args)``, which returns nothing, for each i < count: ``loop(count, args)``."""

    def loop(count, args):
        for i in range(count):
            body(i, args)

    @intrinsic
    def compiled(typingctx, count, args):
        def codegen(context, builder, signature, values):
            inner = types.void(types.uint64, args)
            with cgutils.for_range(builder, values[0], intp=ir.IntType(64)) as each:
                context.compile_internal(builder, body, inner, (each.index, values[1]))
                latch = builder.block
            latch.terminator.set_metadata("llvm.loop", _hint(builder.module))
            return context.get_dummy_value()

        return types.void(types.int64, args), codegen

    overload(loop)(lambda count, args: lambda count, args: compiled(count, args))
    return loop


def _hint(module):
    """Metadata whose first operand is itself, which is how LLVM tells loops apart."""
    count = module.add_metadata(["llvm.loop.interleave.count", ir.Constant(ir.IntType(32), _CHAINS)])
    node = module.add_metadata([count, count])
    node.operands = (node, count)
    return node


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


_ROWS, _COLUMNS = 128, 8
"""What is turned at once stays in the first cache, on both sides."""


@kernel()
def turn_to_rows(columns, out):
    """Copy ``columns`` (rows, columns) into ``out`` of the same shape, whose rows are contiguous."""
    n, p = columns.shape
    for first in range(0, n, _ROWS):
        last = min(n, first + _ROWS)
        for left in range(0, p, _COLUMNS):
            right = min(p, left + _COLUMNS)
            for i in range(first, last):
                for j in range(left, right):
                    out[i, j] = columns[i, j]
