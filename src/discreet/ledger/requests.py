"""Requests: what is asked for twice under one name is charged once, and released once."""

from typing import Any

from discreet.errors import LedgerError
from discreet.ledger.chain import Entry, canonical
from discreet.ledger.store import Connection

_KEEP = (
    "INSERT INTO release (request, body) SELECT CAST(? AS TEXT), CAST(? AS TEXT) "
    "WHERE NOT EXISTS (SELECT 1 FROM release WHERE request = ?)"
)
_ASKED = ("budget", "events", "label", "about")
"""What makes two requests the same."""


def keep(at: Connection, request: str, release: str | None) -> None:
    """Keep what a request released, the first time; None: its run failed."""
    at.run(_KEEP, request, release, request)


def released(at: Connection, request: str | None) -> str | None:
    """Return what a request released; an error where its run failed."""
    found = at.rows("SELECT body FROM release WHERE request = ?", request)
    if found and found[0][0] is None:
        raise LedgerError("this request failed after it was charged: ask again under another name, at another charge")
    return found[0][0] if found else None


def repeated(at: Connection, old: Entry, dataset: str, body: dict[str, Any]) -> str | None:
    """Return what the same request released before; None: it may run under the charge that stands."""
    asked, before = ({name: one.get(name) for name in _ASKED} for one in (body, old.contents))
    if old.dataset != dataset or canonical(before) != canonical(asked):
        raise LedgerError("this request was made before, for something else: give each request a name of its own")
    release, promised = released(at, old.request), old.contents.get("certificates")
    if release is None and promised not in (None, body.get("certificates")):
        raise LedgerError(
            "this request was charged and not answered, and its certificate would say something else now: was it "
            "made by another version of discreet? Ask again under another name, at another charge"
        )
    return release
