"""Measured values and a theorem's bound over one number each, one panel per number. Plain numbers in."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from benchmarks.pages.curve_panels import number_decades
from discreet.report.page import LIGHT, Theme, blank, frame

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class BoundPanel:
    """What grows, the repetitions at each place, and the bound there; ``lower`` where there is a lower one, too."""

    name: str
    x: Sequence[float]
    values: Sequence[Sequence[float]]
    bound: Sequence[float]
    lower: Sequence[float] = ()


def bound_panels(panels: Sequence[BoundPanel], *, title: str, y_label: str, theme: Theme = LIGHT) -> "Figure":
    """Return panels in one row, both axes logarithmic: dots are runs, the line their mean, dashes the bounds."""
    figure = blank(3.1 * len(panels) + 0.6, 3.9, theme)
    figure.set_layout_engine("constrained", w_pad=0.08, h_pad=0.12)
    grid = figure.subplots(1, len(panels), squeeze=False)
    for axes, panel in zip(grid.flat, panels, strict=True):
        for x, row in zip(panel.x, panel.values, strict=True):
            axes.plot([x] * len(row), row, ".", color=theme.private, alpha=0.35, markersize=6)
        means = [sum(row) / len(row) for row in panel.values]
        axes.plot(panel.x, means, color=theme.private, linewidth=2, label="measured")
        axes.plot(panel.x, panel.bound, color=theme.reference, linewidth=1.6, dashes=(5, 3), label="upper bound")
        if panel.lower:
            look: dict[str, Any] = {"color": theme.muted, "linewidth": 1.6, "dashes": (1.5, 2)}
            axes.plot(panel.x, panel.lower, label="order of the lower bound", **look)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel(panel.name, color=theme.ink, fontsize=10)
        ticks = panel.x[:: 1 + len(panel.x) // 6]
        axes.set_xticks(ticks, [f"{x:g}" for x in ticks])
        number_decades(axes)
        frame(axes, theme)
    grid.flat[0].set_ylabel(y_label, color=theme.ink, fontsize=10)
    handles, labels = grid.flat[0].get_legend_handles_labels()
    place = {"loc": "outside lower center", "ncols": len(labels)}
    figure.legend(handles, labels, frameon=False, fontsize=9, labelcolor=theme.ink, **place)
    figure.suptitle(title, x=0.02, ha="left", color=theme.ink, fontsize=13, fontweight="bold")
    return figure
