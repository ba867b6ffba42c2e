"""Private scores of rows on a cluster: the bits of memory, each row of each person once, no row gathered here."""

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from dask import delayed

from discreet import DPLogisticRegression, Schema, TableModel, private_score
from discreet.curator.clusters import tasks
from discreet.curator.clusters.calls import pack, unpack
from discreet.curator.metrics.metrics import METRICS
from discreet.errors import ClusterFailed, Unsupported
from discreet.ledger import Ledger
from discreet.scale import cluster
from discreet.schema import Category, Number, Target
from discreet.testing import seeded
from tests.curator.clusters.parted import BINARY, MANY, MARGINS, MODELS, N, X, in_parts

NAMES = np.random.default_rng(3).integers(0, N // 3, N).astype(float)
KINDS = {name: "squared" if kind.is_regression else "logistic" for name, kind in METRICS.items()}
TARGETS = {"logistic": BINARY, "softmax": MANY, "squared": MARGINS}


@pytest.fixture(scope="module")
def models():
    from sklearn.base import clone

    with seeded(5):
        return {name: clone(MODELS[name][0]).set_params(epsilon=3.0).fit(X, y) for name, y in TARGETS.items()}


def spoiled():
    """Rows with a missing feature and a missing target here and there."""
    rows = X.copy()
    rows[::13, 1] = np.nan
    return rows


def score(model, y, *, parts=None, groups=None, **settings):
    rows = (spoiled(), y, groups)
    if parts is not None:
        rows = tuple(None if column is None else in_parts(column, parts) for column in rows)
    with seeded(7):
        return private_score(model, *rows, **{"epsilon": 2.0, "delta": 1e-6, **settings})


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("persons", [False, True])
def test_every_metric_has_the_bits_of_memory(client, models, metric, persons):
    kind, groups = KINDS[metric], NAMES if persons else None
    expected = score(models[kind], TARGETS[kind], groups=groups, metric=metric)
    for parts in (1, 2, 7):
        found = score(models[kind], TARGETS[kind], groups=groups, metric=metric, parts=parts)
        assert found.to_text() == expected.to_text()
    assert found.certificate.unit == ("person" if persons else "record")


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("logistic", {"neighbors": "add_remove", "metric": "auc"}),
        ("logistic", {"by": 0}),
        ("logistic", {"delta": 0.0}),
        ("softmax", {"metric": "confusion"}),
        ("softmax", {"metric": "log_loss"}),
        ("squared", {"neighbors": "zero_out", "metric": "rmse"}),
    ],
)
def test_relations_groups_and_classes_have_the_bits_of_memory(client, models, kind, settings):
    found = score(models[kind], TARGETS[kind], parts=3, **settings)
    assert found.to_text() == score(models[kind], TARGETS[kind], **settings).to_text()


def frame_of():
    frame = pd.DataFrame(X, columns=list("abc")).assign(ill=BINARY, who=[f"p{k:g}" for k in NAMES])
    frame["ward"] = np.random.default_rng(1).choice(["n", "s"], N)
    frame.loc[::19, "b"] = np.nan
    return frame


def schema_of(**words):
    columns = {name: Number((-1, 1)) for name in "abc"}
    return Schema({**columns, "ward": Category(("n", "s"))}, Target("ill", classes=(0, 1)), **words)


@pytest.mark.parametrize("person", [None, "who"])
def test_tables_and_files_have_the_bits_of_memory_and_are_recognized(client, tmp_path, person):
    frame, schema = frame_of(), schema_of(person=person)
    for k in range(3):
        frame.iloc[80 * k : 80 * (k + 1)].to_parquet(tmp_path / f"{k}.parquet")
    with seeded(5):
        model = TableModel(schema, DPLogisticRegression(3.0, 1e-6)).fit(frame)

    def scored(table):
        ledger = Ledger(":memory:")
        ledger.grant("held out", epsilon=9.0, delta=1e-3, neighbors="replace_one", unit=model.certificate_.unit)
        seen = []
        honest = ledger.recognize
        ledger.recognize = lambda dataset, found: (seen.append(found.rows), honest(dataset, found))[1]
        with seeded(7):
            found = model.private_score(table, epsilon=1.0, delta=1e-6, by="ward", ledger=ledger, dataset="held out")
        return found.to_dict() | {"certificate": None}, seen, ledger.spent("held out").fits

    expected = scored(frame)
    assert expected[1:] == ([N], 1)
    assert scored(dd.from_pandas(frame, npartitions=3, sort=False)) == expected
    with cluster(client):
        assert scored(str(tmp_path)) == expected


def test_no_row_comes_here(client, models, monkeypatch):
    """What is gathered are sums and facts of parts, not an array that is as long as the rows."""
    gathered, honest = [], client.gather

    def watched(futures):
        found = honest(futures)
        gathered.extend(found)
        return found

    monkeypatch.setattr(client, "gather", watched)
    score(models["logistic"], BINARY, parts=3, metric="auc")
    told = [unpack(message).told for message in gathered]
    assert len(told) > 6
    assert not any(isinstance(one, np.ndarray) and N // 3 <= len(one) <= N for one in told)
    assert max(map(len, gathered)) < 4000


def test_rows_that_change_between_releases_end_the_score(client, models, monkeypatch):
    """The parts are made again between the sums of one score, of other rows."""
    honest, calls = tasks.Tally.add, []

    def other(tally, answer):
        calls.append(answer)
        if len(calls) == 7:  # of the second sum
            answer = tasks.Answer(answer.part, tasks.Seal(answer.seal.units, b"other"), answer.software, answer.told)
        honest(tally, answer)

    monkeypatch.setattr(tasks.Tally, "add", other)
    with pytest.raises(ClusterFailed, match="not what it was"):
        score(models["logistic"], BINARY, parts=3, metric="auc")


def test_other_rows_than_were_counted_are_refused(client, models, ledger):
    rows = da.from_delayed(delayed(spoiled)(), (N - 1, 3), float)  # of one row less than it has
    targets = da.from_delayed(delayed(lambda: BINARY)(), (N - 1,), int)
    words = {"epsilon": 1.0, "delta": 1e-6, "ledger": ledger, "dataset": "records"}
    with pytest.raises(Unsupported, match="changed its size"):
        private_score(models["logistic"], rows, targets, **words)
    assert ledger.spent("records").fits == 1


def test_other_code_on_a_worker_is_refused_before_the_charge(client, models, monkeypatch, ledger):
    monkeypatch.setattr(client, "run", lambda *_, **__: {"tcp://here:7": pack(("0.0",))})
    caught = None
    try:
        score(models["logistic"], BINARY, parts=3, ledger=ledger, dataset="records")
    except ClusterFailed as error:
        caught = str(error)
    assert ledger.spent("records").fits == 0
    assert "worker tcp://here:7 runs other code" in caught


def test_what_a_score_needs_is_refused_before_the_charge(client, models, ledger):
    words = {"epsilon": 1.0, "delta": 1e-6, "ledger": ledger, "dataset": "records"}
    with pytest.raises(Unsupported, match="targets"):
        private_score(models["logistic"], in_parts(X, 2), **words)
    with pytest.raises(Unsupported, match="columns"):
        private_score(models["logistic"], in_parts(X[:, :2], 2), in_parts(BINARY, 2), **words)
    assert ledger.spent("records").fits == 0
