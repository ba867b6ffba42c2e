"""Defaults against tuned settings as a table: one row per solver and problem, a ratio per budget."""

import math
from collections.abc import Sequence
from statistics import fmean
from typing import Any

RELATIONS = ("zero_out", "replace_one")


def ratio(cell: dict[str, Any]) -> float:
    """Return the mean excess of the default over that of the tuned settings."""
    tuned = fmean(cell["tuned"])
    return fmean(cell["default"]) / tuned if tuned > 0 else math.nan


def markdown(cells: Sequence[dict[str, Any]]) -> str:
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
