"""``python -m benchmarks coordinates``: private coordinate descent against gradient methods."""

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import Progress

from benchmarks.comparisons.coordinates import QUICK, Size, run, task_count
from benchmarks.pages.coordinates import markdown
from benchmarks.pages.curve_panels import Curve, Panel, curve_panels
from benchmarks.pages.generated import rewrite
from benchmarks.sizes import VARIABLE
from discreet.cli.terminal import rich_console
from discreet.report.page import MissingPlots, save

TITLES = {
    "balanced": "balanced: all columns alike",
    "firstbig": "firstbig: one column ten times larger",
    "lognormal": "lognormal: scales exp(N(0, 1))",
    "sparse": "sparse: p = 1000, 10 relevant features",
}
LOOKS = ("cd-smoothness", "cd-estimated", "cd-uniform", "gd", "nesterov", "sgd", "gcd")


def coordinates(
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the files that are written.")] = Path(
        "build/coordinates"
    ),
    seeds: Annotated[int, typer.Option(min=1, max=1000, help="Fresh seeds for each reported number.")] = 20,
    quick: Annotated[
        bool, typer.Option("--quick", envvar=VARIABLE, help="Tiny problems and grids: does it run?")
    ] = False,
    jobs: Annotated[int, typer.Option(min=1, max=64, help="Processes.")] = 2,
    page: Annotated[Path | None, typer.Option(help="A Markdown page whose generated table is replaced.")] = None,
) -> None:
    """Private coordinate descent against private gradient methods, on imbalanced and sparse problems.

    Writes coordinates.json (all numbers) and coordinates.png, and prints the table.
    """

    console, start = rich_console(markup=True), time.perf_counter()
    out.mkdir(parents=True, exist_ok=True)
    size = replace(QUICK, seeds=min(seeds, QUICK.seeds)) if quick else Size(seeds=seeds)
    with Progress(console=console, transient=True) as bar:
        task = bar.add_task("Tuning and fitting", total=task_count())
        results = run(size, jobs=jobs, done=lambda: bar.advance(task))
    table = markdown(results)
    text = json.dumps(results, default=float)
    (out / "coordinates.json").write_text(text + "\n", encoding="utf-8")
    rewrite(page, table, "coordinates", shown=[])
    _picture(results, out / "coordinates.png", console)
    console.print(table, markup=False, soft_wrap=True)
    console.print(f"\nWritten to {out} in {time.perf_counter() - start:.0f} s")


def _picture(results: dict[str, Any], path: Path, console: Console) -> None:
    subtitle = (
        f"epsilon = {results['epsilon']:g}, delta = 1/n², replace_one. Tuned at each number of passes; mean and middle "
        f"80% of {results['seeds']} fresh seeds."
    )
    panels = [_panel(problem) for problem in results["problems"] if problem["name"] in TITLES]
    try:
        figure = curve_panels(
            panels,
            title="What coordinates buy",
            subtitle=subtitle,
            x_label="passes over the data",
            y_label="relative excess risk",
        )
        save(figure, path)
    except MissingPlots as missing:
        console.print(f"No picture: {missing}", markup=False)


def _panel(problem: dict[str, Any]) -> Panel:
    curves = [
        Curve(
            method["label"],
            [point["passes"] for point in method["points"]],
            [point["risks"] for point in method["points"]],
            LOOKS.index(method["method"]),
        )
        for method in problem["methods"]
    ]
    return Panel(TITLES[problem["name"]], curves, problem["at_zero"])
