"""Narrow integers, half floats, junk objects, duplicate entries: the private copy is made without overflow."""

import os
import subprocess
import sys
import warnings
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

from discreet.losses import Logistic, Softmax, Squared
from tests.equivalence.reference import PURE, ZERO_OUT, bounds_for, measure, records_of, size

DTYPES = ["?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", ">f8", "g"]
SPARSE_DTYPES = ["?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8"]


def extremes(dtype):
    kind = np.dtype(dtype)
    if kind.kind == "b":
        return np.array([[True, True, False]])
    limits = np.iinfo(kind) if kind.kind in "iu" else np.finfo(kind)
    return np.array([[limits.max, limits.min, 1]], dtype=kind)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("budget", [ZERO_OUT, PURE], ids=["l2", "l1"])
@pytest.mark.parametrize("features", [1.0, 300.0, 2.0**63])
def test_every_width_of_number(dtype, budget, features):
    for loss in (Logistic(), Squared(), Softmax(3)):
        one = measure(extremes(dtype), [1], bounds_for(loss, features), loss, clip=1e-4, budget=budget)
        assert 0 < size(one) <= 1 or dtype == "g"  # the largest long double is infinite as a double: a null record


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u2", "f2", "f4"])
def test_narrow_numbers_encode_as_their_values(dtype):
    X = extremes(dtype)
    same = records_of(X.astype(np.float64), [1.0], bounds_for(Logistic(), 1e5))
    assert (records_of(X, [1.0], bounds_for(Logistic(), 1e5)).rows == same.rows).all()


@pytest.mark.parametrize("dtype", SPARSE_DTYPES)
@pytest.mark.parametrize("kind", ["coo", "csr", "csc"])
def test_duplicate_entries_are_added_before_the_norm_is_taken(dtype, kind):
    data, rows, columns = np.full(6, 1, dtype=dtype), np.zeros(6, dtype=int), np.array([0, 0, 0, 0, 1, 1])
    X = sp.coo_matrix((data, (rows, columns)), shape=(1, 3))
    if kind == "csr":
        X = sp.csr_matrix((data, columns, np.array([0, 6])), shape=(1, 3))
    if kind == "csc":
        X = sp.csc_matrix((data, np.zeros(6, dtype=int), np.array([0, 4, 6, 6])), shape=(1, 3))
    bounds = bounds_for(Logistic(), 10.0)
    one = measure(X, [1], bounds, Logistic(), clip=1e-3)
    dense = measure(X.toarray(), [1], bounds, Logistic(), clip=1e-3)
    assert 0 < size(one) <= 1
    if dtype != "?":  # scipy's own sums of booleans depend on the format
        assert one.exact.tolist() == dense.exact.tolist()


@pytest.mark.parametrize("make", [sp.csr_matrix, sp.csr_array], ids=["matrix", "array"])
def test_a_flag_that_denies_the_duplicates_is_not_believed(make):
    X = make((np.ones(4), np.arange(4), np.array([0, 4])), shape=(1, 4))
    X.sum_duplicates()
    X.indices[:] = 0  # scipy still calls it canonical
    assert size(measure(X, [1], bounds_for(Logistic(), 5.0), Logistic(), clip=1e-3)) <= 1


JUNK = [
    "SECRET", None, b"x", [], {}, (1, 2), 1 + 2j, np.complex128(1 + 2j), 10**400, -(10**400), Decimal("sNaN"),
    Decimal("1e999"), np.datetime64("2020"), np.array([1.0]), np.array([1.0, 2.0]), object(), float, "inf", "nan",
]  # fmt: skip


@pytest.mark.parametrize("junk", JUNK, ids=lambda junk: f"{type(junk).__name__}-{str(junk)[:9]}".replace(" ", ""))
def test_a_cell_that_is_no_number_makes_the_record_null_in_silence(junk):
    X = np.empty((2, 2), dtype=object)
    X[:] = 0.5
    X[0, 1] = junk
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        both = measure(X, [1, 1], bounds_for(Logistic()), Logistic(), clip=1e-3)
    assert not shown
    good = measure(X[1:].astype(float), [1], bounds_for(Logistic()), Logistic(), clip=1e-3)
    assert both.exact.tolist() == good.exact.tolist()


@pytest.mark.parametrize(
    "number", [True, np.int8(-128), np.float16(300), Fraction(1, 3), Decimal("0.1"), 10**30, "2.5"]
)
def test_a_cell_that_is_a_number_of_any_type_counts(number):
    X = np.array([[number, 1.0]], dtype=object)
    bounds = bounds_for(Logistic(), 1e3)
    assert (
        measure(X, [1], bounds, Logistic()).exact.tolist()
        == measure(np.array([[float(number), 1.0]]), [1], bounds, Logistic()).exact.tolist()
    )


@pytest.mark.parametrize("loss", [Logistic(), Squared(), Softmax(3)], ids=["Logistic", "Squared", "Softmax"])
@pytest.mark.parametrize("label", [50, -1, 1e308, np.nan, np.inf, None, "x", 1.5])
def test_a_label_outside_the_set_is_null_or_clipped(loss, label):
    y = np.array([label], dtype=object)
    one = measure(np.ones((1, 2)), y, bounds_for(loss), loss, clip=1e9)
    assert size(one) <= 1
    if loss.task == "classification" or not isinstance(label, (int, float)) or not np.isfinite(label):
        assert size(one) == 0


NORMS = (1e-9, 1e-4, 0.5, 1.7, 2.0e5, 2.6e5, 2.0**32, 1e300)
PROGRAM = """
import numpy as np
from discreet.losses import Logistic
from tests.equivalence.reference import bounds_for, records_of
for row_norm in {norms}:
    bounds = bounds_for(Logistic(), row_norm=row_norm, scale={scale!r})
    records = records_of(np.array([[1.0, -1.0, 0.5], [1.0, 0.0, 0.0]]), [1.0, 1.0], bounds)
    print(*records.rows.ravel(), flush=True)
"""


@pytest.mark.few(1)
@pytest.mark.parametrize(("scale", "bits"), [("feature", 14), ("global", 21)])
def test_any_declared_row_norm_is_kept_and_ends(scale, bits):
    """In a process of its own, since a bound whose square wraps could loop for ever."""
    command = [sys.executable, "-c", PROGRAM.format(norms=NORMS, scale=scale)]
    paths = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=paths)
    lines = ran.stdout.splitlines()
    assert ran.returncode == 0, f"failed at row_norm={NORMS[len(lines)]}"
    for row_norm, line in zip(NORMS, lines, strict=True):
        values = [Fraction(int(v), 1 << bits) for v in line.split()]
        for row in (values[:3], values[4:7]):
            assert sum(x * x for x in row) <= Fraction(row_norm) ** 2
        if row_norm >= 1.5:
            assert values[:3] == [1, -1, Fraction(1, 2)]
