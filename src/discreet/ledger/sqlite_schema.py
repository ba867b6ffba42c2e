"""The tables and rules of a ledger in SQLite's words."""

from discreet.ledger.store import FROZEN, NAMED, Connection, charge_accounts, falls, is_charge, tables

REPLACED = {
    "account": "name = NEW.name",
    "entry": "seq = NEW.seq OR charge_id = NEW.charge_id OR prev = NEW.prev OR hash = NEW.hash",
    "known": "dataset = NEW.dataset",
    "ledger": "id = NEW.id",
    "release": "charge_id = NEW.charge_id",
}
"""What REPLACE would remove without a word where a shell leaves ``recursive_triggers`` off."""


def create(at: Connection, name: str) -> None:
    """Make everything, inside one transaction."""
    for statement in tables():
        at.run(_strict(statement))
    at.run(NAMED, name)
    for table in FROZEN:
        for change in ("UPDATE", "DELETE"):
            _rule(at, f"{table}_keeps_from_{change}", f"BEFORE {change} ON {table}", "append-only")
    for table, same in REPLACED.items():
        again = f"BEFORE INSERT ON {table} WHEN EXISTS (SELECT 1 FROM {table} WHERE {same})"
        _rule(at, f"{table}_is_not_replaced", again, "append-only")
    _rule(at, "account_is_kept", "BEFORE DELETE ON account", "append-only")
    _rule(at, "account_never_falls", f"BEFORE UPDATE ON account WHEN {falls()}", "no refunds")
    moves = f"AFTER INSERT ON entry WHEN {is_charge()}"
    at.run(f"CREATE TRIGGER entry_moves_account {moves} BEGIN {charge_accounts('min')} END")


def _rule(at: Connection, name: str, when: str, said: str) -> None:
    at.run(f"CREATE TRIGGER {name} {when} BEGIN SELECT RAISE(ABORT, '{said}'); END")


def _strict(statement: str) -> str:
    """With types that are enforced."""
    if not statement.startswith("CREATE TABLE"):
        return statement
    return statement.replace("BIGINT", "INTEGER").replace("DOUBLE PRECISION", "REAL") + " STRICT"
