"""``python -m benchmarks consistency``: does the default tend to the minimizer of its objective?"""

import json
import time
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import Progress

from benchmarks.comparisons.accuracy import SYNTHETIC
from benchmarks.comparisons.consistency import EPSILONS, LABELS, NUMBERS, run
from benchmarks.pages.consistency import consistency_figure, markdown
from benchmarks.pages.generated import rewrite
from benchmarks.sizes import VARIABLE
from discreet.cli.terminal import rich_console
from discreet.report.page import save


def consistency(
    data: Annotated[Path, typer.Option(help="Folder with the public tables.")] = Path("data"),
    table: Annotated[list[str] | None, typer.Option("--set", help="A table; repeatable. Default: twelve.")] = None,
    epsilon: Annotated[list[float] | None, typer.Option("--epsilon", "-e", help="A budget; repeatable.")] = None,
    seeds: Annotated[int, typer.Option(min=1, max=1000, help="Of the noise, for each point.")] = 3,
    quick: Annotated[
        bool, typer.Option("--quick", envvar=VARIABLE, help="Small synthetic tables: does it run?")
    ] = False,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the files that are written.")] = Path(
        "build/consistency"
    ),
    page: Annotated[Path | None, typer.Option(help="A Markdown page whose generated tables are replaced.")] = None,
    figure: Annotated[Path | None, typer.Option(help="Write the picture here: .png, .svg or .pdf.")] = None,
) -> None:
    """Fit the default at growing budgets, and compare it with the minimizer of the same objective.

    Writes consistency.json (all numbers) and consistency.md.
    """
    console, start = rich_console(markup=True), time.perf_counter()
    sets = table or (SYNTHETIC if quick else (*LABELS, *NUMBERS))
    budgets = tuple(epsilon or ((4.0, 64.0) if quick else EPSILONS))
    seeds = min(seeds, 2) if quick else seeds
    runs = []
    with Progress(console=console, transient=True) as bar:
        task = bar.add_task("Fitting", total=len(sets) * seeds * len(budgets))
        for found in run(sets, budgets, seeds, data):
            runs.append(found)
            bar.advance(task)
    out.mkdir(parents=True, exist_ok=True)
    (out / "consistency.json").write_text(json.dumps(runs) + "\n", encoding="utf-8")
    text = markdown(runs)
    (out / "consistency.md").write_text(text + "\n", encoding="utf-8")
    rewrite(page, text, "consistency", shown=[])
    if figure is not None:
        save(consistency_figure(runs), figure)
    console.print(text, markup=False, soft_wrap=True)
    console.print(f"\nWritten to {out} in {time.perf_counter() - start:.0f} s", soft_wrap=True)
