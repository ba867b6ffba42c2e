"""Files that commands write: new ones only. What is there already, be it a link, is neither replaced nor followed."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from discreet.atomic_files import passing, sync
from discreet.cli.errors import Refused

PICTURES = (".png", ".svg", ".pdf")


def free(place: Path, option: str = "--out", *, endings: tuple[str, ...] = ()) -> Path:
    """Return a place that a new file can be written to; refuse any other, before the work rather than after it."""
    if endings and place.suffix.lower() not in endings:
        raise Refused(f"{option} needs a name that ends in {', '.join(endings)}")
    if not place.absolute().parent.is_dir():
        raise Refused(f"{place}: there is no such folder")
    if place.exists() or place.is_symlink():
        raise taken(place, option)
    return place


@contextmanager
def new_file(place: Path, option: str = "--out") -> Iterator[Path]:
    """Give a hidden path of the same name, whose file is put in its place whole when the block ends."""
    free(place, option)
    with passing(place, folder=True) as folder:
        made = folder / place.name
        yield made
        sync(made)
        try:
            os.link(made, place)  # a rename would replace what has come in between
        except FileExistsError:
            raise taken(place, option) from None
        except OSError:  # a drive without hard links
            os.rename(made, free(place, option))


def write_new(place: Path, text: str, option: str = "--out") -> None:
    """Write a text to a new file."""
    with new_file(place, option) as made:
        made.write_text(text, encoding="utf-8")


def taken(place: Path, option: str = "--out") -> Refused:
    """Return the refusal of a place where something is already."""
    return Refused(f"{place}: there is a file already: name another with {option}, or remove this one")
