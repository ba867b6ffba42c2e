"""A model by its short name, and what its fit would release and cost."""

import json
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import typer

from discreet.cli.errors import Refused
from discreet.cli.memory import memory_text

if TYPE_CHECKING:
    from discreet.models.fitting import Quote
    from discreet.models.table_model import TableModel
    from discreet.schema.schema import Schema


class Model(StrEnum):
    """Models by their short names."""

    AUTO = "auto"
    LOGISTIC = "logistic"
    SVM = "svm"
    LINEAR = "linear"
    RIDGE = "ridge"
    LASSO = "lasso"
    ELASTICNET = "elasticnet"
    HUBER = "huber"
    POISSON = "poisson"


class Solver(StrEnum):
    """Solvers by their short names."""

    AUTO = "auto"
    WHITENED = "whitened"
    GD = "gd"
    SGD = "sgd"
    SVRG = "svrg"
    CD = "cd"
    GCD = "gcd"
    AGD = "agd"
    OUTPUT = "output"
    OBJECTIVE = "objective"
    EXPONENTIAL = "exponential"


def model_named(declared: "Schema", name: str, settings: dict[str, Any], account: dict[str, Any]) -> "TableModel":
    """A model for a table, not fitted: by its short name, or the one that suits the target."""
    from discreet.models.model_names import MODELS, default_model
    from discreet.models.table_model import TableModel

    name = default_model(declared) if name == "auto" else name
    estimator = MODELS[name]()
    classifies = hasattr(estimator, "classes")
    assert declared.target is not None
    if classifies != (declared.target.classes is not None):
        raise Refused(f"--model {name} predicts {'classes' if classifies else 'numbers'}: the schema's target is other")
    given = {key: value for key, value in settings.items() if key != "alpha" or value is not None}
    if "alpha" in given and "alpha" not in estimator.get_params():
        raise Refused(f"--model {name} has no penalty: leave out --alpha")
    return TableModel(declared, estimator.set_params(**given, **account))


def quoted(quote: "Quote") -> dict[str, Any]:
    """A plan and its price as plain values."""
    from discreet.accounting.events import to_dict

    return {
        "epsilon": quote.budget.epsilon,
        "delta": quote.budget.delta,
        "neighbors": str(quote.budget.neighbors),
        "price": quote.price.epsilon,
        "accountants": quote.price.accountants,
        "noise_multiplier": quote.noise_multiplier,
        "solver": dict(quote.solver),
        "releases": [
            {
                "query": release.query,
                "count": release.count,
                "noise_multiplier": quote.noise_multiplier * release.relative_noise,
            }
            for release in quote.plan.releases
        ],
        "events": [to_dict(event) for event in quote.events],
        "notes": list(quote.reason),
    }


def show_quote(quote: "Quote", as_json: bool, memory: dict[str, int | None] | None = None) -> None:
    """Print a plan and its price, and what memory it takes."""
    found = quoted(quote)
    if as_json:
        typer.echo(json.dumps(found if memory is None else {**found, "memory": memory}, indent=2))
        return
    from rich.table import Table

    from discreet.cli.console import Console

    looks: dict[str, Any] = {"title_justify": "left", "title_style": "bold", "box": None, "show_header": False}
    grid = Table(title="What the fit would release, and cost", **looks)
    grid.add_row("guarantee", f"epsilon = {found['epsilon']:.6g}, delta = {found['delta']:.3g}, {found['neighbors']}")
    accountants = ", ".join(f"{name} {value:.6g}" for name, value in found["accountants"].items())
    grid.add_row("price", f"{found['price']:.6g} ({accountants})")
    grid.add_row("solver", str(found["solver"].get("name", "")))
    for release in found["releases"]:
        times = f"{release['count']} x" if release["count"] > 1 else "once"
        noise = f"noise {release['noise_multiplier']:.4g} x what one record can change"
        grid.add_row("releases", f"{release['query']}, {times}, {noise}")
    console = Console(markup=False, highlight=False)
    console.print(grid)
    for note in found["notes"]:
        console.print(note, style="dim")
    if memory is not None:
        console.print(memory_text(memory), style="dim")
    console.print("\nNothing was charged. Rows (or persons) were counted at most, and not looked at.")
