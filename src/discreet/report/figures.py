"""Pictures from plain numbers. Nothing here knows of records, curators or models.

matplotlib is imported when a picture is drawn (``pip install "discreet[plot]"``), through its
object interface: no global state, no display.
"""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.errors import DiscreetError

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class MissingPlots(DiscreetError, ImportError):
    """matplotlib is not installed."""


@dataclass(frozen=True)
class Theme:
    """The colors of a picture."""

    paper: str
    ink: str
    quiet: str
    grid: str
    private: str
    reference: str


LIGHT = Theme(paper="#ffffff", ink="#1c2530", quiet="#5b6775", grid="#e4e8ed", private="#1f5fbf", reference="#b3541e")
DARK = Theme(paper="#14181d", ink="#e8ecf1", quiet="#9aa6b4", grid="#2a313a", private="#7db0ff", reference="#f0a36b")


def accuracy_over_epsilon(
    epsilons: Sequence[float],
    accuracies: Sequence[Sequence[float]],
    *,
    non_private: float,
    majority: float,
    subtitle: str = "",
    theme: Theme = LIGHT,
) -> "Figure":
    """Accuracy against epsilon: the median of the repetitions, their band, each of them, two references.

    Parameters
    ----------
    epsilons
        Ascending and positive; shown on a logarithmic axis.
    accuracies
        For each epsilon, the accuracies of its repetitions, within [0, 1].
    non_private, majority
        Accuracy without privacy, and of always predicting the commoner class.
    subtitle
        What the picture shows and does not show.
    """
    figure = _blank(theme)
    axes = figure.subplots()
    _draw_references(axes, non_private, majority, epsilons, theme)
    _draw_repetitions(axes, epsilons, accuracies, theme)
    _label(axes, epsilons, subtitle, theme)
    low = min(majority, *(min(row) for row in accuracies))
    high = max(non_private, *(max(row) for row in accuracies))
    margin = 0.12 * max(high - low, 0.02)
    axes.set_ylim(low - margin, high + margin)
    return figure


def save(figure: "Figure", path: str | Path) -> Path:
    """Write a picture, in the format that the name ends in, at a resolution for screens and print."""
    path = Path(path)
    figure.savefig(path, dpi=160, facecolor=figure.get_facecolor())
    return path


def svg(figure: "Figure") -> str:
    """The picture as an SVG element that refers to nothing outside itself."""
    import matplotlib

    content = io.StringIO()
    nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    with matplotlib.rc_context({"svg.fonttype": "path", "svg.hashsalt": "discreet"}):
        figure.savefig(content, format="svg", metadata=nothing, facecolor=figure.get_facecolor())
    drawn = content.getvalue()
    return drawn[drawn.index("<svg") :]  # without the XML prolog, whose document type names an address


def _blank(theme: Theme) -> "Figure":
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
        from matplotlib.layout_engine import ConstrainedLayoutEngine
    except ImportError:
        raise MissingPlots('pictures need matplotlib: pip install "discreet[plot]"') from None
    layout = ConstrainedLayoutEngine(w_pad=0.18, h_pad=0.18)
    figure = Figure(figsize=(8.0, 4.8), facecolor=theme.paper, layout=layout)
    FigureCanvasAgg(figure)
    return figure


def _draw_repetitions(axes: Any, epsilons: Sequence[float], rows: Sequence[Sequence[float]], theme: Theme) -> None:
    ordered = [sorted(row) for row in rows]
    medians = [(row[(len(row) - 1) // 2] + row[len(row) // 2]) / 2 for row in ordered]
    lows, highs = [row[0] for row in ordered], [row[-1] for row in ordered]
    axes.fill_between(epsilons, lows, highs, color=theme.private, alpha=0.18, linewidth=0)
    points = [(epsilon, value) for epsilon, row in zip(epsilons, rows, strict=True) for value in row]
    axes.scatter(*zip(*points, strict=True), s=13, color=theme.private, alpha=0.45, linewidths=0, zorder=3)
    axes.plot(epsilons, medians, color=theme.private, linewidth=2.2, marker="o", markersize=5.5, zorder=4)
    middle = len(medians) // 2
    place = {"xytext": (12, -16), "textcoords": "offset points", "color": theme.private, "fontsize": 10.5}
    axes.annotate("private, median", (epsilons[middle], medians[middle]), fontweight="bold", **place)


def _draw_references(axes: Any, free: float, majority: float, epsilons: Sequence[float], theme: Theme) -> None:
    axes.axhline(free, color=theme.reference, linewidth=1.6, dashes=(6, 3))
    axes.axhline(majority, color=theme.quiet, linewidth=1.6, dashes=(1.5, 2))
    place = {"textcoords": "offset points", "fontsize": 10.5}
    text = f"without privacy {_percent(free)}"
    axes.annotate(text, (epsilons[0], free), xytext=(0, 5), color=theme.reference, **place)
    text = f"always the commoner class {_percent(majority)}"
    axes.annotate(text, (epsilons[-1], majority), xytext=(0, -14), color=theme.quiet, ha="right", **place)


def _label(axes: Any, epsilons: Sequence[float], subtitle: str, theme: Theme) -> None:
    axes.set_facecolor(theme.paper)
    axes.set_xscale("log")
    axes.set_xticks(list(epsilons), labels=[f"{epsilon:g}" for epsilon in epsilons])
    axes.minorticks_off()
    axes.yaxis.set_major_formatter(lambda value, _: _percent(value, digits=0))
    axes.yaxis.get_major_locator().set_params(nbins=6, steps=[1, 2, 5, 10])
    axes.set_xlabel("epsilon (logarithmic; smaller is more private)", color=theme.ink, fontsize=11, labelpad=8)
    axes.set_ylabel("accuracy on public rows", color=theme.ink, fontsize=11, labelpad=8)
    axes.tick_params(colors=theme.quiet, labelsize=10.5, length=0, pad=6)
    axes.grid(axis="y", color=theme.grid, linewidth=1)
    axes.set_axisbelow(True)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(theme.quiet)
    pad = 26 if subtitle else 10
    axes.set_title("What privacy costs", loc="left", color=theme.ink, fontsize=14, fontweight="bold", pad=pad)
    place = {"xycoords": "axes fraction", "textcoords": "offset points", "color": theme.quiet, "fontsize": 10}
    axes.annotate(subtitle, (0, 1), xytext=(0, 10), annotation_clip=False, **place)


def _percent(value: float, digits: int = 1) -> str:
    return f"{100 * value:.{digits}f}%"
