"""``discreet demo``: a private model from nothing, on synthetic data, in under a minute."""

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from discreet.experiments.sweep import References, Sweep
    from discreet.experiments.synthetic import Table

ON_PUBLIC_ROWS = (
    "Accuracies are on {held:,} held-out rows that are declared public. On the training rows an accuracy would be a "
    "release of its own."
)
SWEPT = (
    "The picture shows {fits} more models, each at its own epsilon. On people's data, looking at all of them would "
    "cost epsilon = {spent:.4g} together. Here it costs nothing: the rows are synthetic."
)


@dataclass(frozen=True)
class Shown:
    """What a demo found, and may show."""

    model: Any
    accuracy: float
    references: "References"
    sweep: "Sweep"
    train_rows: int
    public_rows: int

    @property
    def remarks(self) -> tuple[str, str]:
        """What is shown, and at whose cost."""
        fits = sum(len(row) for row in self.sweep.accuracies)
        return ON_PUBLIC_ROWS.format(held=self.public_rows), SWEPT.format(fits=fits, spent=self.sweep.spent)

    @property
    def accuracies(self) -> dict[str, float]:
        """The three numbers to compare."""
        return {
            f"private, epsilon = {self.model.epsilon:g}": self.accuracy,
            "without privacy (scikit-learn)": self.references.non_private,
            "always the commoner class": self.references.majority,
        }


def demo(
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the files that are written.")] = Path(
        "build/demo"
    ),
    epsilon: Annotated[float, typer.Option(min=1e-3, max=100, help="The budget of the model that is saved.")] = 1.0,
    rows: Annotated[int, typer.Option(min=400, max=10_000_000, help="Synthetic rows; a quarter is held out.")] = 40_000,
    repeats: Annotated[int, typer.Option(min=1, max=100, help="Fits at each epsilon of the picture.")] = 5,
) -> None:
    """Train a private model on synthetic data, and show what it promises and what it costs.

    The data are synthetic hospital stays: thirteen columns with ranges from a codebook, and whether the patient
    came back. No real person is in it. A logistic regression is fitted privately and compared with one without
    privacy, then fitted again at eight budgets for the picture of accuracy over epsilon.

    Writes model.discreet, certificate.json, accuracy.png, results.json and report.html. Then try
    `discreet verify build/demo/model.discreet` and `discreet inspect build/demo/model.discreet`.
    """
    from rich.console import Console

    console, start = Console(highlight=False), time.perf_counter()
    out.mkdir(parents=True, exist_ok=True)
    with console.status("Loading the compiler and drawing synthetic patients"):
        train, public = _tables(rows)
    console.print(
        f"{rows:,} synthetic hospital stays, {len(train.names)} columns: "
        f"{len(train.y):,} private, {len(public.y):,} held out as public"
    )
    shown = _run(train, public, epsilon, repeats, console)
    console.print()
    console.print(shown.model.certificate_.text(), markup=False, soft_wrap=True)
    _print_accuracies(shown, console)
    written = _write(shown, out, console)
    console.print(f"\nWritten in {time.perf_counter() - start:.0f} s:")
    for path, what in written.items():
        console.print(f"  {path}  [dim]{what}[/dim]", soft_wrap=True)


def _tables(rows: int) -> tuple["Table", "Table"]:
    from discreet.experiments.synthetic import hospital

    table, private = hospital(rows), rows - rows // 4
    return table.rows(0, private), table.rows(private, rows)


def _run(train: "Table", public: "Table", epsilon: float, repeats: int, console: "Console") -> Shown:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from discreet.experiments.sweep import EPSILONS, accuracy_sweep, references
    from discreet.models import DPLogisticRegression

    model = DPLogisticRegression(epsilon=epsilon, bounds=train.bounds, ledger=False, verbose=True)
    model.fit(train.X, train.y)
    compared = references(train, public)
    columns = (
        TextColumn("Accuracy over epsilon"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("fits"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as bar:
        task = bar.add_task("", total=len(EPSILONS) * repeats)
        sweep = accuracy_sweep(train, public, repeats=repeats, done=lambda: bar.advance(task))
    accuracy = float((model.predict(public.X) == public.y).mean())
    return Shown(model, accuracy, compared, sweep, len(train.y), len(public.y))


def _print_accuracies(shown: Shown, console: "Console") -> None:
    from rich.table import Table

    table = Table(
        title="\nAccuracy on public rows", title_justify="left", title_style="bold", box=None, show_header=False
    )
    for name, value in shown.accuracies.items():
        table.add_row(f"  {name}", f"{100 * value:.1f}%")
    console.print(table)
    for remark in shown.remarks:
        console.print(f"[dim]{remark}[/dim]")


def _write(shown: Shown, out: Path, console: "Console") -> dict[Path, str]:
    """The files, with what each is for. Without matplotlib there is no picture, and the rest is the same."""
    from discreet.report.figures import DARK, LIGHT, MissingPlots, accuracy_over_epsilon, save, svg
    from discreet.report.page import Page, Picture

    sweep, repeats = shown.sweep, len(shown.sweep.accuracies[0])
    subtitle = f"{shown.train_rows:,} synthetic rows. Dots: single fits. Band: lowest to highest of {repeats}."
    written = {shown.model.save(out / "model.discreet"): "the model: coefficients and certificate, no data"}
    picture = None
    try:
        levels = {"non_private": shown.references.non_private, "majority": shown.references.majority}
        light, dark = (
            accuracy_over_epsilon(sweep.epsilons, sweep.accuracies, subtitle=subtitle, theme=theme, **levels)
            for theme in (LIGHT, DARK)
        )
        written[save(light, out / "accuracy.png")] = "accuracy over epsilon"
        picture = Picture(svg(light), svg(dark), f"Accuracy on public rows against epsilon. {subtitle}")
    except MissingPlots as missing:
        console.print(f"No picture: {missing}", markup=False)
    page = Page(
        "A private model of hospital readmission", shown.model.certificate_, shown.accuracies, shown.remarks, picture
    )
    results = {
        "accuracies": shown.accuracies,
        "epsilons": sweep.epsilons,
        "sweep": sweep.accuracies,
        "remarks": shown.remarks,
    }
    texts = {
        "certificate.json": (shown.model.certificate_.to_json(), "the certificate alone: discreet verify checks it"),
        "results.json": (json.dumps(results, indent=2), "the numbers of the picture"),
        "report.html": (page.html(), "open it in a browser"),
    }
    for name, (text, what) in texts.items():
        (out / name).write_text(text + "\n", encoding="utf-8")
        written[out / name] = what
    return written
