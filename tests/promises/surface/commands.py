"""Every command that reads a table or a model, as an entry of the surface audit: run in this process, as a user would.

``NO_RECORDS`` names the other commands, each with the reason why no record reaches it. A test compares both with the
commands that there are.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from discreet.budget import Neighbors
from tests.promises.surface.entries import (
    ALIKE,
    DELTA,
    EPSILON,
    ROWS_SHOWN,
    SCORE_SHOWN,
    Entry,
    Task,
    fitted_table,
    schema_of,
)
from tests.promises.surface.observing import BROKE, masked
from tests.promises.surface.rows import ANSWER, TABLE, WHO, table_cells

NO_RECORDS = {
    "demo": "makes its own synthetic table",
    "price": "takes a plan and a schema, which are declared",
    "forecast": "takes numbers of rows and columns, and makes synthetic tables",
    "schema edit": "takes a schema and answers",
    "selftest": "tests the samplers",
    "version": "prints a version",
    "audit replay": "makes its own synthetic tables",
    "audit gradient": "makes its own synthetic tables",
    "audit transcript": "makes its own synthetic tables",
    "audit model": "makes its own synthetic tables",
    "audit one-run": "makes its own synthetic tables",
    "audit table": "makes its own synthetic tables",
    "budget init": "takes an address",
    "budget grant": "takes a name and a cap",
    "budget divide": "takes names",
    "budget move": "takes an address",
    "budget export": "copies entries, which budget history shows",
    "budget roles": "prints statements for a database",
    "serve token new": "takes a name and a role",
    "serve token list": "shows names and roles",
    "serve token revoke": "takes a handle",
    "serve allocate": "takes names and an epsilon",
    "serve backup": "copies files for their owner",
    "serve check": "reads the ledger and certificates",
}

_SETTINGS = """
[candidates]
alpha = [1e-3, 1e-1]
solver = ["gd"]
"""


_RATIO, _BUDGETS = 1.04, 60
"""Budgets from 0.001 to 0.01, closer to each other than 1/n^2 is to 1/(n + 1)^2."""


class Ran:
    """What commands printed, with which codes they ended, and what a ledger has of them."""

    def __init__(self, results: list[Any], entries: list[str]) -> None:
        self._results, self._entries = results, entries

    @property
    def refused(self) -> bool:
        """Whether the first command ended otherwise than with 0."""
        return bool(self._results[0].exit_code)

    def __reduce__(self) -> Any:
        raise TypeError("what was printed is searched as it is")

    def __repr__(self) -> str:
        return f"{len(self._results)} commands"

    def differences(self, other: "Ran") -> Iterator[tuple[str, str]]:
        """Where two runs differ."""
        for one, two in zip(self._results, other._results, strict=True):
            if one.exit_code != two.exit_code:
                yield "exit", f"{one.exit_code} against {two.exit_code}: {two.stderr[-300:]!r}"
            for kind, a, b in (("stdout", one.stdout, two.stdout), ("stderr", one.stderr, two.stderr)):
                if masked(a.encode("utf-8", "replace")) != masked(b.encode("utf-8", "replace")):
                    yield kind, f"{a[-300:]!r} against {b[-300:]!r}"
        if self._entries != other._entries:
            yield "charges", f"{self._entries} against {other._entries}"

    def texts(self) -> Iterator[tuple[str, bytes]]:
        """Everything that was printed, to be searched."""
        for index, one in enumerate(self._results):
            yield f"stdout {index}", one.stdout.encode("utf-8", "replace")
            yield f"stderr {index}", one.stderr.encode("utf-8", "replace")


def _ran(task: Task, *commands: tuple[Any, ...], ledger: Path | None = None) -> Ran:
    from typer.testing import CliRunner

    from discreet.cli.app import app
    from discreet.ledger.ledger import Ledger

    results = [CliRunner().invoke(app, [str(word) for word in command], prog_name="discreet") for command in commands]
    entries = [] if ledger is None else [_entry(one) for one in Ledger(ledger).entries()]
    return Ran(results, entries)


def _entry(entry: Any) -> str:
    contents = {name: value for name, value in entry.contents.items() if name not in ("time", "nonce")}
    return f"{entry.kind} {entry.dataset} {entry.charge_id} {json.dumps(contents, sort_keys=True)}"


def _ledger(task: Task, unit: str = "record") -> tuple[Path, tuple[Any, ...]]:
    """A new ledger with an account, and the options that charge it."""
    from discreet.ledger.ledger import Ledger

    path = task.out / "ledger" / "budget.db"
    path.parent.mkdir()
    cap = (1e-9, 1e-12) if task.purse == BROKE else (100.0, 1e-3)
    Ledger.create(path).grant("people", *cap, neighbors=task.relation, unit=unit)
    return path, ("--ledger", path, "--dataset", "people")


def _schema(task: Task, **how: bool) -> Path:
    from discreet.schema.schema import to_toml

    path = task.out / "schema.toml"
    path.write_text(to_toml(schema_of(task.n, **how)), encoding="utf-8")
    return path


def _spending(task: Task) -> tuple[Any, ...]:
    return ("--epsilon", EPSILON, "--delta", DELTA, "--neighbors", task.relation)


def _fit_command(task: Task, schema: Path) -> tuple[Any, ...]:
    solver = ("--solver", "gd", "--no-report", "--out", task.out / "model")
    return ("fit", task.table, "--schema", schema, *_spending(task), *solver)


def _fit(task: Task, persons: bool = False, private: bool = False) -> Ran:
    ledger, charged = _ledger(task, "person" if persons else "record")
    schema = _schema(task, persons=persons, private=private)
    return _ran(task, (*_fit_command(task, schema), *charged), ledger=ledger)


def _fit_and_look(task: Task) -> Ran:
    ledger, charged = _ledger(task)
    model = task.out / "model"
    return _ran(
        task,
        (*_fit_command(task, _schema(task)), *charged, "--json", "--charge-id", "monday"),
        ("inspect", model),
        ("inspect", model, "--json"),
        ("effects", model),
        ("verify", model, "--ledger", ledger),
        ("export", model, "--onnx", task.out / "model.onnx", "--sklearn", task.out / "model.joblib"),
        ("certificate", "registry", model),
        ("budget", "show", "--ledger", ledger),
        ("budget", "history", "people", "--ledger", ledger),
        ("budget", "verify", "--ledger", ledger),
        ledger=ledger,
    )


def _fit_and_report(task: Task) -> Ran:
    ledger, charged = _ledger(task)
    command = [word for word in _fit_command(task, _schema(task)) if word != "--no-report"]
    again = ("report", task.out / "model", "--out", task.out / "again.html")
    return _ran(task, (*command, *charged), again, ledger=ledger)


def _dry_run(task: Task) -> Ran:
    return _ran(task, (*_fit_command(task, _schema(task)), "--dry-run"))


@cache
def _released() -> Any:
    """A model in a folder, made once: its files in memory."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        made = fitted_table().save(Path(folder) / "model")
        return {path.name: path.read_bytes() for path in made.iterdir()}


def _model(task: Task) -> Path:
    folder = task.out / "model"
    folder.mkdir()
    for name, content in _released().items():
        (folder / name).write_bytes(content)
    return folder


def _predict(task: Task, *options: Any) -> Ran:
    return _ran(task, ("predict", _model(task), task.table, *options))


def _predict_to_file(task: Task) -> Ran:
    return _predict(task, "--probabilities", "--keep", WHO, "--out", task.out / "predictions.csv")


def _score(task: Task) -> Ran:
    ledger, charged = _ledger(task)
    return _ran(task, ("score", _model(task), task.table, "--private", *_spending(task), *charged), ledger=ledger)


def _public_score(task: Task) -> Ran:
    return _ran(task, ("score", _model(task), task.table, "--public-data"))


def _new(task: Task) -> Ran:
    return _ran(task, ("schema", "new", task.table, "--out", task.out / "new.toml"))


def _check(task: Task) -> Ran:
    return _ran(task, ("schema", "check", _schema(task), task.table))


def _tune_command(task: Task, n: int | None, persons: bool = False) -> tuple[Any, ...]:
    settings = task.out / "settings.toml"
    settings.write_text(_SETTINGS, encoding="utf-8")
    given = ("--schema", _schema(replace(task, n=n), persons=persons), "--settings", settings)
    return ("tune", task.table, *given, "--out", task.out / "tuned", "--mean-runs", 2)


def _tune(task: Task, persons: bool = False) -> Ran:
    ledger, charged = _ledger(task, "person" if persons else "record")
    return _ran(task, (*_tune_command(task, task.n, persons), *_spending(task), *charged), ledger=ledger)


def _tune_undeclared(task: Task) -> Ran:
    """Where n is private and nobody declares it, no budget may tell it: neither by an answer nor by an error."""
    command = (*_tune_command(task, None), "--neighbors", task.relation, "--public")
    return _ran(task, *((*command, "--epsilon", 1e-3 * _RATIO**k) for k in range(_BUDGETS)))


def _tune_dry(task: Task) -> Ran:
    return _ran(task, (*_tune_command(task, task.n), *_spending(task), "--dry-run"))


@cache
def command_entries() -> tuple[Entry, ...]:
    """All of them."""
    names = (*TABLE, ANSWER, WHO)

    def entry(name: str, run: Callable[[Task], Ran], covers: tuple[str, ...] = (), **how: Any) -> Entry:
        options: dict[str, Any] = {"targets": False, "files": True, "memory": False, **how}
        return Entry(f"discreet {name}", covers, table_cells, names, run, **options)

    rows = dict.fromkeys(("stdout", "stderr", "contents"), ROWS_SHOWN)
    score = {"stdout": SCORE_SHOWN}
    looks = (
        *("inspect", "effects", "verify", "export", "certificate registry", "budget show", "budget history"),
        "budget verify",
    )
    undeclared: dict[str, Any] = {"pays": False, "relations": (Neighbors.ADD_REMOVE,), "every": 30}
    return (
        entry("fit", _fit, ("fit",)),
        entry("fit, persons", partial(_fit, persons=True), persons=True),
        entry("fit, a private range", partial(_fit, private=True), every=ALIKE),
        entry("fit --dry-run", _dry_run, pays=False, reads=False),
        entry("fit, inspect, verify, budget", _fit_and_look, looks, every=ALIKE),
        entry("predict", _predict, ("predict",), pays=False, shows=rows),
        entry("predict --out", _predict_to_file, pays=False, shows=rows, every=ALIKE),
        entry("score --private", _score, ("score",)),
        entry("score --public-data", _public_score, pays=False, shows=score, every=ALIKE),
        entry("schema new", _new, ("schema new",), pays=False, reads=False),
        entry("schema check", _check, ("schema check",), pays=False, reads=False),
        entry("fit with a report, report", _fit_and_report, ("report",), every=45),
        entry("tune", _tune, ("tune",)),
        entry("tune, persons", partial(_tune, persons=True), persons=True),
        entry("tune --dry-run", _tune_dry, pays=False, reads=False),
        entry("tune, n not declared", _tune_undeclared, **undeclared),
    )
