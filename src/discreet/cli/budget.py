"""``discreet budget``: the ledger of what was released, for those who own the data."""

import json
import math
import os
import shlex
import shutil
import sys
import tomllib
from collections.abc import Iterable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import parse_qsl, urlsplit

import typer

from discreet.atomic_files import passing
from discreet.budget import Neighbors
from discreet.cli.certificate import ONLY_PARTLY
from discreet.cli.options import Address, AsJson, check_claim, echo_json, is_url, named_address, opened, write_new
from discreet.cli.terminal import NO, UNCHECKED, Refused, checkable, number_of, rich_console
from discreet.errors import DiscreetError, LedgerDamaged, LedgerError
from discreet.json_schemas import Json

if TYPE_CHECKING:
    from rich.text import Text

    from discreet.cli.terminal import Console
    from discreet.ledger.account import Account
    from discreet.ledger.chain import Entry, Verified
    from discreet.ledger.ledger import Ledger, Notice

RECENT = 20
budget = typer.Typer(no_args_is_help=True)


class Unit(StrEnum):
    """Whom a cap protects."""

    RECORD = "record"
    PERSON = "person"


@budget.callback()
def _group() -> None:
    """Manage caps on what data sets may ever reveal, and see what is left.

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
    from discreet.ledger.ledger import Ledger

    named = named_address(address, ledger)
    if default:
        _changed(_file(), _lasting(named))  # refused before anything is made
    created = Ledger.create(named)
    facts = {
        "ledger": created.address,
        "key": None if is_url(named) else f"{created.address}.key",
        "default": str(write_default(named)) if default else None,
    }
    if as_json:
        echo_json(facts)
        return
    print_made(facts)


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
    from discreet.ledger.store import name_of

    check_claim(epsilon, delta)
    opened_ledger = opened(ledger)
    before = {account.name: account.epsilon for account in opened_ledger.accounts()}
    dataset = dataset if dataset in before else name_of(dataset)
    if dataset not in before and delta is None:
        raise Refused(
            f"{dataset!r} is a new data set: give --delta, well below one over its number of records, such as 1e-6; "
            "or 0, which admits pure budgets only. It cannot be changed afterwards"
        )
    opened_ledger.grant(dataset, epsilon, delta, neighbors=neighbors, unit=None if unit is None else str(unit))
    if not as_json:
        old = before.get(dataset)
        typer.echo("registered" if old is None else f"epsilon {old:g} before, {epsilon:g} from now on")
    _show(opened_ledger, dataset, as_json)


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
    opened_ledger = opened(ledger)
    opened_ledger.divide(dataset, parts)
    _show(opened_ledger, dataset, as_json)


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
def move(ledger: Address = None, as_json: AsJson = False) -> None:
    """Let a ledger file that was moved, copied or restored be used where it is now.

    Recent charges are kept next to a ledger file, so each file is used at one place. At another one it refuses fits,
    until its owner has said that this is its place from now on.

    Before you do: stop all fits. Move the file with everything that begins with its name (`mv budget.db* /new/`).
    Make sure that no other copy is in use: two copies are two budgets for the same people. After a restore, check the
    certificates issued since the copy was made (`discreet verify CERT --ledger ADDRESS`), and charge again what the
    copy has forgotten.
    """
    store = opened(ledger)
    store.bind()
    typer.echo(
        json.dumps({"ledger": store.address}, indent=2) if as_json else f"{store.address}: used here from now on"
    )


@budget.command()
def history(
    dataset: Annotated[str | None, typer.Argument(help="The entries under this name. Default: all.")] = None,
    last: Annotated[int, typer.Option("--last", "-n", min=1, help="How many, the last ones.")] = RECENT,
    ledger: Address = None,
    as_json: AsJson = False,
) -> None:
    """Show what was granted and charged, in order, the last entries.

    A charge says what it was for, the budget that was asked for, how many noisy answers that paid for, and under which
    charge id. Charges to a whole concern its parts too, and are listed under the whole's name.
    """
    store = opened(ledger)
    if dataset is not None:
        store.account(dataset)  # an error where there is none
    entries = store.entries(dataset, last + 1)
    facts = [entry_facts(entry) for entry in entries[-last:]]
    if as_json:
        shown = {"ledger": store.address, "entries": facts, "earlier": len(entries) > last}
        echo_json(shown)
    else:
        print_history(facts, earlier=len(entries) > last)


@budget.command()
def verify(
    certificate: Annotated[
        Path | None, typer.Option("--certificate", "-c", help="A certificate or saved model: is its charge in here?")
    ] = None,
    prices: Annotated[
        bool, typer.Option("--prices", help="Also recompute what each charge had to be. Takes longer.")
    ] = False,
    ledger: Address = None,
    as_json: AsJson = False,
) -> None:
    """Recompute the whole ledger from its entries: does it hold together?

    Checked are the chain of hashes, that no charge crossed a cap, and that the accounts are what the entries come to.
    Exit code 0: it holds. Exit code 1: it does not, and the first thing that is wrong is named. Exit code 2: it could
    not be checked, since the ledger or the certificate is missing or out of reach.

    A ledger that was rolled back to an older copy is whole in itself. Only certificates that were issued since can
    tell: check the latest one with --certificate, which also prices that certificate again, as `discreet verify` does.
    """
    ledger_found = opened(ledger)
    with checkable(as_json):
        try:
            held = _verified(ledger_found, certificate, prices=prices)
            answer = {"holds": True, "entries": held.entries, "datasets": held.datasets, "head": held.head}
        except LedgerDamaged as error:  # here it is the question
            answer = {"holds": False, "reason": str(error)}
        except UNCHECKED:
            raise
        except DiscreetError as error:
            answer = {"holds": False, "reason": str(error)}
    if as_json:
        echo_json(answer)
    elif answer["holds"]:
        checked = "; every charge covers its events" if prices else ""
        typer.echo(
            f"holds: {number_of(held.entries, 'entry', 'entries')}, {number_of(held.datasets, 'data set')}{checked}"
        )
        typer.echo(f"       head {held.head}")
        if certificate is not None:
            typer.echo("       the certificate's charge is one of them, and its claim holds")
            if not held.whole:
                typer.echo(f"       {ONLY_PARTLY}")
    else:
        typer.echo(f"does not hold: {answer['reason']}", err=True)
    if not answer["holds"]:
        raise typer.Exit(NO)


@budget.command()
def export(
    file: Annotated[Path, typer.Argument(help="Where to write; - for stdout. A file that exists is not touched.")],
    ledger: Address = None,
) -> None:
    """Write all entries as JSON lines, for anyone who wants to check the chain without discreet.

    A line has the fields that are hashed, in their order, and the hash. The hash is SHA-256 of the JSON list of the
    other values, without spaces; `prev` is the hash of the line before, 64 zeros for the first.

    Neither the key nor anything that was worked out from records is written: no fingerprints, no releases.
    """
    lines = [json.dumps(exported(entry)) + "\n" for entry in opened(ledger).entries()]
    if str(file) == "-":
        sys.stdout.writelines(lines)
        return
    write_new(file, "".join(lines), "FILE")
    typer.echo(f"{number_of(len(lines), 'entry', 'entries')} written to {file}", err=True)


@budget.command()
def roles(
    role: Annotated[str, typer.Argument(help="The database role under which fits run.")], as_json: AsJson = False
) -> None:
    """Print the GRANT statements that let a role charge fits to a ledger in PostgreSQL, and nothing else.

    Nothing is run: the ledger's owner does, in the ledger's database. The role can neither change a cap nor take a
    charge back. It reads the key of the fingerprints, so it is for the machines that read the records.

    Example: `discreet budget roles fitting | psql DATABASE`
    """
    from discreet.ledger.postgres import grants_for

    statements = grants_for(role)
    typer.echo(json.dumps(statements, indent=2) if as_json else "\n".join(f"{statement};" for statement in statements))


def _show(ledger: "Ledger", dataset: str | None, as_json: bool) -> None:
    accounts = ledger.accounts()
    names = {account.name for account in accounts}
    if dataset is not None:
        dataset = ledger.account(dataset).name  # an error where there is none
        names = {account.name for account in accounts if dataset in (account.name, account.parent)}
    facts = [row for row in account_facts(accounts) if row["dataset"] in names]
    notices = [notice for notice in _notices(ledger) if names & {notice.dataset, notice.other}]
    last = [{"entry": entry.seq, "hash": entry.hash} for entry in ledger.entries(limit=1)]
    if as_json:
        overlaps = [{"dataset": row.dataset, "other": row.other, "share": row.share} for row in notices]
        shown = {"ledger": ledger.address, "head": last[0] if last else None, "datasets": facts, "notices": overlaps}
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


def _verified(ledger: "Ledger", file: Path | None, *, prices: bool) -> "Verified":
    if file is None:
        return ledger.verify(prices=prices)
    from discreet.cli.options import read_contents

    certificate = read_contents(file).certificate
    held = ledger.verify(certificate, prices=prices)
    if not certificate.verify().is_private:
        raise LedgerError(f"there is no guarantee: {certificate.stamp}")
    return held


LEGEND = (
    "spent: what all fits cost together, at the cap's delta. added up: the sum of their epsilons. "
    "room: the largest fit that would still be granted."
)


def account_facts(accounts: Sequence["Account"]) -> list[Json]:
    """Plain facts on every account, each whole followed by its parts."""
    parts: dict[str | None, list[Account]] = {}
    for account in accounts:
        parts.setdefault(account.parent, []).append(account)
    listed = []
    for whole in parts.get(None, []):
        listed.append(_facts(whole, parts.get(whole.name, [])))
        listed += [_facts(part, []) for part in parts.get(whole.name, [])]
    return listed


def _facts(account: "Account", parts: Iterable["Account"]) -> Json:
    spent = account.statement()
    # a charge to the whole is one to each part: the fullest decides
    family = [spent, *(part.statement() for part in parts)]
    return {
        "dataset": account.name,
        "part_of": account.parent,
        "cap": {"epsilon": spent.cap_epsilon, "delta": spent.cap_delta},
        "neighbors": str(account.neighbors),
        "unit": account.unit,
        "fits": spent.fits,
        "spent": {"epsilon": spent.epsilon if math.isfinite(spent.epsilon) else None, "delta": spent.cap_delta},
        "added_up": {"epsilon": spent.summed_epsilon, "delta": spent.summed_delta},
        "left": min(1 - member.share for member in family),
        "room": min(member.left for member in family),
    }


def print_accounts(facts: Sequence[Json], notices: Sequence[str]) -> None:
    """The table, with warnings below."""
    from rich.table import Table

    console = _console()
    if not facts:
        console.print("No data sets yet. Register one:\n  discreet budget grant NAME --epsilon 3 --delta 1e-6")
        return
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    table.add_column("data set", overflow="fold", min_width=19)
    table.add_column("cap", no_wrap=True)
    for name in ("fits", "spent", "added up", "room"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("left", no_wrap=True)
    wholes = {account["dataset"] for account in facts if account["part_of"] is None}
    for place, account in enumerate(facts):
        below = account["part_of"] in wholes
        if place and not below:
            table.add_row()
        table.add_row(*_row(account, below, console))
    console.print(table)
    if any(account["fits"] for account in facts):
        console.print(f"\n{LEGEND}", style="dim")
    for notice in notices:
        console.print(f"\nWarning: {_printable(notice)}", style="yellow")


def _row(account: Json, below: bool, console: "Console") -> list[Any]:
    from rich.text import Text

    name = Text(("  " if below else "") + _printable(account["dataset"]))
    cap = f"{account['cap']['epsilon']:g}, {account['cap']['delta']:g}"
    if below:
        cap = ""
    else:
        terms = f"{account['neighbors']}, {account['unit']}"
        name.append(
            f"\n{terms}" if account["part_of"] is None else f"\n{terms}\npart of {_printable(account['part_of'])}",
            "dim",
        )
    composed = account["spent"]["epsilon"]
    spent = "-" if composed is None else _short(composed)
    return [
        name,
        cap,
        f"{account['fits']:,}",
        spent,
        _short(account["added_up"]["epsilon"]),
        _short(account["room"], down=True),
        _bar(account["left"], console),
    ]


def _bar(left: float, console: "Console") -> "Text":
    """Return what is left, as a bar that is read without color; a cell is full or empty, rounded down."""
    from rich.text import Text

    full, empty = ("#", ".") if console.options.ascii_only else ("█", "░")
    width = 10 if console.width < 100 else 20
    cells = math.floor(left * width + 1e-9)
    color = "green" if left > 0.5 else "yellow" if left > 0.2 else "red"
    return Text.assemble(
        (full * cells, color), (empty * (width - cells), "dim"), f" {math.floor(left * 100 + 1e-9):>3}%"
    )


def _short(value: float, *, down: bool = False) -> str:
    """Three digits; what is spent is rounded up, what is left is rounded down."""
    if value <= 0 or not math.isfinite(value):
        return f"{max(value, 0):g}"
    unit = 10.0 ** (math.floor(math.log10(value)) - 2)
    steps = value / unit
    whole = math.floor(steps + 1e-6) if down else math.ceil(steps - 1e-6)
    return f"{whole * unit:.3g}"


def entry_facts(entry: "Entry") -> Json:
    """Plain facts on an entry."""
    facts = {"entry": entry.seq, "kind": entry.kind, "dataset": entry.dataset, "hash": entry.hash}
    try:
        body = entry.contents
        facts["time"] = body.get("time")
        if entry.kind == "charge":
            facts |= {"label": body["label"], "charge_id": entry.charge_id, "budget": dict(body["budget"])}
            facts["released"] = released(body["events"])
        elif entry.kind == "part":
            facts["part_of"] = body["of"]
        else:
            facts |= {"cap": {"epsilon": body["epsilon"], "delta": body["delta"]}}
            facts |= {"neighbors": body["neighbors"], "unit": body["unit"]}
    except (LookupError, TypeError, ValueError, AttributeError):
        facts["unreadable"] = True
    return facts


def released(events: Iterable[Json]) -> str:
    """Return how many answers of which kind: ``9 gaussian, 1 laplace``."""
    counts: dict[str, int] = {}
    for event in events:
        inner = event.get("event", event)
        kind = inner["kind"].replace("_", " ") + (" on samples" if inner is not event else "")
        counts[kind] = counts.get(kind, 0) + inner.get("count", 1)
    return ", ".join(f"{count:,} {kind}" for kind, count in counts.items()) or "nothing"


def exported(entry: "Entry") -> Json:
    """Return all that is hashed, in the order in which it is, and the hash."""
    from discreet.ledger.account import AMOUNT_NAMES

    facts = {"seq": entry.seq, "kind": entry.kind, "dataset": entry.dataset, "charge_id": entry.charge_id}
    charge = {name: getattr(entry.charge, name) for name in AMOUNT_NAMES}
    return {**facts, **charge, "body": entry.body, "prev": entry.prev, "hash": entry.hash}


def print_history(facts: Sequence[Json], *, earlier: bool) -> None:
    """An entry a row; what a charge paid for below it."""
    from rich.table import Table

    console = _console()
    if not facts:
        console.print("No entries yet.")
        return
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    table.add_column("", justify="right", no_wrap=True)
    table.add_column("time (UTC)", no_wrap=True)
    table.add_column("kind", no_wrap=True)
    table.add_column("data set", overflow="fold", max_width=max(12, console.width // 4))
    table.add_column("what", overflow="fold", ratio=1)
    for entry in facts:
        when = str(entry.get("time") or "").replace("T", " ")[:16]
        table.add_row(
            str(entry["entry"]), _printable(when), _printable(entry["kind"]), _printable(entry["dataset"]), _what(entry)
        )
    console.print(table)
    if earlier:
        console.print(f"\nThere are earlier entries: --last {10 * len(facts)} shows more.", style="dim")


def _what(entry: Json) -> "Text":
    from rich.text import Text

    if "unreadable" in entry:
        return Text("cannot be read: run discreet budget verify", "red")
    if "part_of" in entry:
        return Text(f"part of {_printable(entry['part_of'])}")
    if "cap" in entry:
        text = Text(f"cap {_pair(entry['cap'])}")
        return text.append(f"\n{_printable(entry['neighbors'])}, {_printable(entry['unit'])}", "dim")
    text = Text(_pair(entry["budget"]))
    text.append(f"\n{_printable(entry['label'])}: ".lstrip(": ") + _printable(entry["released"]), "dim")
    if entry["charge_id"] is not None:
        text.append(f"\ncharge id {_printable(entry['charge_id'])}", "dim")
    return text


def _pair(budget: Json) -> str:
    return _printable(f"epsilon {budget['epsilon']:g}, delta {budget['delta']:g}")


def print_made(place: Json) -> None:
    """Where a new ledger is, and what to do next."""
    console = _console()
    is_file = place["key"] is not None
    console.print(f"ledger   {place['ledger']}", soft_wrap=True)
    if is_file:
        console.print(f"key      {place['key']}", soft_wrap=True)
    if place["default"]:
        console.print(f"default  named in {place['default']}", soft_wrap=True)
    console.print(
        "\nThe key is readable by you alone. Keep it so, and back it up with the ledger: without its key, no fit is "
        "admitted."
        if is_file
        else "\nThe key is in the database. Back the whole database up: a ledger that is set back has forgotten."
    )
    console.print("\nNext", style="bold")
    if not place["default"]:
        named = shlex.quote(place["ledger"]) if is_file else "...  # the URL, without a password"
        console.print(f"  export DISCREET_LEDGER={named}", soft_wrap=True)
    console.print("  discreet budget grant NAME --epsilon 3 --delta 1e-6", soft_wrap=True)


def _printable(text: object) -> str:
    """On one line, without control characters, in the terminal's alphabet: charge ids are whatever an analyst wrote."""
    shown = "".join(sign if sign.isprintable() else "?" for sign in str(text))
    alphabet = sys.stdout.encoding or "ascii"
    return shown.encode(alphabet, "replace").decode(alphabet)


def _console() -> "Console":
    console = rich_console()
    # a number that is cut tells nothing: a narrow terminal wraps whole lines instead
    return console if console.width >= 78 else rich_console(width=78)


def write_default(address: str) -> Path:
    """Name the ledger in the configuration file, and return where that is. Whole, or not at all."""
    path = _file()
    changed = _changed(path, _lasting(address))
    if changed is None:
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    with passing(path) as scratch:
        scratch.write_text(changed, encoding="utf-8")
        if path.exists():
            shutil.copymode(path, scratch)
        os.replace(scratch, path)
    return path


def _file() -> Path:
    from discreet.ledger.ledger import config_file

    return config_file().resolve()  # behind a link, what it points to is changed


def _lasting(address: str) -> str:
    """Return the address as it means the same from every directory, without a secret."""
    if "://" not in address:
        return str(Path(address).absolute())
    try:
        parts = urlsplit(address)
        secret = parts.password is not None or "@" in parts.path + parts.fragment
    except ValueError:
        raise Refused("this is no URL: write it as postgresql://user@host/database") from None
    if secret or any("password" in name.lower() for name, _ in parse_qsl(parts.query, keep_blank_values=True)):
        raise Refused(
            "a password does not belong into the configuration file: put it into ~/.pgpass, or leave --default"
        )
    return address


def _changed(path: Path, address: str) -> str | None:
    """Return the file's text with the ledger named in it; None where it is named already."""
    try:
        text = path.read_text(encoding="utf-8")
        configuration = tomllib.loads(text)
    except FileNotFoundError:
        text, configuration = "", {}
    except ValueError:
        raise Refused(f"{path} cannot be read as TOML: correct it first") from None
    if "ledger" in configuration:
        if configuration["ledger"] == address:
            return None
        raise Refused(f"{path} names another ledger: change it there, if this one is to take its place")
    # the first line, since after a table's head it would be a setting of that table
    changed = f"ledger = {json.dumps(address, ensure_ascii=False)}\n{text}"
    try:
        if tomllib.loads(changed) == {**configuration, "ledger": address} and changed.encode():
            return changed
    except ValueError:
        pass
    raise Refused("this address cannot be written into the configuration file: choose a name in plain letters")
