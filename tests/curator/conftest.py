"""What the tests of clusters share: a cluster in this process, its client, and an account to charge."""

import pytest

from discreet.ledger import Ledger


@pytest.fixture(scope="module")
def thread_cluster():
    """A cluster of one worker in this process: it starts at once."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=1, threads_per_worker=2, processes=False, dashboard_address="127.0.0.1:0") as made,
        Client(made) as client,
    ):
        yield client


@pytest.fixture
def client(thread_cluster):
    """Its client as Dask's current one, whatever cluster another test has started since."""
    with thread_cluster.as_current():
        yield thread_cluster


@pytest.fixture
def ledger():
    ledger = Ledger(":memory:")
    ledger.grant("records", epsilon=100.0, delta=1e-3, neighbors="replace_one")
    return ledger
