"""Runs queued jobs: one thread and one worker process per place, results on a grid of times."""

import json
import math
import os
import selectors
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from discreet.errors import DiscreetError
from discreet.json_schemas import Json
from discreet.ledger.ledger import Ledger
from discreet.serve.jobs import Job, Jobs, Outcome
from discreet.serve.settings import ServiceError, Settings
from discreet.serve.worker import FAILED, TOO_LONG, UNSERVED, carry_out, is_charged

try:
    import fcntl
except ImportError:  # pragma: no cover
    fcntl = None  # type: ignore[assignment]

PAUSE, RETRY_PAUSE, START_PATIENCE = 1.0, 5.0, 120.0
"""Seconds between two looks at an empty queue, which a submission cuts short; after a disk or database failed; and
for a worker to start."""


def next_release(now: float, grid: float) -> float:
    """The first whole multiple of the grid that is not before ``now``; ``now`` itself without a grid."""
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
            command = [sys.executable, "-m", "discreet.serve.worker", str(self._path)]
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
    """The next line of a worker; nothing where it has ended, None where it takes too long."""
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
    """A run in this process, for tests."""
    return lambda job: carry_out(settings, job)
