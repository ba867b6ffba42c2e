"""``python -m benchmarks solvers``: solvers with their default settings, by cross-validation."""

import json
import time
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from benchmarks.comparisons.solvers import Protocol, run
from benchmarks.measures.accuracy import mean_and_error
from benchmarks.methods.defaults import METHODS
from benchmarks.pages.accuracy_panels import AccuracyPanel, Line, accuracy_panels
from benchmarks.pages.generated import rewrite
from benchmarks.pages.solvers import as_csv, best_in_column, cells, markdown
from benchmarks.problems.measured_tables import SYNTHETIC, chosen_tables
from benchmarks.sizes import VARIABLE
from discreet.cli.terminal import rich_console
from discreet.report.page import MissingPlots, save

QUICK_ROWS = 3000


def solvers(
    data: Annotated[Path | None, typer.Option(help="Folder with the public tables. Default: data, if there.")] = None,
    table: Annotated[list[str] | None, typer.Option(help="adult, bank, ipums-br, synthetic; repeatable.")] = None,
    method: Annotated[list[str] | None, typer.Option(help="agd, agd-paper, gd, sgd, svrg, ...; repeatable.")] = None,
    epsilon: Annotated[list[float] | None, typer.Option("--epsilon", "-e", help="A budget; repeatable.")] = None,
    folds: Annotated[int, typer.Option(min=2, max=100, help="Folds of the cross validation.")] = 5,
    repeats: Annotated[int, typer.Option(min=1, max=100, help="Cross validations, each split anew.")] = 1,
    seed: Annotated[int, typer.Option(min=0, help="Of the splits and of the noise.")] = 0,
    quick: Annotated[
        bool, typer.Option("--quick", envvar=VARIABLE, help="Few rows, two folds, two budgets: does it run?")
    ] = False,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the files that are written.")] = Path(
        "build/solvers"
    ),
    page: Annotated[Path | None, typer.Option(help="A Markdown page whose generated table is replaced.")] = None,
) -> None:
    """Accuracies of the solvers' default settings against each other, by cross validation.

    The tables are Adult, Bank marketing and IPUMS-BR, as adult.csv.gz, bank_marketing.csv.gz and ipums_br.csv.gz in
    a folder of yours (the last column is the outcome, 0 or 1). Without one, synthetic hospital stays are used.

    Writes solvers.json and solvers.csv (all numbers) and solvers.png, and prints a table.
    """

    console, start = rich_console(markup=True), time.perf_counter()
    settings: dict[str, Any] = {"folds": 2 if quick else folds, "repeats": repeats, "seed": seed}
    if epsilon or quick:
        settings["epsilons"] = tuple(sorted(set(epsilon or (0.2, 1.6))))
    if method:
        settings["methods"] = tuple(method)
    protocol = Protocol(**settings)
    tables = chosen_tables(data, table or ())
    if SYNTHETIC in tables and not table:
        console.print("No --data and no folder called data: using synthetic hospital stays", soft_wrap=True)
    if quick:
        tables = {name: found.rows(0, QUICK_ROWS) for name, found in tables.items()}
    out.mkdir(parents=True, exist_ok=True)
    with Progress(console=console, transient=True) as bar:
        task = bar.add_task("Fitting", total=protocol.fit_count(len(tables)))
        results = run(tables, protocol, done=lambda: bar.advance(task))
    (out / "solvers.json").write_text(json.dumps(results) + "\n", encoding="utf-8")
    (out / "solvers.csv").write_text(as_csv(results), encoding="utf-8")
    rewrite(page, markdown(results), "solvers", shown=[])
    _solver_picture(results, out / "solvers.png", console)
    _print_solvers(results, console)
    console.print(f"Written to {out} in {time.perf_counter() - start:.0f} s", soft_wrap=True)


def _print_solvers(results: dict[str, Any], console: Console) -> None:
    epsilons = results["protocol"]["epsilons"]
    # a number that is cut tells nothing: a narrow terminal wraps whole lines instead
    wide = rich_console(markup=True, width=max(console.width, 90, 26 + 16 * len(epsilons)))
    for compared in results["tables"]:
        title = f"{compared['title']}: accuracy in percent ± standard error over {len(compared['majority'])} folds"
        shown = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
        shown.add_column("epsilon =")
        for epsilon in epsilons:
            shown.add_column(f"{epsilon:g}", justify="right", no_wrap=True)
        best = best_in_column(compared)
        for place, row in enumerate(cells(compared)):
            bold = [f"[bold]{text}[/bold]" if best[i] == place else text for i, text in enumerate(row[1:])]
            shown.add_row(row[0], *bold)
        wide.print(shown)
        wide.print()


def _solver_picture(results: dict[str, Any], path: Path, console: Console) -> None:
    looks = [method.name for method in METHODS]
    panels = []
    for table in results["tables"]:
        lines = []
        for method in table["methods"]:
            means, errors = zip(*(mean_and_error(point["accuracies"]) for point in method["points"]), strict=True)
            lines.append(Line(method["label"], means, errors, looks.index(method["method"])))
        panels.append(AccuracyPanel(table["title"], lines, fmean(table["majority"]), fmean(table["non_private"])))
    facts = results["protocol"]
    subtitle = (
        f"Logistic loss, delta = {facts['delta']:g}, {facts['neighbors']}. "
        f"Mean and standard error over {facts['folds'] * facts['repeats']} folds."
    )
    try:
        figure = accuracy_panels(panels, facts["epsilons"], title="Solvers with default settings", subtitle=subtitle)
        save(figure, path)
    except MissingPlots as missing:
        console.print(f"No picture: {missing}", markup=False)
