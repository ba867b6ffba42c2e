"""A table of effects as text, Markdown, LaTeX and HTML."""

import html
import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from discreet.typing import Floats

DASH = "\N{EN DASH}"
"""Stands for every number of an effect that noise hides."""
HIDDEN = f"{DASH} not shown: noise hides these effects (too few rows have them, or other columns nearly determine them)"
OTHER = "(other)"
TOO_FEW = f"{OTHER}: too few"
WIDTH = 100
"""Columns of text; facts are wrapped at it."""
HEADINGS = {"se_privacy": "se privacy", "p": "P>|z|"}
_LATEX = {"&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}",
          "^": r"\textasciicircum{}", "\\": r"\textbackslash{}", "<": r"$<$", ">": r"$>$", "|": r"$|$",
          DASH: "--"}  # fmt: skip


@dataclass(frozen=True)
class TableText:
    """Rows of a summary, with what its heading says. ``hidden`` says which effects are not shown."""

    names: Sequence[str]
    columns: Mapping[str, Floats]
    extra: Mapping[str, Floats]
    facts: Mapping[str, str]
    level: float
    hidden: Sequence[bool]

    def _headings(self) -> list[str]:
        ends = {"low": f"[{(1 - self.level) / 2:.3g}", "high": f"{(1 + self.level) / 2:.3g}]"}
        return ["feature", *(ends.get(name, HEADINGS.get(name, name)) for name in (*self.columns, *self.extra))]

    def _cells(self) -> list[list[str]]:
        """Return the rows; all hidden cells of other categories together in the last one."""
        every = {**self.columns, **self.extra}
        rest = empty_cells(self.names, self.hidden)
        shown = [
            [name, *(_shown(column, float(values[i])) for column, values in every.items())]
            for i, name in enumerate(self.names)
            if not rest[i]
        ]
        return [*shown, *[[TOO_FEW, *[DASH] * len(every)]] * any(rest)]

    @property
    def _notes(self) -> dict[str, str]:
        return {**self.facts, **({"hidden": HIDDEN} if any(self.hidden) else {})}

    def rows(self) -> list[list[str]]:
        """Return all cells, the headings first."""
        return [self._headings(), *self._cells()]

    def plain(self) -> str:
        """Return aligned text under a heading of facts."""
        rows = self.rows()
        widths = [max(len(row[j]) for row in rows) for j in range(len(rows[0]))]
        lines = ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in rows]
        rule = "=" * max(len(lines[0]), 20)
        label = max(map(len, self._notes), default=0)
        room = max(WIDTH, len(rule)) - label - 2
        heading = []
        for name, value in self._notes.items():
            first, *more = textwrap.wrap(value, room) or [""]
            heading += [f"{name.ljust(label)}  {first}", *(" " * (label + 2) + line for line in more)]
        return "\n".join([rule, *heading, rule, lines[0], rule.replace("=", "-"), *lines[1:], rule])

    def markdown(self) -> str:
        """Return a table with pipes."""
        rows = [[cell.replace("|", r"\|") for cell in row] for row in (self._headings(), *self._cells())]
        made = ["| " + " | ".join(row) + " |" for row in rows]
        return "\n".join([made[0], "|---|" + "---:|" * (len(rows[0]) - 1), *made[1:]])

    def latex(self) -> str:
        """Return a ``tabular``."""
        rows = [[_escaped(cell) for cell in row] for row in (self._headings(), *self._cells())]
        made = [" & ".join(row) + r" \\" for row in rows]
        begin, end = rf"\begin{{tabular}}{{l{'r' * (len(rows[0]) - 1)}}}", r"\end{tabular}"
        return "\n".join([begin, r"\hline", made[0], r"\hline", *made[1:], r"\hline", end])

    def html(self) -> str:
        """Return a ``table`` element."""
        head = "".join(f"<th>{html.escape(cell)}</th>" for cell in self._headings())
        body = "".join(
            f"<tr><th>{html.escape(row[0])}</th>"
            + "".join(f"<td>{html.escape(cell)}</td>" for cell in row[1:])
            + "</tr>"
            for row in self._cells()
        )
        facts = "; ".join(f"{name}: {value}" for name, value in self._notes.items())
        caption = f"<caption>{html.escape(facts)}</caption>"
        return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def empty_cells(names: Sequence[str], hidden: Sequence[bool]) -> list[bool]:
    """Say which effects are shown in one line together: hidden ones of cells for other values, and their products."""
    return [bool(gone) and OTHER in name for name, gone in zip(names, hidden, strict=True)]


def _shown(column: str, value: float) -> str:
    if math.isnan(value):
        return DASH
    if column == "p":
        return "<.001" if value < 0.001 else f"{value:.3f}"
    if column in ("z", "inflation"):
        return f"{value:.2f}"
    return f"{value:.4g}"


def _escaped(text: str) -> str:
    return "".join(_LATEX.get(character, character) for character in text)
