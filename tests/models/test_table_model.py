"""One table, however it is stored, is one model, bit for bit; and what a row is does not depend on the others."""

import datetime
import uuid
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from discreet import DPLinearRegression, DPLogisticRegression
from discreet.curator.noise import SeededEntropy, use_entropy
from discreet.curator.tables.files import open_table
from discreet.curator.tables.frames import FrameSource
from discreet.curator.tables.stream import TableStream
from discreet.errors import Unsupported
from discreet.models.table_model import TableModel
from discreet.schema.columns import Boolean, Category, Number, Ordinal, Target
from discreet.schema.schema import Schema
from discreet.solvers import GradientDescent
from tests.covering import covering
from tests.curator.tables.test_cells import Refuses, boxed

SOLVER = GradientDescent(n_steps=3, clip=0.5)
FORMS = ("frame", "category", "arrow", "csv", "tsv.gz", "parquet", "parquets", "csvs", "dictionary", "objects")


def table(n=120, persons=None, seed=0):
    """Mixed columns with holes; persons come in any order."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 90, n),
            "income": np.where(rng.random(n) < 0.1, np.nan, np.round(rng.uniform(1e3, 2e3, n), 2)),
            "city": rng.choice(["A", "B", "\u00e9", "elsewhere", ""], n),
            "level": rng.choice(["low", "middle", "high"], n),
            "smoker": rng.choice(["Yes", "no", "?"], n),
            "who": rng.integers(0, persons or n, n) if persons else np.arange(n),
            "y": rng.choice(["n", "p"], n),
        }
    )
    return frame


def schema(private=False, person=False, **given):
    income = Number("private", within=(0, 1e6)) if private else Number((0, 5e3), missing="flag")
    return Schema(
        {
            "age": Number((18, 90), knots=(30, 60)),
            "income": income,
            "city": Category(("A", "B", "\u00e9")),
            "level": Ordinal(("low", "middle", "high")),
            "smoker": Boolean(missing="record"),
        },
        Target("y", classes=("n", "p")),
        person="who" if person else None,
        interactions=(("city", "smoker"),),
        **given,
    )


def stored(frame, form, folder):
    """The same table in another form."""
    arrow = pa.Table.from_pandas(frame, preserve_index=False)
    if form == "category":
        return frame.astype({"city": "category", "level": "category", "smoker": "category", "y": "category"})
    if form == "objects":
        return frame.astype(object)
    if form in ("frame", "arrow", "dictionary"):
        return {"frame": frame, "arrow": arrow, "dictionary": dict(frame)}[form]
    if form == "csv":
        frame.to_csv(folder / "t.csv", index=False)
        return folder / "t.csv"
    if form == "tsv.gz":
        frame.to_csv(folder / "t.tsv.gz", index=False, sep="\t", lineterminator="\r\n")
        return folder / "t.tsv.gz"
    if form == "parquet":
        pq.write_table(arrow, folder / "t.parquet", row_group_size=17)
        return folder / "t.parquet"
    parts = [frame[first : first + 50] for first in range(0, len(frame), 50)]
    paths = []
    for i, part in enumerate(parts):
        columns = list(part)[:: (-1) ** i]
        paths.append(folder / f"{i}.{'parquet' if form == 'parquets' else 'csv'}")
        if form == "parquets":
            pq.write_table(pa.Table.from_pandas(part[columns], preserve_index=False), paths[-1])
        else:
            part[columns].to_csv(paths[-1], index=False)
    return [str(path) for path in paths]


def fitted(data, given, seed=5, relation="replace_one", epsilon=5.0, checks=True):
    model = DPLogisticRegression(epsilon, 1e-5, solver=SOLVER, neighbors=relation)
    with use_entropy(SeededEntropy(seed)):
        return TableModel(given, model, checks=checks).fit(data)


def bits(model):
    found = model.estimator_
    return found.coef_.tobytes(), found.intercept_.tobytes(), model.certificate_.to_json(), model.schema_.to_toml()


@pytest.mark.few(2)
@covering(
    ("person", [False, True]), ("private", [False, True]), ("relation", ["replace_one", "zero_out", "add_remove"])
)
def test_one_model_however_the_table_is_stored(tmp_path, relation, private, person):
    frame = table(persons=30 if person else None)
    given = schema(private, person)
    expected = None
    for form in FORMS:
        data = stored(frame, form, tmp_path)
        model = fitted(data, given, relation=relation)
        found = *bits(model), model.predict_proba(data).tobytes(), model.predict(data).tolist()
        expected = expected or found
        assert found == expected, form


@pytest.mark.parametrize("private", [False, True])
def test_persons_in_any_order(private):
    """Rows of a person count together wherever they stand, and whatever the persons are called."""
    frame = table(persons=20)
    given = schema(private, person=True)
    expected = fitted(frame, given).estimator_.coef_
    for order in (np.random.default_rng(1).permutation(len(frame)), np.argsort(frame["who"], kind="stable")):
        assert (fitted(frame.iloc[order], given).estimator_.coef_ == expected).all()
    named = frame.assign(who=[f"person {i}" for i in frame["who"]])
    assert (fitted(named, given).estimator_.coef_ == expected).all()
    mixed = frame.assign(who=boxed([cell if i % 2 else str(cell) for i, cell in enumerate(frame["who"].tolist())]))
    assert (fitted(mixed, given).estimator_.coef_ == expected).all()


def test_a_declared_number_of_rows():
    frame, n = table(), 120
    declared = fitted(frame, schema(rows=n), relation="add_remove")
    assert declared.certificate_.assumed_public["n"] == n
    assert fitted(frame, schema(), relation="add_remove").certificate_.assumed_public.get("n") is None
    assert fitted(frame[:-1], schema(rows=n), relation="add_remove").certificate_.assumed_public["n"] == n
    with pytest.raises(ValueError, match="declared n"):
        fitted(frame[:-1], schema(rows=n))


def test_bought_ranges_are_bought_once_and_kept():
    frame = pd.concat([table(seed=seed) for seed in range(20)])
    one, other = (fitted(frame, schema(private=True), seed=4, epsilon=50.0) for _ in range(2))
    assert bits(one) == bits(other)
    low, high = one.schema_.columns["income"].range
    assert (one.schema.columns["income"].range, one.schema_.private_columns) == ("private", ())
    assert 0 < low < 1500 < high < 1e6
    assert one.certificate_.assumed_public["schema"] == one.schema.to_dict()


@pytest.mark.parametrize("missing", [0, 1e6, "flag", "record", "middle"])
def test_a_bought_range_need_not_contain_what_stands_for_missing(missing):
    """Whether a paid fit ends must not depend on where the bought range lies."""
    frame = pd.concat([table(seed=seed) for seed in range(20)])
    given = Schema({"income": Number("private", within=(0, 1e6), missing=missing)}, Target("y", classes=("n", "p")))
    model = fitted(frame, given, epsilon=50.0)
    assert np.isfinite(model.estimator_.coef_).all()
    assert len(model.predict(frame)) == len(frame)


# -------------------------------------------------------------------------------------------------------- persons


def groups(column):
    """Rows by person, as the stream numbers them."""
    n = len(column)
    data = {"x": [0.0] * n, "y": [0.0] * n, "who": column}
    source = FrameSource(pa.table(data) if isinstance(column, pa.Array) else pd.DataFrame(data))
    return (
        TableStream(source, Schema({"x": Number((0, 1))}, Target("y", range=(0, 1)), person="who")).persons().tolist()
    )


@pytest.mark.parametrize(
    "cells",
    [
        [2**60, 2**60 + 1, 2**60],
        [2**60, 2**60 + 1, str(2**60)],
        [uuid.UUID(int=1), uuid.UUID(int=2), uuid.UUID(int=1)],
        [datetime.date(2000, 1, 1), datetime.date(2001, 1, 1), datetime.date(2000, 1, 1)],
        ["a", "A", "a "],
        [7, 8, "7"],
        [b"\xe9", b"x", "\u00e9"],
        [None, "x", ""],
        [None, "x", float("nan")],
        ["a", "b", "\ta"],
    ],
    ids=str,
)
def test_who_is_who(cells):
    assert groups(pd.Series(boxed(cells), dtype=object)) == [0, 1, 0]


@covering(("one", [1, True]), ("first", ["z", 1, 1.0, True, "1", "true"]))
def test_whom_a_row_belongs_to_does_not_depend_on_other_rows(first, one):
    """Equal to Python, 1 and True are not one person; which comes first must not matter, nor where batches end."""
    alone = groups(pd.Series(boxed(["z", one, str(one).lower()]), dtype=object))
    assert alone == [0, 1, 1]
    found = groups(pd.Series(boxed([first, one, str(one).lower()]), dtype=object))
    assert found[1] == found[2]


def test_codes_for_missing_are_codes_in_every_container(tmp_path):
    given = Schema({"x": Number((-10, 10))}, Target("y", range=(0, 1)), missing_texts=("-9",))
    frame = pd.DataFrame({"x": [-9, 5], "y": [0, 1]})
    found = []
    for form in ("frame", "arrow", "objects", "csv", "parquet"):
        data = stored(frame, form, tmp_path)
        source = open_table(data) if isinstance(data, Path) else FrameSource(data)
        found.append(next(iter(TableStream(source, given).blocks())).features.ravel().tolist())
    assert all(features == [0.0, 0.5] for features in found)


def test_large_numbers_are_the_categories_they_are_written_as():
    given = Schema({"x": Category(("9007199254740993",))}, Target("y", range=(0, 1)))
    found = []
    for cells in (pa.array([2**53 + 1, 2**53]), pa.array(["9007199254740993", "9007199254740992"])):
        stream = TableStream(FrameSource(pa.table({"x": cells, "y": [0, 1]})), given)
        found.append(next(iter(stream.blocks())).features.tolist())
    assert found[0] == found[1] == [[1.0, 0.0], [0.0, 1.0]]


# --------------------------------------------------------------------------------------------------- other wishes


def test_a_quote_reads_no_cell():
    frame = table(persons=9).astype(object)
    one = TableModel(schema(private=True)).quote(frame).priced
    frame.iloc[:, :5] = boxed([Refuses()])[0]
    other = TableModel(schema(private=True)).quote(frame).priced
    assert (one.plan, one.noise_multiplier, one.events) == (other.plan, other.noise_multiplier, other.events)


@pytest.mark.parametrize("cell", ["\ud800", b"x", 3, None, 1.5, "x"], ids=repr)
def test_one_cell_does_not_change_how_an_array_of_cells_is_read(cell):
    """A type that is guessed from the cells, or an error on one of them, would tell of it before the charge."""
    cells = np.array(["a", "b", cell], dtype=object)
    source = FrameSource({"city": cells, "age": np.arange(3.0)})
    assert source.stored("city") == []
    (batch,) = source.batches(["city", "age"])
    assert len(batch.columns["city"]) == 3


def test_dictionaries_that_have_no_common_one_are_read():
    """Two chunks whose codes are bytes: whether their values fit into one dictionary depends on one cell."""
    words, codes = [str(i) for i in range(128)], pa.array(range(128), pa.int8())

    def chunked(last):
        parts = (words, [*words[:-1], last])
        return pa.chunked_array([pa.DictionaryArray.from_arrays(codes, pa.array(part)) for part in parts])

    given = Schema({"c": Category(("1", "2"))}, Target("y", classes=("n", "p")))
    for last in ("127", "200"):
        fitted(pa.table({"c": chunked(last), "y": ["n", "p"] * 128}), given)


def test_no_intercept_needs_ranges_about_0():
    """Numbers are coded about the middle of their ranges: a line would not go through 0."""
    table = {"x": np.linspace(20.0, 80.0, 50), "y": np.linspace(10.0, 40.0, 50)}
    estimator = DPLinearRegression(2.0, fit_intercept=False)
    with pytest.raises(Unsupported, match="symmetric about 0"):
        TableModel(Schema({"x": Number((0, 100))}, Target("y", range=(0, 100))), estimator).quote(table)
    assert TableModel(Schema({"x": Number((-100, 100))}, Target("y", range=(0, 100))), estimator).quote(table)


@pytest.mark.parametrize(
    ("estimator", "target", "remedy"),
    [
        (DPLinearRegression, Target("y", classes=(0, 1)), "predicts numbers.*declares classes.*DPLogisticRegression"),
        (DPLogisticRegression, Target("y", range=(0, 9)), "predicts classes.*declares a range.*DPRidge"),
    ],
)
def test_an_estimator_of_another_kind_than_the_target_is_refused(estimator, target, remedy):
    """Its own refusal would ask for bounds, which the schema brings."""
    table = {"x": [1.0, 2.0] * 20, "y": [0, 1] * 20}
    with pytest.raises(Unsupported, match=remedy):
        TableModel(Schema({"x": Number((0, 9))}, target), estimator()).fit(table)
