"""A ledger in PostgreSQL and fits on a Dask cluster: the service is the same."""

import pytest

from discreet import DPLogisticRegression, Ledger, remote
from discreet.serve.app import running
from discreet.serve.service import Service
from discreet.serve.settings import Settings
from tests.ledger.postgres import NoServer, Server
from tests.serve.services import write_files


def fitted(path):
    accounts = Service(Settings.load(path)).accounts
    token = accounts.new("anna", "analyst")
    accounts.allocate("anna", "patients", 2.0)
    with running(path) as url:
        service = remote(url, token=token)
        job = service.dataset("patients").submit(DPLogisticRegression(epsilon=0.5, solver="gd"), charge_id="one")
        return service.result(job, seconds=120)


@pytest.mark.thorough
def test_a_ledger_in_postgres(tmp_path):
    try:
        server = Server()
    except NoServer as reason:
        pytest.skip(str(reason))
    try:
        address = server.url(server.fresh())
        ledger = Ledger.create(address)
        ledger.grant("patients", 3.0, 1e-6)
        path = write_files(tmp_path)
        path.write_text(path.read_text().replace('ledger = "budget.db"', f'ledger = "{address}"'))
        model = fitted(path)
        assert ledger.verify(model.certificate_).whole
        assert ledger.spent("patients").fits == 1
    finally:
        server.close()


@pytest.mark.thorough
def test_fits_on_a_cluster(tmp_path):
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0"
    ) as cluster:
        path = write_files(tmp_path, service=f'cluster = "{cluster.scheduler_address}"')
        assert fitted(path).certificate_.is_private
