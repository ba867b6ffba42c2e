"""``python -m benchmarks experiments``: the sources' experiments, with claims that are tested."""

import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import Progress

from benchmarks.experiments.harness import FRESH, NAMES, Row, experiment, run, tasks
from benchmarks.pages.experiments import markdown
from benchmarks.pages.generated import rewrite
from benchmarks.sizes import VARIABLE
from discreet.cli.terminal import rich_console
from discreet.errors import Unsupported
from discreet.report.page import MissingPlots, save


def experiments(
    name: Annotated[list[str] | None, typer.Argument(help="Which ones; default all.")] = None,
    quick: Annotated[bool, typer.Option("--quick", envvar=VARIABLE, help="Few points and seeds: does it run?")] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Run on fresh seeds, and fail where a claim does not hold.")
    ] = False,
    seeds: Annotated[int | None, typer.Option(min=1, max=1000, help="Runs of each point.")] = None,
    jobs: Annotated[int, typer.Option(min=1, max=64, help="Processes.")] = 2,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the results, one file per experiment.")] = Path(
        "build/experiments"
    ),
    figures: Annotated[Path | None, typer.Option(help="Folder for the figures; default: that of the results.")] = None,
    page: Annotated[Path | None, typer.Option(help="A Markdown page whose generated part is replaced.")] = None,
) -> None:
    """Run the sources' experiments again, draw their figures, and test what they claim.

    Results are files: a call with the same folder runs what is missing. `--check` keeps its own files, with seeds that
    no figure was made from.
    """
    console, start = rich_console(markup=True), time.perf_counter()
    unknown = [one for one in name or () if one not in NAMES]
    if unknown:
        raise Unsupported(f"there is no experiment called {', '.join(unknown)}: choose among {', '.join(NAMES)}")
    chosen, first = name or NAMES, FRESH if check else 0
    out = out / ("check" if check else "quick" if quick else "")
    found: dict[str, list[Row]] = {}
    with Progress(console=console, transient=True) as bar:
        for one in chosen:
            total = len(list(tasks(experiment(one), quick=quick, seeds=seeds, first=first)))
            task = bar.add_task(one, total=total)
            settings = {"quick": quick, "seeds": seeds, "first": first, "jobs": jobs}
            found[one] = run(one, out, **settings, done=lambda task=task: bar.advance(task))  # type: ignore[misc]
    text = markdown(found)
    console.print(text, markup=False, soft_wrap=True)
    if not check:
        _draw(found, figures or out, console)
        rewrite(page, text, "experiments", shown=[])
    console.print(f"\nWritten to {out} in {time.perf_counter() - start:.0f} s")
    failed = [(one, claim) for one, rows in found.items() for claim in experiment(one).claims if not claim.holds(rows)]
    if check and failed:
        for one, claim in failed:
            console.print(f"{one}: {claim.text}: {claim.value(found[one]):.3g}, not {claim.limits}", markup=False)
        raise typer.Exit(1)


def _draw(found: dict[str, list[Row]], folder: Path, console: Console) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    try:
        for one, rows in found.items():
            save(experiment(one).figure(rows), folder / f"{one}.png")
    except MissingPlots as missing:
        console.print(f"No pictures: {missing}", markup=False)
