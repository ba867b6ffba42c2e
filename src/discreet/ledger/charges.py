"""Charge ids: what is asked for twice under one id is charged once, and released once."""

from typing import Any

from discreet.errors import LedgerError
from discreet.ledger.chain import Entry, canonical
from discreet.ledger.store import Connection

_KEEP = (
    "INSERT INTO release (charge_id, body) SELECT CAST(? AS TEXT), CAST(? AS TEXT) "
    "WHERE NOT EXISTS (SELECT 1 FROM release WHERE charge_id = ?)"
)
_ASKED = ("budget", "events", "label", "about")
"""What makes two charges the same."""


def keep(at: Connection, charge_id: str, release: str | None) -> None:
    """Keep what a charge released, the first time; None: its run failed."""
    at.run(_KEEP, charge_id, release, charge_id)


def released(at: Connection, charge_id: str | None) -> str | None:
    """Return what a charge released; an error where its run failed."""
    found = at.rows("SELECT body FROM release WHERE charge_id = ?", charge_id)
    if found and found[0][0] is None:
        raise LedgerError(
            "the run under this charge_id failed after it was charged: ask again under another id, at another charge"
        )
    return found[0][0] if found else None


def repeated(at: Connection, old: Entry, dataset: str, body: dict[str, Any]) -> str | None:
    """Return what the same charge released before; None: it may run under the charge that stands."""
    asked, before = ({name: one.get(name) for name in _ASKED} for one in (body, old.contents))
    if old.dataset != dataset or canonical(before) != canonical(asked):
        raise LedgerError("this charge_id was used before, for something else: give each charge an id of its own")
    release, promised = released(at, old.charge_id), old.contents.get("certificates")
    if release is None and promised not in (None, body.get("certificates")):
        raise LedgerError(
            "this charge was made and not answered, and its certificate would say something else now: was it "
            "made by another version of discreet? Ask again under another name, at another charge"
        )
    return release
