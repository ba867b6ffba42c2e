"""``python -m benchmarks speed [name ...]``: times, as ratios to peers."""

import json
import os
import platform
from dataclasses import replace
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Any

import typer

from benchmarks.measures import stored_ratios
from benchmarks.measures.timing_rows import table
from benchmarks.pages import speed as speed_page
from benchmarks.pages.generated import rewrite
from benchmarks.sizes import VARIABLE
from discreet.cli.terminal import Refused

NAMES = (
    "gradient",
    "sgd",
    "fit",
    "startup",
    "noise",
    "sparse",
    "coordinates",
    "minimize",
    "whitened",
    "ledger",
    "audit",
    "foreign",
    "tables",
)
PACKAGES = ("numpy", "scipy", "numba", "scikit-learn", "torch", "opacus", "jax", "jax-privacy", "skglm", "diffprivlib")


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _cpu() -> str:
    try:
        with open("/proc/cpuinfo") as lines:
            return next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor()


def machine() -> dict[str, Any]:
    """What the figures depend on."""
    versions = {package: found for package in PACKAGES if (found := _version(package)) is not None}
    return {"cpu": _cpu(), "cores": os.cpu_count(), "python": platform.python_version(), "versions": versions}


def speed(
    names: Annotated[list[str] | None, typer.Argument(help=f"Any of: {', '.join(NAMES)}. Default: all.")] = None,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds of each comparison; more on a busy machine.")] = 15,
    json_file: Annotated[
        str | None,
        typer.Option("--json", metavar="FILE", help="Write the figures there too; -: print JSON only."),
    ] = None,
    check: Annotated[
        bool,
        typer.Option(
            "--check", help="Compare with the stored ratios; exit with 1 where one is slower or misses a target."
        ),
    ] = False,
    store: Annotated[bool, typer.Option("--store", help="Put this run's ratios in place of the stored ones.")] = False,
    page: Annotated[Path | None, typer.Option("--page", help="Page that the stored ratios are written into.")] = None,
    quick: Annotated[
        bool, typer.Option("--quick", envvar=VARIABLE, help="Tiny sizes, one round: does it run?")
    ] = False,
) -> None:
    """Times, as ratios to peers: interleaved, the best of N rounds."""
    unknown = [name for name in names or () if name not in NAMES]
    if unknown:
        raise Refused(f"no benchmark is called {', '.join(unknown)}: choose from {', '.join(NAMES)}")
    if quick:
        os.environ[VARIABLE], rounds = "1", 1  # the groups read it when they are imported, and so do their processes
    found: dict[str, Any] = {"machine": machine(), "results": {}}
    quiet, missed = json_file == "-", False
    for name in names or NAMES:
        before = os.getloadavg()[0]
        rows = list(import_module(f"benchmarks.speed.{name}").run(rounds))
        if quick:  # the targets are of the usual sizes
            rows = [replace(row, goal=None) for row in rows]
        load = [before, os.getloadavg()[0]]
        missed = missed or any(row.is_met is False for row in rows)
        found["results"][name] = {"machine": found["machine"], "load": load, "rows": [row.as_dict() for row in rows]}
        if not quiet:
            print(table(f"{name} (load {load[0]:.1f} before, {load[1]:.1f} after)", rows), flush=True)
    text = json.dumps(found, indent=2)
    if quiet:
        print(text)
    elif json_file:
        Path(json_file).write_text(text + "\n", encoding="utf-8")
    slower = check and _compare(found["results"], quiet=quiet)
    if store and not quick:
        stored_ratios.store(found["results"])
    rewrite(page, speed_page.markdown(stored_ratios.load()), "speed")
    if check and (missed or slower):
        raise typer.Exit(1)


def _compare(results: dict[str, Any], *, quiet: bool) -> bool:
    """Say which ratios have moved since they were stored; return whether one became slower."""
    compared, changes = stored_ratios.moved(stored_ratios.load(), results)
    lines = [str(change) for change in changes] or ["none has moved"]
    typer.echo("\n".join([f"{compared} ratios compared with the stored ones", *lines]), err=quiet)
    return any(change.is_slower for change in changes)
