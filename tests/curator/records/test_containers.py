"""What a container declares: every library's table is read by its names, and refused by its types alone."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from discreet import Bounds, DPLogisticRegression
from discreet.curator.records.admission import as_array, class_indices, container_of, grouping
from discreet.errors import DiscreetError
from discreet.testing import seeded
from tests.covering import covering

pa = pytest.importorskip("pyarrow")
pl = pytest.importorskip("polars")

NAMED = Bounds({"age": (0, 120), "dose": (-1, 1)}, classes=(0, 1))
SENTINEL = 48151.25


def columns(n=300):
    rng = np.random.default_rng(0)
    age, dose = np.rint(rng.uniform(0, 120, n)), np.rint(rng.uniform(-1, 1, n) * 64) / 64
    return {"age": age, "dose": dose}, (age / 60 + dose > 1).astype(int)


def arrow_frame(table):
    return pa.table(table).to_pandas(types_mapper=pd.ArrowDtype)


TABLES = {
    "pandas": pd.DataFrame,
    "pandas, nullable": lambda table: pd.DataFrame(table).convert_dtypes(),
    "pandas, Arrow": arrow_frame,
    "pandas, categories": lambda table: pd.DataFrame(table).astype("category"),
    "pandas, objects": lambda table: pd.DataFrame(table).astype(object),
    "pyarrow.Table": pa.table,
    "pyarrow.Table, chunked": lambda table: pa.concat_tables([pa.table(table).slice(0, 7), pa.table(table).slice(7)]),
    "pyarrow.RecordBatch": pa.record_batch,
    "pyarrow.RecordBatchReader": lambda table: pa.table(table).to_reader(),
    "pyarrow.Table, dictionary": lambda table: pa.table({k: pa.array(v).dictionary_encode() for k, v in table.items()}),
    "polars": pl.DataFrame,
}


@pytest.fixture(scope="module")
def reference(seeded):
    table, y = columns()
    with seeded(3):
        return DPLogisticRegression(bounds=NAMED, solver="gd").fit(pd.DataFrame(table), y)


@pytest.mark.few(5)
@pytest.mark.parametrize("name", TABLES)
def test_every_library_s_table_gives_the_same_bits_by_name(name, reference, seeded):
    table, y = columns()
    with seeded(3):
        model = DPLogisticRegression(bounds=NAMED, solver="gd").fit(TABLES[name](table), y)
    assert model.coef_.tobytes() == reference.coef_.tobytes()
    assert list(model.feature_names_in_) == ["age", "dose"]
    if "Reader" not in name:  # which can be read once only
        assert (model.predict(TABLES[name](table)) == reference.predict(pd.DataFrame(table))).all()


# ------------------------------------------------------------------------- refusals name columns, never values

WRONG = {
    "bounds of other columns": (lambda t: t, Bounds({"age": (0, 1)}, classes=(0, 1)), r"column\(s\) dose"),
    "bounds for three": (lambda t: t, Bounds([(0, 1)] * 3, classes=(0, 1)), "3 feature ranges"),
    "too few targets": (lambda t: {k: v[:-1] for k, v in t.items()}, NAMED, "one target for each row"),
}


@covering(("name", [*TABLES, "array", "list", "sparse"]), ("wrong", WRONG))
def test_no_refusal_shows_a_value(name, wrong, capfd, caplog):
    """With columns by name, the text of one refusal once had the columns' values in it."""
    change, bounds, message = WRONG[wrong]
    table = {key: np.full(9, SENTINEL) for key in ("age", "dose")}
    plain = {
        "array": lambda t: np.column_stack(list(t.values())),
        "list": lambda t: np.column_stack(list(t.values())).tolist(),
        "sparse": lambda t: sparse.csr_array(np.column_stack(list(t.values()))),
    }
    made = (TABLES | plain)[name](change(table))
    model = DPLogisticRegression(bounds=bounds, solver="gd")
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        with pytest.raises(DiscreetError) as refusal:
            model.fit(made, np.zeros(9))
    assert name in plain or refusal.match(message)
    told = f"{refusal.value!r} {refusal.value.__context__!r} {capfd.readouterr()} {caplog.text} {shown}"
    assert "48151" not in told


# ------------------------------------------------------------------- one null, or one odd cell, changes nothing else

LARGE = 1 << 60
COLUMNS = {
    "list": list,
    "pandas, objects": lambda cells: pd.Series(cells, dtype=object),
    "pandas, nullable": lambda cells: pd.Series(cells, dtype="Int64"),
    "pandas, Arrow": lambda cells: pd.Series(cells, dtype="int64[pyarrow]"),
    "pandas, categories": lambda cells: pd.Series(pd.Categorical(cells, categories=sorted({*cells} - {None}))),
    "pandas.Categorical": lambda cells: pd.Categorical(cells, categories=sorted({*cells} - {None})),
    "pyarrow.Array": lambda cells: pa.array(cells, pa.int64()),
    "pyarrow.ChunkedArray": lambda cells: pa.chunked_array([cells[:2], cells[2:]], pa.int64()),
    "polars": lambda cells: pl.Series(cells, dtype=pl.Int64),
}


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("last", [LARGE + 4, None], ids=["named", "missing"])
def test_a_missing_name_merges_no_other_persons(name, last):
    """As doubles, names beyond 2^53 would be rounded onto each other as soon as one is missing."""
    names = COLUMNS[name]([LARGE, LARGE + 1, LARGE + 2, LARGE + 3, last])
    assert len(grouping(names, 5)[1]) - 1 == 5


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("last", [2**53, None], ids=["labeled", "missing"])
def test_a_missing_label_changes_no_other_label(name, last):
    found = class_indices(COLUMNS[name]([2**53, 2**53 + 1, last]), (2**53, 2**53 + 1))
    assert found[:2].tolist() == [0, 1]


@pytest.mark.parametrize(
    ("cells", "dtype"),
    [
        ([1, 2**63], pl.UInt64),
        ([1, 2], pl.UInt64),
        ([None, None], pl.String),
        ([None, "x"], pl.String),
        ([None, None], pl.Date),
        ([0.5, None], pl.Float32),
    ],
    ids=str,
)
def test_a_polars_column_keeps_the_type_that_it_declares(cells, dtype):
    series = pl.Series(cells, dtype=dtype)
    stored = series.to_arrow().type
    found = container_of(series).dtype.pyarrow_dtype
    assert found == stored or (pa.types.is_large_string(found) and str(stored) in ("string_view", "large_string"))


@pytest.mark.parametrize("last", [[1.0], [[1.0]], [np.zeros(3)]])
def test_what_a_cell_of_a_list_holds_does_not_decide_the_table_s_shape(last):
    assert as_array([[[0.5]], [[0.2]], last]).shape == (3, 1)


def test_masked_cells_are_nothing_whatever_stands_beneath():
    rng = np.random.default_rng(0)
    X, y, w = rng.uniform(-1, 1, (300, 2)), rng.integers(0, 2, 300), rng.uniform(0, 2, 300)
    hidden = rng.random(300) < 0.2
    bounds = Bounds(1.0, classes=(0, 1), weights=(0, 2))

    def coefficients(X, y, w):
        model = DPLogisticRegression(1.0, 1e-7, bounds=bounds, ledger=False)
        with seeded(0):
            return model.fit(X, y, sample_weight=w).coef_

    cells = np.zeros((300, 2), dtype=bool)
    cells[:, 1] = hidden
    plain = coefficients(np.where(cells, np.nan, X), y, w)
    assert np.array_equal(coefficients(np.ma.masked_array(X, mask=cells), y, w), plain)
    lost = np.where(hidden, None, y.astype(object))
    assert np.array_equal(coefficients(X, np.ma.masked_array(y, mask=hidden), w), coefficients(X, lost, w))
    assert np.array_equal(
        coefficients(X, y, np.ma.masked_array(w, mask=hidden)), coefficients(X, y, np.where(hidden, np.nan, w))
    )


MASKS = {
    "nothing": lambda shape: np.ma.nomask,
    "no cell": np.zeros,
    "some cells": lambda shape: np.indices(shape)[0] % 3 == 0,
}


@pytest.mark.filterwarnings("ignore:A column-vector y was passed")
@pytest.mark.parametrize("mask", MASKS)
def test_the_type_of_a_masked_array_decides_and_not_its_mask(mask):
    """Whether something is masked is private: it changes neither a type nor what is refused."""
    X, y = np.zeros((30, 2)), np.arange(30) % 2

    def masked(cells):
        return np.ma.masked_array(cells, mask=MASKS[mask](cells.shape))

    def refusal(X, y, classes=(0, 1)):
        model = DPLogisticRegression(1.0, 1e-7, bounds=1.0, classes=classes, ledger=False)
        with pytest.raises(DiscreetError) as refused:
            model.fit(X, y)
        return str(refused.value)

    assert container_of(masked(X)).dtype == container_of(masked(y)).dtype == object
    texts = y.astype(str)
    for cells in (X.astype(str), X + 0j, X.astype("M8[D]")):
        assert refusal(masked(cells), y) == refusal(cells, y)
    assert refusal(X, masked(texts)) == refusal(X, masked(texts)[:, None]) == refusal(X, texts)
    assert refusal(X, masked(y), ("0", "1")) == refusal(X, y, ("0", "1"))
    assert refusal(X, masked(y.astype("M8[D]"))) == refusal(X, y.astype("M8[D]"))
    for labels in (masked(texts), masked(texts)[:, None]):
        DPLogisticRegression(1.0, 1e-7, bounds=1.0, classes=("0", "1"), ledger=False).fit(X, labels)
