"""Jobs: what an analyst asked for, from the request to the result, through crashes.

    waiting ──► queued ──► running ──► done, refused, failed
       └──► declined         │
                 queued ◄────┘ at a start, after the service was killed

*What is charged, and released, once.* A job is one request under one charge id, ``NAME/JOB``, which is fixed when the
job is recorded and never used for another job. Its run (``carry_out``) calls ``fit`` or ``private_score`` with
it, then writes a folder. Claim: whenever the service, or any of its processes, is killed (SIGKILL, power), and however
often, (a) the job is charged at most once, and (b) at most one output of its mechanism is ever seen outside of the
process that computed it.

(a) The ledger has at most one entry per charge id (``Ledger.reserve`` looks for it in the transaction that would add
    it). The job is on disk with its id before any run, since ``claim`` finds it there.
(b) The only ways out of a run are the ledger's ``settle`` and the folder. ``settle`` keeps the first release per charge
    id, in one transaction, and returns what is kept; the folder is written from what it returned. So all folders of a
    job, and all answers to a repeated run, are functions of one release. Of a run that was killed before ``settle``
    committed, nothing was stored and nothing was sent: its noise and its sums are gone with its memory. Running again
    draws fresh noise, and the two runs together release what one release does.
(c) A run that was charged and killed is run again under the charge that stands, because ``recover`` queues every job
    that was running, and ``reserve`` finds its entry. Two runs of one job at a time, as when a worker survives its
    service for a moment, release the first one that settles, by (b).
(d) A result is seen after ``finish`` committed, which follows the folder. Killed between the two, the next run finds
    the folder, whole (``model_folder.new_folder``), and finishes.

*What a kill must not depend on.* (b) needs that whether a run is stopped says nothing: a kill from outside does not, a
run that fails by itself does. So every failure of a run, a time limit and the end of a worker among them, is an
outcome: the job is ``failed``, the ledger abandons the charge id, and no run under it follows. A service that is killed
``MOST_TRIES`` times with the same job running (by running out of memory, say) does the same.

*What analysts see, when.* ``finish`` is called at a whole multiple of the release grid; until then the job is running
to everybody, in the audit log, too, and its worker's place is taken, so that no later job starts earlier because this
one was fast. A failure is made final in the ledger before that wait, so that a kill during it repeats nothing. Nobody
sees the jobs of others, nor how many there are.

*Runs.* A dispatcher has one thread and one worker process per place, and shows results on a grid of times. The process
is the only place of the service where records are read. What a run says is one of a few constant texts, or the ledger's
refusal, which follows from the cap and earlier charges.
"""

import hashlib
import json
import math
import os
import secrets
import selectors
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TextIO

from discreet.curator import Source, limited, source_of
from discreet.errors import BudgetExceeded, DiscreetError
from discreet.json_schemas import Json
from discreet.ledger.ledger import Ledger
from discreet.models.persist import CERTIFICATE, MANIFEST, is_folder, new_folder, write_folder
from discreet.models.scores import PrivateScore
from discreet.models.table_model import TableModel
from discreet.serve.settings import Conflict, DataSet, ServiceError, Settings
from discreet.serve.specification import ScoreSpecification, Specification
from discreet.serve.store import Store, note

try:
    import fcntl
except ImportError:  # pragma: no cover
    fcntl = None  # type: ignore[assignment]

OPEN = ("waiting", "queued", "running")
MOST_TRIES = 10
_COLUMNS = "id, name, dataset, charge_id, kind, settings, epsilon, amounts, state, reason, made, approver"


@dataclass(frozen=True)
class Job:
    """A job as it is stored."""

    id: str
    name: str
    dataset: str
    charge_id: str
    kind: str
    settings: Json
    epsilon: float
    amounts: tuple[int, ...]
    state: str
    reason: str
    made: float
    approver: str | None

    def to_text(self) -> str:
        """One line of JSON, for a worker."""
        return json.dumps(vars(self))

    @classmethod
    def from_text(cls, text: str) -> "Job":
        """Read what ``to_text`` wrote."""
        return cls(**json.loads(text))

    @property
    def ledger_id(self) -> str:
        """The id under which the ledger charges it: whose job, and which."""
        return f"{self.name}/{self.id}"

    @property
    def is_done(self) -> bool:
        """Whether its result may be fetched."""
        return self.state == "done"


@dataclass(frozen=True)
class Outcome:
    """How a run ended: a state, and a reason that is public."""

    state: str
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class Request:
    """A job to be: priced, and canonical, so that the same request twice is the same text."""

    name: str
    dataset: str
    charge_id: str
    kind: str
    settings: Json
    epsilon: float
    amounts: tuple[int, ...]
    waits: bool

    @property
    def text(self) -> str:
        """The settings as they are stored and compared."""
        return json.dumps(self.settings, sort_keys=True, allow_nan=False)


class Jobs:
    """The jobs in the service's database. Every change is one transaction, with its line in the audit log."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def submit(
        self, request: Request, admit: Callable[[sqlite3.Connection, list[Job]], None], *, most_open: int
    ) -> tuple[Job, bool]:
        """Record a job, once per charge id; ``admit`` refuses it in the same transaction, given the person's jobs.

        Returns the job, and whether it is new.
        """
        with self._store.writing() as at:
            old = _jobs(at, "name = ? AND charge_id = ?", request.name, request.charge_id)
            if old:
                same = (old[0].dataset, old[0].kind, old[0].settings) == (
                    *(request.dataset, request.kind),
                    json.loads(request.text),
                )
                if not same:
                    raise Conflict("this charge_id was used for something else: give each job an id of its own")
                return old[0], False
            mine = _jobs(at, "name = ?", request.name)
            if sum(other.state in OPEN for other in mine) >= most_open:
                raise Conflict("too many of your jobs are waiting: submit more when some of them are done")
            admit(at, mine)
            job = secrets.token_hex(12)
            state = "waiting" if request.waits else "queued"
            values = (job, request.name, request.dataset, request.charge_id, request.kind, request.text)
            more = (request.epsilon, json.dumps(request.amounts), state, time.time())
            names = "id, name, dataset, charge_id, kind, settings, epsilon, amounts, state, made"
            at.execute(f"INSERT INTO job ({names}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", (*values, *more))
            about = f"{job} on {request.dataset}, epsilon {request.epsilon:g}"
            note(at, request.name, f"{request.kind} submitted", about)
            return _jobs(at, "id = ?", job)[0], True

    def decide(self, job: str, approver: str, *, approved: bool) -> Job:
        """Approve a waiting job, or decline it; nobody decides on a job of their own."""
        with self._store.writing() as at:
            waiting = _jobs(at, "id = ? AND state = 'waiting'", job)
            if not waiting:
                raise Conflict("this job does not wait for approval")
            if waiting[0].name == approver:
                raise Conflict("a second person approves: this job is your own")
            state, reason = ("queued", "") if approved else ("declined", "the owner declined it; nothing was charged")
            statement = "UPDATE job SET state = ?, reason = ?, approver = ? WHERE id = ?"
            at.execute(statement, (state, reason, approver, job))
            note(at, approver, "approved" if approved else "declined", job)
            return _jobs(at, "id = ?", job)[0]

    def claim(self) -> Job | None:
        """Take the oldest queued job to run it."""
        with self._store.writing() as at:
            first = _jobs(at, "state = 'queued' ORDER BY number LIMIT 1")
            if not first:
                return None
            at.execute("UPDATE job SET state = 'running', tries = tries + 1 WHERE id = ?", (first[0].id,))
            return _jobs(at, "id = ?", first[0].id)[0]

    def finish(self, job: Job, outcome: Outcome) -> None:
        """Record how a run ended, which everybody concerned sees from now on; ``queued`` is no try that counts."""
        with self._store.writing() as at:
            counted = int(outcome.state != "queued")
            statement = "UPDATE job SET state = ?, reason = ?, tries = tries - 1 + ? WHERE id = ? AND state = 'running'"
            if at.execute(statement, (outcome.state, outcome.reason, counted, job.id)).rowcount:
                note(at, "service", outcome.state, job.id)

    def recover(self) -> list[Job]:
        """Queue again what was running when the service was killed; return what was killed too often to go on."""
        with self._store.writing() as at:
            spent = _jobs(at, "state = 'running' AND tries >= ?", MOST_TRIES)
            back = "UPDATE job SET state = 'queued' WHERE state = 'running' AND tries < ?"
            if at.execute(back, (MOST_TRIES,)).rowcount:
                note(at, "service", "started again", "jobs that were running are queued again")
            return spent

    def find(self, job: str) -> Job | None:
        """Return the job of this id."""
        with self._store.reading() as at:
            return next(iter(_jobs(at, "id = ?", job)), None)

    def listed(self, name: str | None = None, *, limit: int = 200) -> list[Job]:
        """Return the newest jobs, of one person or of all."""
        with self._store.reading() as at:
            return _jobs(at, "? IN (name, '') ORDER BY number DESC LIMIT ?", name or "", limit)

    def waiting(self) -> list[Job]:
        """Those that wait for approval, the oldest first."""
        with self._store.reading() as at:
            return _jobs(at, "state = 'waiting' ORDER BY number")


def _jobs(at: sqlite3.Connection, where: str, *values: object) -> list[Job]:
    rows = at.execute(f"SELECT {_COLUMNS} FROM job WHERE {where}", values).fetchall()
    names = [name.strip() for name in _COLUMNS.split(",")]
    jobs = []
    for row in rows:
        job = dict(zip(names, row, strict=True))
        jobs.append(Job(**job | {name: json.loads(job[name]) for name in ("settings", "amounts")}))
    return jobs


SCORE = "score.json"
FAILED = "the run failed after it was charged, and the charge stays: ask the owner, or submit another job"
UNSERVED = "the service could not run this job, and nothing was charged: ask the owner whether the table can be read"
UNSTORED = "the result could not be stored"
TOO_LONG = "the run took longer than the service allows, and its charge stays: ask for a cheaper fit"


def carry_out(settings: Settings, job: Job) -> Outcome:
    """Fit or score under the job's charge, and write its folder. Nothing else leaves this function."""
    place = settings.results / job.id
    if is_folder(place):
        return Outcome("done")
    ledger, dataset = Ledger(settings.ledger), settings.datasets[job.dataset]
    try:
        with limited(settings.limits.memory, settings.folder / "scratch"):
            files = (_scored if job.kind == "score" else _fitted)(settings, job, dataset, ledger)
    except BudgetExceeded as refusal:
        return Outcome("refused", str(refusal))
    except Exception:
        return Outcome("failed", FAILED) if is_charged(ledger, job) else Outcome("refused", UNSERVED)
    try:
        with new_folder(place) as folder:
            files(folder)
    except Exception:
        if not is_folder(place):  # unless another run of the same job was first
            return Outcome("queued", UNSTORED)
    return Outcome("done")


def _fitted(settings: Settings, job: Job, dataset: DataSet, ledger: Ledger) -> Callable[[Path], None]:
    """Fit, and return what writes the model's files."""
    specification, account = Specification.of(job.settings, dataset.schema), ledger.account(dataset.name)
    model = specification.model_of(dataset.schema, account, ledger=ledger, dataset=dataset.name)
    return partial(write_folder, model.fit(table_of(dataset), charge_id=job.ledger_id))


def _scored(settings: Settings, job: Job, dataset: DataSet, ledger: Ledger) -> Callable[[Path], None]:
    """Score, and return what writes the score's files."""
    specification, account = ScoreSpecification.of(job.settings), ledger.account(dataset.name)
    model = TableModel.load(settings.results / specification.job)
    words: Json = {**specification.settings, "neighbors": str(account.neighbors), "charge_id": job.ledger_id}
    score = model.private_score(table_of(dataset), ledger=ledger, dataset=dataset.name, **words)
    return partial(_write_score, score)


def _write_score(score: PrivateScore, folder: Path) -> None:
    assert score.certificate is not None
    texts = {SCORE: json.dumps(score.to_dict(), indent=1), CERTIFICATE: score.certificate.to_json() + "\n"}
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    sums = {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in texts}
    (folder / MANIFEST).write_text(json.dumps({"format": 1, "sha256": sums}), encoding="utf-8")


def table_of(dataset: DataSet) -> Source:
    """Return the rows of a data set, unread."""
    source: Source = source_of([Path(path) for path in dataset.table], dataset.schema.separator)
    return source


def is_charged(ledger: Ledger, job: Job) -> bool:
    """Return whether the ledger has an entry under the job's id."""
    return any(entry.charge_id == job.ledger_id for entry in ledger.entries(job.dataset))


def main(path: str) -> None:
    """Run jobs until the service is gone: one line of JSON each, in and out. What libraries print goes nowhere."""
    requests, answers = os.fdopen(os.dup(0), "r", encoding="utf-8"), os.fdopen(os.dup(1), "w", encoding="utf-8")
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    settings = Settings.load(path)
    with _cluster(settings.cluster), suppress(OSError):
        _say(answers, Outcome("ready"))
        for line in requests:
            _say(answers, carry_out(settings, Job.from_text(line)))


def _say(answers: TextIO, outcome: Outcome) -> None:
    answers.write(json.dumps([outcome.state, outcome.reason]) + "\n")
    answers.flush()


@contextmanager
def _cluster(address: str | None) -> Iterator[None]:
    with ExitStack() as stack:
        if address is not None:
            from discreet.scale import cluster

            stack.enter_context(cluster(address))
        yield


PAUSE, RETRY_PAUSE, START_PATIENCE = 1.0, 5.0, 120.0
"""Seconds between two looks at an empty queue, which a submission cuts short; after a disk or database failed; and
for a worker to start."""


def next_release(now: float, grid: float) -> float:
    """Return the first whole multiple of the grid that is not before ``now``; ``now`` itself without a grid."""
    return math.ceil(now / grid) * grid if grid > 0 else now


class Worker:
    """A process that carries out jobs, started again where it has ended."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._process: subprocess.Popen[str] | None = None

    def run(self, job: Job, seconds: float) -> Outcome:
        """Carry out a job; a process that ends or takes too long has failed."""
        process = self._started()
        assert process.stdin is not None
        try:
            process.stdin.write(job.to_text() + "\n")
            process.stdin.flush()
            answer = _line(process, seconds)
        except OSError:
            answer = ""
        if answer:
            return Outcome(*json.loads(answer))
        self.end()
        return Outcome("failed", FAILED if answer is not None else TOO_LONG)

    def _started(self) -> "subprocess.Popen[str]":
        if self._process is None or self._process.poll() is not None:
            self.end()
            command = [sys.executable, "-m", "discreet.serve.jobs", str(self._path)]
            pipes: Json = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
            self._process = subprocess.Popen(command, text=True, encoding="utf-8", start_new_session=True, **pipes)
            if not _line(self._process, START_PATIENCE):
                self.end()
                raise ServiceError("a worker does not start: does this machine have enough memory?")
        return self._process

    def start(self) -> None:
        """Start the process before the first job needs it."""
        with suppress(ServiceError):
            self._started()

    def kill(self) -> None:
        """End the process from another thread; a run that waits for it has failed then."""
        if (process := self._process) is not None:
            process.kill()

    def end(self) -> None:
        """End the process, and nothing else."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            for pipe in (self._process.stdin, self._process.stdout):
                with suppress(OSError):
                    assert pipe is not None
                    pipe.close()
        self._process = None


def _line(process: "subprocess.Popen[str]", seconds: float) -> str | None:
    """Return the next line of a worker; nothing where it has ended, None where it takes too long."""
    assert process.stdout is not None
    with selectors.DefaultSelector() as waiting:
        waiting.register(process.stdout, selectors.EVENT_READ)
        return process.stdout.readline() if waiting.select(seconds) else None


class Dispatcher:
    """Takes jobs from the queue, hands them to workers, and records outcomes.

    One per service folder: a lock on ``service.lock`` sees to it, so that ``recover`` meets no living run of another
    service.
    """

    def __init__(self, settings: Settings, jobs: Jobs, run: Callable[[Job], Outcome] | None = None) -> None:
        self._settings, self._jobs, self._run = settings, jobs, run
        self._stop, self._wake = threading.Event(), threading.Event()
        self._threads: list[threading.Thread] = []
        self._workers: list[Worker] = []
        self._lock: int | None = None

    def start(self) -> None:
        """Recover what a kill left, and start the workers."""
        self.take_over()
        for _ in range(self._settings.limits.fits_at_once):
            thread = threading.Thread(target=self._serve, daemon=True)
            thread.start()
            self._threads.append(thread)

    def take_over(self) -> None:
        """Become the only dispatcher of the folder, and queue again what was running."""
        self._lock = _locked(self._settings.folder / "service.lock")
        (self._settings.folder / "scratch").mkdir(exist_ok=True)
        self._settings.results.mkdir(exist_ok=True)
        for job in self._jobs.recover():
            self._settle(job, Outcome("failed", FAILED), holds=False)

    def stop(self) -> None:
        """Take no more jobs; a run that is under way is ended, and goes on after the next start."""
        self._stop.set()
        self._wake.set()
        for worker in self._workers:
            worker.kill()
        for thread in self._threads:
            thread.join(timeout=10)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def wake(self) -> None:
        """Look at the queue now."""
        self._wake.set()

    def run_one(self, run: Callable[[Job], Outcome]) -> Job | None:
        """Run the oldest queued job; None where there is none."""
        job = self._jobs.claim()
        if job is not None:
            try:
                outcome = run(job)
            except ServiceError:  # there is no worker to run it
                outcome = Outcome("queued")
            self._settle(job, outcome)
        return job

    def _serve(self) -> None:
        assert self._settings.path is not None
        worker = Worker(self._settings.path)
        self._workers.append(worker)
        run = self._run or (lambda job: worker.run(job, 60 * self._settings.limits.minutes))
        if self._run is None:
            worker.start()
        try:
            while not self._stop.is_set():
                try:
                    job = self.run_one(run)
                except (DiscreetError, sqlite3.Error, OSError):  # a database that is busy or full: nothing is lost
                    self._stop.wait(RETRY_PAUSE)
                    continue
                if job is None:
                    self._wake.wait(PAUSE)
                    self._wake.clear()
        finally:
            worker.end()

    def _settle(self, job: Job, outcome: Outcome, *, holds: bool = True) -> None:
        """Keep the place until the next time of the grid, and record the outcome then (proof in ``jobs.py``)."""
        if self._stop.is_set():
            return  # the worker was ended with the service: the job goes on after the next start
        if outcome.state == "failed":
            ledger = Ledger(self._settings.ledger)
            if is_charged(ledger, job):
                ledger.abandon(job.ledger_id)
            else:
                outcome = Outcome("refused", UNSERVED)
        now = time.time()
        if holds and self._stop.wait(next_release(now, self._settings.limits.release_grid) - now):
            return
        self._jobs.finish(job, outcome)
        if outcome.state == "queued":
            self._stop.wait(RETRY_PAUSE)


def _locked(path: Path) -> int:
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        if fcntl is not None:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        raise ServiceError("another service uses this folder: stop it first, or name another folder") from None
    return handle


def inline(settings: Settings) -> Callable[[Job], Outcome]:
    """Return a run in this process, for tests."""
    return lambda job: carry_out(settings, job)


if __name__ == "__main__":
    main(sys.argv[1])
