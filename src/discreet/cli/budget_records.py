"""``discreet budget history | verify | export``: what stands in a ledger, and whether it holds together."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.cli.errors import NO, UNCHECKED, checkable
from discreet.cli.options import Address, AsJson, echo_json, opened
from discreet.cli.outputs import write_new
from discreet.cli.terminal_text import number_of
from discreet.cli.verify import ONLY_PARTLY
from discreet.errors import DiscreetError, LedgerDamaged, LedgerError

if TYPE_CHECKING:
    from discreet.ledger.ledger import Ledger
    from discreet.ledger.verification import Verified

RECENT = 20


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
    from discreet.cli.budget_tables import entry_facts, print_history

    found = opened(ledger)
    if dataset is not None:
        found.account(dataset)  # an error where there is none
    entries = found.entries(dataset, last + 1)
    facts = [entry_facts(entry) for entry in entries[-last:]]
    if as_json:
        shown = {"ledger": found.address, "entries": facts, "earlier": len(entries) > last}
        echo_json(shown)
    else:
        print_history(facts, earlier=len(entries) > last)


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


def export(
    file: Annotated[Path, typer.Argument(help="Where to write; - for stdout. A file that exists is not touched.")],
    ledger: Address = None,
) -> None:
    """Write all entries as JSON lines, for anyone who wants to check the chain without discreet.

    A line has the fields that are hashed, in their order, and the hash. The hash is SHA-256 of the JSON list of the
    other values, without spaces; `prev` is the hash of the line before, 64 zeros for the first.

    Neither the key nor anything that was worked out from records is written: no fingerprints, no releases.
    """
    from discreet.cli.budget_tables import exported

    lines = [json.dumps(exported(entry)) + "\n" for entry in opened(ledger).entries()]
    if str(file) == "-":
        sys.stdout.writelines(lines)
        return
    write_new(file, "".join(lines), "FILE")
    typer.echo(f"{number_of(len(lines), 'entry', 'entries')} written to {file}", err=True)


def _verified(ledger: "Ledger", file: Path | None, *, prices: bool) -> "Verified":
    if file is None:
        return ledger.verify(prices=prices)
    from discreet.cli.inputs import read

    certificate = read(file).certificate
    held = ledger.verify(certificate, prices=prices)
    if not certificate.verify().is_private:
        raise LedgerError(f"there is no guarantee: {certificate.stamp}")
    return held
