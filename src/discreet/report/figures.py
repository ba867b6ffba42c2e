"""Pictures from plain numbers and certificates. Nothing here knows of records, curators or models.

matplotlib is imported when a picture is drawn (``pip install "discreet[plot]"``), through its
object interface: no global state, no display.
"""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.accounting.events import ZCDP
from discreet.errors import DiscreetError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from discreet.accounting.certificate import Certificate


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


def budget_trace(certificate: "Certificate", *, theme: Theme = LIGHT) -> "Figure":
    """What an adaptive run had spent by each round, on which query, and what the filter refused.

    Everything shown follows from released answers, so the picture may be published with the certificate.
    """
    total = total_rho(certificate)
    if not (certificate.trace and total):
        raise DiscreetError("this certificate has no budget trace: only adaptive private runs (solver='agd') leave one")
    figure = _blank(theme)
    axes = figure.subplots()
    rounds = range(min(c.round for c in certificate.trace), max(c.round for c in certificate.trace) + 1)
    _draw_spending(axes, certificate, rounds, total, theme)
    _draw_refusals(axes, certificate, total, theme)
    _frame(axes, theme)
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
    """What an adaptive run might spend; 0 for all other runs."""
    return sum(event.rho for event in certificate.events if isinstance(event, ZCDP))


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


def _draw_spending(axes: Any, certificate: "Certificate", rounds: range, total: float, theme: Theme) -> None:
    """One layer a query, each as high as what it has cost by then."""
    places = [rounds[0] - 0.5, *rounds, rounds[-1] + 0.5]  # a round is as wide as one
    bottom = [0.0] * len(places)
    for look, query in enumerate(dict.fromkeys(charge.query for charge in certificate.trace)):
        paid = [charge for charge in certificate.trace if charge.query == query and charge.answered]
        each = [sum(charge.rho for charge in paid if charge.round == number) for number in rounds]
        spent = list(accumulate(each))
        top = [low + more for low, more in zip(bottom, [spent[0], *spent, spent[-1]], strict=True)]
        label = f"{query}: {len(paid)} answers, {_percent(spent[-1] / total, 0)}"
        color = (theme.private, theme.reference, theme.quiet)[look % 3]
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


def _label(axes: Any, epsilons: Sequence[float], subtitle: str, theme: Theme) -> None:
    axes.set_xscale("log")
    axes.set_xticks(list(epsilons), labels=[f"{epsilon:g}" for epsilon in epsilons])
    axes.minorticks_off()
    axes.yaxis.set_major_formatter(lambda value, _: _percent(value, digits=0))
    axes.yaxis.get_major_locator().set_params(nbins=6, steps=[1, 2, 5, 10])
    axes.set_xlabel("epsilon (logarithmic; smaller is more private)", color=theme.ink, fontsize=11, labelpad=8)
    axes.set_ylabel("accuracy on public rows", color=theme.ink, fontsize=11, labelpad=8)
    _frame(axes, theme)
    _title(axes, "What privacy costs", subtitle, theme)


def _frame(axes: Any, theme: Theme) -> None:
    axes.set_facecolor(theme.paper)
    axes.tick_params(colors=theme.quiet, labelsize=10.5, length=0, pad=6)
    axes.grid(axis="y", color=theme.grid, linewidth=1)
    axes.set_axisbelow(True)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(theme.quiet)


def _title(axes: Any, title: str, subtitle: str, theme: Theme) -> None:
    pad = 26 if subtitle else 10
    axes.set_title(title, loc="left", color=theme.ink, fontsize=14, fontweight="bold", pad=pad)
    place = {"xycoords": "axes fraction", "textcoords": "offset points", "color": theme.quiet, "fontsize": 10}
    axes.annotate(subtitle, (0, 1), xytext=(0, 10), annotation_clip=False, **place)


def _percent(value: float, digits: int = 1) -> str:
    return f"{100 * value:.{digits}f}%"
