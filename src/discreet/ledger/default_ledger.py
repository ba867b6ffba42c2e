"""Which ledger is meant where none is named: the environment's, then the configuration file's.

``DISCREET_LEDGER`` is a path or a URL. The file is ``discreet/config.toml`` under ``XDG_CONFIG_HOME`` (``~/.config``),
with a line ``ledger = "..."``.
"""

import os
import tomllib
from pathlib import Path
from types import NoneType
from typing import Any

from discreet.errors import LedgerError
from discreet.ledger.ledger import Ledger
from discreet.ledger.store import MEMORY, is_path, store_for

VARIABLE = "DISCREET_LEDGER"


def config_file() -> Path:
    """Where the configuration file is, whether it exists or not."""
    home = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(home) / "discreet" / "config.toml"


def default_address() -> str | None:
    """The ledger that is used where none is named; None where none is configured."""
    named = os.environ.get(VARIABLE)
    if named:
        return named
    path = config_file()
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError):
        raise LedgerError("the configuration file discreet/config.toml cannot be read as TOML: correct it") from None
    ledger = found.get("ledger")
    if ledger is not None and not isinstance(ledger, str):
        raise LedgerError('in the configuration file, ledger must be a text: ledger = "/path/to/budget.db"')
    return ledger or None


def account_of(ledger: Ledger | str | Path | bool | None, dataset: str | None) -> Ledger | None:
    """The ledger that a data set's fits are charged to; an error where only one of the two is named."""
    found = ledger_for(ledger)
    if found is not None and dataset is None:
        raise LedgerError(
            "a ledger is configured, so name the data set: pass dataset='...' as its owner registered it, or "
            "ledger=False where the records are public"
        )
    if found is None and dataset is not None and ledger is not False:
        raise LedgerError("the data set is named, but no ledger: pass ledger='budget.db', or set DISCREET_LEDGER")
    return found


def kept(ledger: Any) -> Any:
    """What an estimator may keep of the ledger that it was given: an address that shows no secret.

    A path stays as it is. A URL that holds a password becomes a ``Ledger``, which neither shows nor pickles it. What is
    no address is refused at once: nobody knows what is in it.
    """
    if not isinstance(ledger, (str, Path)) or is_path(ledger) or ledger == MEMORY:
        return ledger
    return ledger if store_for(ledger).open_address == str(ledger) else Ledger(ledger)


def ledger_for(named: Ledger | str | Path | bool | None) -> Ledger | None:
    """The ledger that is meant: itself, by its address, the configured one for None; None for False."""
    if named is False:
        return None
    if named is None:
        named = default_address()
    if not isinstance(named, (str, Path, Ledger, NoneType)):
        raise LedgerError("ledger is a path, a URL or a Ledger; False for public data")
    return named if named is None or isinstance(named, Ledger) else Ledger(named)
