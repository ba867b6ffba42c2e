"""Pictures from plain numbers and certificates. Nothing here knows of records, curators or models.

matplotlib is imported when a picture is drawn (``pip install "discreet[plot]"``), through its
object interface: no global state, no display.
"""

import io
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


def budget_trace(certificate: "Certificate", *, theme: Theme = LIGHT) -> "Figure":
    """What an adaptive run had spent by each round, on which query, and what the filter refused.

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
    """Draw no more of the axes than the bottom line and a quiet grid."""
    axes.set_facecolor(theme.paper)
    axes.tick_params(which="both", colors=theme.quiet, labelsize=label_size, length=0, pad=5)
    axes.grid(axis="y", color=theme.grid, linewidth=1)
    axes.set_axisbelow(True)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(theme.quiet)


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


def _title(axes: Any, title: str, subtitle: str, theme: Theme) -> None:
    pad = 26 if subtitle else 10
    axes.set_title(title, loc="left", color=theme.ink, fontsize=14, fontweight="bold", pad=pad)
    place = {"xycoords": "axes fraction", "textcoords": "offset points", "color": theme.quiet, "fontsize": 10}
    axes.annotate(subtitle, (0, 1), xytext=(0, 10), annotation_clip=False, **place)
