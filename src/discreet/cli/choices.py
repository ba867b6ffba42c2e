"""A model by its short name, and what its fit would release and cost."""

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli.errors import Refused
from discreet.cli.memory_check import memory_facts, memory_text
from discreet.plugins import load_plugins
from discreet.registry import declared_in

if TYPE_CHECKING:
    from discreet.curator import Needs
    from discreet.models.fitting import Quote
    from discreet.models.table_model import TableModel
    from discreet.schema.schema import Schema


def registered_models(wanted: str = "") -> tuple[str, ...]:
    """Return the names that ``--model`` takes; plug-ins are loaded unless what is wanted is built in."""
    built_in = declared_in("discreet.models", "register_model")
    if wanted in built_in:
        return tuple(built_in)
    load_plugins()
    from discreet.models.registry import MODELS

    return MODELS.names()


def registered_solvers(wanted: str = "") -> tuple[str, ...]:
    """Return the names that ``--solver`` takes; plug-ins are loaded unless what is wanted is built in."""
    built_in = declared_in("discreet.solvers", "register")
    if wanted in built_in:
        return tuple(built_in)
    load_plugins()
    from discreet.solvers.registry import SOLVERS

    return SOLVERS.names()


def _checked(known: Callable[..., tuple[str, ...]]) -> Callable[[str], str]:
    def check(value: str) -> str:
        if value != "auto" and value not in known(wanted=value):
            names = ", ".join(repr(name) for name in ("auto", *known()))
            raise typer.BadParameter(f"{value!r} is not one of {names}.")
        return value

    return check


def _option(short: str, about: str, known: Callable[..., tuple[str, ...]], kind: tuple[str, str]) -> Any:
    """An option that takes a registered name: checked, completed, and listed with what is built in."""
    listed = ", ".join(("auto", *declared_in(*kind)))
    return typer.Option(
        *filter(None, (f"--{short}", "-m" if short == "model" else "")),
        help=f"{about}: {listed}, or a plug-in's (DISCREET_PLUGINS).",
        metavar="NAME",
        callback=_checked(known),
        autocompletion=lambda: ["auto", *known()],
    )


ModelName = Annotated[str, _option("model", "What is fitted", registered_models, ("discreet.models", "register_model"))]
SolverName = Annotated[str, _option("solver", "The algorithm", registered_solvers, ("discreet.solvers", "register"))]


def model_named(declared: "Schema", name: str, settings: dict[str, Any], account: dict[str, Any]) -> "TableModel":
    """A model for a table, not fitted: by its short name, or the one that suits the target."""
    from discreet.models.table_model import TableModel

    return TableModel(declared, estimator_named(declared, name, settings).set_params(**account))


def estimator_named(declared: "Schema", name: str, settings: dict[str, Any]) -> Any:
    """An estimator, not fitted: by its short name, or the one that suits the target."""
    from discreet.models.registry import MODELS, default_model

    name = default_model(declared) if name == "auto" else name
    estimator = MODELS[name]()
    classifies = hasattr(estimator, "classes")
    assert declared.target is not None
    if classifies != (declared.target.classes is not None):
        raise Refused(f"--model {name} predicts {'classes' if classifies else 'numbers'}: the schema's target is other")
    options = {"alpha": "penalty", "loss": "choice of losses", "inference": "standard errors",
               "cov_type": "standard errors"}  # fmt: skip
    given = {key: value for key, value in settings.items() if key not in options or value is not None}
    for option, what in options.items():
        if option in given and option not in estimator.get_params():
            raise Refused(f"--model {name} has no {what}: leave out --{option.replace('_', '-')}")
    return estimator.set_params(**given)


def quoted(quote: "Quote") -> dict[str, Any]:
    """A plan and its price as plain values."""
    from discreet.accounting.events import to_dict

    priced = quote.priced
    return {
        "epsilon": priced.budget.epsilon,
        "delta": priced.budget.delta,
        "neighbors": str(priced.budget.neighbors),
        "price": priced.price.epsilon,
        "accountants": priced.price.accountants,
        "noise_multiplier": priced.noise_multiplier,
        "solver": dict(quote.solver),
        "releases": [
            {
                "query": release.query,
                "count": release.count,
                "noise_multiplier": priced.noise_multiplier * release.relative_noise,
            }
            for release in priced.plan.releases
        ],
        "events": [to_dict(event) for event in priced.events],
        "notes": list(quote.reason),
    }


def show_quote(quote: "Quote", as_json: bool, needs: "Needs | None" = None, *, explain: bool = False) -> None:
    """Print a plan and its price, what memory and disk it takes, and why it was chosen."""
    found = {**quoted(quote), **({"explanation": quote.explain()} if explain else {})}
    if as_json:
        typer.echo(json.dumps(found if needs is None else {**found, "memory": memory_facts(needs)}, indent=2))
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
    if needs is not None:
        console.print(memory_text(needs), style="dim")
    console.print("\nNothing was charged. Rows (or persons) were counted at most, and not looked at.")
    if explain:
        typer.echo(f"\n{found['explanation']}")
