"""Files that are there whole or not at all: written beside their place, told to the disk, then put there."""

import os
import secrets
from pathlib import Path


def beside(path: Path) -> Path:
    """A hidden name in the same folder that nobody else uses."""
    return path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")


def sync(path: Path) -> None:
    """Wait until a file, or a folder's list of files, is on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
