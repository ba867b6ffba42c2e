"""``discreet serve``: start a service, make tokens, allocate, back up and check."""

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from discreet.cli.options import AsJson, echo_json
from discreet.cli.terminal import Refused

if TYPE_CHECKING:
    from discreet.serve.service import Service
    from discreet.serve.settings import Settings

DEMO_ROWS, DEMO_FOLDER = 20_000, Path("build/serve-demo")
DEMO = """\
[service]
title = "Demo: synthetic hospital stays"
ledger = "budget.db"      # made by: discreet budget init budget.db, and grant patients --epsilon 3 --delta 1e-6
folder = "service"        # accounts, jobs, audit log, results
port = {port}

[limits]
fits_at_once = 1
minutes = 10
release_grid = {grid}         # seconds: results appear at whole multiples, so that running times are not shown
approve_above = 1.0       # epsilon from which the owner approves a fit

[datasets.patients]
about = "Synthetic hospital stays; no row describes a real person."
table = "patients.csv"
schema = "schema.toml"
"""


class _Serve(TyperGroup):
    """Takes ``discreet serve service.toml`` for ``discreet serve run service.toml``."""

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        """Insert the command that is meant."""
        if args and args[0] not in (*self.commands, "-h", "--help"):
            args = ["run", *args]
        return super().parse_args(ctx, args)


serve = typer.Typer(
    cls=_Serve,
    no_args_is_help=True,
    help="Let analysts who never see a row send settings, and receive models: `discreet serve service.toml`.",
)
token = typer.Typer(no_args_is_help=True, help="Make, list and revoke tokens.")
serve.add_typer(token, name="token")

File = Annotated[Path, typer.Option("--service", "-s", metavar="FILE", help="The service's file.")]
_FILE = Path("service.toml")


@serve.command("run")
def run(
    file: Annotated[Path | None, typer.Argument(help="The service's file, service.toml.")] = None,
    demo: Annotated[bool, typer.Option("--demo", help="Serve synthetic hospital stays, with tokens to try.")] = False,
    out: Annotated[Path, typer.Option(help="With --demo: a folder for its files.")] = DEMO_FOLDER,
    port: Annotated[int, typer.Option(min=1, max=65535, help="With --demo: the port.")] = 8080,
    grid: Annotated[float, typer.Option(min=0, help="With --demo: seconds between releases.")] = 10.0,
) -> None:
    """Start the service, and answer until it is stopped (Ctrl-C).

    The file names data sets with their schemas, the ledger, a folder and limits. Stopping, also with `kill -9`, loses
    nothing: jobs that were charged are finished under the same charge after the next start.

    - `discreet serve --demo`: a service on this machine with synthetic data, and two tokens, shown once

    - `discreet serve service.toml`
    """
    from discreet.serve.settings import Settings

    if demo == (file is not None):
        raise Refused("give the service's file, such as service.toml, or --demo")
    tokens: Sequence[tuple[str, str]] = ()
    if demo:
        file, tokens = _prepared(out, port, grid)
    assert file is not None
    start(Settings.load(file), tokens)


def start(settings: "Settings", tokens: Sequence[tuple[str, str]] = ()) -> None:
    """Serve until a signal ends it."""
    import logging

    from discreet.serve.app import server_of
    from discreet.serve.service import Service

    logging.basicConfig(stream=sys.stderr, level=logging.ERROR, format="discreet: %(message)s")
    server = server_of(Service(settings))
    scheme = "https" if settings.certificate else "http"
    typer.echo(f"{settings.title}: {scheme}://{settings.host}:{settings.port} (API: /docs). Stop with Ctrl-C.")
    for name, secret in tokens:
        typer.echo(f"  token of the {name}, shown once: {secret}")
    sys.stdout.flush()
    server.run()


def _prepared(out: Path, port: int, grid: float) -> tuple[Path, list[tuple[str, str]]]:
    """Write the demo's files, and make an owner and an analyst."""
    from discreet.cli.setup import MARK, clear
    from discreet.datasets import hospital, schema_text, write_csv
    from discreet.ledger.ledger import Ledger
    from discreet.serve.settings import Settings
    from discreet.serve.store import Accounts, Store

    clear(out)
    assert (out / MARK).is_file()
    write_csv(hospital(DEMO_ROWS), out / "patients.csv")
    (out / "schema.toml").write_text(schema_text(), encoding="utf-8")
    (out / "service.toml").write_text(DEMO.format(port=port, grid=f"{grid:g}"), encoding="utf-8")
    Ledger.create(out / "budget.db").grant("patients", 3.0, 1e-6)
    settings = Settings.load(out / "service.toml")
    accounts = Accounts(Store(settings.database))
    tokens = [(role, accounts.new(role, role, days=7)) for role in ("owner", "analyst")]
    accounts.allocate("analyst", "patients", 2.0)
    return out / "service.toml", tokens


def _service(file: Path) -> "Service":
    from discreet.serve.service import Service
    from discreet.serve.settings import Settings

    return Service(Settings.load(file))


@token.command("new")
def new(
    name: Annotated[str, typer.Argument(help="Whose it is: one name, one person.")],
    role: Annotated[str, typer.Option(help="owner, analyst or auditor.")] = "analyst",
    days: Annotated[float, typer.Option(min=0.01, max=3660, help="How long it is valid.")] = 90.0,
    service: File = _FILE,
) -> None:
    """Make a token, and print it once: the service keeps a salted hash.

    An analyst also needs an allocation: `discreet serve allocate NAME DATASET EPSILON`.
    """
    typer.echo(_service(service).accounts.new(name, role, days=days))


@token.command("list")
def listed(service: File = _FILE, as_json: AsJson = False) -> None:
    """List tokens, without secrets."""
    tokens = [row.to_dict() for row in _service(service).accounts.tokens()]
    if as_json:
        echo_json(tokens)
        return
    for row in tokens:
        typer.echo(f"{row['handle']}  {row['state']:<8} {row['role']:<8} {row['name']}")


@token.command("revoke")
def revoke(
    handle: Annotated[str, typer.Argument(help="The token's handle: dsc_HANDLE_...; `token list` shows it.")],
    service: File = _FILE,
) -> None:
    """Revoke a token and its sessions, at once."""
    _service(service).accounts.revoke(handle)
    typer.echo("revoked")


@serve.command("allocate")
def allocate(
    name: Annotated[str, typer.Argument(help="An analyst.")],
    dataset: Annotated[str, typer.Argument(help="A data set of the service.")],
    epsilon: Annotated[float, typer.Argument(min=0, max=1000, help="Of the data set's cap; 0 ends it.")],
    service: File = _FILE,
) -> None:
    """Let an analyst spend up to so much of a data set's cap. The cap holds for all analysts together."""
    running = _service(service)
    if dataset not in running.settings.datasets:
        raise Refused(f"the service has no data set of this name: it has {', '.join(running.settings.datasets)}")
    running.accounts.allocate(name, dataset, epsilon)
    typer.echo("allocated")


@serve.command("backup")
def backup(folder: Annotated[Path, typer.Argument(help="A new folder for the copy.")], service: File = _FILE) -> None:
    """Copy jobs, accounts, audit log, results and a SQLite ledger, while the service runs.

    The ledger is copied last, so that every charge of the copied jobs is in the copy. The copy has secrets' hashes and
    the ledger's key: keep it as safe as the data. A ledger in PostgreSQL is backed up with PostgreSQL's own tools.
    """
    running = _service(service)
    if folder.exists():
        raise Refused(f"{folder}: there is something already: name a new folder")
    folder.mkdir(parents=True, mode=0o700)
    running.store.copy(folder / "service.db")
    shutil.copytree(running.settings.results, folder / "results", ignore=shutil.ignore_patterns(".*"))
    ledger = Path(running.settings.ledger)
    if "://" not in running.settings.ledger:
        copy_ledger(ledger, folder / ledger.name)
    typer.echo(f"copied to {folder}; check it with `discreet serve check` after a restore")


def copy_ledger(ledger: Path, place: Path) -> None:
    """Copy a ledger's file consistently, and its key."""
    import os
    import sqlite3
    from contextlib import closing

    os.close(os.open(place, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    with closing(sqlite3.connect(f"file:{ledger}?mode=ro", uri=True)) as live, closing(sqlite3.connect(place)) as copy:
        live.backup(copy)
    key = ledger.with_name(ledger.name + ".key")
    shutil.copy(key, place.with_name(place.name + ".key"))


@serve.command("check")
def check(service: File = _FILE, as_json: AsJson = False) -> None:
    """Verify the ledger, the audit log and the certificate of every result: after a restore, and now and then.

    A certificate that is not in the ledger is a lost charge: the ledger was rolled back.
    """
    from discreet.serve.service import verified

    counts = verified(_service(service))
    if as_json:
        echo_json(counts)
        return
    typer.echo(
        f"The ledger's {counts['entries']} entries and the audit log's {counts['audit_lines']} lines hold together, "
        f"and the {counts['certificates']} certificates of results are what was charged for"
    )
