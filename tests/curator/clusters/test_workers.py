"""A cluster whose workers cannot do their part is refused before the charge, by a worker's name and without a value."""

import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from distributed import Client, LocalCluster

from discreet import Bounds, DPLogisticRegression, Schema, TableModel
from discreet.curator.clusters.tasks import Failed, probe
from discreet.errors import ClusterFailed, Unsupported
from discreet.ledger import Ledger
from discreet.losses import Logistic
from discreet.scale import cluster
from discreet.schema import Number, Target
from tests.curator.clusters.parted import BINARY, X, in_parts

SCHEMA = Schema({"a": Number((-1, 1))}, Target("ill", classes=(0, 1)))
FAKES = {
    "no package": "raise ImportError('no package of this name')",
    "another version": """
import importlib.machinery, importlib.util, sys
where = [path for path in sys.path if path != {here!r}]
spec = importlib.machinery.PathFinder.find_spec("discreet", where)
module = importlib.util.module_from_spec(spec)
sys.modules["discreet"] = module
spec.loader.exec_module(module)
import discreet.curator.clusters.tasks as tasks
tasks.software = lambda: ("0.0.0", "0", "0", "0")
""",
}


@pytest.fixture
def ledger():
    ledger = Ledger(":memory:")
    ledger.grant("records", epsilon=100.0, delta=1e-3, neighbors="add_remove")
    return ledger


def test_files_that_are_gone_or_others_are_a_failure(tmp_path):
    file = tmp_path / "table.csv"
    file.write_text("a\n1\n")
    size = file.stat().st_size
    assert not isinstance(probe(Logistic(), False, {str(file): size}), Failed)
    for files in ({str(file): size + 1}, {str(tmp_path / "none"): 1}, {str(tmp_path): size}):
        assert "cannot read the files" in probe(Logistic(), False, files).reason


def test_workers_that_do_not_see_the_files_are_named_before_the_charge(tmp_path, ledger):
    frame = pd.DataFrame({"a": X[:, 0], "ill": BINARY})
    for k in range(2):
        frame.iloc[k::2].to_parquet(tmp_path / f"{k}.parquet")
    with (
        LocalCluster(n_workers=1, processes=False, dashboard_address=None) as made,
        Client(made) as client,
        cluster(client),
    ):
        model = TableModel(SCHEMA, DPLogisticRegression(1.0, 1e-6, ledger=ledger, dataset="records"))
        model.estimator.set_params(neighbors="add_remove")
        stream = model.stream(str(tmp_path))
        (tmp_path / "1.parquet").unlink()
        (worker,) = client.scheduler_info()["workers"]
        with pytest.raises(ClusterFailed, match="cannot read the files") as caught:
            model.estimator.set_params(bounds=stream.bounds).fit(stream)
        assert worker in str(caught.value)
        with pytest.raises(Unsupported):
            model.fit(str(tmp_path / "nowhere"))
    assert ledger.spent("records").fits == 0


@pytest.mark.thorough
@pytest.mark.parametrize("fake", FAKES)
def test_a_worker_without_the_package_or_with_another_is_named_before_the_charge(tmp_path, ledger, fake):
    here = str(tmp_path / "fake")
    (tmp_path / "fake" / "discreet").mkdir(parents=True)
    (tmp_path / "fake" / "discreet" / "__init__.py").write_text(FAKES[fake].format(here=here))
    ports = ["--host", "127.0.0.1", "--no-dashboard"]
    options = ["--nworkers", "1", "--nthreads", "1", "--no-nanny", *ports]
    with (
        LocalCluster(n_workers=1, dashboard_address=None, host="127.0.0.1") as made,
        Client(made) as client,
        client.as_current(),
    ):
        (honest,) = client.scheduler_info()["workers"]
        command = [sys.executable, "-m", "distributed.cli.dask_worker", client.scheduler.address, *options]
        other = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": here}, stderr=subprocess.DEVNULL)
        try:
            client.wait_for_workers(2, timeout=120)
            (worker,) = set(client.scheduler_info()["workers"]) - {honest}
            model = DPLogisticRegression(1.0, 1e-6, bounds=Bounds(1.0, classes=(0, 1)), neighbors="add_remove")
            model.set_params(ledger=ledger, dataset="records")
            with pytest.raises(ClusterFailed, match="Nothing was charged") as caught:
                model.fit(in_parts(X, 2), in_parts(np.asarray(BINARY), 2))
        finally:
            other.kill()
            other.wait(30)
    assert worker in str(caught.value)
    assert ledger.spent("records").fits == 0
