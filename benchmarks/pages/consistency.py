"""How the default's distance from its minimizer falls with the budget: a table for each task, and a picture."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

from benchmarks.comparisons.consistency import HELD_BACK
from benchmarks.pages.curve_panels import Curve, Panel, curve_panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEAST = 1e-5  # what is drawn where a share is 0 or, by rounding, below
TITLES = ("Labels: logistic regression", "Numbers: least squares")
Runs = Sequence[Mapping[str, Any]]


def markdown(runs: Runs) -> str:
    """Return two tables: excess objective and gap, by table and budget."""
    parts = []
    for labels, what in ((True, "Labels"), (False, "Numbers")):
        some = [run for run in runs if run["labels"] is labels]
        if some:
            parts += [_table(some, "share", f"**{what}, excess objective** on training rows"), ""]
            parts += [_table(some, "gap", f"**{what}, gap** on test rows"), ""]
    return "\n".join(parts).rstrip()


def consistency_figure(runs: Runs) -> "Figure":
    """Draw the excess of each table against epsilon, a panel for each task; a look stands for one table of each."""
    tasks = [[run for run in runs if run["labels"] is labels] for labels in (True, False)]
    names = [list(dict.fromkeys(run["set"] for run in some)) for some in tasks]
    shared = [", ".join(_name(name) for name in both if name) for both in zip_longest(*names)]
    panels = [
        Panel(title, [_curve(some, name, shared[look], look) for look, name in enumerate(chosen)], 1.0, "trivial")
        for some, chosen, title in zip(tasks, names, TITLES, strict=True)
        if chosen
    ]
    return curve_panels(
        panels,
        title="The default tends to the minimizer of its objective",
        subtitle="Excess objective over what the minimizer gains on the trivial predictor; * not used to choose rules",
        x_label="epsilon",
        y_label="excess objective",
    )


def _curve(runs: Runs, name: str, label: str, look: int) -> Curve:
    epsilons = _epsilons(runs)
    return Curve(label, epsilons, [_values(runs, name, one, "share", LEAST) for one in epsilons], look)


def _table(runs: Runs, measure: str, title: str) -> str:
    epsilons = _epsilons(runs)
    lines = [f"{title}:", "", "| table, epsilon = | " + " | ".join(f"{one:g}" for one in epsilons) + " |"]
    lines.append("|---" * (len(epsilons) + 1) + "|")
    names = list(dict.fromkeys(run["set"] for run in runs))
    for name in names:
        cells = (_cell(_values(runs, name, one, measure)) for one in epsilons)
        lines.append(f"| {_name(name)} | " + " | ".join(cells) + " |")
    for label, chosen in (("mean", names), ("mean of *", [name for name in names if name in HELD_BACK])):
        if chosen:
            means = (fmean(fmean(_values(runs, name, one, measure)) for name in chosen) for one in epsilons)
            lines.append(f"| {label} | " + " | ".join(f"{one:.4f}" for one in means) + " |")
    return "\n".join(lines)


def _epsilons(runs: Iterable[Mapping[str, Any]]) -> list[float]:
    return sorted({run["epsilon"] for run in runs})


def _values(runs: Runs, name: str, epsilon: float, measure: str, least: float | None = None) -> list[float]:
    found = [float(run[measure]) for run in runs if run["set"] == name and run["epsilon"] == epsilon]
    return found if least is None else [max(least, value) for value in found]


def _cell(values: Sequence[float]) -> str:
    error = f" ± {stdev(values) / len(values) ** 0.5:.4f}" if len(values) > 1 else ""
    return f"{fmean(values):.4f}{error}"


def _name(name: str) -> str:
    return name + (" *" if name in HELD_BACK else "")
