"""Row surgery on the containers that a fit accepts: arrays, compressed sparse rows, data frames."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.typing import Booleans

Rows = NDArray[Any]


def is_sparse(X: Any) -> bool:
    """Whether X is a scipy sparse matrix or array."""
    return hasattr(X, "tocsr") and hasattr(X, "nnz")


def is_frame(X: Any) -> bool:
    """Whether X is a data frame."""
    return hasattr(X, "iloc")


def cell_types(X: Any) -> list[np.dtype[Any]]:
    """The type of each column's cells."""
    return [np.dtype(kind) for kind in X.dtypes] if is_frame(X) else [X.dtype] * X.shape[1]


def dense_row(X: Any, i: int) -> Rows:
    """Row i as floats; NaN where a cell is no number."""
    one = X.tocsr()[[i]].toarray()[0] if is_sparse(X) else None
    row = (X.iloc[i].to_numpy() if is_frame(X) else X[i]) if one is None else one
    numbers = [value if isinstance(value, (int, float, np.number)) else np.nan for value in row]
    return np.array(numbers, dtype=np.float64)


def fitted_to(values: Rows, dtype: np.dtype[Any]) -> Rows:
    """Values as cells of ``dtype``: what the type cannot hold becomes its nearest extreme."""
    if dtype.kind == "O":
        return values.astype(object)
    if values.dtype.kind == "O":
        values = np.full(values.shape, np.nan)
    if dtype.kind in "iu":
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        return np.array([low if np.isnan(v) else int(min(max(v, low), high)) for v in values.tolist()], dtype=dtype)
    if dtype.kind == "f":
        largest = np.finfo(dtype).max
        values = np.where(np.isfinite(values), np.clip(values, -largest, largest), values)
    return values > 0 if dtype.kind == "b" else values.astype(dtype)


def keep(X: Any, mask: Booleans) -> Any:
    """The rows that ``mask`` chooses."""
    if is_frame(X):
        return X.iloc[np.flatnonzero(mask)].reset_index(drop=True)
    return X.tocsr()[np.flatnonzero(mask)] if is_sparse(X) else X[mask]


def splice(X: Any, start: int, stop: int, rows: Rows) -> Any:
    """X with rows ``start`` to ``stop - 1`` exchanged for ``rows``; container and types stay."""
    if is_sparse(X):
        return splice_stored(X, start, stop, [(np.arange(X.shape[1]), row) for row in rows])
    if is_frame(X):
        types = cell_types(X)
        columns = {name: X[name].to_numpy() for name in X.columns}
        return type(X)(
            {
                name: np.concatenate([column[:start], fitted_to(rows[:, j], types[j]), column[stop:]])
                for j, (name, column) in enumerate(columns.items())
            }
        )
    cells = fitted_to(rows.ravel(), X.dtype).reshape(rows.shape)
    return np.concatenate([X[:start], cells, X[stop:]])


def splice_stored(X: Any, start: int, stop: int, rows: list[tuple[Rows, Rows]]) -> Any:
    """The same for compressed rows given as they are stored: (column indices, values), repeated or unsorted too."""
    csr = X.tocsr()
    first, last = csr.indptr[start], csr.indptr[stop]
    indices = [csr.indices[:first], *(columns for columns, _ in rows), csr.indices[last:]]
    values = [csr.data[:first], *(fitted_to(stored, csr.dtype) for _, stored in rows), csr.data[last:]]
    counts = np.diff(csr.indptr)
    lengths = [counts[:start], [len(columns) for columns, _ in rows], counts[stop:]]
    indptr = np.concatenate([[0], np.cumsum(np.concatenate(lengths))]).astype(csr.indptr.dtype)
    shape = (len(indptr) - 1, csr.shape[1])
    return type(csr)((np.concatenate(values), np.concatenate(indices).astype(csr.indices.dtype), indptr), shape=shape)
