"""Values that a caller may hand in for any parameter, by mistake or by malice. Names are what reports show."""

import datetime
import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

VALUES: dict[str, Callable[[], Any]] = {
    "None": lambda: None,
    "True": lambda: True,
    "False": lambda: False,
    "0": lambda: 0,
    "1": lambda: 1,
    "2": lambda: 2,
    "3.0": lambda: 3.0,
    "2.5": lambda: 2.5,
    "0.5": lambda: 0.5,
    "-1": lambda: -1,
    "-0.5": lambda: -0.5,
    "nan": lambda: math.nan,
    "inf": lambda: math.inf,
    "-inf": lambda: -math.inf,
    "5e-324": lambda: 5e-324,
    "1e20": lambda: 1e20,
    "1e308": lambda: 1e308,
    "2**63": lambda: 2**63,
    "10**400": lambda: 10**400,
    "a text": lambda: "word",
    "an empty text": lambda: "",
    "a number as text": lambda: "2",
    "bytes": lambda: b"2",
    "complex": lambda: 1 + 2j,
    "Decimal": lambda: Decimal("0.5"),
    "Fraction": lambda: Fraction(1, 2),
    "a date": lambda: datetime.date(2020, 1, 1),
    "np.int64": lambda: np.int64(2),
    "np.float32": lambda: np.float32(0.5),
    "np.bool": lambda: np.bool_(True),
    "an empty list": lambda: [],
    "a list": lambda: [1, 2],
    "a ragged list": lambda: [[1], [2, 3]],
    "a list of texts": lambda: ["a", "b"],
    "a pair": lambda: (0.0, 1.0),
    "a pair of NaN": lambda: (math.nan, math.nan),
    "a dict": lambda: {"a": 1},
    "a set": lambda: {1, 2},
    "a mapping of ranges": lambda: {"x": (0.0, 1.0)},
    "an iterator": lambda: iter([1, 2]),
    "an array": lambda: np.array([0.5, 1.0]),
    "an array of one": lambda: np.array([1]),
    "an array of none": lambda: np.array([]),
    "a matrix": lambda: np.eye(3),
    "an array of objects": lambda: np.array([None, "a"], dtype=object),
    "an object": object,
    "a class": lambda: int,
    "a function": lambda: lambda *_, **__: None,
}
