"""A conversation with ``discreet serve`` as an entry of the surface audit: every operation and page, by every role."""

import re
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from discreet.ledger.ledger import Ledger
from discreet.models.persist import FILES
from discreet.serve.api import OPERATIONS
from discreet.serve.app import PAGES
from tests.promises.surface.entries import DELTA, EPSILON, Entry, Task, schema_of
from tests.promises.surface.observing import BROKE, masked, unpacked
from tests.promises.surface.rows import ANSWER, TABLE, WHO, table_cells
from tests.serve.services import Answer, Town, town_of

_SECRETS = re.compile(rb"(dsc_<?[0-9a-f]*(?:hex>)?_?|discreet_session=)[A-Za-z0-9_-]{20,}")
_MOMENTS = re.compile(rb'(?<=<circle )cx="[^"]*"|(?<=class="spent" )d="[^"]*"')
_FILE = """
[service]
ledger = "budget.db"
folder = "service"
[limits]
release_grid = 0
requests_per_minute = 100000
approve_above = 0.9
[datasets.people]
table = "{table}"
schema = "schema.toml"
"""


class Talk:
    """What a service answered, request by request, and what it left in its folder and its ledger."""

    def __init__(self, answers: list[tuple[str, Answer]], entries: list[str], files: dict[str, bytes]) -> None:
        self._answers, self._entries, self._files = answers, entries, files

    @property
    def refused(self) -> bool:
        """Whether the job was refused or failed."""
        return any('"state":"' in one.text and '"state":"done"' not in one.text for name, one in self._answers[-1:])

    def __reduce__(self) -> Any:
        raise TypeError("what was answered is searched as it is")

    def __repr__(self) -> str:
        return f"{len(self._answers)} answers"

    def differences(self, other: "Talk") -> Iterator[tuple[str, str]]:
        """Where two conversations differ."""
        for (name, one), (_, two) in zip(self._answers, other._answers, strict=True):
            if one.status != two.status:
                yield "status", f"{name}: {one.status} against {two.status}"
            for part in sorted({*_parts(one), *_parts(two)}):
                a, b = _parts(one).get(part, b""), _parts(two).get(part, b"")
                if _plain(a) != _plain(b):
                    yield "answer", f"{name} {part}: {_plain(a)[-200:]!r} against {_plain(b)[-200:]!r}"
        if self._entries != other._entries:
            yield "charges", f"{self._entries} against {other._entries}"
        if sorted(self._files) != sorted(other._files):
            yield "files", f"{sorted(self._files)} against {sorted(other._files)}"

    def texts(self) -> Iterator[tuple[str, bytes]]:
        """Everything that was answered, logged and stored, to be searched."""
        for index, (name, one) in enumerate(self._answers):
            for part, content in _parts(one).items():
                yield f"answer {index} {name} {part}", content
        for name, content in self._files.items():
            yield f"files {name}", name.encode()
            yield f"contents {name}", content


def _parts(answer: Answer) -> dict[str, bytes]:
    headers = "\n".join(
        f"{name}: {value}" for name, value in sorted(answer.headers.items()) if name != "content-length"
    )
    return {"headers": headers.encode(), **unpacked(answer.body)}


def _plain(content: bytes) -> bytes:
    """Without secrets, and without where a charge's second is in the picture over time; its height stays."""
    return _MOMENTS.sub(b"<moment>", _SECRETS.sub(b"<secret>", masked(content)))


def _paths(job: str, handle: str) -> Iterator[tuple[str, str]]:
    """Every address of the API and of the console that is read."""
    words = {"dataset": "people", "job": job, "handle": handle, "decision": "approve"}
    for method, path in ((one.method, one.path) for one in OPERATIONS):
        for file in FILES if "{file}" in path else ("",):
            if method == "GET":
                yield path, path.format(file=file, **words)
    for method, path, _ in PAGES:
        if method == "GET":
            yield path, path.format(**words)


def _conversation(town: Town) -> Iterator[tuple[str, Answer]]:
    asked = {"settings": {"epsilon": EPSILON, "delta": DELTA, "solver": "gd"}}
    for what in ("quote", "forecast"):
        yield what, town.ask("anna", f"/api/datasets/people/{what}", asked)
    submitted = town.ask("anna", "/api/datasets/people/jobs", {**asked, "charge_id": "monday"})
    yield "submit", submitted
    job, visit = submitted.json.get("id", "0" * 24), town.enter("anna")
    yield "price", visit.post("/datasets/people/price", epsilon=str(EPSILON), solver="gd", delta=str(DELTA))
    yield "approve", town.ask("olga", f"/api/jobs/{job}/approve", {})
    town.work()
    scored = {"kind": "score", "settings": {"job": job, "epsilon": EPSILON / 2, "delta": DELTA}, "charge_id": "tuesday"}
    score = town.ask("anna", "/api/datasets/people/jobs", scored)
    yield "score", score
    town.work()
    for file in ("score.json", "certificate.json"):
        yield f"score {file}", town.ask("anna", f"/api/jobs/{score.json.get('id', '0' * 24)}/files/{file}")
    visits = {name: town.enter(name) for name in ("anna", "ben", "ada", "olga")}
    for name, inside in visits.items():
        for label, path in _paths(job, "0" * 16):
            if label.endswith("/report") and name != "anna":
                continue
            answer = town.ask(name, path) if path.startswith("/api") else inside.get(path)
            yield f"{name} {label}", answer
    yield "verify", visits["olga"].post("/verify")
    yield "again", town.ask("anna", "/api/datasets/people/jobs", {**asked, "charge_id": "monday"})


def _serve(task: Task) -> Talk:
    """In a folder of its own: names of files have jobs' ids in them, and are compared without."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        cap = (1e-9, 1e-12) if task.purse == BROKE else (100.0, 1e-3)
        Ledger.create(folder / "budget.db").grant("people", *cap, neighbors=task.relation)
        (folder / "schema.toml").write_text(schema_of(task.n).to_toml(), encoding="utf-8")
        (folder / "service.toml").write_text(_FILE.format(table=task.table), encoding="utf-8")
        town = town_of(folder / "service.toml", dataset="people")
        try:
            answers = list(_conversation(town))
            files = {_name(one, folder): masked(one.read_bytes()) for one in sorted(folder.rglob("*")) if one.is_file()}
            return Talk(answers, [_entry(one) for one in town.service.ledger.entries()], files)
        finally:
            town.close()


def _name(path: Path, folder: Path) -> str:
    return masked(str(path.relative_to(folder)).encode()).decode()


def _entry(entry: Any) -> str:
    contents = {name: value for name, value in entry.contents.items() if name not in ("time", "nonce")}
    return _plain(f"{entry.kind} {entry.dataset} {entry.charge_id} {sorted(contents.items())}".encode()).decode()


@cache
def service_entries() -> tuple[Entry, ...]:
    """The service."""
    names = (*TABLE, ANSWER, WHO)
    options: dict[str, Any] = {"targets": False, "files": True, "memory": False, "every": 12}
    return (Entry("discreet serve", ("serve run",), table_cells, names, _serve, **options),)
