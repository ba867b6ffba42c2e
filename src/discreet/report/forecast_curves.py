"""The curves of a cost forecast as SVG: what privacy would cost, over epsilon and over the number of rows."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

from discreet.report.forecast_section import CostForecast, Simulated
from discreet.report.html import MINUS, number, paragraphs, round_ticks, short

WIDTH, HEIGHT = 400.0, 250.0
LEFT, RIGHT, TOP, BOTTOM = 46.0, 14.0, 34.0, 46.0
LEAST_SPAN = 0.02  # of a score: smaller differences are noise of the simulation


@dataclass(frozen=True)
class _Frame:
    """A panel's axes: x is logarithmic; y is whatever ``height`` makes of it."""

    x_low: float
    x_high: float
    y_low: float
    y_high: float

    def x(self, value: float) -> float:
        share = (math.log(value) - math.log(self.x_low)) / (math.log(self.x_high) - math.log(self.x_low))
        return LEFT + 8 + (WIDTH - LEFT - RIGHT - 16) * share

    def y(self, value: float) -> float:
        share = (value - self.y_low) / (self.y_high - self.y_low)
        return TOP + (HEIGHT - TOP - BOTTOM) * (1 - min(max(share, -0.02), 1.02))


def curves_section(forecast: CostForecast) -> str:
    """Simulated losses, and what they are worth."""
    parts = []
    if forecast.over_epsilon:
        panels = "".join(_panel_of(forecast, over_rows=over_rows) for over_rows in (False, True))
        said = "Line: mean loss. Band: least to most of the simulated fits. Ring: this model's setting."
        parts = [paragraphs([_answer(forecast)]), f'<div class="panels">{panels}</div>', paragraphs([said], "note")]
    return "\n".join([*parts, paragraphs(forecast.remarks, "note")])


def _shown(forecast: CostForecast, lost: float) -> str:
    """A loss, in percentage points or of R2."""
    shown = f"{100 * lost:.1f}" if forecast.score == "accuracy" else f"{lost:.3f}"
    return shown.replace("-", MINUS)


def _unit(forecast: CostForecast) -> str:
    return "points of accuracy" if forecast.score == "accuracy" else "of R²"


def _answer(forecast: CostForecast) -> str:
    def near(points: Sequence[Simulated], at: float) -> str:
        return _shown(forecast, min(points, key=lambda point: abs(math.log(point.at / at))).lost)

    epsilon, rows = forecast.epsilon, float(forecast.n)
    asked = near(forecast.over_epsilon, epsilon)
    others = [near(forecast.over_epsilon, epsilon * by) for by in (0.5, 2)]
    others += [near(forecast.over_rows, rows * by) for by in (0.5, 2)]
    moved = (
        f"With half the epsilon it costs {others[0]}, with twice the epsilon {others[1]}, with half the rows "
        f"{others[2]} and with twice the rows {others[3]}."
    )
    if set(others) == {asked}:
        moved = "With half or twice the epsilon or the rows it costs the same, to the last digit shown."
    return (
        f"On synthetic tables of this shape privacy costs such a fit {asked} {_unit(forecast)}, against the same model "
        f"without privacy on the same rows. {moved} The table of this model was not used for this, and how well this "
        "model predicts is not said here: a released score tells."
    )


def _panel_of(forecast: CostForecast, *, over_rows: bool) -> str:
    points = forecast.over_rows if over_rows else forecast.over_epsilon
    everything = (*forecast.over_epsilon, *forecast.over_rows)
    high = max([0.0, *(point.most for point in everything)])
    low = min([0.0, *(point.least for point in everything)])
    margin = max(LEAST_SPAN - (high - low), 0.0) / 2
    room = 0.1 * (high - low + 2 * margin)
    frame = _Frame(points[0].at, points[-1].at, low - margin - room, high + margin + room)
    own = float(forecast.n) if over_rows else forecast.epsilon
    asked = min(points, key=lambda point: abs(math.log(point.at / own)))
    line = _path([(frame.x(point.at), frame.y(point.lost)) for point in points])
    band = [(frame.x(point.at), frame.y(point.most)) for point in points]
    band += [(frame.x(point.at), frame.y(point.least)) for point in reversed(points)]
    level = frame.y(0.0)
    body = [
        f'<path class="range" d="{_path(band)}Z"/>',
        f'<line class="level" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{level:.1f}" y2="{level:.1f}"/>',
        f'<text class="of-level" x="{LEFT + 4}" y="{level + 13:.1f}">without privacy</text>',
        f'<path class="curve" d="{line}"/>',
        *(f'<circle class="point" cx="{frame.x(p.at):.1f}" cy="{frame.y(p.lost):.1f}" r="3"/>' for p in points),
        _ring(frame, asked.at, asked.lost, _shown(forecast, asked.lost)),
    ]
    told = ", ".join(f"{_shown(forecast, p.lost)} at {_at(p.at, over_rows)}" for p in points)
    ticks = round_ticks(frame.y_low, frame.y_high, 6)

    def label(value: float) -> str:
        return number(100 * value if forecast.score == "accuracy" else value)

    what = "Points of accuracy lost" if forecast.score == "accuracy" else "R² lost"
    title = f"{what}, over {'rows' if over_rows else 'epsilon'}"
    return _panel(title, told, frame, body, [point.at for point in points], ticks, label, over_rows)


def _panel(
    title: str,
    told: str,
    frame: _Frame,
    body: Sequence[str],
    places: Sequence[float],
    ticks: Sequence[float],
    label: Callable[[float], str],
    over_rows: bool,
) -> str:
    floor = HEIGHT - BOTTOM
    grid = "".join(
        f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{frame.y(t):.1f}" y2="{frame.y(t):.1f}"/>'
        f'<text x="{LEFT - 7}" y="{frame.y(t) + 4:.1f}" text-anchor="end">{escape(label(t))}</text>'
        for t in ticks
    )
    names = "".join(
        f'<text x="{frame.x(at):.1f}" y="{floor + 17}" text-anchor="middle">'
        f"{short(at) if over_rows else f'{at:.3g}'}</text>"
        for at in places
    )
    axis = "rows (logarithmic)" if over_rows else "epsilon (logarithmic; smaller is more private)"
    return (
        f'<figure class="panel"><svg viewBox="0 0 {WIDTH:g} {HEIGHT:g}" role="img" '
        f'aria-label="{escape(title)}: {escape(told)}"><text class="title" x="0" y="14">{escape(title)}</text>{grid}'
        f'<line class="zero" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{floor}" y2="{floor}"/>{"".join(body)}{names}'
        f'<text class="name" x="{(LEFT + WIDTH - RIGHT) / 2:.1f}" y="{HEIGHT - 8}" text-anchor="middle">{axis}</text>'
        "</svg></figure>"
    )


def _ring(frame: _Frame, at: float, value: float, text: str) -> str:
    x, y = frame.x(at), frame.y(value)
    below = y + 24 if y < TOP + 40 else y - 13
    return (
        f'<circle class="ring" cx="{x:.1f}" cy="{y:.1f}" r="7"/>'
        f'<text class="here" x="{x:.1f}" y="{below:.1f}" text-anchor="middle">{escape(text)}</text>'
    )


def _path(points: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)


def _at(place: float, over_rows: bool) -> str:
    return f"{place:,.0f} rows" if over_rows else f"epsilon {place:.3g}"
