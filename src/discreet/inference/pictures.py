"""Pictures of effects with matplotlib: a forest plot, and the curve of a column with its band.

Ratios lie on one logarithmic axis, with a line at 1. Differences have their columns' units, so each has a scale of its
own, with 0 in the middle, and its numbers stand next to it. An effect that noise hides has a dash and no mark.
"""

import math
import textwrap
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from discreet.errors import Unsupported
from discreet.inference.text import DASH, number_text, one_line

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from discreet.inference.summary import Summary

WIDEST = math.log(1000.0)
"""Ratios beyond this are drawn at the end of the axis."""
LABEL = 40
"""Characters of a name before it is cut."""
ROW, TALLEST = 0.32, 80.0
"""Inches per effect, and of all."""
TICKS = (1.01, 1.02, 1.05, 1.1, 1.2, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0, 100.0, 1000.0)


def ratio_ticks(low: float, high: float, most: int = 6) -> list[tuple[float, str]]:
    """Return places on a logarithmic axis, and the round ratios there, not too near one another; 1 is among them."""
    places = [(0.0, "1")]
    for tick in TICKS:
        for at, text in ((math.log(tick), f"{tick:g}"), (-math.log(tick), f"{1 / tick:.2g}")):
            near = min(abs(at - other) for other, _ in places)
            if low <= at <= high and near >= (high - low) / most:
                places.append((at, text))
    return sorted(places)


def forest(summary: "Summary", ax: "Axes | None") -> "Axes":
    """Draw a forest plot; intercepts and smooth curves are left out."""
    places = summary.structure.ratios
    labels = [_label(summary.names[j]) for j in places]
    columns = summary.columns()
    ends = np.array([columns[name][places] for name in ("coef", "low", "high")]).T
    axes = _axes(ax, 6.4, min(TALLEST, 1.1 + ROW * len(labels)))
    axes.axvline(0.0, color="0.5", linewidth=1.0, zorder=1)
    scale = 1.0 if summary.ratio else np.maximum(np.nanmax(np.abs(np.nan_to_num(ends)), axis=1, keepdims=True), 1e-300)
    marks = np.clip(ends / scale, -WIDEST, WIDEST) if summary.ratio else ends / scale
    for y, (mark, values) in enumerate(zip(marks, ends, strict=True)):
        if math.isnan(mark[0]):
            axes.text(0.0, y, DASH, ha="center", va="center", backgroundcolor=axes.get_facecolor(), zorder=3)
        else:
            axes.plot(mark[1:], [y, y], color="C0", linewidth=2.0, zorder=2)
            axes.plot(mark[0], y, "o", color="C0", markersize=5, zorder=3)
        _numbers(axes, y, values, ratio=bool(summary.ratio))
    axes.set_yticks(range(len(labels)), labels, parse_math=False)
    axes.set_ylim(len(labels) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    _finish(axes, summary, marks)
    return cast("Axes", axes)


def curve_picture(summary: "Summary", column: str, ax: "Axes | None") -> "Axes":
    """Draw the curve of a column with its band, one line per class."""
    curves = summary.curve_columns(column)
    axes = _axes(ax, 6.4, 4.2)
    shape = np.exp if summary.ratio else np.asarray
    for k, (group, curve) in enumerate(curves.items()):
        x, color = curve["x"], f"C{k % 10}"
        band = shape(curve["band_low"]), shape(curve["band_high"])
        axes.fill_between(x, *band, color=color, alpha=0.18, linewidth=0)
        for end in ("low", "high"):
            axes.plot(x, shape(curve[end]), color=color, linewidth=0.8, linestyle="--")
        axes.plot(x, shape(curve["effect"]), color=color, linewidth=2.0, label=_label(group) or None)
    axes.axhline(1.0 if summary.ratio else 0.0, color="0.5", linewidth=1.0)
    axes.set_xlim(x[0], x[-1])  # all of the range, also where noise hides the curve
    if summary.ratio:
        _logarithmic(axes)
    axes.set_xlabel(_label(column), parse_math=False)
    axes.set_ylabel(f"{summary.ratio or 'effect'} against {next(iter(curves.values()))['reference'][0]:g}")
    axes.set_title(f"Band: the whole curve ({100 * summary.level:g}%). Dashes: each value by itself.", fontsize="small")
    if summary.blocks:
        for text in axes.legend(frameon=False).get_texts():
            text.set_parse_math(False)
    return cast("Axes", axes)


def _axes(ax: "Axes | None", width: float, height: float) -> Any:
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise Unsupported('pictures need matplotlib: pip install "discreet[plot]"') from None
    return plt.subplots(figsize=(width, height), layout="constrained")[1]


def _label(name: str) -> str:
    return textwrap.shorten(one_line(name), LABEL, placeholder="\N{HORIZONTAL ELLIPSIS}") or one_line(name)[:LABEL]


def _numbers(axes: Any, y: int, values: Any, *, ratio: bool) -> None:
    """Write an effect and its interval to the right of its row."""
    value, low, high = (number_text("ratio" if ratio else "coef", float(np.exp(x) if ratio else x)) for x in values)
    text = DASH if value == DASH else f"{value}  [{low}, {high}]"
    axes.annotate(text, (1.02, y), xycoords=("axes fraction", "data"), va="center", annotation_clip=False)


def _finish(axes: Any, summary: "Summary", marks: Any) -> None:
    """Label the axis: round ratios, or 0 alone."""
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    if summary.ratio:
        low, high = float(np.nanmin([0.0, *marks.ravel()])), float(np.nanmax([0.0, *marks.ravel()]))
        room = 0.05 * (high - low) or 0.1
        axes.set_xlim(low - room, high + room)
        places = ratio_ticks(low, high) if high > low else [(0.0, "1")]
        axes.set_xticks([at for at, _ in places], [text for _, text in places])
        axes.set_xlabel(f"{summary.ratio} ({100 * summary.level:g}% interval), logarithmic")
    else:
        axes.set_xlim(-1.1, 1.1)
        axes.set_xticks([0.0], ["0"])
        axes.set_xlabel(f"effect ({100 * summary.level:g}% interval), each on a scale of its own")


def _logarithmic(axes: Any) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator

    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(base=10, subs=(1.0, 2.0, 5.0), numticks=12))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_formatter(FuncFormatter(lambda *_: ""))
