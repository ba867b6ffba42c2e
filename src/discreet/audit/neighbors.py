"""Worst-case neighbors: pairs of data sets that differ in one record (one person) of the nastiest kinds.

A pair is (data, neighbor). Under ``zero_out`` the null record is written as a row of NaN, which
admission turns into it; under ``replace_one`` and ``zero_out`` the changed record stands first or last.

``replay`` is an audit without statistics: fits on such pairs, with the mechanisms' outputs frozen.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from discreet.audit.replay_pair import fresh_noise
from discreet.audit.replay_pair import replay as replay_pair
from discreet.audit.result import SYNTHETIC, Audit
from discreet.bounds import Bounds
from discreet.budget import Neighbors
from discreet.typing import Array, Booleans

Rows = Array
CellType = np.dtype[Any]
Table: TypeAlias = Any
"""What a fit takes: an array, a frame or a sparse matrix of records, or a column of targets or persons."""

_SMALL = 1e-3
_FAR = 1e6
_MANY = 5


class Data(NamedTuple):
    """Records, targets and persons: what a fit takes.

    Parameters
    ----------
    X, y : array-like
        Records and targets.
    groups : array-like, default=None
        The person behind each row.

    Examples
    --------
    >>> from discreet.testing import Data
    >>> Data([[0.0]], [1]).groups is None
    True
    """

    X: Table
    y: Table
    groups: Table = None


class Pair(NamedTuple):
    """Two data sets that differ in one record, or in all rows of one person.

    Parameters
    ----------
    name : str
        How they differ.
    data, neighbor : Data
        The two.

    Examples
    --------
    >>> from discreet.testing import Data, Pair
    >>> Pair("changed", Data([[0.0]], [1]), Data([[1.0]], [1])).name
    'changed'
    """

    name: str
    data: Data
    neighbor: Data


class _Record(NamedTuple):
    name: str
    features: Array
    target: Any


def neighbor_pairs(
    X: object, y: object, groups: object = None, *, relation: str = "replace_one", bounds: Bounds, sampled: bool = False
) -> Iterator[Pair]:
    """Yield pairs of neighbors made from one data set.

    Parameters
    ----------
    X, y, groups : array-like
        An array, a sparse matrix or a data frame; targets; who is behind each row. With ``groups`` whole
        persons change, their number of rows too.
    relation : str, default="replace_one"
        ``"replace_one"``, ``"zero_out"`` or ``"add_remove"``.
    bounds : Bounds
        The declared ranges and the classes or target range: what is extreme.
    sampled : bool, default=False
        For fits that draw Poisson samples. Samplers go through the units in order, and adding one shifts
        the numbers of those behind it: so under ``add_remove`` only the last unit comes and goes.

    Yields
    ------
    Pair
        Two neighbors.

    Raises
    ------
    ValueError
        If ``zero_out`` is asked for, and a feature cannot be missing.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet import Bounds
    >>> from discreet.testing import neighbor_pairs
    >>> pairs = list(neighbor_pairs(np.eye(3), [0, 1, 0], bounds=Bounds(features=1.0, classes=(0, 1))))
    >>> pairs[0].data.X.shape
    (3, 3)
    """
    y = np.asarray(y)
    kind = Neighbors(relation)
    if kind is Neighbors.ZERO_OUT and any(cell.kind not in "fO" for cell in cell_types(X)):
        raise ValueError("zero_out needs features that can be missing: pass them as floats")
    records = list(_extreme_records(X, y, bounds))
    if groups is None:
        yield from _of_records(Data(X, y), kind, records, bounds, sampled)
        yield from _of_a_rare_class(Data(X, y), kind, bounds)
    else:
        yield from _of_persons(Data(X, y, _labels(groups)), kind, records, sampled)


def _extreme_records(X: Table, y: Array, bounds: Bounds) -> Iterator[_Record]:
    names = [str(name) for name in X.columns] if is_frame(X) else None
    low, high = bounds.ranges(X.shape[1], names)
    first, last = _extreme_targets(y, bounds)
    yield _Record("high", high, last)
    yield _Record("high, other target", high, first)
    yield _Record("low", low, last)
    yield _Record("low, other target", low, first)
    yield _Record("small", high * _SMALL, first)
    yield _Record("zeros", np.zeros_like(high), last)
    yield _Record("far outside", (np.abs(high) + np.abs(low)) * _FAR, first)
    largest = np.array([np.finfo(cell if cell.kind == "f" else np.float64).max for cell in cell_types(X)])
    yield _Record("huge", largest, first)
    yield _Record("minus huge", -largest, last)
    yield _Record("infinite", np.full_like(high, np.inf), first)
    yield _Record("minus infinite", np.full_like(high, -np.inf), last)
    yield _Record("missing", np.full_like(high, np.nan), first)
    yield _Record("one cell missing", np.append(high[:-1], np.nan), first)
    if any(cell.kind == "O" for cell in cell_types(X)):
        yield _Record("text", np.array(["no number"] * len(high), dtype=object), first)
    for name, target in _strange_targets(y, bounds):
        yield _Record(name, high, target)
    middle = len(y) // 2
    if len(y):
        yield _Record("twin of another", dense_row(X, middle), y[middle])


def _extreme_targets(y: Array, bounds: Bounds) -> tuple[Any, Any]:
    if bounds.classes is not None:
        return bounds.classes[0], bounds.classes[-1]
    if bounds.target is None:
        raise ValueError("declare what is extreme: Bounds(..., classes=...) or Bounds(..., target=(low, high))")
    return bounds.target


def _strange_targets(y: Array, bounds: Bounds) -> Iterator[tuple[str, Any]]:
    if bounds.classes is not None:
        candidates: Any = range(2, 100) if y.dtype.kind in "fiub" else "?!#"
        if y.dtype.kind != "b":
            yield "label outside the set", [label for label in candidates if label not in bounds.classes][-1]
    if y.dtype.kind == "f":
        yield "huge target", np.finfo(y.dtype).max
        yield "minus huge target", np.finfo(y.dtype).min
        yield "missing target", np.nan
        yield "infinite target", np.inf


def _with(data: Data, start: int, stop: int, record: _Record, count: int = 1, person: object = None) -> Data:
    """Rows ``start`` to ``stop - 1`` exchanged for ``count`` copies of a record."""
    X = splice(data.X, start, stop, np.repeat(record.features[None, :], count, axis=0))
    y = _spliced(data.y, start, stop, [record.target] * count)
    groups = None if data.groups is None else _spliced(data.groups, start, stop, [person] * count)
    return Data(X, y, groups)


def _spliced(column: Array, start: int, stop: int, values: list[object]) -> Array:
    if column.dtype.kind in "US":
        cells = np.array(values, dtype=column.dtype.kind)
    else:
        with np.errstate(over="ignore"):  # a bound that a narrow type cannot hold is infinite in it
            cells = np.array(values).astype(column.dtype) if values else column[:0]
    return np.concatenate([column[:start], cells, column[stop:]])


def _without(data: Data, start: int) -> Data:
    mask = np.arange(len(data.y)) != start
    return Data(keep(data.X, mask), data.y[mask])


def _blank(data: Data, template: _Record) -> _Record:
    return _Record("blank", np.full_like(template.features, np.nan), data.y[0])


def _of_records(
    data: Data, relation: Neighbors, records: list[_Record], bounds: Bounds, sampled: bool
) -> Iterator[Pair]:
    n = len(data.y)
    if relation is Neighbors.ADD_REMOVE:
        yield from _added_and_removed(data, records, bounds, sampled)
        return
    blank = _blank(data, records[0])
    for place, i in (("first", 0), ("last", n - 1)):
        if relation is Neighbors.ZERO_OUT:
            yield Pair(f"{place}: blanked", data, _with(data, i, i + 1, blank))
        for record in records:
            changed = _with(data, i, i + 1, record)
            if relation is Neighbors.ZERO_OUT:
                yield Pair(f"{place}: {record.name}, blanked", changed, _with(data, i, i + 1, blank))
            else:
                yield Pair(f"{place}: replaced by {record.name}", data, changed)
        if relation is Neighbors.REPLACE_ONE:
            named = {record.name: _with(data, i, i + 1, record) for record in records}
            for first, other in (
                ("high", "high, other target"),
                ("low", "high"),
                ("huge", "missing"),
                ("small", "low"),
            ):
                yield Pair(f"{place}: {first} for {other}", named[first], named[other])
        yield from _stored_twice(data, relation, bounds, i, place)


def _added_and_removed(data: Data, records: list[_Record], bounds: Bounds, sampled: bool) -> Iterator[Pair]:
    n = len(data.y)
    for record in records:
        yield Pair(f"last: {record.name}, added", data, _with(data, n, n, record))
        if not sampled:
            yield Pair(f"first: {record.name}, added", data, _with(data, 0, 0, record))
    yield Pair("last: removed", data, _without(data, n - 1))
    if not sampled:
        yield Pair("first: removed", data, _without(data, 0))
    yield from _stored_twice(data, Neighbors.ADD_REMOVE, bounds, n, "last")
    for label in bounds.classes or ():
        members = np.flatnonzero(data.y == label)
        if len(members) == 1 and (members[0] == n - 1 or not sampled):
            yield Pair("the only member of a class removed", data, _without(data, int(members[0])))


def _stored_twice(data: Data, relation: Neighbors, bounds: Bounds, i: int, place: str) -> Iterator[Pair]:
    """Compressed rows may store a cell in parts: the norm of the parts is not that of the row."""
    if not is_sparse(data.X):
        return
    _, high = bounds.ranges(data.X.shape[1])
    columns = np.tile(np.arange(len(high))[::-1], 3)
    parts = (columns, np.tile(0.5 * high[::-1], 3))
    stop = i if relation is Neighbors.ADD_REMOVE else i + 1
    target = _extreme_targets(data.y, bounds)[0]
    parted = Data(splice_stored(data.X, i, stop, [parts]), _spliced(data.y, i, stop, [target]))
    if relation is Neighbors.ZERO_OUT:
        blank = _Record("blank", np.full_like(high, np.nan), target)
        yield Pair(f"{place}: cells stored in parts, blanked", parted, _with(data, i, stop, blank))
    else:
        yield Pair(f"{place}: cells stored in parts", data, parted)


def _of_a_rare_class(data: Data, relation: Neighbors, bounds: Bounds) -> Iterator[Pair]:
    """A class whose only record leaves."""
    if bounds.classes is None or len(data.y) < 2:
        return
    common, rare = bounds.classes[0], bounds.classes[-1]
    y = data.y.copy()
    y[:] = common
    alone = y.copy()
    alone[-1] = rare
    if relation is Neighbors.REPLACE_ONE:
        yield Pair("last: the only one of its class, replaced", Data(data.X, alone), Data(data.X, y))
        return
    n, whole = len(y), Data(data.X, alone)
    gone = _without(whole, n - 1)
    if relation is Neighbors.ZERO_OUT:
        features = np.full(data.X.shape[1], np.nan)
        gone = _with(whole, n - 1, n, _Record("blank", features, common))
    yield Pair("last: the only one of its class, gone", whole, gone)


def _labels(groups: Table) -> Array:
    """Person names in a type whose order is that in which the curator numbers persons."""
    labels = np.asarray(groups)
    return labels if labels.dtype.kind in "fiubUS" else np.array([str(name) for name in groups])


def _of_persons(data: Data, relation: Neighbors, records: list[_Record], sampled: bool) -> Iterator[Pair]:
    persons = np.unique(data.groups)
    blank = _blank(data, records[0])
    if relation is Neighbors.ADD_REMOVE:
        new = persons[-1] + 1 if data.groups.dtype.kind in "fiu" else f"{persons[-1]}~"
        for record in records:
            for count in (1, _MANY):
                n = len(data.y)
                yield Pair(f"{count} rows {record.name}, added", data, _with(data, n, n, record, count, new))
        for place, person in (("last", persons[-1]), ("first", persons[0])):
            if place == "last" or not sampled:
                yield Pair(f"{place} person removed", data, _leave_out(data, person))
        return
    for place, person in (("first", persons[0]), ("last", persons[-1])):
        rest = _leave_out(data, person)
        n = len(rest.y)

        def of(record: _Record, count: int, rest: Data = rest, n: int = n, person: object = person) -> Data:
            return _with(rest, n, n, record, count, person)

        empty = of(blank, _MANY)
        yield Pair(f"{place} person blanked", data, empty)
        for record in records:
            for count in (1, _MANY):
                name = f"{place} person: {count} rows {record.name}"
                if relation is Neighbors.ZERO_OUT:
                    yield Pair(f"{name}, blanked", of(record, count), empty)
                else:
                    yield Pair(name, data, of(record, count))
        if relation is Neighbors.REPLACE_ONE:
            first, other = of(records[0], _MANY), of(records[1], _MANY)
            yield Pair(f"{place} person: {_MANY} rows {records[0].name} for {records[1].name}", first, other)


def _leave_out(data: Data, person: object) -> Data:
    mask = data.groups != person
    return Data(keep(data.X, mask), data.y[mask], data.groups[mask])


# --- row surgery on the containers that a fit accepts: arrays, compressed sparse rows, data frames ----


def is_sparse(X: object) -> bool:
    """Whether X is a scipy sparse matrix or array."""
    return hasattr(X, "tocsr") and hasattr(X, "nnz")


def is_frame(X: object) -> bool:
    """Whether X is a data frame."""
    return hasattr(X, "iloc")


def cell_types(X: Table) -> list[CellType]:
    """The type of each column's cells."""
    return [np.dtype(kind) for kind in X.dtypes] if is_frame(X) else [X.dtype] * X.shape[1]


def dense_row(X: Table, i: int) -> Rows:
    """Row i as floats; NaN where a cell is no number."""
    sparse = X.tocsr()[[i]].toarray()[0] if is_sparse(X) else None
    row = (X.iloc[i].to_numpy() if is_frame(X) else X[i]) if sparse is None else sparse
    values = [value if isinstance(value, (int, float, np.number)) else np.nan for value in row]
    return np.array(values, dtype=np.float64)


def fitted_to(values: Rows, dtype: CellType) -> Rows:
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


def keep(X: Table, mask: Booleans) -> Table:
    """The rows that ``mask`` chooses."""
    if is_frame(X):
        return X.iloc[np.flatnonzero(mask)].reset_index(drop=True)
    return X.tocsr()[np.flatnonzero(mask)] if is_sparse(X) else X[mask]


def splice(X: Table, start: int, stop: int, rows: Rows) -> Table:
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


def splice_stored(X: Table, start: int, stop: int, rows: list[tuple[Rows, Rows]]) -> Table:
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


def replay(
    fit: Callable[..., object],
    X: object,
    y: object,
    groups: object = None,
    *,
    bounds: Bounds,
    neighbors: str = "replace_one",
    sampled: bool = False,
    private: Sequence[str] = (),
    subject: str = "a fit",
    named: str = SYNTHETIC,
) -> Audit:
    """Replay a fit on every kind of worst neighbor, and look for noise that is missing or comes twice.

    Parameters
    ----------
    fit : callable
        ``fit(X, y, groups)`` returns the fitted object.
    X, y, groups : array-like
        A small data set: a few rows are enough.
    bounds : Bounds
        The declared ranges, with classes or target: what is extreme.
    neighbors : str, default="replace_one"
        The relation.
    sampled : bool, default=False
        For fits that draw Poisson samples.
    private : sequence of str, default=()
        Patterns of attributes that are not public and may differ.
    subject : str, default="a fit"
        What is audited, for the result.
    named : str, default="synthetic"
        What the data are called in the result; they should be synthetic.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet import Bounds, DPLogisticRegression, audit
    >>> from discreet.solvers import GradientDescent
    >>> bounds = Bounds(features=1.0, classes=(0, 1))
    >>> model = DPLogisticRegression(delta=1e-6, bounds=bounds, solver=GradientDescent(n_steps=2))
    >>> audit.replay(model.fit, np.eye(4), np.array([0, 1, 0, 1]), bounds=bounds).refuted
    False
    """
    relation = Neighbors(neighbors)
    findings: list[str] = []
    pairs = list(neighbor_pairs(X, y, groups, relation=str(relation), bounds=bounds, sampled=sampled))
    claim = getattr(fit(*pairs[0].data), "certificate_", None)  # a fit that is refused is no finding: it raises here
    for pair in pairs:
        report = replay_pair(fit, pair.data, pair.neighbor, str(relation), private=private)
        findings += [f"{pair.name}: {finding}" for finding in report.findings]
    findings += [str(finding) for finding in fresh_noise(fit, pairs[0].data).findings]
    return Audit(
        level="replay",
        subject=subject,
        neighbors=str(relation),
        claimed=math.inf if claim is None else claim.epsilon,
        delta=0.0 if claim is None else claim.delta,
        runs=len(pairs),
        findings=tuple(dict.fromkeys(findings)),
        data=named,
    )
