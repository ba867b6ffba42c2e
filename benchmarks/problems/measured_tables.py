"""Public tables for comparisons, read from a folder that the user has: none is part of this package.

A table is a packed CSV file (``.csv.gz``) with a header: the last column is the outcome, 0 or 1; a column with anything
but numbers is categorical and becomes one 0/1 column a category; every column is then stretched to [0, 1].

Categories and ranges are *measured from the rows*, as the comparisons of the literature do. That is fine for tables
that are public, and tells nothing of a guarantee: on people's data both are declared from what is publicly known.
"""

import csv
import gzip
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from discreet.bounds import Bounds
from discreet.datasets import CLASSES, Table, hospital
from discreet.errors import DiscreetError

SYNTHETIC = "synthetic"
FOLDER = Path("data")


@dataclass(frozen=True)
class Source:
    """A table's title and the file it is read from."""

    title: str
    file: str


SOURCES = {
    "adult": Source("Adult", "adult.csv.gz"),
    "bank": Source("Bank marketing", "bank_marketing.csv.gz"),
    "ipums-br": Source("IPUMS-BR", "ipums_br.csv.gz"),
}
TITLES = {**{name: source.title for name, source in SOURCES.items()}, SYNTHETIC: "Synthetic hospital stays"}


class MissingTable(DiscreetError):
    """A table that was asked for is not there, or is not laid out as expected."""


def chosen_tables(folder: Path | None, names: Sequence[str] = (), rows: int = 40_000) -> dict[str, Table]:
    """The tables of these names, or all of the folder; the synthetic one (of ``rows``) where there is no folder.

    ``folder`` is None where the user named none: then ``data`` beside the current directory is looked for.
    """
    unknown = [name for name in names if name not in TITLES]
    if unknown:
        raise MissingTable(f"there is no table called {', '.join(unknown)}: choose among {', '.join(TITLES)}")
    if folder is None and not names and not FOLDER.is_dir():
        names = (SYNTHETIC,)
    names = list(dict.fromkeys(names or SOURCES))
    where = FOLDER if folder is None else folder
    absent = [SOURCES[name].file for name in names if name != SYNTHETIC and not (where / SOURCES[name].file).is_file()]
    if absent:
        raise MissingTable(
            f"the folder {where} has no {', '.join(absent)}: name another with --data, or with --table the tables that "
            "are there (--table synthetic needs no file)"
        )
    return {
        name: unit_hospital(rows) if name == SYNTHETIC else read_table(where / SOURCES[name].file) for name in names
    }


def unit_hospital(rows: int) -> Table:
    """The synthetic stays, each column stretched from its codebook's range to [0, 1]: nothing is measured."""
    drawn = hospital(rows)
    low, high = drawn.bounds.ranges(drawn.X.shape[1])
    return Table((drawn.X - low) / (high - low), drawn.y, drawn.names, _unit_bounds(drawn.X.shape[1]))


def read_table(path: Path) -> Table:
    """The table in a packed file, in [0, 1]."""
    with gzip.open(path, "rt", encoding="utf-8", newline="") as lines:
        header, *rows = csv.reader(lines)
    if len(rows) < 2 or len(header) < 2 or any(len(row) != len(header) for row in rows):
        raise MissingTable(f"{path} is not a table with a header, two rows and two columns at least")
    *features, outcome = zip(*rows, strict=True)
    if set(outcome) != {"0", "1"}:
        raise MissingTable(f"the last column of {path} must be the outcome, 0 or 1")
    names: list[str] = []
    columns: list[NDArray[np.float64]] = []
    for name, values in zip(header, features, strict=False):
        found, column = _encoded(name, np.array(values))
        names += found
        columns.append(column)
    X = stretched(np.hstack(columns))
    return Table(X, np.array(outcome, dtype=np.int64), tuple(names), _unit_bounds(X.shape[1]))


def stretched(X: NDArray[np.float64]) -> NDArray[np.float64]:
    """Each column from its least and greatest value to [0, 1]; a constant column becomes 0."""
    low, high = X.min(axis=0), X.max(axis=0)
    return np.asarray((X - low) / np.where(high > low, high - low, 1.0))


def _encoded(name: str, values: NDArray[np.str_]) -> tuple[list[str], NDArray[np.float64]]:
    """A numeric column as it is, a categorical one as one column a category."""
    try:
        numbers = values.astype(np.float64)
    except ValueError:
        numbers = np.array([np.nan])
    if np.isfinite(numbers).all():
        return [name], numbers[:, None]
    categories = np.unique(values)
    return [f"{name}={category}" for category in categories], (values[:, None] == categories).astype(np.float64)


def _unit_bounds(columns: int) -> Bounds:
    return Bounds(features=[(0.0, 1.0)] * columns, classes=CLASSES)
