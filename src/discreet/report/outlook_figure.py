"""The curves of an outlook as SVG: two panels of simulated scores, two of proven bounds."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

from discreet.report.formulas import rate_formula
from discreet.report.markup import number, paragraphs, percent, round_ticks, short
from discreet.report.outlook import Bounded, Outlook, Simulated

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


def outlook_section(outlook: Outlook) -> str:
    """Simulated curves, proven curves, and what each is worth."""
    parts = [paragraphs([_answer(outlook)])] if outlook.over_epsilon else []
    if outlook.over_epsilon:
        parts += [
            "<h3>Simulated</h3>",
            f'<div class="panels">{_simulated(outlook, over_rows=False)}{_simulated(outlook, over_rows=True)}</div>',
            paragraphs(["Line: mean. Band: lowest to highest fit. Ring: this model's setting."], "note"),
        ]
    parts += [
        paragraphs(outlook.remarks, "note"),
        "<h3>Proven, for the worst data</h3>",
        paragraphs([_theory(outlook)]),
        rate_formula(pure=outlook.pure) if outlook.general else "",
        f'<div class="panels">{_bounds(outlook, over_rows=False)}{_bounds(outlook, over_rows=True)}</div>',
        paragraphs(
            [
                "Solid: the bound. Dots: the order that no private method beats on its worst data. In the shaded part "
                "a bound says nothing, as a model of zeros is not worse.",
            ],
            "note",
        ),
    ]
    return "\n".join(parts)


def _shown(outlook: Outlook, value: float) -> str:
    return percent(value) if outlook.score == "accuracy" else number(value)


def _named(outlook: Outlook) -> str:
    return "accuracy" if outlook.score == "accuracy" else "R²"


def _answer(outlook: Outlook) -> str:
    def near(points: Sequence[Simulated], at: float) -> Simulated:
        return min(points, key=lambda point: abs(math.log(point.at / at)))

    asked = near(outlook.over_epsilon, outlook.epsilon)
    twice_rows, twice = near(outlook.over_rows, 2 * outlook.n), near(outlook.over_epsilon, 2 * outlook.epsilon)
    half, half_rows = near(outlook.over_epsilon, outlook.epsilon / 2), near(outlook.over_rows, outlook.n / 2)
    name = _named(outlook)

    def shown(value: float) -> str:
        return _shown(outlook, value)

    others = [shown(point.score) for point in (half, twice, half_rows, twice_rows)]
    moved = (
        f"With half the epsilon it would be {others[0]}, with twice the epsilon {others[1]}, with half the rows "
        f"{others[2]} and with twice the rows {others[3]}."
    )
    if set(others) == {shown(asked.score)}:
        moved = "With half or twice the epsilon or the rows it would be the same, to the last digit shown."
    return (
        f"On synthetic tables of this shape such a fit reaches an {name} of {shown(asked.score)}, against "
        f"{shown(outlook.non_private)} without privacy and {shown(outlook.trivial)} for a model that looks at no "
        f"column. {moved} The table of this model was not used for this."
    )


def _theory(outlook: Outlook) -> str:
    asked = min(outlook.bound_over_epsilon, key=lambda point: abs(point.at - outlook.epsilon))
    useless = asked.upper >= outlook.nothing
    judged = "so here it says nothing" if useless else "so the bound says something, however little"
    return (
        f"Theory bounds the training loss per row, F, above its smallest value ({outlook.bound_of}): at most "
        f"{number(asked.upper, 2)} here, on average over the noise. A model of zeros is {number(outlook.nothing, 2)} "
        f"above it, {judged}. The best "
        f"coefficients are assumed to have a length of at most D = {number(outlook.diameter)}. Usual tables "
        "are far from the worst ones: expect much better."
    )


def _simulated(outlook: Outlook, *, over_rows: bool) -> str:
    points = outlook.over_rows if over_rows else outlook.over_epsilon
    everything = (*outlook.over_epsilon, *outlook.over_rows)
    high = max([outlook.non_private, *(point.high for point in everything)])
    low = max(min(point.low for point in everything), min(outlook.trivial, outlook.non_private))
    margin = max(LEAST_SPAN - (high - low), 0.0) / 2
    room = 0.1 * (high - low + 2 * margin)
    top = high + margin + room if outlook.score != "accuracy" else min(1.0, high + margin + room)
    frame = _Frame(points[0].at, points[-1].at, low - margin - room, top)
    own = float(outlook.n) if over_rows else outlook.epsilon
    asked = min(points, key=lambda point: abs(math.log(point.at / own)))
    line = _path([(frame.x(point.at), frame.y(point.score)) for point in points])
    band = [(frame.x(point.at), frame.y(point.high)) for point in points]
    band += [(frame.x(point.at), frame.y(point.low)) for point in reversed(points)]
    level = frame.y(outlook.non_private)
    body = [
        f'<path class="range" d="{_path(band)}Z"/>',
        f'<line class="level" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{level:.1f}" y2="{level:.1f}"/>',
        f'<text class="of-level" x="{LEFT + 4}" y="{level - 5:.1f}">without privacy</text>',
        f'<path class="curve" d="{line}"/>',
        *(f'<circle class="point" cx="{frame.x(p.at):.1f}" cy="{frame.y(p.score):.1f}" r="3"/>' for p in points),
        _ring(frame, asked.at, asked.score, _shown(outlook, asked.score)),
    ]
    told = ", ".join(f"{_shown(outlook, p.score)} at {_at(p.at, over_rows)}" for p in points)
    ticks = round_ticks(frame.y_low, frame.y_high, 6)
    digits = 0 if ticks[-1] - ticks[0] >= 0.04 else 1

    def label(value: float) -> str:
        return percent(value, digits) if outlook.score == "accuracy" else number(value)

    title = f"{_named(outlook).capitalize()} over {'rows' if over_rows else 'epsilon'}"
    return _panel(title, told, frame, body, [point.at for point in points], ticks, label, over_rows)


def _bounds(outlook: Outlook, *, over_rows: bool) -> str:
    points = outlook.bound_over_rows if over_rows else outlook.bound_over_epsilon
    everything = (*outlook.bound_over_rows, *outlook.bound_over_epsilon)
    sizes = [size for point in everything for size in (point.upper, point.order) if 0 < size < math.inf]
    if not sizes:
        return ""
    low = math.floor(math.log10(min(*sizes, outlook.nothing)) * 2) / 2
    high = math.ceil(math.log10(max(*sizes, outlook.nothing)) * 2) / 2
    frame = _Frame(points[0].at, points[-1].at, low, high)

    def curve(of: Callable[[Bounded], float]) -> str:
        return _path(
            [(frame.x(point.at), frame.y(math.log10(of(point)))) for point in points if 0 < of(point) < math.inf]
        )

    own = float(outlook.n) if over_rows else outlook.epsilon
    asked = min(points, key=lambda point: abs(math.log(point.at / own)))
    level = frame.y(math.log10(outlook.nothing))
    body = [
        f'<rect class="useless" x="{LEFT}" y="{TOP}" width="{WIDTH - LEFT - RIGHT}" '
        f'height="{max(0.0, level - TOP):.1f}"/>',
        f'<line class="level" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{level:.1f}" y2="{level:.1f}"/>',
        f'<text class="of-level" x="{WIDTH - RIGHT - 4}" y="{level - 5:.1f}" text-anchor="end">a model of zeros</text>',
        f'<path class="order" d="{curve(lambda point: point.order)}"/>',
        f'<path class="curve" d="{curve(lambda point: point.upper)}"/>',
        _ring(frame, asked.at, math.log10(asked.upper), number(asked.upper, 2)) if asked.upper < math.inf else "",
    ]
    ends = ", ".join(f"{number(p.upper, 2)} at {_at(p.at, over_rows)}" for p in (points[0], asked, points[-1]))
    ticks = [float(k) for k in range(math.ceil(low), math.floor(high) + 1)]
    simulated = outlook.over_rows if over_rows else outlook.over_epsilon
    places = [p.at for p in simulated] or [points[0].at, asked.at, points[-1].at]
    title = f"Bound on the excess loss over {'rows' if over_rows else 'epsilon'}"
    return _panel(title, ends, frame, body, places, ticks, lambda power: number(10**power), over_rows)


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
