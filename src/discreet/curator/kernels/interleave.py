"""Loops whose vector code works on several groups of elements at once.

A loop over a logistic derivative is one long chain of dependent operations, and the compiler deems its body too
large to overlap with the next: most of the time the processor waits. The hint below asks for four chains side by
side. It is a hint only: each element is computed by the same operations in the same order, whatever becomes of it.
"""

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload

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
