"""Options that commands share: the budget, the ledger that is charged, JSON; and what can be refused at once."""

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.budget import Neighbors
from discreet.cli.errors import Refused

if TYPE_CHECKING:
    from discreet.ledger.ledger import Ledger

LARGEST_EPSILON = 1000.0

LedgerAddress = Annotated[
    str | None,
    typer.Option("--ledger", "-l", metavar="ADDRESS", help="Charged there. Default: the configured ledger, if any."),
]
Delta = Annotated[
    float | None,
    typer.Option("--delta", "-d", help="1/n², and never more than 1e-6, unless given, where n is public."),
]
AllowLargeDelta = Annotated[
    bool, typer.Option("--allow-large-delta", help="Permit a delta of 1/n or more, which promises nothing.")
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
    typer.Option("--neighbors", help="What a neighbor is: one record replaced, blanked, or added/removed."),
]
Dataset = Annotated[str | None, typer.Option(help="The table's name in the ledger, as its owner registered it.")]

ChargeId = Annotated[
    str | None,
    typer.Option(help="A name for this fit in the ledger: asked again, it costs nothing and gives the same model."),
]
Checks = Annotated[
    bool,
    typer.Option(
        "--checks/--no-checks",
        help="Spend a fiftieth of the budget on noisy counts of cells that do not fit the schema.",
    ),
]
Memory = Annotated[
    str | None, typer.Option(help="How much memory the rows may take, such as 4GB. Larger tables are kept on disk.")
]
Scratch = Annotated[
    Path | None, typer.Option(help="The folder for scratch files. Default: the system's for temporary files.")
]
Cluster = Annotated[
    str | None,
    typer.Option(metavar="ADDRESS", help="A Dask scheduler whose workers read the table, as tls://host:8786."),
]
Start = Annotated[
    Path | None, typer.Option(help="A released model (its folder, or a saved one) that steps start from. Free.")
]
Terms = Annotated[
    str,
    typer.Option(
        help="Effects of numbers: linear, curves, or auto (curves where they are expected to predict better)."
    ),
]
FormulaText = Annotated[
    str | None,
    typer.Option("--formula", help="Columns and forms of effects: 'y ~ s(age) * sex + C(ward)'; others are ignored."),
]
Inference = Annotated[
    str | None,
    typer.Option(help="sandwich: reserve a part of the budget for standard errors and confidence intervals."),
]
CovType = Annotated[
    str | None, typer.Option(help="With --inference: robust (default), model, or cluster (needs persons).")
]


def told(inference: str | None, cov_type: str | None) -> dict[str, str | None]:
    """The estimator's words for inference; a covariance without it is refused."""
    if cov_type is not None and inference is None:
        raise Refused("--cov-type says which covariance --inference estimates: give --inference sandwich, too")
    return {"inference": inference, "cov_type": cov_type}


def account(
    ledger: str | None, dataset: str | None, neighbors: str, unit: str = "record", *, charged: bool = True
) -> dict[str, Any]:
    """The estimator's words for it; ``charged`` is false for public records and for dry runs."""
    if not charged:
        return {"ledger": False}
    from discreet.ledger.default_ledger import ledger_for

    found = ledger_for(ledger)
    if found is not None and dataset is None:
        raise Refused(
            "a ledger is configured, so name the data set: add --dataset NAME (`discreet budget show` lists them), or "
            "--public (score: --public-data) where everybody may see the records"
        )
    if found is None and dataset is not None:
        raise Refused("the data set is named, but no ledger: give --ledger, or set DISCREET_LEDGER")
    if found is not None and dataset is not None:
        terms = found.account(dataset)
        if (str(terms.neighbors), terms.unit) != (neighbors, unit):
            raise Refused(
                f"{dataset!r} is registered for {terms.neighbors} per {terms.unit}, and this would be {neighbors} per "
                f"{unit}: give that relation as --neighbors; a schema's person column makes it per person"
            )
    return {"ledger": found, "dataset": dataset}


def check_budget(epsilon: float, delta: float | None, neighbors: Neighbors, rows: int | None) -> None:
    """Refuse a budget that no plan can have, in the words of the command line."""
    if not 0 < epsilon <= LARGEST_EPSILON:
        raise Refused(
            f"--epsilon must be positive, such as 1, and at most {LARGEST_EPSILON:g}: it promises nothing then"
        )
    if delta is not None and not 0 <= delta < 1:
        raise Refused("--delta is a probability well below 1/n, such as 1e-6, or 0 for pure epsilon")
    if delta is None and rows is None and not neighbors.n_is_public:
        raise Refused(
            f"the number of rows is private under {neighbors}: give --delta, such as 1e-6, or rows = ... in the schema "
            "where the number is public"
        )


def refuse_both(public: bool, ledger: str | None, dataset: str | None) -> None:
    """Public records are charged nowhere."""
    if public and (ledger or dataset):
        raise Refused("public records are charged nowhere: leave out --ledger and --dataset")


def check_claim(epsilon: float, delta: float | None) -> None:
    """Refuse what is no budget at all."""
    if not (math.isfinite(epsilon) and epsilon > 0):
        raise Refused("--epsilon must be positive and finite")
    if delta is not None and not 0 <= delta < 1:
        raise Refused("--delta must lie in [0, 1), such as 1e-6")


def echo_json(found: Any) -> None:
    """Print plain values."""
    typer.echo(json.dumps(found, indent=2))


def named_address(address: str | None, ledger: str | None = None) -> str:
    """The address that is meant: given, or configured."""
    from discreet.ledger.default_ledger import default_address
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
        raise Refused("a ledger in memory would end with this command: give a path or a postgresql:// URL")
    return named


def is_url(address: str) -> bool:
    """Whether it is a database's URL, not a path."""
    return "://" in address


def opened(address: str | None) -> "Ledger":
    """The ledger at an address, or the configured one."""
    from discreet.ledger.ledger import Ledger

    return Ledger(named_address(address))
