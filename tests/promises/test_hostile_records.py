"""Whatever a record holds, it cannot raise, print, enlarge its contribution or change how others are read.

Bad values make their record null in silence; bad containers are refused, and no text ever shows a value.
"""

import os
import re
import subprocess
import sys
import warnings
from contextlib import contextmanager
from decimal import Decimal
from fractions import Fraction
from itertools import product

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.bounds import Bounds
from discreet.curator.private_data import PrivateData
from discreet.errors import DiscreetError, Unsupported
from discreet.losses import Logistic, Softmax, Squared
from discreet.testing import assert_replay
from tests import registry
from tests.promises.reference import LOSSES, PURE, ZERO_OUT, bounds_for, measure, size

# --- values are null in silence, containers are refused with a remedy --------------------------------


SECRET, WORD = 987654321.25, "SECRETVALUE"
BOUNDS = Bounds(1.0, classes=(0, 1), target=(0.0, 1.0))
GOOD = np.array([[0.5, -0.25], [0.1, 0.9]])


def texts(error):
    """Everything a traceback could print of an error, its causes and its contexts."""
    seen, queue = [], [error]
    while queue:
        e = queue.pop()
        if e is not None and e not in seen:
            seen.append(e)
            queue += [e.__cause__, e.__context__]
    return " | ".join(f"{e!s} {e!r} {e.args} {getattr(e, '__notes__', '')}" for e in seen)


def leaks(text):
    return "987654321" in text or WORD in text


@contextmanager
def silence():
    """No warning, whatever becomes of it (a filter that raises could be swallowed)."""
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        yield
    assert not shown


def with_cell(value, dtype=object):
    X = np.full((2, 2), 0.5, dtype=dtype)
    X[0, 1] = value
    return X


# ---------------------------------------------------------------------- values: null, in silence

CELLS = {
    "nan": with_cell(np.nan, float), "inf": with_cell(-np.inf, float), "None": with_cell(None),
    "string": with_cell(WORD), "NA": with_cell(pd.NA), "NaT": with_cell(pd.NaT),
    "complex": with_cell(np.complex128(SECRET)), "date": with_cell(np.datetime64("2020")),
    "long double": with_cell(np.longdouble("1e400"), np.longdouble),
    "signaling nan": with_cell(1, np.uint32) * 0 + np.array([[0, 0x7F800001], [0, 0]], dtype=np.uint32),
    "nullable": pd.DataFrame({"a": [0.5, 0.5], "b": pd.array([None, 0.5], dtype="Float64")}),
    "strings": pd.DataFrame({"a": [0.5, 0.5], "b": [WORD, "0.5"]}, dtype=object),
    "category": pd.DataFrame({"a": [0.5, 0.5], "b": pd.Categorical(np.array([WORD, 0.5], dtype=object))}),
    "lists": [[0.5, WORD], [0.5, 0.5]],
    "sparse": sp.csr_matrix(with_cell(np.nan, float)),
    "sparse inf": sp.coo_array(with_cell(np.inf, float)),
    "cancelling": sp.coo_matrix(([np.inf, -np.inf, 0.5, 0.5], ([0, 0, 1, 1], [1, 1, 0, 1])), shape=(2, 2)),
}  # fmt: skip
CELLS["signaling nan"] = CELLS["signaling nan"].view(np.float32)
CELLS["signaling nan"][1] = 0.5


@pytest.mark.parametrize("name", CELLS)
def test_a_bad_value_makes_its_record_null_and_nothing_shows(name, capfd):
    alone = measure(np.array([[0.5, 0.5]]), [1], BOUNDS, Logistic()).exact
    with silence():
        assert measure(CELLS[name], [1, 1], BOUNDS, Logistic()).exact.tolist() == alone.tolist()
    assert capfd.readouterr() == ("", "")


LABELS = [
    [SECRET, 1], [WORD, 1], [None, 1], [np.nan, 1], [[1], 1], [{}, 1], pd.Series([pd.NA, 1], dtype="Int64"),
    pd.Categorical([WORD, 1]), np.array([-1, 1], dtype=np.int8), np.array([2**63, 1], dtype=np.uint64),
]  # fmt: skip


@pytest.mark.parametrize("y", LABELS, ids=lambda y: f"{type(y).__name__}-{type(y[0]).__name__}")
@pytest.mark.parametrize("loss", [Logistic(), Softmax(2)], ids=["one output", "two outputs"])
def test_a_label_outside_the_declared_makes_its_record_null(y, loss):
    alone = measure(GOOD[1:], [1], BOUNDS, loss).exact
    with silence():
        assert measure(GOOD, y, BOUNDS, loss).exact.tolist() == alone.tolist()


# ------------------------------------------------------------------ containers: refused, with a remedy

FULL = np.full((3, 2), SECRET)
Y = [0, 1, 1]
CONTAINERS = {
    "one dimension": (FULL[0], [0, 1], BOUNDS, r"reshape"),
    "a series": (pd.Series(FULL[:, 0]), Y, BOUNDS, r"two dimensions"),
    "three dimensions": (FULL[None], [0], BOUNDS, r"two dimensions"),
    "a sparse vector": (sp.coo_array(FULL[0]), [0, 1], BOUNDS, r"two dimensions"),
    "a number": (SECRET, [0], BOUNDS, r"two dimensions"),
    "ragged": ([[SECRET, SECRET], [SECRET]], [0, 1], BOUNDS, r"two dimensions|different lengths"),
    "complex": (FULL.astype(complex), Y, BOUNDS, r"real numbers"),
    "complex frame": (pd.DataFrame(FULL.astype(complex)), Y, BOUNDS, r"real numbers"),
    "complex sparse": (sp.csr_matrix(FULL.astype(complex)), Y, BOUNDS, r"real numbers"),
    "dates": (np.full((3, 2), "2020-01-01", dtype="M8[D]"), Y, BOUNDS, r"real numbers"),
    "date frame": (pd.DataFrame({"a": pd.to_datetime(["2020-01-01"] * 3)}), Y, BOUNDS, r"real numbers"),
    "text frame": (pd.DataFrame({"a": [WORD, "0.5", "1"]}), Y, BOUNDS, r"stored as text: a. .*TableModel"),
    "text categories": (pd.DataFrame({"a": pd.Categorical([WORD, "0.5", "1"])}), Y, BOUNDS, r"stored as text: a. "),
    "text array": (np.array([[WORD], ["0.5"], ["1"]]), Y, BOUNDS, r"stored as text. "),
    "durations": (pd.DataFrame({"a": pd.to_timedelta([1, 2, 3])}), Y, BOUNDS, r"real numbers"),
    "records": (np.zeros(3, dtype=[("a", float)]), Y, BOUNDS, r"real numbers"),
    "no columns": (np.empty((3, 0)), Y, BOUNDS, r"minimum of 1"),
    "too few targets": (FULL, [0, 1], BOUNDS, r"one target for each row"),
    "no targets": (FULL, None, BOUNDS, r"one target for each row|y"),
    "several targets": (FULL, np.full((3, 2), SECRET), BOUNDS, r"one (column|target)|two columns|several outputs"),
    "complex targets": (FULL, np.array([SECRET + 1j] * 3), BOUNDS, r"real|numbers"),
    "date targets": (FULL, np.array(["2020"] * 3, dtype="M8[D]"), BOUNDS, r"real|numbers|labels"),
    "ranges": (FULL, Y, Bounds([(0, 1)] * 5, classes=(0, 1), target=(0, 1)), r"5 feature ranges .* 2 columns.*Bounds"),
    "no names": (FULL, Y, Bounds({"a": (0, 1)}, classes=(0, 1), target=(0, 1)), r"data frame"),
    "other names": (pd.DataFrame(FULL, columns=["a", "z"]), Y,
                    Bounds({"a": (0, 1)}, classes=(0, 1), target=(0, 1)), r"column\(s\) z.*Bounds\("),
    "no zero": (sp.csr_matrix(FULL), Y, Bounds([(1, 2)] * 2, classes=(0, 1), target=(0, 1)), r"contain 0.*widen"),
}  # fmt: skip


@pytest.mark.parametrize("name", CONTAINERS)
def test_a_bad_container_is_refused_with_its_remedy(name):
    X, y, bounds, remedy = CONTAINERS[name]
    for loss in (Logistic(), Squared()):
        with pytest.raises(DiscreetError) as refusal:
            measure(X, y, bounds, loss)
        assert re.search(remedy, str(refusal.value))
        assert not leaks(texts(refusal.value))


@pytest.mark.parametrize(
    "groups", [[WORD] * 3, [[WORD, WORD]], np.full((2, 2), WORD), 5], ids=["long", "flat", "square", "number"]
)
def test_groups_name_one_person_a_row(groups):
    with pytest.raises(Unsupported, match="one person for each row") as refusal:
        measure(GOOD, [0, 1], BOUNDS, Logistic(), groups=groups)
    assert not leaks(texts(refusal.value))


class Speechless:
    """A name that can be neither compared nor written."""

    def __eq__(self, other):
        raise ValueError(WORD)

    __hash__ = None

    def __repr__(self):
        raise ValueError(WORD)


def test_a_person_whose_name_cannot_be_written_is_a_person():
    """An error would come before the charge, and tell that somebody has such a name."""
    nameless = Speechless()
    named, other = (measure(GOOD, [0, 1], BOUNDS, Logistic(), groups=who) for who in (["a", "b"], ["a", nameless]))
    assert (named.exact == other.exact).all()
    twice, once = (measure(GOOD, [0, 1], BOUNDS, Logistic(), groups=[who] * 2) for who in (nameless, "a"))
    assert (twice.exact == once.exact).all()


def test_a_private_number_of_records_is_in_no_text():
    with pytest.raises(Unsupported) as refusal:
        PrivateData(np.empty((4321, 0)), [0] * 4321, BOUNDS)
    assert "4321" not in texts(refusal.value)


# ---------------------------------------------------------------------- numbers that overflow, in silence

FARTHEST = np.finfo(float).max


@pytest.mark.parametrize("cell", [-FARTHEST, FARTHEST])
def test_a_cell_that_overflows_when_it_is_centered_shows_nothing(cell):
    """Ranges that leave out 0 are centered; the largest double less their middle is no double."""
    far = Bounds([(1e300, 2e300), (-2e300, -1e300)], classes=(0, 1))
    with silence():
        found = measure(np.array([[1.5e300, -1.5e300], [cell, cell]]), [1, 1], far, Logistic())
    assert np.abs(found.exact).max() <= 2 * found.unit.bound


# --- no record contributes more than B, in Python integers -------------------------------------------


EXTREMES = [np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324, -5e-324, 1e-170, 0.0, -0.0, 1.0, -1.0, 2.0**53 + 2, 0.1]
any_cell = st.one_of(st.sampled_from(EXTREMES), st.floats(width=64), st.floats(-2, 2))
any_label = st.one_of(st.sampled_from([0, 1, 2, -1, 50, np.nan, np.inf, 1e308]), st.floats(0, 3))
weights = st.lists(st.one_of(st.floats(-3, 3), st.sampled_from([0.0, 1e-300, 1e300, -1e300])), min_size=1, max_size=5)
clips = st.sampled_from([1e-30, 1e-3, 0.3, 1.0, 7.0, 1e9])
ranges = st.sampled_from([1.0, 1e-12, 255.0, 1e300, [(-1, 1), (0, 1e6), (-1e-9, 0), (0, 0)]])
norms = st.sampled_from([None, 1.0, 1e-3, 0.37, 100.0])
each_loss = pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)
bounded = settings(max_examples=40, deadline=None)


def stored(rows, sparse):
    X = np.array(rows, dtype=np.float64)
    return sp.csr_matrix(X) if sparse else X


@each_loss
@bounded
@given(
    row=st.lists(any_cell, min_size=4, max_size=4), label=any_label, w=weights, clip=clips, features=ranges,
    longest=norms, sparse=st.booleans(), pure=st.booleans(), intercept=st.booleans(),
)  # fmt: skip
def test_one_record_contributes_at_most_b(loss, row, label, w, clip, features, longest, sparse, pure, intercept):
    bounds = bounds_for(loss, features, row_norm=longest)
    budget = PURE if pure else ZERO_OUT
    one = measure(stored([row], sparse), [label], bounds, loss, w=w, clip=clip, budget=budget, fit_intercept=intercept)
    assert one.norm == ("l1" if pure else "l2")
    assert size(one) <= 1


@pytest.mark.thorough
@pytest.mark.parametrize("loss", [LOSSES[0], LOSSES[1], LOSSES[5]], ids=["Logistic", "Squared", "Softmax"])
@bounded
@given(row=st.lists(any_cell, min_size=4, max_size=4), label=any_label, w=weights, features=ranges,
       sparse=st.booleans(), longest=norms, pure=st.booleans())  # fmt: skip
def test_also_where_one_scale_serves_all_features(loss, row, label, w, features, sparse, longest, pure):
    bounds = bounds_for(loss, features, row_norm=longest, scale="global")
    one = measure(stored([row], sparse), [label], bounds, loss, w=w, budget=PURE if pure else ZERO_OUT)
    assert size(one) <= 1


@each_loss
@settings(max_examples=30, deadline=None)
@given(rows=st.lists(st.lists(any_cell, min_size=3, max_size=3), min_size=1, max_size=7), label=any_label, w=weights,
       sparse=st.booleans(), pure=st.booleans())  # fmt: skip
def test_all_rows_of_a_person_contribute_at_most_b(loss, rows, label, w, sparse, pure):
    budget = PURE if pure else ZERO_OUT
    groups = ["Ann"] * len(rows)
    y = [label] * len(rows)
    person = measure(stored(rows, sparse), y, bounds_for(loss), loss, w=w, clip=1e-3, budget=budget, groups=groups)
    assert size(person) <= 1


@pytest.mark.parametrize(
    "groups",
    [[7, 7.0, np.float64(7), np.int64(7)], np.array([7, 7.0, np.int64(7), 7], dtype=object), [None] * 4, [np.nan] * 4],
    ids=["list", "objects", "None", "NaN"],
)
def test_equal_names_are_one_person_whatever_their_type(groups):
    person = measure(np.ones((4, 2)), [1] * 4, bounds_for(LOSSES[0]), LOSSES[0], clip=1e-3, groups=groups)
    assert size(person) <= 1


@each_loss
def test_the_bound_is_reached_so_that_the_tests_above_have_teeth(loss):
    """A clip far below every gradient: contributions lie just under B, never above."""
    label = 0 if loss.task == "classification" else 3
    near = measure(np.array([[0.9, -1.0, 0.2]]), [label], bounds_for(loss), loss, clip=1e-6)
    assert 0.999 < size(near) <= 1


@pytest.mark.parametrize("columns", [2**21 + 5, 2**22])
def test_the_norm_of_a_very_wide_record_does_not_wrap(columns):
    """2^22 columns of 2^21 have a squared norm of 2^64: a 64-bit sum wraps, and the clip with it. Refusing is fine."""
    X = sp.csr_matrix((np.ones(columns), np.arange(columns), np.array([0, columns])), shape=(1, columns))
    try:
        wide = measure(X, [1], bounds_for(LOSSES[0], scale="global"), LOSSES[0], clip=1.0)
    except ValueError as refusal:
        assert "column" in str(refusal) or "feature" in str(refusal)  # noqa: PT017
        return
    values = wide.exact.ravel().astype(np.float64)  # a float sum will do: the defect was a factor of 1024
    assert np.sqrt(np.sum(values**2)) <= wide.unit.bound * (1 + 1e-9)


# --- numbers of every width, junk objects, duplicate entries -----------------------------------------


DTYPES = ["?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", ">f8", "g"]
SPARSE_DTYPES = ["?", "i1", "u8", "f4", "f8"]


def extremes(dtype):
    kind = np.dtype(dtype)
    if kind.kind == "b":
        return np.array([[True, True, False]])
    limits = np.iinfo(kind) if kind.kind in "iu" else np.finfo(kind)
    return np.array([[limits.max, limits.min, 1]], dtype=kind)


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_width_of_number(dtype):
    for loss, budget, features in product((Logistic(), Squared(), Softmax(3)), (ZERO_OUT, PURE), (1.0, 300.0, 2.0**63)):
        one = measure(extremes(dtype), [1], bounds_for(loss, features), loss, clip=1e-4, budget=budget)
        assert 0 < size(one) <= 1 or dtype == "g"  # the largest long double is infinite as a double: a null record


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


NORMS = (1e-9, 1e-4, 0.5, 1.7, 2.0e5, 2.6e5, 2.0**32, 1e300)
PROGRAM = """
import numpy as np
from discreet.losses import Logistic
from tests.promises.reference import bounds_for, records_of
for scale in ("feature", "global"):
    for row_norm in {norms}:
        bounds = bounds_for(Logistic(), row_norm=row_norm, scale=scale)
        records = records_of(np.array([[1.0, -1.0, 0.5], [1.0, 0.0, 0.0]]), [1.0, 1.0], bounds)
        print(*records.rows.ravel(), flush=True)
"""


def test_any_declared_row_norm_is_kept_and_ends():
    """In a process of its own, since a bound whose square wraps could loop for ever."""
    command = [sys.executable, "-c", PROGRAM.format(norms=NORMS)]
    paths = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=paths)
    lines = ran.stdout.splitlines()
    cases = [(norm, bits) for bits in (14, 21) for norm in NORMS]
    assert ran.returncode == 0, f"failed at (row_norm, bits)={cases[len(lines)]}"
    for (row_norm, bits), line in zip(cases, lines, strict=True):
        values = [Fraction(int(v), 1 << bits) for v in line.split()]
        for row in (values[:3], values[4:7]):
            assert sum(x * x for x in row) <= Fraction(row_norm) ** 2
        if row_norm >= 1.5:
            assert values[:3] == [1, -1, Fraction(1, 2)]


# --- strange cells, replayed ---------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "lil", "dok", "bsr", "dia"])
def test_a_blanked_record_in_any_sparse_format(form):
    X, y, _ = registry.table("logistic")
    blank = X.copy()
    blank[0] = np.nan
    fit = registry.fit_of("logistic", registry.SOLVERS["gd"]["steps"], "zero_out")
    data, neighbor = (sp.coo_array(cells).asformat(form) for cells in (X, blank))
    assert_replay(fit, (data, y), (neighbor, y), "zero_out")
