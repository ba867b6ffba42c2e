"""Standard errors of effects before any budget is spent: power analysis, from public facts and the plan's own noise.

For a column of variance 1 that no other column predicts, slopes of deviation d and a mean curvature h per record:

    sampling^2 = d^2 / (n h^2);      privacy^2 = (z a C)^2 / (k (n h)^2),      C = L reach sqrt(p)

z is the noise multiplier of a step, a the relation's factor, k the number of averaged steps, L the largest slope and
reach the limit on rows (``solvers/sandwich.py``); where slopes have no bound, limits are chosen from noisy counts, and
C is about 5 d sqrt(p) for rows and residuals with light tails. Classes with a share m of the second one:
d^2 = h = m (1 - m); counts of mean m: d^2 = h = m;
numbers: d = h = 1, in units of the residuals' deviation. A column of deviation s has 1 / s of it; one that others
predict with R2 has 1 / sqrt(1 - R2) times as much.
"""

import math
from dataclasses import asdict, dataclass, replace
from typing import Any

from discreet.accounting.priced_plan import price_plan
from discreet.budget import Neighbors
from discreet.errors import Unsupported
from discreet.models.fitting import budget_of
from discreet.models.forecast.setting import Setting, setting_of
from discreet.models.solver_choice import choose_solver, inferring
from discreet.solvers.sandwich import Sandwich

BUDGETS = (0.5, 1.0, 2.0, 4.0)  # in units of the asked epsilon
TABLES = (0.5, 1.0, 2.0, 5.0, 10.0)  # in units of the asked n
DETECTED = 2.8
"""An effect of so many standard errors is found by a test at .05 in 80 % of studies: 1.96 + .84."""
LIGHT_TAILED = 5.0
"""Gradients of rows and residuals with light tails are no longer than about so many typical ones."""
MOST_ROWS = 10**12
OF_CLASSES = (
    "standard errors are forecast for numbers and two classes: for more, quote() or discreet fit --dry-run says "
    "whether there is signal enough"
)


@dataclass(frozen=True)
class EffectsRow:
    """The standard errors that are expected of one number of rows and one epsilon.

    Parameters
    ----------
    n, epsilon, delta
        The table's rows (persons, where these are the unit) and the budget of the fit.
    se, se_privacy, inflation
        The standard error of a column of variance 1, the part of it that is privacy noise, and how many times that of
        a fit without privacy it is; NaN where the fit would be refused.
    refused
        Why, and what would help; None where there are standard errors.
    """

    n: int
    epsilon: float
    delta: float
    se: float = math.nan
    se_privacy: float = math.nan
    inflation: float = math.nan
    refused: str | None = None


@dataclass(frozen=True)
class EffectsForecast:
    """What standard errors to expect of ``inference="sandwich"``. Printing it shows a table.

    Parameters
    ----------
    model : str
        What would be fitted.
    n_features : int
        On how many columns.
    neighbors : str
        The relation.
    mean : float
        The assumed mean of the target: the share of the second class, or the mean count; NaN for numbers.
    unit : str
        What standard errors are counted in.
    asked : EffectsRow
        The number of rows and the epsilon that were asked for.
    rows : tuple of EffectsRow
        These, and others.
    standard_error, rows_needed : float, int or None
        What was wished for, and the least number of rows that has it; None where nothing was wished for, or where no
        number of rows has it.

    Examples
    --------
    >>> from discreet import DPLogisticRegression
    >>> found = DPLogisticRegression(1.0, bounds=1.0).forecast_effects(20_000, 10, standard_error=0.02)
    >>> 1 < found.asked.inflation < 2, found.rows_needed > 10_000
    (True, True)
    """

    model: str
    n_features: int
    neighbors: str
    mean: float
    unit: str
    asked: EffectsRow
    rows: tuple[EffectsRow, ...]
    standard_error: float | None = None
    rows_needed: int | None = None

    @property
    def answer(self) -> str:
        """What to expect, in two sentences."""
        row = self.asked
        start = f"At epsilon = {row.epsilon:g} with {row.n:,} rows and {self.n_features} features, "
        if row.refused is None:
            said = (
                f"{start}expect a standard error of {row.se:.3g} {self.unit} for a column of variance 1, "
                f"{row.inflation:.2f} times that without privacy; an effect of {DETECTED * row.se:.2g} is found in "
                "80% of studies (test at .05)."
            )
        else:
            said = f"{start}{row.refused}."
        if self.standard_error is None:
            return said
        if self.rows_needed is None:
            return f"{said} No number of rows has a standard error of {self.standard_error:g}."
        return f"{said} A standard error of {self.standard_error:g} needs about {self.rows_needed:,} rows."

    @property
    def remarks(self) -> tuple[str, ...]:
        """What the numbers assume."""
        assumed = "" if math.isnan(self.mean) else f", a target of mean {self.mean:g} (--mean)"
        return (
            f"Computed from public facts: no data was read and no budget spent. Assumes columns that do not predict "
            f"one another{assumed}. Divide by a column's standard deviation; where other columns predict it with R2, "
            "multiply by 1 / sqrt(1 - R2).",
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers and strings, for JSON; None in place of NaN."""
        rows = [_without_nan(asdict(row)) for row in self.rows]
        told = {**asdict(self), "asked": _without_nan(asdict(self.asked)), "rows": rows}
        return {**_without_nan(told), "answer": self.answer, "remarks": list(self.remarks)}

    def table(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """Return the columns' names and the rows, as text."""
        names = ("rows", "epsilon", "standard error", "of which privacy", "inflation")
        return names, [
            (f"{row.n:,}", f"{row.epsilon:g}", *(_shown(value) for value in (row.se, row.se_privacy, row.inflation)))
            for row in self.rows
        ]

    def __str__(self) -> str:
        names, rows = self.table()
        widths = [max(map(len, column)) for column in zip(names, *rows, strict=True)]
        lines = ["  ".join(cell.rjust(w) for cell, w in zip(row, widths, strict=True)) for row in (names, *rows)]
        return "\n".join([self.answer, "", *lines, "", *self.remarks])


def _without_nan(told: dict[str, Any]) -> dict[str, Any]:
    return {name: None if isinstance(value, float) and math.isnan(value) else value for name, value in told.items()}


def _shown(value: float) -> str:
    return "refused" if math.isnan(value) else f"{value:.3g}"


def forecast_effects(
    estimator: Any, n: int, p: int | None = None, *, standard_error: float | None = None, mean: float | None = None
) -> EffectsForecast:
    """The standard errors of an estimator on n rows and p columns; ``DPLinearModel.forecast_effects`` explains it."""
    if isinstance(n, bool) or not (int(n) == n and n >= 2):
        raise Unsupported("n, the number of rows to forecast for, must be a whole number of at least 2")
    if standard_error is not None and not 0 < standard_error < math.inf:
        raise Unsupported("standard_error must be positive, such as 0.05")
    setting, n = setting_of(estimator, p), int(n)
    counts, classes = setting.loss.log_link, setting.loss.sigmoid_link
    mean = (0.5 if classes else 1.0 if counts else math.nan) if mean is None else mean
    if (classes and not 0 < mean < 1) or (counts and not 0 < mean < math.inf):
        raise Unsupported("mean is the share of the second class, between 0 and 1, or a positive mean count")
    epsilon = float(estimator.epsilon)
    points = [*((round(part * n), epsilon) for part in TABLES), *((n, part * epsilon) for part in BUDGETS)]
    rows = {key: expected_row(setting, *key, mean) for key in dict.fromkeys(points)}
    return EffectsForecast(
        model=type(estimator).__name__,
        n_features=setting.n_columns,
        neighbors=str(Neighbors(estimator.neighbors)),
        mean=mean,
        unit="of log odds" if classes else "of log rate" if counts else "residual standard deviations",
        asked=rows[n, epsilon],
        rows=tuple(rows.values()),
        standard_error=standard_error,
        rows_needed=None if standard_error is None else rows_for(setting, epsilon, mean, standard_error),
    )


def expected_row(setting: Setting, n: int, epsilon: float, mean: float) -> EffectsRow:
    """Plan and price as a fit would; return the standard errors that its noise and n records have."""
    estimator, loss, penalty = setting.estimator, setting.loss, setting.penalty
    relation = Neighbors(estimator.neighbors)
    public = n if relation.n_is_public or setting.bounds.n is not None else None
    domain = replace(setting.facts().domain(Neighbors.ZERO_OUT, loss), neighbors=relation, n=public)
    budget = budget_of(epsilon, estimator.delta, relation, public, allow_large_delta=True)
    cov_type = getattr(estimator, "cov_type", None) or "robust"
    cov_type = "robust" if cov_type == "cluster" else cov_type  # rows are persons here
    if loss.n_outputs > 1:
        return EffectsRow(n, epsilon, budget.delta, refused=OF_CLASSES)
    try:
        inner, _ = choose_solver(estimator.solver, domain, loss, penalty, budget)
        solver = inferring("sandwich", cov_type, inner, domain, loss, penalty, budget, automatic=True)
        plan = solver.plan(domain, loss, penalty)
    except Unsupported as reason:
        return EffectsRow(n, epsilon, budget.delta, refused=str(reason))
    assert isinstance(solver, Sandwich)
    assert solver.limits is not None
    step = [release for release in plan.releases if release.query == "noisy_weighted_gradient"][-1]
    deviation = _deviation(setting, mean)
    curvature = 1.0 if math.isnan(mean) else deviation**2
    limit = loss.lipschitz * solver.limits.reach if math.isfinite(loss.lipschitz) else LIGHT_TAILED * deviation
    clip = limit * math.sqrt(domain.n_features)
    noise = price_plan(plan, budget).noise_multiplier * step.relative_noise * relation.sum_factor * clip
    sampling = deviation / (curvature * math.sqrt(n))
    privacy = noise / (math.sqrt(solver.n_kept) * n * curvature)
    se = math.hypot(sampling, privacy)
    return EffectsRow(n, epsilon, budget.delta, se, privacy, se / sampling)


def _deviation(setting: Setting, mean: float) -> float:
    if setting.loss.sigmoid_link:
        return math.sqrt(mean * (1.0 - mean))
    return math.sqrt(mean) if setting.loss.log_link else 1.0


def rows_for(setting: Setting, epsilon: float, mean: float, standard_error: float) -> int | None:
    """Return the least number of rows, to two digits, whose standard error is small enough; None without one."""
    if not expected_row(setting, MOST_ROWS, epsilon, mean).se <= standard_error:
        return None
    low, high = 2, MOST_ROWS
    while high > 1.005 * low and high > low + 1:
        middle = round(math.sqrt(low * high))
        low, high = (
            (low, middle) if expected_row(setting, middle, epsilon, mean).se <= standard_error else (middle, high)
        )
    digits = int(10 ** max(0, int(math.log10(high)) - 1))
    return -(-high // digits) * digits
