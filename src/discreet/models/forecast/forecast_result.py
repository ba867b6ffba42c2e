"""``Forecast``: what privacy is expected to cost, as plain public numbers, as a table and as a sentence.

What is simulated is the *gap*: by how much the score falls against the same model without privacy. The scores
themselves are those of synthetic tables, and say nothing about anybody's own: words and tables leave them out.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any


def summary(values: Sequence[float]) -> tuple[float, float]:
    """The mean, and its standard error."""
    mean = math.fsum(values) / len(values)
    spread = math.fsum((value - mean) ** 2 for value in values) / max(1, len(values) - 1)
    return mean, math.sqrt(spread / len(values))


@dataclass(frozen=True)
class ForecastRow:
    """The forecast for one number of rows and one epsilon.

    Parameters
    ----------
    n, epsilon, delta
        The table's rows and the budget of one fit.
    score, error
        The mean expected score of the simulated private fits on the synthetic tables, and its standard error. Not what
        a fit of yours will have.
    non_private, trivial
        Their scores without privacy, and of the best prediction that looks at no column.
    gap, gap_error
        non_private - score, fit by fit, and its standard error.
    gaps
        That of each simulated fit: a single fit of yours is one of these, not their mean.
    solver, releases, noise_multiplier
        The plan: who solves, how many noisy answers it gets, and their noise over their sensitivity.
    simulated_rows
        How many rows were drawn: fewer than n stand for n, with the same noise.
    stand_in
        The solver that was planned and simulated where the chosen one would take too long.
    risk_bound, risk_order
        Theory: a bound on the excess risk of the run as configured, in units of the loss per record, None where none is
        proven that says anything; and the order, without its constant, that nobody beats on the worst data.
    """

    n: int
    epsilon: float
    delta: float
    score: float
    error: float
    non_private: float
    trivial: float
    gap: float
    gap_error: float
    gaps: tuple[float, ...]
    solver: str
    releases: int
    noise_multiplier: float
    simulated_rows: int
    stand_in: str | None
    risk_bound: float | None
    risk_order: float

    @property
    def lost(self) -> float:
        """The gap as a part of all there is to learn: 0 is no loss, 1 is the trivial prediction."""
        return self.gap / max(self.non_private - self.trivial, 1e-12)


@dataclass(frozen=True)
class Forecast:
    """What privacy will cost, by simulation on public synthetic tables and by theory. Printing it shows a table.

    Parameters
    ----------
    model : str
        What would be fitted.
    n_features : int
        On how many columns.
    score : str
        ``"accuracy"`` or ``"R2"``.
    ceiling : float
        The best score that is possible on the synthetic tables: an assumption.
    neighbors : str
        The relation.
    asked : ForecastRow
        The row that was asked for; it is also part of the two below.
    over_epsilon, over_n : tuple of ForecastRow
        Rows for other budgets at this n, and for other numbers of rows at this epsilon.
    diameter : float
        For the theory: how long the best coefficients are assumed to be, in training coordinates.
    risk_of_nothing : float
        How far the risk of a model of zeros is above theirs, at most: a bound above this says nothing.

    Examples
    --------
    >>> from discreet import DPRidge
    >>> found = DPRidge(bounds=1.0, target=(0, 1)).forecast(n=300, p=2, epsilons=[1.0], n_grid=[300], seeds=2)
    >>> found.score, len(found.over_n)
    ('R2', 1)
    """

    model: str
    n_features: int
    score: str
    ceiling: float
    neighbors: str
    asked: ForecastRow
    over_epsilon: tuple[ForecastRow, ...]
    over_n: tuple[ForecastRow, ...]
    diameter: float
    risk_of_nothing: float

    @property
    def rows(self) -> tuple[ForecastRow, ...]:
        """All rows, each once."""
        return tuple(dict.fromkeys((*self.over_epsilon, *self.over_n)))

    def shown(self, value: float) -> str:
        """Return a score as people write it: 84.1% or 0.584."""
        return f"{100 * value:.1f}%" if self.score == "accuracy" else f"{value:.3f}"

    def shown_loss(self, value: float) -> str:
        """Return a difference of scores, or its standard error: percentage points of accuracy, or R2."""
        return f"{100 * value:.2f}" if self.score == "accuracy" else f"{value:.4f}"

    @property
    def unit(self) -> str:
        """What losses are counted in."""
        return "points of accuracy" if self.score == "accuracy" else f"of {self.score}"

    @property
    def answer(self) -> str:
        """What to expect, in two sentences."""
        row, shown = self.asked, self.shown_loss
        expected = (
            f"At epsilon = {row.epsilon:g} with {row.n:,} rows and {self.n_features} features, expect privacy to cost "
            f"about {shown(row.gap)} {self.unit}, against the same model without privacy on the same rows "
            f"({shown(min(row.gaps))} to {shown(max(row.gaps))} in {len(row.gaps)} simulated fits)."
        )
        rows = next((other for other in self.over_n if other.n == 2 * row.n), None)
        budget = next((other for other in self.over_epsilon if math.isclose(other.epsilon, 2 * row.epsilon)), None)
        others = [f"twice the rows it would cost {shown(rows.gap)}"] if rows else []
        others += [f"twice the epsilon {shown(budget.gap)}"] if budget else []
        return f"{expected} With {' and with '.join(others)}." if others else expected

    @property
    def remarks(self) -> tuple[str, ...]:
        """How the numbers came about, and what they are not."""
        said = [
            f"Simulated on {len(self.asked.gaps)} public synthetic tables whose best possible {self.score} is set to "
            f"{self.shown(self.ceiling)} (the ceiling): no data was read and no budget spent. Only the loss is meant "
            f"for your table, not the {self.score}: how well a model can predict it, no simulation knows."
        ]
        fewer = [row for row in self.rows if row.simulated_rows < row.n]
        if fewer:
            least = min(row.n for row in fewer)
            said.append(
                f"Tables of {least:,} rows and more were simulated with {fewer[0].simulated_rows:,} rows and the same "
                "signal-to-noise."
            )
        replaced = sorted({(row.solver, row.stand_in) for row in self.rows if row.stand_in})
        said += [f"{there} was simulated in place of {chosen}, which takes longer." for chosen, there in replaced]
        return (*said, self.theory)

    @property
    def theory(self) -> str:
        """What is proven of the run as configured, for the worst data within the declared ranges."""
        if self.asked.risk_bound is None:
            return f"No informative theoretical bound is known for {self.asked.solver} in this configuration."
        return (
            f"Proven for {self.asked.solver} as it is configured here, whatever the rows, if the best coefficients are "
            f"no longer than {self.diameter:.3g}: the training loss per record is expected at most "
            f"{self.asked.risk_bound:.2g} above the best. A model of zeros is at most {self.risk_of_nothing:.2g} "
            "above it."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers and strings, for JSON."""
        return {**asdict(self), "answer": self.answer, "remarks": list(self.remarks)}

    def table(self, *, over: str) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """Return the columns' names and the rows of the table over ``"epsilon"`` or over ``"rows"``, as text."""
        lost = "points lost" if self.score == "accuracy" else f"{self.score} lost"
        names = (over, lost, "standard error", "least", "most", "solver", "releases", "noise multiplier")
        rows = self.over_epsilon if over == "epsilon" else self.over_n
        return names, [
            (
                f"{row.epsilon:g}" if over == "epsilon" else f"{row.n:,}",
                *(self.shown_loss(value) for value in (row.gap, row.gap_error, min(row.gaps), max(row.gaps))),
                row.solver,
                f"{row.releases}" if row.releases else "adaptive",
                f"{row.noise_multiplier:.3g}",
            )
            for row in rows
        ]

    def __str__(self) -> str:
        lines = [self.answer, ""]
        for over in ("epsilon", "rows"):
            names, rows = self.table(over=over)
            widths = [max(map(len, column)) for column in zip(names, *rows, strict=True)]
            lines += ["  ".join(cell.rjust(w) for cell, w in zip(row, widths, strict=True)) for row in (names, *rows)]
            lines.append("")
        return "\n".join([*lines, *self.remarks])
