"""One run of a job, in a process of its own: the only place of the service where records are read.

``jobs.py`` has the proof of what a kill leaves. What a run says is one of a few constant texts, or the ledger's
refusal, which follows from the cap and earlier charges.
"""

import hashlib
import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TextIO

from discreet.curator import Source, limited, source_of
from discreet.errors import BudgetExceeded
from discreet.json_schemas import Json
from discreet.ledger.ledger import Ledger
from discreet.models.persist import CERTIFICATE, MANIFEST, is_folder, new_folder, write_folder
from discreet.models.scores import PrivateScore
from discreet.models.table_model import TableModel
from discreet.serve.jobs import Job, Outcome
from discreet.serve.settings import DataSet, Settings
from discreet.serve.specification import ScoreSpecification, Specification

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
    asked, account = Specification.of(job.settings, dataset.schema), ledger.account(dataset.name)
    model = asked.model_of(dataset.schema, account, ledger=ledger, dataset=dataset.name)
    return partial(write_folder, model.fit(table_of(dataset), charge_id=job.ledger_id))


def _scored(settings: Settings, job: Job, dataset: DataSet, ledger: Ledger) -> Callable[[Path], None]:
    """Score, and return what writes the score's files."""
    asked, account = ScoreSpecification.of(job.settings), ledger.account(dataset.name)
    model = TableModel.load(settings.results / asked.job)
    words: Json = {**asked.settings, "neighbors": str(account.neighbors), "charge_id": job.ledger_id}
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
    """The rows of a data set, unread."""
    source: Source = source_of([Path(path) for path in dataset.table], dataset.schema.separator)
    return source


def is_charged(ledger: Ledger, job: Job) -> bool:
    """Whether the ledger has an entry under the job's id."""
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


if __name__ == "__main__":
    main(sys.argv[1])
