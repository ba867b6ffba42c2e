"""Which store is behind an address."""

import re
from pathlib import Path

from discreet.errors import LedgerError
from discreet.ledger.store import Store

MEMORY = ":memory:"
URL = ("postgresql://", "postgres://")

# What somebody wrote for a URL and what is none: it may hold a password, and must not become the name of a file.
_LIKE_A_URL = re.compile(
    r"\s*(?:[a-z][a-z0-9+.-]+:/|postgres(?:ql)?:|[^/\\]*:[^/\\]*@)|.*(?:://|password\s*=)", re.I | re.S
)


def is_path(address: str | Path) -> bool:
    """Whether an address is a file's; LedgerError where it is nothing. No part of it is shown."""
    text = str(address)
    if text == MEMORY or (isinstance(address, str) and text.startswith(URL)):
        return False
    if _LIKE_A_URL.match(text):
        raise LedgerError(
            "a ledger is a path, a URL such as postgresql://user@host/database, or :memory:. This is neither: correct "
            "it, and keep the password in ~/.pgpass"
        )
    return True


def store_for(address: str | Path) -> Store:
    """The store behind an address: a path, a PostgreSQL URL, or ``:memory:``."""
    if is_path(address):
        from discreet.ledger.sqlite import SQLiteStore

        return SQLiteStore(address)
    if str(address) == MEMORY:
        from discreet.ledger.sqlite import MemoryStore

        return MemoryStore()
    from discreet.ledger.postgres import PostgresStore

    return PostgresStore(str(address))
