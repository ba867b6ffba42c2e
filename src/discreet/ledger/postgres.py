"""A ledger in PostgreSQL, in a schema of its own: for several machines.

A writer locks the ledger's one row (``SELECT ... FOR UPDATE``) before it reads anything else, so that writers queue;
and the accounts have their CHECK. What moves the accounts runs with the rights of the ledger's owner, so that the role
under which fits run needs no right to change them (``grants_for``). The key is in the database as well.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import unquote

from discreet.errors import LedgerError, LedgerUnavailable, Unsupported
from discreet.ledger.store import (
    FROZEN,
    NAMED,
    OVER_CAP,
    Connection,
    OverCap,
    Row,
    charge_accounts,
    falls,
    is_charge,
    tables,
)

SCHEMA = "discreet_ledger"
LOCK = "SELECT format FROM ledger WHERE id = 1 FOR UPDATE"
PATIENCE = 60
"""Seconds to wait for another writer, and after which a writer that fell silent loses the lock."""

# A name is looked up in the schema first; pg_temp, unless named, would come before it.
_PATH = f"{SCHEMA}, pg_temp"
_SETTINGS = (
    f"SET LOCAL search_path = {_PATH}; SET LOCAL synchronous_commit = on; SET LOCAL lock_timeout = '{PATIENCE}s'; "
    f"SET LOCAL idle_in_transaction_session_timeout = '{PATIENCE}s'"
)
# As libpq reads a URL: what stands before an @ is a user, and a password up to that @. Nothing else may have an @.
_HOST = r"(?:\[[0-9a-fA-F:.]*\]|[^][:@/?,]*)(?::\d*)?"
_URL = re.compile(
    r"(?P<scheme>postgres(?:ql)?://)(?:(?P<user>[^:@/]*)(?::[^@/]*)?@|(?![^/]*@))"
    rf"(?P<hosts>{_HOST}(?:,{_HOST})*)(?P<database>/[^@/?]*)?(?P<options>\?.*)?",
    re.DOTALL,
)


def _is_secret(option: str) -> bool:
    name = unquote(option.partition("=")[0]).lower()
    return "password" in name or "secret" in name


def _driver() -> Any:
    try:
        import psycopg
    except ImportError:
        raise LedgerUnavailable("a ledger in PostgreSQL needs psycopg: pip install 'discreet[postgres]'") from None
    return psycopg


def grants_for(role: str) -> list[str]:
    """The statements by which the ledger's owner lets a role charge fits, and nothing else.

    The role can neither change a cap, an account or an entry, nor take back a charge. Anyone who holds it reads the key
    and the fingerprints, which fits compare records with: it is for the machines that read the records. It can also
    spoil the ledger by entries that no ledger writes: they cannot overspend, and ``verify`` finds them.
    """
    if not role or "\0" in role:
        raise LedgerError("name the role that the rights are for")
    to = 'TO "' + role.replace('"', '""') + '"'

    def on(*names: str) -> str:
        return "ON " + ", ".join(f"{SCHEMA}.{name}" for name in names)

    return [
        f"GRANT USAGE ON SCHEMA {SCHEMA} {to}",
        f"GRANT SELECT {on('ledger', 'entry', 'account', 'release', 'known', 'secret')} {to}",
        f"GRANT INSERT {on('entry', 'release', 'known', 'notice', 'seen')} {to}",
        f"GRANT SELECT, UPDATE {on('seen')} {to}",
        # FOR UPDATE asks for it; the row is frozen all the same
        f"GRANT UPDATE (id) {on('ledger')} {to}",
    ]


class _Open:
    """A PostgreSQL connection as the ledger wants it; values never become part of a statement."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def rows(self, statement: str, *values: object) -> Sequence[Row]:
        result: list[Row] = self._connection.execute(statement.replace("?", "%s"), values).fetchall()
        return result

    def run(self, statement: str, *values: object) -> None:
        self._connection.execute(statement.replace("?", "%s"), values)


class PostgresStore:
    """A ledger behind a URL: ``postgresql://user@host/database``."""

    def __init__(self, url: str) -> None:
        self._url = url

    @property
    def address(self) -> str:
        """The URL without its password and options; nothing of one that is not written as it should be."""
        parts = _URL.fullmatch(self._url)
        if parts is None:
            return "postgresql://..."
        user = "" if parts["user"] is None else parts["user"] + "@"
        return parts["scheme"] + user + parts["hosts"] + (parts["database"] or "")

    @property
    def open_address(self) -> str | None:
        """The URL with its options and without its secrets, for other processes; None where that cannot be known."""
        parts = _URL.fullmatch(self._url)
        if parts is None:
            return None
        options = [option for option in (parts["options"] or "?")[1:].split("&") if option and not _is_secret(option)]
        return self.address + ("?" + "&".join(options) if options else "")

    def create(self, name: str, key: bytes) -> None:
        """Make the schema with its tables, rules and key."""
        errors = _driver().errors
        with self._transaction("READ_COMMITTED") as at:
            if at.rows("SHOW server_encoding")[0][0] != "UTF8":
                raise LedgerError("a ledger needs a database with the encoding UTF8: create one")
            try:
                at.run(f"CREATE SCHEMA {SCHEMA}")
            except (errors.DuplicateSchema, errors.UniqueViolation):  # the latter: by another, at this moment
                raise LedgerError("there is a ledger in this database already: use it, or another database") from None
            for statement in tables():
                # by bytes, as SQLite: an index must not depend on the machine's idea of an alphabet
                at.run(statement.replace("TEXT", 'TEXT COLLATE "C"'))
            at.run(NAMED, name)
            at.run("CREATE TABLE secret (id BIGINT PRIMARY KEY CHECK (id = 1), key TEXT NOT NULL)")
            at.run("INSERT INTO secret VALUES (1, ?)", key.hex())
            _rules(at)

    def key(self) -> bytes:
        """The key, from its table."""
        with self.reading() as at:
            return bytes.fromhex(at.rows("SELECT key FROM secret")[0][0])

    def bind(self) -> None:
        """It has no place."""
        raise Unsupported("a ledger in PostgreSQL has no place of its own: its address is all there is to change")

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Behind the lock on the ledger's row. What is read after it is as the last writer left it."""
        with self._transaction("READ_COMMITTED") as at:
            at.rows(LOCK)
            yield at

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A snapshot."""
        with self._transaction("REPEATABLE_READ", read_only=True) as at:
            yield at

    @contextmanager
    def _transaction(self, isolation: str, *, read_only: bool | None = None) -> Iterator[Connection]:
        psycopg = _driver()
        try:
            with psycopg.connect(self._url, client_encoding="utf8") as connection:
                connection.isolation_level = psycopg.IsolationLevel[isolation]
                connection.read_only = read_only
                connection.execute(_SETTINGS)
                yield _Open(connection)
        except psycopg.Error as error:
            raise _explained(error) from None


def _explained(error: object) -> Exception:
    """What a database's error means here, in words that hold no part of the URL."""
    psycopg = _driver()
    if isinstance(error, psycopg.IntegrityError):
        if error.diag.constraint_name == OVER_CAP:
            return OverCap()
        return LedgerError("the ledger's database refused an entry: run `discreet budget verify`")
    if isinstance(error, psycopg.errors.UndefinedTable):
        return LedgerUnavailable(
            "there is no ledger in this database, or you have no right to it: create it with `discreet budget init`, "
            "or ask its owner"
        )
    if isinstance(error, psycopg.errors.InsufficientPrivilege):
        return LedgerUnavailable("your role has no right to do this in the ledger's database: ask its owner")
    return LedgerUnavailable(
        f"the ledger's database cannot be used ({type(error).__name__}): is it running, may you connect, or is it "
        "busy? A password is looked for in PGPASSWORD and ~/.pgpass, and is not passed on to other processes. Nothing "
        "was granted; what was being written may stand"
    )


def _rules(at: Connection) -> None:
    """The triggers."""

    def rule(name: str, when: str, body: str) -> None:
        # The owner's rights, a fixed place to look names up in, and for no other table than the ledger's own.
        at.run(
            f"CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER "
            f"SET search_path = {_PATH} AS $$ BEGIN {body} END $$"
        )
        at.run(f"REVOKE ALL ON FUNCTION {name}() FROM PUBLIC")
        at.run(f"CREATE TRIGGER {name} {when} EXECUTE FUNCTION {name}()")

    for table in (*FROZEN, "account"):
        removed = "DELETE" if table == "account" else "UPDATE OR DELETE"
        rule(f"{table}_is_frozen", f"BEFORE {removed} ON {table} FOR EACH ROW", "RAISE EXCEPTION 'append-only';")
        rule(f"{table}_is_kept", f"BEFORE TRUNCATE ON {table}", "RAISE EXCEPTION 'append-only';")
    never_falls = f"BEFORE UPDATE ON account FOR EACH ROW WHEN ({falls()})"
    rule("account_never_falls", never_falls, "RAISE EXCEPTION 'no refunds';")
    moves = f"AFTER INSERT ON entry FOR EACH ROW WHEN ({is_charge()})"
    rule("entry_moves_account", moves, f"{charge_accounts('least')} RETURN NULL;")
