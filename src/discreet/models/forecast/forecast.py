"""What a private fit will cost in accuracy, before any budget is spent: simulation on public rows, and theory.

The estimator is fitted as it is configured on synthetic tables of the asked shape (``synthetic.py``), with seeded
noise, at several budgets and numbers of rows. No private record is read, so a forecast costs nothing.

*Many rows.* The noise of a mean over n records is (noise multiplier) (sensitivity) / n: a fit on n' rows with the
multiplier z' = z n'/n sees the same signal and the same noise as one on n rows with z. So at most ``max_cells`` numbers
are drawn, and the budget of the smaller fit is the price of its plan at z'. Plans that see Poisson samples only keep
their batches, and z, instead. What does not follow is the sampling error of the rows themselves, of order p/n': that is
why there are always 25 p of them, and why the gap is to a model without privacy that was fitted on the same rows.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from discreet.accounting.events import SAMPLING_DENOMINATOR
from discreet.accounting.plan import Plan
from discreet.accounting.priced_plan import price_plan
from discreet.accounting.pricing import price
from discreet.bounds import Domain
from discreet.budget import Budget, InvalidBudget, Neighbors
from discreet.curator import use_entropy
from discreet.errors import Unsupported
from discreet.models.fitting import budget_of
from discreet.models.forecast.forecast_result import Forecast, ForecastRow, summary
from discreet.models.forecast.reference import score_without_privacy
from discreet.models.forecast.risk_bounds import mean_length, theory_of
from discreet.models.forecast.setting import Setting, setting_of
from discreet.models.forecast.synthetic import Groups, Rehearsal, Stream
from discreet.models.solver_choice import choose_solver
from discreet.solvers.risk_bound import excess_of_zeros

BUDGETS = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)  # in units of the asked epsilon
TABLES = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)  # in units of the asked n
MOST_SAMPLES = 20_000  # steps on samples in one fit: more take minutes
NO_NOISE = 1_000.0  # an epsilon beyond which a rehearsal is as good as without noise
SEEDS, MAX_CELLS = 5, 1_000_000
ROWS_PER_COLUMN, LEAST_ROWS = 25, 2_000

Key = tuple[int, float]


@dataclass(frozen=True)
class Point:
    """One number of rows and one epsilon: the plan, and how it is rehearsed.

    ``rehearsed`` is what to change in the estimator so that a fit on ``rows`` rows is as noisy as one on ``n``;
    ``stand_in`` names the solver that is planned and rehearsed where the chosen one takes too many steps.
    """

    n: int
    budget: Budget
    domain: Domain
    """As a fit knows it: without n, where n is private."""
    solver: Any
    plan: Plan
    noise_multiplier: float
    rows: int
    rehearsed: dict[str, Any]
    chosen: str
    stand_in: str | None


@dataclass(frozen=True)
class Trial:
    """What one fit reached, and what it is compared with."""

    score: float
    non_private: float
    trivial: float


def forecast(
    estimator: Any,
    n: int,
    p: int | None = None,
    *,
    epsilons: Sequence[float] | None = None,
    n_grid: Sequence[int] | None = None,
    seeds: int = SEEDS,
    ceiling: float | None = None,
    diameter: float | None = None,
    max_cells: float = MAX_CELLS,
    indicators: Groups | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Forecast:
    """The forecast of an estimator for a table of n rows and p columns; ``DPLinearModel.forecast`` explains it.

    ``indicators`` are the columns of which at most one is on, group by group. None: the last third, in fours.
    """
    _check(estimator, n, seeds, max_cells, diameter)
    setting = setting_of(estimator, p, indicators)
    n, epsilon = int(n), float(estimator.epsilon)
    _refuse_large_delta(setting, n)
    over_epsilon = [(n, other) for other in _budgets(epsilons, epsilon)]
    over_n = [(other, epsilon) for other in _counts(n_grid, n)]
    points = {key: point_of(setting, *key, max_cells) for key in dict.fromkeys([*over_epsilon, *over_n])}
    tables = _Tables(setting, setting.usual_ceiling if ceiling is None else ceiling)
    trials = tables.rehearse(points, seeds, progress)
    diameter = tables.diameter if diameter is None else float(diameter)
    rows = {key: _row(setting, point, trials[key], diameter) for key, point in points.items()}
    return Forecast(
        model=type(estimator).__name__,
        n_features=setting.n_columns,
        score=setting.target.score_name,
        ceiling=tables.best,
        neighbors=str(Neighbors(estimator.neighbors)),
        asked=rows[n, epsilon],
        over_epsilon=tuple(rows[key] for key in over_epsilon),
        over_n=tuple(rows[key] for key in over_n),
        diameter=diameter,
        risk_of_nothing=excess_of_zeros(setting.loss, points[n, epsilon].domain, diameter),
    )


def _check(estimator: Any, n: Any, seeds: Any, max_cells: float, diameter: float | None) -> None:
    if isinstance(n, bool) or not (isinstance(n, (int, np.integer)) and n >= 2):
        raise Unsupported("n, the number of rows to forecast for, must be a whole number of at least 2")
    if not (isinstance(seeds, (int, np.integer)) and seeds >= 2):
        raise Unsupported("seeds must be a whole number of at least 2: one fit shows no spread")
    if not max_cells >= 1:
        raise Unsupported("max_cells must be positive, such as 1e6")
    if diameter is not None and not 0 < diameter < math.inf:
        raise Unsupported("diameter must be positive and finite, or None for the length of the synthetic law's own")
    if not Budget(estimator.epsilon, neighbors=estimator.neighbors).is_private:
        raise InvalidBudget("a forecast is of what privacy costs: give a finite epsilon")


def _refuse_large_delta(setting: Setting, n: int) -> None:
    """Refuse what a fit on n rows would refuse; the other numbers of rows are only compared."""
    estimator, relation = setting.estimator, Neighbors(setting.estimator.neighbors)
    public = n if relation.n_is_public or setting.bounds.n is not None else None
    budget_of(estimator.epsilon, estimator.delta, relation, public, allow_large_delta=estimator.allow_large_delta)


def _budgets(asked: Sequence[float] | None, own: float) -> list[float]:
    usual = (float(f"{own * multiple:.6g}") for multiple in BUDGETS if multiple != 1)
    grid = sorted({own, *(usual if asked is None else map(float, asked))})
    if not all(0 < epsilon < math.inf for epsilon in grid):
        raise InvalidBudget("epsilons must be positive and finite, such as (0.5, 1, 2)")
    return grid


def _counts(asked: Sequence[int] | None, own: int) -> list[int]:
    if asked is None:
        return sorted({max(2, round(multiple * own)) for multiple in TABLES})
    if not all(isinstance(count, (int, np.integer)) and count >= 2 for count in asked):
        raise Unsupported("n_grid must hold whole numbers of rows of at least 2")
    return sorted({own, *(int(count) for count in asked)})


def point_of(setting: Setting, n: int, epsilon: float, max_cells: float) -> Point:
    """Choose, plan and price as a fit would; then find the budget at which fewer rows see the same noise."""
    estimator, loss, penalty = setting.estimator, setting.loss, setting.penalty
    relation = Neighbors(estimator.neighbors)
    public = n if relation.n_is_public or setting.bounds.n is not None else None
    domain = replace(setting.facts().domain(Neighbors.ZERO_OUT, loss), neighbors=relation, n=public)
    budget = budget_of(epsilon, estimator.delta, relation, public, allow_large_delta=True)
    solver, _ = choose_solver(estimator.solver, domain, loss, penalty, budget)
    chosen, stand_in = _name(solver), None
    plan = solver.plan(domain, loss, penalty)
    if plan.is_sampled and plan.count > MOST_SAMPLES:
        stand_in = _stand_in(setting)
        solver, _ = choose_solver(stand_in, domain, loss, penalty, budget)
        plan = solver.plan(domain, loss, penalty)
    multiplier = price_plan(plan, budget).noise_multiplier
    rows = min(n, max(int(max_cells // setting.n_columns), ROWS_PER_COLUMN * setting.n_columns, LEAST_ROWS))
    rehearsed: dict[str, Any] = {"epsilon": epsilon, "solver": solver if stand_in else estimator.solver}
    if rows < n:
        smaller, factor = _shrunk(solver, plan, rows / n)
        there = smaller.plan(replace(domain, n=public and rows), loss, penalty)
        cost = min(price(there, multiplier * factor, budget.delta, relation), NO_NOISE)
        rehearsed = {"epsilon": cost, "delta": budget.delta, "solver": smaller}
    return Point(n, budget, domain, solver, plan, multiplier, rows, rehearsed, chosen, stand_in)


def _name(solver: Any) -> str:
    return str(getattr(solver, "name", type(solver).__name__))


def _stand_in(setting: Setting) -> str:
    """Full batches instead of too many samples, where the choice was ours."""
    if setting.estimator.solver != "auto":
        raise Unsupported(
            f"this solver would take more than {MOST_SAMPLES} steps on samples: too many to rehearse. Forecast with "
            "solver='gd', or for fewer rows"
        )
    return "gd"


def _shrunk(solver: Any, plan: Plan, part: float) -> tuple[Any, float]:
    """The solver for a part of the rows, and the factor of its noise multiplier at which means are as noisy."""
    if hasattr(solver, "solver"):  # a stage, which sees all records
        inner, factor = _shrunk(solver.solver, plan, part)
        return replace(solver, solver=inner), factor
    batch = getattr(solver, "batch_size", None)
    asked = [release for release in plan.releases if release.count]
    if batch is None:
        return solver, part
    if asked and all(release.sampling_numerator < SAMPLING_DENOMINATOR for release in asked):
        return solver, 1.0  # the same batches, with the same noise
    return replace(solver, batch_size=max(1.0, batch * part)), part


class _Tables:
    """One synthetic table a seed, and what is measured on it."""

    def __init__(self, setting: Setting, ceiling: float) -> None:
        self._setting, self._ceiling = setting, ceiling
        self._truths: list[Any] = []
        self._bests: list[float] = []

    def rehearse(
        self, points: dict[Key, Point], seeds: int, progress: Callable[[int, int], None] | None
    ) -> dict[Key, list[Trial]]:
        """Fit every point once per seed. The noise of a seed is the same at all points, so that curves are smooth."""
        trials: dict[Key, list[Trial]] = {key: [] for key in points}
        sizes = sorted({point.rows for point in points.values()})
        for seed in range(seeds):
            table = self._table(sizes[-1], seed)
            free = {rows: score_without_privacy(table, self._setting, rows) for rows in sizes}
            for done, (key, point) in enumerate(points.items()):
                score = _rehearsed_score(table, self._setting, point, seed)
                trials[key].append(Trial(score, free[point.rows], table.trivial))
                if progress is not None:
                    progress(seed * len(points) + done + 1, seeds * len(points))
        return trials

    def _table(self, rows: int, seed: int) -> Rehearsal:
        setting = self._setting
        table = setting.table(rows, ceiling=self._ceiling, seed=seed)
        self._truths.append(setting.truth(table))
        self._bests.append(table.best)
        return table

    @property
    def diameter(self) -> float:
        """The mean length of the laws' own coefficients."""
        return mean_length(self._truths)

    @property
    def best(self) -> float:
        """The laws' own mean score."""
        return float(np.mean(self._bests))


def _rehearsed_score(table: Rehearsal, setting: Setting, point: Point, seed: int) -> float:
    model = setting.model(point.rows, **point.rehearsed)
    with use_entropy(Stream(seed, 5)):
        model.fit(table.X[: point.rows], table.y[: point.rows])
    return table.score(model.predict(table.held_out))


def _row(setting: Setting, point: Point, trials: list[Trial], diameter: float) -> ForecastRow:
    gaps = tuple(trial.non_private - trial.score for trial in trials)
    score, error = summary([trial.score for trial in trials])
    gap, gap_error = summary(gaps)
    loss, penalty = setting.loss, setting.penalty
    proven = theory_of(point.solver, point.domain, loss, penalty, point.budget, diameter, point.n)
    return ForecastRow(
        n=point.n,
        epsilon=point.budget.epsilon,
        delta=point.budget.delta,
        score=score,
        error=error,
        non_private=float(np.mean([trial.non_private for trial in trials])),
        trivial=float(np.mean([trial.trivial for trial in trials])),
        gap=gap,
        gap_error=gap_error,
        gaps=gaps,
        solver=point.chosen,
        releases=point.plan.count,
        noise_multiplier=point.noise_multiplier,
        simulated_rows=point.rows,
        stand_in=point.stand_in,
        risk_bound=None if point.stand_in else proven.bound,
        risk_order=proven.order,
    )
