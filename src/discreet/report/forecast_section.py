"""``cost_forecast``: what privacy would cost with another epsilon or number of rows. From public facts alone.

The estimator is fitted as it is configured on three small synthetic tables, at eleven settings, by
``models/forecast/``. Shown is the loss against the same model without privacy, and never a score: that is the
synthetic tables' own. Where a simulation would take longer than a report should, there is none, and it says so.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from discreet.errors import DiscreetError

if TYPE_CHECKING:
    from discreet.accounting.plan import Plan
    from discreet.models.forecast.forecast_result import Forecast, ForecastRow
    from discreet.models.forecast.setting import Setting
    from discreet.models.forecast.synthetic import Groups

MULTIPLES = (0.05, 0.2, 0.5, 1.0, 2.0, 5.0)  # of the asked epsilon, and of the asked n
FITS, CELLS = 3, 50_000
WIDEST = 250  # columns beyond which one simulated fit takes seconds
SECONDS = 4.0


@dataclass(frozen=True)
class Simulated:
    """Simulated fits at one epsilon or number of rows: their mean loss of score, the least and the most."""

    at: float
    lost: float
    least: float
    most: float


@dataclass(frozen=True)
class CostForecast:
    """What privacy would cost at other budgets and on other tables.

    Parameters
    ----------
    n, p, epsilon
        The table and the budget that were asked for; the curves go through them.
    score
        ``"accuracy"`` or ``"R2"``: what is lost.
    over_epsilon, over_rows
        The simulation. Empty where there was no time for one.
    steps
        The queries of the plan, in order.
    remarks
        How the numbers came about.
    """

    n: int
    p: int
    epsilon: float
    score: str
    over_epsilon: tuple[Simulated, ...]
    over_rows: tuple[Simulated, ...]
    steps: tuple[str, ...]
    remarks: tuple[str, ...]


class _Late(Exception):
    """The simulation takes too long."""


def cost_forecast(
    estimator: Any, n: int, p: int | None = None, *, indicators: "Groups | None" = None, seconds: float = SECONDS
) -> CostForecast | None:
    """Forecast the cost of privacy for an estimator, fitted or not, for n rows and p columns. No data is read.

    Parameters
    ----------
    estimator
        A linear model of this library, as configured for the fit.
    n, p
        Rows (persons, where they are the unit) and columns that the estimator sees. p may be left out where its bounds
        list them.
    indicators
        The columns of which at most one is on, group by group. None: the last third, in fours.
    seconds
        How long a simulation may compute before there is none.

    Returns
    -------
    CostForecast or None
        None where there is nothing to foresee: epsilon is infinite, or the settings cannot be planned without data.
    """
    from discreet.models.forecast.setting import setting_of

    if not math.isfinite(estimator.epsilon):
        return None
    try:
        setting = setting_of(estimator, p, indicators)
        plan = _plan(setting, int(n))
        found, remarks = _simulation(setting, plan, int(n), seconds)
    except DiscreetError:
        return None
    return CostForecast(
        n=int(n),
        p=setting.n_columns,
        epsilon=float(estimator.epsilon),
        score=setting.target.score_name,
        over_epsilon=_points(found.over_epsilon, lambda row: row.epsilon) if found else (),
        over_rows=_points(found.over_n, lambda row: float(row.n)) if found else (),
        steps=tuple(release.query for release in plan.releases if release.count),
        remarks=remarks,
    )


def _plan(setting: "Setting", n: int) -> "Plan":
    """The plan as a fit would have it."""
    from discreet.budget import Neighbors
    from discreet.models.fitting import budget_of
    from discreet.models.solver_choice import choose_solver

    estimator, relation = setting.estimator, Neighbors(setting.estimator.neighbors)
    public = n if relation.n_is_public or setting.bounds.n is not None else None
    domain = replace(setting.facts().domain(Neighbors.ZERO_OUT, setting.loss), neighbors=relation, n=public)
    budget = budget_of(estimator.epsilon, estimator.delta, relation, public, allow_large_delta=True)
    solver, _ = choose_solver(estimator.solver, domain, setting.loss, setting.penalty, budget)
    plan: Plan = solver.plan(domain, setting.loss, setting.penalty)
    return plan


def _simulation(setting: "Setting", plan: "Plan", n: int, seconds: float) -> "tuple[Forecast | None, tuple[str, ...]]":
    from discreet.models.forecast.forecast import forecast

    if plan.is_sampled:
        return None, ("No simulation: steps on samples take long to price at other settings.",)
    if setting.n_columns > WIDEST:
        return None, (f"No simulation: more than {WIDEST} columns take too long.",)
    own, end = float(setting.estimator.epsilon), time.thread_time() + seconds

    def on_time(done: int, total: int) -> None:
        if time.thread_time() > end:  # of this thread: a busy machine must not change the page
            raise _Late

    try:
        found = forecast(
            setting.estimator,
            n,
            setting.n_columns,
            epsilons=[own * by for by in MULTIPLES],
            n_grid=[max(2, round(n * by)) for by in MULTIPLES],
            seeds=FITS,
            max_cells=CELLS,
            indicators=setting.indicators,
            progress=on_time,
        )
    except _Late:
        return None, (f"No simulation: it takes more than {seconds:g} seconds. DPLinearModel.forecast has the time.",)
    return found, found.remarks


def _points(rows: "tuple[ForecastRow, ...]", x: "Callable[[ForecastRow], float]") -> tuple[Simulated, ...]:
    return tuple(Simulated(x(row), row.gap, min(row.gaps), max(row.gaps)) for row in rows)
