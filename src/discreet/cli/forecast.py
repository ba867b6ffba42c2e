"""``discreet forecast``: what privacy will cost in accuracy or standard errors, before there is any data.

How long a fit will take on a cluster follows from its plan and public sizes alone. With n rows, p columns, W workers of
one core and P parts,

    read      n p READ / W                         once: files to integers
    passes    n p (PASS + p PRODUCTS) / W          each; products in passes that return p^2 sums
    overhead  LATENCY + P PER_PART                 each; the scheduler serves one part after the other

so that more workers help until the overhead is what remains: then larger parts do. Rates are those of one core of a
common server; ``python -m benchmarks scale`` measures yours.
"""

import math
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.budget import Neighbors
from discreet.cli.options import (
    PICTURES,
    AllowLargeDelta,
    AsJson,
    Delta,
    Relation,
    SolverName,
    check_claim,
    echo_json,
    free,
    new_file,
)
from discreet.cli.terminal import Refused
from discreet.errors import Unsupported
from discreet.json_schemas import Json

if TYPE_CHECKING:
    from discreet.models.base import DPLinearModel
    from discreet.models.forecast.forecast import Forecast
    from discreet.models.forecast.synthetic import Groups


class Task(StrEnum):
    """What is predicted, and by which estimator."""

    CLASSIFICATION = "classification"
    REGRESSION = "regression"
    COUNTS = "counts"


def forecast(
    rows: Annotated[int, typer.Option("--rows", "-n", help="Rows of the table that is planned.")],
    features: Annotated[
        int | None, typer.Option("--features", "-p", help="Its columns, one-hot ones counted one by one.")
    ] = None,
    schema: Annotated[
        Path | None, typer.Option("--schema", "-s", help="Instead of --features: what is publicly known of the table.")
    ] = None,
    epsilon: Annotated[float, typer.Option("--epsilon", "-e", help="The budget of the one fit that is planned.")] = 1.0,
    task: Annotated[
        Task,
        typer.Option(help="What is predicted: a class (logistic regression), a number (ridge), a count (Poisson)."),
    ] = Task.CLASSIFICATION,
    classes: Annotated[int, typer.Option("--classes", "-k", help="How many classes there are.")] = 2,
    delta: Delta = None,
    allow_large_delta: AllowLargeDelta = False,
    neighbors: Relation = Neighbors.REPLACE_ONE,
    solver: SolverName = "auto",
    ceiling: Annotated[
        float | None,
        typer.Option(
            help="Accuracy (R2) that the best model is assumed to have. Default: 0.85, for numbers 0.6, for counts 0.4."
        ),
    ] = None,
    seeds: Annotated[int, typer.Option(help="Synthetic tables, each with noise of its own.")] = 5,
    plot: Annotated[Path | None, typer.Option(help="Write the picture here: .png, .svg or .pdf.")] = None,
    effects: Annotated[
        bool, typer.Option("--effects", help="Forecast standard errors of effects (fit --inference) instead.")
    ] = False,
    standard_error: Annotated[
        float | None, typer.Option(help="With --effects: how many rows does this one need, for a column of variance 1?")
    ] = None,
    mean: Annotated[
        float | None, typer.Option(help="With --effects: the share of the second class (0.5), or the mean count (1).")
    ] = None,
    cells: Annotated[
        list[float] | None,
        typer.Option("--cell", help="With --effects: the share of rows in which a yes/no column is true; repeatable."),
    ] = None,
    cluster_workers: Annotated[
        int | None, typer.Option(help="Predict the time of the fit on a Dask cluster of so many one-core workers, too.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Forecast what privacy will cost in accuracy, or in standard errors. No data is read, and no budget is spent.

    The planned fit is rehearsed on public synthetic tables of this shape: with its own solver, its own noise, at
    this budget and others, on this many rows and others. What is simulated is the loss of accuracy (R2) against the
    same model without privacy on the same rows; it also says what twice the rows, or twice the epsilon, would save.
    How accurate a model of your table will be, no simulation knows: --ceiling says what the best one is assumed to
    have, and the loss depends on it.

    With --schema the synthetic table has the columns, the ranges and the target that the schema declares. What a fit of
    a table spends on private ranges (a tenth of the budget) and on checks (a fiftieth) is not rehearsed.

    Where a bound on the training loss is proven for the solver as it is configured, it is printed too.

    Very large tables are simulated with fewer rows and accordingly less noise.

    With --effects: how likely `discreet fit --inference sandwich` is to show each effect, with which standard
    error, for the shares of yes/no columns and of outcomes that --cell and --mean declare.

    Examples:

    - `discreet forecast --rows 50000 --features 40 --epsilon 1`

    - `discreet forecast --rows 50000 --schema schema.toml --ceiling 0.7`

    - `discreet forecast -n 2000 -p 12 -e 0.5 --task regression --neighbors zero_out --plot forecast.png`

    - `discreet forecast --rows 1000000000 --features 100 --cluster-workers 16`

    - `discreet forecast --rows 20000 --features 10 --effects --standard-error 0.02`

    - `discreet forecast --rows 20000 --features 10 --effects --mean 0.1 --cell 0.2 --cell 0.02`
    """
    if (features is None) == (schema is None):
        raise Refused("give --features, the number of columns, or --schema, which declares them")
    _refuse_nonsense(rows, 1 if features is None else features, epsilon, delta, classes, seeds, plot)
    _refuse_mixture(effects, plot, ceiling, (standard_error, mean, cells))
    if neighbors is Neighbors.ADD_REMOVE and delta is None:
        raise Refused("under add_remove the number of rows is private: give --delta, such as 1e-6")
    budget = {"epsilon": epsilon, "delta": delta, "neighbors": str(neighbors)}
    settings: Json = {**budget, "solver": solver, "allow_large_delta": allow_large_delta}
    if schema is not None:
        if task is not Task.CLASSIFICATION or classes != 2:
            raise Refused("--schema declares the target: leave out --task and --classes")
        model, shape = _declared(schema, settings)
    else:
        model, shape = _model(task, classes, settings), {"p": features}
    if cluster_workers is not None and (effects or cluster_workers < 1):
        raise Refused("--cluster-workers is at least 1, and says nothing of --effects")
    if effects:
        wishes = {"standard_error": standard_error, "mean": mean, "cells": tuple(cells or ())}
        return _effects(model, rows, shape["p"], wishes, as_json=as_json)
    prediction = _forecast(model, rows, seeds=seeds, ceiling=ceiling, **shape)
    if plot is not None:
        _picture(prediction, plot)
    time = None
    if cluster_workers is not None:
        time = cluster_time(model, rows, shape["p"], cluster_workers, shape.get("indicators"))
    if as_json:
        return echo_json({**prediction.to_dict(), **({} if time is None else {"cluster": time.to_dict()})})
    _print(prediction, plot)
    if time is not None:
        typer.echo(str(time))


def _refuse_mixture(effects: bool, plot: Path | None, ceiling: float | None, wishes: tuple[object, ...]) -> None:
    if effects and (plot is not None or ceiling is not None):
        raise Refused("--effects forecasts standard errors: leave out --plot and --ceiling")
    if not effects and any(wish is not None for wish in wishes):
        raise Refused("--standard-error, --mean and --cell say something of effects: give --effects, too")


def _refuse_nonsense(
    rows: int, features: int, epsilon: float, delta: float | None, classes: int, seeds: int, plot: Path | None
) -> None:
    whole = {"--rows": (rows, 2), "--features": (features, 1), "--classes": (classes, 2), "--seeds": (seeds, 2)}
    for name, (value, least) in whole.items():
        if value < least:
            raise Refused(f"{name} must be at least {least}")
    check_claim(epsilon, delta)
    if plot is not None:
        free(plot, "--plot", endings=PICTURES)


def _model(task: Task, classes: int, settings: Json) -> "DPLinearModel":
    from discreet.models import DPLogisticRegression, DPPoissonRegressor, DPRidge

    if task is Task.CLASSIFICATION:
        return DPLogisticRegression(**settings, classes=tuple(range(classes)))
    if classes != 2:
        raise Refused("--classes is for --task classification")
    return (DPRidge if task is Task.REGRESSION else DPPoissonRegressor)(**settings)


def _declared(schema: Path, settings: Json) -> "tuple[DPLinearModel, Json]":
    """Return the model of a schema's target, with the schema's bounds, and which of its features are indicators."""
    from discreet.cli.options import model_named
    from discreet.curator import Layout
    from discreet.schema.schema import Schema

    declared = Schema.load(schema)
    declared.check()
    layout = Layout(declared)
    model = model_named(declared, "auto", settings, {"ledger": False}).estimator
    assert model is not None
    return model.set_params(bounds=layout.bounds), {"p": None, "indicators": layout.indicators}


def _forecast(model: "DPLinearModel", rows: int, **options: Any) -> "Forecast":
    """With a bar on stderr, so that stdout holds the answer alone."""
    from discreet.models.base import progress_bar
    from discreet.models.forecast.forecast import forecast as simulate

    with progress_bar("Simulated fits", model.epsilon) as progress:
        return simulate(model, rows, progress=progress, **options)


def _effects(model: "DPLinearModel", rows: int, features: int | None, wishes: Json, *, as_json: bool) -> None:
    from discreet.cli.console import Console
    from discreet.models.forecast.effects import forecast_effects

    prediction = forecast_effects(model, rows, features, **wishes)
    if as_json:
        echo_json(prediction.to_dict())
    else:
        Console(highlight=False, markup=False).print(str(prediction))


def _print(forecast: "Forecast", plot: Path | None) -> None:
    from rich.table import Table

    from discreet.cli.console import Console

    console = Console(highlight=False, markup=False)
    console.print(forecast.answer, style="bold")
    titles = {"epsilon": f"Other budgets, at {forecast.asked.n:,} rows", "rows": "Other tables, at this epsilon"}
    for over, title in titles.items():
        names, rows = forecast.table(over=over)
        table = Table(title=f"\n{title}", title_justify="left", title_style="bold", box=None, pad_edge=False)
        for name in names[:-2]:  # the plan's numbers are shown for the one that was asked about
            table.add_column(name, justify="right", no_wrap=True)
        for row, text in zip(forecast.over_epsilon if over == "epsilon" else forecast.over_n, rows, strict=True):
            table.add_row(*text[:-2], style="bold green" if row is forecast.asked else None)
        console.print(table)
    plan = forecast.asked
    answers = f"{plan.releases} noisy answers" if plan.releases else "as many noisy answers as it can pay for"
    console.print(
        f"\nPlan at epsilon = {plan.epsilon:g}: {plan.solver}, {answers}, noise multiplier "
        f"{plan.noise_multiplier:.3g}, delta = {plan.delta:.3g}, {forecast.neighbors}."
    )
    for remark in forecast.remarks:
        console.print(remark, style="dim")
    if plot is not None:
        console.print(f"Picture: {plot}")


def _picture(forecast: "Forecast", path: Path) -> None:
    from discreet.report.page import forecast_figure, save

    with new_file(path, "--plot") as scratch:
        save(forecast_figure(forecast), scratch)


READ, PASS, PRODUCTS = 11e-9, 0.16e-9, 0.03e-9
"""Seconds per value of one core: from Parquet to the lattice; in a gradient; per column in a sum of products."""
LATENCY, PER_PART = 6e-3, 0.7e-3
"""Seconds per pass, and per part and pass."""
PART_ROWS = 1 << 18
MATRICES = ("noisy_second_moment", "noisy_curvature", "noisy_score_covariance")


@dataclass(frozen=True)
class ClusterTime:
    """What a fit on a cluster is predicted to take, in seconds.

    ``workers`` are cores, ``passes`` are over the table; ``read`` are seconds of reading and encoding, ``work`` those
    of passes, ``overhead`` those of the scheduler.
    """

    workers: int
    parts: int
    passes: int
    read: float
    work: float
    overhead: float

    @property
    def seconds(self) -> float:
        """All of it."""
        return self.read + self.work + self.overhead

    def to_dict(self) -> Json:
        """Return a dictionary for JSON."""
        return {**asdict(self), "seconds": self.seconds}

    def __str__(self) -> str:
        parts = f"reading {self.read:,.0f} s, {self.passes} passes {self.work:,.0f} s"
        return (
            f"On a cluster with {self.workers:,} workers and {self.parts:,} parts: about {self.seconds:,.0f} s "
            f"({parts}, overhead {self.overhead:,.0f} s). A rough model of one-core workers: docs/how-to/scale.md."
        )


def cluster_time(
    estimator: "DPLinearModel", n: int, p: int | None, workers: int, indicators: "Groups | None" = None
) -> ClusterTime:
    """Predict how long a fit of n rows takes on a cluster, by its plan; an adaptive plan is refused."""
    from discreet.accounting.plan import AdaptivePlan
    from discreet.models.forecast.forecast import MAX_CELLS, point_of, setting_of

    if workers < 1:
        raise Unsupported("a cluster has at least one worker")
    setting = setting_of(estimator, p, indicators)
    plan = point_of(setting, n, estimator.epsilon, MAX_CELLS).plan
    if isinstance(plan, AdaptivePlan):
        raise Unsupported("an adaptive solver decides on its way how often it asks: its time is not predicted")
    columns, parts = len(setting.ranges[0]), math.ceil(n / PART_ROWS)
    matrices = sum(release.count for release in plan.releases if release.query in MATRICES)
    values, busy = n * columns, min(workers, parts)
    work = values * (PASS * plan.count + PRODUCTS * columns * matrices) / busy
    overhead = plan.count * (LATENCY + PER_PART * parts)
    return ClusterTime(workers, parts, plan.count, READ * values / busy, work, overhead)
