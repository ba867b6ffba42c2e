"""From what a user hands in to the private integer copy: ``Records``.

What a container declares (shape, names of columns, types) is public and checked loudly. A type that cannot hold what
was declared is refused before anything is charged: text where a number is expected, labels of another type than the
declared classes. A container that declares no types (a list, an array or a column of Python objects) is taken cell by
cell, and nothing is refused for what its cells hold.

Nothing here raises, warns or branches visibly on a value. One that is missing, infinite, not a number or not a declared
label turns its record into the null record, silently: a value-dependent exception is a leak.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet.bounds import Bounds
from discreet.curator.kernels import encode
from discreet.curator.kernels.kernel import Workers
from discreet.curator.lattice import COARSE, FINE, Grid
from discreet.curator.records.storage import MEMORY, Storage, storage_for
from discreet.errors import MissingBounds, PlanViolation, Unsupported, unquoted
from discreet.losses.base import Loss
from discreet.schema.cell_meaning import is_name, is_nothing, is_plain, real_number
from discreet.typing import Array, Booleans, Floats, Integers

Table: TypeAlias = Any
"""What users hand over: rows or a column, as a list, an array, a frame, a sparse matrix, another library's table."""

_NUMBERS, _TEXTS, _NEVER = "fiub", "UST", "cmMV"
"""Kinds of types as numpy names them: numbers and truth; texts and bytes; complex, durations, dates, structures."""

_NUMBER = (int, float, bool)

ELSEWHERE = (
    "these rows are on a cluster, where fits, predictions, private scores and searches reach them: load the part that "
    "you need (.compute()), or read the files on one machine"
)


def container_of(X: Table) -> Table:
    """Return X, as a data frame of the same columns where it is another library's table (Arrow, polars).

    Of a masked array, masked cells are nothing: what stands beneath the mask is not read as data. Types that are
    refused in any other array (dates, and tables of texts) stay as they are.
    """
    if isinstance(X, np.ma.MaskedArray) and not (X.dtype.kind in _NEVER or (X.dtype.kind in _TEXTS and X.ndim > 1)):
        return _unmasked(X)
    if is_dask(X) or getattr(X, "elsewhere", None) is not None:
        raise Unsupported(ELSEWHERE)
    if hasattr(X, "iloc") or isinstance(X, np.ndarray) or is_sparse(X):
        return X
    if type(X).__name__ == "LazyFrame":
        raise Unsupported("a lazy frame has no rows yet: pass X.collect()")
    return _from_arrow(X) if hasattr(X, "__arrow_c_stream__") or hasattr(X, "__arrow_c_array__") else X


def _unmasked(X: "np.ma.MaskedArray[Any, Any]") -> Array:
    """Return an array of objects, None where a cell is masked: the same type whatever the mask is."""
    cells: Array = np.array(X.data, dtype=object)
    cells[np.ma.getmaskarray(X)] = None
    return cells


def _from_arrow(table: Table) -> Table:
    """Return a pandas frame (or column) on the same Arrow memory: each column keeps the type that it declares."""
    with unquoted("tables of Arrow and polars need pandas and pyarrow: install discreet[tables]", ImportError):
        import pandas as pd
        import pyarrow as pa
    with unquoted("the Arrow table cannot be read to its end: pass a pyarrow.Table or a data frame"):
        if isinstance(table, (pa.Array, pa.ChunkedArray)) or hasattr(table, "dtype"):  # one column, not a table
            # a list of anything but a pyarrow array would be typed again, by its values
            column = pa.chunked_array([table] if isinstance(table, pa.Array) else table)
            if pa.types.is_string_view(column.type):  # which pandas does not know
                column = column.cast(pa.large_string())
            return pd.Series(pd.array(column, dtype=pd.ArrowDtype(column.type)))
        return pa.table(table).to_pandas(types_mapper=pd.ArrowDtype)  # a stream may read a file on the way


def is_dask(X: Table) -> bool:
    """Return whether X is a Dask collection of rows (without importing Dask)."""
    return hasattr(X, "__dask_graph__") and hasattr(X, "to_delayed")


def column_names(X: Table) -> list[str] | None:
    """Return the names of the columns, where the container has them."""
    return [str(name) for name in X.columns] if hasattr(X, "iloc") and hasattr(X, "columns") else None


def is_sparse(X: Table) -> bool:
    """Return whether X is a scipy sparse matrix or array (without importing scipy)."""
    return hasattr(X, "tocsr") and hasattr(X, "nnz")


def two_dimensional(X: Table) -> Table:
    """Return X as something with a shape of length two, by its container alone."""
    X = container_of(X)
    table = is_sparse(X) or hasattr(X, "iloc")
    array = X if table or isinstance(X, np.ndarray) else as_array(X)
    kinds = kinds_of(array)
    if any(kind in _NEVER for kind in kinds):
        raise Unsupported(
            "features must be real numbers. Complex data not supported, nor are dates and structured types: "
            "convert them to numbers"
        )
    if array.ndim != 2:
        raise Unsupported(
            "X must have two dimensions, one row per record. Reshape your data: X.reshape(-1, 1) for a single feature"
        )
    if any(kind in _TEXTS for kind in kinds):
        names = column_names(array) or []
        texts = ", ".join(name for name, kind in zip(names, kinds, strict=False) if kind in _TEXTS)
        raise Unsupported(
            f"features must be numbers, and these columns are stored as text{': ' if texts else ''}{texts}. Convert "
            "them, or fit the table with a schema, which declares categories: discreet.TableModel(schema).fit(table)"
        )
    return array


def kinds_of(table: Table) -> list[str]:
    """Return the kinds of types that a container declares, one per column where it has columns; none for a list."""
    table = table if isinstance(table, np.ndarray) else container_of(table)  # a masked array declares a type, too
    dtypes = table.dtypes if hasattr(table, "iloc") and table.ndim == 2 else [getattr(table, "dtype", None)]
    return [kind_of(dtype) for dtype in dtypes if dtype is not None]


def kind_of(dtype: Any) -> str:
    """Return the kind of a declared type as numpy names kinds; ``"O"`` where it says nothing of its values."""
    if isinstance(dtype, np.dtype):
        return dtype.kind
    if hasattr(dtype, "categories"):  # a pandas category is as its categories are
        return "O" if dtype.categories is None else kind_of(dtype.categories.dtype)
    stored = getattr(dtype, "pyarrow_dtype", None)
    if stored is not None:
        return _kind_of_arrow(stored)
    if getattr(dtype, "name", "") in ("string", "str"):
        return "U"
    return str(getattr(dtype, "kind", "O"))


def _kind_of_arrow(stored: Any) -> str:
    import pyarrow.types as types

    if types.is_dictionary(stored):
        return _kind_of_arrow(stored.value_type)
    for kind, names in (
        ("b", ("boolean",)),
        ("i", ("integer",)),
        ("f", ("floating", "decimal")),
        ("U", ("string", "large_string", "string_view")),
        ("S", ("binary", "large_binary", "binary_view", "fixed_size_binary")),
        ("M", ("temporal",)),
        ("V", ("nested",)),
    ):
        if any(test(stored) for name in names if (test := getattr(types, f"is_{name}", None)) is not None):
            return kind
    return "O"


def as_array(X: Table) -> Array:
    """Return a list of rows as an array whose type and shape do not depend on what a cell contains."""
    if hasattr(X, "__array__"):
        return np.asarray(X)
    if not isinstance(X, (list, tuple)) or not X or not all(isinstance(row, (list, tuple)) for row in X):
        with unquoted("the rows of X have different lengths", ValueError):
            return np.array(X, dtype=object)
    width = len(X[0])
    if any(len(row) != width for row in X):
        raise Unsupported("the rows of X have different lengths")
    array = np.empty((len(X), width), dtype=object)
    for i, row in enumerate(X):
        for j, cell in enumerate(row):  # one by one: numpy would look into a cell that is a list
            array[i, j] = cell
    return array


def cells_of(column: Table) -> Array:
    """Return a column as a flat array, whole numbers exactly: a null among them must not turn all into doubles."""
    column = container_of(column)
    dtype: Any = getattr(column, "dtype", None)
    if getattr(dtype, "categories", None) is not None:
        codes = column.cat.codes if hasattr(column, "cat") else column.codes
        names: Array = np.full(len(dtype.categories) + 1, None, dtype=object)  # the last one for code -1
        names[:-1] = cells_of(dtype.categories)
        return np.asarray(names[np.asarray(codes)])
    if isinstance(dtype, np.dtype) or (dtype is not None and kind_of(dtype) not in "iu"):
        return np.asarray(column)
    if dtype is not None or hasattr(column, "__array__"):
        return np.asarray(column, dtype=object)
    array = np.empty(len(column), dtype=object)
    for i, value in enumerate(column):
        array[i] = value
    return array


def one_dimensional(y: Table) -> Array:
    """Return a column of targets as a flat array whose type does not depend on what a cell contains."""
    y = container_of(y[:, 0] if isinstance(y, np.ma.MaskedArray) and y.ndim == 2 and y.shape[1] == 1 else y)
    if not (hasattr(y, "__array__") or hasattr(y, "__len__")):
        raise Unsupported("y must hold one target for each row of X")
    array = cells_of(y) if getattr(y, "ndim", 1) == 1 else np.asarray(y)
    if any(kind in _NEVER for kind in (array.dtype.kind, *kinds_of(y))):
        raise Unsupported("targets must be real numbers or labels: complex, date and structured ones are not supported")
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise Unsupported("y must be one column of targets: several outputs are not supported")
    return array


def check_targets(kinds: Sequence[str], classes: Sequence[object] | None) -> None:
    """Refuse targets of a type that cannot hold a declared class, or a number where ``classes`` is None."""
    texts, is_numeric = any(kind in _TEXTS for kind in kinds), any(kind in _NUMBERS for kind in kinds)
    if classes is None:
        if texts:
            raise Unsupported("the target is declared as a range of numbers, and y is stored as text: convert it")
        return
    named = any(isinstance(label, str) for label in classes)
    if (
        (texts and are_numbers(classes))
        or ("S" in kinds and named)
        or (is_numeric and not any(isinstance(label, _NUMBER) for label in classes))
    ):
        raise MissingBounds(
            "the labels in y are of another type than the declared classes: declare them as they stand in y"
        )


def are_numbers(classes: Sequence[object]) -> bool:
    """Return whether all labels are numbers."""
    return all(isinstance(label, _NUMBER) for label in classes)


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
    n_rows: int = field(init=False)
    n_units: int = field(init=False)

    def __post_init__(self) -> None:
        """Count rows, and refuse arrays that do not fit each other: compiled loops index one by another's length."""
        object.__setattr__(self, "n_rows", len(self.targets))
        object.__setattr__(self, "n_units", self.n_rows if self.starts is None else len(self.starts) - 1)
        sizes = [len(column) for column in (self.norms, self.sums, self.shares, self.weights) if column is not None]
        stored = self.sparse is None and self.rows is not None and self.rows.shape == (self.n_rows, self.n_columns)
        if self.sparse is not None:
            indptr, indices, data = self.sparse
            stored = len(indptr) == self.n_rows + 1 and len(indices) == len(data)
        if not stored or any(size != self.n_rows for size in sizes):
            raise PlanViolation("the encoded records are not as long or as wide as their facts say")

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


def numbers(values: Table) -> Floats:
    """Values as float64, NaN where a cell is no real number."""
    if hasattr(values, "iloc"):
        if all(kind in "fiub" for kind in kinds_of(values)):
            with np.errstate(all="ignore"):
                return np.ascontiguousarray(values.to_numpy(dtype=np.float64, na_value=np.nan))
        values = values.to_numpy(dtype=object)
    values = container_of(values) if isinstance(values, np.ma.MaskedArray) else values
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
