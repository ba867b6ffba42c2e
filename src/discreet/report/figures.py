"""SVG figures of a page: panels with axes, and forests of dots and whiskers, one strip per row."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from discreet.report.page import isolated

WIDTH, HEIGHT = 400.0, 250.0
LEFT, RIGHT, TOP, BOTTOM = 46.0, 14.0, 34.0, 46.0
INSET = 8.0
"""Between the ends of the x axis and what is drawn, so that marks at the ends are whole."""
MARGIN = 4.0
"""Percent of a strip that stays empty at each end."""
Tick = tuple[float, str]
Scale = tuple[float, float]


@dataclass(frozen=True)
class Axes:
    """The axes of a panel: map values to pixels; values beyond the y range lie on its end."""

    x_range: Scale
    y_range: Scale
    is_log: bool = False

    def x(self, value: float) -> float:
        """Return the place of a value from the left."""
        low, high, value = map(math.log, (*self.x_range, value)) if self.is_log else (*self.x_range, value)
        return LEFT + INSET + (WIDTH - LEFT - RIGHT - 2 * INSET) * (value - low) / (high - low)

    def y(self, value: float) -> float:
        """Return the place of a value from the top."""
        low, high = self.y_range
        return TOP + (HEIGHT - TOP - BOTTOM) * (1 - (min(max(value, low), high) - low) / (high - low))

    def level(self, value: float) -> str:
        """Draw a line at a value, for others to be compared with."""
        y = f"{self.y(value):.1f}"
        return f'<line class="level" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y}" y2="{y}"/>'

    def curve(self, points: Sequence[tuple[float, float]]) -> str:
        """Draw a line through points."""
        return f'<path class="curve" d="{self._path(points)}"/>'

    def band(self, points: Sequence[tuple[float, float, float]]) -> str:
        """Draw a band of (x, low, high)."""
        edge = [(x, high) for x, _, high in points] + [(x, low) for x, low, _ in reversed(points)]
        return f'<path class="range" d="{self._path(edge)}Z"/>'

    def _path(self, points: Sequence[tuple[float, float]]) -> str:
        return "M" + "L".join(f"{self.x(x):.1f} {self.y(y):.1f}" for x, y in points)


def panel(
    title: str,
    spoken: str,
    axes: Axes,
    body: Iterable[str],
    x_ticks: Sequence[Tick],
    y_ticks: Sequence[Tick],
    name: str = "",
) -> str:
    """Return a picture with axes; ``spoken`` is what it shows, for those who cannot see it, ``name`` the x axis's."""
    floor = HEIGHT - BOTTOM
    grid = "".join(
        f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{axes.y(at):.1f}" y2="{axes.y(at):.1f}"/>'
        f'<text x="{LEFT - 7}" y="{axes.y(at) + 4:.1f}" text-anchor="end">{escape(text)}</text>'
        for at, text in y_ticks
    )
    names = "".join(
        f'<text x="{axes.x(at):.1f}" y="{floor + 17}" text-anchor="middle">{escape(text)}</text>'
        for at, text in x_ticks
    )
    middle = (LEFT + WIDTH - RIGHT) / 2
    below = f'<text class="name" x="{middle:.1f}" y="{HEIGHT - 8}" text-anchor="middle">{name}</text>' if name else ""
    return (
        f'<figure class="panel"><svg viewBox="0 0 {WIDTH:g} {HEIGHT:g}" role="img" aria-label="{escape(spoken)}">'
        f'<text class="title" x="0" y="14">{escape(title)}</text>{grid}'
        f'<line class="zero" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{floor}" y2="{floor}"/>{"".join(body)}{names}{below}'
        "</svg></figure>"
    )


def panels(parts: Sequence[str]) -> str:
    """Return panels next to one another."""
    return f'<div class="panels">{"".join(parts)}</div>'


def details(summary: str, content: str) -> str:
    """Return content that is folded away under its summary."""
    return f"<details><summary>{summary}</summary>{content}</details>"


def forest(rows: Sequence[str], ticks: Sequence[Tick], scale: Scale, spoken: str, caption: str = "") -> str:
    """Return rows of strips above one axis."""
    texts = "".join(f'<text x="{_at(at, scale)}" y="14" text-anchor="middle">{text}</text>' for at, text in ticks)
    axis = (
        f'<div class="row axis"><span class="label"></span><span class="strip"><svg>{texts}</svg></span>'
        '<span class="value"></span></div>'
    )
    below = f"<figcaption>{caption}</figcaption>" if caption else ""
    return f'<figure class="forest"><div role="img" aria-label="{spoken}">{"".join(rows)}{axis}</div>{below}</figure>'


def strip(label: str, depth: int, mark: str = "", value: str = "", unit: str = "") -> str:
    """Return a row of a forest: what it is of, its mark and its number; a heading where there is no mark."""
    heading, small = "" if mark else " heading", f" <small>{isolated(unit)}</small>" if unit else ""
    return (
        f'<div class="row deep{depth}{heading}"><span class="label">{isolated(label)}{small}</span>'
        f'<span class="strip"><svg>{mark}</svg></span><span class="value">{escape(value)}</span></div>'
    )


def mark(scale: Scale, value: float, low: float, high: float) -> str:
    """Return a line at 0, and a dot with whiskers; each only where it is a number."""
    zero = _at(0.0, scale)
    drawn = f'<line class="zero" x1="{zero}" x2="{zero}" y1="0" y2="100%"/>'
    if math.isfinite(value) and not (math.isnan(low) or math.isnan(high)):
        ends = _at(low, scale), _at(high, scale)
        drawn += f'<line class="whisker" x1="{ends[0]}" x2="{ends[1]}" y1="50%" y2="50%"/>'
    if math.isfinite(value):
        drawn += f'<circle class="dot" cx="{_at(value, scale)}" cy="50%" r="4.2"/>'
    return drawn


def _at(value: float, scale: Scale) -> str:
    """Return the place of a value on a strip."""
    low, high = scale
    share = (min(max(value, low), high) - low) / (high - low) if math.isfinite(high - low) and high > low else 0.5
    return f"{MARGIN + (100 - 2 * MARGIN) * share:.2f}%"
