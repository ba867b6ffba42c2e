"""Table models with lines and with curves, next to DP-EBM, as Markdown tables: scores on each table, mean gains."""

from statistics import fmean

from benchmarks.comparisons.accuracy import AS_DECLARED
from benchmarks.pages.accuracy import TASKS, Summary, as_table

LINES, CURVES, RIVAL = METHODS = ("lines", "curves", "dp_ebm")
SCORE = {"classification": "auc", "regression": "r2"}
NAMES = {"auc": "AUC", "r2": "R²"}


def markdown(summary: Summary) -> str:
    """A table per task and relation, and the mean gains of curves over lines."""
    parts: list[str] = []
    for task, title in TASKS.items():
        for relation in summary.relations:
            rows = [row for name in summary.sets(task) if (row := _row(summary, task, name, relation))]
            if rows:
                parts += [f"**{title}, `{relation}`**: {NAMES[SCORE[task]]} of lines / curves / DP-EBM.", ""]
                parts += [*as_table(["table", *(f"epsilon = {e:g}" for e in summary.epsilons)], rows)]
    return "\n".join([*parts, *_gains(summary)]).rstrip()


def short(summary: Summary) -> str:
    """The mean scores over tables by epsilon, where all three were run, under the rival's relation."""
    rows = []
    for task, title in TASKS.items():
        metric = SCORE[task]
        for epsilon in summary.epsilons:
            means = [_means(summary, name, metric, epsilon, "zero_out") for name in summary.sets(task)]
            complete = [found for found in means if len(found) == len(METHODS)]
            if complete:
                ahead = sum(found[CURVES] > found[RIVAL] for found in complete)
                scores = [f"{fmean(found[method] for found in complete):.3f}" for method in METHODS]
                rows.append([f"{title}, {NAMES[metric]}", f"{epsilon:g}", *scores, f"{ahead} of {len(complete)}"])
    return "\n".join(
        as_table(["", "epsilon", "lines", "curves", "DP-EBM", "tables where curves are ahead"], rows)
    ).rstrip()


def _means(summary: Summary, name: str, metric: str, epsilon: float, relation: str) -> dict[str, float]:
    """The mean score of each method on a table, where it was run."""
    found = {}
    for method in METHODS:
        runs = summary.runs.get((name, method, epsilon, relation, AS_DECLARED), ())
        if runs:
            found[method] = fmean(scored[metric] for scored, _ in runs)
    return found


def _row(summary: Summary, task: str, name: str, relation: str) -> list[str]:
    """A table's scores at each epsilon; nothing where there are none."""
    cells = []
    for epsilon in summary.epsilons:
        means = _means(summary, name, SCORE[task], epsilon, relation)
        cells.append(" / ".join(f"{means[method]:.3f}" if method in means else "–" for method in METHODS))
    return [summary.references[name]["title"], *cells] if any(cell != "– / – / –" for cell in cells) else []


def _gains(summary: Summary) -> list[str]:
    """The mean over tables of what curves gain over lines, and the worst of them."""
    rows = []
    for task, title in TASKS.items():
        metric = SCORE[task]
        for relation in summary.relations:
            cells = []
            for epsilon in summary.epsilons:
                means = [_means(summary, name, metric, epsilon, relation) for name in summary.sets(task)]
                gains = [found[CURVES] - found[LINES] for found in means if {LINES, CURVES} <= found.keys()]
                cells.append(f"{fmean(gains):+.4f} ({min(gains):+.4f})" if gains else "–")
            rows.append([f"{title}, {NAMES[metric]}", f"`{relation}`", *cells])
    head = ["", "relation", *(f"epsilon = {epsilon:g}" for epsilon in summary.epsilons)]
    return ["**What curves gain over lines**: the mean over tables (the least).", "", *as_table(head, rows)]
