"""Cells that would warn when they are converted or compared: nothing of it is seen, and none is a number."""

import math
import warnings
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from discreet import DPLogisticRegression
from discreet.curator.records.admission import class_indices, grouping, numbers
from discreet.curator.tables import cells
from discreet.schema.cell_meaning import is_nothing, real_number
from discreet.solvers import GradientDescent


class Warning_(UserWarning):
    """What the cells below say."""


def _warn(*_):
    warnings.warn("contents", Warning_, stacklevel=2)
    return 7.0


class Loud:
    """An object that warns whenever it is converted or compared."""

    __float__ = __int__ = __index__ = __complex__ = _warn

    def __eq__(self, other):
        _warn()
        return True

    def __hash__(self):
        return 7


CELLS = {
    "an object": Loud(),
    "sparse": scipy.sparse.csr_matrix([[1.0]]),
    "sparse array": scipy.sparse.coo_array([[1.0]]),
    "array": np.array([7.0]),
    "array of none": np.array(7.0),
    "complex": np.complex128(7),
    "masked": np.ma.masked,
    "masked array": np.ma.array([1.0], mask=[True]),
    "series": pd.Series([7.0]),
    "frame": pd.DataFrame([[7.0]]),
    "index": pd.Index([7]),
    "date": np.datetime64("2000"),
    "span": np.timedelta64(7, "s"),
}


@pytest.fixture(autouse=True)
def no_warning():
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        yield
    assert [str(one.message) for one in seen] == []


@pytest.mark.parametrize("cell", CELLS.values(), ids=CELLS)
def test_a_cell_that_would_warn_is_no_number_and_nothing_is_seen(cell):
    assert math.isnan(real_number(cell))
    assert isinstance(is_nothing(cell), bool)
    column = np.empty(2, dtype=object)
    column[:] = [cell, "b"]
    assert np.isnan(numbers(column.reshape(-1, 1))).all()
    assert np.isnan(cells.numbers(column, frozenset())).all()
    assert cells.positions(column, ("a", "b"), frozenset()).tolist()[1] == 1
    assert cells.positions(cells.lowered(column), (1, 2), frozenset()).tolist()[1] == 2
    assert len(cells.names(column, frozenset())) == 2
    assert len(grouping(column, 2)[1]) == 3
    assert class_indices(column, ("a", "b")).tolist()[1] == 1


@pytest.mark.parametrize(
    ("cell", "expected"),
    [(True, 1), (7, 7), (0.5, 0.5), ("7", 7), (b"7", 7), (Decimal("0.5"), 0.5), (Fraction(1, 2), 0.5)]
    + [(kind(1), 1) for kind in (np.bool_, np.int8, np.uint64, np.float16, np.float32, np.float64, np.longdouble)]
    + [(np.str_("7"), 7), (np.bytes_(b"7"), 7)],
)
def test_numbers_are_numbers(cell, expected):
    assert real_number(cell) == expected


def test_a_fit_on_such_cells_shows_nothing():
    X = np.zeros((len(CELLS), 2), dtype=object)
    for i, cell in enumerate(CELLS.values()):
        X[i, 0] = cell
    model = DPLogisticRegression(1.0, 1e-6, bounds=1.0, classes=(0, 1), solver=GradientDescent(n_steps=2))
    model.fit(X, [0, 1] * (len(CELLS) // 2) + [0])


class LoudBytes(bytes):
    def __bytes__(self):
        _warn()
        return b"9"


class LoudScalar(np.float32):
    __float__ = _warn


class LoudEqual(float):
    def __eq__(self, other):
        return bool(_warn())

    __hash__ = float.__hash__


class Posing:
    """An object that says that it is a number."""

    @property
    def __class__(self):
        _warn()
        return float


SUBCLASSES = {
    "bytes": (LoudBytes(b"1"), 1.0),
    "scalar": (LoudScalar(1), math.nan),
    "comparison": (LoudEqual(1.0), 1.0),
    "posing": (Posing(), math.nan),
}


@pytest.mark.parametrize(("cell", "meant"), SUBCLASSES.values(), ids=SUBCLASSES)
def test_no_code_of_a_subclass_is_run(cell, meant):
    assert real_number(cell) == meant or (math.isnan(meant) and math.isnan(real_number(cell)))
    assert is_nothing(cell) is False
    column = np.empty(2, dtype=object)
    column[:] = [cell, "b"]
    assert class_indices(column, ("a", "b")).tolist()[1] == 1
