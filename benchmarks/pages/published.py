"""Our intervals next to published ones, as Markdown tables."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.comparisons.published import (
    BETA,
    BINNED,
    BUDGETS,
    MUS,
    REJECTED,
    ROWS,
    SLOPE_ROWS,
    SLOPES,
    beta,
    slope,
    uniform,
)
from benchmarks.problems.effects import Design

NOTHING = "–"


def published(folder: Path) -> str:
    """Return the three tables, of the designs that were run."""
    return "\n\n".join([_beta(folder), _slope(folder), _uniform(folder)])


def figures_of(folder: Path, design: Design) -> dict[str, float] | None:
    """Return coverage, mean width and rejections of slopes, and the share of tables refused; None where not run."""
    path = folder / f"{design.name}.json"
    if not path.is_file():
        return None
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    slopes = np.array(found["classes"]) != "intercept"
    answered = [table for table in found["tables"] if "refused" not in table]
    refused = 1.0 - len(answered) / len(found["tables"])
    if not answered:
        return {"refused": 1.0}
    values = {name: np.array([t[name] for t in answered], dtype=float)[:, slopes] for name in ("low", "high", "p")}
    truth, shown = np.array(found["truth"])[slopes], np.isfinite(values["low"])
    covered = (values["low"] <= truth) & (truth <= values["high"])
    return {
        "coverage": float(covered[shown].mean()),
        "width": float((values["high"] - values["low"])[shown].mean()),
        "rejected": float((values["p"] < 0.05)[shown].mean()),
        "refused": refused,
    }


def _shown(found: dict[str, float] | None, name: str) -> str:
    if found is None:
        return NOTHING
    if name not in found:
        return "refused"
    left = f" ({found['refused']:.0%} refused)" if found["refused"] >= 0.005 else ""
    return f"{found[name]:.3f}{left}"


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = ["| " + " | ".join(row) + " |" for row in (head, *rows)]
    return "\n".join([lines[0], "|---|" + "---|" * (len(head) - 1), *lines[1:]])


def _beta(folder: Path) -> str:
    rows = []
    for epsilon in BUDGETS:
        ours = [_shown(figures_of(folder, beta(epsilon, n)), "coverage") for n in ROWS]
        rows.append([f"{epsilon:g}", "here", *ours])
        rows.append(["", "output perturbation", *(f"{value:.3f}" for value in BETA[epsilon].output)])
        rows.append(["", "repro samples", *(f"{value:.3f}" for value in BETA[epsilon].repro)])
    head = ["epsilon", "coverage of a logistic slope, nominal .95", *(f"n = {n:,}" for n in ROWS)]
    return _table(head, rows)


def _slope(folder: Path) -> str:
    rows = []
    for n in SLOPE_ROWS:
        ours = [_shown(figures_of(folder, slope(n, value)), "rejected") for value in SLOPES]
        rows.append([f"{n:,}", "here", *ours])
        for name, values in REJECTED[n].items():
            told = [f"{value:.3f}" for value in values]
            rows.append(["", name, *told, *[NOTHING] * (len(SLOPES) - len(told))])
    head = ["n", "slope = 0 rejected at .05, mu = 1", *(f"slope {value:g}" for value in SLOPES)]
    return _table(head, rows)


def _uniform(folder: Path) -> str:
    rows = []
    for mu in MUS:
        found, (coverage, width) = figures_of(folder, uniform(mu)), BINNED[mu]
        ours = [_shown(found, "coverage"), _shown(found, "width")]
        rows.append([f"{mu:g}", *ours, f"{coverage:.3f}", f"{width:.3f}"])
    return _table(["mu", "coverage here", "mean width here", "coverage, binned aggregation", "mean width"], rows)
