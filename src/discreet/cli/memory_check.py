"""How much memory and disk a fit will take: printed, and refused where it is not there, before anything is charged."""

from typing import TYPE_CHECKING, Any

from discreet.cli.errors import Refused

if TYPE_CHECKING:
    from discreet.curator import Needs


def memory_facts(needs: "Needs") -> dict[str, Any]:
    """Return bytes that the fit will take, by an estimate from public facts, and bytes that this machine has left."""
    disk = {"needed": needs.disk, "available": needs.free, "folder": str(needs.folder)}
    return {"needed": needs.memory, "available": needs.available, "disk": disk}


def memory_text(needs: "Needs") -> str:
    """Return the same in words."""
    has = "" if needs.available is None else f"; this machine has {_size(needs.available)} left"
    if needs.memory is None or needs.disk is None:
        return f"memory: not estimated, since the number of rows is private{has}"
    memory = f"memory: about {_size(needs.memory)}{has}"
    if not needs.disk:
        return memory
    free = "" if needs.free is None else f", which has {_size(needs.free)} left"
    return f"{memory}\ndisk: about {_size(needs.disk)} of scratch files in {needs.folder}{free}"


def check_memory(needs: "Needs") -> None:
    """Refuse a fit that would run out of room after it was charged."""
    if needs.fits or needs.memory is None:
        return
    if needs.disk:
        raise Refused(
            f"the encoded rows would take about {_size(needs.disk)} of scratch files in {needs.folder}, which has less "
            "room: give another folder with --scratch, or more memory with --memory. Nothing was charged"
        )
    raise Refused(
        f"the fit would take about {_size(needs.memory)} of memory, which this machine does not have: leave --memory "
        "out, and encoded rows are kept on disk. Nothing was charged"
    )


def _size(count: int) -> str:
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.0f} MB"
