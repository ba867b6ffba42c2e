"""Tables that workers read: the same bits, checks and ranges as one machine's, and no row in this process."""

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet import DPLogisticRegression, Schema, TableModel
from discreet.curator.clusters import tasks
from discreet.curator.clusters.dask import DaskParts, WorkersFiles
from discreet.curator.tables import files as table_files
from discreet.errors import ClusterFailed, Unsupported
from discreet.ledger import Ledger
from discreet.scale import cluster
from discreet.schema import Category, Number, Target
from discreet.testing import seeded

N = 900
SENTINEL = "sentinel-4711"


def table():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.uniform(10, 110, N), "ward": rng.choice(["a", "b", "z"], N)})
    frame["pay"], frame["back"] = rng.normal(0, 300, N), (frame["age"] > 60).astype(int)
    frame.loc[3, "age"] = np.nan
    frame.loc[4, "ward"] = None
    return frame


FRAME = table()


PAY = Number((-1000, 1000))


def schema(pay=PAY, **words):
    columns = {"age": Number((18, 100)), "ward": Category(("a", "b")), "pay": pay}
    return Schema(columns, Target("back", classes=(0, 1)), **words)


def fitted(data, declared=None, **settings):
    with seeded(3):
        model = TableModel(declared or schema(), DPLogisticRegression(2.0, **{"delta": 1e-6, **settings}))
        return model.fit(data)


def released(model):
    """What leaves a fit, but for the place where rows were kept."""
    facts = {k: v for k, v in model.certificate_.assumed_public.items() if k not in ("kept", "parts")}
    return [one.value for one in model.coefficients()], facts


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables")
    for kind in ("parquet", "csv"):
        (folder / kind).mkdir()
    for name, part in (("a", FRAME[:500]), ("b", FRAME[500:]), ("c", FRAME[:0])):
        pq.write_table(pa.Table.from_pandas(part, preserve_index=False), folder / f"parquet/{name}.parquet", 200)
        part.to_csv(folder / f"csv/{name}.csv", index=False)
    return folder


@pytest.mark.parametrize(
    ("declared", "settings"),
    [
        (schema(), {}),
        (schema(Number("private", within=(-5000, 5000))), {}),
        (schema(), {"neighbors": "add_remove"}),
        pytest.param(schema(), {"solver": "sgd"}, marks=pytest.mark.thorough),
        pytest.param(schema(), {"solver": "agd"}, marks=pytest.mark.thorough),
        pytest.param(
            schema(Number("private", within=(-5000, 5000))), {"neighbors": "add_remove"}, marks=pytest.mark.thorough
        ),
    ],
    ids=["declared", "private", "add_remove", "sampled", "adaptive", "private add_remove"],
)
@pytest.mark.parametrize("kind", ["frame", "parquet", "csv"])
def test_workers_read_what_one_machine_reads(client, files, monkeypatch, kind, declared, settings):
    monkeypatch.setattr(tasks, "_PART_ROWS", 250)
    data = FRAME if kind == "frame" else files / kind
    expected = fitted(data, declared, **settings)
    with cluster(client):
        found = fitted(dd.from_pandas(FRAME, npartitions=4) if kind == "frame" else data, declared, **settings)
    assert released(found) == released(expected)
    shown = found.certificate_.assumed_public
    if settings.get("neighbors") == "add_remove":
        assert not {"kept", "parts"} & set(shown)
    else:
        parts = {"frame": 4, "parquet": 6, "csv": 3}[kind]
        assert (shown["kept"], shown["parts"]) == ("dask workers", parts)


def test_no_row_is_read_by_the_coordinator(client, files, monkeypatch):
    """The worker of this cluster is a thread of this process: what reads a batch must be in it."""
    import threading

    readers, honest = set(), table_files.ParquetSource._read

    def read(self, *given, **words):
        readers.add(threading.current_thread().name)
        return honest(self, *given, **words)

    monkeypatch.setattr(table_files.ParquetSource, "_read", read)
    with cluster(client):
        fitted(files / "parquet")
    assert readers
    assert threading.current_thread().name not in readers
    with cluster(client), pytest.raises(Unsupported, match="rows are on a cluster"):
        next(WorkersFiles(client, files / "parquet", None).batches(["age"]))


@pytest.mark.whole
@pytest.mark.parametrize("kind", ["frame", "csv"])
def test_under_add_remove_no_row_is_counted(client, files, monkeypatch, kind):
    def counted(self):
        raise AssertionError("rows were counted")

    monkeypatch.setattr(DaskParts, "count", counted)
    with cluster(client):
        data = dd.from_pandas(FRAME, npartitions=4) if kind == "frame" else files / kind
        assert fitted(data, neighbors="add_remove").certificate_.assumed_public.get("n") is None


@pytest.mark.whole
@pytest.mark.parametrize("name", ["none.csv", "t.xyz"])
def test_files_that_workers_do_not_see_are_refused(client, tmp_path, name):
    (tmp_path / "t.xyz").write_text("a,b\n")
    with cluster(client), pytest.raises(Unsupported):
        fitted(tmp_path / name)


def test_a_damaged_file_fails_without_its_words(client, tmp_path):
    (tmp_path / "t.parquet").write_bytes(SENTINEL.encode() * 100)
    with cluster(client), pytest.raises(Unsupported) as caught:
        fitted(tmp_path / "t.parquet")
    assert SENTINEL not in str(caught.value)


def test_a_table_that_grows_after_it_was_counted_fails_closed(client, files, tmp_path, monkeypatch):
    path = tmp_path / "t.csv"
    FRAME.to_csv(path, index=False)
    ledger = Ledger(":memory:")
    ledger.grant("t", epsilon=9.0, delta=1e-3, neighbors="replace_one")
    honest = ledger.reserve

    def reserve(*given, **words):
        FRAME[:5].to_csv(path, index=False, mode="a", header=False)
        return honest(*given, **words)

    monkeypatch.setattr(ledger, "reserve", reserve)
    with cluster(client), pytest.raises((Unsupported, ClusterFailed), match="changed its size"):
        fitted(path, ledger=ledger, dataset="t")
    assert ledger.spent("t").fits == 1
