"""Where the private copy of the records is kept: in memory, or in scratch files that have no name.

A scratch file is opened for its owner alone (mode 0600) and its name is removed before a byte is written, so that no
other process can open it and nothing is left of it when the process ends, however it ends. What is written there are
encoded rows in the clear: the folder belongs on a disk that may hold the table itself.
"""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from discreet.errors import Unsupported


class Storage(Protocol):
    """Gives out arrays that are not filled yet."""

    on_disk: bool

    def empty(self, shape: int | tuple[int, ...], dtype: Any) -> NDArray[Any]:
        """Return an array of this shape and type with unspecified values."""
        ...


class InMemory:
    """Arrays of this process."""

    on_disk = False

    def empty(self, shape: int | tuple[int, ...], dtype: Any) -> NDArray[Any]:
        """Return an array in memory."""
        return np.empty(shape, dtype=dtype)


@dataclass(frozen=True)
class OnDisk:
    """Arrays that are mapped from nameless scratch files in ``folder``; each goes with its last reference."""

    folder: Path
    on_disk = True

    def empty(self, shape: int | tuple[int, ...], dtype: Any) -> NDArray[Any]:
        """Return an array in a scratch file; the system keeps in memory what there is room for."""
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        if size == 0:
            return np.empty(shape, dtype=dtype)
        try:
            with tempfile.TemporaryFile(dir=self.folder) as file:
                os.posix_fallocate(file.fileno(), 0, size)  # a full disk is met here, not while a page is written
                return np.asarray(np.memmap(file, dtype=dtype, mode="r+", shape=shape))
        except OSError:
            raise Unsupported(
                "the folder for scratch files cannot hold the encoded rows: set DISCREET_SCRATCH to one with room"
            ) from None


MEMORY = InMemory()


@dataclass(frozen=True)
class Limits:
    """How much memory the encoded rows of a fit may take, and where they are kept beyond that."""

    memory: int | None = None
    folder: Path | None = None


_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_SHARE = 2
"""Encoded rows may take one part in so many of the memory that is left: recoded copies take as much again."""

_limits: ContextVar[Limits] = ContextVar("discreet_limits")


def size_of(text: str) -> int:
    """Return the bytes that a size such as ``"4GB"`` or ``"500 MB"`` means."""
    number = text.strip().upper().rstrip("KMGTB ")
    unit = text.strip().upper()[len(number) :].strip()
    try:
        size = float(number) * _UNITS[unit]
    except (KeyError, ValueError):
        raise Unsupported("a size is a number with a unit, such as 500MB or 4GB") from None
    if not 0 <= size < 2**62:
        raise Unsupported("a size is a number with a unit, such as 500MB or 4GB")
    return int(size)


def current_limits() -> Limits:
    """Return the limits in force: those of ``limited``, else of DISCREET_MEMORY and DISCREET_SCRATCH."""
    found = _limits.get(Limits())
    memory, folder = os.environ.get("DISCREET_MEMORY", ""), os.environ.get("DISCREET_SCRATCH", "")
    return Limits(
        size_of(memory) if found.memory is None and memory else found.memory,
        found.folder or Path(folder or tempfile.gettempdir()),
    )


@contextmanager
def limited(memory: int | str | None = None, folder: str | Path | None = None) -> Iterator[None]:
    """Keep encoded rows within ``memory`` inside the block, and in scratch files in ``folder`` beyond it.

    Parameters
    ----------
    memory : int, str or None, default=None
        Bytes, or a size such as ``"4GB"``. None: half of what this machine has left.
    folder : str, path or None, default=None
        Where scratch files are made. None: the system's folder for temporary files.

    Yields
    ------
    None
        Nothing.

    Examples
    --------
    >>> from discreet.scale import limited
    >>> with limited(memory="500MB"):
    ...     pass  # model.fit(...): larger tables are kept on disk
    """
    before = _limits.get(Limits())
    given = size_of(memory) if isinstance(memory, str) else memory
    where = before.folder if folder is None else Path(folder)
    token = _limits.set(Limits(before.memory if given is None else given, where))
    try:
        yield
    finally:
        _limits.reset(token)


def storage_for(size: int) -> Storage:
    """Return where ``size`` bytes of encoded rows are kept: in memory as long as they fit."""
    limits = current_limits()
    allowed = limits.memory
    if allowed is None:
        from discreet.curator.tables.memory import available_memory

        left = available_memory()
        allowed = None if left is None else left // _SHARE
    if allowed is None or size <= allowed:
        return MEMORY
    assert limits.folder is not None
    return OnDisk(limits.folder)


_PART_VALUES = 1 << 21
_MOST_ROWS = 1 << 17


def rows_per_part(n_columns: int) -> int:
    """Return how many rows are asked at once: so few that what a pass makes of them stays near the processor."""
    return max(1 << 10, min(_MOST_ROWS, _PART_VALUES // max(1, n_columns)))
