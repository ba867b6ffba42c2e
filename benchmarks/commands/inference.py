"""``python -m benchmarks inference``: do confidence intervals for effects cover them, and how wide are they?"""

import time
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import Progress

from benchmarks.comparisons.inference import DESIGNS, QUICK, run
from benchmarks.comparisons.published import PUBLISHED
from benchmarks.pages.generated import rewrite
from benchmarks.pages.inference import markdown
from benchmarks.pages.inference_figure import dots, inference_figure
from benchmarks.pages.published import published
from benchmarks.problems.effects import SYNTHETIC
from benchmarks.sizes import VARIABLE
from discreet.cli.terminal import Refused, rich_console
from discreet.report.page import save


def inference(
    data: Annotated[Path | None, typer.Option(help="Folder with the public tables; without it: none of these.")] = None,
    repetitions: Annotated[int, typer.Option(min=1, max=100_000, help="Tables per design.")] = 200,
    first_seed: Annotated[
        int, typer.Option(min=0, help="Seed of each design's first table; rules were chosen on seeds below 5000.")
    ] = 5000,
    only: Annotated[list[str] | None, typer.Option(help="Designs whose name has this in it; repeatable.")] = None,
    quick: Annotated[
        bool, typer.Option("--quick", envvar=VARIABLE, help="Two small designs, ten tables each: does it run?")
    ] = False,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the files that are written.")] = Path(
        "build/inference"
    ),
    page: Annotated[Path | None, typer.Option(help="A Markdown page whose generated tables are replaced.")] = None,
    figure: Annotated[Path | None, typer.Option(help="Write the picture here: .png, .svg or .pdf.")] = None,
) -> None:
    """Fit many tables with known effects, with inference="sandwich", and count how often intervals cover them.

    Writes a file of all estimates per design (a second run goes on where the first stopped), inference.md, and
    published.md: designs of the literature, next to what was published on them.
    """
    console, start = rich_console(markup=True), time.perf_counter()
    designs = QUICK if quick else (*(one for one in DESIGNS if data is not None or one.data in SYNTHETIC), *PUBLISHED)
    designs = tuple(one for one in designs if not only or any(part in one.name for part in only))
    if not designs:
        raise Refused("no design has such a name: leave out --only, or name the folder of public tables with --data")
    repetitions = min(repetitions, 10) if quick else repetitions
    out.mkdir(parents=True, exist_ok=True)
    with Progress(console=console, transient=True) as bar:
        task = bar.add_task("Fitting", total=len(designs) * repetitions)
        run(designs, repetitions, out, data, lambda: bar.advance(task), first_seed)
    files = [out / f"{design.name}.json" for design in designs if design not in PUBLISHED]
    texts = {"inference": markdown(files), "published": published(out)}
    for name, text in texts.items():
        (out / f"{name}.md").write_text(text + "\n", encoding="utf-8")
        rewrite(page, text, name, shown=[])
        console.print(text, markup=False, soft_wrap=True)
    if figure is not None:
        save(inference_figure(dots(files)), figure)
    console.print(f"\nWritten to {out} in {time.perf_counter() - start:.0f} s", soft_wrap=True)
