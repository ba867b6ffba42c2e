"""``python -m benchmarks accuracy``: models with nothing set, on tables with declared ranges."""

import json
import time
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import Progress

from benchmarks.comparisons.accuracy import SYNTHETIC, Comparison, Protocol, write_tables
from benchmarks.pages import curves as curve_pages
from benchmarks.pages.accuracy import Summary, compared, markdown
from benchmarks.pages.generated import rewrite
from benchmarks.sizes import VARIABLE
from discreet.cli.terminal import rich_console

SAVE_EVERY = 20.0


def accuracy(
    data: Annotated[Path, typer.Option(help="Folder with the public tables.")] = Path("data"),
    table: Annotated[list[str] | None, typer.Option("--set", help="A table; repeatable. Default: all 17.")] = None,
    solver: Annotated[list[str] | None, typer.Option(help="auto, gd, ...; repeatable. Default: all.")] = None,
    epsilon: Annotated[list[float] | None, typer.Option("--epsilon", "-e", help="A budget; repeatable.")] = None,
    relation: Annotated[list[str] | None, typer.Option(help="zero_out or replace_one; repeatable.")] = None,
    seeds: Annotated[int, typer.Option(min=1, max=1000, help="Of a point on a table below 10,000 rows.")] = 40,
    large_seeds: Annotated[int, typer.Option(min=1, max=1000, help="Of a point on a larger table.")] = 3,
    solver_seeds: Annotated[
        int | None, typer.Option(min=1, max=1000, help="At most, for solvers other than auto. Default: as many.")
    ] = None,
    widen: Annotated[float | None, typer.Option(help="Also with ranges this many times too wide.")] = None,
    peers: Annotated[list[Path] | None, typer.Option(help="Results of other programs, or runs; repeatable.")] = None,
    jobs: Annotated[int, typer.Option(min=1, max=64, help="Processes.")] = 2,
    quick: Annotated[
        bool, typer.Option("--quick", envvar=VARIABLE, help="Small synthetic tables: does it run?")
    ] = False,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the files that are written.")] = Path(
        "build/accuracy"
    ),
    page: Annotated[Path | None, typer.Option(help="A Markdown page whose generated tables are replaced.")] = None,
    compared_page: Annotated[
        Path | None, typer.Option("--compared", help="A Markdown page whose generated short comparison is replaced.")
    ] = None,
    curves: Annotated[Path | None, typer.Option(help="A Markdown page whose tables of curves are replaced.")] = None,
    compared_curves: Annotated[
        Path | None, typer.Option(help="A Markdown page whose short table of curves is replaced.")
    ] = None,
    export: Annotated[Path | None, typer.Option(help="Write the encoded tables to a folder, and stop.")] = None,
) -> None:
    """Estimators with nothing set, on ten tables with a label and seven with a number.

    Ranges and categories were declared beforehand, in problems/declared_ranges.toml. The tables are packed CSV files in
    a folder of yours. Writes accuracy.json (all numbers; a second run goes on where the first stopped) and accuracy.md.
    """
    console, start = rich_console(markup=True), time.perf_counter()
    if export is not None:
        _export(data, export, table or (SYNTHETIC if quick else ()), seeds, console)
        return
    settings: dict[str, Any] = {"seeds": min(seeds, 2) if quick else seeds, "large_seeds": large_seeds}
    settings |= {"solver_seeds": solver_seeds, "widen": widen}
    if quick:
        settings |= {"sets": SYNTHETIC, "solvers": ("auto", "gd", "objective"), "epsilons": (1.0, 4.0)}
    given = {"sets": table, "solvers": solver, "epsilons": epsilon, "relations": relation}
    settings |= {name: tuple(dict.fromkeys(values)) for name, values in given.items() if values}
    out.mkdir(parents=True, exist_ok=True)
    store = out / "accuracy.json"
    known = json.loads(store.read_text(encoding="utf-8")) if store.is_file() else None
    comparison = Comparison(Protocol(**settings), data, known)
    others = [json.loads(path.read_text(encoding="utf-8")) for path in peers or ()]
    saved = time.perf_counter()

    def save() -> None:
        nonlocal saved
        beside = store.with_suffix(".part")  # an interrupted write must not cost the runs that are done
        beside.write_text(json.dumps(comparison.results) + "\n", encoding="utf-8")
        beside.replace(store)
        saved = time.perf_counter()

    with Progress(console=console, transient=True) as bar:
        task = bar.add_task("Fitting", total=comparison.left)

        def done() -> None:
            bar.advance(task)
            if time.perf_counter() - saved > SAVE_EVERY:
                save()

        comparison.run(jobs=jobs, done=done)
    save()
    summary = Summary(comparison.results, others)
    text = markdown(summary)
    (out / "accuracy.md").write_text(text + "\n", encoding="utf-8")
    rewrite(page, text, "accuracy", shown=range(4))
    rewrite(compared_page, compared(summary), "accuracy")
    rewrite(curves, curve_pages.markdown(summary), "curves", shown=[-1])
    rewrite(compared_curves, curve_pages.short(summary), "curves")
    console.print(text, markup=False, soft_wrap=True)
    console.print(f"\nWritten to {out} in {time.perf_counter() - start:.0f} s", soft_wrap=True)


def _export(data: Path, folder: Path, chosen: Any, seeds: int, console: Console) -> None:
    for name in write_tables(data, folder, chosen, seeds=seeds):
        console.print(f"Written {name}", soft_wrap=True)
