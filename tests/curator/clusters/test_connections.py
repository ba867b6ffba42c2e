"""Rows and exact sums travel over encrypted ways, or not beyond this machine."""

import pytest

from discreet.curator.clusters.dask import check_address
from discreet.curator.tables.files import current_client
from discreet.errors import ClusterFailed, Unsupported
from discreet.scale import cluster, local_cluster


@pytest.mark.whole
@pytest.mark.parametrize(
    "address",
    ["tls://host:8786", "tcp://127.0.0.1:8786", "127.0.0.1:8786", "tcp://[::1]:8786", "localhost:1", "inproc://a/1/2"],
)
def test_encrypted_and_local_addresses_are_taken(address):
    check_address(address, insecure=False)


@pytest.mark.whole
@pytest.mark.parametrize(
    "address", ["tcp://192.0.2.1:8786", "192.0.2.1:8786", "host:8786", "ws://host:1", "tcp://0.0.0.0:8786", "ucx://h:1"]
)
def test_others_are_refused_unless_they_are_asked_for_by_name(address):
    with pytest.raises(Unsupported, match="not encrypted"):
        check_address(address, insecure=False)
    check_address(address, insecure=True)


def test_a_client_of_an_open_address_is_refused():
    class Scheduler:
        address = "tcp://192.0.2.1:8786"

    class Client:
        scheduler = Scheduler()

    with pytest.raises(Unsupported, match="not encrypted"), cluster(Client()):
        pass
    with cluster(Client(), insecure=True) as client:
        assert current_client.get() is client
    assert current_client.get() is None


def test_a_scheduler_out_of_reach_is_named(monkeypatch):
    monkeypatch.setattr("discreet.curator.clusters.dask._CONNECT", 0.2)
    with pytest.raises(ClusterFailed, match="cannot be reached"), cluster("tcp://127.0.0.1:9"):
        pass


def test_a_local_cluster_is_reachable_from_here_only():
    with local_cluster(1, processes=False) as client:
        assert current_client.get() is client
        check_address(client.scheduler.address, insecure=False)
    assert current_client.get() is None
