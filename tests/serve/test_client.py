"""The client against a service on a port of this machine, with its worker in a process of its own."""

import json
import pickle

import numpy as np
import pytest

import discreet
from discreet import BudgetExceeded, DPLogisticRegression, DPRidge, TableModel
from discreet.errors import AccountingError, Unsupported
from discreet.serve.app import running
from discreet.serve.service import Service
from discreet.serve.settings import Settings
from discreet.service_client import ServiceRefused
from tests.serve.services import write_files


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    path = write_files(tmp_path_factory.mktemp("client"), cap=20.0)
    accounts = Service(Settings.load(path)).accounts
    token = accounts.new("anna", "analyst")
    accounts.allocate("anna", "patients", 10.0)
    with running(path) as url:
        yield path, url, token


def test_a_fit_is_the_model_that_a_local_fit_returns(place, tmp_path):
    path, url, token = place
    service = discreet.remote(url, token=token)
    assert service.datasets() == ["patients"]
    dataset = service.dataset("patients")
    assert dataset.rows == 60
    estimator = DPLogisticRegression(epsilon=0.5, solver="gd")
    price = dataset.quote(estimator)
    model = dataset.fit(estimator, charge_id="one")
    local = TableModel(dataset.schema, estimator).fit(dataset.sample(60))
    assert type(model) is type(local) is TableModel
    assert [one.name for one in model.coefficients()] == [one.name for one in local.coefficients()]
    assert model.certificate_.is_private
    assert model.certificate_.epsilon == price["epsilon"] == 0.5
    assert model.predict(dataset.sample(5)).shape == (5,)
    again = dataset.fit(estimator, charge_id="one")
    assert np.array_equal(again.estimator_.coef_, model.estimator_.coef_)
    assert dataset.budget()["fits"] == 1  # of this module's first fit
    saved = service.save(service.jobs()[0]["id"], tmp_path / "model")
    assert (saved / "report.html").is_file()
    discreet.Ledger(path.parent / "budget.db").verify(TableModel.load(saved).certificate_)


def test_refusals_have_the_service_words(place):
    _, url, token = place
    service = discreet.remote(url, token=token)
    dataset = service.dataset("patients")
    with pytest.raises(ServiceRefused, match="allocation"):
        dataset.fit(DPLogisticRegression(epsilon=15.0))
    with pytest.raises(ServiceRefused, match="another kind of target"):
        dataset.quote(DPRidge(epsilon=0.5))
    with pytest.raises(ServiceRefused, match="no such data set"):
        service.dataset("nobody")
    with pytest.raises(ServiceRefused, match="token is not valid"):
        discreet.remote(url, token="dsc_wrong").datasets()
    with pytest.raises(ServiceRefused, match="cannot be reached"):
        discreet.remote("http://127.0.0.1:9", token="x").datasets()


def test_a_result_that_promises_something_else_is_refused(place, monkeypatch):
    _, url, token = place
    service = discreet.remote(url, token=token)
    job = service.dataset("patients").submit(DPLogisticRegression(epsilon=0.5), charge_id="two")
    service.result(job)
    honest = service._sent

    def changed(method, path, body=None):
        content = honest(method, path, body)
        return content.replace(b'"format": 1', b'"format": 2') if path.endswith("manifest.json") else content

    monkeypatch.setattr(service, "_sent", changed)
    with pytest.raises(discreet.DiscreetError):
        service.result(job)

    def cheaper(path, body=None):
        found = json.loads(honest("GET", path))
        return {**found, "settings": {**found["settings"], "epsilon": 0.1}}

    monkeypatch.setattr(service, "_sent", honest)
    monkeypatch.setattr(service, "ask", cheaper)
    with pytest.raises(AccountingError, match="does not promise"):
        service.result(job)


def test_a_refused_job_is_a_budget_that_is_spent(place, monkeypatch):
    service = discreet.remote(place[1], token=place[2])
    monkeypatch.setattr(service, "ask", lambda path: {"state": "refused", "reason": "the budget is spent"})
    with pytest.raises(BudgetExceeded, match="spent"):
        service.result("x")


def test_tokens_stay_secret_and_travel_encrypted(monkeypatch):
    monkeypatch.delenv("DISCREET_TOKEN", raising=False)
    service = discreet.remote("https://example.org/", token="dsc_secret")
    assert "dsc_secret" not in repr(service) + str(service)
    with pytest.raises(TypeError, match="holds your token"):
        pickle.dumps(service)
    for url in ("http://example.org", "ftp://example.org", "example.org"):
        with pytest.raises(Unsupported, match="https"):
            discreet.remote(url, token="dsc_secret")
    with pytest.raises(Unsupported, match="DISCREET_TOKEN"):
        discreet.remote("https://example.org")
