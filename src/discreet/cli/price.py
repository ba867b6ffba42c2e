"""``discreet price``: what a plan costs, before there is any data."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.budget import Budget, Neighbors
from discreet.cli.options import AllowLargeDelta, AsJson, ModelName, Relation, echo_json, model_named, show_quote
from discreet.cli.terminal import Refused
from discreet.json_schemas import Json

if TYPE_CHECKING:
    from discreet.accounting.plan import Plan


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
    _refuse_nonsense(epsilon, noise_multiplier, clip)
    plan = Plan((Release("noisy_gradient", steps, sampling_probability=sampling_probability),))
    facts = _priced(plan, Budget(1.0 if epsilon is None else epsilon, delta, neighbors), noise_multiplier)
    if clip is not None:
        facts["noise_per_clip"] = facts["noise_multiplier"] * neighbors.sum_factor
        facts["noise"] = facts["noise_per_clip"] * clip
    if as_json:
        echo_json(facts)
    else:
        _print(facts, calibrated=epsilon is not None)


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


def _refuse_nonsense(epsilon: float | None, noise_multiplier: float | None, clip: float | None) -> None:
    if (epsilon is None) == (noise_multiplier is None):
        raise Refused("give either --epsilon or --noise-multiplier")
    for name, value in {"--epsilon": epsilon, "--noise-multiplier": noise_multiplier, "--clip": clip}.items():
        if value is not None and not (math.isfinite(value) and value > 0):
            raise Refused(f"{name} must be positive and finite")


def _priced(plan: "Plan", budget: Budget, noise_multiplier: float | None) -> Json:
    """Return the plan at this multiplier, or at the one that the budget asks for."""
    from discreet.accounting.priced_plan import price_plan
    from discreet.accounting.pricing import epsilon_of

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


def _print(price: Json, *, calibrated: bool) -> None:
    from rich.table import Table

    from discreet.cli.console import Console

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
    Console(markup=False, highlight=False).print(table)
