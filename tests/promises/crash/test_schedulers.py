"""The death of a cluster's scheduler ends a fit with a clear error; its charge stands, and other fits run on."""

import os
import signal
import subprocess
import sys

import dask
import pytest
from distributed import Client

from discreet.errors import ClusterFailed
from discreet.ledger import Ledger
from discreet.scale import cluster
from tests.curator.clusters.parted import Passes, bits, fitted

pytestmark = pytest.mark.thorough


@pytest.fixture
def scheduler(tmp_path):
    """A scheduler and a worker in processes of their own."""
    file = tmp_path / "scheduler.json"
    common = ["--scheduler-file", str(file)]
    start = [sys.executable, "-m"]
    host = ["--host", "127.0.0.1", "--port", "0", "--no-dashboard"]
    worker = ["--nworkers", "1", "--nthreads", "1", "--no-dashboard", "--host", "127.0.0.1", "--no-nanny"]
    made = [
        subprocess.Popen([*start, "distributed.cli.dask_scheduler", *common, *host], stderr=subprocess.DEVNULL),
        subprocess.Popen([*start, "distributed.cli.dask_worker", *common, *worker], stderr=subprocess.DEVNULL),
    ]
    try:
        with dask.config.set({"distributed.comm.timeouts.connect": "3s"}):
            yield file, made[0].pid
    finally:
        for one in made:
            one.kill()
            one.wait(30)


@pytest.mark.parametrize("at", [1, 4])
def test_the_death_of_the_scheduler_leaves_the_charge_and_a_clear_error(scheduler, tmp_path, monkeypatch, at):
    file, pid = scheduler
    ledger = Ledger.create(tmp_path / "budget.db")
    ledger.grant("records", epsilon=100.0, delta=1e-3, neighbors="replace_one")
    client = Client(scheduler_file=str(file), timeout=60)
    client.wait_for_workers(1, timeout=60)
    try:
        with monkeypatch.context() as patch, cluster(client):
            Passes(patch, at, lambda: os.kill(pid, signal.SIGKILL))
            with pytest.raises(ClusterFailed, match="stays charged") as caught:
                fitted("logistic", 3, ledger=ledger, dataset="records")
        assert (caught.value.__cause__, caught.value.__context__) == (None, None)
        assert ledger.spent("records").fits == 1
    finally:
        client.close(timeout=5)
    assert len(bits(fitted("logistic", ledger=ledger, dataset="records"))) == 4
    assert ledger.spent("records").fits == 2
