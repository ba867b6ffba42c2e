"""The comparison of models with default settings, as Markdown tables.

Mean gaps, ranks, each table, the worst case, every solver by name, and how many runs all that rests on.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from statistics import fmean
from typing import Any

from benchmarks.comparisons.accuracy import AS_DECLARED, DEFAULT, WIDENED_EPSILON, run_key
from benchmarks.measures.accuracy import mean_and_error
from benchmarks.measures.gap import gap, learned
from benchmarks.problems.declared_tables import SMALL
from discreet.models.fit import solver_names

TASKS = {"classification": "Labels", "regression": "Numbers"}
MAIN_METRIC = {"classification": "accuracy", "regression": "r2"}
HELD_OUT = ("adult", "covertype_177k", "spambase", "diamonds", "wine_quality", "medical_cost")
"""Tables on which no default rule was chosen since version 0.2: three with labels, three with numbers."""
SHORT = (
    ("discreet, `replace_one`", DEFAULT, "replace_one"),
    ("discreet, `zero_out`", DEFAULT, "zero_out"),
    ("Opacus 1.6", "opacus", "zero_out"),
    ("diffprivlib 0.6.6", "diffprivlib", "zero_out"),
)
"""The columns of the short comparison: title, method and relation."""
Cell = tuple[str, str, float, str, str]
Scored = tuple[Mapping[str, float], Mapping[str, Any]]  # what a run scored, and the references of its split


@dataclass(frozen=True)
class Mean:
    """A mean over tables of means over seeds, and its standard error, which is that of the seeds alone."""

    value: float
    error: float

    @classmethod
    def over(cls, samples: Sequence[Sequence[float]]) -> "Mean":
        """The mean of the samples' means."""
        pairs = [mean_and_error(sample) for sample in samples]
        return cls(fmean(mean for mean, _ in pairs), sum(error**2 for _, error in pairs) ** 0.5 / len(pairs))

    def __str__(self) -> str:
        return f"{self.value:.3f} ± {self.error:.3f}"


@dataclass(frozen=True)
class Standing:
    """A method's accuracy or R^2 less the trivial predictor's, at one budget under one relation."""

    epsilon: float
    relation: str
    difference: float
    error: float

    @property
    def is_below(self) -> bool:
        """Whether it is below by more than the seeds explain."""
        return self.difference < -2 * self.error


class Summary:
    """All fits, ours and others', by table, method, epsilon, relation and ranges."""

    def __init__(self, results: Mapping[str, Any], others: Iterable[Mapping[str, Any]] = ()) -> None:
        self.references: dict[str, Any] = dict(results["references"])
        self.absent: list[dict[str, Any]] = list(results.get("absent", ()))
        runs = {run_key(run): run for run in results["runs"]}
        for file in others:
            self.absent += file.get("absent", ())
            for run in file["runs"]:
                runs.setdefault(run_key(run), run)
        self.epsilons: list[float] = sorted({run["epsilon"] for run in runs.values()})
        self.relations = [r for r in ("zero_out", "replace_one") if any(run["relation"] == r for run in runs.values())]
        self.scales = {name: learned(facts["splits"].values()) for name, facts in self.references.items()}
        self.runs: dict[Cell, list[Scored]] = defaultdict(list)
        self.methods: list[str] = []
        for key, run in runs.items():
            split = self.references.get(run["set"], {"splits": {}})["splits"].get(str(key[-1]))
            if split is not None:  # else a table or a split that is not compared here
                self.runs[key[:5]].append((run["metrics"], split))
                self.methods += [] if run["method"] in self.methods else [run["method"]]

    def sets(self, task: str) -> list[str]:
        """The tables of a task."""
        return [name for name, facts in self.references.items() if facts["task"] == task]

    def gaps(self, name: str, method: str, epsilon: float, relation: str, ranges: str = AS_DECLARED) -> list[float]:
        """The gaps of all seeds; none where the method was not run."""
        found = self.runs.get((name, method, epsilon, relation, ranges), ())
        return [gap(metrics, split, self.scales[name]) for metrics, split in found]

    def reference(self, name: str, kind: str, metric: str) -> float:
        """What the model without privacy or the trivial predictor scores: the mean over splits."""
        return fmean(split[kind][metric] for split in self.references[name]["splits"].values())

    def complete(self, task: str, relation: str, method: str) -> list[str]:
        """The tables that a method was run on at every epsilon."""
        return [s for s in self.sets(task) if all(self.gaps(s, method, e, relation) for e in self.epsilons)]

    def mean_gap(self, names: Sequence[str], method: str, epsilon: float, relation: str) -> Mean:
        """The mean over tables of a method's mean gaps."""
        return Mean.over([self.gaps(name, method, epsilon, relation) for name in names])

    def ranks(self, task: str, relation: str) -> dict[str, float]:
        """Mean ranks among the methods that were run on every table; equals share the better rank."""
        tables = self.sets(task)
        full = [m for m in self.methods if tables and self.complete(task, relation, m) == tables]
        places: dict[str, list[int]] = {method: [] for method in full}
        for name in tables:
            for epsilon in self.epsilons:
                means = {method: fmean(self.gaps(name, method, epsilon, relation)) for method in full}
                for method in full:
                    places[method].append(1 + sum(other < means[method] for other in means.values()))
        return {method: fmean(found) for method, found in places.items()}


def markdown(summary: Summary) -> str:
    """All tables."""
    parts: list[str] = []
    for task, title in TASKS.items():
        for relation in summary.relations:
            if summary.sets(task):
                parts += [f"**{title}, `{relation}`**: mean gap over tables.", "", *_gap_table(summary, task, relation)]
    for task, title in TASKS.items():
        if summary.sets(task):
            parts += [f"**{title}, the default on each table**: gap under " + " / ".join(summary.relations) + ".", ""]
            parts += [*_set_table(summary, task), *_worst(summary, task)]
    parts += [*_held_out(summary), *_widened(summary)]
    for relation in summary.relations:
        for epsilon in summary.epsilons:
            parts += _by_name(summary, epsilon, relation)
    parts += [*_run_counts(summary), *_absences(summary)]
    return "\n".join(parts).rstrip()


def compared(summary: Summary) -> str:
    """The short comparison for labels: epsilon by method, of those that were run on every table."""
    tables, rows = summary.sets("classification"), []
    for epsilon in summary.epsilons:
        cells = [
            f"{summary.mean_gap(tables, method, epsilon, relation).value:.3f}"
            if tables and summary.complete("classification", relation, method) == tables
            else "–"
            for _, method, relation in SHORT
        ]
        rows.append([f"{epsilon:g}", *cells])
    return "\n".join(as_table(["epsilon", *(title for title, _, _ in SHORT)], rows)).rstrip()


def as_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A Markdown table, and an empty line."""
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return ["| " + " | ".join(header) + " |", "|---" * len(header) + "|", *lines, ""]


def _gap_table(summary: Summary, task: str, relation: str) -> list[str]:
    """Methods by mean gap; those that were not run on every table come last and have no rank."""
    ranks, means = summary.ranks(task, relation), {}
    tables = {method: summary.complete(task, relation, method) for method in summary.methods}
    for method in summary.methods:
        if tables[method]:
            means[method] = [
                summary.mean_gap(tables[method], method, epsilon, relation) for epsilon in summary.epsilons
            ]
    order = sorted(means, key=lambda m: (m not in ranks, fmean(mean.value for mean in means[m])))
    best = [min((means[m][i].value for m in ranks), default=None) for i in range(len(summary.epsilons))]
    rows = []
    for method in order:
        cells = [
            f"**{mean}**" if method in ranks and mean.value == low else str(mean)
            for mean, low in zip(means[method], best, strict=True)
        ]
        overall = f"{fmean(mean.value for mean in means[method]):.3f}"
        rank = f"{ranks[method]:.1f}" if method in ranks else "–"
        rows.append([method, *cells, overall, rank, f"{len(tables[method])} of {len(summary.sets(task))}"])
    epsilons = [f"{epsilon:g}" for epsilon in summary.epsilons]
    return as_table(["method, epsilon =", *epsilons, "mean", "mean rank", "tables"], rows)


def _set_table(summary: Summary, task: str) -> list[str]:
    rows = []
    for name in summary.sets(task):
        facts = summary.references[name]
        cells = []
        for epsilon in summary.epsilons:
            found = [summary.gaps(name, DEFAULT, epsilon, relation) for relation in summary.relations]
            cells.append(" / ".join(f"{fmean(gaps):.3f}" if gaps else "–" for gaps in found))
        free, trivial = (summary.reference(name, kind, MAIN_METRIC[task]) for kind in ("non_private", "trivial"))
        size = f"{facts['rows']:,} × {facts['columns']}"
        rows.append([facts["title"], size, *cells, f"{free:.3f}", f"{trivial:.3f}"])
    epsilons = [f"{epsilon:g}" for epsilon in summary.epsilons]
    metric = "accuracy" if task == "classification" else "R²"
    return as_table(["table", "rows × columns", *epsilons, f"{metric} without privacy", "trivial"], rows)


def against_trivial(summary: Summary, task: str, method: str = DEFAULT) -> dict[str, list[Standing]]:
    """How a method stands against the trivial predictor, table by table: all budgets and relations, the worst first."""
    metric, found = MAIN_METRIC[task], {}
    for name in summary.sets(task):
        points = []
        for relation in summary.relations:
            for epsilon in summary.epsilons:
                runs = summary.runs.get((name, method, epsilon, relation, AS_DECLARED), ())
                if runs:
                    mean, error = mean_and_error([scored[metric] - split["trivial"][metric] for scored, split in runs])
                    points.append(Standing(epsilon, relation, mean, error))
        if points:
            found[name] = sorted(points, key=lambda point: point.difference)
    return found


def _worst(summary: Summary, task: str) -> list[str]:
    """Where the default is nearest to, or below, what needs no data at all."""
    rows = []
    for name, points in against_trivial(summary, task).items():
        worst, below = points[0], [point for point in points if point.is_below]
        rows.append(
            [
                summary.references[name]["title"],
                f"{worst.epsilon:g}, `{worst.relation}`",
                f"{worst.difference:+.4f} ± {worst.error:.4f}",
                f"{len(below)} of {len(points)}",
            ]
        )
    if not rows:
        return []
    metric = "Accuracy" if task == "classification" else "R²"
    head = f"{metric} of the default less the trivial predictor's, where it is least (± standard error over seeds):"
    return [head, "", *as_table(["table", "epsilon, relation", "difference", "points below by two errors"], rows)]


def _held_out(summary: Summary) -> list[str]:
    """The default's mean gaps on the tables that no rule was chosen on, and on the others."""
    rows = []
    for task, title in TASKS.items():
        for relation in summary.relations:
            done = summary.complete(task, relation, DEFAULT)
            for words, kept in (("held out", True), ("others", False)):
                tables = [name for name in done if (name in HELD_OUT) is kept]
                if tables:
                    cells = [str(summary.mean_gap(tables, DEFAULT, epsilon, relation)) for epsilon in summary.epsilons]
                    rows.append([title, f"`{relation}`", f"{words}: {', '.join(tables)}", *cells])
    if not any("held out" in row[2] for row in rows):
        return []
    head = ["", "relation", "tables, epsilon =", *(f"{epsilon:g}" for epsilon in summary.epsilons)]
    return [
        "**The default on tables that no rule was chosen on**, and on the others: mean gap.",
        "",
        *as_table(head, rows),
    ]


def _widened(summary: Summary) -> list[str]:
    """What ranges that are declared too wide cost."""
    kinds = sorted({cell[4] for cell in summary.runs if cell[4] != AS_DECLARED})
    rows = []
    for ranges in kinds:
        for task, title in TASKS.items():
            for relation in summary.relations:
                points = (DEFAULT, WIDENED_EPSILON, relation)
                names = [
                    name
                    for name in summary.sets(task)
                    if summary.gaps(name, *points, ranges) and summary.gaps(name, *points)
                ]
                if names:
                    before = Mean.over([summary.gaps(name, *points) for name in names])
                    after = Mean.over([summary.gaps(name, *points, ranges) for name in names])
                    cost = f"{after.value - before.value:+.3f}"
                    rows.append([ranges, title.lower(), f"`{relation}`", str(before), str(after), cost])
    if not rows:
        return []
    head = f"**Ranges declared too wide**: mean gap of the default at epsilon = {WIDENED_EPSILON:g}."
    return [head, "", *as_table(["ranges", "outcome", "relation", "as declared", "too wide", "cost"], rows)]


@dataclass(frozen=True)
class Named:
    """Mean gaps of solvers at one budget under one relation: a row of ``gaps`` is a table that all of them have."""

    task: str
    solvers: list[str]
    gaps: dict[str, dict[str, list[float]]]

    @classmethod
    def of(cls, summary: Summary, task: str, epsilon: float, relation: str) -> "Named":
        """A solver that cannot run on some table is left out, so that it does not take the table from the others."""
        tables, point = summary.sets(task), (epsilon, relation, AS_DECLARED)
        refused = {(fact["set"], fact["method"]) for fact in summary.absent if _point(fact) == point}
        gaps = {name: {table: summary.gaps(table, name, *point) for table in tables} for name in solver_names()}
        solvers = [
            name for name in gaps if any(gaps[name].values()) and not any((table, name) in refused for table in tables)
        ]
        shared = [table for table in tables if all(gaps[name][table] for name in solvers)]
        return cls(task, solvers, {table: {name: gaps[name][table] for name in solvers} for table in shared})

    @property
    def shown(self) -> list[str]:
        """The solvers, where others than the default were run."""
        return self.solvers if self.gaps and any(name != DEFAULT for name in self.solvers) else []

    @property
    def hardest(self) -> str:
        """The table on which solvers differ most."""
        return max(self.gaps, key=lambda table: self.ends(table)[-1][0] - self.ends(table)[0][0])

    def ends(self, table: str) -> list[tuple[float, str]]:
        """The mean gap of every solver on a table, the least first."""
        return sorted((fmean(found), name) for name, found in self.gaps[table].items())

    def mean(self, solver: str, without: str) -> Mean | None:
        """A solver's mean over the tables but one; none where it was not run."""
        if solver not in self.solvers:
            return None
        return Mean.over([found[solver] for table, found in self.gaps.items() if table != without])

    def cell(self, solver: str, without: str) -> str:
        """Its mean as text: with its error where every point has two runs, without which that is not known."""
        mean = self.mean(solver, without)
        if mean is None:
            return "–"
        repeated = all(len(runs) > 1 for found in self.gaps.values() for runs in found.values())
        return str(mean) if repeated else f"{mean.value:.3f}"


def _point(fact: Mapping[str, Any]) -> tuple[float, str, str]:
    return fact["epsilon"], fact["relation"], fact.get("ranges", AS_DECLARED)


def _by_name(summary: Summary, epsilon: float, relation: str) -> list[str]:
    """Every solver at one budget, where others than the default were run; labels also without the hardest table."""
    found = [named for task in TASKS if (named := Named.of(summary, task, epsilon, relation)).shown]
    head, counts, spreads = ["solver"], [], []
    columns: list[tuple[Named, str]] = []  # and the table that is left out
    for named in found:
        words, hardest = TASKS[named.task].lower(), named.hardest
        head.append(words)
        columns.append((named, ""))
        if named.task == "classification" and len(named.gaps) > 1:
            head.append(f"without {summary.references[hardest]['title']}")
            columns.append((named, hardest))
        counts.append(f"{len(named.gaps)} of {len(summary.sets(named.task))} tables with {words}")
        (low, best), (high, worst) = named.ends(hardest)[0], named.ends(hardest)[-1]
        where = f"for {words} on {summary.references[hardest]['title']}"
        spreads.append(f"{where}, from {low:.2f} (`{best}`) to {high:.2f} (`{worst}`)")
    if not found:
        return []
    means = {name: [named.mean(name, without) for named, without in columns] for name in solver_names()}
    order = sorted(
        (name for name in means if any(means[name])),
        key=lambda name: [mean.value if mean else inf for mean in means[name]],
    )
    rows = [[f"`{name}`", *(named.cell(name, without) for named, without in columns)] for name in order]
    return [
        f"**Every solver by name**, epsilon = {epsilon:g}, `{relation}`: mean gap over {' and '.join(counts)}.",
        "",
        *as_table(head, rows),
        f"Solvers differ most {'; '.join(spreads)}.",
        "",
    ]


def _run_counts(summary: Summary) -> list[str]:
    """How many runs the points of each method that is shown have, on small tables and on others."""
    shown = {
        method
        for task in TASKS
        for relation in summary.relations
        for method in [
            *(method for method in summary.methods if summary.complete(task, relation, method)),
            *(name for e in summary.epsilons for name in Named.of(summary, task, e, relation).shown),
        ]
    }
    counts: dict[str, tuple[set[int], set[int]]] = {name: (set(), set()) for name in summary.methods if name in shown}
    for (table, method, _, _, ranges), runs in summary.runs.items():
        if ranges == AS_DECLARED and method in shown:
            counts[method][summary.references[table]["rows"] >= SMALL].add(len(runs))
    rows: dict[tuple[str, str], list[str]] = defaultdict(list)
    for method, (small, large) in counts.items():
        rows[_span(small), _span(large)].append(method)
    head = ["method", f"runs of a point on tables with fewer than {SMALL:,} rows", "on others"]
    table = as_table(head, [[", ".join(methods), *spans] for spans, methods in rows.items()])
    return ["**Numbers of runs**:", "", *table] if rows else []


def _span(counts: set[int]) -> str:
    if not counts:
        return "–"
    low, high = min(counts), max(counts)
    return f"{low}" if low == high else f"{low} to {high}"


def _absences(summary: Summary) -> list[str]:
    """Who did not take part, where and why."""
    reasons: dict[tuple[str, str], set[str]] = defaultdict(set)
    for point in summary.absent:
        if point.get("ranges", AS_DECLARED) == AS_DECLARED and point["set"] in summary.references:
            reasons[point["method"], point["why"]].add(point["set"])
    lines = []
    for (method, why), sets in sorted(reasons.items()):
        where = ", ".join(name for name in summary.references if name in sets)
        lines.append(f"- `{method}` on {where}. {why[:1].upper()}{why[1:]}.")
    return ["Not run:", "", *lines, ""] if lines else []
