"""Products of small matrices whose sums stay in the processor's registers: rows through a map, and outer products.

A loop over columns writes each sum back to memory after every few terms, and waits for it. Here a block of sums is kept
in registers, as vectors of ``LANES`` numbers, until all terms are added up.

``four_through`` adds up every sum in the order of its source, in groups of four features, whatever the block: compiled
and plain Python give the same bits, on every processor. ``add_products`` is for integers below 2^53 in doubles, whose
sums are the same in every order (``moments``).
"""

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload

ROWS = 4
LANES = 8
"""Columns of a map, and rows of a strip, come in multiples of this: pad them with zeros."""
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


def add_products(left, right, out):
    """Add left right^T to ``out`` on and above its diagonal, in blocks of 4 by 4; p is a multiple of 4."""
    for j in range(0, len(left), 4):
        for k in range(j, len(left), 4):
            out[j : j + 4, k : k + 4] += left[j : j + 4] @ right[k : k + 4].T


_FUSED = ("contract",)
"""A product may join its sum in one instruction: of integers both are exact."""
_NUMBER, _INDEX = ir.DoubleType(), ir.IntType(64)
_VECTOR = ir.VectorType(_NUMBER, LANES)


class _Block:
    """Instructions on contiguous tables; sums live in variables, which LLVM puts into registers."""

    def __init__(self, builder, *tables):
        self.builder = builder
        self.data = [table.data for table in tables]
        self.widths = [cgutils.unpack_tuple(builder, table.shape, 2)[1] for table in tables]

    def place(self, table, row, column):
        return self.builder.gep(self.data[table], [self.builder.add(self.builder.mul(row, self.widths[table]), column)])

    def vector_at(self, table, row, column):
        return self.builder.bitcast(self.place(table, row, column), _VECTOR.as_pointer())

    def vector(self, table, row, column):
        return self.builder.load(self.vector_at(table, row, column), align=8)

    def spread(self, table, row, column):
        """One number in every lane."""
        builder, lane = self.builder, ir.IntType(32)
        alone = builder.insert_element(_VECTOR(ir.Undefined), builder.load(self.place(table, row, column)), lane(0))
        return builder.shuffle_vector(alone, _VECTOR(ir.Undefined), ir.VectorType(lane, LANES)([0] * LANES))

    def sums(self, count):
        return [cgutils.alloca_once_value(self.builder, _VECTOR(None)) for _ in range(count)]

    def add(self, total, term, flags=()):
        self.builder.store(self.builder.fadd(self.builder.load(total), term, flags=flags), total)

    def steps(self, first, last, step):
        return cgutils.for_range_slice(self.builder, first, last, _INDEX(step), intp=_INDEX)


def _through_panel(vectors):
    """Return the compiled ``four_through`` for ``vectors`` times eight columns from ``k`` on."""

    def emit(block, k):
        builder, p = block.builder, block.widths[0]
        starts = [builder.add(k, _INDEX(LANES * v)) for v in range(vectors)]
        sums = [block.sums(vectors) for _ in range(ROWS)]

        def add(features):
            for v, start in enumerate(starts):
                weights = [block.vector(1, j, start) for j in features]
                for r in range(ROWS):
                    terms = [builder.fmul(block.spread(0, _INDEX(r), j), w) for j, w in zip(features, weights)]
                    group = terms[0]
                    for term in terms[1:]:
                        group = builder.fadd(group, term)
                    block.add(sums[r][v], group)

        whole = builder.sub(p, builder.urem(p, _INDEX(_GROUP)))
        with block.steps(_INDEX(0), whole, _GROUP) as (j, _):
            add([builder.add(j, _INDEX(i)) for i in range(_GROUP)])
        with block.steps(whole, p, 1) as (j, _):
            add([j])
        for r in range(ROWS):
            for total, start in zip(sums[r], starts):
                builder.store(builder.load(total), block.vector_at(2, _INDEX(r), start), align=8)

    @intrinsic
    def panel(typingctx, u, matrix, z, k):
        def codegen(context, builder, signature, args):
            tables = (context.make_array(kind)(context, builder, arg) for kind, arg in zip(signature.args, args[:3]))
            emit(_Block(builder, *tables), args[3])
            return context.get_dummy_value()

        return types.void(u, matrix, z, types.int64), codegen

    return panel


_eight, _sixteen = _through_panel(1), _through_panel(2)


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


@intrinsic
def _sixteen_products(typingctx, left, right, out, j, k):
    """Add the products of four rows of ``left`` from j on with four of ``right`` from k on."""

    def codegen(context, builder, signature, args):
        tables = (context.make_array(kind)(context, builder, arg) for kind, arg in zip(signature.args, args[:3]))
        block = _Block(builder, *tables)
        rows = [[builder.add(start, _INDEX(i)) for i in range(4)] for start in args[3:]]
        sums = [block.sums(4) for _ in range(4)]
        with block.steps(_INDEX(0), block.widths[0], LANES) as (i, _):
            a, b = ([block.vector(table, row, i) for row in rows[table]] for table in (0, 1))
            for r in range(4):
                for c in range(4):
                    block.add(sums[r][c], builder.fmul(a[r], b[c], flags=_FUSED), _FUSED)
        for r in range(4):
            for c in range(4):
                place, total = block.place(2, rows[0][r], rows[1][c]), builder.load(sums[r][c])
                for lane in range(LANES):
                    part = builder.extract_element(total, ir.IntType(32)(lane))
                    builder.store(builder.fadd(builder.load(place), part), place)
        return context.get_dummy_value()

    return types.void(left, right, out, types.int64, types.int64), codegen


@overload(add_products)
def _compiled_add_products(left, right, out):
    def add(left, right, out):
        for j in range(0, left.shape[0], 4):
            for k in range(j, left.shape[0], 4):
                _sixteen_products(left, right, out, j, k)

    return add
