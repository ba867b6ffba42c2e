"""From what a user hands in to the private integer copy: ``Records``.

Nothing here raises, warns or branches visibly on a value. What a container declares is public and checked loudly
(``containers.py``); a value that is missing, infinite, not a number or not a declared label turns its record into the
null record, silently: a value-dependent exception is a leak.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet.bounds import Bounds
from discreet.curator.kernels import encode
from discreet.curator.kernels.kernel import Workers
from discreet.curator.lattice import COARSE, FINE, Grid
from discreet.curator.records.containers import (
    Table,
    are_numbers,
    as_array,
    cells_of,
    is_sparse,
    kinds_of,
    one_dimensional,
)
from discreet.curator.records.storage import MEMORY, Storage, storage_for
from discreet.errors import PlanViolation, Unsupported, unquoted
from discreet.losses.base import Loss
from discreet.scalars import is_name, is_nothing, is_plain, real_number
from discreet.typing import Array, Booleans, Floats, Integers

Grids = NDArray[np.signedinteger]
"""Features on a grid: integers of 16 or 32 bits."""
_BLOCK_VALUES = 1 << 20
_NARROW = 1 / 16
UNSORTED = "OT"
"""Kinds of types of names that are distinguished one by one, and numbered in the order of the rows."""


@dataclass(frozen=True)
class Scaling:
    """How features become training coordinates: clip to the declared [low, high], subtract ``center``, over ``scale``.

    Privacy: a map of one record by declared numbers. Neighboring tables stay neighbors, null records stay null.
    """

    low: Floats
    high: Floats
    center: Floats
    scale: Floats
    intercept: bool
    row_norm: float | None
    grid: Grid

    @property
    def width(self) -> int:
        """The number of columns in training coordinates, the intercept's among them."""
        return len(self.scale) + (1 if self.intercept else 0)

    @property
    def feature_bounds(self) -> Floats:
        """The largest |x_j| in training coordinates, the intercept's last."""
        extent = np.maximum(np.abs(self.low - self.center), np.abs(self.high - self.center))
        bounds = np.divide(extent, self.scale, out=np.zeros_like(extent), where=self.scale > 0)
        bounds = np.ceil(bounds * self.grid.one) / self.grid.one  # as far as rounding to the grid can go
        return np.append(bounds, 1.0) if self.intercept else bounds

    def centered(self, block: Floats) -> Floats:
        """Return rows with the center subtracted; as they are, without a copy, where there is none."""
        if not self.center.any():
            return block
        with np.errstate(all="ignore"):  # a cell that overflows would warn, and a warning is an answer
            return np.asarray(block - self.center)

    @property
    def ranges(self) -> Floats:
        """The declared (low, high) of each feature in training coordinates."""
        ends = np.column_stack([self.low - self.center, self.high - self.center])
        divisor = self.scale[:, None]
        return np.divide(ends, divisor, out=np.zeros_like(ends), where=divisor > 0)


@dataclass(frozen=True)
class TargetScaling:
    """How targets become training coordinates: positions or signs of classes, numbers from a center, over a scale.

    ``weights`` and ``offsets`` are declared ranges, where records have them, and ``factors`` the declared weights of
    classes. ``loss`` says what an offset does to a target.
    """

    range: tuple[float, float] | None = None
    scale: float = 1.0
    signed: bool = False
    center: float = 0.0
    n_classes: int = 2
    weights: tuple[float, float] | None = None
    offsets: tuple[float, float] | None = None
    factors: tuple[float, ...] | None = None
    loss: Loss | None = None

    def placed(
        self, y: Floats, weights: Floats | None = None, offsets: Floats | None = None
    ) -> tuple[Floats, Floats | None]:
        """Return positions of classes, or numbers, in training coordinates, and weights of at most 1.

        NaN stays, is what no class has, and what a weight that is 0 or an offset that is missing makes of a target: the
        record becomes null. Privacy: a map of one record by declared numbers.
        """
        if self.range is None:  # a stream's positions are whatever its maker wrote
            positions = np.where((y >= 0) & (y < self.n_classes) & (y == np.floor(y)), y, np.nan)
            targets = 2.0 * positions - 1.0 if self.signed else positions
        else:
            finite = np.isfinite(y)
            positions, targets = y, np.where(finite, np.clip(np.where(finite, y, 0.0), *self.range), np.nan)
        total = None  # declared and given weights, each over the largest one
        if self.weights is not None and weights is not None:
            total = np.clip(weights, *self.weights) / self.weights[1]
        if self.factors is not None:
            at = np.where(np.isfinite(positions), positions, 0.0).astype(np.int64)
            factors = np.array(self.factors)[at] / max(self.factors)
            total = factors if total is None else total * factors
        if self.offsets is not None and offsets is not None and self.loss is not None:
            with np.errstate(all="ignore"):  # a warning would tell of one record
                targets, exposures = self.loss.without_offsets(targets, np.clip(offsets, *self.offsets))
            if self.loss.offsets_weigh:
                exposures = exposures / self.loss.without_offsets(np.zeros(1), np.array(self.offsets[1:]))[1]
                total = exposures if total is None else total * exposures
        if self.range is not None:
            targets = (targets - self.center) / self.scale
        if total is None:
            return targets, None
        is_weighted = np.isfinite(total) & (total > 0.0)
        return np.where(is_weighted, targets, np.nan), np.where(is_weighted, np.minimum(total, 1.0), 0.0)


def scaling_for(bounds: Bounds, n_columns: int, names: Sequence[str] | None, intercept: bool) -> Scaling:
    """How declared ranges become training coordinates.

    A range that leaves out 0 (years, latitudes) is centered at its middle and divided by half its width, where an
    intercept takes the center back: penalties, clips and the lattice then see where a value is within its range, and
    not how far the range is from 0. A range that holds 0 keeps it, so that sparse columns stay sparse. A declared
    ``row_norm`` and a ``"global"`` scale are about the raw geometry: nothing is centered there.
    """
    low, high = bounds.ranges(n_columns, names)
    extent = np.maximum(np.abs(low), np.abs(high))
    away = np.sign(low) * np.sign(high) > 0
    if intercept and bounds.scale == "feature" and bounds.row_norm is None:
        moved = away & (high > low)
        middle = np.where(moved, low + (high - low) / 2.0, 0.0)
        scale = np.where(moved, np.maximum(high - middle, middle - low), extent)
        return Scaling(low, high, middle, scale, intercept, None, COARSE)
    narrow = away & (np.minimum(np.abs(low), np.abs(high)) > (1 - _NARROW) * extent)  # such as the years 1990 to 2020
    if bounds.scale == "global":
        scale, grid = np.full(n_columns, extent.max(initial=0.0)), FINE
    else:
        scale, grid = extent, FINE if narrow.any() else COARSE
    if (n_columns + 1) << (2 * grid.bits) >= 1 << 62:
        raise Unsupported(
            "too many columns for one common scale, since the squared norm of a record must fit 62 bits:"
            " use Bounds(scale='feature') or fewer features"
        )
    return Scaling(low, high, np.zeros(n_columns), scale, intercept, bounds.row_norm, grid)


@dataclass(frozen=True, repr=False)
class Records:
    """The private copy: integer features by rows, and what each row's clip needs.

    Rows of one unit (a person, or a record) are contiguous: unit u owns rows starts[u] to
    starts[u + 1] - 1, ``shares`` says how many they are, row by row. ``norms`` and ``sums`` are the
    rows' L2 norms (ceiling) and L1 norms on the grid. ``weights`` are the rows', at most 1; None: all of them 1.
    """

    rows: Grids | None
    sparse: tuple[Integers, NDArray[np.int32], Grids] | None
    targets: Floats
    norms: Integers
    sums: Integers
    starts: Integers | None
    shares: Integers | None
    n_columns: int
    grid: Grid
    storage: Storage = MEMORY
    weights: Floats | None = None

    def __post_init__(self) -> None:
        """Refuse arrays that do not fit each other: compiled loops index one by the length of another."""
        sizes = [len(column) for column in (self.norms, self.sums, self.shares, self.weights) if column is not None]
        stored = self.sparse is None and self.rows is not None and self.rows.shape == (self.n_rows, self.n_columns)
        if self.sparse is not None:
            indptr, indices, data = self.sparse
            stored = len(indptr) == self.n_rows + 1 and len(indices) == len(data)
        if not stored or any(size != self.n_rows for size in sizes):
            raise PlanViolation("the encoded records are not as long or as wide as their facts say")

    @property
    def n_rows(self) -> int:
        return len(self.targets)

    def part(self, first: int, last: int) -> "Records":
        """Return units ``first`` to ``last - 1`` alone, without a copy; what is made of them stays in memory."""
        a, b = (first, last) if self.starts is None else (int(self.starts[first]), int(self.starts[last]))
        cut, sparse = slice(a, b), self.sparse
        if sparse is not None:
            indptr, indices, data = sparse
            ends = slice(int(indptr[a]), int(indptr[b]))
            sparse = indptr[a : b + 1] - indptr[a], indices[ends], data[ends]
        return Records(
            None if self.rows is None else self.rows[cut],
            sparse,
            self.targets[cut],
            self.norms[cut],
            self.sums[cut],
            None if self.starts is None else self.starts[first : last + 1] - a,
            None if self.shares is None else self.shares[cut],
            self.n_columns,
            self.grid,
            weights=None if self.weights is None else self.weights[cut],
        )

    @property
    def n_units(self) -> int:
        return self.n_rows if self.starts is None else len(self.starts) - 1


def numbers(values: Table) -> Floats:
    """Values as float64, NaN where a cell is no real number."""
    if hasattr(values, "iloc"):
        if all(kind in "fiub" for kind in kinds_of(values)):
            with np.errstate(all="ignore"):
                return np.ascontiguousarray(values.to_numpy(dtype=np.float64, na_value=np.nan))
        values = values.to_numpy(dtype=object)
    array = values if isinstance(values, np.ndarray) else as_array(values)
    if array.dtype.kind in "fiub":
        with np.errstate(all="ignore"):  # a cast that overflows would warn, and a warning is an answer
            return np.ascontiguousarray(array, dtype=np.float64)
    flat = np.array([real_number(value) for value in array.ravel()], dtype=np.float64)
    return flat.reshape(array.shape)


def check_containers(X: Table, scaling: Scaling) -> None:
    """Refuse what the containers alone show to be wrong, before anything is charged or read."""
    if is_sparse(X):
        if X.dtype.kind not in "fiub":
            raise Unsupported("features must be real numbers: complex and object sparse matrices are not supported")
        if (scaling.low > 0).any() or (scaling.high < 0).any():
            raise Unsupported(
                "sparse data needs ranges that contain 0, since absent entries are 0: widen them, or pass a dense array"
            )


def class_indices(y: Table, classes: Sequence[object]) -> Floats:
    """Each label's position among the declared classes; NaN for any other label."""
    labels = one_dimensional(y)
    numeric = are_numbers(classes)
    out = np.full(len(labels), np.nan)
    if labels.dtype.kind in "fiub" and numeric:
        for index, label in enumerate(classes):
            out[labels == label] = index
        return out
    position = {label: index for index, label in enumerate(classes)}
    declared = set(map(type, classes))
    for i, label in enumerate(labels.tolist()):
        if not (is_plain(label) or type(label) in declared):
            continue
        try:
            out[i] = position.get(label, np.nan)
        except Exception:  # a signaling NaN has no hash
            continue
    return out


def blocks(X: Table, n: int, width: int, begin: int = 0) -> Iterator[tuple[int, int, Floats]]:
    """Runs of rows from ``begin`` to ``n`` as numbers, with where they start and end."""
    step = max(1, _BLOCK_VALUES // max(1, width))
    for first in range(begin, n, step):
        last = min(n, first + step)
        part = X.iloc[first:last] if hasattr(X, "iloc") else X[first:last]
        yield first, last, numbers(part)


def _numbered(names: Array) -> Integers:
    """Equal names get equal numbers, whatever their types (1, 1.0 and True are one person); missing ones share one.

    So do objects of other classes than Python's, numpy's and pandas': comparing them would run code of their own.
    """
    seen: dict[object, int] = {}
    numbered = np.empty(len(names), dtype=np.int64)
    for i, name in enumerate(names.tolist()):
        key = name if is_name(name) and not is_nothing(name) else None
        try:
            numbered[i] = seen.setdefault(key, len(seen))
        except Exception:  # a signaling NaN
            numbered[i] = seen.setdefault(None, len(seen))
    return numbered


def names_of(groups: Table) -> Array:
    """Return the persons' names as an array, each exactly as it is; an empty one where they are no column."""
    if getattr(groups, "ndim", 1) != 1:
        return np.asarray(groups)
    return cells_of(groups) if hasattr(groups, "__len__") else np.empty(0)


def grouping(groups: Table, n: int) -> tuple[Integers, Integers, Integers]:
    """An order that puts each person's rows together; where each person starts; each row's number of siblings.

    Persons stand in the order of their names where these are of one type, and of their first rows where they are not.
    """
    labels = names_of(groups)
    if labels.shape != (n,):
        raise Unsupported("groups must name one person for each row of X")
    if labels.dtype.kind in UNSORTED:
        labels = _numbered(labels)
    _, member, counts = np.unique(labels, return_inverse=True, return_counts=True)
    order = np.argsort(member, kind="stable")
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return order.astype(np.int64), starts, np.repeat(counts, counts).astype(np.int64)


def rows_of_units(units: Integers, starts: Integers | None) -> Integers:
    """Return the rows that belong to the chosen records or persons."""
    if starts is None:
        return units
    counts = starts[units + 1] - starts[units]
    offsets = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    rows: Integers = np.repeat(starts[units], counts) + offsets
    return rows


def taken(X: Table, rows: Integers) -> Table:
    """Return some rows of an array, a frame or compressed rows, in this order."""
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]


def admit(
    X: Table,
    targets: Floats,
    scaling: Scaling,
    groups: Table = None,
    *,
    storage: Storage | None = None,
    weights: Floats | None = None,
) -> Records:
    """Clip, scale and round every record onto the integer grid: the private copy that engines read.

    ``targets`` hold NaN where a record must become null. Rows are encoded one by one; what a record
    becomes depends on that record and on declared facts only. ``storage`` is where dense rows are kept; None: where
    there is room. ``weights`` are the rows', at most 1.
    """
    n, n_columns = X.shape
    if targets.shape != (n,) or n_columns != len(scaling.scale):
        raise Unsupported("X or y changed its size while it was being read: pass a copy")
    if is_sparse(X):
        X = canonical(X)
    valid = np.isfinite(targets)
    targets = np.where(valid, targets, 0.0)
    order = starts = shares = None
    if groups is not None:
        order, starts, shares = grouping(groups, n)
        X = taken(X, order)
        targets, valid = targets[order], valid[order]
        weights = None if weights is None else weights[order]
    norms, sums = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    declared, width = encoding_of(scaling), scaling.width
    if is_sparse(X):
        sparse = _encode_sparse(X, valid, declared, scaling, norms, sums)
        return Records(None, sparse, targets, norms, sums, starts, shares, width, scaling.grid, weights=weights)
    storage = storage or storage_for(n, width, scaling.grid)
    rows = storage.zeros((n, width), scaling.grid.dtype)

    def encode_some(begin: int, end: int) -> None:
        for first, last, block in blocks(X, end, n_columns, begin):
            part = slice(first, last)
            encode.encode_rows(scaling.centered(block), valid[part], *declared, rows[part], norms[part], sums[part])

    in_python = not (isinstance(X, np.ndarray) and X.dtype.kind in "fiub")  # frames and objects: one thread at a time
    Workers(1 if in_python else None).each(encode_some, n, n * width)
    return Records(rows, None, targets, norms, sums, starts, shares, width, scaling.grid, storage, weights)


def encoding_of(scaling: Scaling) -> tuple[object, ...]:
    """The declared numbers that the kernels encode a row by."""
    unity, n_columns = scaling.grid.one, len(scaling.scale)
    inverse = np.divide(unity, scaling.scale, out=np.zeros(n_columns), where=scaling.scale > 0)
    longest = -1  # no bound but the ranges'
    if scaling.row_norm is not None:
        longest = int(min(scaling.row_norm, math.sqrt(n_columns) + 1.0) * unity)
    return scaling.low - scaling.center, scaling.high - scaling.center, inverse, unity, longest, scaling.intercept


def compressed(X: Table) -> Table:
    """Return a copy in compressed rows whose index arrays have been checked: they can be cut."""
    csr = X.tocsr(copy=True)
    with unquoted("the sparse matrix is malformed: its index arrays do not describe its shape", ValueError):
        csr.check_format(full_check=True)
    return csr


def canonical(X: Table) -> Table:
    """Return a copy in compressed rows of doubles, its duplicate entries added up."""
    with np.errstate(all="ignore"):
        csr = compressed(X.astype(np.float64))
        csr.sum_duplicates()
    return csr


def _encode_sparse(
    csr: Table, valid: Booleans, declared: tuple[object, ...], scaling: Scaling, norms: Integers, sums: Integers
) -> tuple[Integers, NDArray[np.int32], Grids]:
    n, n_columns = csr.shape
    extra = scaling.width - n_columns
    indptr = csr.indptr.astype(np.int64)
    shifted = indptr + extra * np.arange(n + 1, dtype=np.int64)
    indices = np.zeros(csr.nnz + extra * n, dtype=np.int32)
    data = np.zeros(csr.nnz + extra * n, dtype=scaling.grid.dtype)
    at = np.arange(csr.nnz, dtype=np.int64)
    if extra:
        at += np.repeat(np.arange(n, dtype=np.int64), np.diff(indptr))
        indices[shifted[1:] - 1] = n_columns
    indices[at] = csr.indices
    encode.encode_sparse_rows(indptr, csr.indices.astype(np.int32), csr.data, valid, *declared, data, norms, sums)
    return shifted, indices, data
