"""Coverage and standard errors of all designs, as a picture of two panels."""

import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from discreet.report.page import LIGHT, Theme, blank, frame

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COVERED, SHORT, PLAIN = "#1f5fbf", "#b3541e", "#5b6775"
NOMINAL, LEAST = 0.95, 0.94


class Dot(NamedTuple):
    """One design: coverage with its Monte Carlo error (two of them), and standard errors over plain ones."""

    label: str
    coverage: float
    error: float
    ratio: float


def dots(paths: Iterable[Path]) -> list[Dot]:
    """Return the designs that were run and answered."""
    found = []
    for path in paths:
        if not path.is_file():
            continue
        told: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        answered = [table for table in told["tables"] if "refused" not in table]
        if not answered:
            continue
        design, truth = told["design"], np.array(told["truth"])
        values = {
            name: np.array([t[name] for t in answered], dtype=float) for name in ("low", "high", "se", "plain_se")
        }
        shown = np.isfinite(values["se"])
        covered = np.where(shown, (values["low"] <= truth) & (truth <= values["high"]), np.nan)
        each = np.nanmean(covered, axis=1)
        spread = float(np.nanstd(each)) / math.sqrt(len(each))  # tables are independent, coefficients of one are not
        label = f"{design['model']}, {design['data'].replace('_', ' ')}, {design['n']:,} x {design['p']}, " + (
            f"{design['epsilon']:g} {design['relation']}"
        )
        found.append(
            Dot(label, float(np.nanmean(covered)), 2 * spread, float(np.nanmedian(values["se"] / values["plain_se"])))
        )
    return found


def inference_figure(found: list[Dot], theme: Theme = LIGHT) -> "Figure":
    """Draw a line per design: how often intervals cover, and how much wider than without privacy they are."""
    height = 0.24 * len(found) + 1.7
    figure = blank(10.4, height, theme)
    figure.subplots_adjust(left=0.36, right=0.985, top=1 - 0.95 / height, bottom=0.62 / height, wspace=0.06)
    left, right = figure.subplots(1, 2, sharey=True)
    places = np.arange(len(found))[::-1]
    for axes in (left, right):
        frame(axes, theme)
        axes.set_yticks(places, [dot.label for dot in found], fontsize=8)
        axes.grid(axis="y", visible=False)
    for place, dot in zip(places, found, strict=True):
        color = SHORT if dot.coverage + dot.error < LEAST else COVERED
        left.plot([dot.coverage - dot.error, dot.coverage + dot.error], [place, place], color=color, linewidth=1.4)
        left.plot([dot.coverage], [place], "o", color=color, markersize=4.5)
        right.plot([1.0, dot.ratio], [place, place], color=theme.grid, linewidth=1.2)
        right.plot([dot.ratio], [place], "o", color=color, markersize=4.5)
    left.axvline(NOMINAL, color=PLAIN, linewidth=1.2, dashes=(1.5, 2))
    right.axvline(1.0, color=PLAIN, linewidth=1.2, dashes=(1.5, 2))
    right.tick_params(axis="y", labelleft=False)
    left.set_xlabel("coverage of 95% intervals", color=theme.muted)
    right.set_xlabel("standard error / without privacy", color=theme.muted)
    figure.text(
        0.012,
        1 - 0.36 / height,
        "Intervals for a population's effects",
        color=theme.ink,
        fontsize=15,
        fontweight="bold",
    )
    said = "one line per design: model, tables, n x p, epsilon and relation; bars: two Monte Carlo errors"
    figure.text(0.012, 1 - 0.64 / height, said, color=theme.muted, fontsize=10)
    return figure
