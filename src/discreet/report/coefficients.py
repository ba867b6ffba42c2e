"""The coefficients of a model: a dot-and-whisker figure, and the same numbers as a table.

The figure is a list of rows, each with a label, a strip and a number. Positions within a strip are percentages, so that
labels wrap and strips shrink on a phone while dots, lines and letters keep their size.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from discreet.report.markup import MINUS, isolated, number, round_ticks, table

FIRST = 45  # rows of the figure that are shown before the rest is folded away
REACH = 0.5  # how far whiskers may stretch the axis, in spans of the dots; longer ones end in an arrow
MARGIN = 4.0  # percent of a strip, left and right, that are kept free
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
    value, low, high
        The coefficient and its interval; None where no interval is known.
    """

    name: str
    column: str
    output: str
    value: float
    low: float | None = None
    high: float | None = None

    @property
    def is_told_apart(self) -> bool:
        """Whether its interval leaves out 0; without an interval nothing is said against it."""
        return self.low is None or self.high is None or not self.low <= 0 <= self.high

    @property
    def is_intercept(self) -> bool:
        """Whether it belongs to no column: it has another unit, and would flatten the figure."""
        return not self.column and self.name.lower() in _INTERCEPTS


@dataclass(frozen=True)
class _Row:
    """A line of the figure: a heading, or a coefficient."""

    label: str
    depth: int
    coefficient: Coefficient | None = None


def coefficient_figure(coefficients: Sequence[Coefficient]) -> str:
    """Dots and whiskers, strongest column first, all on one axis."""
    drawn = [c for c in coefficients if not c.is_intercept and math.isfinite(c.value)]
    if not drawn:
        return ""
    axis = _Axis.of(drawn)
    rows, cut = _rows(drawn)
    first, rest = rows[:cut], rows[cut:]
    quiet = sum(not c.is_told_apart for c in drawn)
    told = (
        f"Dot and whisker figure of {len(drawn)} coefficients, strongest column first; the intervals of {quiet} "
        "contain zero. The table below has the numbers."
    )
    parts = [_key(drawn), _forest(first, axis, told)]
    if rest:
        more = sum(row.coefficient is not None for row in rest)
        folded = _forest(rest, axis, f"The figure goes on with {more} weaker coefficients.")
        parts.append(f"<details><summary>{more} more coefficients</summary>{folded}</details>")
    return "\n".join(parts)


def coefficient_table(coefficients: Sequence[Coefficient], level: float) -> str:
    """All numbers, to read and to copy."""
    several = any(c.output for c in coefficients)
    known = any(c.low is not None for c in coefficients)
    head = ["coefficient", *(["output"] if several else []), "value"]
    head += [f"{100 * level:g}% interval from", "to", "told apart from 0"] if known else []
    rows = []
    for c in _ordered(coefficients):
        cells = [f'<th scope="row">{isolated(c.name)}</th>']
        cells += [f"<td>{isolated(c.output)}</td>"] if several else []
        cells.append(f'<td class="number">{c.value:.6g}</td>')
        if known:
            cells += [f'<td class="number">{"" if end is None else f"{end:.4g}"}</td>' for end in (c.low, c.high)]
            cells.append(f"<td>{'' if c.low is None else 'yes' if c.is_told_apart else 'no'}</td>")
        rows.append(f"<tr{'' if c.is_told_apart else ' class=muted'}>{''.join(cells)}</tr>")
    numbers = [place for place, name in enumerate(head) if place and name not in ("output", "told apart from 0")]
    return table(head, rows, label="Coefficients", numbers=numbers)


@dataclass(frozen=True)
class _Axis:
    """From values to percentages of a strip."""

    low: float
    high: float
    largest: float

    @classmethod
    def of(cls, coefficients: Sequence[Coefficient]) -> "_Axis":
        """Wide enough for zero and every dot, and for whiskers of a sensible length."""
        dots = [0.0, *(c.value for c in coefficients)]
        low, high = min(dots), max(dots)
        room = REACH * (high - low) or 1.0
        ends = [end for c in coefficients for end in (c.low, c.high) if end is not None and not math.isnan(end)]
        low, high = max(min([low, *ends]), low - room), min(max([high, *ends]), high + room)
        return cls(low, high if high > low else low + 1.0, max(map(abs, dots)) or 1.0)

    def at(self, value: float) -> float:
        return MARGIN + (100 - 2 * MARGIN) * (value - self.low) / (self.high - self.low)

    def shown(self, value: float) -> str:
        """A value with as many places as all the others, more where that would hide what is not 0."""
        places = max(0, 2 - math.floor(math.log10(self.largest)))
        rounded = f"{value:.{places}f}" if places < 6 else ""
        return number(value, 2) if value and not any(c in "123456789" for c in rounded) else rounded.replace("-", MINUS)

    @property
    def ticks(self) -> list[float]:
        return round_ticks(self.low, self.high, 6)


def _groups(coefficients: Iterable[Coefficient]) -> list[list[Coefficient]]:
    """One list a column: those with something told apart first, then by their largest coefficient."""
    found: dict[tuple[str, str], list[Coefficient]] = {}
    for c in coefficients:
        found.setdefault((c.column, "" if c.column else c.name), []).append(c)

    def strength(group: list[Coefficient]) -> tuple[bool, float]:
        told = [abs(c.value) for c in group if c.is_told_apart]
        return bool(told), max(told or [abs(c.value) for c in group])

    return sorted(found.values(), key=strength, reverse=True)


def _ordered(coefficients: Sequence[Coefficient]) -> list[Coefficient]:
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
    names = list(dict.fromkeys(c.name for c in group))
    nested = len(names) > 1
    rows = [_Row(group[0].column, 0)] if nested else []
    for name in names:
        cells = [c for c in group if c.name == name]
        label = _within(name, group[0].column) if nested else name
        if len(cells) == 1 and not cells[0].output:
            rows.append(_Row(label, int(nested), cells[0]))
        else:
            rows.append(_Row(label, int(nested)))
            rows += [_Row(c.output, int(nested) + 1, c) for c in cells]
    return rows


def _within(name: str, column: str) -> str:
    """What a cell is called under its column's heading: "workclass = private" is "private"."""
    rest = name.removeprefix(column)
    if rest == name or not rest or rest[0] not in " =:[_(":
        return name
    rest = rest.strip(" =:_")
    return rest[1:-1] if rest[:1] + rest[-1:] in ("[]", "()") else rest or name


def _forest(rows: Sequence[_Row], axis: _Axis, told: str) -> str:
    scale = _scale(axis)
    body = "".join(_line(row, axis) for row in rows)
    return (
        f'<figure class="forest"><div role="img" aria-label="{told}">{scale if len(rows) > 8 else ""}{body}{scale}'
        "</div></figure>"
    )


def _line(row: _Row, axis: _Axis) -> str:
    grid = "".join(
        f'<line class="{"zero" if tick == 0 else "grid"}" x1="{at}" x2="{at}" y1="0" y2="100%"/>'
        for tick, at in ((tick, f"{axis.at(tick):.2f}%") for tick in axis.ticks)
    )
    kind, mark, value = f"row deep{row.depth}", "", ""
    if row.coefficient is None:
        kind += " heading"
    else:
        kind += "" if row.coefficient.is_told_apart else " muted"
        mark, value = _mark(row.coefficient, axis), axis.shown(row.coefficient.value)
    return (
        f'<div class="{kind}"><span class="label">{isolated(row.label)}</span>'
        f'<span class="strip"><svg>{grid}{mark}</svg></span><span class="value">{value}</span></div>'
    )


def _mark(c: Coefficient, axis: _Axis) -> str:
    parts = []
    if c.low is not None and c.high is not None and not (math.isnan(c.low) or math.isnan(c.high)):
        low, high = max(c.low, axis.low), min(c.high, axis.high)
        parts.append(f'<line class="whisker" x1="{axis.at(low):.2f}%" x2="{axis.at(high):.2f}%" y1="50%" y2="50%"/>')
        for cut, at, path in ((c.low < axis.low, low, "M-6 0l6 -4v8z"), (c.high > axis.high, high, "M6 0l-6 -4v8z")):
            if cut:
                parts.append(f'<svg x="{axis.at(at):.2f}%" y="50%"><path class="arrow" d="{path}"/></svg>')
    parts.append(f'<circle class="dot" cx="{axis.at(c.value):.2f}%" cy="50%" r="4.2"/>')
    return "".join(parts)


def _scale(axis: _Axis) -> str:
    texts = "".join(
        f'<text x="{axis.at(tick):.2f}%" y="14" text-anchor="middle">{number(tick)}</text>' for tick in axis.ticks
    )
    return (
        '<div class="row axis"><span class="label"></span>'
        f'<span class="strip"><svg>{texts}</svg></span><span class="value"></span></div>'
    )


def _key(coefficients: Sequence[Coefficient]) -> str:
    if all(c.low is None for c in coefficients):
        return ""
    mark = (
        '<svg aria-hidden="true"><line class="whisker" x1="0" x2="100%" y1="50%" y2="50%"/>'
        '<circle class="dot" cx="50%" cy="50%" r="4.2"/></svg>'
    )
    return (
        f'<div class="key"><span>{mark}the interval leaves out 0</span>'
        f'<span class="muted">{mark}not told apart from noise</span></div>'
    )
