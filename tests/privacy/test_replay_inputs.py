"""Containers, cell types and strange cells: what a record contains must not show in how a fit behaves."""

import datetime
import decimal

import numpy as np
import pytest
from scipy import sparse

from discreet import Bounds
from discreet.testing import Data, assert_replay, neighbor_pairs
from tests.testing.small_fits import CLASSES, bounds_of, fit_of, prices_remembered, table


class Refuses:
    """A cell that raises, with its contents, whatever is done to it."""

    def __float__(self):
        raise RuntimeError("contents")

    def __eq__(self, other):
        raise RuntimeError("contents")

    def __hash__(self):
        raise RuntimeError("contents")


STRANGE = {
    "nothing": None,
    "text": "no number",
    "digits": "7",
    "bytes": b"7",
    "complex": 1j,
    "numpy complex": np.complex128(1 + 1j),
    "list": [1.0],
    "array": np.array([1.0, 2.0]),
    "dictionary": {},
    "huge integer": 10**400,
    "signaling": decimal.Decimal("sNaN"),
    "date": datetime.date(2000, 1, 1),
    "not a time": np.datetime64("NaT"),
    "huge long double": np.longdouble("1e4000"),
    "refuses": Refuses(),
}


@pytest.fixture(autouse=True, scope="module")
def _cheap_prices():
    with prices_remembered():
        yield


def check_all(fit, data, relation="replace_one", bounds=None):
    for pair in neighbor_pairs(*data, relation=relation, bounds=bounds or bounds_of("logistic")):
        assert_replay(fit, pair.data, pair.neighbor, relation)


@pytest.mark.parametrize("relation", ["replace_one", "zero_out", "add_remove"])
def test_data_frames(relation):
    pandas = pytest.importorskip("pandas")
    X, y, _ = table("logistic")
    ranges = dict(zip("abc", bounds_of("logistic").features, strict=True))
    bounds = Bounds(ranges, classes=CLASSES["logistic"])
    frame = pandas.DataFrame(X, columns=list("abc"))
    check_all(fit_of("logistic", "gd", relation, bounds=bounds), Data(frame, y), relation, bounds)


def test_data_frames_of_mixed_types():
    pandas = pytest.importorskip("pandas")
    X, y, _ = table("logistic")
    frame = pandas.DataFrame({"a": X[:, 0].astype(np.float32), "b": X[:, 1].astype(int), "c": X[:, 2].astype(object)})
    check_all(fit_of("logistic"), Data(frame, y))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.longdouble, np.int8, np.int64, np.uint8, bool, object])
def test_cell_types(dtype):
    X, y, _ = table("logistic")
    check_all(fit_of("logistic"), Data(X.astype(dtype), y))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.longdouble, np.int8, np.int64, object])
def test_target_types(dtype):
    X, y, _ = table("ridge")
    check_all(fit_of("ridge"), Data(X, y.astype(dtype)), bounds=bounds_of("ridge"))


@pytest.mark.parametrize("labels", [np.array(["no", "yes"]), np.array(["no", "yes"], dtype=object), np.array([-1, 1])])
def test_label_types(labels):
    X, y, _ = table("logistic")
    bounds = bounds_of("logistic").with_facts(classes=tuple(labels.tolist()))
    check_all(fit_of("logistic", bounds=bounds), Data(X, labels[y.astype(int)]), bounds=bounds)


@pytest.mark.parametrize("strange", STRANGE)
@pytest.mark.parametrize("container", ["array", "list", "frame"])
def test_a_strange_feature(container, strange):
    X, y, _ = table("logistic")
    cells = X.astype(object)
    changed = cells.copy()
    changed[0, 1:2] = boxed(STRANGE[strange])
    as_is = {"array": lambda table: table, "list": lambda table: table.tolist(), "frame": framed}[container]
    assert_replay(fit_of("logistic"), (as_is(cells), y), (as_is(changed), y))


@pytest.mark.parametrize("strange", STRANGE)
@pytest.mark.parametrize("container", ["array", "list"])
@pytest.mark.parametrize("name", ["logistic", "ridge"])
def test_a_strange_target(name, container, strange):
    X, y, _ = table(name)
    cells = y.astype(object)
    changed = cells.copy()
    changed[:1] = boxed(STRANGE[strange])
    if container == "list":
        cells, changed = cells.tolist(), changed.tolist()
    assert_replay(fit_of(name), (X, cells), (X, changed))


def boxed(value):
    box = np.empty(1, dtype=object)
    box[0] = value
    return box


def framed(cells):
    return pytest.importorskip("pandas").DataFrame(cells)


@pytest.mark.parametrize("groups", [False, True])
@pytest.mark.parametrize("form", ["csr", "csc", "coo", "lil", "dok", "bsr", "dia"])
def test_sparse_formats(form, groups):
    """A blanked record in any format; the door reads them all as compressed rows."""
    X, y, persons = table("logistic", "sparse", groups)
    blank = X.toarray()
    blank[:4] = np.nan
    other = X.toarray()
    other[:4] = [1.0, 10.0, -5.0]
    if not groups:
        blank[1:4] = other[1:4]
    fit = fit_of("logistic", "gd", "zero_out")
    data, neighbor = (sparse.coo_array(cells).asformat(form) for cells in (other, blank))
    assert_replay(fit, (data, y, persons), (neighbor, y, persons), "zero_out")


def test_a_sparse_matrix_that_calls_itself_tidy():
    """Entries in parts, in a matrix whose flags deny it."""
    X, y, _ = table("logistic", "sparse")
    pairs = neighbor_pairs(X, y, relation="zero_out", bounds=bounds_of("logistic"))
    for pair in (pair for pair in pairs if "in parts" in pair.name):
        pair.data.X.has_canonical_format = pair.data.X.has_sorted_indices = True
        assert_replay(fit_of("logistic", "gd", "zero_out"), pair.data, pair.neighbor, "zero_out")
