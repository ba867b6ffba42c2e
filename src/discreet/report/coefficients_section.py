"""The coefficients of a model: a dot-and-whisker figure, and the same numbers as a table.

The figure is a list of rows, each with a label, a strip and a number, in the order in which the coefficients come: a
schema's. Units differ from column to column, so each column has a scale of its own, with 0 in the middle: what may be
compared is the cells of one column, and a dot with its own whiskers. Nothing is ranked, and no dot looks different from
another: intervals of the noise alone do not tell effects from none.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from discreet.models.intervals import rounded
from discreet.report.html import MINUS, isolated, table

FIRST = 45  # rows of the figure that are shown before the rest is folded away
REACH = 46.0  # percent of a strip, from 0 in the middle to the end of a column's scale
_INTERCEPTS = {"intercept", "(intercept)", "intercept_"}


@dataclass(frozen=True)
class Coefficient:
    """One coefficient, with what the noise leaves open.

    Parameters
    ----------
    name
        As a reader should see it: ``"age"``, or a cell such as ``"workclass = private"``.
    column
        The column of the table that it belongs to; cells of one column are shown together. ``""`` for none.
    output
        The class, where there are several outputs; else ``""``.
    value, half_width
        The coefficient, and half the width of its interval; None where that is not known.
    unit
        What the coefficient is per: ``"per 1"``, ``"true against false"``.
    """

    name: str
    column: str
    output: str
    value: float
    half_width: float | None = None
    unit: str = ""

    @property
    def is_intercept(self) -> bool:
        """Whether it belongs to no column."""
        return not self.column and self.name.lower() in _INTERCEPTS

    @property
    def reach(self) -> float:
        """How far from 0 its dot or a whisker gets."""
        return abs(self.value) + self._whisker

    @property
    def _whisker(self) -> float:
        return self.half_width if self.half_width is not None and math.isfinite(self.half_width) else 0.0

    @property
    def text(self) -> str:
        """The value ± its half-width, rounded to the noise."""
        value, half_width = rounded(self.value, self.half_width)
        return _signed(f"{value} ± {half_width}" if half_width else value)


@dataclass(frozen=True)
class _Row:
    """A line of the figure: a heading, or a coefficient on its column's scale."""

    label: str
    depth: int
    unit: str = ""
    coefficient: Coefficient | None = None
    scale: float = 1.0


def coefficient_figure(coefficients: Sequence[Coefficient]) -> str:
    """Dots and whiskers, column by column."""
    drawn = [c for c in coefficients if not c.is_intercept and math.isfinite(c.value)]
    if not drawn:
        return ""
    rows, cut = _rows(drawn)
    first, rest = rows[:cut], rows[cut:]
    told = f"Dot and whisker figure of {len(drawn)} coefficients, column by column. The table below has the numbers."
    parts = [_forest(first, told)]
    if rest:
        more = sum(row.coefficient is not None for row in rest)
        folded = _forest(rest, f"The figure goes on with {more} coefficients.")
        parts.append(f"<details><summary>{more} more coefficients</summary>{folded}</details>")
    return "\n".join(parts)


def coefficient_table(coefficients: Sequence[Coefficient], level: float) -> str:
    """All numbers, to read and to copy."""
    several, units = any(c.output for c in coefficients), any(c.unit for c in coefficients)
    known = any(c.half_width is not None for c in coefficients)
    head = ["coefficient", *(["output"] if several else []), *(["unit"] if units else []), "value"]
    head += [f"± (half-width, {100 * level:g}%)"] if known else []
    rows = []
    for c in in_order(coefficients):
        value, half_width = rounded(c.value, c.half_width)
        cells = [f'<th scope="row">{isolated(c.name)}</th>']
        cells += [f"<td>{isolated(c.output)}</td>"] if several else []
        cells += [f"<td>{isolated(c.unit)}</td>"] if units else []
        cells.append(f'<td class="number">{_signed(value)}</td>')
        cells += [f'<td class="number">{half_width}</td>'] if known else []
        rows.append(f"<tr>{''.join(cells)}</tr>")
    numbers = [place for place, name in enumerate(head) if place and name not in ("output", "unit")]
    return table(head, rows, label="Coefficients", numbers=numbers)


def _signed(text: str) -> str:
    """A number with a real minus in front."""
    return MINUS + text[1:] if text.startswith("-") else text


def _groups(coefficients: Iterable[Coefficient]) -> list[list[Coefficient]]:
    """One list per column, in the order in which the columns come."""
    found: dict[tuple[str, str], list[Coefficient]] = {}
    for c in coefficients:
        found.setdefault((c.column, "" if c.column else c.name), []).append(c)
    return list(found.values())


def in_order(coefficients: Sequence[Coefficient]) -> list[Coefficient]:
    """The figure's order, the intercept last."""
    slopes = [c for group in _groups(c for c in coefficients if not c.is_intercept) for c in group]
    return [*slopes, *(c for c in coefficients if c.is_intercept)]


def _rows(coefficients: Sequence[Coefficient]) -> tuple[list[_Row], int]:
    """The lines of the figure, and after how many of them the rest is folded away: between columns where possible."""
    rows: list[_Row] = []
    cut = 0
    for group in _groups(coefficients):
        rows += _group_rows(group)
        cut = len(rows) if len(rows) <= FIRST else cut
    if len(rows) <= FIRST + 5:
        return rows, len(rows)
    return rows, cut if cut >= FIRST // 2 else FIRST


def _group_rows(group: list[Coefficient]) -> list[_Row]:
    names, scale = list(dict.fromkeys(c.name for c in group)), max(c.reach for c in group)
    nested = len(names) > 1
    rows = [_Row(group[0].column, 0)] if nested else []
    for name in names:
        cells = [c for c in group if c.name == name]
        label, unit = _within(name, group[0].column) if nested else name, cells[0].unit
        if len(cells) == 1 and not cells[0].output:
            rows.append(_Row(label, int(nested), unit, cells[0], scale))
        else:
            rows.append(_Row(label, int(nested), unit))
            rows += [_Row(c.output, int(nested) + 1, "", c, scale) for c in cells]
    return rows


def _within(name: str, column: str) -> str:
    """What a cell is called under its column's heading: "workclass = private" is "private"."""
    rest = name.removeprefix(column)
    if rest == name or not rest or rest[0] not in " =:[_(":
        return name
    rest = rest.strip(" =:_")
    return rest[1:-1] if rest[:1] + rest[-1:] in ("[]", "()") else rest or name


def _forest(rows: Sequence[_Row], told: str) -> str:
    body = "".join(_line(row) for row in rows)
    return f'<figure class="forest"><div role="img" aria-label="{told}">{body}{_zero()}</div></figure>'


def _line(row: _Row) -> str:
    kind, mark, value = f"row deep{row.depth}", "", ""
    if row.coefficient is None:
        kind += " heading"
    else:
        mark, value = _mark(row.coefficient, row.scale), row.coefficient.text
    unit = f" <small>{isolated(row.unit)}</small>" if row.unit and not row.label.endswith(row.unit) else ""
    return (
        f'<div class="{kind}"><span class="label">{isolated(row.label)}{unit}</span><span class="strip"><svg>'
        f'<line class="zero" x1="50%" x2="50%" y1="0" y2="100%"/>{mark}</svg></span>'
        f'<span class="value">{value}</span></div>'
    )


def _mark(c: Coefficient, scale: float) -> str:
    def at(value: float) -> str:
        share = value / scale if 0 < scale < math.inf else 0.0
        return f"{50 + REACH * min(max(share, -1.0), 1.0):.2f}%"

    whisker = ""
    if c.half_width is not None and math.isfinite(c.half_width):
        ends = at(c.value - c.half_width), at(c.value + c.half_width)
        whisker = f'<line class="whisker" x1="{ends[0]}" x2="{ends[1]}" y1="50%" y2="50%"/>'
    return f'{whisker}<circle class="dot" cx="{at(c.value)}" cy="50%" r="4.2"/>'


def _zero() -> str:
    return (
        '<div class="row axis"><span class="label"></span><span class="strip"><svg>'
        '<text x="50%" y="14" text-anchor="middle">0</text></svg></span><span class="value"></span></div>'
    )
