"""``python -m benchmarks defaults``: the default against every solver by name, on generated problems."""

import json
import time
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import Progress

from benchmarks.comparisons.defaults import EPSILONS, HALVES, RELATIONS, SOLVERS, VARIATIONS, run, seeds_of
from benchmarks.pages.defaults import markdown
from benchmarks.pages.generated import rewrite
from discreet.cli.terminal import Refused, rich_console


def defaults(
    half: Annotated[str, typer.Option(help="choosing (even problems) or reporting (odd ones).")] = "choosing",
    problems: Annotated[int, typer.Option(min=1, max=100_000, help="How many problems of that half.")] = 100,
    solver: Annotated[list[str] | None, typer.Option(help="auto, a solver or a variation; repeatable.")] = None,
    epsilon: Annotated[list[float] | None, typer.Option("--epsilon", "-e", help="A budget; repeatable.")] = None,
    relation: Annotated[list[str] | None, typer.Option(help="A relation; repeatable. Default: all three.")] = None,
    seeds: Annotated[int, typer.Option(min=1, max=1000, help="Of the noise, for each cell.")] = 3,
    quick: Annotated[bool, typer.Option("--quick", help="Two problems, two solvers: does it run?")] = False,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for defaults.json and defaults.md.")] = Path(
        "build/defaults"
    ),
    page: Annotated[Path | None, typer.Option(help="A Markdown page whose generated tables are replaced.")] = None,
) -> None:
    """Fit the default, every solver by name and variations of the default on generated problems.

    A second call with the same folder runs what is missing.
    """
    console, start = rich_console(markup=True), time.perf_counter()
    if half not in HALVES:
        raise Refused(f"--half is {' or '.join(HALVES)}")
    numbers = seeds_of(half, 2 if quick else problems)
    solvers = tuple(solver or (("auto", "gd") if quick else (*SOLVERS, *(one.name for one in VARIATIONS))))
    budgets, relations = tuple(epsilon or ((1.0,) if quick else EPSILONS)), tuple(relation or RELATIONS)
    out.mkdir(parents=True, exist_ok=True)
    path = out / "defaults.json"
    runs: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    with Progress(console=console, transient=True) as bar:
        task = bar.add_task("Fitting", total=len(numbers))
        for found in run(numbers, solvers, budgets, relations, seeds, tuple(runs)):
            runs += found
            if found:
                path.write_text(json.dumps(runs) + "\n", encoding="utf-8")
            bar.advance(task)
    text = markdown(runs)
    (out / "defaults.md").write_text(text + "\n", encoding="utf-8")
    rewrite(page, text, "defaults")
    console.print(text, markup=False, soft_wrap=True)
    console.print(f"\nWritten to {out} in {time.perf_counter() - start:.0f} s", soft_wrap=True)
