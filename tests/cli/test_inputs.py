"""A table that the workers of a cluster read: ``discreet fit --cluster``."""

import json

import pytest
from distributed import LocalCluster

from discreet.curator.tables import files
from discreet.curator.tables.files import current_client
from tests.cli.tables import SCHEMA, write_table

FIT = ("fit", "table.csv", "--schema", "schema.toml", "--public", "--no-report", "--quiet", "--json")


@pytest.fixture(scope="module")
def address():
    """A cluster of one thread of this process, behind a socket."""
    made = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": "127.0.0.1:0", "host": "127.0.0.1"}
    with LocalCluster(processes=False, protocol="tcp", **made) as cluster:
        yield cluster.scheduler_address


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_table(tmp_path / "table.csv")
    (tmp_path / "schema.toml").write_text(SCHEMA, encoding="utf-8")
    return tmp_path


def test_workers_read_the_table(ok, here, address):
    found = json.loads(ok(*FIT, "--cluster", address, "--out", "model").stdout)
    facts = found["certificate"]["assumed_public"]
    assert (facts["kept"], facts["parts"]) == ("dask workers", 1)
    assert current_client.get() is None


def test_an_open_address_is_refused_before_anything_is_read(refused, here, monkeypatch):
    monkeypatch.setattr(files, "open_table", None)
    assert "not encrypted" in refused(*FIT, "--cluster", "tcp://192.0.2.1:8786")
