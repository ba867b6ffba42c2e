"""Standard errors of effects before any budget is spent: power analysis, from public facts and the plan's own noise.

For a column of variance 1 that no other column predicts, slopes of deviation d and a mean curvature h per record:

    sampling^2 = d^2 / (n h^2);      privacy^2 = (z a C)^2 / (k (n h)^2),      C = L reach sqrt(p)

z is the noise multiplier of a step, a the relation's factor, k the number of averaged steps, L the largest slope and
reach the limit on rows (``inference/sandwich.py``); where slopes have no bound, noisy counts choose limits, and
C is about 5 d sqrt(p) for rows and residuals with light tails. Classes with a share m of the second one:
d^2 = h = m (1 - m); counts of mean m: d^2 = h = m;
numbers: d = h = 1, in units of the residuals' deviation. A column of deviation s has 1 / s of it; one that others
predict with R2 has 1 / sqrt(1 - R2) times as much.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

from discreet.accounting.pricing import price_plan
from discreet.bounds import Domain
from discreet.budget import Budget, Neighbors
from discreet.errors import Unsupported
from discreet.inference.forecast import FEW_RUNS, ExpectedEffect, Law, rehearse, usual_law
from discreet.inference.sandwich import Sandwich
from discreet.json_schemas import Json
from discreet.losses.base import Loss
from discreet.models.base import DPLinearModel
from discreet.models.fit import choose_solver, inferring
from discreet.models.forecast import Setting, setting_of
from discreet.penalties.base import Penalty

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
    chance
        How likely an effect is to be shown, in the mean over columns; 0 where the fit would be refused.
    refused
        Why, and what would help; None where there are standard errors.
    """

    n: int
    epsilon: float
    delta: float
    se: float = math.nan
    se_privacy: float = math.nan
    inflation: float = math.nan
    chance: float = 0.0
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
    kinds : tuple of ExpectedEffect
        For the asked row: the chance that an effect is shown and its standard error, for numbers and for yes/no columns
        with declared shares.

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
    kinds: tuple[ExpectedEffect, ...] = ()

    @property
    def answer(self) -> str:
        """What to expect, in two sentences."""
        row = self.asked
        start = f"At epsilon = {row.epsilon:g} with {row.n:,} rows and {self.n_features} features, "
        if row.refused is None:
            said = (
                f"{start}expect a standard error of {row.se:.3g} {self.unit} for a column of variance 1, "
                f"{row.inflation:.2f} times that without privacy; an effect of {DETECTED * row.se:.2g} is found in "
                f"80% of studies (test at .05). {' '.join(map(_sentence, self.kinds))}"
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

    def to_dict(self) -> Json:
        """Return plain numbers and strings, for JSON; None in place of NaN."""
        rows = [_without_nan(asdict(row)) for row in self.rows]
        kinds = [_without_nan(kind._asdict()) for kind in self.kinds]
        values = {**asdict(self), "asked": _without_nan(asdict(self.asked)), "rows": rows, "kinds": kinds}
        return {**_without_nan(values), "answer": self.answer, "remarks": list(self.remarks)}

    def table(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """Return the columns' names and the rows, as text."""
        names = ("rows", "epsilon", "standard error", "of which privacy", "inflation", "shown")
        return names, [
            (
                f"{row.n:,}",
                f"{row.epsilon:g}",
                *map(_shown, (row.se, row.se_privacy, row.inflation)),
                f"{row.chance:.0%}",
            )
            for row in self.rows
        ]

    def __str__(self) -> str:
        names, rows = self.table()
        widths = [max(map(len, column)) for column in zip(names, *rows, strict=True)]
        lines = ["  ".join(cell.rjust(w) for cell, w in zip(row, widths, strict=True)) for row in (names, *rows)]
        return "\n".join([self.answer, "", *lines, "", *self.remarks])


def _without_nan(values: Json) -> Json:
    return {name: None if isinstance(value, float) and math.isnan(value) else value for name, value in values.items()}


def _shown(value: float) -> str:
    return "refused" if math.isnan(value) else f"{value:.3g}"


def _sentence(kind: ExpectedEffect) -> str:
    """Say how likely an effect is to be shown."""
    what = "The effect of a number" if kind.name == "number" else f"That of a yes/no column {kind.name}"
    error = "" if math.isnan(kind.se) or kind.name == "number" else f" (standard error {kind.se:.2g})"
    return f"{what} is shown with a chance of about {kind.chance:.0%}{error}."


def forecast_effects(
    estimator: DPLinearModel,
    n: int,
    p: int | None = None,
    *,
    standard_error: float | None = None,
    mean: float | None = None,
    cells: Sequence[float] = (),
) -> EffectsForecast:
    """Return the standard errors of an estimator on n rows and p columns; see ``DPLinearModel.forecast_effects``."""
    if isinstance(n, bool) or not (int(n) == n and n >= 2):
        raise Unsupported("n, the number of rows to forecast for, must be a whole number of at least 2")
    if standard_error is not None and not 0 < standard_error < math.inf:
        raise Unsupported("standard_error must be positive, such as 0.05")
    setting, n = setting_of(estimator, p), int(n)
    law = usual_law(setting.loss, tuple(cells), mean)
    if len(law.cells) > setting.n_columns:
        raise Unsupported(f"{len(law.cells)} cells are declared for {setting.n_columns} columns: leave some out")
    epsilon = float(estimator.epsilon)
    points = [*((round(part * n), epsilon) for part in TABLES), *((n, part * epsilon) for part in BUDGETS)]
    rows = {key: expected_row(setting, *key, law, FEW_RUNS) for key in dict.fromkeys(points)}
    classes, counts = setting.loss.sigmoid_link, setting.loss.log_link
    return EffectsForecast(
        model=type(estimator).__name__,
        n_features=setting.n_columns,
        neighbors=str(Neighbors(estimator.neighbors)),
        mean=law.mean,
        unit="of log odds" if classes else "of log rate" if counts else "residual standard deviations",
        asked=rows[n, epsilon],
        rows=tuple(rows.values()),
        standard_error=standard_error,
        rows_needed=None if standard_error is None else rows_for(setting, epsilon, law, standard_error),
        kinds=expected_kinds(setting, n, epsilon, law),
    )


def expected_kinds(setting: Setting, n: int, epsilon: float, law: Law) -> tuple[ExpectedEffect, ...]:
    """Return how likely effects of each kind are to be shown, and their errors; none where a fit is refused."""
    try:
        method = _method(setting, n, epsilon)
    except Unsupported:
        return ()
    return rehearse(*method, law).kinds(law)


def expected_row(setting: Setting, n: int, epsilon: float, law: Law, runs: int = 0) -> EffectsRow:
    """Plan and price as a fit would; return the standard errors that its noise and n records have.

    ``runs`` rehearsals tell how likely effects are to be shown; without one that is left out.
    """
    delta = setting.planned(n, epsilon)[1].delta
    try:
        solver, domain, loss, penalty, budget = _method(setting, n, epsilon)
    except Unsupported as reason:
        return EffectsRow(n, epsilon, delta, refused=str(reason))
    assert solver.limits is not None
    plan = solver.plan(domain, loss, penalty)
    step = [release for release in plan.releases if release.query == "noisy_weighted_gradient"][-1]
    deviation = _deviation(setting, law.mean)
    curvature = 1.0 if math.isnan(law.mean) else deviation**2
    limit = loss.lipschitz * solver.limits.reach if math.isfinite(loss.lipschitz) else LIGHT_TAILED * deviation
    clip = limit * math.sqrt(domain.n_features)
    factor = budget.neighbors.sum_factor
    noise = price_plan(plan, budget).noise_multiplier * step.relative_noise * factor * clip
    sampling = deviation / (curvature * math.sqrt(n))
    privacy = noise / (math.sqrt(solver.n_kept) * n * curvature)
    se = math.hypot(sampling, privacy)
    chance = float(rehearse(solver, domain, loss, penalty, budget, law, runs).chances.mean()) if runs else math.nan
    return EffectsRow(n, epsilon, delta, se, privacy, se / sampling, chance)


def _method(setting: Setting, n: int, epsilon: float) -> tuple[Sandwich, Domain, Loss, Penalty, Budget]:
    """Return the method of a fit and its facts; where n is private, n rows are assumed."""
    estimator, loss, penalty = setting.estimator, setting.loss, setting.penalty
    domain, budget = setting.planned(n, epsilon)
    cov_type = getattr(estimator, "cov_type", None) or "robust"
    cov_type = "robust" if cov_type == "cluster" else cov_type  # rows are persons here
    if loss.n_outputs > 1:
        raise Unsupported(OF_CLASSES)
    inner, _ = choose_solver(estimator.solver, domain, loss, penalty, budget)
    solver = inferring(cov_type, inner, domain, loss, penalty, budget, automatic=True)
    return solver, replace(domain, n=n), loss, penalty, budget


def _deviation(setting: Setting, mean: float) -> float:
    if setting.loss.sigmoid_link:
        return math.sqrt(mean * (1.0 - mean))
    return math.sqrt(mean) if setting.loss.log_link else 1.0


def rows_for(setting: Setting, epsilon: float, law: Law, standard_error: float) -> int | None:
    """Return the least number of rows, to two digits, whose standard error is small enough; None without one."""
    if not expected_row(setting, MOST_ROWS, epsilon, law).se <= standard_error:
        return None
    low, high = 2, MOST_ROWS
    while high > 1.005 * low and high > low + 1:
        middle = round(math.sqrt(low * high))
        small = expected_row(setting, middle, epsilon, law).se <= standard_error
        low, high = (low, middle) if small else (middle, high)
    digits = int(10 ** max(0, int(math.log10(high)) - 1))
    return -(-high // digits) * digits
