"""Which store is behind an address."""

from pathlib import Path

from discreet.errors import LedgerError
from discreet.ledger.store import Store

MEMORY = ":memory:"


def store_for(address: str | Path) -> Store:
    """The store behind an address: a path, a PostgreSQL URL, or ``:memory:``."""
    text = str(address)
    if text.startswith(("postgresql://", "postgres://")):
        from discreet.ledger.postgres import PostgresStore

        return PostgresStore(text)
    if "://" in text:
        raise LedgerError("a ledger is a path, a URL that begins with postgresql://, or :memory:")
    from discreet.ledger.sqlite import MemoryStore, SQLiteStore

    return MemoryStore() if text == MEMORY else SQLiteStore(text)
