"""Fits, scores and searches on a cluster that fails: the bits of memory, one charge, each noise once, or no answer.

Every request counts, not passes alone: counting, reading and dealing rows of persons, encoding the rows of a run of a
search, and sums.
"""

import gc
from dataclasses import replace

import numpy as np
import pytest
from distributed import Client, LocalCluster

from discreet import DPLogisticRegression, DPRandomizedSearch, private_score
from discreet.curator import noise
from discreet.curator.clusters import dask as dask_parts
from discreet.curator.clusters import persons
from discreet.errors import ClusterFailed
from discreet.ledger import Ledger
from discreet.solvers import GradientDescent, StochasticGradientDescent
from discreet.testing import seeded
from tests.curator.clusters.parted import BINARY, N, X, bits, in_parts, kill_workers

NAMES = np.random.default_rng(3).integers(0, N // 3, N).astype(float)
SGD = StochasticGradientDescent(n_steps=3, sampling_probability=0.25)
MODEL = DPLogisticRegression(3.0, 1e-6, bounds=1.0, classes=(0, 1))
PARTS = 4


def fit(rows, words):
    X, y, groups = rows
    return bits(DPLogisticRegression(3.0, 1e-6, bounds=1.0, classes=(0, 1), solver=SGD, **words).fit(X, y, groups))


def score(rows, words):
    with seeded(1):
        model = MODEL.fit(X, BINARY)
    found = private_score(model, *rows, epsilon=2.0, delta=1e-6, metric="auc", **words)
    return found.to_dict() | {"certificate": found.certificate.events}  # no two charges have the same certificate


def search(rows, words):
    candidates = {"solver": [GradientDescent(n_steps=2), SGD]}
    settings = {"epsilon": 4.0, "delta": 1e-6, "mean_runs": 3, "stopping": "geometric", **words}
    found = DPRandomizedSearch(DPLogisticRegression(bounds=1.0, classes=(0, 1)), candidates, **settings).fit(*rows)
    return bits(found.best_estimator_), found.best_score_


JOBS = {
    "fit": (fit, None),
    "fit of persons": (fit, NAMES),
    "score": (score, None),
    "score of persons": (score, NAMES),
    "search": (search, None),
    "search of persons": (search, NAMES),
}


class Job:
    """Some work with seeded noise, in memory or in parts on the current client, under a charge of its own."""

    def __init__(self, name):
        self.work, self.groups = JOBS[name]

    def run(self, parts=None):
        rows = (X, BINARY, self.groups)
        if parts is not None:
            rows = tuple(None if column is None else in_parts(column, parts) for column in rows)
        self.ledger, unit = Ledger(":memory:"), "record" if self.groups is None else "person"
        self.ledger.grant("records", epsilon=100.0, delta=1e-3, neighbors="replace_one", unit=unit)
        with seeded(5):
            return self.work(rows, {"ledger": self.ledger, "dataset": "records"})

    @property
    def charges(self):
        return self.ledger.spent("records").fits


class Requests:
    """Counts what is asked of the cluster, and does something while one of the requests is under way."""

    def __init__(self, patch, at=None, then=None):
        self.count = 0
        for place, name in (
            (dask_parts, "_mapped"),
            (dask_parts.DaskParts, "_submitted"),
            (dask_parts.DaskParts, "_gathered"),
        ):
            patch.setattr(place, name, self._counted(getattr(place, name), at, then))

    def _counted(self, honest, at, then):
        def request(*given, **words):
            self.count += 1
            futures = honest(*given, **words)
            if self.count == at:
                then()
            return futures

        return request


@pytest.fixture
def processes():
    """A cluster of two processes for one test: a worker that is killed again while it starts does not come back."""
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0", host="127.0.0.1") as made,
        Client(made) as client,
        client.as_current(),
    ):
        yield client


@pytest.fixture
def draws(monkeypatch):
    """How often noise was drawn, and how much of it."""
    counts = []
    for law in ("rounded_gaussian", "discrete_laplace"):
        honest = getattr(noise, law)
        monkeypatch.setattr(noise, law, lambda n, *given, honest=honest: counts.append(n) or honest(n, *given))
    return counts


@pytest.mark.thorough
@pytest.mark.parametrize("name", JOBS)
@pytest.mark.parametrize("when", ["first", "middle", "last"])
def test_a_killed_worker_costs_no_bit_no_charge_and_no_noise(processes, monkeypatch, draws, name, when):
    job, killed = Job(name), []
    expected = job.run()
    drawn = list(draws)
    with monkeypatch.context() as patch:
        requests = Requests(patch)
        job.run(PARTS)
    at = {"first": 1, "middle": requests.count // 2, "last": requests.count}[when]
    draws.clear()
    with monkeypatch.context() as patch:
        Requests(patch, at, lambda: killed.append(kill_workers(processes)))
        found = job.run(PARTS)
    assert len(killed) == 1
    assert found == expected
    assert draws == drawn
    assert job.charges == 1


@pytest.mark.few(1)
@pytest.mark.parametrize("name", JOBS)
def test_answers_that_come_twice_are_counted_once(client, monkeypatch, name):
    job = Job(name)
    expected = job.run()
    monkeypatch.setattr(dask_parts, "_runs", lambda futures: iter([list(futures), list(futures)[::-1]]))
    assert job.run(PARTS) == expected


@pytest.mark.few(1)
@pytest.mark.parametrize("name", JOBS)
def test_a_part_that_is_left_out_of_a_request_ends_it(client, monkeypatch, name):
    """Of the first, one in the middle, and the last: nothing is released, and a charge stands."""
    job, honest = Job(name), dask_parts._runs
    with monkeypatch.context() as patch:
        total = Requests(patch)
        job.run(PARTS)
    for at in (1, total.count // 2, total.count):
        answered = []
        with monkeypatch.context() as patch:
            lossy = lambda patch=patch: patch.setattr(dask_parts, "_runs", lambda futures: honest(futures[:-1]))  # noqa: E731
            Requests(patch, at, lossy)
            with pytest.raises(ClusterFailed, match=r"once each|nothing was charged"):
                answered.append(job.run(PARTS))
        assert answered == []
        assert job.charges <= 1


def test_nothing_is_left_on_the_cluster(client):
    Job("score of persons").run(PARTS)
    gc.collect()
    for _ in range(50):
        client.run(gc.collect)
        left = client.run_on_scheduler(lambda dask_scheduler: list(dask_scheduler.tasks))
        if not left:
            break
    assert left == []


@pytest.mark.parametrize("name", [name for name in JOBS if "persons" in name])
@pytest.mark.parametrize("bug", ["twice", "left out", "of another reading"])
def test_rows_of_persons_that_are_dealt_wrongly_end_it(client, monkeypatch, name, bug):
    """Planted: a piece comes twice in place of another, is empty, or is of a part that was read again."""
    job, honest = Job(name), persons.deal

    def dealt(number, *given):
        pieces = honest(number, *given)
        if number != 1:
            return pieces
        wrong = {
            "twice": lambda piece: replace(piece, number=0),
            "left out": lambda piece: replace(piece, number=PARTS),
            "of another reading": lambda piece: replace(piece, source=bytes(16)),
        }[bug]
        return [wrong(pieces[0]), *pieces[1:]]

    monkeypatch.setitem(dask_parts.calls._TASKS, "deal", dealt)
    with pytest.raises(ClusterFailed):
        job.run(PARTS)
    assert job.charges <= 1
