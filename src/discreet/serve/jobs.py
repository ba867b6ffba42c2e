"""Jobs: what an analyst asked for, from the request to the result, through crashes.

    waiting ──► queued ──► running ──► done, refused, failed
       └──► declined         │
                 queued ◄────┘ at a start, after the service was killed

*What is charged, and released, once.* A job is one request under one charge id, ``NAME/JOB``, which is fixed when the
job is recorded and never used for another job. Its run (``worker.carry_out``) calls ``fit`` or ``private_score`` with
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
"""

import json
import secrets
import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass

from discreet.json_schemas import Json
from discreet.serve.settings import Conflict
from discreet.serve.store import Store, note

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
        """The inverse of ``to_text``."""
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
            if sum(one.state in OPEN for one in mine) >= most_open:
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
        """The job of this id."""
        with self._store.reading() as at:
            return next(iter(_jobs(at, "id = ?", job)), None)

    def listed(self, name: str | None = None, *, limit: int = 200) -> list[Job]:
        """The newest jobs, of one person or of all."""
        with self._store.reading() as at:
            return _jobs(at, "? IN (name, '') ORDER BY number DESC LIMIT ?", name or "", limit)

    def waiting(self) -> list[Job]:
        """Those that wait for approval, the oldest first."""
        with self._store.reading() as at:
            return _jobs(at, "state = 'waiting' ORDER BY number")


def _jobs(at: sqlite3.Connection, where: str, *values: object) -> list[Job]:
    rows = at.execute(f"SELECT {_COLUMNS} FROM job WHERE {where}", values).fetchall()
    names = [name.strip() for name in _COLUMNS.split(",")]
    found = [dict(zip(names, row, strict=True)) for row in rows]
    return [
        Job(**{**one, "settings": json.loads(one["settings"]), "amounts": json.loads(one["amounts"])}) for one in found
    ]
