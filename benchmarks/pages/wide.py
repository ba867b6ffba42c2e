"""Wide tables as Markdown: scores by solver and budget, and the excess objective where the truth is sparse."""

from collections.abc import Mapping, Sequence
from statistics import fmean, stdev
from typing import Any

from benchmarks.comparisons.wide import CEILING
from benchmarks.problems.wide_tables import HELD_BACK

Runs = Sequence[Mapping[str, Any]]


def markdown(runs: Runs) -> str:
    """Return the table of scores, and that of excess objectives."""
    parts = []
    for relation in dict.fromkeys(run["relation"] for run in runs if "relation" in run):
        some = [run for run in runs if run.get("relation", relation) == relation]
        parts += [f"**Score** on test rows (accuracy, or R²), `{relation}`:", "", _table(some, _scores), ""]
        parts += [f"**Excess objective** on training rows, `{relation}`:", "", _table(some, _excesses), ""]
    return "\n".join(parts).rstrip()


def _table(runs: Runs, values: Any) -> str:
    solvers = list(dict.fromkeys(run["solver"] for run in runs if run["solver"] != CEILING))
    lines = [
        "| table | epsilon | " + " | ".join(solvers) + f" | {CEILING} |",
        "|---|---|" + "---|" * (len(solvers) + 1),
    ]
    for name in dict.fromkeys(run["table"] for run in runs):
        here = [run for run in runs if run["table"] == name]
        for epsilon in sorted({run["epsilon"] for run in here if "epsilon" in run}):
            fits = [run for run in here if run.get("epsilon", epsilon) == epsilon]
            cells = [_cell(values(fits, here, solver)) for solver in (*solvers, CEILING)]
            lines.append(f"| {name}{' *' if name in HELD_BACK else ''} | {epsilon:g} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _scores(fits: Runs, table: Runs, solver: str) -> list[float]:
    return [run["score"] for run in fits if run["solver"] == solver and "score" in run]


def _excesses(fits: Runs, table: Runs, solver: str) -> list[float]:
    """Return excesses over the least objective that any model of the split has."""
    least = {
        seed: min(run["objective"] for run in table if run["seed"] == seed and "objective" in run)
        for seed in _seeds(table)
    }
    trivial = {run["seed"]: run["trivial"] for run in table if run["solver"] == CEILING}
    chosen = [run for run in fits if run["solver"] == solver and "objective" in run]
    return [(run["objective"] - least[run["seed"]]) / (trivial[run["seed"]] - least[run["seed"]]) for run in chosen]


def _seeds(table: Runs) -> set[int]:
    return {run["seed"] for run in table}


def _cell(values: Sequence[float]) -> str:
    if not values:
        return ""
    error = f" ± {stdev(values) / len(values) ** 0.5:.3f}" if len(values) > 1 else ""
    return f"{fmean(values):.3f}{error}"
