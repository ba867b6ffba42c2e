"""The default against every solver by name, as one block of Markdown."""

import math
from collections.abc import Callable, Sequence
from statistics import fmean, median
from typing import Any

from benchmarks.comparisons.defaults import HALVES, NEAR, SOLVERS, Compared, Runs, compared

WORST = 12
MEASURES = {"objective": "objective on training rows", "loss": "loss on test rows"}
Cells = Sequence[Compared]


def markdown(runs: Runs) -> str:
    """Return a section for each half that was run, and for each measure in it."""
    parts = []
    for half, odd in HALVES.items():
        some = [one for one in runs if one["problem"] % 2 == odd]
        for measure, title in MEASURES.items():
            cells = compared(some, measure)
            if cells:
                parts += [
                    f"**{half.capitalize()}, {title}.** {summary(cells)}",
                    "",
                    _groups(cells),
                    "",
                    _worst(cells),
                    "",
                ]
                parts += [_variations(cells), ""] if any(set(cell.values) - set(SOLVERS) for cell in cells) else []
    return "\n".join(parts).rstrip()


def summary(cells: Cells) -> str:
    """Return the figures of all cells in a sentence."""
    worst = max(cells, key=Compared.ratio)
    return (
        f"{len(cells)} cells of {len({cell.problem for cell in cells})} problems: the default is within {NEAR:g} times "
        f"the best solver by name in {_share(cells)} of them, beyond that in {sum(cell.is_beyond for cell in cells)}, "
        f"by more than two standard errors in {sum(cell.is_clear for cell in cells)}, at worst at {_ratio(worst)} "
        f"times ({_name(worst)}), and worse than the trivial predictor in {_count(cells)}."
    )


def _ratio(cell: Compared) -> str:
    return f"{cell.ratio():.3g} ± {cell.ratio_error():.2g}"


def _share(cells: Cells) -> str:
    return f"{100 * fmean(not cell.is_beyond for cell in cells):.0f} %"


def _count(cells: Cells) -> int:
    return sum(cell.worse_than_trivial for cell in cells)


def _name(cell: Compared) -> str:
    return f"problem {cell.problem}, epsilon {cell.epsilon:g}, `{cell.relation}`"


def _groups(cells: Cells) -> str:
    """Return the same figures by budget, relation, loss and more."""
    keys: dict[str, Callable[[Compared], Any]] = {
        "epsilon": lambda cell: f"{cell.epsilon:g}",
        "relation": lambda cell: cell.relation,
        "loss": lambda cell: cell.facts["loss"],
        "intercept": lambda cell: "yes" if cell.facts["intercept"] else "no",
        "ranges": lambda cell: cell.facts["ranges"],
        "strength": lambda cell: cell.facts["strength"],
    }
    lines = [
        f"| cells | number | within {NEAR:g} x | clearly beyond | median ratio | worst ratio | worse than trivial |",
        "|---" * 7 + "|",
    ]
    for key, of in keys.items():
        for value in dict.fromkeys(map(of, cells)):
            some = [cell for cell in cells if of(cell) == value]
            ratios = [cell.ratio() for cell in some]
            clear = sum(cell.is_clear for cell in some)
            figures = f"{_share(some)} | {clear} | {median(ratios):.2f} | {max(ratios):.3g} | {_count(some)}"
            lines.append(f"| {key} {value} | {len(some)} | {figures} |")
    return "\n".join(lines)


def _worst(cells: Cells) -> str:
    """Return the cells with the largest ratios, clear ones first, with what is known of them."""
    lines = ["| cell | ratio | best | excess of auto | of the best | of trivial | facts |", "|---" * 7 + "|"]
    for cell in sorted(cells, key=lambda cell: (cell.is_clear, cell.ratio()), reverse=True)[:WORST]:
        facts = ", ".join(f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}"
                          for name, value in cell.facts.items())  # fmt: skip
        mine, best = cell.excess("auto"), cell.least
        told = _ratio(cell) if cell.is_clear else f"{_ratio(cell)}, not clear"
        figures = f"{told} | {cell.best} | {mine:.3g} | {best:.3g} | {cell.trivial:.3g}"
        lines.append(f"| {_name(cell)} | {figures} | {facts} |")
    return "\n".join(lines)


def _variations(cells: Cells) -> str:
    """Return, for each variation, its excess over the default's: the geometric mean, and how often it is better."""
    lines = ["| variation | cells | excess, times the default's | better in | worse by half in |", "|---" * 5 + "|"]
    for name in dict.fromkeys(name for cell in cells for name in cell.values if name not in SOLVERS):
        ratios = [cell.ratio(name) / cell.ratio() for cell in cells if name in cell.values]
        mean = math.exp(fmean(map(math.log, ratios)))
        better, worse = fmean(one < 1.0 for one in ratios), fmean(one > NEAR for one in ratios)
        lines.append(f"| {name} | {len(ratios)} | {mean:.2f} | {100 * better:.0f} % | {100 * worse:.0f} % |")
    return "\n".join(lines)
