"""Models and solvers by name, and what a fit would release, cost and take of memory and disk."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli.errors import Refused
from discreet.json_schemas import Json
from discreet.registry import BUILT_IN_MODELS, BUILT_IN_SOLVERS, load_plugins

if TYPE_CHECKING:
    from discreet.curator import Needs
    from discreet.models.fit import Quote
    from discreet.models.table_model import TableModel
    from discreet.schema.schema import Schema


def registered_models(wanted: str = "") -> tuple[str, ...]:
    """Return the names that ``--model`` takes; plug-ins are loaded unless the wanted one is built in."""
    if wanted in BUILT_IN_MODELS:
        return tuple(BUILT_IN_MODELS)
    load_plugins()
    from discreet.models.registry import MODELS

    return MODELS.names()


def registered_solvers(wanted: str = "") -> tuple[str, ...]:
    """Return the names that ``--solver`` takes; plug-ins are loaded unless the wanted one is built in."""
    if wanted in BUILT_IN_SOLVERS:
        return tuple(BUILT_IN_SOLVERS)
    load_plugins()
    from discreet.solvers.base import SOLVERS

    return SOLVERS.names()


def _checked(known: Callable[..., tuple[str, ...]]) -> Callable[[str], str]:
    def check(value: str) -> str:
        if value != "auto" and value not in known(wanted=value):
            names = ", ".join(repr(name) for name in ("auto", *known()))
            raise typer.BadParameter(f"{value!r} is not one of {names}.")
        return value

    return check


def _option(*flags: str, about: str, built_in: Mapping[str, str], names: Callable[..., tuple[str, ...]]) -> Any:
    """Return an option that takes a registered name: checked, completed, and listed with what is built in."""
    return typer.Option(
        *flags,
        help=f"{about}: {', '.join(('auto', *built_in))}, or a plug-in's (DISCREET_PLUGINS).",
        metavar="NAME",
        rich_help_panel="Model",
        callback=_checked(names),
        autocompletion=lambda: ["auto", *names()],
    )


ModelName = Annotated[
    str, _option("--model", "-m", about="Estimator", built_in=BUILT_IN_MODELS, names=registered_models)
]
SolverName = Annotated[str, _option("--solver", about="Algorithm", built_in=BUILT_IN_SOLVERS, names=registered_solvers)]


def model_named(declared: "Schema", name: str, settings: Json, account: Json) -> "TableModel":
    """A model for a table, not fitted: by its short name, or the one that suits the target."""
    from discreet.models.table_model import TableModel

    return TableModel(declared, estimator_named(declared, name, settings).set_params(**account))


def estimator_named(declared: "Schema", name: str, settings: Json) -> Any:
    """An estimator, not fitted: by its short name, or the one that suits the target."""
    from discreet.models.registry import MODELS, default_model

    name = default_model(declared) if name == "auto" else name
    estimator = MODELS[name]()
    classifies = hasattr(estimator, "classes")
    assert declared.target is not None
    if classifies != (declared.target.classes is not None):
        kind = "classes" if classifies else "numbers"
        raise Refused(f"--model {name} predicts {kind}, which does not match the schema's target")
    if settings.get("class_weight"):
        settings = {**settings, "class_weight": class_weights(settings["class_weight"], declared.target.classes or ())}
    options = {"alpha": "penalty", "class_weight": "weights of classes", "loss": "choice of losses",
               "inference": "standard errors",
               "cov_type": "standard errors", "even_if_empty": "standard errors"}  # fmt: skip
    given = {key: value for key, value in settings.items() if key not in options or value is not None}
    for option, what in options.items():
        if option in given and option not in estimator.get_params():
            raise Refused(f"--model {name} has no {what}: leave out --{option.replace('_', '-')}")
    return estimator.set_params(**given)


def class_weights(given: Sequence[str], classes: Sequence[Any]) -> dict[Any, float]:
    """Return the factors that ``--class-weight yes=5`` declares, by class."""
    from discreet.schema.cell_meaning import is_number_text

    labels, found = {str(label): label for label in classes}, {}
    for text in given:
        name, _, factor = text.rpartition("=")
        if name not in labels or not is_number_text(factor) or not float(factor) > 0:
            raise Refused("--class-weight names a declared class and a positive factor, such as yes=5")
        found[labels[name]] = float(factor)
    return found


def quoted(quote: "Quote") -> Json:
    """A plan and its price as plain values."""

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
        "events": [event.to_dict() for event in priced.events],
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

    looks: Json = {"title_justify": "left", "title_style": "bold", "box": None, "show_header": False}
    grid = Table(title="What the fit would release, and its cost", **looks)
    grid.add_row("guarantee", f"epsilon = {found['epsilon']:.6g}, delta = {found['delta']:.3g}, {found['neighbors']}")
    accountants = ", ".join(f"{name} {value:.6g}" for name, value in found["accountants"].items())
    grid.add_row("price", f"{found['price']:.6g} ({accountants})")
    grid.add_row("solver", str(found["solver"].get("name", "")))
    for release in found["releases"]:
        times = f"{release['count']} x" if release["count"] > 1 else "once"
        noise = f"noise {release['noise_multiplier']:.4g} x sensitivity"
        grid.add_row("releases", f"{release['query']}, {times}, {noise}")
    console = Console(markup=False, highlight=False)
    console.print(grid)
    for note in found["notes"]:
        console.print(note, style="dim")
    if needs is not None:
        console.print(memory_text(needs), style="dim")
    console.print("\nNothing was charged. At most the number of rows (or persons) was counted; no cell was read.")
    if explain:
        typer.echo(f"\n{found['explanation']}")


def memory_facts(needs: "Needs") -> Json:
    """Return bytes that the fit will take, by an estimate from public facts, and bytes that this machine has left."""
    disk = {"needed": needs.disk, "available": needs.free, "folder": str(needs.folder)}
    return {"needed": needs.memory, "available": needs.available, "disk": disk}


def memory_text(needs: "Needs") -> str:
    """Return the same in words."""
    has = "" if needs.available is None else f"; this machine has {_size(needs.available)} left"
    if needs.memory is None or needs.disk is None:
        return f"memory: not estimated, since the number of rows is private{has}"
    memory = f"memory: about {_size(needs.memory)}{has}"
    if not needs.disk:
        return memory
    free = "" if needs.free is None else f", which has {_size(needs.free)} left"
    return f"{memory}\ndisk: about {_size(needs.disk)} of scratch files in {needs.folder}{free}"


def check_memory(needs: "Needs") -> None:
    """Refuse a fit that would run out of room after it was charged."""
    if needs.fits or needs.memory is None:
        return
    if needs.disk:
        raise Refused(
            f"the encoded rows would take about {_size(needs.disk)} of scratch files in {needs.folder}, which has less "
            "space: choose another folder with --scratch, or allow more memory with --memory. Nothing was charged"
        )
    raise Refused(
        f"the fit would take about {_size(needs.memory)} of memory, more than this machine has: leave out --memory to "
        "keep encoded rows on disk. Nothing was charged"
    )


def _size(count: int) -> str:
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.0f} MB"
