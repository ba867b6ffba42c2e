"""A small service in a folder, people with tokens, and a client that calls the application itself: no network."""

import asyncio
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from discreet import Ledger, Schema
from discreet.datasets import hospital
from discreet.schema import Boolean, Category, Number, Target
from discreet.serve.app import application
from discreet.serve.jobs import inline
from discreet.serve.service import Service
from discreet.serve.settings import Settings

SCHEMA = Schema(
    {"age": Number((18, 110)), "admission": Category(("planned", "emergency")), "smoker": Boolean()},
    Target("readmitted", classes=("no", "yes")),
)
SERVICE = """
[service]
title = "A registry"
ledger = "budget.db"
folder = "service"
{service}
[limits]
release_grid = 0
requests_per_minute = 1000000
{limits}
[datasets.patients]
table = "patients.csv"
schema = "schema.toml"
"""


def write_files(folder: Path, *, cap: float = 3.0, service: str = "", limits: str = "", rows: int = 60) -> Path:
    """Write a table, its schema, a ledger and the service's file."""
    folder.mkdir(parents=True, exist_ok=True)
    stays = hospital(rows)
    at = {name: stays.names.index(name) for name in ("age", "emergency", "smoker")}
    lines = ["age,admission,smoker,readmitted"]
    for row, outcome in zip(stays.X.tolist(), stays.y.tolist(), strict=True):
        word = "emergency" if row[at["emergency"]] else "planned"
        lines.append(f"{row[at['age']]:g},{word},{int(row[at['smoker']])},{('no', 'yes')[outcome]}")
    (folder / "patients.csv").write_text("\n".join(lines) + "\n")
    (folder / "schema.toml").write_text(SCHEMA.to_toml())
    (folder / "service.toml").write_text(SERVICE.format(service=service, limits=limits))
    Ledger.create(folder / "budget.db").grant("patients", cap, 1e-6)
    return folder / "service.toml"


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def text(self) -> str:
        return self.body.decode()


@dataclass
class Town:
    """A service with an owner, two analysts and an auditor, and how each asks."""

    service: Service
    tokens: dict[str, str]
    answers: list[Answer] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.app = application(self.service, dispatches=False)
        self.service.dispatcher.take_over()

    def send(self, method: str, path: str, headers: dict[str, str] | None = None, body: bytes = b"") -> Answer:
        """One request, as bytes."""
        answer = asyncio.run(_called(self.app, method, path, headers or {}, body))
        self.answers.append(answer)
        return answer

    def ask(self, who: str | None, path: str, body: Any = None, **headers: str) -> Answer:
        """One request of the API."""
        token = {} if who is None else {"authorization": f"Bearer {self.tokens.get(who, who)}"}
        if body is None:
            return self.send("GET", path, {**token, **headers})
        kind = {"content-type": "application/json"}
        return self.send("POST", path, {**kind, **token, **headers}, json.dumps(body).encode())

    def enter(self, who: str) -> "Visit":
        """Log in to the console."""
        answer = self.form("/login", {"token": self.tokens[who]})
        assert answer.status == 303, answer.text
        return Visit(self, answer.headers["set-cookie"].partition(";")[0])

    def form(self, path: str, fields: dict[str, str], **headers: str) -> Answer:
        kind = {"content-type": "application/x-www-form-urlencoded", "host": "testserver"}
        return self.send("POST", path, {**kind, **headers}, urlencode(fields).encode())

    def submit(self, who: str = "anna", epsilon: float = 0.5, charge_id: str | None = None, **settings: Any) -> Answer:
        named = {} if charge_id is None else {"charge_id": charge_id}
        return self.ask(who, "/api/datasets/patients/jobs", {"settings": {"epsilon": epsilon, **settings}, **named})

    def work(self) -> None:
        """Run all queued jobs in this process."""
        while self.service.dispatcher.run_one(inline(self.service.settings)) is not None:
            pass

    def close(self) -> None:
        self.service.dispatcher.stop()


@dataclass
class Visit:
    """A browser without a browser: a cookie, and forms with their token."""

    town: Town
    cookie: str

    def get(self, path: str) -> Answer:
        return self.town.send("GET", path, {"cookie": self.cookie, "host": "testserver"})

    def csrf(self) -> str:
        return self.get("/").text.partition('name="csrf" value="')[2].partition('"')[0]

    def post(self, path: str, **fields: str) -> Answer:
        return self.town.form(path, {"csrf": self.csrf(), **fields}, cookie=self.cookie)


def town_of(path: Path, dataset: str = "patients") -> Town:
    """Open the service, with everybody in it."""
    service = Service(Settings.load(path))
    roles = {"olga": "owner", "anna": "analyst", "ben": "analyst", "ada": "auditor"}
    tokens = {name: service.accounts.new(name, role) for name, role in roles.items()}
    for name in ("anna", "ben"):
        service.accounts.allocate(name, dataset, 2.0)
    return Town(service, tokens)


async def _called(app: Any, method: str, path: str, headers: dict[str, str], body: bytes) -> Answer:
    from urllib.parse import unquote, urlsplit

    parts = urlsplit(path)
    scope = {
        **{"type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method, "scheme": "http"},
        **{"path": unquote(parts.path), "raw_path": parts.path.encode(), "query_string": parts.query.encode()},
        "headers": [(name.lower().encode(), value.encode("latin-1")) for name, value in headers.items()],
        **{"client": ("127.0.0.1", 1), "server": ("testserver", 80), "root_path": ""},
    }
    sent: list[dict[str, Any]] = []
    parcels = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> dict[str, Any]:
        return parcels.pop(0) if parcels else {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    await app(scope, receive, send)
    start = next(one for one in sent if one["type"] == "http.response.start")
    whole = b"".join(one.get("body", b"") for one in sent if one["type"] == "http.response.body")
    found = {name.decode().lower(): value.decode() for name, value in start["headers"]}
    return Answer(start["status"], found, whole)
