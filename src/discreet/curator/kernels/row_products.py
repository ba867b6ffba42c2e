"""Four rows times a matrix, with the sums of sixteen columns in the processor's registers.

A loop over columns writes each sum back to memory after every few features, and waits for it. Here a *panel* of columns
keeps its sums until all features are added up. Every sum is added up in the order of the source of ``four_through``,
in groups of four features, whatever the panel: compiled and plain Python give the same bits, on every processor.
"""

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload

ROWS = 4
LANES = 8
"""Columns come in multiples of this: pad a matrix with columns of zeros."""
_GROUP = 4


def four_through(u, matrix, z):
    """z = u matrix for four rows: every entry is added up in the same order in every row."""
    z[:] = 0.0
    p = u.shape[1]
    whole = p - p % _GROUP
    for j in range(0, whole, _GROUP):
        first, second, third, fourth = (u[:, j + i, None] * matrix[j + i] for i in range(_GROUP))
        z += ((first + second) + third) + fourth
    for j in range(whole, p):
        z += u[:, j, None] * matrix[j]


def _panel(vectors):
    """Return the compiled product with ``vectors`` times eight columns from ``k`` on."""

    @intrinsic
    def panel(typingctx, u, matrix, z, k):
        def codegen(context, builder, signature, args):
            tables = (context.make_array(kind)(context, builder, arg) for kind, arg in zip(signature.args, args[:3]))
            _Panel(builder, *tables, args[3], vectors).emit()
            return context.get_dummy_value()

        return types.void(u, matrix, z, types.int64), codegen

    return panel


_NUMBER, _INDEX = ir.DoubleType(), ir.IntType(64)
_VECTOR = ir.VectorType(_NUMBER, LANES)


class _Panel:
    """The instructions of one panel. Tables are contiguous; sums live in variables, which LLVM puts into registers."""

    def __init__(self, builder, u, matrix, z, k, vectors):
        self.builder, self.u, self.matrix, self.z = builder, u.data, matrix.data, z.data
        self.p, self.width = (cgutils.unpack_tuple(builder, table.shape, 2)[1] for table in (u, matrix))
        self.starts = [builder.add(k, _INDEX(LANES * v)) for v in range(vectors)]
        self.sums = [[cgutils.alloca_once_value(builder, _VECTOR(None)) for _ in range(vectors)] for _ in range(ROWS)]

    def emit(self):
        builder = self.builder
        whole = builder.sub(self.p, builder.urem(self.p, _INDEX(_GROUP)))
        with cgutils.for_range_slice(builder, _INDEX(0), whole, _INDEX(_GROUP), intp=_INDEX) as (j, _):
            self._add([builder.add(j, _INDEX(i)) for i in range(_GROUP)])
        with cgutils.for_range_slice(builder, whole, self.p, _INDEX(1), intp=_INDEX) as (j, _):
            self._add([j])
        for r, row in enumerate(self.sums):
            for total, start in zip(row, self.starts):
                builder.store(builder.load(total), self._vector(self.z, _INDEX(r), start), align=8)

    def _add(self, features):
        """Add these features' products, the first with the second, with the third, then to the sum."""
        builder = self.builder
        for v, start in enumerate(self.starts):
            weights = [builder.load(self._vector(self.matrix, j, start), align=8) for j in features]
            for r, row in enumerate(self.sums):
                products = [builder.fmul(self._spread(r, j), weight) for j, weight in zip(features, weights)]
                group = products[0]
                for product in products[1:]:
                    group = builder.fadd(group, product)
                builder.store(builder.fadd(builder.load(row[v]), group), row[v])

    def _vector(self, data, row, column):
        place = self.builder.add(self.builder.mul(row, self.width), column)
        return self.builder.bitcast(self.builder.gep(data, [place]), _VECTOR.as_pointer())

    def _spread(self, r, j):
        """One entry of ``u`` in every lane."""
        builder, lane = self.builder, ir.IntType(32)
        place = builder.add(builder.mul(_INDEX(r), self.p), j)
        alone = builder.insert_element(_VECTOR(ir.Undefined), builder.load(builder.gep(self.u, [place])), lane(0))
        return builder.shuffle_vector(alone, _VECTOR(ir.Undefined), ir.VectorType(lane, LANES)([0] * LANES))


_eight, _sixteen = _panel(1), _panel(2)


@overload(four_through)
def _compiled_four_through(u, matrix, z):
    def through(u, matrix, z):
        k = 0
        while k + 2 * LANES <= z.shape[1]:
            _sixteen(u, matrix, z, k)
            k += 2 * LANES
        if k < z.shape[1]:
            _eight(u, matrix, z, k)

    return through
