"""Effects for a population: a forest plot from the model's summary, the same numbers as a table, and their caveats.

Ratios lie on one logarithmic scale, which ends where the widest intervals do, at ratios of 1000 at the most.
Differences have their columns' units, so each has a scale of its own, with 0 in the middle.

Columns with knots have curves, as SVG: the effect over the column's range, with a band for the whole curve.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from discreet.inference.pictures import WIDEST, ratio_ticks
from discreet.inference.text import DASH, hidden_text
from discreet.report.page import isolated, number, paragraphs, round_ticks, table

if TYPE_CHECKING:
    from discreet.inference.summary import Summary
    from discreet.models.term_effects import TermEffect


WIDTH, HEIGHT = 400.0, 240.0
LEFT, RIGHT, TOP, BOTTOM = 46.0, 14.0, 34.0, 44.0
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


@dataclass(frozen=True)
class _Frame:
    """A panel's axes."""

    x_range: tuple[float, float]
    y_range: tuple[float, float]

    def x(self, value: float) -> float:
        low, high = self.x_range
        return LEFT + (WIDTH - LEFT - RIGHT) * (value - low) / (high - low)

    def y(self, value: float) -> float:
        low, high = self.y_range
        return TOP + (HEIGHT - TOP - BOTTOM) * (1 - (min(max(value, low), high) - low) / (high - low))


def effect_curves(summary: "Summary") -> str:
    """A panel for each column with knots, and for each class; nothing without knots."""
    panels = []
    for column in summary.structure.shapes:
        for group, curve in summary.curve_columns(column).items():
            points = list(
                zip(*(curve[name].tolist() for name in ("x", "effect", "band_low", "band_high")), strict=True)
            )
            against = f", against {number(float(curve['reference'][0]))}"
            panels.append(_panel(f"{group}: {column}" if summary.blocks else column, against, points, summary.ratio))
    if not panels:
        return ""
    note = (
        f"The {summary.ratio or 'effect'} of each value against one of them. The band covers the whole curve, in "
        f"{100 * summary.level:g}% of studies; gaps are hidden by noise. Where a column is in products with others, "
        "the curve is at 0, or the base, of these."
    )
    first, rest = panels[:FIRST_CURVES], panels[FIRST:]
    more = f"<details><summary>{len(rest)} more curves</summary>{_group(rest)}</details>" if rest else ""
    return f"<h3>Curves</h3>\n{_group(first)}{more}\n{paragraphs([note], 'note')}"


def noise_curves(effects: "Sequence[TermEffect]", deviations: float) -> str:
    """A panel for each effect of a number, with a band of so many deviations of the privacy noise."""
    panels, several = [], len({effect.output for effect in effects}) > 1
    for effect in effects:
        half = [0.0] * len(effect.values) if effect.noise is None else (deviations * effect.noise).tolist()
        points = [(x, y, y - h, y + h) for x, y, h in zip(effect.values, effect.effect.tolist(), half, strict=True)]
        name = f"{effect.output}: {effect.column}" if several else effect.column
        panels.append(_panel(name, f" where {effect.other} = {effect.at}" if effect.other else "", points, ""))
    first, rest = panels[:FIRST_CURVES], panels[FIRST:]
    more = f"<details><summary>{len(rest)} more curves</summary>{_group(rest)}</details>" if rest else ""
    return f"<h3>Curves</h3>\n{_group(first)}{more}\n{paragraphs([NOISE_ONLY], 'note')}" if panels else ""


def _group(panels: Sequence[str]) -> str:
    return f'<div class="panels">{"".join(panels)}</div>'


def _panel(name: str, against: str, points: Sequence[Point], ratio: str) -> str:
    limited = [_within(point) if ratio else point for point in points]
    ends = [y for _, *values in limited for y in values if math.isfinite(y)]
    low, high = min([0.0, *ends]), max([0.0, *ends])
    room = 0.06 * (high - low) or 0.1
    frame = _Frame((limited[0][0], limited[-1][0]), (low - room, high + room))
    level = frame.y(0.0)
    body = [f'<line class="level" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{level:.1f}" y2="{level:.1f}"/>']
    for piece in _pieces(limited):
        top = [(frame.x(x), frame.y(end)) for x, _, _, end in piece]
        bottom = [(frame.x(x), frame.y(end)) for x, _, end, _ in reversed(piece)]
        body.append(f'<path class="range" d="{_path([*top, *bottom])}Z"/>')
        body.append(f'<path class="curve" d="{_path([(frame.x(x), frame.y(y)) for x, y, _, _ in piece])}"/>')
    ticks = ratio_ticks(low, high, 5) if ratio else [(t, number(t)) for t in round_ticks(low, high, 5)]
    title = f"{name if len(name) <= LONGEST else name[: LONGEST - 1] + '…'}{against}"
    if len(body) == 1:
        body.append(f'<text x="{WIDTH / 2:g}" y="{level - 12:.1f}" text-anchor="middle">noise hides this curve</text>')
    return (
        f'<figure class="panel"><svg viewBox="0 0 {WIDTH:g} {HEIGHT:g}" role="img" aria-label="'
        f'{escape(f"Effect of {name}{against}: {_spoken(points, ratio)}")}">'
        f'<text class="title" x="0" y="14">{escape(title)}</text>{_grid(frame, ticks)}{"".join(body)}</svg></figure>'
    )


def _within(point: Point) -> Point:
    x, *values = point
    effect, low, high = (min(max(y, -WIDEST), WIDEST) if math.isfinite(y) else y for y in values)
    return x, effect, low, high


def _pieces(points: Sequence[Point]) -> list[list[Point]]:
    """The parts of a curve that noise does not hide."""
    pieces: list[list[Point]] = [[]]
    for point in points:
        if all(math.isfinite(y) for y in point):
            pieces[-1].append(point)
        elif pieces[-1]:
            pieces.append([])
    return [piece for piece in pieces if len(piece) > 1]


def _spoken(points: Sequence[Point], ratio: str) -> str:
    """The effect at both ends and in the middle, for those who cannot see the picture."""
    places = (points[0], points[len(points) // 2], points[-1])
    texts = [number(math.exp(y) if ratio else y) if math.isfinite(y) else "hidden" for _, y, _, _ in places]
    return ", ".join(f"{text} at {number(place[0])}" for text, place in zip(texts, places, strict=True))


def _grid(frame: _Frame, ticks: Sequence[tuple[float, str]]) -> str:
    lines = "".join(
        f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{frame.y(at):.1f}" y2="{frame.y(at):.1f}"/>'
        f'<text x="{LEFT - 7}" y="{frame.y(at) + 4:.1f}" text-anchor="end">{escape(text)}</text>'
        for at, text in ticks
    )
    names = "".join(
        f'<text x="{frame.x(at):.1f}" y="{HEIGHT - BOTTOM + 17}" text-anchor="middle">{escape(number(at))}</text>'
        for at in round_ticks(*frame.x_range, 6)
    )
    floor = HEIGHT - BOTTOM
    return f'{lines}<line class="zero" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{floor}" y2="{floor}"/>{names}'


def _path(points: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)


EFFECTS = (
    "What the same model would find on the whole population that the records were drawn from. Numbers are per 1 of the "
    "column, or per the unit in its name; truth is against falsehood, categories and knots are against their base. "
    "Intervals and p-values count sampling and privacy noise."
)
CAUTION = "caution"
BELOW = ("target", "classes", "weights", "bias")
"""What a summary says that belongs below its numbers."""
MARGIN = 4.0  # percent of a strip that stays empty at each end
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
    """The section; where there are no effects, why."""
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
        value, low, high = (_text(_ratio(x) if summary.ratio else x) for x in at)
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
            rows.append(
                f'<tr><th scope="row">{isolated(column)}</th><td class="number" data-label="effects tested">{cells[0]}'
                f'</td><td class="number" data-label="p">{escape(cells[1])}</td></tr>'
            )
    if not rows:
        return ""
    shown = table(["column", "effects tested", "p"], rows, label="Whole columns", numeric=(1, 2), kind="stacked")
    note = "A column of several effects (cells, knots, products, classes): whether any of those shown is not 0."
    return f"<h3>Whole columns</h3>\n{paragraphs([note], 'note')}{shown}"


def _ratio(logarithm: float) -> float:
    return math.exp(logarithm) if not logarithm > LARGEST else math.inf


def _text(value: float) -> str:
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
            lines.append(_line("row heading", effect.group, "", ""))
        group = effect.group or group
        reach = max((abs(x) for x in effect.at if math.isfinite(x)), default=0.0)
        scale = common if ratio else (-reach, reach)
        lines.append(_line(f"row deep{int(bool(effect.group))}", effect.name, _mark(effect, scale), effect.cells[0]))
    first, rest = lines[:FIRST], lines[FIRST:]
    description = f"Forest plot of {len(drawn)} effects with their intervals. The table below has the numbers."
    note = (
        f"Dots are {ratio}s on a logarithmic scale, whiskers their intervals; the line is at 1: no effect."
        if ratio
        else "Dots are the effects, whiskers their intervals, each on a scale of its own; the line is at 0: no effect."
    )
    axis = _axis(common, ratio)
    figure = f'<div role="img" aria-label="{description}">{"".join(first)}{axis}</div><figcaption>{note}</figcaption>'
    shown = f'<figure class="forest">{figure}</figure>'
    if not rest:
        return shown
    folded = (
        f'<figure class="forest"><div role="img" aria-label="The plot goes on.">{"".join(rest)}{axis}</div></figure>'
    )
    return f"{shown}<details><summary>{len(rest)} more lines</summary>{folded}</details>"


def _at(value: float, scale: tuple[float, float]) -> str:
    low, high = scale
    share = (min(max(value, low), high) - low) / (high - low) if high > low else 0.5
    return f"{MARGIN + (100 - 2 * MARGIN) * share:.2f}%"


def _mark(effect: _Effect, scale: tuple[float, float]) -> str:
    """The line of no effect, and on it the effect with its interval."""
    nothing = _at(0.0, scale)
    none = f'<line class="zero" x1="{nothing}" x2="{nothing}" y1="0" y2="100%"/>'
    if not effect.shown:
        return none
    value, low, high = (_at(x, scale) for x in effect.at)
    whisker = f'<line class="whisker" x1="{low}" x2="{high}" y1="50%" y2="50%"/>'
    return f'{none}{whisker}<circle class="dot" cx="{value}" cy="50%" r="4.2"/>'


def _line(kind: str, label: str, mark: str, value: str) -> str:
    return (
        f'<div class="{kind}"><span class="label">{isolated(label)}</span><span class="strip"><svg>{mark}</svg></span>'
        f'<span class="value">{escape(value)}</span></div>'
    )


def _axis(scale: tuple[float, float], ratio: str) -> str:
    """Round ratios that are not too near one another, or 0 alone."""
    low, high = scale if ratio else (-1.0, 1.0)
    places = ratio_ticks(low, high) if ratio else [(0.0, "0")]
    texts = "".join(
        f'<text x="{_at(at, (low, high))}" y="14" text-anchor="middle">{text}</text>' for at, text in places
    )
    return (
        f'<div class="row axis"><span class="label"></span><span class="strip"><svg>{texts}</svg></span>'
        '<span class="value"></span></div>'
    )


def _table(effects: Sequence[_Effect], summary: "Summary") -> str:
    several = bool(summary.blocks)
    head = ["feature", summary.ratio or "effect", f"{100 * summary.level:g}% interval", "p"]
    rows = []
    for effect in effects:
        name = f"{effect.group}: {effect.name}" if several and effect.group else effect.name
        cells = "".join(
            f'<td class="number" data-label="{escape(label)}">{escape(cell)}</td>'
            for label, cell in zip(head[1:], effect.cells, strict=True)
        )
        rows.append(f'<tr><th scope="row">{isolated(name)}</th>{cells}</tr>')
    return table(head, rows, label="Effects for a population", numeric=range(1, len(head)), kind="wide stacked")


def _details(summary: "Summary") -> str:
    """Coefficients, standard errors and what privacy costs: to copy."""
    head, *rows = summary.cells()
    body = (
        f'<tr><th scope="row">{isolated(name)}</th>'
        + "".join(
            f'<td class="number" data-label="{escape(label)}">{escape(cell)}</td>'
            for label, cell in zip(head[1:], cells, strict=True)
        )
        + "</tr>"
        for name, *cells in rows
    )
    description = "Coefficients, standard errors, and how much wider they are than without privacy (inflation)"
    shown = table(head, body, label=description, numeric=range(1, len(head)), kind="wide stacked")
    return f"<details><summary>{description}</summary>{shown}</details>"
