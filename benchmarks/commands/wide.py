"""``python -m benchmarks wide``: the default on wide and sparse tables, next to every other solver."""

import json
import time
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import Progress

from benchmarks.comparisons.wide import EPSILONS, SOLVERS, run
from benchmarks.pages.generated import rewrite
from benchmarks.pages.wide import markdown
from benchmarks.problems.wide_tables import ALL
from benchmarks.sizes import VARIABLE
from discreet.cli.terminal import rich_console

QUICK = ("labels 1,000 x 100", "numbers 1,000 x 100, L1")


def wide(
    data: Annotated[Path, typer.Option(help="Folder with the public tables.")] = Path("data"),
    table: Annotated[list[str] | None, typer.Option("--set", help="A table; repeatable. Default: all.")] = None,
    solver: Annotated[list[str] | None, typer.Option(help="auto or a solver; repeatable.")] = None,
    epsilon: Annotated[list[float] | None, typer.Option("--epsilon", "-e", help="A budget; repeatable.")] = None,
    relation: Annotated[str, typer.Option(help="zero_out or replace_one.")] = "zero_out",
    seeds: Annotated[int, typer.Option(min=1, max=1000, help="Splits, each with noise of its own.")] = 3,
    quick: Annotated[
        bool, typer.Option("--quick", envvar=VARIABLE, help="Small generated tables: does it run?")
    ] = False,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for wide.json and wide.md.")] = Path("build/wide"),
    page: Annotated[Path | None, typer.Option(help="A Markdown page whose generated tables are replaced.")] = None,
) -> None:
    """Fit every solver with nothing set on tables of many columns.

    Public tables are NAME.npz (compressed sparse rows) or NAME.csv.gz in a folder of yours; the others are generated.
    A second call with the same folder runs what is missing.
    """
    console, start = rich_console(markup=True), time.perf_counter()
    sets = table or (QUICK if quick else tuple(ALL))
    budgets = tuple(epsilon or ((1.0,) if quick else EPSILONS))
    solvers = tuple(solver or (("auto", "gcd") if quick else SOLVERS))
    out.mkdir(parents=True, exist_ok=True)
    path = out / "wide.json"
    runs: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    with Progress(console=console, transient=True) as bar:
        task = bar.add_task("Fitting", total=len(sets) * seeds * (len(budgets) * len(solvers) + 1))
        for found in run(sets, solvers, budgets, range(1, seeds + 1), relation, data, tuple(runs)):
            runs.append(found)
            path.write_text(json.dumps(runs) + "\n", encoding="utf-8")
            bar.advance(task)
    text = markdown(runs)
    (out / "wide.md").write_text(text + "\n", encoding="utf-8")
    rewrite(page, text, "wide", shown=[])
    console.print(text, markup=False, soft_wrap=True)
    console.print(f"\nWritten to {out} in {time.perf_counter() - start:.0f} s", soft_wrap=True)
