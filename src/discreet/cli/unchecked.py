"""What keeps a check from an answer: neither yes nor no, exit code 2."""

import json
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from discreet.cli.errors import UNSERVED
from discreet.errors import LedgerDamaged, LedgerUnavailable

UNCHECKED = (ImportError, OSError, LedgerUnavailable, LedgerDamaged)
"""A library is missing, a file cannot be read, a ledger is missing, out of reach or damaged."""
ALL = "all but what the fit itself released"
PARTLY = "releases, budget, unit and relation"
ONLY_PARTLY = f"its entry was not told the certificate: only {PARTLY} were compared"


@contextmanager
def checkable(as_json: bool) -> Iterator[None]:
    """Say that something could not be checked where that is so, and end the command."""
    try:
        yield
    except UNCHECKED as error:
        if as_json:
            typer.echo(json.dumps({"holds": None, "reason": _reason(error)}, indent=2))
        else:
            typer.echo(f"could not be checked: {_reason(error)}", err=True)
        raise typer.Exit(UNSERVED) from None


def _reason(error: BaseException) -> str:
    """discreet's own words; of others' errors what was not found or not readable, and nothing else."""
    if isinstance(error, OSError):
        where = "" if error.filename is None else f"{error.filename}: "
        return f"{where}{(error.strerror or 'cannot be used').lower()}"
    if isinstance(error, ImportError) and type(error) in (ImportError, ModuleNotFoundError):
        return f"{error.name or 'a library'} is not installed"
    return " ".join(str(error).split())
