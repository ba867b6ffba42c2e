"""Tables that are made while they are read: the same model, never gathered, refused before the charge where need be."""

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet import DPLogisticRegression, Ledger
from discreet.curator.noise import SeededEntropy, use_entropy
from discreet.curator.tables.frames import LazySource, StreamSource, table_in_memory
from discreet.errors import Unsupported
from discreet.models.table_model import TableModel
from discreet.schema.columns import Category, Number, Target
from discreet.schema.schema import Schema
from discreet.solvers import GradientDescent
from tests.covering import covering
from tests.curator.tables.shown import SECRET, assert_discreet, watched

N = 300
SOLVER = GradientDescent(n_steps=2, clip=1.0)


def schema(**given):
    a = given.pop("a", Number((0, 10)))
    return Schema({"a": a, "b": Category(("x", "y"))}, Target("t", classes=(0, 1)), **{"rows": N, **given})


def rows(n=N):
    rng = np.random.default_rng(0)
    cells = rng.uniform(0, 10, n).round(2).tolist()
    cells[7] = None
    return pa.table({"a": cells, "b": rng.choice(["x", "y", "z"], n).tolist(), "t": rng.integers(0, 2, n).tolist()})


class Stream:
    """Another library's stream: it hands over batches, and has no length."""

    def __init__(self, table):
        self._table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self._table.to_reader(max_chunksize=17).__arrow_c_stream__(requested_schema)


def in_batches(table):
    """As a producer makes them: one by one, of any size, also none."""
    batches = [table.slice(0, 0), table.slice(0, 1), table.slice(1, 250), table.slice(251)]
    return pa.RecordBatchReader.from_batches(table.schema, (b for part in batches for b in part.to_batches()))


MADE = {
    "reader": lambda table: table.to_reader(max_chunksize=64),
    "generator": in_batches,
    "stream": Stream,
    "lazy": lambda table: pl.from_arrow(table).lazy(),
    "lazy query": lambda table: pl.concat([pl.from_arrow(table[:100]).lazy(), pl.from_arrow(table[100:]).lazy()]),
}
ONCE = ["reader", "generator", "stream"]


def fitted(data, given=None, **settings):
    model = DPLogisticRegression(2.0, 1e-5, solver=SOLVER, **{"ledger": False, **settings})
    with use_entropy(SeededEntropy(3)):
        return TableModel(given or schema(), model).fit(data)


def bits(model):
    found = model.estimator_
    return found.coef_.tobytes(), found.intercept_.tobytes(), model.certificate_.to_json(), model.schema_.to_toml()


def test_lazy_frames_are_read_as_often_as_needed(tmp_path):
    """Private ranges, persons and add_remove, where the number of rows is private."""
    table = rows().append_column("who", pa.array([i // 3 for i in range(N)]))
    pq.write_table(table, tmp_path / "t.parquet")
    lazy = pl.scan_parquet(tmp_path / "t.parquet")
    for given in (
        schema(a=Number("private", within=(0, 100)), ignore=("who",)),
        schema(person="who", rows=None),
        schema(rows=None, ignore=("who",)),
    ):
        relations = ("replace_one",) if given.person else ("replace_one", "add_remove")
        for relation in relations:
            settings = {"neighbors": relation}
            assert bits(fitted(lazy, given, **settings)) == bits(fitted(table, given, **settings))
    assert LazySource(lazy).count() == N


def test_batches_are_cut_and_none_is_kept():
    for source in (StreamSource(rows().to_reader(), N), LazySource(pl.from_arrow(rows()).lazy())):
        found = list(source.batches(["b", "a"], 64))
        assert max(batch.rows for batch in found) <= 64
        assert sum(batch.rows for batch in found) == N
        assert list(found[0].columns) == ["b", "a"]
        for name in ("a", "b"):
            cells = [cell for batch in found for cell in batch.columns[name].to_pylist()]
            assert cells == rows().column(name).to_pylist()


def test_a_reader_is_not_gathered():
    """A batch is asked for only when the one before it has been used."""
    table, alive = rows(), []

    def batches():
        for batch in table.to_batches(max_chunksize=10):
            alive.append(batch.num_rows)
            yield batch

    source = StreamSource(pa.RecordBatchReader.from_batches(table.schema, batches()), N)
    taken = source.batches(["a"])
    assert alive == []
    next(taken)
    next(taken)
    assert len(alive) <= 3


@covering(
    (
        ("given", "settings", "words"),
        [
            ({"rows": None}, {}, "declare rows"),
            ({"a": Number("private", within=(0, 100))}, {}, "takes two passes"),
            ({"person": "who"}, {}, "takes two passes"),
            ({}, {"neighbors": "add_remove"}, "private under add_remove"),
        ],
    ),
    ("made", ONCE),
)
def test_what_takes_two_passes_is_refused_before_the_charge(made, given, settings, words):
    ledger = Ledger.create(":memory:")
    ledger.grant("d", 5.0, 1e-3, **settings)
    table = rows().append_column("who", pa.array(range(N))) if "person" in given else rows()
    data = MADE[made](table)
    with pytest.raises(Unsupported, match=words):
        fitted(data, schema(**given), ledger=ledger, dataset="d", **settings)
    assert ledger.spent("d").epsilon == 0
    assert sum(batch.rows for batch in table_in_memory(data).batches(["a"])) == N  # nothing was read


def test_the_number_of_rows_is_not_told_under_add_remove():
    """Whether a stream has as many rows as declared is one record's to decide: all are refused alike."""
    for count in (N + 1, N):
        with pytest.raises(Unsupported, match="private under add_remove"):
            fitted(rows(count).to_reader(), neighbors="add_remove")


@pytest.mark.parametrize("count", [N - 1, N + 1, 0])
def test_another_number_of_rows_than_declared(count):
    """It is public here, and the charge stands."""
    ledger = Ledger.create(":memory:")
    ledger.grant("d", 5.0, 1e-3)
    data = rows(N + 1).slice(0, count).to_reader(max_chunksize=64)
    with pytest.raises(Unsupported, match="as many rows as the schema declares"):
        fitted(data, ledger=ledger, dataset="d")
    assert ledger.spent("d").epsilon > 0


def test_a_reader_that_was_read_is_refused():
    reader = rows().to_reader()
    source = StreamSource(reader, N)
    list(source.batches(["a"]))
    with pytest.raises(Unsupported, match="read before"):
        list(source.batches(["a"]))


def test_what_a_maker_raises_is_not_shown():
    def broken():
        yield from rows().to_batches(max_chunksize=50)[:2]
        raise ValueError(f"cannot parse {SECRET}")

    table = pl.DataFrame({"a": [SECRET] * N, "b": ["x"] * N, "t": [0] * N})
    for data in (
        pa.RecordBatchReader.from_batches(rows().schema, broken()),
        table.lazy().with_columns(pl.col("a").cast(pl.Float64, strict=True)),
    ):
        with watched() as found:
            fitted(data)
        assert isinstance(found.error, Unsupported)
        assert "cannot be read to its end" in str(found.error)
        assert_discreet(found)


def test_a_column_of_another_case_is_named():
    table = rows().rename_columns(["A ", "b", "t"])
    with pytest.raises(Unsupported, match=r"no column 'a', which the schema declares; it has 'A '"):
        TableModel(schema(), DPLogisticRegression(solver=SOLVER)).fit(table)
    with pytest.raises(Unsupported, match=r"no column 'a', which the schema declares$"):
        TableModel(schema(), DPLogisticRegression(solver=SOLVER)).fit(table.drop_columns(["A "]))
