"""A ledger in PostgreSQL, in a schema of its own: for several machines.

A writer locks the ledger's one row (``SELECT ... FOR UPDATE``) before it reads anything else, so that writers queue;
and the accounts have their CHECK. What moves the accounts runs with the rights of the ledger's owner, so that an
analyst's role needs no right to change them (the documentation has the grants). The key is in the database as well.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from discreet.errors import LedgerError
from discreet.ledger.store import (
    FROZEN,
    NAMED,
    OVER_CAP,
    Connection,
    OverCap,
    charge_accounts,
    falls,
    is_charge,
    tables,
)

SCHEMA = "discreet_ledger"
LOCK = "SELECT format FROM ledger WHERE id = 1 FOR UPDATE"


def _driver() -> Any:
    try:
        import psycopg
    except ImportError:
        raise LedgerError("a ledger in PostgreSQL needs psycopg: pip install 'discreet[postgres]'") from None
    return psycopg


class _Open:
    """A PostgreSQL connection as the ledger wants it."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def rows(self, statement: str, *values: Any) -> Sequence[tuple[Any, ...]]:
        found: list[tuple[Any, ...]] = self._connection.execute(statement.replace("?", "%s"), values).fetchall()
        return found

    def run(self, statement: str, *values: Any) -> None:
        self._connection.execute(statement.replace("?", "%s"), values)


class PostgresStore:
    """A ledger behind a URL: ``postgresql://user@host/database``."""

    def __init__(self, url: str) -> None:
        self._url = url

    @property
    def address(self) -> str:
        """The URL without its password and options."""
        parts = urlsplit(self._url)
        host = parts.hostname or ""
        where = f"{host}:{parts.port}" if parts.port else host
        return urlunsplit((parts.scheme, f"{parts.username}@{where}" if parts.username else where, parts.path, "", ""))

    def create(self, name: str, key: bytes) -> None:
        """Make the schema with its tables, rules and key."""
        psycopg = _driver()
        with self._transaction(lock=False) as at:
            try:
                at.run(f"CREATE SCHEMA {SCHEMA}")
            except psycopg.errors.DuplicateSchema:
                raise LedgerError("there is a ledger in this database already: use it, or another database") from None
            for statement in tables():
                at.run(statement)
            at.run(NAMED, name)
            at.run("CREATE TABLE secret (id BIGINT PRIMARY KEY CHECK (id = 1), key TEXT NOT NULL)")
            at.run("INSERT INTO secret VALUES (1, ?)", key.hex())
            self._rules(at)

    @staticmethod
    def _rules(at: Connection) -> None:
        def rule(name: str, when: str, body: str) -> None:
            # The owner's rights, and a fixed place to look names up in.
            at.run(
                f"CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER "
                f"SET search_path = {SCHEMA}, pg_temp AS $$ BEGIN {body} END $$"
            )
            at.run(f"CREATE TRIGGER {name} {when} EXECUTE FUNCTION {name}()")

        for table in FROZEN:
            frozen = f"BEFORE UPDATE OR DELETE ON {table} FOR EACH ROW"
            rule(f"{table}_is_frozen", frozen, "RAISE EXCEPTION 'append-only';")
            emptied = f"BEFORE TRUNCATE ON {table} FOR EACH STATEMENT"
            rule(f"{table}_is_kept", emptied, "RAISE EXCEPTION 'append-only';")
        rule("account_is_kept", "BEFORE DELETE ON account FOR EACH ROW", "RAISE EXCEPTION 'append-only';")
        never_falls = f"BEFORE UPDATE ON account FOR EACH ROW WHEN ({falls()})"
        rule("account_never_falls", never_falls, "RAISE EXCEPTION 'no refunds';")
        moves = f"AFTER INSERT ON entry FOR EACH ROW WHEN ({is_charge()})"
        rule("entry_moves_account", moves, f"{charge_accounts('least')} RETURN NULL;")

    def key(self) -> bytes:
        """The key, from its table."""
        with self.reading() as at:
            return bytes.fromhex(at.rows("SELECT key FROM secret")[0][0])

    def writing(self) -> Any:
        """Behind the lock on the ledger's row."""
        return self._transaction(lock=True)

    def reading(self) -> Any:
        """A snapshot."""
        return self._transaction(lock=False)

    @contextmanager
    def _transaction(self, *, lock: bool) -> Iterator[Connection]:
        psycopg = _driver()
        try:
            with psycopg.connect(self._url) as connection:
                connection.execute(f"SET search_path TO {SCHEMA}")
                if not lock:
                    connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
                connection.execute("SET LOCAL synchronous_commit = on")
                at = _Open(connection)
                if lock:
                    at.rows(LOCK)
                yield at
        except psycopg.errors.CheckViolation as error:
            if error.diag.constraint_name == OVER_CAP:
                raise OverCap from None
            raise LedgerError("the ledger's database refused an entry: run `discreet budget verify`") from None
        except psycopg.errors.UndefinedTable:
            raise LedgerError("there is no ledger in this database: create it with `discreet budget init`") from None
        except psycopg.Error as error:
            raise LedgerError(
                f"the ledger's database cannot be used ({type(error).__name__}): is it running, and may you connect? "
                "Nothing was granted"
            ) from None
