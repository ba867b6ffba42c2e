"""Every container that a table may come in, each of fixed types: neighbors differ in cells and never in types.

A cell that a type cannot hold is ``NotHeld``: there is no such table, and no case.
"""

import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from tests.promises.surface.rows import Cells

Column = Callable[[list[Any]], Any]


class NotHeld(Exception):
    """The container's types cannot hold a cell."""


class Container(Protocol):
    """A way to hand in a table."""

    @property
    def name(self) -> str:
        """For the user."""
        ...

    @property
    def is_file(self) -> bool:
        """Whether the table is written to a file."""
        ...

    def table(self, cells: Cells, names: list[str], folder: Path) -> Any:
        """Some columns as one table; files are written to ``folder``."""
        ...

    def column(self, cells: Cells, name: str) -> Any:
        """One column by itself: targets, or persons."""
        ...


def _as_it_is(column: Any) -> Any:
    return column


@dataclass(frozen=True)
class Memory:
    """A container in memory: how a column of numbers and one of words are made, and a table of them."""

    name: str
    number: Column
    text: Column
    join: Callable[[dict[str, Any]], Any]
    alone: Callable[[Any], Any] = _as_it_is
    is_file: bool = False

    def table(self, cells: Cells, names: list[str], folder: Path) -> Any:
        """Some columns as one table."""
        return _held(lambda: self.join({name: self._made(cells, name) for name in names}))

    def column(self, cells: Cells, name: str) -> Any:
        """One column."""
        return _held(lambda: self.alone(self._made(cells, name)))

    def _made(self, cells: Cells, name: str) -> Any:
        return (self.text if name in cells.texts else self.number)(cells.columns[name])


def _held(make: Callable[[], Any]) -> Any:
    """What is made; a library that refuses a cell has no such table."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return make()
    except Exception:
        raise NotHeld from None


# --- cells that a type can hold -----------------------------------------------------------------------


def is_real(cell: Any) -> bool:
    """Whether a cell is a number of Python's or numpy's."""
    return isinstance(cell, (int, float, np.number, np.bool_)) and not isinstance(
        cell, (np.timedelta64, np.complexfloating)
    )


def objects(cells: list[Any]) -> Any:
    """Cells of any kind, none of them asked what it is."""
    array = np.empty(len(cells), dtype=object)
    for i, cell in enumerate(cells):
        array[i] = cell
    return array


def no_words(cells: list[Any]) -> Any:
    raise NotHeld


def floats(cells: list[Any], dtype: Any = np.float64) -> Any:
    if not all(cell is None or is_real(cell) for cell in cells):
        raise NotHeld
    try:
        with np.errstate(all="ignore"):
            return np.array([math.nan if cell is None else float(cell) for cell in cells]).astype(dtype)
    except OverflowError:
        raise NotHeld from None


def integers(cells: list[Any], dtype: Any) -> Any:
    info = np.iinfo(dtype)
    if not all(is_real(cell) and math.isfinite(as_float(cell)) and info.min <= cell <= info.max for cell in cells):
        raise NotHeld
    return np.array([round(cell) for cell in cells], dtype=dtype)


def as_float(cell: Any) -> float:
    try:
        return float(cell)
    except OverflowError:
        return math.inf


def bools(cells: list[Any]) -> Any:
    if not all(is_real(cell) and 0 <= cell <= 1 for cell in cells):
        raise NotHeld
    return np.array([round(cell) for cell in cells], dtype=bool)


def words(cells: list[Any]) -> list[str | None]:
    """Words, and numbers as they would be written; what has no such form is not held."""
    found: list[str | None] = []
    for cell in cells:
        if cell is None or isinstance(cell, str):
            found.append(None if cell is None else str(cell))
        elif is_real(cell):
            found.append(digits(cell))
        else:
            raise NotHeld
    try:
        "".join(word or "" for word in found).encode()
    except UnicodeEncodeError:  # no text of UTF-8
        raise NotHeld from None
    return found


def digits(cell: Any) -> str:
    try:
        return str(cell)
    except ValueError:  # Python writes no such long numbers
        raise NotHeld from None


# --- numpy, lists, sparse matrices --------------------------------------------------------------------


def _stack(columns: dict[str, Any]) -> Any:
    return np.column_stack(list(columns.values()))


def _objects_stack(columns: dict[str, Any]) -> Any:
    first, *_ = columns.values()
    array = np.empty((len(first), len(columns)), dtype=object)
    for j, column in enumerate(columns.values()):
        for i, cell in enumerate(column):
            array[i, j] = cell
    return array


def _structured(columns: dict[str, Any]) -> Any:
    length = len(next(iter(columns.values())))
    array = np.empty(length, dtype=[(name, np.float64) for name in columns])
    for name, column in columns.items():
        array[name] = column
    return array


def _masked(cells: list[Any]) -> Any:
    numbers = floats(cells)
    return np.ma.masked_array(numbers, mask=np.isnan(numbers))


def _complex(cells: list[Any]) -> Any:
    if not all(is_real(cell) or isinstance(cell, complex) for cell in cells):
        raise NotHeld
    return np.array([complex(as_float(cell)) if is_real(cell) else cell for cell in cells])


def _fixed_texts(cells: list[Any]) -> Any:
    """Texts of one public width, which holds a long one."""
    found = [word or "" for word in words(cells)]
    if any("\0" in word or len(word) > 64 for word in found):
        raise NotHeld
    return np.array(found, dtype="U64")


def _rows(kind: Callable[[Any], Any], columns: dict[str, Any]) -> Any:
    return [kind(row) for row in zip(*columns.values(), strict=True)]


def _numpy() -> Iterator[Memory]:
    for name in ("float64", "float32", "float16"):
        yield Memory(f"numpy {name}", partial(floats, dtype=name), no_words, _stack)
    for name in ("int64", "int8", "uint8"):
        yield Memory(f"numpy {name}", partial(integers, dtype=name), no_words, _stack)
    yield Memory("numpy bool", bools, no_words, _stack)
    yield Memory("numpy object", objects, objects, _objects_stack)
    yield Memory("numpy texts", _fixed_texts, _fixed_texts, _stack)
    yield Memory("numpy structured", floats, no_words, _structured)
    yield Memory("numpy complex", _complex, no_words, _stack)
    yield Memory("numpy masked", _masked, no_words, lambda columns: np.ma.column_stack(list(columns.values())))
    yield Memory("list of lists", list, list, partial(_rows, list))
    yield Memory("list of tuples", list, list, partial(_rows, tuple))
    yield Memory("dictionary of lists", list, list, dict)
    yield Memory("dictionary of arrays", objects, objects, dict)


def _sparse() -> Iterator[Memory]:
    from scipy import sparse

    def joined(made: Callable[[Any], Any], columns: dict[str, Any]) -> Any:
        return made(_stack(columns))

    for kind in ("csr", "csc", "coo"):
        for form in ("matrix", "array"):
            made = getattr(sparse, f"{kind}_{form}")
            yield Memory(f"scipy {kind}_{form}", floats, no_words, partial(joined, made))


def written(cell: Any) -> bytes:
    """A cell as it would stand in a file of text."""
    if cell is None:
        return b""
    if isinstance(cell, bytes):
        return cell
    if isinstance(cell, str):
        return cell.encode("utf-8", "surrogatepass")
    if is_real(cell):
        return digits(cell).encode()
    raise NotHeld


@cache
def every_container() -> tuple[Container, ...]:
    """All of them; those of libraries that are not installed are left out."""
    from tests.promises.surface import frames
    from tests.promises.surface.files import FILES

    return (*_numpy(), *_sparse(), *frames.of_pandas(), *frames.of_pyarrow(), *frames.of_polars(), *FILES)
