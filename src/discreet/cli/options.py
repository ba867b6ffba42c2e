"""Options that commands share, the files that they read and write, and the models and solvers that they name.

Options: the budget, the ledger that is charged, JSON, and what can be refused at once. Inputs: a table, the folder of
its model, a saved model, or a certificate alone. Outputs: new files only; an existing file or link is neither replaced
nor followed. Models and solvers are chosen by name, and ``show_quote`` prints what a fit would release and cost.
"""

import json
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.atomic_files import passing, sync
from discreet.budget import Neighbors
from discreet.cli.terminal import Refused, rich_console
from discreet.errors import AccountingError, DiscreetError
from discreet.json_schemas import Json
from discreet.registry import BUILT_IN_MODELS, BUILT_IN_SOLVERS, load_plugins

if TYPE_CHECKING:
    from discreet.accounting.certificate import Certificate
    from discreet.curator import Needs, Source
    from discreet.ledger.ledger import Ledger
    from discreet.models.base import DPLinearModel
    from discreet.models.fit import Quote
    from discreet.models.table_model import TableModel
    from discreet.schema.schema import Schema
    from discreet.typing import Floats


LARGEST_EPSILON = 1000.0

of_model = partial(typer.Option, rich_help_panel="Model")
of_ledger = partial(typer.Option, rich_help_panel="Ledger")
of_large_tables = partial(typer.Option, rich_help_panel="Large tables and services")

LedgerAddress = Annotated[
    str | None,
    of_ledger(
        "--ledger",
        "-l",
        metavar="ADDRESS",
        help="Ledger to charge: a path or a postgresql:// URL. Default: the configured one, if any.",
    ),
]
Delta = Annotated[
    float | None,
    typer.Option(
        "--delta",
        "-d",
        help="Slack of the guarantee, a probability well below 1/n. Default: the smaller of 1/n² and 1e-6.",
    ),
]
AllowLargeDelta = Annotated[
    bool, typer.Option("--allow-large-delta", help="Permit a delta of 1/n or more, which protects nobody.")
]
Address = Annotated[
    str | None,
    typer.Option(
        "--ledger",
        "-l",
        metavar="ADDRESS",
        help="A path, or a postgresql:// URL. Default: DISCREET_LEDGER, then the configuration file.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Relation = Annotated[
    Neighbors,
    typer.Option("--neighbors", help="How neighboring tables differ: one record replaced, blanked, or added/removed."),
]
Dataset = Annotated[str | None, of_ledger(help="Name of the data set in the ledger.")]

ChargeId = Annotated[
    str | None, of_ledger(help="Name of this fit in the ledger. Repeating it costs nothing and returns the same model.")
]
Checks = Annotated[
    bool,
    typer.Option(
        "--checks/--no-checks", help="Spend 2% of the budget on noisy counts of cells that do not match the schema."
    ),
]
Memory = Annotated[
    str | None, of_large_tables(help="Memory for the encoded rows, such as 4GB. Larger tables are kept on disk.")
]
Scratch = Annotated[
    Path | None, of_large_tables(help="Folder for scratch files. Default: the system's temporary folder.")
]
Cluster = Annotated[
    str | None,
    of_large_tables(metavar="ADDRESS", help="Dask scheduler whose workers read the table, such as tls://host:8786."),
]
Start = Annotated[
    Path | None, of_model(help="Released model (folder or file) to start the optimization from. Costs nothing.")
]
Terms = Annotated[
    str, of_model(help="Effects of numeric columns: linear, curves, or auto (curves where they should predict better).")
]
FormulaText = Annotated[
    str | None,
    of_model(
        "--formula", help="Model formula, such as 'y ~ s(age) * sex + C(ward)'. Columns it does not name are ignored."
    ),
]
ClassWeight = Annotated[
    list[str] | None,
    of_model(
        "--class-weight",
        metavar="CLASS=FACTOR",
        help="How much rows of a class count, such as yes=5; repeatable. Other classes count 1.",
    ),
]
Power = Annotated[float | None, of_model(help="With --model tweedie: amounts vary as their mean to this power.")]
Dispersion = Annotated[
    float | None, of_model(help="With --model negative_binomial: counts of mean e vary by e + dispersion * e^2.")
]
QuantileLevel = Annotated[
    float | None, of_model("--quantile", help="With --model quantile: the share of targets below.")
]
Inference = Annotated[
    str | None, of_model(help="sandwich: spend part of the budget on standard errors and confidence intervals.")
]
CovType = Annotated[str | None, of_model(help="With --inference: robust (default), model, or cluster (needs persons).")]

EvenIfEmpty = Annotated[
    bool, of_model("--even-if-empty", help="With --inference: fit even if probably no effect can be shown.")
]


def inference_settings(
    inference: str | None, cov_type: str | None, *, even_if_empty: bool
) -> dict[str, str | bool | None]:
    """Return the estimator's words for inference; a covariance without it is refused."""
    if even_if_empty and inference is None:
        raise Refused("--even-if-empty is about the effects of --inference: give --inference sandwich, too")
    if cov_type is not None and inference is None:
        raise Refused("--cov-type chooses the covariance that --inference estimates: add --inference sandwich")
    return {"inference": inference, "cov_type": cov_type, "even_if_empty": even_if_empty or None}


def account(
    ledger: str | None, dataset: str | None, neighbors: str, unit: str = "record", *, charged: bool = True
) -> Json:
    """Return the estimator's words for it; ``charged`` is false for public records and for dry runs."""
    if not charged:
        return {"ledger": False}
    from discreet.ledger.ledger import ledger_for

    store = ledger_for(ledger)
    if store is not None and dataset is None:
        raise Refused(
            "a ledger is configured, so name the data set: add --dataset NAME (`discreet budget show` lists them), or "
            "--public (score: --public-data) if the records are public"
        )
    if store is None and dataset is not None:
        raise Refused("--dataset needs a ledger: give --ledger, or set DISCREET_LEDGER")
    if store is not None and dataset is not None:
        terms = store.account(dataset)
        if (str(terms.neighbors), terms.unit) != (neighbors, unit):
            raise Refused(
                f"{dataset!r} is registered for {terms.neighbors} per {terms.unit}, and this would be {neighbors} per "
                f"{unit}: give that relation as --neighbors; a schema's person column makes it per person"
            )
    return {"ledger": store, "dataset": dataset}


def check_budget(epsilon: float, delta: float | None, neighbors: Neighbors, rows: int | None) -> None:
    """Refuse a budget that no plan can have, in the words of the command line."""
    if not 0 < epsilon <= LARGEST_EPSILON:
        raise Refused(
            f"--epsilon must be positive, such as 1, and at most {LARGEST_EPSILON:g}; larger values protect nobody"
        )
    if delta is not None and not 0 <= delta < 1:
        raise Refused("--delta is a probability well below 1/n, such as 1e-6, or 0 for pure differential privacy")
    if delta is None and rows is None and not neighbors.n_is_public:
        raise Refused(
            f"the number of rows is private under {neighbors}: give --delta, such as 1e-6, or rows = ... in the schema "
            "if the number is public"
        )


def refuse_both(public: bool, ledger: str | None, dataset: str | None) -> None:
    """Public records are charged nowhere."""
    if public and (ledger or dataset):
        raise Refused("public records are not charged to a ledger: leave out --ledger and --dataset")


def check_claim(epsilon: float, delta: float | None) -> None:
    """Refuse what is no budget at all."""
    if not (math.isfinite(epsilon) and epsilon > 0):
        raise Refused("--epsilon must be positive and finite")
    if delta is not None and not 0 <= delta < 1:
        raise Refused("--delta must lie in [0, 1), such as 1e-6")


def echo_json(values: object) -> None:
    """Print plain values."""
    typer.echo(json.dumps(values, indent=2))


def named_address(address: str | None, ledger: str | None = None) -> str:
    """Return the address that is meant: given, or configured."""
    from discreet.ledger.ledger import default_address
    from discreet.ledger.store import MEMORY

    if address and ledger and address != ledger:
        raise Refused("give the ledger's address once")
    named = address or ledger or default_address()
    if not named:
        raise Refused(
            "no ledger is named: give its address (--ledger), set DISCREET_LEDGER, or make one with "
            "`discreet budget init budget.db --default`"
        )
    if named == MEMORY:
        raise Refused("a ledger in memory would be lost when this command ends: give a path or a postgresql:// URL")
    return named


def is_url(address: str) -> bool:
    """Return whether it is a database's URL, not a path."""
    return "://" in address


def opened(address: str | None) -> "Ledger":
    """Return the ledger at an address, or the configured one."""
    from discreet.ledger.ledger import Ledger

    return Ledger(named_address(address))


CERTIFICATE_BYTES = 1 << 26
"""The largest file that is read as a certificate, or as a page that holds one."""
_ZIP = b"PK\x03\x04"


def table_of(paths: Sequence[Path], schema: "Schema | None" = None) -> "Source":
    """Return the files as one table: as this machine sees them, or as a cluster's workers do, where one was reached."""
    from discreet.curator import source_of

    return source_of(list(paths), None if schema is None else schema.separator)


def connect(command: typer.Context, cluster: str | None) -> None:
    """Connect to a cluster for the rest of the command; nothing for None."""
    if cluster is not None:
        from discreet.scale import cluster as connected

        command.with_resource(connected(cluster))


def model_of(folder: Path) -> "TableModel":
    """Return the model that `discreet fit` wrote."""
    from discreet.models.persist import MANIFEST, is_folder

    if not is_folder(folder):
        raise Refused(f"{folder}: this is not a model's folder written by discreet fit: it has no {MANIFEST}")
    from discreet.models.table_model import TableModel
    from discreet.registry import load_plugins

    load_plugins()
    return TableModel.load(folder)


def start_of(path: Path, declared: "Schema") -> "tuple[Floats, Floats]":
    """The coefficients and intercept of a released model, to start from: of the same features, and with a guarantee."""
    from discreet.curator import Layout

    contents = read_contents(path)
    if contents.model is None:
        raise Refused(f"{path}: --start needs a model's folder or a saved model; this file holds only a certificate")
    if not contents.certificate.is_private:
        raise Refused(f"{path}: --start needs a model with a guarantee; this model is {contents.certificate.stamp}")
    ours, theirs = (
        schema and [feature.name for feature in Layout(schema).features]
        for schema in (declared, contents.table and contents.table.schema_)
    )
    if theirs is not None and ours != theirs:
        raise Refused(
            f"{path}: this model's features differ from the schema's: start from a model with the same features"
        )
    return contents.model.coef_, contents.model.intercept_


@dataclass(frozen=True)
class Contents:
    """A certificate, the model that it belongs to, and that model's table, where there are any."""

    certificate: "Certificate"
    model: "DPLinearModel | None"
    table: "TableModel | None" = None


def read_contents(path: Path) -> Contents:
    """Return the contents of a model's folder, of a saved model (a zip file), of a certificate (JSON) or of a report.

    What cannot be shown, since a part of it has another form than discreet writes, is refused here.
    """
    try:
        contents = _read_any(path)
        contents.certificate.text()
    except DiscreetError:
        raise
    except (ValueError, TypeError, LookupError, ArithmeticError, AttributeError, RecursionError):
        raise AccountingError("this is neither a certificate nor a saved model: a part has the wrong form") from None
    return contents


def _read_any(path: Path) -> Contents:
    if path.is_dir():
        table = model_of(path)
        return Contents(table.certificate_, table.estimator_, table)
    with path.open("rb") as file:
        start = file.read(len(_ZIP))
    if start == _ZIP:
        from discreet.models.persist import load
        from discreet.registry import load_plugins

        load_plugins()
        model = load(path)
        return Contents(model.certificate_, model)
    from discreet.accounting.certificate import Certificate

    with path.open("rb") as file:
        content = file.read(CERTIFICATE_BYTES + 1)
    if len(content) > CERTIFICATE_BYTES:
        raise AccountingError(f"the file is too large for a certificate: {CERTIFICATE_BYTES:,} bytes at most")
    if path.suffix == ".html":
        from discreet.report.page import certificate_in

        return Contents(certificate_in(content.decode(errors="replace")), None)
    return Contents(Certificate.from_json(content.decode()), None)


PICTURES = (".png", ".svg", ".pdf")


def free(place: Path, option: str = "--out", *, endings: tuple[str, ...] = ()) -> Path:
    """Return a place that a new file can be written to; refuse any other, before the work rather than after it."""
    if endings and place.suffix.lower() not in endings:
        raise Refused(f"{option} needs a name that ends in {', '.join(endings)}")
    if not place.absolute().parent.is_dir():
        raise Refused(f"{place}: there is no such folder")
    if place.exists() or place.is_symlink():
        raise taken(place, option)
    return place


@contextmanager
def new_file(place: Path, option: str = "--out") -> Iterator[Path]:
    """Give a hidden path of the same name, whose file is put in its place whole when the block ends."""
    free(place, option)
    with passing(place, folder=True) as folder:
        scratch = folder / place.name
        yield scratch
        sync(scratch)
        try:
            os.link(scratch, place)  # a rename would replace what has come in between
        except FileExistsError:
            raise taken(place, option) from None
        except OSError:  # a drive without hard links
            os.rename(scratch, free(place, option))


def write_new(place: Path, text: str, option: str = "--out") -> None:
    """Write a text to a new file."""
    with new_file(place, option) as scratch:
        scratch.write_text(text, encoding="utf-8")


def taken(place: Path, option: str = "--out") -> Refused:
    """Return the refusal of a place where something is already."""
    return Refused(f"{place}: the file already exists: choose another with {option}, or remove this one")


def registered_models(wanted: str = "") -> tuple[str, ...]:
    """Return the names that ``--model`` takes; plug-ins are loaded unless the wanted one is built in."""
    if wanted in BUILT_IN_MODELS:
        return tuple(BUILT_IN_MODELS)
    load_plugins()
    from discreet.models.base import MODELS

    return MODELS.names()


def registered_solvers(wanted: str = "") -> tuple[str, ...]:
    """Return the names that ``--solver`` takes; plug-ins are loaded unless the wanted one is built in."""
    if wanted in BUILT_IN_SOLVERS:
        return tuple(BUILT_IN_SOLVERS)
    load_plugins()
    from discreet.solvers.base import SOLVERS

    return SOLVERS.names()


def _checked(registered: Callable[..., tuple[str, ...]]) -> Callable[[str], str]:
    def check(value: str) -> str:
        if value != "auto" and value not in registered(wanted=value):
            names = ", ".join(repr(name) for name in ("auto", *registered()))
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
    """Return a model for a table, not fitted: by its short name, or the one that suits the target."""
    from discreet.models.table_model import TableModel

    return TableModel(declared, estimator_named(declared, name, settings).set_params(**account))


def estimator_named(declared: "Schema", name: str, settings: Json) -> "DPLinearModel":
    """Return an estimator, not fitted: by its short name, or the one that suits the target."""
    from discreet.models.base import MODELS, default_model

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
               "power": "power of its mean", "dispersion": "dispersion", "quantile": "choice of quantiles",
               "cov_type": "standard errors", "even_if_empty": "standard errors"}  # fmt: skip
    given = {key: value for key, value in settings.items() if key not in options or value is not None}
    for option, what in options.items():
        if option in given and option not in estimator.get_params():
            raise Refused(f"--model {name} has no {what}: leave out --{option.replace('_', '-')}")
    return estimator.set_params(**given)


def class_weights(given: Sequence[str], classes: Sequence[object]) -> dict[Any, float]:
    """Return the factors that ``--class-weight yes=5`` declares, by class."""
    from discreet.schema.cell_meaning import is_number_text

    labels, weights = {str(label): label for label in classes}, {}
    for text in given:
        name, _, factor = text.rpartition("=")
        if name not in labels or not is_number_text(factor) or not float(factor) > 0:
            raise Refused("--class-weight names a declared class and a positive factor, such as yes=5")
        weights[labels[name]] = float(factor)
    return weights


def quoted(quote: "Quote") -> Json:
    """Return a plan and its price as plain values."""

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


RARE_OUTCOMES = (
    "whether effects will be shown was judged for even outcomes and categories: where they are rare, first run "
    "discreet forecast --effects --rows N --schema SCHEMA --mean SHARE"
)


def show_quote(quote: "Quote", as_json: bool, needs: "Needs | None" = None, *, explain: bool = False) -> None:
    """Print a plan and its price, what memory and disk it takes, and why it was chosen."""
    facts = {**quoted(quote), **({"explanation": quote.explain()} if explain else {})}
    if as_json:
        typer.echo(json.dumps(facts if needs is None else {**facts, "memory": memory_facts(needs)}, indent=2))
        return
    from rich.table import Table

    looks: Json = {"title_justify": "left", "title_style": "bold", "box": None, "show_header": False}
    grid = Table(title="What the fit would release, and its cost", **looks)
    grid.add_row("guarantee", f"epsilon = {facts['epsilon']:.6g}, delta = {facts['delta']:.3g}, {facts['neighbors']}")
    accountants = ", ".join(f"{name} {value:.6g}" for name, value in facts["accountants"].items())
    grid.add_row("price", f"{facts['price']:.6g} ({accountants})")
    grid.add_row("solver", str(facts["solver"].get("name", "")))
    for release in facts["releases"]:
        times = f"{release['count']} x" if release["count"] > 1 else "once"
        noise = f"noise {release['noise_multiplier']:.4g} x sensitivity"
        grid.add_row("releases", f"{release['query']}, {times}, {noise}")
    console = rich_console()
    console.print(grid)
    for note in facts["notes"] if not explain else ():  # which the explanation repeats
        console.print(note, style="dim")
    if facts["solver"].get("name") == "sandwich":
        console.print(RARE_OUTCOMES, style="dim")
    if needs is not None:
        console.print(memory_text(needs), style="dim")
    console.print("\nNothing was charged. At most the number of rows (or persons) was counted; no cell was read.")
    if explain:
        typer.echo(f"\n{facts['explanation']}")


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
