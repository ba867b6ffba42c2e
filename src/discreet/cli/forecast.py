"""``discreet forecast`` and ``price``: what privacy costs in accuracy, standard errors and noise, before there is data.

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

from discreet.budget import Budget, Neighbors
from discreet.cli.options import (
    PICTURES,
    AllowLargeDelta,
    AsJson,
    Delta,
    ModelName,
    Relation,
    SolverName,
    check_claim,
    echo_json,
    free,
    model_named,
    new_file,
    show_quote,
)
from discreet.cli.terminal import Refused, rich_console
from discreet.errors import Unsupported
from discreet.json_schemas import Json

if TYPE_CHECKING:
    from discreet.accounting.plan import Plan
    from discreet.models.base import DPLinearModel
    from discreet.models.forecast import Forecast
    from discreet.models.synthetic import Groups


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
        float | None,
        typer.Option(
            help="With --effects: the share of the second class (default: even classes), or the mean count (1)."
        ),
    ] = None,
    cells: Annotated[
        list[str] | None,
        typer.Option(
            "--cell",
            help="With --effects: the share of rows in which a yes/no column is true; with --schema named, as in "
            "'ward = icu:0.02'. Repeatable.",
        ),
    ] = None,
    strength: Annotated[
        float | None,
        typer.Option(
            help="With --effects: how well columns predict: the deviation of the log odds or log rates that they make; "
            "for numbers, in deviations of residuals. 0.35 is moderate, 3 strong."
        ),
    ] = None,
    fill: Annotated[
        float | None, typer.Option(help="With --effects: the part of its declared range that a number fills.")
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
    error, for the shares of yes/no columns and of outcomes that --cell and --mean declare. With --schema the other
    values of a category share the rows alike, and effects are against its first value.

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
    if effects and (plot is not None or ceiling is not None):
        raise Refused("--effects forecasts standard errors: leave out --plot and --ceiling")
    if not effects and any(wish is not None for wish in (standard_error, mean, cells, strength, fill)):
        raise Refused(
            "--standard-error, --mean, --cell, --strength and --fill say something of effects: give --effects, too"
        )
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
        shares = {"mean": mean, "cells": _cells(cells or [], schema)}
        wishes = {"standard_error": standard_error, **shares, "strength": strength, "fill": fill}
        return _effects(model, rows, shape["p"], wishes, shape.get("indicators") or None, as_json=as_json)
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


def _cells(texts: list[str], schema: Path | None) -> dict[int, float]:
    """Return the declared share of each cell, by place."""
    from discreet.curator import Layout
    from discreet.schema.schema import Schema

    names = [] if schema is None else [feature.name for feature in Layout(Schema.load(schema)).features]
    shares: dict[int, float] = {}
    for place, text in enumerate(texts):
        name, _, share = text.rpartition(":")
        if bool(names) != bool(name) or (names and name not in names):
            raise Refused(f"--cell {text}: give a share, with --schema a cell's name, too: 'ward = icu:0.02'")
        try:
            shares[names.index(name) if names else place] = float(share)
        except ValueError:
            raise Refused(f"--cell {text}: {share!r} is not a share of rows") from None
    return shares


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
    from discreet.models.forecast import forecast as simulate

    with progress_bar("Simulated fits", model.epsilon) as progress:
        return simulate(model, rows, progress=progress, **options)


def _effects(
    model: "DPLinearModel", rows: int, features: int | None, wishes: Json, indicators: "Groups | None", *, as_json: bool
) -> None:
    from discreet.models.forecast import forecast_effects

    prediction = forecast_effects(model, rows, features, **wishes, indicators=indicators)
    if as_json:
        echo_json(prediction.to_dict())
    else:
        rich_console().print(str(prediction))


def _print(forecast: "Forecast", plot: Path | None) -> None:
    from rich.table import Table

    console = rich_console()
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
    from discreet.models.forecast import MAX_CELLS, point_of, setting_of

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


def price(
    steps: Annotated[
        int | None, typer.Option("--steps", "-t", min=1, help="How many noisy sums (gradients) are released.")
    ] = None,
    schema: Annotated[
        Path | None, typer.Option("--schema", "-s", help="Price the fit of a table that this schema describes.")
    ] = None,
    rows: Annotated[int | None, typer.Option(min=1, help="With --schema: how many rows (persons).")] = None,
    model: ModelName = "auto",
    epsilon: Annotated[
        float | None, typer.Option("--epsilon", "-e", help="The budget; the least noise that keeps it is computed.")
    ] = None,
    noise_multiplier: Annotated[
        float | None,
        typer.Option("--noise-multiplier", "-z", help="Noise over sensitivity; the epsilon that it costs is computed."),
    ] = None,
    delta: Annotated[
        float | None,
        typer.Option(
            "--delta",
            "-d",
            help="Well below 1/n; 0 for pure epsilon (Laplace noise). Default: 1e-6; with --schema at most 1/n².",
        ),
    ] = None,
    sampling_probability: Annotated[
        float,
        typer.Option(
            "--sampling-probability", "-q", help="Each step sees each record with this probability (Poisson)."
        ),
    ] = 1.0,
    neighbors: Relation = Neighbors.REPLACE_ONE,
    allow_large_delta: AllowLargeDelta = False,
    clip: Annotated[
        float | None,
        typer.Option("--clip", "-c", help="Bound on a record's contribution: prints the noise in its units."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Price a plan, or find the noise that a budget asks for. No data is read.

    Give either --epsilon (the answer is the noise multiplier) or --noise-multiplier (the answer is epsilon).

    Units: the noise multiplier is the standard deviation of the noise (the scale, for Laplace) divided by the
    sensitivity under the relation. A sum of contributions of norm at most C has sensitivity 2C under
    replace_one and C under zero_out and add_remove, so the same multiplier is twice the noise under replace_one.
    The sampling probability is rounded up to a multiple of 1/65536.

    With --schema, the plan is that of `discreet fit` for a table of so many rows, before there is one.

    Examples:

    - `discreet price --steps 100 --epsilon 1`

    - `discreet price --schema schema.toml --rows 50000 --epsilon 1`

    - `discreet price --steps 1000 --noise-multiplier 1.2 --sampling-probability 0.01 --neighbors add_remove`
    """
    from discreet.accounting.plan import Plan, Release

    if schema is not None:
        if steps is not None or noise_multiplier is not None or clip is not None or sampling_probability != 1:
            raise Refused("--schema brings the plan: give --epsilon, --rows, --delta, --neighbors and --model only")
        settings = {"epsilon": 1.0 if epsilon is None else epsilon, "delta": delta, "neighbors": str(neighbors)}
        settings |= {"allow_large_delta": allow_large_delta}
        _price_fit(schema, rows, model, settings, as_json)
        return
    if steps is None:
        raise Refused("give --steps, the number of noisy sums; or --schema and --rows, for the fit of a table")
    delta = 1e-6 if delta is None else delta
    _check_price(epsilon, noise_multiplier, clip)
    plan = Plan((Release("noisy_gradient", steps, sampling_probability=sampling_probability),))
    facts = _priced(plan, Budget(1.0 if epsilon is None else epsilon, delta, neighbors), noise_multiplier)
    if clip is not None:
        facts["noise_per_clip"] = facts["noise_multiplier"] * neighbors.sum_factor
        facts["noise"] = facts["noise_per_clip"] * clip
    if as_json:
        echo_json(facts)
    else:
        _print_price(facts, calibrated=epsilon is not None)


def _price_fit(schema: Path, rows: int | None, model: str, settings: Json, as_json: bool) -> None:
    """The plan of a fit from declarations alone."""
    from discreet.curator import DeclaredSource
    from discreet.schema.schema import Schema

    declared = Schema.load(schema)
    declared.check()
    n = rows or declared.rows
    if n is None:
        raise Refused("give --rows: how many rows (persons, with a person column) there will be")
    chosen = model_named(declared, model, settings, {"ledger": False})
    show_quote(chosen.quote(DeclaredSource(declared.needed, n)), as_json)


def _check_price(epsilon: float | None, noise_multiplier: float | None, clip: float | None) -> None:
    if (epsilon is None) == (noise_multiplier is None):
        raise Refused("give either --epsilon or --noise-multiplier")
    for name, value in {"--epsilon": epsilon, "--noise-multiplier": noise_multiplier, "--clip": clip}.items():
        if value is not None and not (math.isfinite(value) and value > 0):
            raise Refused(f"{name} must be positive and finite")


def _priced(plan: "Plan", budget: Budget, noise_multiplier: float | None) -> Json:
    """Return the plan at this multiplier, or at the one that the budget asks for."""
    from discreet.accounting.pricing import epsilon_of, price_plan

    if noise_multiplier is None:
        priced = price_plan(plan, budget)
        used, price = priced.noise_multiplier, priced.price
    else:
        used = noise_multiplier
        price = epsilon_of(plan.events(used, pure=budget.is_pure), budget.delta, budget.neighbors)
    (release,) = plan.releases
    return {
        "epsilon": price.epsilon,
        "delta": budget.delta,
        "neighbors": str(budget.neighbors),
        "steps": release.count,
        "sampling_probability": release.sampling_numerator / 2**16,
        "mechanism": "laplace" if budget.is_pure else "gaussian",
        "noise_multiplier": used,
        "sensitivity_per_clip": budget.neighbors.sum_factor,
        "accountants": price.accountants,
    }


MEANING = {
    "gdp": "exact Gaussian DP",
    "zcdp": "zero-concentrated DP, an upper bound",
    "pld": "privacy loss distribution",
    "rdp": "Renyi DP, an upper bound",
    "refuted below": "an attack exists below this",
    "basic": "basic composition",
    "decimal": "the same in 50-digit decimals",
}


def _print_price(price: Json, *, calibrated: bool) -> None:
    from rich.table import Table

    answer = f"noise multiplier {price['noise_multiplier']:.6g}" if calibrated else f"epsilon {price['epsilon']:.6g}"
    table = Table(title=answer, title_justify="left", title_style="bold green", box=None, show_header=False)
    table.add_row("guarantee", f"epsilon = {price['epsilon']:.6g}, delta = {price['delta']!r}, {price['neighbors']}")
    sampled = price["sampling_probability"] < 1
    on = f"a Poisson sample of probability {price['sampling_probability']:.6g}" if sampled else "all records"
    table.add_row("released", f"{price['steps']} sums with {price['mechanism'].capitalize()} noise, each on {on}")
    spread = "scale" if price["mechanism"] == "laplace" else "standard deviation"
    twice = f"{price['sensitivity_per_clip']} C" if price["sensitivity_per_clip"] > 1 else "C"
    table.add_row("noise", f"{spread} = {price['noise_multiplier']:.6g} x sensitivity ({twice}, contributions up to C)")
    if "noise" in price:
        table.add_row("", f"{spread} = {price['noise']:.6g} on each coordinate of each sum")
    for name, value in price["accountants"].items():
        table.add_row(f"  {name}", f"{value:.6g}  {MEANING.get(name, '')}")
    rich_console().print(table)
