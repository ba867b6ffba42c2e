"""Tables with names: pandas, pyarrow and polars, in the types that their columns may have."""

import datetime
import math
from collections.abc import Callable, Iterator
from decimal import Decimal
from functools import cache, partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from tests.promises.surface.containers import (
    Column,
    Memory,
    NotHeld,
    as_float,
    bools,
    floats,
    integers,
    is_real,
    objects,
    words,
    written,
)
from tests.promises.surface.rows import ADDED, matrix_cells, table_cells
from tests.promises.surface.values import NUMBER, TEXTS


def _nullable(cells: list[Any], dtype: str) -> Any:
    import pandas as pd

    known = [cell for cell in cells if cell is not None]
    if dtype == "boolean":
        bools(known)
    elif dtype == "Int64":
        integers(known, np.int64)
    else:
        floats(known)
    made = [None if cell is None else round(cell) if dtype != "Float64" else float(cell) for cell in cells]
    return pd.array([bool(cell) if dtype == "boolean" and cell is not None else cell for cell in made], dtype=dtype)


def _pandas_words(cells: list[Any], dtype: Any) -> Any:
    import pandas as pd

    return pd.array(words(cells), dtype=dtype)


@cache
def _known(texts: bool) -> tuple[Any, ...]:
    """All the categories there are, which both neighbors declare."""
    if texts:
        ours = {cell for cells in (matrix_cells(worded=True), table_cells()) for name in cells.texts
                for cell in cells.columns[name]}  # fmt: skip
        return (*sorted(ours), ADDED, *(text for text in TEXTS.values() if type(text) is str))
    ours = {i / 1000 for i in range(1001)} | {float(age) for age in range(121)}
    return (*sorted(ours), NUMBER, 1e308, -1e308)


def _categories(cells: list[Any], texts: bool) -> Any:
    import pandas as pd

    known = _known(texts)
    if not all(is_missing(cell) or (type(cell) in (str, int, float) and cell in known) for cell in cells):
        raise NotHeld
    return pd.Categorical(cells, categories=pd.Index(known, dtype=object if texts else float))


def is_missing(cell: Any) -> bool:
    """None and NaN."""
    return cell is None or (isinstance(cell, float) and math.isnan(cell))


def _frame(columns: dict[str, Any]) -> Any:
    import pandas as pd

    return pd.DataFrame({name: pd.Series(column, copy=False) for name, column in columns.items()})


def _object_frame(columns: dict[str, Any]) -> Any:
    import pandas as pd

    return pd.DataFrame({name: pd.Series(column, dtype=object) for name, column in columns.items()})


def of_pandas() -> Iterator[Memory]:
    import pandas as pd
    import pyarrow as pa

    def made(name: str, number: Column, text: Column, join: Any = _frame) -> Memory:
        return Memory(f"pandas {name}", number, text, join, alone=pd.Series)

    text = partial(_pandas_words, dtype="string")
    yield made("float64", floats, objects)
    yield made("object", objects, objects, _object_frame)
    yield made("categorical", partial(_categories, texts=False), partial(_categories, texts=True))
    for dtype in ("Int64", "Float64", "boolean"):
        yield made(dtype, partial(_nullable, dtype=dtype), text)
    yield made("string", text, text)
    yield made("str", partial(_pandas_words, dtype="str"), partial(_pandas_words, dtype="str"))
    arrow = pd.ArrowDtype(pa.float64())
    words_type = pd.ArrowDtype(pa.large_string())
    yield made("Arrow-backed", lambda cells: pd.array(floats(cells), dtype=arrow),
               partial(_pandas_words, dtype=words_type))  # fmt: skip
    yield made("Sparse", lambda cells: pd.arrays.SparseArray(floats(cells), fill_value=0.0), objects)


def _arrow(cells: list[Any], kind: Any, accept: Callable[[Any], bool]) -> Any:
    import pyarrow as pa

    if not all(cell is None or accept(cell) for cell in cells):
        raise NotHeld
    try:
        return pa.array(cells, type=kind)
    except (pa.ArrowException, OverflowError, UnicodeEncodeError, TypeError, ValueError):
        raise NotHeld from None


def _arrow_words(cells: list[Any], kind: Any = None) -> Any:
    import pyarrow as pa

    return pa.array(words(cells), type=kind or pa.string())


def _arrow_bytes(cells: list[Any]) -> Any:
    import pyarrow as pa

    return pa.array([None if cell is None else written(cell) for cell in cells], type=pa.large_binary())


def _chunked(columns: dict[str, Any]) -> Any:
    import pyarrow as pa

    table = pa.table(columns)
    return pa.concat_tables([table.slice(0, 7), table.slice(7)])


def _decimal(cell: Any) -> bool:
    return isinstance(cell, Decimal) or (is_real(cell) and not isinstance(cell, bool) and math.isfinite(as_float(cell)))


def _decimals(cells: list[Any]) -> Any:
    import pyarrow as pa

    if not all(cell is None or _decimal(cell) for cell in cells):
        raise NotHeld
    made = [None if cell is None else Decimal(repr(float(cell)) if not isinstance(cell, Decimal) else cell)
            for cell in cells]  # fmt: skip
    return _arrow(made, pa.decimal128(38, 5), lambda cell: True)


def _dates(cells: list[Any]) -> Any:
    import pyarrow as pa

    day = datetime.date(2000, 1, 1)
    return _arrow([day if is_real(cell) else cell for cell in cells], pa.date32(), lambda c: type(c) is datetime.date)


def of_pyarrow() -> Iterator[Memory]:
    import pyarrow as pa

    number, text = partial(_arrow, kind=pa.float64(), accept=is_real), _arrow_words
    yield Memory("pyarrow Table", number, text, pa.table)
    yield Memory("pyarrow RecordBatch", number, text, lambda c: pa.RecordBatch.from_pydict(c))
    yield Memory(
        "pyarrow ChunkedArray",
        lambda cells: pa.chunked_array([number(cells[:7]), number(cells[7:])]),
        lambda cells: pa.chunked_array([text(cells[:7]), text(cells[7:])]),
        pa.table,
    )
    whole = partial(_arrow, kind=pa.int64(), accept=lambda cell: type(cell) in (int, bool))
    yield Memory("pyarrow int64", lambda cells: whole(_whole(cells)), text, pa.table)
    yield Memory("pyarrow texts", text, text, _chunked)
    yield Memory("pyarrow bytes", _arrow_bytes, _arrow_bytes, pa.table)
    coded = lambda cells: _arrow_words(cells).dictionary_encode()  # noqa: E731
    yield Memory("pyarrow dictionary", coded, coded, pa.table)
    yield Memory("pyarrow decimal", _decimals, text, pa.table)
    yield Memory("pyarrow dates", _dates, text, pa.table)
    yield Memory("pyarrow RecordBatchReader", number, text, lambda c: pa.table(c).to_reader(max_chunksize=7))
    yield Memory("Arrow stream", number, text, lambda c: _Stream(pa.table(c)))
    yield Memory("Arrow stream of bytes", _arrow_bytes, _arrow_bytes, lambda c: _Stream(pa.table(c)))


class _Stream:
    """Another library's table: batches, and no length."""

    def __init__(self, table: Any) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._table.to_reader(max_chunksize=7).__arrow_c_stream__(requested_schema)


def _whole(cells: list[Any]) -> list[Any]:
    return [round(cell) if isinstance(cell, float) and math.isfinite(cell) else cell for cell in cells]


def of_polars() -> Iterator[Memory]:
    if find_spec("polars") is None:
        return
    pl: Any = import_module("polars")

    def made(cells: list[Any], kind: Any, accept: Callable[[Any], bool]) -> Any:
        if not all(cell is None or (accept(cell) and not _is_long(cell)) for cell in cells):
            raise NotHeld
        try:
            return pl.Series(cells, dtype=kind)
        except (TypeError, OverflowError, ValueError, pl.exceptions.PolarsError):
            raise NotHeld from None

    def texts(cells: list[Any]) -> Any:
        return pl.Series(words(cells), dtype=pl.String)

    def number(cells: list[Any]) -> Any:
        return made([float(c) if is_real(c) and math.isfinite(as_float(c)) else c for c in cells], pl.Float64, is_real)

    yield Memory("polars", number, texts, pl.DataFrame)
    yield Memory("polars texts", texts, texts, pl.DataFrame)
    yield Memory("polars LazyFrame", number, texts, pl.LazyFrame)
    yield Memory("polars LazyFrame of texts", texts, texts, lambda columns: pl.LazyFrame(columns).filter(True))
    yield Memory(
        "polars int64",
        lambda cells: made(_whole(cells), pl.Int64, lambda cell: type(cell) in (int, bool)),
        texts,
        pl.DataFrame,
    )
    yield Memory(
        "polars Object",
        lambda cells: made(cells, pl.Object, lambda cell: True),
        lambda cells: made(cells, pl.Object, lambda cell: True),
        pl.DataFrame,
    )


def _is_long(cell: Any) -> bool:
    """Numbers that Python does not write, about which polars complains on its own."""
    return type(cell) is int and cell.bit_length() > 10_000
