"""``python -m benchmarks tuned``: solvers with nothing set against the same solvers tuned."""

import json
import time
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import Progress

from benchmarks.comparisons.tuned import Protocol, held_back, run
from benchmarks.pages.generated import rewrite
from benchmarks.pages.tuned import markdown, ratio
from benchmarks.problems.twenty_columns import NAMES
from benchmarks.sizes import VARIABLE
from discreet.cli.terminal import rich_console

QUICK = {"epsilons": (1.0,), "relations": ("zero_out",), "seeds": 2, "tuning_seeds": 1, "rounds": 1, "rows": 2000}


def tuned(
    solver: Annotated[list[str] | None, typer.Option(help="A solver; repeatable. Default: all fast ones.")] = None,
    problem: Annotated[list[str] | None, typer.Option(help="labels-even, generated-13, ...; repeatable.")] = None,
    drawn: Annotated[int, typer.Option(min=0, help="Add so many drawn problems that no rule was chosen by.")] = 0,
    epsilon: Annotated[list[float] | None, typer.Option("--epsilon", "-e", help="A budget; repeatable.")] = None,
    relation: Annotated[list[str] | None, typer.Option(help="zero_out, replace_one; repeatable.")] = None,
    seeds: Annotated[int, typer.Option(min=1, max=1000, help="Fresh seeds for each reported number.")] = 10,
    jobs: Annotated[int, typer.Option(min=1, max=64, help="Processes.")] = 2,
    quick: Annotated[
        bool, typer.Option("--quick", envvar=VARIABLE, help="Few rows, one budget, short searches: does it run?")
    ] = False,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for tuned.json and tuned.md.")] = Path("build/tuned"),
    page: Annotated[Path | None, typer.Option(help="A Markdown page whose generated table is replaced.")] = None,
) -> None:
    """Compare the loss that defaults leave above the optimum with what tuned settings leave.

    A second call with the same folder runs what is missing.
    """
    console, start = rich_console(markup=True), time.perf_counter()
    settings: dict[str, Any] = {"seeds": seeds, **(QUICK if quick else {})}
    problems = (*(problem or (() if drawn else NAMES)), *held_back(drawn))
    chosen = {"solvers": solver, "problems": problems, "epsilons": epsilon, "relations": relation}
    settings |= {name: tuple(values) for name, values in chosen.items() if values}
    protocol = Protocol(**settings)
    out.mkdir(parents=True, exist_ok=True)
    path = out / "tuned.json"
    known: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    with Progress(console=console, transient=True) as bar:
        task = bar.add_task("Tuning and fitting", total=len(list(protocol.cells())))

        def keep(cell: dict[str, Any]) -> None:
            bar.advance(task)
            path.write_text(json.dumps(known, default=str) + "\n", encoding="utf-8")

        cells = run(protocol, jobs=jobs, known=known, done=keep)
    text = markdown(cells)
    (out / "tuned.md").write_text(text + "\n", encoding="utf-8")
    rewrite(page, text, "tuned", shown=[0])
    console.print(text, markup=False, soft_wrap=True)
    worst = max((cell for cell in cells if "absent" not in cell), key=ratio, default=None)
    if worst is not None:
        console.print(f"\nLargest ratio: {ratio(worst):.1f}, {worst['solver']} on {worst['problem']}")
    console.print(f"Written to {out} in {time.perf_counter() - start:.0f} s")
