"""Sections about coefficients and effects for a population: figures, the same numbers as tables, and their caveats.

The figure of coefficients has one row per coefficient, in the schema's order. Units differ from column to column, so
each column has a scale of its own, with 0 in the middle: what may be compared is the cells of one column, and a dot
with its own whiskers. Nothing is ranked, and no dot looks different from another: intervals of the noise alone do not
tell effects from none.

Effects for a population come from the model's summary. Ratios lie on one logarithmic scale, which ends where the widest
intervals do, at ratios of 1000 at the most. Differences have their columns' units, so each has a scale of its own.

Columns with knots have curves, as SVG: the effect over the column's range, with a band for the whole curve.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from discreet.inference.intervals import rounded
from discreet.inference.pictures import WIDEST, ratio_ticks
from discreet.inference.text import DASH, NEAR_ONE, hidden_text, number_text
from discreet.report.page import (
    MINUS,
    WIDTH,
    Axes,
    details,
    forest,
    mark,
    number,
    panel,
    panels,
    paragraphs,
    round_ticks,
    strip,
    table,
)

if TYPE_CHECKING:
    from discreet.inference.summary import Summary
    from discreet.models.term_effects import TermEffect


FIRST_CURVES = 8
"""Panels that are shown before the rest is folded away."""
LONGEST = 36
"""Characters of a name in a panel's title."""
NOISE_ONLY = (
    "What each value of a column adds to the prediction, before its link, against the mean over the declared range; of "
    "a product, what both columns add together where the other one has the value that is named. "
    "The bands are for the privacy noise alone, as if that of each coefficient were independent of the others: mostly "
    "they are too wide. They do not count the chance of which rows are in the table."
)
Point = tuple[float, float, float, float]
"""A value of the column, the effect there, and the ends of the band; NaN where noise hides it."""
FIRST_COEFFICIENTS = 45
"""Rows of the figure of coefficients that are shown before the rest is folded away."""
ZERO = ((0.0, "0"),)
_INTERCEPTS = {"intercept", "(intercept)", "intercept_"}


@dataclass(frozen=True)
class Coefficient:
    """One coefficient, with what the noise leaves open.

    ``name`` is what a reader should see, such as ``"workclass = private"``; cells of one ``column`` are shown together;
    ``output`` is the class, where there are several; ``half_width`` is that of its interval, None where it is not
    known; ``unit`` is what the coefficient is per, such as ``"true against false"``.
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
        whisker = self.half_width or 0.0
        return abs(self.value) + (whisker if math.isfinite(whisker) else 0.0)

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
    description = (
        f"Dot and whisker figure of {len(drawn)} coefficients, column by column. The table below has the numbers."
    )
    parts = [forest(list(map(_line, first)), ZERO, (-1.0, 1.0), description)]
    if rest:
        more = sum(row.coefficient is not None for row in rest)
        spoken = f"The figure goes on with {more} coefficients."
        folded = forest(list(map(_line, rest)), ZERO, (-1.0, 1.0), spoken)
        parts.append(details(f"{more} more coefficients", folded))
    return "\n".join(parts)


def coefficient_table(coefficients: Sequence[Coefficient], level: float) -> str:
    """Return all numbers, to read and to copy."""
    several, units = any(c.output for c in coefficients), any(c.unit for c in coefficients)
    has_noise = any(c.half_width is not None for c in coefficients)
    head = ["coefficient", *(["output"] if several else []), *(["unit"] if units else []), "value"]
    head += [f"± (half-width, {100 * level:g}%)"] if has_noise else []
    rows = []
    slopes = [c for group in _groups(c for c in coefficients if not c.is_intercept) for c in group]
    for c in (*slopes, *(c for c in coefficients if c.is_intercept)):
        value, half_width = rounded(c.value, c.half_width)
        cells = [c.name, *([c.output] if several else []), *([c.unit] if units else []), _signed(value)]
        rows.append([*cells, *([half_width] if has_noise else [])])
    numeric = [place for place, name in enumerate(head) if place and name not in ("output", "unit")]
    return table(head, rows, label="Coefficients", numeric=numeric)


def _signed(text: str) -> str:
    """Return a number with a real minus in front."""
    return MINUS + text[1:] if text.startswith("-") else text


def _groups(coefficients: Iterable[Coefficient]) -> list[list[Coefficient]]:
    """One list per column, in the order in which the columns come."""
    groups: dict[tuple[str, str], list[Coefficient]] = {}
    for c in coefficients:
        groups.setdefault((c.column, "" if c.column else c.name), []).append(c)
    return list(groups.values())


def _rows(coefficients: Sequence[Coefficient]) -> tuple[list[_Row], int]:
    """The lines of the figure, and after how many of them the rest is folded away: between columns where possible."""
    rows: list[_Row] = []
    cut = 0
    for group in _groups(coefficients):
        rows += _group_rows(group)
        cut = len(rows) if len(rows) <= FIRST_COEFFICIENTS else cut
    if len(rows) <= FIRST_COEFFICIENTS + 5:
        return rows, len(rows)
    return rows, cut if cut >= FIRST_COEFFICIENTS // 2 else FIRST_COEFFICIENTS


def _group_rows(group: list[Coefficient]) -> list[_Row]:
    names, scale = list(dict.fromkeys(c.name for c in group)), max(c.reach for c in group)
    nested = len(names) > 1
    rows = [_Row(group[0].column, 0)] if nested else []
    for name in names:
        cells = [c for c in group if c.name == name]
        label, unit = _cell_name(name, group[0].column) if nested else name, cells[0].unit
        if len(cells) == 1 and not cells[0].output:
            rows.append(_Row(label, int(nested), unit, cells[0], scale))
        else:
            rows.append(_Row(label, int(nested), unit))
            rows += [_Row(c.output, int(nested) + 1, "", c, scale) for c in cells]
    return rows


def _cell_name(name: str, column: str) -> str:
    """Return what a cell is called under its column's heading: "workclass = private" is "private"."""
    rest = name.removeprefix(column)
    if rest == name or not rest or rest[0] not in " =:[_(":
        return name
    rest = rest.strip(" =:_")
    return rest[1:-1] if rest[:1] + rest[-1:] in ("[]", "()") else rest or name


def _line(row: _Row) -> str:
    if row.coefficient is None:
        return strip(row.label, row.depth, unit=row.unit)
    c, ends = row.coefficient, (-row.scale, row.scale)
    half = c.half_width if c.half_width is not None and math.isfinite(c.half_width) else math.nan
    unit = "" if row.label.endswith(row.unit) else row.unit
    return strip(row.label, row.depth, mark(ends, c.value, c.value - half, c.value + half), c.text, unit)


def effect_curves(summary: "Summary") -> str:
    """Return a panel for each column with knots, and for each class; nothing without knots."""
    drawn = []
    for column in summary.structure.shapes:
        for group, curve in summary.curve_columns(column).items():
            points = list(
                zip(*(curve[name].tolist() for name in ("x", "effect", "band_low", "band_high")), strict=True)
            )
            against = f", against {number(float(curve['reference'][0]))}"
            drawn.append(_panel(f"{group}: {column}" if summary.blocks else column, against, points, summary.ratio))
    note = (
        f"The {summary.ratio or 'effect'} of each value against one of them. The band covers the whole curve, in "
        f"{100 * summary.level:g}% of studies; gaps are hidden by noise. Where a column is in products with others, "
        "the curve is at 0, or the base, of these."
    )
    return _curves(drawn, note)


def noise_curves(effects: "Sequence[TermEffect]", deviations: float) -> str:
    """Return a panel for each effect of a number, with a band of so many deviations of the privacy noise."""
    drawn, several = [], len({effect.output for effect in effects}) > 1
    for effect in effects:
        half = [0.0] * len(effect.values) if effect.noise is None else (deviations * effect.noise).tolist()
        values, heights = map(float, effect.values), effect.effect.tolist()
        points = [(x, y, y - h, y + h) for x, y, h in zip(values, heights, half, strict=True)]
        name = f"{effect.output}: {effect.column}" if several else effect.column
        drawn.append(_panel(name, f" where {effect.other} = {effect.at}" if effect.other else "", points, ""))
    return _curves(drawn, NOISE_ONLY)


def _curves(drawn: Sequence[str], note: str) -> str:
    """Return the first panels, and the rest folded away; nothing without panels."""
    if not drawn:
        return ""
    first, rest = drawn[:FIRST_CURVES], drawn[FIRST_CURVES:]
    more = details(f"{len(rest)} more curves", panels(rest)) if rest else ""
    return f"<h3>Curves</h3>\n{panels(first)}{more}\n{paragraphs([note], 'note')}"


def _panel(name: str, against: str, points: Sequence[Point], ratio: str) -> str:
    limited = [_within(point) if ratio else point for point in points]
    ends = [y for _, *values in limited for y in values if math.isfinite(y)]
    low, high = min([0.0, *ends]), max([0.0, *ends])
    room = 0.06 * (high - low) or 0.1
    axes = Axes((limited[0][0], limited[-1][0]), (low - room, high + room))
    body = [axes.level(0.0)]
    for piece in _pieces(limited):
        body.append(axes.band([(x, low, high) for x, _, low, high in piece]))
        body.append(axes.curve([(x, effect) for x, effect, _, _ in piece]))
    if len(body) == 1:
        hidden = axes.y(0.0) - 12
        body.append(f'<text x="{WIDTH / 2:g}" y="{hidden:.1f}" text-anchor="middle">noise hides this curve</text>')
    title = f"{name if len(name) <= LONGEST else name[: LONGEST - 1] + '…'}{against}"
    spoken = f"Effect of {name}{against}: {_spoken(points, ratio)}"
    x_ticks = [(at, number(at)) for at in round_ticks(*axes.x_range, 6)]
    y_ticks = ratio_ticks(low, high, 5) if ratio else [(at, number(at)) for at in round_ticks(low, high, 5)]
    return panel(title, spoken, axes, body, x_ticks, y_ticks)


def _within(point: Point) -> Point:
    x, *values = point
    effect, low, high = (min(max(y, -WIDEST), WIDEST) if math.isfinite(y) else y for y in values)
    return x, effect, low, high


def _pieces(points: Sequence[Point]) -> list[list[Point]]:
    """Return the parts of a curve that noise does not hide."""
    pieces: list[list[Point]] = [[]]
    for point in points:
        if all(math.isfinite(y) for y in point):
            pieces[-1].append(point)
        elif pieces[-1]:
            pieces.append([])
    return [piece for piece in pieces if len(piece) > 1]


def _spoken(points: Sequence[Point], ratio: str) -> str:
    """Return the effect at both ends and in the middle, for those who cannot see the picture."""
    places = (points[0], points[len(points) // 2], points[-1])
    texts = [number(math.exp(y) if ratio else y) if math.isfinite(y) else "hidden" for _, y, _, _ in places]
    return ", ".join(f"{text} at {number(place[0])}" for text, place in zip(texts, places, strict=True))


EFFECTS = (
    "What the same model would find on the whole population that the records were drawn from. Numbers are per 1 of the "
    "column, or per the unit in its name; truth is against falsehood, categories and knots are against their base. "
    "Intervals and p-values count sampling and privacy noise."
)
CAUTION = "caution"
BELOW = ("schema", "target", "classes", "weights", "bias")
"""What a summary says that belongs below its numbers."""
LARGEST = 700.0
"""A logarithm whose exponential is beyond double precision."""
FIRST = 60
"""Lines of the plot that are shown before the rest is folded away."""
_DIGITS = 4


@dataclass(frozen=True)
class _Effect:
    """One line: its class and feature, the effect with its ends on the scale of the plot, and its numbers as texts."""

    group: str
    name: str
    at: tuple[float, float, float]
    cells: tuple[str, ...]
    is_intercept: bool = False

    @property
    def shown(self) -> bool:
        return math.isfinite(self.at[0])


def effects_section(summary: "Summary | str") -> str:
    """Return the section; where there are no effects, why."""
    title = '<h2 id="effects">Effects for a population</h2>'
    if isinstance(summary, str):
        return f"{title}\n{paragraphs([summary])}"
    effects = _effects(summary)
    below = [f"{name.capitalize()}: {summary.facts[name]}." for name in BELOW if name in summary.facts]
    caution = [summary.facts[CAUTION]] if CAUTION in summary.facts else []
    hidden = [f"{hidden_text(summary.reasons)}."] if any(not effect.shown for effect in effects) else []
    return "\n".join(
        [
            title,
            paragraphs(caution, "weak"),
            paragraphs([EFFECTS]),
            _forest(effects, summary.ratio),
            _table(effects, summary),
            _columns(summary),
            effect_curves(summary),
            paragraphs([*hidden, *below], "note"),
            _details(summary),
        ]
    )


def _effects(summary: "Summary") -> list[_Effect]:
    """Return the effects in the summary's order, without ratios' intercepts and coefficients of smooth curves."""
    columns, places = summary.columns(), summary.blocks or [("", name) for name in summary.names]
    effects, alone = [], set(summary.structure.ratios)
    for j, (group, name) in enumerate(places):
        is_intercept = not summary.structure.terms[j]
        if j not in alone and (summary.ratio or not is_intercept):
            continue
        at = tuple(float(columns[column][j]) for column in ("coef", "low", "high"))
        value, low, high = (_text(_ratio(x), "ratio") if summary.ratio else _text(x) for x in at)
        interval = f"{low} to {high}" if math.isfinite(at[0]) else DASH
        cells = (value, interval, _p(float(columns["p"][j])))
        effects.append(_Effect(group, name, at, cells, is_intercept))  # type: ignore[arg-type]
    return effects


def _columns(summary: "Summary") -> str:
    """Tests of columns that have several effects, each as a whole."""
    rows = []
    for column, test in summary.column_tests().items():
        if len(summary.structure.of_column(column)) > 1:
            every = max(len(summary.structure.of_column(column)), 0 if test is None else test.df)
            more = f" of {every}" if test is not None and test.left_out else ""
            cells = (DASH, DASH) if test is None else (f"{test.df}{more}", _p(test.p))
            rows.append((column, *cells))
    if not rows:
        return ""
    shown = table(["column", "effects tested", "p"], rows, label="Whole columns", numeric=(1, 2), kind="stacked")
    note = "A column of several effects (cells, knots, products, classes): whether any of those shown is not 0."
    return f"<h3>Whole columns</h3>\n{paragraphs([note], 'note')}{shown}"


def _ratio(logarithm: float) -> float:
    return math.exp(logarithm) if not logarithm > LARGEST else math.inf


def _text(value: float, column: str = "coef") -> str:
    if column == "ratio" and abs(value - 1.0) < NEAR_ONE:
        return number_text(column, value)
    return DASH if math.isnan(value) else number(value, _DIGITS)


def _p(value: float) -> str:
    return DASH if math.isnan(value) else "<.001" if value < 0.001 else f"{value:.3f}"


def _forest(effects: Sequence[_Effect], ratio: str) -> str:
    drawn = [effect for effect in effects if not effect.is_intercept]
    ends = [x for effect in drawn if effect.shown for x in effect.at if math.isfinite(x)]
    common = max(min([0.0, *ends]), -WIDEST), min(max([0.0, *ends]), WIDEST)
    lines, group = [], ""
    for effect in drawn:
        if effect.group and effect.group != group:
            lines.append(strip(effect.group, 0))
        group = effect.group or group
        reach = max((abs(x) for x in effect.at if math.isfinite(x)), default=0.0)
        scale = common if ratio else (-reach, reach)
        lines.append(strip(effect.name, int(bool(effect.group)), mark(scale, *effect.at), effect.cells[0]))
    first, rest = lines[:FIRST], lines[FIRST:]
    description = f"Forest plot of {len(drawn)} effects with their intervals. The table below has the numbers."
    note = (
        f"Dots are {ratio}s on a logarithmic scale, whiskers their intervals; the line is at 1: no effect."
        if ratio
        else "Dots are the effects, whiskers their intervals, each on a scale of its own; the line is at 0: no effect."
    )
    ticks, scale = (ratio_ticks(*common), common) if ratio else (ZERO, (-1.0, 1.0))
    shown = forest(first, ticks, scale, description, note)
    return shown + (details(f"{len(rest)} more lines", forest(rest, ticks, scale, "The plot goes on.")) if rest else "")


def _table(effects: Sequence[_Effect], summary: "Summary") -> str:
    several = bool(summary.blocks)
    head = ["feature", summary.ratio or "effect", f"{100 * summary.level:g}% interval", "p"]
    rows = [
        (f"{effect.group}: {effect.name}" if several and effect.group else effect.name, *effect.cells)
        for effect in effects
    ]
    return table(head, rows, label="Effects for a population", numeric=range(1, len(head)), kind="wide stacked")


def _details(summary: "Summary") -> str:
    """Coefficients, standard errors and what privacy costs: to copy."""
    head, *rows = summary.cells()
    description = "Coefficients, standard errors, and how much wider they are than without privacy (inflation)"
    shown = table(head, rows, label=description, numeric=range(1, len(head)), kind="wide stacked")
    return details(description, shown)
