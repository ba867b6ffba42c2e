"""Whether a fit will fit into memory: told before anything is charged."""

from typing import TYPE_CHECKING, Any

from discreet.budget import Neighbors
from discreet.cli.errors import Refused

if TYPE_CHECKING:
    from discreet.schema.schema import Schema


def memory_facts(schema: "Schema", source: Any, neighbors: Neighbors) -> dict[str, int | None]:
    """Bytes that the fit will take, by an estimate from public facts, and bytes that this machine has left."""
    from discreet.curator import available_memory, needed_memory

    return {"needed": needed_memory(schema, source, neighbors), "available": available_memory()}


def memory_text(facts: dict[str, int | None]) -> str:
    """The same in words."""
    needed, available = facts["needed"], facts["available"]
    has = "" if available is None else f"; this machine has {_size(available)} left"
    if needed is None:
        return f"memory: not estimated, since the number of rows is private{has}"
    return f"memory: about {_size(needed)}{has}"


def check_memory(facts: dict[str, int | None]) -> None:
    """Refuse a fit that would run out of memory after it was charged."""
    needed, available = facts["needed"], facts["available"]
    if needed is not None and available is not None and needed > available:
        raise Refused(
            f"the fit would take about {_size(needed)} of memory, and this machine has {_size(available)} left: use a "
            "larger one, declare fewer columns or categories, or begin all the same with --ignore-memory. Nothing was "
            "charged"
        )


def _size(count: int) -> str:
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.0f} MB"
