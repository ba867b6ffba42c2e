"""Curves of columns with knots as SVG: the effect over a column's range, with a band for the whole curve."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from discreet.inference.pictures import WIDEST, ratio_ticks
from discreet.report.page import number, paragraphs, round_ticks

if TYPE_CHECKING:
    from discreet.inference.summary import Summary
    from discreet.models.term_effects import TermEffect

WIDTH, HEIGHT = 400.0, 240.0
LEFT, RIGHT, TOP, BOTTOM = 46.0, 14.0, 34.0, 44.0
FIRST = 8
"""Panels that are shown before the rest is folded away."""
LONGEST = 36
"""Characters of a name in a panel's title."""
NOISE_ONLY = (
    "What each value of a column adds to the prediction, before its link, against the mean over the declared range. "
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
    first, rest = panels[:FIRST], panels[FIRST:]
    more = f"<details><summary>{len(rest)} more curves</summary>{_group(rest)}</details>" if rest else ""
    return f"<h3>Curves</h3>\n{_group(first)}{more}\n{paragraphs([note], 'note')}"


def noise_curves(effects: "Sequence[TermEffect]", deviations: float) -> str:
    """A panel for each effect of a number, with a band of so many deviations of the privacy noise."""
    panels, several = [], len({effect.output for effect in effects}) > 1
    for effect in effects:
        half = [0.0] * len(effect.values) if effect.noise is None else (deviations * effect.noise).tolist()
        points = [(x, y, y - h, y + h) for x, y, h in zip(effect.values, effect.effect.tolist(), half, strict=True)]
        panels.append(_panel(f"{effect.output}: {effect.column}" if several else effect.column, "", points, ""))
    first, rest = panels[:FIRST], panels[FIRST:]
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
