"""Hostile cells: what one record may hold that a program might stumble over, say aloud, or fail on.

Texts carry a sentinel that no program makes up by itself, so that a search of all outputs for it means something; the
changed record holds a sentinel number, too. A value is made anew for each case: some of them act when they are asked.
"""

import datetime
import logging
import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

TEXT = "zq7sentinel41x"
NUMBER = 48151623.42
_NUMBERS = (np.array(NUMBER, dtype=kind).tobytes() for kind in ("<f8", ">f8", "<f4"))
TRACES = (TEXT.encode(), b"481516", *_NUMBERS)
"""What gives the changed record away, wherever it turns up; pickles write numbers with their largest byte first."""

TOUCHED: list[str] = []
"""What happened to a tripwire, and when the ledger was charged, in order."""
CHARGED = "charged"


@dataclass(frozen=True)
class Hostile:
    """A cell to try. ``whole`` replaces the record's line or file rather than a cell: see ``containers.py``."""

    name: str
    make: Callable[[], Any]
    whole: str = ""


def _constant(value: Any) -> Callable[[], Any]:
    return lambda: value


def _raises(method: str) -> Any:
    raise ValueError(f"{TEXT} in {method}")


def _warns(method: str) -> Any:
    warnings.warn(f"{TEXT} in {method}", stacklevel=2)


def _prints(method: str) -> Any:
    print(f"{TEXT} in {method}")


def _logs(method: str) -> Any:
    logging.getLogger("cell").error("%s in %s", TEXT, method)


def _notes(method: str) -> Any:
    TOUCHED.append(method)


_ANSWERS: dict[str, Any] = {
    "__float__": math.nan,
    "__int__": 0,
    "__index__": 0,
    "__bool__": False,
    "__eq__": False,
    "__ne__": True,
    "__lt__": False,
    "__gt__": False,
    "__hash__": 7,
    "__str__": TEXT,
    "__repr__": TEXT,
    "__format__": TEXT,
}
"""What a cell answers, having acted, to those who ask it to be a number, a key or a text."""


def acting(act: Callable[[str], Any], methods: tuple[str, ...] = tuple(_ANSWERS)) -> Any:
    """A cell that acts whenever one of these methods is called."""

    def method(name: str) -> Callable[..., Any]:
        def called(self: Any, *rest: Any) -> Any:
            act(name)
            return _ANSWERS[name]

        return called

    return type("Cell", (), {"__hash__": object.__hash__, **{name: method(name) for name in methods}})()


def _sparse() -> Any:
    from scipy import sparse

    return sparse.csr_matrix([[NUMBER, 1.0]])


def _pandas(name: str) -> Any:
    import pandas as pd

    made = {"Series": lambda: pd.Series([TEXT]), "Timestamp": lambda: pd.Timestamp("2020-01-01")}
    return made[name]() if name in made else getattr(pd, name)


_LONG = TEXT + "x" * 140_000

NUMBERS: dict[str, Any] = {
    "NaN": math.nan,
    "infinity": math.inf,
    "minus infinity": -math.inf,
    "1e308": 1e308,
    "-1e308": -1e308,
    "1e-300": 1e-300,
    "subnormal": 5e-324,
    "negative zero": -0.0,
    "sentinel number": NUMBER,
    "2^53 + 1": 2**53 + 1,
    "2^64": 2**64,
    "-2^63 - 1": -(2**63) - 1,
    "10^400": 10**400,
    "10^5000": 10**5000,
    "True": True,
    "a label of another type": 1.0,
    "an unknown label": 7,
    "float32": np.float32(NUMBER),
    "float16 NaN": np.float16(math.nan),
    "int64": np.int64(2**63 - 1),
    "long double": np.longdouble(10) ** 400,
    "numpy bool": np.bool_(True),
}

TEXTS: dict[str, Any] = {
    "sentinel text": TEXT,
    "1e400 as text": "1e400",
    "inf as text": "inf",
    "NaN as text": "NaN",
    "a number as text": "0.5",
    "5000 digits": "9" * 5000,
    "Arabic digits": "\u0661\u0662",
    "1_000": "1_000",
    "hexadecimal": "0x1p3",
    "empty text": "",
    "blank": " \t",
    "140,000 characters": _LONG,
    "Latin-1 bytes": f"Jos\xe9 {TEXT}".encode("latin-1"),
    "invalid UTF-8": b"\xff\xfe\xc3" + TEXT.encode(),
    "bytes": TEXT.encode(),
    "NUL": f"{TEXT}\0b",
    "quotes": f'"{TEXT}" "',
    "separators": f"{TEXT},;\t|",
    "new line": f"{TEXT}\nb",
    "carriage return": f"{TEXT}\rb\r\n",
    "right-to-left override": f"\u202e{TEXT}",
    "terminal escape": f"\x1b]0;{TEXT}\x07\x1b[2J",
    "markup": f"[red]{TEXT}[/red]<script>",
    "lone surrogate": f"\ud800{TEXT}",
    "format": f"{{0}} %s {TEXT}",
    "text of numpy": np.str_(TEXT),
}

OBJECTS: dict[str, Callable[[], Any]] = {
    "None": _constant(None),
    "pd.NA": partial(_pandas, "NA"),
    "pd.NaT": partial(_pandas, "NaT"),
    "timestamp": partial(_pandas, "Timestamp"),
    "date": _constant(datetime.date(1953, 4, 1)),
    "date and time": _constant(datetime.datetime(1953, 4, 1, 4, 8)),
    "datetime64": _constant(np.datetime64("1953-04-01")),
    "timedelta64": _constant(np.timedelta64(5, "D")),
    "decimal": _constant(Decimal("48151623.42")),
    "decimal NaN": _constant(Decimal("NaN")),
    "signaling NaN": _constant(Decimal("sNaN")),
    "decimal 1e9999": _constant(Decimal("1e9999")),
    "fraction": _constant(Fraction(4815162342, 100)),
    "fraction beyond floats": _constant(Fraction(10**400, 3)),
    "complex": _constant(complex(NUMBER, 1.0)),
    "list": lambda: [NUMBER, TEXT],
    "empty list": list,
    "tuple": _constant((NUMBER,)),
    "dictionary": lambda: {TEXT: NUMBER},
    "set": lambda: {TEXT},
    "array": lambda: np.array([NUMBER, 1.0]),
    "array of one": lambda: np.array([NUMBER]),
    "array of no dimension": lambda: np.array(NUMBER),
    "sparse matrix": _sparse,
    "series": partial(_pandas, "Series"),
    "bytearray": lambda: bytearray(TEXT.encode()),
    "type": _constant(type(TEXT, (), {})),
    **{
        f"raises in {name}": partial(acting, _raises, (name,))
        for name in ("__float__", "__eq__", "__hash__", "__bool__", "__str__", "__repr__")
    },
    "raises in everything": partial(acting, _raises),
    "warns in everything": partial(acting, _warns),
    "prints in everything": partial(acting, _prints),
    "logs in everything": partial(acting, _logs),
    "tripwire": partial(acting, _notes),
}

WHOLE = (
    Hostile("a line with too few cells", _constant(TEXT), whole="line"),
    Hostile("a line with too many cells", _constant(f"{TEXT},{NUMBER},,,,,,,,,"), whole="line"),
    Hostile("unreadable pages", _constant(None), whole="pages"),
    Hostile("five rows of one person", _constant(NUMBER), whole="rows"),
)
"""Records that are no cells: lines of a CSV file, pages of a Parquet file, more rows of one person."""

VALUES: tuple[Hostile, ...] = (
    *(Hostile(name, _constant(value)) for name, value in {**NUMBERS, **TEXTS}.items()),
    *(Hostile(name, make) for name, make in OBJECTS.items()),
    *WHOLE,
)
