"""A table of effects as text, Markdown, LaTeX and HTML."""

import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from discreet.models.inference.grid import DASH as DASH
from discreet.models.inference.grid import html_table, latex_table, markdown_table, plain_lines
from discreet.typing import Floats

HIDDEN = f"{DASH} not shown: noise hides these effects (too few rows have them, or other columns nearly determine them)"
OTHER = "(other)"
TOO_FEW = f"{OTHER}: too few"
WIDTH = 100
"""Columns of text; facts are wrapped at it."""
HEADINGS = {"se_privacy": "se privacy", "p": "P>|z|"}


@dataclass(frozen=True)
class TableText:
    """Rows of a summary, with what its heading says.

    ``hidden`` says which effects are not shown. ``extra`` has a further column for some rows, by their places: ratios,
    which an intercept has none of.
    """

    names: Sequence[str]
    columns: Mapping[str, Floats]
    extra: Mapping[str, Mapping[int, float]]
    facts: Mapping[str, str]
    level: float
    hidden: Sequence[bool]

    def _headings(self) -> list[str]:
        ends = {"low": f"[{(1 - self.level) / 2:.3g}", "high": f"{(1 + self.level) / 2:.3g}]"}
        return ["feature", *(ends.get(name, HEADINGS.get(name, name)) for name in (*self.columns, *self.extra))]

    def _row(self, i: int) -> list[str]:
        shown = [number_text(column, float(values[i])) for column, values in self.columns.items()]
        more = [number_text(column, values[i]) if i in values else "" for column, values in self.extra.items()]
        return [self.names[i], *shown, *more]

    @property
    def _notes(self) -> dict[str, str]:
        return {**self.facts, **({"hidden": HIDDEN} if any(self.hidden) else {})}

    def rows(self) -> list[list[str]]:
        """Return all cells, the headings first; all hidden cells of other categories together in the last row."""
        head, rest = self._headings(), empty_cells(self.names, self.hidden)
        shown = [self._row(i) for i in range(len(self.names)) if not rest[i]]
        return [head, *shown, *[[TOO_FEW, *[DASH] * (len(head) - 1)]] * any(rest)]

    def plain(self) -> str:
        """Return aligned text under a heading of facts."""
        lines = plain_lines(self.rows())
        rule = "=" * max(*map(len, lines), 20)
        return "\n".join(
            [rule, *notes_lines(self._notes, len(rule)), rule, lines[0], rule.replace("=", "-"), *lines[1:], rule]
        )

    def markdown(self) -> str:
        """Return a table with pipes."""
        return markdown_table(self.rows())

    def latex(self) -> str:
        """Return a ``tabular``."""
        return latex_table(self.rows())

    def html(self) -> str:
        """Return a ``table`` element."""
        return html_table(self.rows(), "; ".join(f"{name}: {value}" for name, value in self._notes.items()))


def notes_lines(notes: Mapping[str, str], width: int) -> list[str]:
    """Return notes, each behind its name, wrapped."""
    label = max(map(len, notes), default=0)
    lines = []
    for name, value in notes.items():
        first, *more = textwrap.wrap(value, max(WIDTH, width) - label - 2) or [""]
        lines += [f"{name.ljust(label)}  {first}", *(" " * (label + 2) + line for line in more)]
    return lines


def empty_cells(names: Sequence[str], hidden: Sequence[bool]) -> list[bool]:
    """Say which effects are shown in one line together: hidden ones of cells for other values, and their products."""
    return [bool(gone) and OTHER in name for name, gone in zip(names, hidden, strict=True)]


def number_text(column: str, value: float) -> str:
    """Return a number of a column as it is shown; a dash for NaN."""
    if math.isnan(value):
        return DASH
    if column == "p":
        return "<.001" if value < 0.001 else f"{value:.3f}"
    if column in ("z", "inflation"):
        return f"{value:.2f}"
    return f"{value:.4g}"
