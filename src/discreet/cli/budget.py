"""``discreet budget``: the ledger of what was released, for those who own the data."""

import json
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.budget import Neighbors
from discreet.cli.budget_records import export, history, verify
from discreet.cli.errors import Refused
from discreet.cli.options import Address, AsJson, check_claim, echo_json, is_url, named_address, opened
from discreet.cli.terminal_text import number_of
from discreet.errors import LedgerError

if TYPE_CHECKING:
    from discreet.ledger.fingerprint import Notice
    from discreet.ledger.ledger import Ledger

budget = typer.Typer(no_args_is_help=True)


class Unit(StrEnum):
    """Whom a cap protects."""

    RECORD = "record"
    PERSON = "person"


@budget.callback()
def _group() -> None:
    """Caps on what data sets may ever give away, and what is left of them.

    A ledger outlives fits, processes and people. The owner of the data makes it (`init`) and grants a cap to each data
    set (`grant`); every fit is charged before it reads a record, and refused where the cap would be crossed:
    `DPLogisticRegression(..., ledger="budget.db", dataset="census")`.
    """


@budget.command()
def init(
    address: Annotated[
        str | None, typer.Argument(help="A path such as budget.db, or postgresql://user@host/database.")
    ] = None,
    ledger: Address = None,
    default: Annotated[
        bool, typer.Option("--default", help="Also name it in the configuration file, for every fit and command.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Make a new, empty ledger. Nothing is overwritten.

    A file gets a key next to it (ADDRESS.key), readable by its owner only, by which the same records are recognized
    under another name. Keep both where those who fit models can reach them through discreet's fits alone, and back
    them up together: an older copy of a ledger has forgotten what was released since.

    Keep passwords out of the URL: PostgreSQL's ~/.pgpass has a place for them.
    """
    from discreet.cli.budget_default import check_default, write_default
    from discreet.ledger.ledger import Ledger

    named = named_address(address, ledger)
    if default:
        check_default(named)
    made = Ledger.create(named)
    found = {
        "ledger": made.address,
        "key": None if is_url(named) else f"{made.address}.key",
        "default": str(write_default(named)) if default else None,
    }
    if as_json:
        echo_json(found)
        return
    from discreet.cli.budget_tables import print_made

    print_made(found)


@budget.command()
def grant(
    dataset: Annotated[str, typer.Argument(help="The name under which fits are charged.")],
    epsilon: Annotated[float, typer.Option("--epsilon", "-e", help="The cap on all that is ever released together.")],
    delta: Annotated[
        float | None,
        typer.Option("--delta", "-d", help="Well below 1/n; 0 admits pure budgets only. Needed for a new data set."),
    ] = None,
    neighbors: Annotated[
        Neighbors | None,
        typer.Option("--neighbors", help="What a neighbor is, for good. Default for a new data set: replace_one."),
    ] = None,
    unit: Annotated[
        Unit | None, typer.Option("--unit", help="Whom the cap protects, for good. Default: record.")
    ] = None,
    ledger: Address = None,
    as_json: AsJson = False,
) -> None:
    """Register a data set with a cap, or change the cap's epsilon.

    The cap holds for everything that is ever released of the data, by anyone, in any order: not for a fit, a
    month or a user. Fits are composed, so that many of them cost less than the sum of their epsilons.

    Only epsilon can be changed later. To lower it below what is spent is refused. To raise it makes the guarantee that
    much weaker for everybody in the data, looking back as well: what really protects them is the largest cap that you
    would ever grant, and a cap that is raised whenever it is reached is none. Decide before you see results.

    Example: `discreet budget grant census --epsilon 3 --delta 1e-6`
    """
    from discreet.ledger.names import name_of

    check_claim(epsilon, delta)
    found = opened(ledger)
    before = {account.name: account.epsilon for account in found.accounts()}
    dataset = dataset if dataset in before else name_of(dataset)
    if dataset not in before and delta is None:
        raise Refused(
            f"{dataset!r} is a new data set: give --delta, well below one over its number of records, such as 1e-6; "
            "or 0, which admits pure budgets only. It cannot be changed afterwards"
        )
    found.grant(dataset, epsilon, delta, neighbors=neighbors, unit=None if unit is None else str(unit))
    if not as_json:
        old = before.get(dataset)
        typer.echo("registered" if old is None else f"epsilon {old:g} before, {epsilon:g} from now on")
    _show(found, dataset, as_json)


@budget.command()
def divide(
    dataset: Annotated[str, typer.Argument(help="A registered data set.")],
    parts: Annotated[list[str], typer.Argument(metavar="PART...", help="Names for its parts, one or several.")],
    ledger: Address = None,
    as_json: AsJson = False,
) -> None:
    """Declare disjoint parts of a data set, each with the cap of the whole.

    Anyone who is in one part is in no other, so that what is released of one part costs the others nothing; what is
    released of the whole is charged to every part. Fits name the part instead of the whole. There is no way back.

    It is your declaration, and nothing checks it. It is right where the part follows from who somebody is: hospitals
    that share no patients, say. Where it follows from a value in the record (an age group), exchanging a record may
    move it to another part, and two parts would have to be counted: divide such data under add_remove only.
    """
    found = opened(ledger)
    found.divide(dataset, parts)
    _show(found, dataset, as_json)


@budget.command()
def show(
    dataset: Annotated[str | None, typer.Argument(help="One data set, with its parts. Default: all.")] = None,
    ledger: Address = None,
    as_json: AsJson = False,
) -> None:
    """Show caps, what was spent, and what is left.

    "Spent" is what all fits cost together, at the cap's delta; "added up" is the sum of their epsilons. "Room" is the
    epsilon of the largest fit with Gaussian noise that would still be granted (Laplace noise where the cap has no
    delta). The bar is what is left of the cap. A whole has no more room than the fullest of its parts.

    Warnings below the table are for the owner: records that were seen under two names.

    The last line has the chain's head. Note it elsewhere from time to time: a ledger that was set back to an older copy
    is found out by a head that it no longer has.
    """
    _show(opened(ledger), dataset, as_json)


@budget.command()
def move(
    ledger: Address = None,
    as_json: AsJson = False,
) -> None:
    """Let a ledger file that was moved, copied or restored be used where it is now.

    Recent charges are kept next to a ledger file, so each file is used at one place. At another one it refuses fits,
    until its owner has said that this is its place from now on.

    Before you do: stop all fits. Move the file with everything that begins with its name (`mv budget.db* /new/`).
    Make sure that no other copy is in use: two copies are two budgets for the same people. After a restore, check the
    certificates issued since the copy was made (`discreet verify CERT --ledger ADDRESS`), and charge again what the
    copy has forgotten.
    """
    found = opened(ledger)
    found.bind()
    typer.echo(
        json.dumps({"ledger": found.address}, indent=2) if as_json else f"{found.address}: used here from now on"
    )


budget.command()(history)
budget.command()(verify)
budget.command()(export)


@budget.command()
def roles(
    role: Annotated[str, typer.Argument(help="The database role under which fits run.")],
    as_json: AsJson = False,
) -> None:
    """Print the GRANT statements that let a role charge fits to a ledger in PostgreSQL, and nothing else.

    Nothing is run: the ledger's owner does, in the ledger's database. The role can neither change a cap nor take a
    charge back. It reads the key of the fingerprints, so it is for the machines that read the records.

    Example: `discreet budget roles fitting | psql DATABASE`
    """
    from discreet.ledger.postgres import grants_for

    statements = grants_for(role)
    typer.echo(json.dumps(statements, indent=2) if as_json else "\n".join(f"{one};" for one in statements))


def _show(ledger: "Ledger", dataset: str | None, as_json: bool) -> None:
    from discreet.cli.budget_tables import account_facts, print_accounts

    accounts = ledger.accounts()
    names = {account.name for account in accounts}
    if dataset is not None:
        dataset = ledger.account(dataset).name  # an error where there is none
        names = {account.name for account in accounts if dataset in (account.name, account.parent)}
    facts = [one for one in account_facts(accounts) if one["dataset"] in names]
    notices = [notice for notice in _notices(ledger) if names & {notice.dataset, notice.other}]
    last = [{"entry": entry.seq, "hash": entry.hash} for entry in ledger.entries(limit=1)]
    if as_json:
        told = [{"dataset": one.dataset, "other": one.other, "share": one.share} for one in notices]
        shown = {"ledger": ledger.address, "head": last[0] if last else None, "datasets": facts, "notices": told}
        echo_json(shown)
    else:
        print_accounts(facts, [str(notice) for notice in notices])
        for head in last if dataset is None else []:
            typer.echo(f"\n{number_of(int(str(head['entry'])), 'entry', 'entries')}, head {head['hash']}")


def _notices(ledger: "Ledger") -> "list[Notice]":
    """None where the database keeps them from the one who asks: they are the owner's."""
    try:
        return ledger.notices()
    except LedgerError:
        return []
