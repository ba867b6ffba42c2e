"""What compiled loops share: how Python calls them, clips, hints to the processor, small products, threads.

A ``Kernel`` is what Python sees; where it is checked, its own source runs in its place. Functions that only other
kernels call stay numba's.

**Clip.** ``bounded``, ``within`` and ``bound_vector`` keep coefficients within their limit: the proof is in
``lattice.py``.

**Hints** change times, never results. A loop over a logistic derivative is one long chain of dependent operations, and
the compiler deems its body too large to overlap with the next: most of the time the processor waits. ``interleaved``
asks for four chains side by side; each element is computed by the same operations in the same order, whatever becomes
of the hint. ``prefetch_row`` and ``prefetch_entries`` say what will be read soon. Memory is fetched to the second-level
cache: the nearest has room for few lines that are on their way, and sums would wait for it. Plain Python needs none.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, update_wrapper
from itertools import pairwise
from pathlib import Path
from pickle import PickleError  # noqa: TID251 (what numba raises; nothing is unpickled here)
from types import FunctionType
from typing import Any, TypeVar

import numpy as np
from llvmlite import ir
from numba import int64, njit, types
from numba.core import cgutils
from numba.core.registry import CPUDispatcher
from numba.extending import intrinsic, overload
from numpy.typing import NDArray

from discreet.scalar_functions import tell_compiler

tell_compiler()

_UNREADABLE = (
    *(PickleError, ImportError, AttributeError, EOFError, ValueError, TypeError, LookupError, MemoryError),
    OverflowError,
)
"""What reading a file of numba's cache may raise, whatever is in it; compiled loops raise none of these."""

_KERNELS = __name__.rpartition(".")[0]
_is_plain: ContextVar[bool] = ContextVar("discreet_plain_kernels", default=False)


class Kernel:
    """A compiled loop. Inside ``plain_python``, in its context alone, a call runs the loop's source."""

    def __init__(self, function: Callable[..., Any], **options: Any) -> None:
        self._options = {"nogil": True, "no_cfunc_wrapper": True, **options}
        self.compiled = njit(cache=True, **self._options)(function)
        self.py_func = function
        update_wrapper(self, function)

    def __call__(self, *args: Any) -> Any:
        if _is_plain.get():
            return _interpreted(self.py_func)(*args)
        try:
            return self.compiled(*args)
        except _UNREADABLE:
            self._forget_cache()
            return self.compiled(*args)

    def _forget_cache(self) -> None:
        """Delete this loop's index on disk, so that it is compiled again; keep what is compiled to this process if not.

        The index names classes of losses and penalties by their modules, and numba reads all of it before it compares
        its date with the source's: one that another version of the package wrote may name a module that is gone, and
        one that was cut short, or that another program wrote over, holds anything.
        """
        name = f"{Path(self.py_func.__code__.co_filename).stem}.{self.py_func.__qualname__}"
        try:
            for index in Path(self.compiled.stats.cache_path).glob(f"{name}-*.nbi"):
                index.unlink(missing_ok=True)
        except OSError:  # a cache that may be read only
            self.compiled = njit(**self._options)(self.py_func)


def kernel(**options: Any) -> Callable[[Callable[..., Any]], Kernel]:
    """Return a decorator of loops that Python calls: compiled without the interpreter's lock, and cached on disk."""
    return lambda function: Kernel(function, **options)


class _Inner(CPUDispatcher):
    """A compiled function without an entrance: what numba would run for a call by Python is nowhere."""

    def __call__(self, *_: Any) -> Any:
        raise TypeError("only kernels call this function: use its py_func")


def inner(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator of functions that only kernels call and that allocate nothing.

    Without wrappers for Python and C, and without reference counts of arrays, they compile in half the time.
    """

    def decorate(function: Callable[..., Any]) -> Any:
        compiled = njit(nogil=True, _nrt=False, no_cfunc_wrapper=True, no_cpython_wrapper=True, **options)(function)
        if isinstance(compiled, CPUDispatcher):  # not where the compiler is off
            compiled.__class__ = _Inner
        return compiled

    return decorate


@contextmanager
def plain_python() -> Iterator[None]:
    """Run the source of kernels, and of what they call, inside the block."""
    token = _is_plain.set(True)
    try:
        yield
    finally:
        _is_plain.reset(token)


@cache
def _interpreted(function: Any) -> Any:
    """Return a kernel's source as a plain function whose names mean the source of every kernel that it calls."""
    names = dict(function.__globals__)
    plain = FunctionType(function.__code__, names, function.__name__, function.__defaults__, function.__closure__)
    for name in function.__code__.co_names:
        called = getattr(names.get(name), "py_func", names.get(name))
        if isinstance(called, FunctionType) and called.__module__.startswith(_KERNELS):
            names[name] = _interpreted(called)
    return plain


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


VARIABLE = "DISCREET_NUM_THREADS"
_LEAST_WORK = 1 << 19

Number = TypeVar("Number", np.int64, np.float64)
Result = TypeVar("Result")


def thread_count() -> int:
    """How many threads may be used: the variable DISCREET_NUM_THREADS, else the cores this process has."""
    wanted = os.environ.get(VARIABLE, "")
    if wanted.isdigit() and int(wanted) > 0:
        return int(wanted)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)


class Workers:
    """Splits a sum over ``count`` items among threads. Holds its pool, so that it dies with its engine."""

    def __init__(self, threads: int | None = None) -> None:
        self.threads = thread_count() if threads is None else threads
        self._pool: ThreadPoolExecutor | None = None

    def sum(self, part: Callable[[int, int], NDArray[Number]], count: int, work: int) -> NDArray[Number]:
        """The sum of ``part(first, last)`` over a partition of range(count); ``work`` is its size in values."""
        first, *rest = self.each(part, count, work)
        for other in rest:
            first += other
        return first

    def each(self, part: Callable[[int, int], Result], count: int, work: int) -> list[Result]:
        """``part(first, last)`` over a partition of range(count), in its order."""
        threads = min(self.threads, count, max(1, work // _LEAST_WORK))
        if threads <= 1:
            return [part(0, count)]
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self.threads, thread_name_prefix="discreet")
        edges = [count * t // threads for t in range(threads + 1)]
        rest = [self._pool.submit(part, first, last) for first, last in pairwise(edges[1:])]
        return [part(edges[0], edges[1]), *(future.result() for future in rest)]
