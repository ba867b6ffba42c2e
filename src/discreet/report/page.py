"""The shell of every report, and the pieces of HTML and the pictures that pages are made of.

A page is one self-contained HTML file: no script, nothing fetched, light and dark. It is made of a certificate, numbers
that the caller may show, and pictures. It never reads data. Every text is escaped where it enters. matplotlib is
imported when a picture is drawn (``pip install "discreet[plot]"``), through its object interface: no global state, no
display.
"""

import io
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib.resources import files
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.accounting.certificate import Certificate, promises_nothing
from discreet.accounting.events import ZCDP
from discreet.errors import DiscreetError
from discreet.json_schemas import Json

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from discreet.accounting.certificate import Certificate
    from discreet.models.forecast import Forecast, ForecastRow


MINUS = "\N{MINUS SIGN}"


def isolated(text: str) -> str:
    """Return a name from a schema: escaped, and read in its own direction."""
    return f"<bdi>{escape(text)}</bdi>"


def paragraphs(texts: Iterable[str], kind: str = "") -> str:
    """Plain texts as paragraphs."""
    opening = f'<p class="{kind}">' if kind else "<p>"
    return "\n".join(f"{opening}{escape(text)}</p>" for text in texts)


def bullets(texts: Iterable[str]) -> str:
    """Plain texts as a list."""
    return "<ul>" + "".join(f"<li>{escape(text)}</li>" for text in texts) + "</ul>"


class Html(str):
    """A text that is HTML already: it is not escaped."""


def table(
    head: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    label: str,
    numeric: Sequence[int] = (),
    words: Sequence[int] = (),
    kind: str = "wide",
) -> str:
    """Return a table that scrolls within itself where it is too wide; the first cell of a row is its name.

    ``numeric`` columns hold numbers, ``words`` sentences. On narrow screens, where the rows of a stacked table are
    lists, each cell follows the name of its column.
    """
    looks = {**dict.fromkeys(numeric, ' class="number"'), **dict.fromkeys(words, ' class="words"')}
    labels = [f' data-label="{escape(name)}"' if name else "" for name in head]

    def cell(place: int, text: str) -> str:
        shown = text if isinstance(text, Html) else escape(text) if place else isolated(text)
        return f"<td{looks.get(place, '')}{labels[place]}>{shown}</td>" if place else f'<th scope="row">{shown}</th>'

    names = (
        f'<th scope="col"{looks[place] if place in numeric else ""}>{escape(name)}</th>'
        for place, name in enumerate(head)
    )
    body = (f"<tr>{''.join(cell(place, text) for place, text in enumerate(row))}</tr>" for row in rows)
    return (
        f'<div class="scroll" role="region" aria-label="{escape(label)}" tabindex="0"><table class="{kind}">'
        f"<thead><tr>{''.join(names)}</tr></thead><tbody>{''.join(body)}</tbody></table></div>"
    )


def number(value: float, digits: int = 3) -> str:
    """Return a number as people write it, with a real minus."""
    if not math.isfinite(value):
        return "not a number" if math.isnan(value) else ("∞" if value > 0 else f"{MINUS}∞")
    shown = f"{value:.{digits}g}"
    if 1e3 <= abs(float(shown)) < 1e6:
        shown = f"{float(shown):,.0f}"
    elif "e" in shown:
        mantissa, exponent = shown.split("e")
        power = str(int(exponent)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
        shown = f"10{power}" if mantissa == "1" else f"{mantissa} × 10{power}"
    return shown.replace("-", MINUS)


def percent(value: float, digits: int = 1) -> str:
    """Return a share of one, as a percentage."""
    return f"{100 * value:.{digits}f}%".replace("-", MINUS)


def short(count: float) -> str:
    """5,000 as 5k, 2,500,000 as 2.5M."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if count >= size:
            return f"{count / size:.3g}{letter}"
    return f"{count:.3g}"


def round_ticks(low: float, high: float, most: int = 6) -> list[float]:
    """At most ``most`` round numbers within a range."""
    if not (math.isfinite(high - low) and high > low):
        return [low]
    power = 10.0 ** math.floor(math.log10((high - low) / most))
    step = next(step * power for step in (1, 2, 5, 10, 20) if (high - low) / (step * power) <= most - 1)
    first = math.ceil(low / step - 1e-9)
    return [round(k * step, 12) + 0.0 for k in range(first, math.floor(high / step + 1e-9) + 1)]


_OPENING = '<script type="application/json" id="certificate">'
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"


@cache
def part(name: str) -> str:
    """Return a file next to this one: the shell of a page, or its style sheet with colors for light, dark and paper."""
    return files("discreet.report").joinpath(name).read_text(encoding="utf-8")


def document(title: str, body: str) -> str:
    """A whole page around its sections. Its policy forbids browsers to fetch anything, whatever the sections hold."""
    return part("page.html").format(title=escape(title), style=part("page.css"), policy=escape(POLICY), body=body)


def heading(title: str, certificate: Certificate) -> str:
    """Return the stamp, amber where the guarantee is weak, red where it promises next to nothing, and the title."""
    color = "weak" if certificate.weaknesses else "good"
    if not certificate.is_private or promises_nothing(
        certificate.epsilon, certificate.delta, certificate.assumed_public.get("n")
    ):
        color = "bad"
    return f'<p class="stamp {color}">{escape(certificate.headline)}</p>\n<h1><bdi>{escape(title)}</bdi></h1>'


def certificate_section(certificate: Certificate) -> str:
    """Return the certificate to read, and as JSON to check."""
    stored = certificate.to_json()
    for character in "<>&":  # so that no text in it ends the element, or starts a comment
        stored = stored.replace(character, f"\\u{ord(character):04x}")
    command = "discreet verify report.html"
    said = (
        "The certificate lists everything that was released. It is also in this page as JSON, in the element with the "
        "id <code>certificate</code>. To price its events again:"
    )
    return (
        f'<h2 id="certificate-text">Certificate</h2>\n<p>{said}</p>\n<pre class="wrap">{escape(command)}</pre>\n'
        f'<pre class="wrap">{escape(certificate.text())}</pre>\n{_OPENING}{stored}</script>'
    )


def certificate_in(page: str) -> Certificate:
    """The certificate that a page carries. ``verify`` checks its price; that it is this model's, only hashes can."""
    _, opening, rest = page.partition(_OPENING)
    return Certificate.from_json(rest.partition("</script>")[0] if opening else "")


class MissingPlots(DiscreetError, ImportError):
    """matplotlib is not installed."""


@dataclass(frozen=True)
class Theme:
    """The colors of a picture."""

    paper: str
    ink: str
    muted: str
    grid: str
    private: str
    reference: str


LIGHT = Theme(paper="#ffffff", ink="#1c2530", muted="#5b6775", grid="#e4e8ed", private="#1f5fbf", reference="#b3541e")
DARK = Theme(paper="#14181d", ink="#e8ecf1", muted="#9aa6b4", grid="#2a313a", private="#7db0ff", reference="#f0a36b")


def budget_trace(certificate: "Certificate", *, theme: Theme = LIGHT) -> "Figure":
    """Draw what an adaptive run had spent by each round, on which query, and what the filter refused.

    Everything shown follows from released answers, so the picture may be published with the certificate.
    """
    total = total_rho(certificate)
    if not (certificate.trace and total):
        raise DiscreetError("this certificate has no budget trace: only adaptive private runs (solver='agd') leave one")
    figure = blank(8.0, 4.8, theme)
    figure.set_layout_engine("constrained", w_pad=0.18, h_pad=0.18)
    axes = figure.subplots()
    rounds = range(min(c.round for c in certificate.trace), max(c.round for c in certificate.trace) + 1)
    _draw_spending(axes, certificate, rounds, total, theme)
    _draw_refusals(axes, certificate, total, theme)
    frame(axes, theme, 10.5)
    answers = sum(charge.answered for charge in certificate.trace)
    _title(axes, "Where the budget went", f"{answers} answers, paid for one by one. Rounds: {len(rounds)}.", theme)
    axes.set_xlim(rounds[0] - 0.5, rounds[-1] + 0.5)
    axes.set_ylim(0, 1.14 * total)
    axes.set_yticks([tick for tick in axes.get_yticks() if 0 <= tick <= 0.97 * total])
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:.3g}")
    locator: Any = axes.xaxis.get_major_locator()
    locator.set_params(integer=True)
    axes.set_xlabel("round", color=theme.ink, fontsize=11, labelpad=8)
    axes.set_ylabel("rho spent so far (zCDP)", color=theme.ink, fontsize=11, labelpad=8)
    look = {"ncols": 2, "frameon": False, "fontsize": 10.5, "labelcolor": theme.ink}
    figure.legend(loc="outside lower center", **look)
    return figure


def total_rho(certificate: "Certificate") -> float:
    """Return what an adaptive run might spend; 0 for all other runs."""
    return sum(event.rho for event in certificate.events if isinstance(event, ZCDP))


def save(figure: "Figure", path: str | Path) -> Path:
    """Write a picture, in the format that the name ends in, at a resolution for screens and print."""
    path = Path(path)
    figure.savefig(path, dpi=160, facecolor=figure.get_facecolor())
    return path


def svg(figure: "Figure") -> str:
    """Return the picture as an SVG element that refers to nothing outside itself."""
    import matplotlib

    content = io.StringIO()
    nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    with matplotlib.rc_context({"svg.fonttype": "path", "svg.hashsalt": "discreet"}):
        figure.savefig(content, format="svg", metadata=nothing, facecolor=figure.get_facecolor())
    drawn = content.getvalue()
    return drawn[drawn.index("<svg") :]  # without the XML prolog, whose document type names an address


def blank(width: float, height: float, theme: Theme) -> "Figure":
    """Return an empty picture; sizes are in inches."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingPlots('pictures need matplotlib: pip install "discreet[plot]"') from None
    figure = Figure(figsize=(width, height), facecolor=theme.paper)
    FigureCanvasAgg(figure)
    return figure


def frame(axes: Any, theme: Theme, label_size: float = 9.5) -> None:
    """Draw no more of the axes than the bottom line and a muted grid."""
    axes.set_facecolor(theme.paper)
    axes.tick_params(which="both", colors=theme.muted, labelsize=label_size, length=0, pad=5)
    axes.grid(axis="y", color=theme.grid, linewidth=1)
    axes.set_axisbelow(True)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(theme.muted)


def _draw_spending(axes: Any, certificate: "Certificate", rounds: range, total: float, theme: Theme) -> None:
    """One layer per query, each as high as what it has cost by then."""
    places = [rounds[0] - 0.5, *rounds, rounds[-1] + 0.5]  # a round is as wide as one
    bottom = [0.0] * len(places)
    for look, query in enumerate(dict.fromkeys(charge.query for charge in certificate.trace)):
        paid = [charge for charge in certificate.trace if charge.query == query and charge.answered]
        each = [sum(charge.rho for charge in paid if charge.round == number) for number in rounds]
        spent = list(accumulate(each))
        top = [low + more for low, more in zip(bottom, [spent[0], *spent, spent[-1]], strict=True)]
        label = f"{query}: {len(paid)} answers, {spent[-1] / total:.0%}"
        color = (theme.private, theme.reference, theme.muted)[look % 3]
        axes.fill_between(places, bottom, top, step="mid", color=color, alpha=0.75, linewidth=0, label=label)
        bottom = top


def _draw_refusals(axes: Any, certificate: "Certificate", total: float, theme: Theme) -> None:
    """The total, and a cross above it for each answer that would have passed it."""
    axes.axhline(total, color=theme.ink, linewidth=1.4, dashes=(6, 3))
    place = {"textcoords": "offset points", "fontsize": 10.5, "color": theme.ink}
    first = min(charge.round for charge in certificate.trace)
    axes.annotate(f"total {total:.3g}", (first - 0.5, total), xytext=(4, 5), **place)
    refused = [charge for charge in certificate.trace if not charge.answered]
    if refused:
        height = [1.07 * total] * len(refused)
        look = {"color": theme.ink, "markersize": 7, "markeredgewidth": 2, "clip_on": False}
        axes.plot([charge.round for charge in refused], height, "x", **look)
        names = ", ".join(dict.fromkeys(charge.query for charge in refused))
        end = (refused[-1].round, 1.07 * total)
        axes.annotate(f"refused: {names}", end, xytext=(-9, -4), ha="right", **place)


def _title(axes: Any, title: str, subtitle: str, theme: Theme) -> None:
    pad = 26 if subtitle else 10
    axes.set_title(title, loc="left", color=theme.ink, fontsize=14, fontweight="bold", pad=pad)
    place = {"xycoords": "axes fraction", "textcoords": "offset points", "color": theme.muted, "fontsize": 10}
    axes.annotate(subtitle, (0, 1), xytext=(0, 10), annotation_clip=False, **place)


WIDE, HIGH = 10.4, 5.0


def forecast_figure(forecast: "Forecast", *, theme: Theme = LIGHT) -> "Figure":
    """Draw two panels with one axis: the gap to the model without privacy, over epsilon and over n.

    Lines are means, bands reach from the lowest to the highest simulated fit, dots are single fits; the row that was
    asked for is ringed and named.
    """
    figure = blank(WIDE, HIGH, theme)
    figure.subplots_adjust(left=0.085, right=0.98, top=1 - 1.22 / HIGH, bottom=0.8 / HIGH, wspace=0.09)
    left, right = figure.subplots(1, 2, sharey=True)
    plan = forecast.asked
    _draw(left, forecast, forecast.over_epsilon, lambda row: row.epsilon, theme)
    _label(left, [f"{row.epsilon:g}" for row in forecast.over_epsilon], theme)
    left.set_title(f"Other budgets, at {plan.n:,} rows", **_heading(theme))
    left.set_xlabel("epsilon (logarithmic; smaller is more private)", color=theme.ink, fontsize=10)
    name = "accuracy lost (percentage points)" if forecast.score == "accuracy" else f"{forecast.score} lost"
    left.set_ylabel(name, color=theme.ink, fontsize=10)
    _draw(right, forecast, forecast.over_n, lambda row: float(row.n), theme)
    _label(right, [short(row.n) for row in forecast.over_n], theme)
    right.set_title(f"Other tables, at epsilon = {plan.epsilon:g}", **_heading(theme))
    right.set_xlabel("rows (logarithmic)", color=theme.ink, fontsize=10)
    _scale(left, forecast)
    title = f"What privacy would cost: {forecast.model}, {forecast.n_features} features"
    figure.text(0.085, 1 - 0.4 / HIGH, title, color=theme.ink, fontsize=15, fontweight="bold")
    subtitle = (
        f"Simulated on {len(plan.gaps)} public synthetic tables, {forecast.neighbors}. Line: mean. Band: lowest to "
        "highest fit. Dots: single fits. No data, no budget."
    )
    figure.text(0.085, 1 - 0.7 / HIGH, subtitle, color=theme.muted, fontsize=10)
    return figure


def _draw(
    axes: Any, forecast: "Forecast", rows: "Sequence[ForecastRow]", x: "Callable[[ForecastRow], float]", theme: Theme
) -> None:
    places, unit = [x(row) for row in rows], _unit(forecast)
    axes.axhline(0, color=theme.reference, linewidth=1.4, dashes=(6, 3))
    lows, highs = [unit * min(row.gaps) for row in rows], [unit * max(row.gaps) for row in rows]
    axes.fill_between(places, lows, highs, color=theme.private, alpha=0.16, linewidth=0)
    dots = [(place, unit * gap) for place, row in zip(places, rows, strict=True) for gap in row.gaps]
    axes.scatter(*zip(*dots, strict=True), s=11, color=theme.private, alpha=0.4, linewidths=0, zorder=3)
    look = {"color": theme.private, "linewidth": 2.2, "marker": "o", "markersize": 5, "zorder": 4}
    axes.plot(places, [unit * row.gap for row in rows], **look)
    plan, top = forecast.asked, _limits(forecast)[1]
    at, seen = (x(plan), min(unit * plan.gap, 0.9 * top)), unit * plan.gap <= top
    text = f"{forecast.shown_loss(plan.gap)} {forecast.unit}"
    if seen:
        ring = {"markerfacecolor": "none", "markeredgecolor": theme.ink, "markeredgewidth": 1.4}
        axes.plot(*at, "o", markersize=13, **ring, zorder=5)
    else:
        text = f"\N{UPWARDS ARROW} {text}"
    # within the panel, and clear of the line: where it leaves the panel, what is left of it is empty
    end = plan in (rows[-2:] if seen else rows[2:]) and len(rows) > 3
    place = {"xytext": ((6 if end else 8, 14) if seen else (-10 if end else 8, 0)), "textcoords": "offset points"}
    place |= {"ha": "right" if end else "left", "fontweight": "bold"}
    axes.annotate(text, at, color=theme.ink, fontsize=10, **place, zorder=6)
    note = {"xytext": (0, -12), "textcoords": "offset points", "fontsize": 9}
    axes.annotate("without privacy", (places[0], 0), color=theme.reference, **note)
    everything = unit * (plan.non_private - plan.trivial)
    axes.axhline(everything, color=theme.muted, linewidth=1.3, dashes=(1.5, 2))
    axes.annotate("nothing learned", (places[-1], everything), color=theme.muted, ha="right", **note)
    axes.set_xscale("log")
    axes.set_xticks(places)


def _label(axes: Any, names: Sequence[str], theme: Theme) -> None:
    axes.set_xticklabels(names)
    axes.minorticks_off()
    frame(axes, theme)


def _limits(forecast: "Forecast") -> tuple[float, float]:
    """Up to all that there is to learn, and somewhat more: a fit beyond it is no use, however far beyond."""
    unit, row = _unit(forecast), forecast.asked
    everything = unit * max(row.non_private - row.trivial, 1e-3)
    gaps = [unit * gap for other in forecast.rows for gap in other.gaps]
    top = min(max(*gaps, 0.02 * everything), 1.25 * everything)
    return max(min(0.0, *gaps), -0.3 * everything) - 0.1 * top, 1.06 * top


def _scale(axes: Any, forecast: "Forecast") -> None:
    axes.set_ylim(*_limits(forecast))
    axes.yaxis.get_major_locator().set_params(nbins=7, steps=[1, 2, 2.5, 5, 10])
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")


def _heading(theme: Theme) -> Json:
    return {"loc": "left", "color": theme.ink, "fontsize": 11.5, "fontweight": "bold", "pad": 8}


def _unit(forecast: "Forecast") -> float:
    return 100.0 if forecast.score == "accuracy" else 1.0


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
