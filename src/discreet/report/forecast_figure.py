"""The picture of a forecast: what privacy costs over epsilon, and over the number of rows."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from discreet.report.figures import LIGHT, Theme, blank, frame
from discreet.report.html import short

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from discreet.models.forecast.forecast_result import Forecast, ForecastRow

WIDTH, HEIGHT = 10.4, 5.0


def forecast_figure(forecast: "Forecast", *, theme: Theme = LIGHT) -> "Figure":
    """Two panels with one axis: the gap to the model without privacy, over epsilon and over n.

    Lines are means, bands reach from the lowest to the highest simulated fit, dots are single fits; the row that was
    asked for is ringed and named.
    """
    figure = blank(WIDTH, HEIGHT, theme)
    figure.subplots_adjust(left=0.085, right=0.98, top=1 - 1.22 / HEIGHT, bottom=0.8 / HEIGHT, wspace=0.09)
    left, right = figure.subplots(1, 2, sharey=True)
    asked = forecast.asked
    _draw(left, forecast, forecast.over_epsilon, lambda row: row.epsilon, theme)
    _label(left, [f"{row.epsilon:g}" for row in forecast.over_epsilon], theme)
    left.set_title(f"Other budgets, at {asked.n:,} rows", **_heading(theme))
    left.set_xlabel("epsilon (logarithmic; smaller is more private)", color=theme.ink, fontsize=10)
    left.set_ylabel(_axis_name(forecast), color=theme.ink, fontsize=10)
    _draw(right, forecast, forecast.over_n, lambda row: float(row.n), theme)
    _label(right, [short(row.n) for row in forecast.over_n], theme)
    right.set_title(f"Other tables, at epsilon = {asked.epsilon:g}", **_heading(theme))
    right.set_xlabel("rows (logarithmic)", color=theme.ink, fontsize=10)
    _scale(left, forecast)
    title = f"What privacy would cost: {forecast.model}, {forecast.n_features} features"
    figure.text(0.085, 1 - 0.4 / HEIGHT, title, color=theme.ink, fontsize=15, fontweight="bold")
    subtitle = (
        f"Simulated on {len(asked.gaps)} public synthetic tables, {forecast.neighbors}. Line: mean. Band: lowest to "
        "highest fit. Dots: single fits. No data, no budget."
    )
    figure.text(0.085, 1 - 0.7 / HEIGHT, subtitle, color=theme.quiet, fontsize=10)
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
    asked, top = forecast.asked, _limits(forecast)[1]
    at, seen = (x(asked), min(unit * asked.gap, 0.9 * top)), unit * asked.gap <= top
    text = f"{forecast.shown_loss(asked.gap)} {forecast.unit}"
    if seen:
        ring = {"markerfacecolor": "none", "markeredgecolor": theme.ink, "markeredgewidth": 1.4}
        axes.plot(*at, "o", markersize=13, **ring, zorder=5)
    else:
        text = f"\N{UPWARDS ARROW} {text}"
    # within the panel, and clear of the line: where it leaves the panel, what is left of it is empty
    end = asked in (rows[-2:] if seen else rows[2:]) and len(rows) > 3
    place = {"xytext": ((6 if end else 8, 14) if seen else (-10 if end else 8, 0)), "textcoords": "offset points"}
    place |= {"ha": "right" if end else "left", "fontweight": "bold"}
    axes.annotate(text, at, color=theme.ink, fontsize=10, **place, zorder=6)
    note = {"xytext": (0, -12), "textcoords": "offset points", "fontsize": 9}
    axes.annotate("without privacy", (places[0], 0), color=theme.reference, **note)
    everything = unit * (asked.non_private - asked.trivial)
    axes.axhline(everything, color=theme.quiet, linewidth=1.3, dashes=(1.5, 2))
    axes.annotate("nothing learned", (places[-1], everything), color=theme.quiet, ha="right", **note)
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


def _heading(theme: Theme) -> dict[str, Any]:
    return {"loc": "left", "color": theme.ink, "fontsize": 11.5, "fontweight": "bold", "pad": 8}


def _axis_name(forecast: "Forecast") -> str:
    return "accuracy lost (percentage points)" if forecast.score == "accuracy" else f"{forecast.score} lost"


def _unit(forecast: "Forecast") -> float:
    return 100.0 if forecast.score == "accuracy" else 1.0
