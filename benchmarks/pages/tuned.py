"""Defaults against tuned settings: a line per solver, then a row per solver and problem with a ratio per budget."""

import math
from collections.abc import Sequence
from statistics import fmean, median, stdev
from typing import Any

RELATIONS = ("zero_out", "replace_one")


def ratio(cell: dict[str, Any]) -> float:
    """Return the mean excess of the default over that of the tuned settings."""
    tuned = fmean(cell["tuned"])
    return fmean(cell["default"]) / tuned if tuned > 0 else math.nan


def is_below_trivial(cell: dict[str, Any]) -> bool:
    """Say whether the default is worse than the trivial predictor, by more than two standard errors."""
    error = stdev(cell["default"]) / math.sqrt(len(cell["default"])) if len(cell["default"]) > 1 else 0.0
    return fmean(cell["default"]) - cell["trivial"] > 2 * error


def summary(cells: Sequence[dict[str, Any]]) -> str:
    """Return a line per solver: how many cells are within 2 and beyond 4 times the tuned settings, or below trivial."""
    ran = [cell for cell in cells if "absent" not in cell]
    lines = [
        "| solver | cells | at most 2 x | above 4 x | median | worse than trivial |", "|---|" + "---:|" * 5,
    ]  # fmt: skip
    for solver in (*sorted({cell["solver"] for cell in ran}), *(["all"] if ran else [])):
        here = [cell for cell in ran if solver in (cell["solver"], "all")]
        ratios = [ratio(cell) for cell in here]
        within = sum(value <= 2 for value in ratios) / max(1, len(ratios))
        beyond, below = sum(value > 4 for value in ratios), sum(map(is_below_trivial, here))
        lines.append(f"| {solver} | {len(here)} | {within:.0%} | {beyond} | {median(ratios):.1f} | {below} |")
    return "\n".join(lines)


def markdown(cells: Sequence[dict[str, Any]]) -> str:
    """Return the summary and the table."""
    return f"{summary(cells)}\n\n{table(cells)}"


def table(cells: Sequence[dict[str, Any]]) -> str:
    """Return the table: ratios, and the default's excess in units of the trivial predictor's in parentheses."""
    epsilons = sorted({cell["epsilon"] for cell in cells})
    columns = [(relation, epsilon) for relation in RELATIONS for epsilon in epsilons if _has(cells, relation=relation)]
    head = ["solver", "problem", *(f"{relation}, {epsilon:g}" for relation, epsilon in columns)]
    lines = ["| " + " | ".join(head) + " |", "|---|---|" + "---:|" * len(columns)]
    for solver in sorted({cell["solver"] for cell in cells}):
        for problem in sorted({cell["problem"] for cell in cells}):
            rows = {(c["relation"], c["epsilon"]): c for c in cells if (c["solver"], c["problem"]) == (solver, problem)}
            if rows:
                lines.append(
                    "| " + " | ".join([solver, problem, *(_shown(rows.get(place)) for place in columns)]) + " |"
                )
    return "\n".join(lines)


def _has(cells: Sequence[dict[str, Any]], **facts: Any) -> bool:
    return any(all(cell[name] == value for name, value in facts.items()) for cell in cells)


def _shown(cell: dict[str, Any] | None) -> str:
    if cell is None or "absent" in cell:
        return "" if cell is None else "refused"
    return f"{ratio(cell):.1f} ({fmean(cell['default']) / cell['trivial']:.3f})"
