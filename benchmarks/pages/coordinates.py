"""The results of the coordinate experiments as tables: Markdown for the documentation."""

from statistics import fmean, stdev
from typing import Any

HEADER = "| problem | method | relative excess risk, mean | range of seeds | against the first | passes | clip | step |"


def best_point(method: dict[str, Any]) -> dict[str, Any]:
    """The point that tuning chose."""
    point: dict[str, Any] = method["points"][method["best"]]
    return point


def rows(results: dict[str, Any]) -> list[list[str]]:
    """One row a method and problem; the ratio is to the problem's first method."""
    table = []
    for problem in results["problems"]:
        first = fmean(best_point(problem["methods"][0])["risks"])
        for method in problem["methods"]:
            point = best_point(method)
            risks, mean = point["risks"], fmean(point["risks"])
            error = stdev(risks) / len(risks) ** 0.5 if len(risks) > 1 else 0.0
            spread = f"{min(risks):.3g} to {max(risks):.3g}"
            tuned = [f"{point[name]:g}" for name in ("passes", "clip", "step")]
            ratio = f"{mean / first:.2g} ×"
            table.append([problem["name"], method["label"], f"{mean:.3g} ± {error:.1g}", spread, ratio, *tuned])
    return table


def markdown(results: dict[str, Any]) -> str:
    """The table."""
    lines = [HEADER, "|---|---|---|---|---|---|---|---|", *("| " + " | ".join(row) + " |" for row in rows(results))]
    starts = ", ".join(f"{problem['name']} {problem['at_zero']:.3g}" for problem in results["problems"])
    return "\n".join([*lines, "", f"At w = 0 the relative excess risk is: {starts}."])
