"""What a container declares of its records: shape, names of columns, types. Nothing here looks at a value.

Types are public, values are not. A type that cannot hold what was declared is refused, before anything is charged:
text where a number is expected, labels of another type than the declared classes. A container that declares no types
(a list, an array or a column of Python objects) is taken cell by cell behind the wall, and nothing is refused for what
its cells hold.
"""

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from discreet.errors import MissingBounds, Unsupported, unquoted
from discreet.typing import Array

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
    """Return X, as a data frame of the same columns where it is another library's table (Arrow, polars)."""
    if is_dask(X) or getattr(X, "elsewhere", None) is not None:
        raise Unsupported(ELSEWHERE)
    if hasattr(X, "iloc") or isinstance(X, np.ndarray) or is_sparse(X):
        return X
    if type(X).__name__ == "LazyFrame":
        raise Unsupported("a lazy frame has no rows yet: pass X.collect()")
    return _from_arrow(X) if hasattr(X, "__arrow_c_stream__") or hasattr(X, "__arrow_c_array__") else X


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
    """Return the kinds of types that a container declares, one per column where it has columns."""
    dtypes = table.dtypes if hasattr(table, "iloc") and table.ndim == 2 else [table.dtype]
    return [kind_of(dtype) for dtype in dtypes]


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
    y = container_of(y)
    if not (hasattr(y, "__array__") or hasattr(y, "__len__")):
        raise Unsupported("y must hold one target for each row of X")
    array = cells_of(y) if getattr(y, "ndim", 1) == 1 else np.asarray(y)
    if any(kind in _NEVER for kind in (array.dtype.kind, *target_kinds(y))):
        raise Unsupported("targets must be real numbers or labels: complex, date and structured ones are not supported")
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise Unsupported("y must be one column of targets: several outputs are not supported")
    return array


def target_kinds(y: Table) -> list[str]:
    """Return the kind of type that targets are declared to have; nothing where the container declares none."""
    y = container_of(y)
    return kinds_of(y) if hasattr(y, "dtype") or hasattr(y, "dtypes") else []


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
