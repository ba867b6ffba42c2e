"""DP-GCD by its default against DP-CD and DP-SGD by theirs, where few columns matter. Epsilon 1, delta 1/n^2.

The problems are those of ``sparse_problems``: generated ones, and the papers' tables where their folder is given.
"""

from collections.abc import Sequence
from statistics import geometric_mean
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.experiments.harness import Claim, Experiment, Row, mean
from benchmarks.experiments.sparse_problems import GENERATED, TABLES, file_of, sparse_problem
from benchmarks.seeded import SeededWords
from discreet.curator import use_entropy
from discreet.report.page import LIGHT, blank, frame

if TYPE_CHECKING:
    from matplotlib.figure import Figure

METHODS = ("gcd", "cd", "sgd", "auto")
TOP = 1.6
"""Where bars are cut off: far above 1 nothing was learned, however far."""


def points(quick: bool) -> list[Row]:
    """Problems and methods; public tables where their folder is given."""
    names = [*GENERATED, *(name for name in TABLES if not quick and file_of(name))]
    return [{"problem": name, "method": method} for name in (names[:1] if quick else names) for method in METHODS]


def run(problem: str, method: str, seed: int) -> Row:
    """Return the excess objective of one fit, where 1 is a model without columns."""
    made, best, trivial = sparse_problem(problem)
    model = made.model(epsilon=1.0, solver=method, ledger=False, delta=1.0 / len(made.y) ** 2)
    with use_entropy(SeededWords(seed)):
        model.fit(made.X, made.y)
    return {"excess": (made.objective(model) - best) / (trivial - best)}


def _ratios(rows: Sequence[Row], other: str, method: str, names: Sequence[str]) -> list[float]:
    """One method's mean excess over another's, by problem."""
    return [
        mean(rows, "excess", problem=name, method=other) / mean(rows, "excess", problem=name, method=method)
        for name in names
    ]


def _least_ratio(rows: Sequence[Row], other: str, method: str, names: Sequence[str] = GENERATED) -> float:
    return min(_ratios(rows, other, method, names))


def _typical_ratio(rows: Sequence[Row], other: str, method: str, names: Sequence[str]) -> float:
    """The geometric mean over problems."""
    return geometric_mean(_ratios(rows, other, method, names))


def _excess(rows: Sequence[Row], name: str, method: str) -> float:
    return mean(rows, "excess", problem=name, method=method)


def figure(rows: Sequence[Row]) -> "Figure":
    """Bars per problem."""
    names = list(dict.fromkeys(row["point"]["problem"] for row in rows))
    drawn = blank(1.2 * len(names) + 2.0, 3.8, LIGHT)
    drawn.set_layout_engine("constrained")
    axes, width = drawn.subplots(), 0.8 / len(METHODS)
    colors = (LIGHT.private, LIGHT.reference, LIGHT.muted, LIGHT.ink)
    for k, method in enumerate(METHODS):
        heights = [mean(rows, "excess", problem=name, method=method) for name in names]
        places, words = np.arange(len(names)) + k * width, [f"{height:.2f}".lstrip("0") for height in heights]
        bars = axes.bar(places, np.minimum(heights, TOP), width, color=colors[k], label=method)
        axes.bar_label(bars, words, fontsize=8, color=LIGHT.ink, padding=1)
    axes.axhline(1.0, color=LIGHT.muted, linewidth=1, zorder=0.9)
    axes.set_xticks(np.arange(len(names)) + 0.4 - width / 2, [name.replace("_", " ") for name in names])
    axes.set_ylim(0, 1.25 * TOP)  # room for the legend
    axes.set_ylabel("excess (1: no columns)", color=LIGHT.ink)
    axes.legend(frameon=False, fontsize=9, ncols=len(METHODS))
    axes.set_title("Greedy coordinates where few columns matter", loc="left", fontsize=12, color=LIGHT.ink)
    frame(axes, LIGHT)
    return drawn


CLAIMS = (
    Claim("generated problems: DP-CD's excess over DP-GCD's, least",
          lambda rows: _least_ratio(rows, "cd", "gcd"), low=1.0),
    Claim("generated problems: DP-SGD's over DP-GCD's, least",
          lambda rows: _least_ratio(rows, "sgd", "gcd"), low=1.0),
    Claim("square, whose penalty says that few columns matter: DP-GCD's over auto's",
          lambda rows: _least_ratio(rows, "gcd", "auto", ("square",)), low=1 / 1.2),
)  # fmt: skip
CLAIMS_ON_TABLES = (
    Claim("all problems, tables included, in the geometric mean: DP-CD's over DP-GCD's",
          lambda rows: _typical_ratio(rows, "cd", "gcd", (*GENERATED, *TABLES)), low=1.0),
    Claim("the same, DP-SGD's over DP-GCD's",
          lambda rows: _typical_ratio(rows, "sgd", "gcd", (*GENERATED, *TABLES)), low=1.0),
    Claim("madelon and melting point: DP-SGD's over DP-GCD's, least",
          lambda rows: _least_ratio(rows, "sgd", "gcd", ("madelon", "melting_point")), low=1.0),
    Claim("electricity: DP-CD's over DP-GCD's",
          lambda rows: _least_ratio(rows, "cd", "gcd", ("electricity",)), low=1.0),
    Claim("dorothea, whose 100,000 columns none of the three finds: the least of their excesses",
          lambda rows: min(_excess(rows, "dorothea", method) for method in ("gcd", "cd", "sgd")), low=0.95),
    Claim("California housing and melting point, where DP-CD is ahead: the same, in the geometric mean",
          lambda rows: _typical_ratio(rows, "cd", "gcd", ("california_housing", "melting_point")), high=1.0),
    Claim("madelon: DP-GCD finds columns: its excess", lambda rows: _excess(rows, "madelon", "gcd"), high=1.0),
)  # fmt: skip

EXPERIMENT = Experiment(
    "greedy_coordinates",
    "Greedy coordinate descent where few columns matter",
    "Does DP-GCD, with nothing set, beat DP-CD and DP-SGD on wide problems with few relevant columns, and on tables?",
    points,
    run,
    (*CLAIMS, *(CLAIMS_ON_TABLES if all(map(file_of, TABLES)) else ())),
    figure,
    seeds=8,
)
