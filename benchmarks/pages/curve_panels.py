"""Curves of several methods on several problems, one panel each. Plain numbers in."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from discreet.report.page import LIGHT, Theme, blank, frame

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLORS = ("#1f5fbf", "#58a6e8", "#7a4fb0", "#b3541e", "#dd9a3c", "#5b6775", "#1f8a5b", "#15191f")
LONG_LABEL = 30  # characters
MOST_TICKS = 6
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")


@dataclass(frozen=True)
class Curve:
    """A method: at each x, the values of the repetitions; ``look`` picks its color, the same in all panels."""

    label: str
    x: Sequence[float]
    values: Sequence[Sequence[float]]
    look: int


@dataclass(frozen=True)
class Panel:
    """One problem, and the level that a method has to get below to have learned anything."""

    title: str
    curves: Sequence[Curve]
    level: float
    level_name: str = "w = 0"


def curve_panels(
    panels: Sequence[Panel], *, title: str, subtitle: str, x_label: str, y_label: str, theme: Theme = LIGHT
) -> "Figure":
    """Panels, two in a row, both axes logarithmic: means as lines, the middle 80% as bands, one legend below."""
    lines = -(-len(panels) // 2)
    columns = min(2, len(panels))
    height = 3.7 * lines + 1.7
    figure = blank(5.2 * columns, height, theme)
    figure.subplots_adjust(
        left=0.085, right=0.985, top=1 - 1.15 / height, bottom=1.25 / height, wspace=0.18, hspace=0.36
    )
    grid = figure.subplots(lines, columns, squeeze=False)
    for place, axes in enumerate(grid.flat):
        if place < len(panels):
            _draw(axes, panels[place], theme, x_label, y_label if place % columns == 0 else "")
        else:
            axes.set_visible(False)
    _legend(figure, panels, theme)
    figure.text(0.085, 1 - 0.36 / height, title, color=theme.ink, fontsize=15, fontweight="bold")
    figure.text(0.085, 1 - 0.64 / height, subtitle, color=theme.muted, fontsize=10)
    return figure


def _draw(axes: Any, panel: Panel, theme: Theme, x_label: str, y_label: str) -> None:
    axes.axhline(panel.level, color=theme.muted, linewidth=1.3, dashes=(1.5, 2))
    for curve in panel.curves:
        color, marker = COLORS[curve.look % len(COLORS)], MARKERS[curve.look % len(MARKERS)]
        means = [sum(row) / len(row) for row in curve.values]
        lows, highs = zip(*(_middle(row) for row in curve.values), strict=True)
        axes.fill_between(curve.x, lows, highs, color=color, alpha=0.13, linewidth=0)
        axes.plot(curve.x, means, color=color, marker=marker, markersize=5, linewidth=2, label=curve.label)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_ylim(top=1.6 * panel.level)  # above the level nothing was learned, however far above
    axes.set_title(panel.title, loc="left", color=theme.ink, fontsize=11.5, fontweight="bold", pad=8)
    axes.set_xlabel(x_label, color=theme.ink, fontsize=10)
    axes.set_ylabel(y_label, color=theme.ink, fontsize=10)
    ticks = sorted({x for curve in panel.curves for x in curve.x})
    if len(ticks) <= MOST_TICKS:
        axes.set_xticks(ticks)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    number_decades(axes)
    frame(axes, theme)
    place = {"textcoords": "offset points", "color": theme.muted, "fontsize": 9}
    left = min(x for curve in panel.curves for x in curve.x)
    axes.annotate(panel.level_name, (left, panel.level), xytext=(0, 4), **place)


def _middle(row: Sequence[float]) -> tuple[float, float]:
    """What the middle 80% of the repetitions lie between."""
    ordered, cut = sorted(row), len(row) // 10
    return ordered[cut], ordered[len(row) - 1 - cut]


def number_decades(axes: Any) -> None:
    """Ticks at 1, 2 and 5 of each decade: there are few decades, and readers look for numbers."""
    from matplotlib.ticker import LogLocator, NullFormatter

    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.xaxis.set_minor_formatter(NullFormatter())


def _legend(figure: "Figure", panels: Sequence[Panel], theme: Theme) -> None:
    from matplotlib.lines import Line2D

    names = {curve.look: curve.label for panel in reversed(panels) for curve in panel.curves}
    handles = [
        Line2D([], [], color=COLORS[look % len(COLORS)], marker=MARKERS[look % len(MARKERS)], linewidth=2, label=label)
        for look, label in sorted(names.items())
    ]
    columns = 4 if max(map(len, names.values())) < LONG_LABEL else 3
    look = {"ncols": min(columns, len(handles)), "frameon": False, "fontsize": 10, "labelcolor": theme.ink}
    figure.legend(handles=handles, loc="lower center", **look)
