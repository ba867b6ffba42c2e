"""The service is killed at random: every charged job is finished under its own charge, and none is charged twice."""

import random
import threading
import time
from functools import partial

import pytest

from discreet import Ledger, TableModel
from discreet.serve import jobs
from discreet.serve.jobs import MOST_TRIES, Outcome, inline, next_release
from discreet.serve.service import Service, verified
from discreet.serve.settings import ServiceError, Settings
from tests.serve.killing import Victim, patiently
from tests.serve.services import town_of, write_files


class Killed(BaseException):
    """The process is gone."""


MOMENTS = ("before the charge", "after the charge", "after the release", "after the folder")


def dying(moment, monkeypatch):
    """A run that ends at a moment, as a killed process does: no handler of ours sees it."""
    from discreet.curator import PrivateData
    from discreet.ledger.ledger import Reservation

    def die(*_, **__):
        raise Killed

    if moment == "before the charge":
        monkeypatch.setattr(jobs, "table_of", die)
    elif moment == "after the charge":
        monkeypatch.setattr(PrivateData, "open", die)
    elif moment == "after the release":
        honest = Reservation.settle
        monkeypatch.setattr(Reservation, "settle", lambda self, release: (honest(self, release), die()))
    else:
        monkeypatch.setattr("discreet.serve.jobs.Jobs.finish", die)


@pytest.mark.whole
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_job_survives_a_kill_at_any_moment(moment, tmp_path, monkeypatch):
    town = town_of(write_files(tmp_path))
    job = town.submit(charge_id="survivor").json["id"]
    with monkeypatch.context() as patched:
        dying(moment, patched)
        with pytest.raises(Killed):
            town.work()
    charged = sum(one.kind == "charge" for one in town.service.ledger.entries())
    assert charged == (moment != "before the charge")
    before = {path.name: path.read_bytes() for path in (town.service.settings.results / job).glob("*")}
    town.close()
    again = Service(town.service.settings)
    again.dispatcher.take_over()
    while again.dispatcher.run_one(inline(again.settings)) is not None:
        pass
    assert again.jobs.find(job).state == "done"
    assert sum(one.kind == "charge" for one in again.ledger.entries()) == 1
    assert verified(again)["certificates"] == 1
    after = {path.name: path.read_bytes() for path in (again.settings.results / job).glob("*")}
    assert before in ({}, after)
    again.dispatcher.stop()


def test_a_run_that_fails_is_never_repeated(town, monkeypatch):
    """Whether it fails may depend on the records: its failure was an answer."""
    from discreet.curator import PrivateData

    def fail(*_, **__):
        raise MemoryError("zq7sentinel41x")

    job = town.submit(charge_id="failing").json["id"]
    with monkeypatch.context() as patched:
        patched.setattr(PrivateData, "open", fail)
        town.work()
    found = town.ask("anna", f"/api/jobs/{job}").json
    assert (found["state"], found["reason"]) == ("failed", jobs.FAILED)
    stored = town.service.jobs.find(job)
    assert jobs.carry_out(town.service.settings, stored).state == "failed"  # the ledger refuses, too
    assert sum(one.kind == "charge" for one in town.service.ledger.entries()) == 1


def test_a_failure_is_final_before_it_is_shown(tmp_path, monkeypatch):
    """Killed while the outcome waits for its time: the run is not repeated."""
    from discreet.curator import PrivateData

    town = town_of(write_files(tmp_path))
    job = town.submit().json["id"]

    def fail(*_, **__):
        raise MemoryError

    def die(*_):
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(PrivateData, "open", fail)
        patched.setattr(town.service.dispatcher._stop, "wait", die)
        with pytest.raises(Killed):
            town.work()
    town.close()
    again = Service(town.service.settings)
    again.dispatcher.take_over()
    again.dispatcher.run_one(inline(again.settings))
    assert again.jobs.find(job).state == "failed"
    assert list(again.settings.results.iterdir()) == []
    again.dispatcher.stop()


def test_a_job_that_takes_the_service_along_is_given_up(tmp_path, monkeypatch):
    town = town_of(write_files(tmp_path))
    job = town.submit().json["id"]
    for _ in range(MOST_TRIES):
        assert town.service.jobs.claim().id == job
        town.service.dispatcher.stop()
        town.service.dispatcher._stop.clear()
        town.service.dispatcher.take_over()
    assert town.service.jobs.find(job).state == "refused"  # it was never charged
    town.close()


def test_one_service_per_folder(town):
    other = Service(town.service.settings)
    with pytest.raises(ServiceError, match="another service"):
        other.dispatcher.take_over()


@pytest.mark.thorough
def test_a_worker_that_takes_too_long_is_ended(tmp_path):
    from discreet.serve.jobs import Worker

    town = town_of(write_files(tmp_path))
    job = town.submit().json["id"]
    ended = Worker(town.service.settings.path)
    assert ended.run(town.service.jobs.find(job), 0.0) == Outcome("failed", jobs.TOO_LONG)
    ended.end()
    town.close()


def test_the_grid():
    assert next_release(120.0, 60) == 120.0
    assert next_release(120.1, 60) == 180.0
    assert next_release(7.25, 0) == 7.25


# --- real kills ---------------------------------------------------------------------------------------


def checked_afterwards(victim, jobs):
    """Every job has an outcome; every charge belongs to one job, every done job to one charge; results verify."""
    service = Service(Settings.load(victim.path))
    charges = [one.charge_id for one in service.ledger.entries() if one.kind == "charge"]
    assert len(charges) == len(set(charges))
    stored = {one.ledger_id: one for one in service.jobs.listed(limit=-1)}
    assert set(charges) <= set(stored)
    assert {one.id for one in stored.values()} >= jobs
    assert {one.state for one in stored.values()} <= {"done", "refused"}
    assert {one.ledger_id for one in stored.values() if one.state == "done"} == set(charges)
    found = verified(service)
    assert found["certificates"] == len(charges)
    spent = Ledger(victim.path.parent / "budget.db").spent("patients")
    assert spent.epsilon <= spent.cap_epsilon
    return len(charges)


@pytest.mark.thorough
def test_thirty_kills(tmp_path):
    """One analyst per thread submits and submits again; the service is killed 30 times meanwhile."""
    from discreet import DPLogisticRegression

    chance, victim = random.Random(7), Victim(tmp_path, 4, cap=50.0, allocation=50.0)
    victim.start()
    done, jobs, wrong = threading.Event(), set(), []

    def ask(i):
        try:
            client, number = victim.client(i), 0
            dataset = patiently(client.dataset, "patients")
            while not done.is_set():
                name, number = f"job{number}", number + 1
                submit = partial(dataset.submit, DPLogisticRegression(epsilon=0.05, solver="gd"), charge_id=name)
                ids = {patiently(submit) for _ in range(2)}  # a retry is the same job
                assert len(ids) == 1
                jobs.update(ids)
                time.sleep(0.3)
        except Exception as error:
            wrong.append(error)

    threads = [threading.Thread(target=ask, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(30):
        time.sleep(chance.uniform(0.2, 3.0))
        victim.kill()
        victim.start()
    done.set()
    for thread in threads:
        thread.join(timeout=120)
    assert wrong == []
    client, end = [victim.client(i) for i in range(4)], time.monotonic() + 120
    while any(one["state"] in ("queued", "running") for each in client for one in each.jobs()):
        assert time.monotonic() < end
        time.sleep(0.5)
    some = next(one for one in client[0].jobs() if one["state"] == "done")
    assert isinstance(client[0].result(some["id"]), TableModel)
    victim.stop()
    assert checked_afterwards(victim, jobs) > 10


@pytest.mark.thorough
def test_a_service_that_is_stopped_goes_on_after_the_next_start(tmp_path):
    """Asked to end while a worker runs: the worker is ended, and its job is neither failed nor lost."""
    from discreet.serve.jobs import Dispatcher

    town = town_of(write_files(tmp_path))
    town.close()
    job = town.submit().json["id"]
    dispatcher = Dispatcher(town.service.settings, town.service.jobs)
    dispatcher.start()
    end = time.monotonic() + 60
    while town.service.jobs.find(job).state == "queued" and time.monotonic() < end:
        time.sleep(0.005)
    started = time.monotonic()
    dispatcher.stop()
    assert time.monotonic() - started < 5
    assert town.service.jobs.find(job).state in ("running", "done")
    again = Service(town.service.settings)
    again.dispatcher.take_over()
    again.dispatcher.run_one(inline(again.settings))
    assert again.jobs.find(job).state == "done"
    assert sum(one.kind == "charge" for one in again.ledger.entries()) == 1
    again.dispatcher.stop()
