"""Records on a cluster give the bits of records in memory, whatever happens to workers, and are charged once."""

import shutil
import subprocess
import time
import traceback

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from distributed import Client, LocalCluster, Security

from discreet import DPLogisticRegression
from discreet.curator.clusters import dask as dask_parts
from discreet.curator.clusters import tasks
from discreet.curator.private_data import fingerprint_of
from discreet.errors import ClusterFailed
from discreet.scale import cluster
from discreet.solvers import CoordinateDescent, StochasticGradientDescent
from discreet.testing import seeded
from tests.curator.clusters.parted import BINARY, N, Passes, X, bits, fitted, in_parts, kill_workers

SENTINEL = "sentinel-4711"


@pytest.fixture
def processes(process_cluster):
    """Its client as Dask's current one, whatever cluster another test has started since."""
    with process_cluster.as_current():
        yield process_cluster


@pytest.fixture(scope="module")
def process_cluster():
    """A cluster of two processes, which can be killed."""
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0", host="127.0.0.1") as made,
        Client(made) as client,
    ):
        yield client


def charges(ledger):
    return ledger.spent("records").fits


@pytest.mark.whole
@pytest.mark.parametrize("parts", [1, 2, 7])
def test_a_sample_does_not_depend_on_the_parts(client, parts):
    solver = StochasticGradientDescent(n_steps=8, sampling_probability=0.25)
    assert bits(fitted("logistic", parts, solver=solver)) == bits(fitted("logistic", solver=solver))


def test_an_epoch_of_blocks_costs_as_many_passes_as_there_are_blocks(client, monkeypatch):
    """Four columns in blocks of two: two passes per epoch, one vector release each, with the bits of memory."""
    solver = CoordinateDescent(block_size=2, schedule="cyclic", average="last")
    expected = fitted("logistic", solver=solver)
    passes = Passes(monkeypatch)
    found = fitted("logistic", 3, solver=solver)
    assert bits(found) == bits(expected)
    (event,) = [event for event in found.certificate_.events if event.is_release]
    assert passes.count == event.count == 4 * 2


@pytest.mark.parametrize("rows", [1, 3])
def test_empty_parts_and_more_parts_than_rows(client, rows):
    some, y = X[:rows], BINARY[:rows]
    with seeded(5):  # by name: auto is one release where there is so little signal, which clusters do not serve
        expected = bits(DPLogisticRegression(3.0, 1e-6, bounds=1.0, classes=(0, 1), solver="recipe").fit(some, y))
    blocks = da.concatenate([in_parts(some, rows), da.zeros((0, 3)), da.zeros((0, 3))])
    targets = da.concatenate([in_parts(y, rows), da.zeros(0, dtype=int), da.zeros(0, dtype=int)])
    with seeded(5):
        found = DPLogisticRegression(3.0, 1e-6, bounds=1.0, classes=(0, 1), solver="recipe").fit(blocks, targets)
    assert bits(found) == expected


def test_frames_and_their_columns_give_the_bits_of_memory(client):
    frame = pd.DataFrame(X, columns=list("abc"), index=np.arange(N) % 7).assign(ill=BINARY)
    parts = dd.from_pandas(frame, npartitions=3, sort=False)

    def of(*given):
        with seeded(5):
            return DPLogisticRegression(3.0, 1e-6, bounds=dict.fromkeys("abc", (-1, 1)), classes=(0, 1)).fit(*given)

    expected = of(frame[list("abc")], frame["ill"])
    by_name, by_column = of(parts, "ill"), of(parts[list("abc")], parts["ill"])
    assert bits(by_name) == bits(by_column) == bits(expected)
    assert by_name.feature_names_in_.tolist() == list("abc")
    lazy = by_name.predict(parts[list("abc")])
    assert dask.is_dask_collection(lazy)
    assert lazy.compute().tolist() == expected.predict(frame[list("abc")]).tolist()


def test_a_fit_is_charged_once_and_its_records_are_recognized(client, ledger, monkeypatch):
    seen = []
    monkeypatch.setattr(ledger, "recognize", lambda dataset, found: seen.append(found))
    fitted("logistic", 3, ledger=ledger, dataset="records")
    assert charges(ledger) == 1
    assert seen == [fingerprint_of(X, ledger.key())]


def test_no_row_is_scattered_and_no_task_is_pinned(client, monkeypatch):
    def scattered(*_, **__):
        raise AssertionError("what is scattered cannot be made again")

    mapped, computed, pinned = client.map, client.compute, []
    monkeypatch.setattr(client, "scatter", scattered)
    monkeypatch.setattr(client, "map", lambda *a, **w: pinned.append(w.get("workers")) or mapped(*a, **w))
    monkeypatch.setattr(client, "compute", lambda *a, **w: pinned.append(w.get("workers")) or computed(*a, **w))
    fitted("logistic", 3)
    assert set(pinned) == {None}


def test_a_charge_is_answered_once_however_the_records_are_cut(client, ledger):
    model = named(ledger).fit(in_parts(X, 3), in_parts(BINARY, 3), charge_id="monday")
    again = named(ledger).fit(in_parts(X, 2), in_parts(BINARY, 2), charge_id="monday")
    assert charges(ledger) == 1
    assert bits(again) == bits(model)


def named(ledger):
    return DPLogisticRegression(3.0, 1e-6, bounds=1.0, classes=(0, 1), ledger=ledger, dataset="records")


def certified(folder):
    """Return a key and a certificate of its own, for all parties of a test."""
    key, certificate = str(folder / "key.pem"), str(folder / "certificate.pem")
    words = ["-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    made = ["openssl", "req", *words, "-keyout", key, "-out", certificate]
    subprocess.run(made, check=True, capture_output=True, timeout=60)
    parties = {
        f"tls_{who}_{what}": at
        for who in ("client", "scheduler", "worker")
        for what, at in (("cert", certificate), ("key", key))
    }
    return Security(tls_ca_file=certificate, require_encryption=True, **parties)


@pytest.mark.thorough
@pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl to make a certificate with")
def test_a_cluster_may_be_encrypted(tmp_path):
    security = certified(tmp_path)
    made = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": "127.0.0.1:0", "security": security}
    with LocalCluster(**made) as encrypted, cluster(encrypted.scheduler_address, security=security) as client:
        assert client.scheduler.address.startswith("tls://")
        assert bits(fitted("logistic", 2)) == bits(fitted("logistic"))


@pytest.mark.thorough
def test_a_file_that_changes_between_passes_fails_closed(processes, ledger, monkeypatch, tmp_path):
    for part in range(3):
        np.save(tmp_path / f"{part}.npy", np.column_stack([X, BINARY])[part::3])

    def read(part):
        return np.load(tmp_path / f"{part}.npy")

    blocks = [da.from_delayed(dask.delayed(read)(part), shape=(len(X[part::3]), 4), dtype=float) for part in range(3)]
    table = da.concatenate(blocks)

    def change():
        for part in range(3):
            rows = np.load(tmp_path / f"{part}.npy")
            rows[0, 0] = -rows[0, 0]
            np.save(tmp_path / f"{part}.npy", rows)
        kill_workers(processes, None)  # a worker that joined in another test may hold parts, too

    Passes(monkeypatch, 3, change)
    model = DPLogisticRegression(3.0, 1e-6, bounds=1.0, classes=(0, 1), ledger=ledger, dataset="records")
    with pytest.raises(ClusterFailed, match="not what it was"):
        model.fit(table[:, :3], table[:, 3])
    assert charges(ledger) == 1


@pytest.mark.whole
@pytest.mark.parametrize("other", [("0.0", "0"), tasks.Failed("a compiled kernel disagrees")], ids=["code", "kernel"])
def test_other_code_on_workers_is_refused_before_the_charge(client, ledger, monkeypatch, other):
    monkeypatch.setattr(client, "run", lambda task, *given, **words: {"worker": other})
    with pytest.raises(ClusterFailed, match="othing was charged"):
        fitted("logistic", 2, ledger=ledger, dataset="records")
    assert charges(ledger) == 0


def test_a_cluster_without_workers_is_refused_before_the_charge(client, ledger, monkeypatch):
    monkeypatch.setattr(client, "run", lambda task, *given, **words: {})
    with pytest.raises(ClusterFailed, match="no workers: nothing was charged"):
        fitted("logistic", 2, ledger=ledger, dataset="records")
    assert charges(ledger) == 0


def test_workers_that_are_gone_for_good_end_the_fit(client, monkeypatch):
    monkeypatch.setattr(dask_parts, "_LOOKS", 0.01)
    monkeypatch.setattr(dask_parts, "_PATIENCE", 0.1)
    monkeypatch.setattr(client, "nthreads", dict)
    never = client.submit(time.sleep, 3, pure=False)
    with pytest.raises(ClusterFailed, match="no workers any more"):
        dask_parts._wait(client, [never])
    never.cancel()


def test_a_graph_that_fails_while_rows_are_counted_says_that_nothing_was_charged(client, ledger):
    """A frame does not know its number of rows: where that is public, its own graph runs before the charge."""

    def broken(frame):
        if len(frame):
            raise ValueError(f"could not convert {SENTINEL}")
        return frame

    frame = dd.from_pandas(pd.DataFrame(X).assign(label=BINARY).rename(columns=str), npartitions=2)
    model = DPLogisticRegression(bounds=1.0, classes=(0, 1), ledger=ledger, dataset="records")
    with pytest.raises(ClusterFailed, match="nothing was charged") as caught:
        model.fit(frame.map_partitions(broken, meta=frame._meta), "label")
    assert "stays charged" not in str(caught.value)
    assert SENTINEL not in "".join(traceback.format_exception(caught.value))
    assert (caught.value.__cause__, caught.value.__context__) == (None, None)
    assert charges(ledger) == 0


@pytest.mark.whole
@pytest.mark.parametrize("place", ["X", "y"])
def test_errors_of_the_users_graph_carry_no_value(client, ledger, place):
    def broken(block):
        if block.size and block.dtype.kind != "O":
            raise ValueError(f"could not convert {SENTINEL}")
        return block

    rows, targets = in_parts(X, 2), in_parts(BINARY, 2)
    if place == "X":
        rows = rows.map_blocks(broken, dtype=float, meta=np.empty((0, 0)))
    else:
        targets = targets.map_blocks(broken, dtype=int, meta=np.empty(0, dtype=int))
    model = DPLogisticRegression(bounds=1.0, classes=(0, 1), ledger=ledger, dataset="records")
    with pytest.raises(ClusterFailed) as caught:
        model.fit(rows, targets)
    shown = "".join(traceback.format_exception(caught.value))
    assert SENTINEL not in shown
    assert (caught.value.__cause__, caught.value.__context__) == (None, None)
    assert charges(ledger) == 1
