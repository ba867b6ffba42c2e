"""Bad input: values are made null in silence, containers are refused loudly, and no text ever shows a value."""

import re
import warnings
from contextlib import contextmanager

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from discreet.bounds import Bounds
from discreet.curator.private_data import PrivateData
from discreet.errors import DiscreetError, MissingBounds, Unsupported
from discreet.losses import Logistic, Softmax, Squared
from discreet.models import DPLinearRegression, DPLogisticRegression
from discreet.models.scoring import private_score
from tests.equivalence.reference import measure

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


@pytest.mark.parametrize("target", [WORD, None, np.nan, np.inf, 10**400])
def test_a_target_that_is_no_number_makes_its_record_null(target):
    y = np.array([target, 1.0], dtype=object)
    alone = measure(GOOD[1:], [1.0], BOUNDS, Squared()).exact
    assert measure(GOOD, y, BOUNDS, Squared()).exact.tolist() == alone.tolist()


def test_estimators_are_as_silent(capfd):
    X = pd.DataFrame({"a": [SECRET, np.nan, 0.1] * 20, "b": [WORD, "0.5", "1"] * 20}, dtype=object)
    with silence():
        model = DPLogisticRegression(bounds=1.0, classes=(0, 1), solver="gd").fit(X, [0, 1, 7] * 20)
    assert np.isfinite(model.coef_).all()
    assert not leaks(repr(vars(model)))
    assert capfd.readouterr() == ("", "")


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
@pytest.mark.parametrize("loss", [Logistic(), Squared()], ids=["classes", "numbers"])
def test_a_bad_container_is_refused_with_its_remedy(name, loss):
    X, y, bounds, remedy = CONTAINERS[name]
    with pytest.raises(DiscreetError) as refusal:
        measure(X, y, bounds, loss)
    assert re.search(remedy, str(refusal.value))
    assert not leaks(texts(refusal.value))


def test_a_label_type_that_can_never_match_is_refused():
    with pytest.raises(MissingBounds, match="labels"):
        measure(GOOD, np.array([WORD, "b"]), BOUNDS, Logistic())


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


# ---------------------------------------------------------------- what is not declared is asked for

MISSING = {
    "bounds": (DPLogisticRegression(classes=(0, 1)), r"bounds=Bounds\(features="),
    "classes": (DPLogisticRegression(bounds=1.0), r"classes=\(0, 1\)"),
    "target": (DPLinearRegression(bounds=1.0), r"target=\(low, high\)"),
    "delta": (DPLogisticRegression(bounds=1.0, classes=(0, 1), neighbors="add_remove", solver="gd"), r"delta=1e-6"),
}


@pytest.mark.parametrize("name", MISSING)
def test_what_is_missing_is_named_with_what_to_write(name):
    model, remedy = MISSING[name]
    with pytest.raises(DiscreetError, match=remedy) as refusal:
        model.fit(np.full((3, 2), SECRET), np.array([SECRET, 1, 0]))
    assert not leaks(texts(refusal.value))


# ---------------------------------------------------------------------- numbers that overflow, in silence

FARTHEST = np.finfo(float).max


@pytest.mark.parametrize("cell", [-FARTHEST, FARTHEST])
def test_a_cell_that_overflows_when_it_is_centered_shows_nothing(cell):
    """Ranges that leave out 0 are centered; the largest double less their middle is no double."""
    far = Bounds([(1e300, 2e300), (-2e300, -1e300)], classes=(0, 1))
    with silence():
        found = measure(np.array([[1.5e300, -1.5e300], [cell, cell]]), [1, 1], far, Logistic())
    assert np.abs(found.exact).max() <= 2 * found.unit.bound


def test_a_score_that_overflows_shows_nothing():
    X, y = np.full((300, 2), 0.5), np.linspace(0, 1, 300)
    known = Bounds(1e200, target=(0.0, 1.0))
    with warnings.catch_warnings(action="ignore"):  # of the fit, in ranges of this size: whatever the cells are
        model = DPLinearRegression(1.0, 1e-6, bounds=known, solver="gd").fit(X, y)
    model.coef_ = np.array([1e200, -1e200])
    X[0] = 1e200
    with silence():
        assert private_score(model, X, y, epsilon=1.0, delta=1e-6).metric == "r2"
