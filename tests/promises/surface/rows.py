"""The table that cases are made of, and its neighbors: one record is replaced, blanked, or comes in addition."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from discreet.budget import Neighbors
from tests.promises.surface.values import NUMBER, TEXT, Hostile

ROWS = 40
"""Records; half as many persons."""
ANSWER, WHO = "label", "who"
ADDED, BLANK = "a further person", None
MATRIX = ("a", "b", "c")
TABLE = ("age", "color", "smoker")
_MANY = 5


@dataclass(frozen=True, repr=False)
class Cells:
    """Columns of plain Python cells; ``texts`` are those that hold words, the others hold numbers."""

    columns: dict[str, list[Any]]
    texts: frozenset[str]

    @property
    def rows(self) -> int:
        """How many."""
        return len(next(iter(self.columns.values())))

    def with_record(self, row: int, record: dict[str, Any], *, count: int = 1, insert: bool = False) -> "Cells":
        """The same with a record in place of the one at ``row``, or in front of it."""
        after = row if insert else row + 1
        columns = {
            name: [*cells[:row], *([record[name]] * count), *cells[after:]] for name, cells in self.columns.items()
        }
        return replace(self, columns=columns)

    def record(self, row: int) -> dict[str, Any]:
        """One row."""
        return {name: cells[row] for name, cells in self.columns.items()}


def matrix_cells(*, worded: bool = False, numbered: bool = False) -> Cells:
    """Three numbers in [0, 1], a label, 0 or 1 (or words), and a person: enough for every estimator.

    ``numbered`` persons have numbers that doubles would round onto each other.
    """
    rng = np.random.default_rng(0)
    columns: dict[str, list[Any]] = {name: rng.uniform(0, 1, ROWS).round(3).tolist() for name in MATRIX}
    answers = [int(a > b) for a, b in zip(columns["a"], columns["b"], strict=True)]
    columns[ANSWER] = [("no", "yes")[answer] for answer in answers] if worded else answers
    columns[WHO] = [(1 << 60) + i // 2 if numbered else f"p{i // 2:02}" for i in range(ROWS)]
    texts = [*([ANSWER] if worded else []), *([] if numbered else [WHO])]
    return Cells(columns, frozenset(texts))


def table_cells() -> Cells:
    """A number, a category, a truth, a label in words and a person."""
    rng = np.random.default_rng(1)
    ages = rng.integers(18, 90, ROWS).tolist()
    columns: dict[str, list[Any]] = {
        "age": [float(age) for age in ages],
        "color": rng.choice(["red", "blue"], ROWS).tolist(),
        "smoker": rng.choice(["yes", "no"], ROWS).tolist(),
        ANSWER: ["high" if age > 50 else "low" for age in ages],
        WHO: [f"p{i // 2:02}" for i in range(ROWS)],
    }
    return Cells(columns, frozenset(["color", "smoker", ANSWER, WHO]))


@dataclass(frozen=True)
class Place:
    """Where the hostile cell stands, and between which neighbors."""

    row: int
    column: str
    relation: Neighbors

    def __str__(self) -> str:
        return f"row {self.row}, column {self.column}, {self.relation}"


def base(cells: Cells, place: Place, *, persons: bool) -> Cells:
    """The table without the hostile record: as it is, or with that record blank."""
    if place.relation is not Neighbors.ZERO_OUT:
        return cells
    found = cells
    for row in rows_of(cells, place.row, persons):
        blank = dict.fromkeys(cells.columns, BLANK) | {WHO: cells.columns[WHO][row]}
        found = found.with_record(row, blank)
    return found


def neighbor(cells: Cells, place: Place, hostile: Hostile, *, persons: bool, marked: Sequence[str]) -> Cells:
    """The table with the hostile record; its cells in the columns ``marked`` are sentinels."""
    value = hostile.make()
    added = place.relation is Neighbors.ADD_REMOVE
    rows = [place.row] if added else rows_of(cells, place.row, persons)
    found = cells
    for row in rows:
        record = cells.record(row) | {name: TEXT if name in cells.texts else NUMBER for name in marked}
        record |= {WHO: ADDED} if added else {}
        record |= {} if hostile.whole in ("line", "pages") else {place.column: value}
        found = found.with_record(row, record, insert=added)
    if hostile.whole == "rows":
        found = found.with_record(rows[0], found.record(rows[0]), count=_MANY, insert=True)
    return found


def rows_of(cells: Cells, row: int, persons: bool) -> list[int]:
    """The row, or all rows of its person: who is replaced is replaced altogether."""
    if not persons:
        return [row]
    who = cells.columns[WHO]
    return [i for i, name in enumerate(who) if name == who[row]]
