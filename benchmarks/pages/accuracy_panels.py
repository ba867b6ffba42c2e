"""Accuracy over epsilon for several methods, one panel a table. Plain numbers in."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from benchmarks.pages.curve_panels import COLORS, MARKERS
from discreet.report.page import LIGHT, Theme, blank, frame

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Line:
    """A method: mean accuracy and standard error at each epsilon; ``look`` picks its color, the same in all panels."""

    label: str
    means: Sequence[float]
    errors: Sequence[float]
    look: int


@dataclass(frozen=True)
class AccuracyPanel:
    """One table: its methods, and the accuracies that need no budget."""

    title: str
    lines: Sequence[Line]
    majority: float
    non_private: float


def accuracy_panels(
    panels: Sequence[AccuracyPanel], epsilons: Sequence[float], *, title: str, subtitle: str, theme: Theme = LIGHT
) -> "Figure":
    """Panels side by side: means as lines, standard errors as bars, two references, one legend below."""
    width, height = max(7.5, 4.3 * len(panels) + 1.4), 6.0
    figure = blank(width, height, theme)
    left = 0.85 / width
    figure.subplots_adjust(left=left, right=1 - 0.25 / width, top=1 - 1.15 / height, bottom=1.4 / height, wspace=0.22)
    for place, axes in enumerate(figure.subplots(1, len(panels), squeeze=False).flat):
        _draw(axes, panels[place], epsilons, theme)
        if place == 0:
            axes.set_ylabel("accuracy on held-out rows", color=theme.ink, fontsize=10.5)
    handles, labels = figure.axes[0].get_legend_handles_labels()
    columns = min(len(labels), max(2, int(width // 2.0)))
    look = {"ncols": columns, "frameon": False, "fontsize": 10, "labelcolor": theme.ink}
    figure.legend(handles, labels, loc="lower center", **look)
    figure.text(left, 1 - 0.38 / height, title, color=theme.ink, fontsize=15, fontweight="bold")
    figure.text(left, 1 - 0.66 / height, subtitle, color=theme.muted, fontsize=10)
    return figure


def _draw(axes: Any, panel: AccuracyPanel, epsilons: Sequence[float], theme: Theme) -> None:
    place = {"textcoords": "offset points", "fontsize": 9}
    axes.axhline(panel.non_private, color=theme.reference, linewidth=1.4, dashes=(6, 3))
    axes.axhline(panel.majority, color=theme.muted, linewidth=1.4, dashes=(1.5, 2))
    text = f"without privacy {100 * panel.non_private:.1f}%"
    axes.annotate(text, (epsilons[0], panel.non_private), xytext=(0, 4), color=theme.reference, **place)
    for line in panel.lines:
        color, marker = COLORS[line.look % len(COLORS)], MARKERS[line.look % len(MARKERS)]
        look = {"color": color, "marker": marker, "markersize": 5, "linewidth": 2, "elinewidth": 1.2, "capsize": 0}
        axes.errorbar(epsilons, line.means, yerr=line.errors, label=line.label, **look)
    low = _scale(axes, panel, epsilons)
    text, below = f"majority class {100 * panel.majority:.1f}%", panel.majority < low
    where, shift = (epsilons[-1], max(panel.majority, low)), (0, 6 if below else -12)
    axes.annotate(text + ", below" * below, where, xytext=shift, ha="right", color=theme.muted, **place)
    axes.set_title(panel.title, loc="left", color=theme.ink, fontsize=11.5, fontweight="bold", pad=8)
    axes.set_xlabel("epsilon (logarithmic; smaller is more private)", color=theme.ink, fontsize=10)
    frame(axes, theme)


def _scale(axes: Any, panel: AccuracyPanel, epsilons: Sequence[float]) -> float:
    """Return where it begins: below the majority class, or below all methods but the worst where that is higher.

    One method that is far behind would press the others together.
    """
    axes.set_xscale("log")
    axes.set_xticks(list(epsilons), labels=[f"{epsilon:g}" for epsilon in epsilons])
    axes.minorticks_off()
    high = max(panel.non_private, *(mean for line in panel.lines for mean in line.means))
    span = max(high - panel.majority, 0.005)
    lows = sorted(min(line.means) for line in panel.lines)
    lowest = lows[min(1, len(lows) - 1)]
    low = max(lowest - 0.08 * span, panel.majority - 0.9 * span)
    axes.set_ylim(low, high + 0.12 * (high - low))
    digits = 0 if high - low > 0.05 else 1
    axes.yaxis.get_major_locator().set_params(nbins=7, steps=[1, 2, 5, 10])
    axes.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.{digits}f}%")
    return float(low)
