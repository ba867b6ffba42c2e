"""``discreet tune``: the best of several candidates, privately, and what that costs."""

import contextlib
import csv
import json
import math
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.budget import Neighbors
from discreet.cli.account import Dataset, LedgerAddress, account, refuse_both
from discreet.cli.errors import Refused

if TYPE_CHECKING:
    from discreet.models.selection import DPSelectCV
    from discreet.models.tuning import Offer

MODELS = {
    "logistic": "DPLogisticRegression",
    "svc": "DPLinearSVC",
    "linear": "DPLinearRegression",
    "ridge": "DPRidge",
    "lasso": "DPLasso",
    "elasticnet": "DPElasticNet",
    "huber": "DPHuberRegressor",
    "poisson": "DPPoissonRegressor",
}
DEMO_ROWS = 8000
DEMO = {"model": "logistic", "candidates": {"alpha": [1e-5, 1e-3, 1e-1], "solver": ["gd", "cd"]}}


@dataclass(frozen=True)
class Task:
    """What is tuned: the settings, the size of the table, and the table itself once it has been read."""

    settings: dict[str, Any]
    rows: int | None
    columns: int | None
    table: tuple[Any, Any] | None = None


def tune(
    table: Annotated[Path | None, typer.Argument(help="Records: .npz with X and y, or .csv of numbers.")] = None,
    settings: Annotated[
        Path | None, typer.Option("--settings", "-s", help="Model, bounds and candidates: .toml or .json.")
    ] = None,
    epsilon: Annotated[float, typer.Option("--epsilon", "-e", help="The budget of everything together.")] = 1.0,
    delta: Annotated[float | None, typer.Option("--delta", "-d", help="1/n² unless given, where n is public.")] = None,
    neighbors: Annotated[Neighbors, typer.Option("--neighbors", help="What a neighbor is.")] = Neighbors.REPLACE_ONE,
    stopping: Annotated[str, typer.Option(help="Runs: auto, poisson, geometric or logarithmic.")] = "auto",
    mean_runs: Annotated[float | None, typer.Option(help="Runs on average; at most 10 unless given.")] = None,
    validation: Annotated[float, typer.Option(help="The share of records that score.")] = 0.2,
    rows: Annotated[int | None, typer.Option(min=1, help="For --dry-run: how many records there will be.")] = None,
    columns: Annotated[int | None, typer.Option(min=1, help="For --dry-run: features, where no list tells.")] = None,
    ledger: LedgerAddress = None,
    dataset: Dataset = None,
    public: Annotated[bool, typer.Option("--public", help="The records are public: charge no ledger.")] = False,
    out: Annotated[Path, typer.Option("--out", "-o", help="Where the model is written.")] = Path("tuned.discreet"),
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the price, and read no records.")] = False,
    demo: Annotated[bool, typer.Option("--demo", help="Synthetic hospital stays instead of a table.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Choose among candidates with a guarantee for the whole: fits, scores and the choice.

    A secret, random number of runs: each draws a candidate by lot, fits it on a part of the records and scores it
    on the rest, with noise. Only the best model leaves. Its certificate has the total price.

    The settings name the model, what is publicly known, and lists of parameters: every combination is a candidate.

    `model = "logistic"`

    `target = "outcome"` (a column of a .csv; the last one unless given)

    `[bounds]` with `features` (a number, a list of ranges, or a range for each named column), `classes` or `target`

    `[candidates]` such as `alpha = [1e-4, 1e-2]` and `solver = ["gd", "cd"]`

    With a ledger (`discreet budget`), the whole selection is charged to the data set once, before a run begins.

    The time a run takes tells how many runs there were, which must stay secret: do not publish it.
    """
    refuse_both(public or demo, ledger, dataset)
    charge = account(ledger, dataset, str(neighbors), charged=not (public or demo or dry_run))
    task = _demo(rows, read=not dry_run) if demo else _task(settings, table, rows, columns, read=not dry_run)
    chosen = _selection(task, epsilon=epsilon, delta=delta, neighbors=str(neighbors), stopping=stopping,
                        mean_runs=mean_runs, validation=validation, **charge)  # fmt: skip
    if task.rows is None or task.columns is None:
        raise Refused("give --rows, and --columns or the features' ranges, so that the price is known without records")
    offer = chosen.offer(task.rows, task.columns)
    shown = _priced(chosen, offer)
    if task.table is None:
        _show(shown, None, as_json)
        return
    chosen.fit(*task.table)
    shown |= {"chosen": {name: str(value) for name, value in chosen.best_params_.items()}}
    shown |= {"noisy_score": round(chosen.best_score_, 4), "model": str(chosen.save(out))}
    shown |= {"ledger": chosen.certificate_.ledger}
    _show(shown, chosen.certificate_.text(), as_json)


def _task(settings: Path | None, table: Path | None, rows: int | None, columns: int | None, *, read: bool) -> Task:
    if settings is None or (table is None and read):
        raise Refused("give a table and --settings; or --dry-run with --settings alone; or --demo")
    found = _settings(settings)
    ranges = found["bounds"].get("features")
    named = list(ranges) if isinstance(ranges, dict) else None
    n, width = rows or found["bounds"].get("n"), len(ranges) if isinstance(ranges, (dict, list)) else columns
    if not read or table is None:
        return Task(found, n, width)
    X, y = _npz(table) if table.suffix == ".npz" else _csv(table, found.get("target"), named)
    if named is not None:
        found["bounds"] = {**found["bounds"], "features": list(ranges.values())}
    return Task(found, found["bounds"].get("n", len(y)), X.shape[1], (X, y))


def _settings(path: Path) -> dict[str, Any]:
    text = path.read_text(encoding="utf-8")
    try:
        found = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except ValueError:
        raise Refused("the settings are neither TOML (.toml) nor JSON (.json)") from None
    if not isinstance(found, dict) or found.get("model") not in MODELS:
        raise Refused(f"the settings need a model, one of {', '.join(MODELS)}")
    if not isinstance(found.get("bounds"), dict) or not isinstance(found.get("candidates"), dict):
        raise Refused("the settings need [bounds], from what is publicly known, and [candidates], lists of parameters")
    unknown = set(found) - {"model", "target", "bounds", "candidates", "estimator"}
    if unknown:
        raise Refused(f"unknown settings: {', '.join(sorted(unknown))}")
    return found


def _npz(path: Path) -> tuple[Any, Any]:
    import numpy as np

    with np.load(path, allow_pickle=False) as stored:
        if not {"X", "y"} <= set(stored):
            raise Refused("the table needs the arrays X and y")
        return stored["X"], stored["y"]


def _numbers(row: list[str], width: int) -> list[float]:
    """A line as numbers, NaN for any other cell; a line of another length is all NaN: no record may be seen to fail."""
    numbers = [math.nan] * width
    for j, cell in enumerate(row if len(row) == width else []):
        with contextlib.suppress(ValueError):
            numbers[j] = float(cell)
    return numbers


def _csv(path: Path, target: str | None, named: list[str] | None) -> tuple[Any, Any]:
    """Numbers by columns; what is no number is missing, and a record with a missing value counts as null."""
    import numpy as np

    with path.open(encoding="utf-8", newline="") as file:
        first, *rows = [*csv.reader(file)] or [[]]
    header = [name.strip() for name in first]
    outcome = target or header[-1]
    features = named or [name for name in header if name != outcome]
    missing = [name for name in (*features, outcome) if name not in header]
    if missing:
        raise Refused(f"the table has no column {missing[0]!r}: name its columns in the first line")
    cells = np.array([_numbers(row, len(header)) for row in rows], dtype=np.float64).reshape(len(rows), len(header))
    return cells[:, [header.index(name) for name in features]], cells[:, header.index(outcome)]


def _demo(rows: int | None, *, read: bool) -> Task:
    from discreet.experiments.synthetic import codebook_bounds, hospital

    n, bounds = rows or DEMO_ROWS, codebook_bounds()
    facts = {"features": bounds.features, "classes": bounds.classes}
    made = hospital(n) if read else None
    return Task({**DEMO, "bounds": facts}, n, len(bounds.features), (made.X, made.y) if made else None)  # type: ignore[arg-type]


def _selection(task: Task, **budget: Any) -> "DPSelectCV":
    import discreet
    from discreet.bounds import Bounds

    facts = task.settings["bounds"]
    try:
        bounds = Bounds(**{**facts, "classes": tuple(facts["classes"]) if "classes" in facts else None})
        estimator = getattr(discreet, MODELS[task.settings["model"]])(
            bounds=bounds, **task.settings.get("estimator", {})
        )
    except TypeError:
        known = "features, row_norm, target, classes, n and scale"
        raise Refused(f"[bounds] knows {known}; [estimator] knows the model's parameters") from None
    return discreet.DPSelectCV(estimator, task.settings["candidates"], **budget)


def _priced(chosen: "DPSelectCV", offer: "Offer") -> dict[str, Any]:
    return {
        "epsilon": offer.total.epsilon,
        "delta": offer.total.delta,
        "neighbors": str(offer.total.neighbors),
        "price": offer.price.epsilon,
        "accountants": offer.price.accountants,
        "candidates": len(offer.releases),
        "stopping": offer.stopping.name,
        "mean_runs": offer.stopping.mean,
        "run_epsilon": offer.run.epsilon,
        "validation": chosen.validation,
    }


def _show(found: dict[str, Any], certificate: str | None, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(found, indent=2))
        return
    from rich.console import Console
    from rich.table import Table

    console = Console(markup=False, highlight=False)
    looks: dict[str, Any] = {"title_justify": "left", "title_style": "bold", "box": None, "show_header": False}
    table = Table(title="What the selection costs", **looks)
    table.add_row("total", f"epsilon = {found['epsilon']:.6g}, delta = {found['delta']!r}, {found['neighbors']}")
    accountants = ", ".join(f"{name} {value:.6g}" for name, value in found["accountants"].items())
    table.add_row("price", f"{found['price']:.6g} ({accountants})")
    table.add_row("candidates", f"{found['candidates']}, whose number costs nothing")
    table.add_row("runs", f"{found['stopping']}, {found['mean_runs']:g} on average; how many must stay secret")
    held = f"a fit on {1 - found['validation']:.0%} of the records, a score on the rest"
    table.add_row("each run", f"epsilon = {found['run_epsilon']:.6g} for {held}")
    if certificate is not None:
        chosen = ", ".join(f"{name} = {value}" for name, value in found["chosen"].items())
        table.add_row("chosen", f"{chosen}; noisy score {found['noisy_score']:.4g}")
        table.add_row("written", found["model"])
    console.print(table)
    if certificate is not None:
        console.print(f"\n{certificate}", soft_wrap=True)
