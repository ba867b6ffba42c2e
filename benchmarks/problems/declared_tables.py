"""Public tables with ranges declared before the run, as a data owner would declare them.

``declared_ranges.toml`` says for every column what is publicly known of it: a round range, that it is 0 or 1, or its
categories. The rows come from a folder that the user has (packed CSV files, the last column the outcome); none is part
of this package. Values stay in their own units: clipping and scaling are the estimator's business.
"""

import csv
import gzip
import lzma
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from itertools import islice
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.problems.measured_tables import MissingTable
from discreet.bounds import Bounds
from discreet.schema import Boolean, Category, Number, Schema, Target
from discreet.schema.columns import ColumnKind

Array = NDArray[np.float64]
TARGET, CHUNK, TEST_SHARE = "target", 20_000, 0.2
SMALL = 10_000  # rows; below, the luck of one split is worth more than what is measured


@dataclass(frozen=True)
class DeclaredTable:
    """Rows in their own units and what was declared of them; ``numeric`` marks the columns whose range is a guess."""

    name: str
    title: str
    X: Array
    y: Array
    names: tuple[str, ...]
    bounds: Bounds
    numeric: NDArray[np.bool_]

    @property
    def is_classification(self) -> bool:
        """Whether the outcome is a label."""
        return self.bounds.classes is not None

    def widened(self, factor: float, *, target: bool = False) -> "DeclaredTable":
        """The same rows under ranges that are ``factor`` times as wide as they need be."""
        return replace(self, bounds=widened(self.bounds, self.numeric, factor, target=target))

    @property
    def schema(self) -> Schema:
        """The declarations as a schema: numbers, truth, and 0/1 columns of one category put together again."""
        low, high = self.bounds.ranges(len(self.names))
        kinds: dict[str, ColumnKind] = {}
        for column, places in self._groups.items():
            first = places[0]
            if "=" in self.names[first]:
                kinds[column] = Category(tuple(self.names[j].partition("=")[2] for j in places))
            elif self.numeric[first]:
                kinds[column] = Number((float(low[first]), float(high[first])))
            else:
                kinds[column] = Boolean()
        target = Target(TARGET, classes=self.bounds.classes, range=self.bounds.target)
        return Schema(kinds, target, missing_texts=("",))

    @property
    def columns(self) -> dict[str, NDArray[Any]]:
        """The rows by the columns of the schema."""
        found: dict[str, NDArray[Any]] = {TARGET: self.y}
        for column, places in self._groups.items():
            part = self.X[:, places]
            if "=" in self.names[places[0]]:
                labels = np.array([*(self.names[j].partition("=")[2] for j in places), ""], dtype=object)
                found[column] = labels[np.where(part.any(axis=1), part.argmax(axis=1), len(places))]
            else:
                found[column] = part[:, 0] if self.numeric[places[0]] else part[:, 0] > 0.5
        return found

    @property
    def _groups(self) -> dict[str, list[int]]:
        groups: dict[str, list[int]] = {}
        for j, name in enumerate(self.names):
            groups.setdefault(name.partition("=")[0], []).append(j)
        return groups

    def rows(self, chosen: NDArray[np.bool_]) -> "DeclaredTable":
        """Some of the rows."""
        return replace(self, X=self.X[chosen], y=self.y[chosen])


@cache
def declarations() -> dict[str, dict[str, Any]]:
    """What the file declares, by table, in its order."""
    text = files("benchmarks.problems").joinpath("declared_ranges.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def names(*, classification: bool | None = None) -> list[str]:
    """The tables' names: all, those with a label, or those with a number."""
    facts = declarations()
    return [name for name in facts if classification is None or ("classes" in facts[name]) == classification]


def load(name: str, folder: Path) -> DeclaredTable:
    """The table of this name from its file in ``folder``, encoded as declared."""
    if name not in declarations():
        raise MissingTable(f"there is no table called {name}: choose among {', '.join(declarations())}")
    facts = declarations()[name]
    path = folder / facts["file"]
    if not path.is_file():
        raise MissingTable(f"the folder {folder} has no {facts['file']}: name another with --data, or fewer tables")
    with _opened(path) as lines:
        header = next(csv.reader(lines))
        columns = _Columns(header, facts, path)
        X, y = columns.encoded(_chosen_lines(lines, path, facts.get("rows")))
    target = facts.get("target")
    bounds = Bounds(
        features=columns.ranges,
        classes=tuple(facts["classes"]) if "classes" in facts else None,
        target=(float(target[0]), float(target[1])) if target else None,
    )
    return DeclaredTable(name, facts["title"], X, y, tuple(columns.names), bounds, np.array(columns.numeric))


def widened(bounds: Bounds, numeric: NDArray[np.bool_], factor: float, *, target: bool = False) -> Bounds:
    """Numeric columns' ranges (and the target's, on demand) stretched about their middles; 0/1 columns stay."""
    low, high = bounds.ranges(len(numeric))
    pairs = [
        _stretched(float(a), float(b), factor) if wide else (float(a), float(b))
        for a, b, wide in zip(low, high, numeric, strict=True)
    ]
    outcome = _stretched(*bounds.target, factor) if target and bounds.target else bounds.target
    return bounds.with_facts(features=pairs, target=outcome)


def _stretched(low: float, high: float, factor: float) -> tuple[float, float]:
    middle, half = (low + high) / 2, factor * (high - low) / 2
    return middle - half, middle + half


def is_small(name: str) -> bool:
    """Whether a table was declared to have fewer than 10,000 rows."""
    return bool(declarations().get(name, {}).get("small", False))


def split_seed(name: str, seed: int) -> int:
    """The split that a run of this seed is given: its own where a table is small, else the one that all share."""
    return seed if is_small(name) else 0


def held_out(table: DeclaredTable, seed: int = 0) -> NDArray[np.bool_]:
    """Which rows are for testing: one fifth, of each class alike. The same for the same seed."""
    rng = np.random.default_rng([seed, 80_20])
    order = rng.permutation(len(table.y))
    held = np.zeros(len(table.y), dtype=np.bool_)
    for group in np.unique(table.y) if table.is_classification else [None]:
        rows = order if group is None else order[table.y[order] == group]
        held[rows[: round(TEST_SHARE * len(rows))]] = True
    return held


def split(table: DeclaredTable, seed: int = 0) -> tuple[DeclaredTable, DeclaredTable]:
    """Four fifths for training, one for testing."""
    held = held_out(table, seed)
    return table.rows(~held), table.rows(held)


class _Columns:
    """How the columns of a file become columns of X: each as it is, or one for a category."""

    def __init__(self, header: list[str], facts: dict[str, Any], path: Path) -> None:
        numeric, flags, categories = facts["numeric"], facts.get("flags", ()), facts.get("categories", {})
        if header[-1] != TARGET or set(header[:-1]) != {*numeric, *flags, *categories}:
            raise MissingTable(f"{path} does not have the columns that were declared, and the outcome last")
        self.categories = [categories.get(name) for name in header[:-1]]
        self.names: list[str] = []
        self.ranges: list[tuple[float, float]] = []
        self.numeric: list[bool] = []
        for name, listed in zip(header, self.categories, strict=False):
            made = [name] if listed is None else [f"{name}={category}" for category in listed]
            low, high = numeric.get(name, (0.0, 1.0))
            self.names += made
            self.ranges += [(float(low), float(high))] * len(made)
            self.numeric += [name in numeric] * len(made)

    def encoded(self, lines: Iterator[str]) -> tuple[Array, Array]:
        """All rows; in pieces, since text takes twenty times the room of numbers."""
        reader, parts = csv.reader(lines), []
        while rows := list(islice(reader, CHUNK)):
            parts.append(self._numbers(rows))
        both = np.vstack(parts)
        return np.ascontiguousarray(both[:, :-1]), both[:, -1].copy()

    def _numbers(self, rows: Sequence[Sequence[str]]) -> Array:
        made = []
        for values, listed in zip(zip(*rows, strict=True), [*self.categories, None], strict=True):
            text = np.array(values)
            made.append(text.astype(np.float64)[:, None] if listed is None else text[:, None] == np.array(listed))
        return np.hstack(made)


def _opened(path: Path) -> AbstractContextManager[IO[str]]:
    opener: Any = lzma.open if path.suffix == ".xz" else gzip.open
    opened: AbstractContextManager[IO[str]] = opener(path, "rt", encoding="utf-8", newline="")
    return opened


def _chosen_lines(lines: IO[str], path: Path, rows: int | None) -> Iterator[str]:
    """All lines after the header, or a fixed sample of them in their order."""
    if rows is None:
        return iter(lines)
    with _opened(path) as all_lines:
        total = sum(1 for _ in all_lines) - 1
    chosen = set(np.random.default_rng(0).permutation(total)[:rows].tolist())
    return (line for number, line in enumerate(lines) if number in chosen)
