"""What ``discreet budget`` shows: accounts with a bar of what is left, and the history."""

import math
import shlex
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.text import Text

    from discreet.cli.console import Console
    from discreet.ledger.account import Account
    from discreet.ledger.chain import Entry

LEGEND = (
    "spent: what all fits cost together, at the cap's delta. added up: the sum of their epsilons. "
    "room: the largest fit that would still be granted."
)


def account_facts(accounts: Sequence["Account"]) -> list[dict[str, Any]]:
    """Plain facts on every account, each whole followed by its parts."""
    parts: dict[str | None, list[Account]] = {}
    for account in accounts:
        parts.setdefault(account.parent, []).append(account)
    listed = []
    for whole in parts.get(None, []):
        listed.append(_facts(whole, parts.get(whole.name, [])))
        listed += [_facts(part, []) for part in parts.get(whole.name, [])]
    return listed


def _facts(account: "Account", parts: Iterable["Account"]) -> dict[str, Any]:
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
        "left": min(1 - one.share for one in family),
        "room": min(one.left for one in family),
    }


def print_accounts(facts: Sequence[dict[str, Any]], notices: Sequence[str]) -> None:
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
    wholes = {one["dataset"] for one in facts if one["part_of"] is None}
    for place, one in enumerate(facts):
        below = one["part_of"] in wholes
        if place and not below:
            table.add_row()
        table.add_row(*_row(one, below, console))
    console.print(table)
    if any(one["fits"] for one in facts):
        console.print(f"\n{LEGEND}", style="dim")
    for notice in notices:
        console.print(f"\nWarning: {_printable(notice)}", style="yellow")


def _row(one: dict[str, Any], below: bool, console: "Console") -> list[Any]:
    from rich.text import Text

    name = Text(("  " if below else "") + _printable(one["dataset"]))
    cap = f"{one['cap']['epsilon']:g}, {one['cap']['delta']:g}"
    if below:
        cap = ""
    else:
        told = f"{one['neighbors']}, {one['unit']}"
        name.append(f"\n{told}" if one["part_of"] is None else f"\n{told}\npart of {_printable(one['part_of'])}", "dim")
    composed = one["spent"]["epsilon"]
    spent = "-" if composed is None else _short(composed)
    return [
        name,
        cap,
        f"{one['fits']:,}",
        spent,
        _short(one["added_up"]["epsilon"]),
        _short(one["room"], down=True),
        _bar(one["left"], console),
    ]


def _bar(left: float, console: "Console") -> "Text":
    """What is left, as a bar that is read without color; a cell is full or empty, rounded down."""
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


def entry_facts(entry: "Entry") -> dict[str, Any]:
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


def released(events: Iterable[dict[str, Any]]) -> str:
    """How many answers of which kind: ``9 gaussian, 1 laplace``."""
    counts: dict[str, int] = {}
    for event in events:
        inner = event.get("event", event)
        kind = inner["kind"].replace("_", " ") + (" on samples" if inner is not event else "")
        counts[kind] = counts.get(kind, 0) + inner.get("count", 1)
    return ", ".join(f"{count:,} {kind}" for kind, count in counts.items()) or "nothing"


def exported(entry: "Entry") -> dict[str, Any]:
    """All that is hashed, in the order in which it is, and the hash."""
    from discreet.ledger.privacy_filters import AMOUNT_NAMES

    facts = {"seq": entry.seq, "kind": entry.kind, "dataset": entry.dataset, "charge_id": entry.charge_id}
    charge = {name: getattr(entry.charge, name) for name in AMOUNT_NAMES}
    return {**facts, **charge, "body": entry.body, "prev": entry.prev, "hash": entry.hash}


def print_history(facts: Sequence[dict[str, Any]], *, earlier: bool) -> None:
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
    for one in facts:
        when = str(one.get("time") or "").replace("T", " ")[:16]
        table.add_row(
            str(one["entry"]), _printable(when), _printable(one["kind"]), _printable(one["dataset"]), _what(one)
        )
    console.print(table)
    if earlier:
        console.print(f"\nThere are earlier entries: --last {10 * len(facts)} shows more.", style="dim")


def _what(one: dict[str, Any]) -> "Text":
    from rich.text import Text

    if "unreadable" in one:
        return Text("cannot be read: run discreet budget verify", "red")
    if "part_of" in one:
        return Text(f"part of {_printable(one['part_of'])}")
    if "cap" in one:
        text = Text(f"cap {_pair(one['cap'])}")
        return text.append(f"\n{_printable(one['neighbors'])}, {_printable(one['unit'])}", "dim")
    text = Text(_pair(one["budget"]))
    text.append(f"\n{_printable(one['label'])}: ".lstrip(": ") + _printable(one["released"]), "dim")
    if one["charge_id"] is not None:
        text.append(f"\ncharge id {_printable(one['charge_id'])}", "dim")
    return text


def _pair(budget: dict[str, Any]) -> str:
    return _printable(f"epsilon {budget['epsilon']:g}, delta {budget['delta']:g}")


def print_made(found: dict[str, Any]) -> None:
    """Where a new ledger is, and what to do next."""
    console = _console()
    is_file = found["key"] is not None
    console.print(f"ledger   {found['ledger']}", soft_wrap=True)
    if is_file:
        console.print(f"key      {found['key']}", soft_wrap=True)
    if found["default"]:
        console.print(f"default  named in {found['default']}", soft_wrap=True)
    console.print(
        "\nThe key is readable by you alone. Keep it so, and back it up with the ledger: without its key, no fit is "
        "admitted."
        if is_file
        else "\nThe key is in the database. Back the whole database up: a ledger that is set back has forgotten."
    )
    console.print("\nNext", style="bold")
    if not found["default"]:
        named = shlex.quote(found["ledger"]) if is_file else "...  # the URL, without a password"
        console.print(f"  export DISCREET_LEDGER={named}", soft_wrap=True)
    console.print("  discreet budget grant NAME --epsilon 3 --delta 1e-6", soft_wrap=True)


def _printable(text: object) -> str:
    """On one line, without control characters, in the terminal's alphabet: charge ids are whatever an analyst wrote."""
    shown = "".join(sign if sign.isprintable() else "?" for sign in str(text))
    alphabet = sys.stdout.encoding or "ascii"
    return shown.encode(alphabet, "replace").decode(alphabet)


def _console() -> "Console":
    from discreet.cli.console import Console

    console = Console(markup=False, highlight=False)
    # a number that is cut tells nothing: a narrow terminal wraps whole lines instead
    return console if console.width >= 78 else Console(markup=False, highlight=False, width=78)
