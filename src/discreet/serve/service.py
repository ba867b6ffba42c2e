"""What the service does, for the API and the console alike: facts, prices, jobs, results, budget and history.

Everything that is returned here is declared, priced without records, an entry of the ledger, or a result that an entry
paid for. Jobs and results are their analyst's; an owner sees all, an auditor certificates and entries.
"""

import json
import secrets
import sqlite3
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from discreet.accounting.certificate import Certificate
from discreet.accounting.pricing import PricedPlan
from discreet.atomic_files import passing, sync
from discreet.cli.options import quoted
from discreet.errors import LedgerError
from discreet.json_schemas import Json
from discreet.ledger.account import FREE, Account, Amounts
from discreet.ledger.chain import Entry
from discreet.ledger.ledger import Ledger
from discreet.models.fit import Quote
from discreet.models.persist import CERTIFICATE, FILES, UnreadableModel
from discreet.models.table_model import TableModel
from discreet.serve.jobs import SCORE, Dispatcher, Job, Jobs, Outcome, Request, table_of
from discreet.serve.settings import Conflict, DataSet, Forbidden, NotFound, ServiceError, Settings
from discreet.serve.specification import Facts, ScoreSpecification, Specification
from discreet.serve.store import Accounts, Person, Store, allocations

_NO_JOB = "there is no such job"


class Service:
    """A service: its settings, database, ledger and dispatcher."""

    def __init__(self, settings: Settings, run: Callable[[Job], Outcome] | None = None) -> None:
        self.settings = settings
        self.store = Store(settings.database)
        self.accounts, self.jobs = Accounts(self.store), Jobs(self.store)
        self.ledger = Ledger(settings.ledger)
        self.dispatcher = Dispatcher(settings, self.jobs, run)
        self._facts = {name: self._declared(dataset) for name, dataset in settings.datasets.items()}
        self._quote = lru_cache(maxsize=1024)(self._quoted)
        self._forecast = lru_cache(maxsize=256)(self._forecasted)
        self._slow = threading.Lock()  # simulations and reports, one at a time

    def _declared(self, dataset: DataSet) -> Facts:
        try:
            account = self.ledger.account(dataset.name)
        except LedgerError as error:
            raise ServiceError(f"[datasets.{dataset.name}]: {error}") from None
        source = table_of(dataset)
        dataset.schema.check(source.names)
        return Facts.of(dataset.schema, account, source)

    # --- data sets ------------------------------------------------------------------------------------

    def visible(self, person: Person) -> list[DataSet]:
        """Return the data sets that somebody may see: an analyst those with an allocation."""
        mine = {dataset for _, dataset in self.accounts.allocations(person.name)}
        return [shown for shown in self.settings.datasets.values() if person.reads_all or shown.name in mine]

    def dataset(self, person: Person, name: str) -> DataSet:
        """Return a data set by its name."""
        match = next((candidate for candidate in self.visible(person) if candidate.name == name), None)
        if match is None:
            raise NotFound("there is no such data set, or you have no allocation of it: ask its owner")
        return match

    def described(self, person: Person, name: str) -> Json:
        """Return what is public of a data set, and what is left of its budget."""
        dataset, facts = self.dataset(person, name), self._facts[name]
        return {
            "name": name,
            "about": dataset.about,
            "rows": facts.rows,
            "neighbors": str(facts.account.neighbors),
            "unit": facts.account.unit,
            "schema": dataset.schema.to_dict(),
            "schema_toml": dataset.schema.to_toml(),
            "budget": self.budget(person, name),
        }

    def budget(self, person: Person, name: str) -> Json:
        """Return what was spent of a data set's cap, and of one's own allocation."""
        self.dataset(person, name)
        spent: Json = dict(vars(self.ledger.spent(name)))
        if person.role == "analyst":
            with self.store.reading() as at:
                limit = allocations(at, person.name).get((person.name, name), 0.0)
            allocation = self._own(
                self.ledger.account(name), limit, self.jobs.listed(person.name, limit=-1)
            ).statement()
            spent["allocation"] = {
                "epsilon": limit,
                "spent": allocation.epsilon,
                "left": allocation.left,
                "fits": allocation.fits,
            }
        return spent

    # --- prices ---------------------------------------------------------------------------------------

    def quote(self, person: Person, name: str, specification: Specification) -> Json:
        """Return the price and the plan of a fit. Free: no record is read."""
        self.dataset(person, name)
        return quoted(self._quote(name, specification.text))

    def explanation(self, person: Person, name: str, specification: Specification) -> str:
        """Return why this solver, and what privacy will probably cost, from public facts."""
        self.dataset(person, name)
        return self._quote(name, specification.text).explain()

    def forecast(self, person: Person, name: str, specification: Specification) -> Json:
        """Return what privacy will cost in accuracy, simulated on synthetic rows. Free."""
        self.dataset(person, name)
        return self._forecast(name, specification.text)

    def _quoted(self, name: str, text: str) -> Quote:
        facts = self._facts[name]
        return facts.quote(Specification.of(json.loads(text), facts.schema))

    def _forecasted(self, name: str, text: str) -> Json:
        facts = self._facts[name]
        with self._slow:
            forecast = facts.forecast(Specification.of(json.loads(text), facts.schema))
        return {"answer": forecast.answer, **forecast.to_dict()}

    # --- jobs -----------------------------------------------------------------------------------------

    def submit(
        self, person: Person, name: str, specification: Specification, charge_id: str | None
    ) -> tuple[Job, bool]:
        """Record a fit; the same charge id again is the same job. Refused where the budget is spent already."""
        self._allow(person, name)
        return self._submit(person, name, "fit", specification, self._quote(name, specification.text).priced, charge_id)

    def submit_score(
        self, person: Person, name: str, specification: ScoreSpecification, charge_id: str | None
    ) -> tuple[Job, bool]:
        """Record a private score of the model of one's own finished fit."""
        self._allow(person, name)
        if self.job(person, specification.job).kind != "fit":
            raise ServiceError("a score is of a model: name the job of a fit")
        priced = specification.priced(self.model(person, specification.job), self._facts[name])
        return self._submit(person, name, "score", specification, priced, charge_id)

    def _allow(self, person: Person, name: str) -> None:
        if person.role != "analyst":
            raise Forbidden("jobs are submitted by analysts: use a token of that role")
        self.dataset(person, name)

    def _submit(
        self,
        person: Person,
        name: str,
        kind: str,
        specification: Specification | ScoreSpecification,
        priced: PricedPlan,
        charge_id: str | None,
    ) -> tuple[Job, bool]:
        charge_id = secrets.token_hex(8) if charge_id is None else charge_id
        if not (isinstance(charge_id, str) and 0 < len(charge_id) <= 100 and charge_id.isprintable()):
            raise ServiceError("charge_id is a short, printable text")
        account = self.ledger.account(name)
        charge, limit = account.charge(priced), self.settings.limits.approve_above

        def admit(at: sqlite3.Connection, mine: list[Job]) -> None:
            allowed = allocations(at, person.name).get((person.name, name), 0.0)
            if not self._own(account, allowed, mine).charged(charge).is_within:
                raise Conflict(
                    "your allocation of this data set does not allow this fit: ask for less, or its owner for more"
                )
            if not account.charged(charge).is_within:
                raise Conflict("the data set's budget does not allow this fit: ask for less, or its owner for more")

        request = Request(
            name=person.name,
            dataset=name,
            charge_id=charge_id,
            kind=kind,
            settings=specification.with_delta(priced.budget.delta).to_dict(),
            epsilon=priced.budget.epsilon,
            amounts=tuple(charge),
            waits=limit is not None and priced.budget.epsilon > limit,
        )
        job, new = self.jobs.submit(request, admit, most_open=self.settings.limits.jobs_waiting)
        self.dispatcher.wake()
        return job, new

    @staticmethod
    def _own(account: Account, limit: float, mine: list[Job]) -> Account:
        """Return what one analyst has asked of a data set, as an account with the allocation for a cap.

        It bounds what an analyst can spend, in the ledger's own arithmetic. It is no promise to anybody in the table:
        the promise is the cap, which the ledger keeps over all analysts together. Parts (``Ledger.divide``) would be
        wrong here: they are for disjoint people, and each has the whole cap.
        """
        allocation = replace(account, parent=None, spent=FREE, charges=0, adds=False).granted(limit or 1e-300)
        for job in reversed(mine):
            if job.dataset == account.name and job.state not in ("refused", "declined"):
                allocation = allocation.charged(Amounts(*job.amounts))
        return allocation

    def job(self, person: Person, job: str) -> Job:
        """One's own job by its id; somebody else's is not there."""
        match = self.jobs.find(job)
        if match is None or not (person.reads_all or match.name == person.name):
            raise NotFound(_NO_JOB)
        return match

    def listed(self, person: Person) -> list[Job]:
        """One's own jobs, the newest first; all of them for an owner or auditor."""
        return self.jobs.listed(None if person.reads_all else person.name)

    def decide(self, person: Person, job: str, *, approved: bool) -> Job:
        """Approve or decline a job that waits."""
        if not person.is_owner:
            raise Forbidden("the owner approves: use a token of that role")
        decided = self.jobs.decide(job, person.name, approved=approved)
        self.dispatcher.wake()
        return decided

    # --- results --------------------------------------------------------------------------------------

    def result(self, person: Person, job: str, file: str) -> bytes:
        """Return a file of a finished job's folder."""
        finished = self._finished(person, job)
        if file not in (*FILES, SCORE) or (person.role == "auditor" and file != CERTIFICATE):
            raise NotFound("there is no such file for you in a result")
        place = self.settings.results / finished.id / file
        if not place.is_file():
            raise NotFound("there is no such file for you in a result")
        return place.read_bytes()

    def score(self, person: Person, job: str) -> Json:
        """Return the released score of a finished job."""
        stored: Json = json.loads(self.result(person, job, SCORE))
        return stored

    def model(self, person: Person, job: str) -> TableModel:
        """Return the released model of a finished job."""
        if person.role == "auditor":
            raise Forbidden("auditors read entries and certificates")
        try:
            return TableModel.load(self.settings.results / self._finished(person, job).id)
        except UnreadableModel:
            raise NotFound("the result cannot be read, or is not what was written: ask the owner") from None

    def report(self, person: Person, job: str) -> str:
        """Return the page about a finished job; it is made once, from what was released."""
        finished = self._finished(person, job)
        place = self.settings.results / f"{finished.id}.html"
        with self._slow:
            if not place.exists():
                model = self.model(person, job)
                assert model.schema.target is not None
                title = f"A private model of {model.schema.target.column}, from {finished.dataset}"
                _write(place, model.report(title=title).html())
        return place.read_text(encoding="utf-8")

    def _finished(self, person: Person, job: str) -> Job:
        match = self.job(person, job)
        if not match.is_done:
            raise NotFound("this job has no result, or not yet")
        return match

    # --- ledger ---------------------------------------------------------------------------------------

    def history(self, person: Person, dataset: str | None = None) -> list[Json]:
        """Entries of the ledger: all for an owner or auditor, an analyst's own charges."""
        names = {entry.name for entry in self.visible(person)}
        if dataset is not None and dataset not in names:
            raise NotFound("there is no such data set, or you have no allocation of it: ask its owner")
        entries = [entry for entry in self.ledger.entries(dataset) if entry.dataset in names]
        return [_plain(entry) for entry in entries if person.reads_all or _charged_to(entry) == person.name]

    def verify(self, person: Person) -> dict[str, int]:
        """Work out the ledger and the audit log again, and look up the certificate of every result."""
        if not person.reads_all:
            raise Forbidden("owners and auditors verify the ledger")
        return verified(self)


def verified(service: Service) -> dict[str, int]:
    """Check chains, accounts and certificates; a DiscreetError names the first thing that is wrong."""
    checked = 0
    for job in service.jobs.listed(limit=-1):
        place = service.settings.results / job.id / CERTIFICATE
        if job.state == "done":
            service.ledger.verify(Certificate.from_json(place.read_text(encoding="utf-8")))
            checked += 1
    return {"entries": service.ledger.verify().entries, "audit_lines": service.store.verify(), "certificates": checked}


def _charged_to(entry: Entry) -> str:
    return (entry.charge_id or "").partition("/")[0]


def _plain(entry: Entry) -> Json:
    budget = entry.contents.get("budget", entry.contents)
    return {
        "entry": entry.seq,
        "kind": entry.kind,
        "dataset": entry.dataset,
        "time": entry.contents["time"],
        "name": _charged_to(entry),
        "charge_id": entry.charge_id,
        "label": entry.contents.get("label", ""),
        "epsilon": budget.get("epsilon"),
        "delta": budget.get("delta"),
        "hash": entry.hash,
    }


def _write(place: Path, text: str) -> None:
    with passing(place) as scratch:
        scratch.write_text(text, encoding="utf-8")
        sync(scratch)
        scratch.replace(place)
