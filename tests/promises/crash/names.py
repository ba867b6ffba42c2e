"""One ledger file under two path names, as links, containers and mounts make them."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

HOW = ("symlink", "symlinked folder", "hard link", "hard link elsewhere", "mounted file", "mounted folder")
SHARED = ("symlink", "symlinked folder", "mounted folder")
"""Where both names lead to one place: the write-ahead log is the same file."""


@contextmanager
def second_name(path: Path, how: str) -> Iterator[Path]:
    """Another path to the ledger at ``path``, with its key; skips where mounting is not allowed."""
    place = path.parent / "elsewhere"
    if how == "symlinked folder":
        place.symlink_to(path.parent)
        yield place / path.name
        return
    place.mkdir()
    other = (path.parent if how == "hard link" else place) / ("other.db" if how == "hard link" else path.name)
    if how == "mounted folder":
        with _mounted(path.parent, place):
            yield place / path.name
    elif how == "mounted file":
        key, other_key = (one.with_name(one.name + ".key") for one in (path, other))
        other.touch()
        other_key.touch()
        with _mounted(path, other), _mounted(key, other_key):
            yield other
    else:
        for end in ("", ".key"):
            from_, to = path.with_name(path.name + end), other.with_name(other.name + end)
            to.symlink_to(from_) if how == "symlink" else os.link(from_, to)
        yield other


@contextmanager
def _mounted(what: Path, where: Path) -> Iterator[None]:
    if subprocess.run(["mount", "--bind", what, where], capture_output=True, check=False).returncode:
        pytest.skip("mounting is not allowed here")
    try:
        yield
    finally:
        subprocess.run(["umount", where], capture_output=True, check=True)
