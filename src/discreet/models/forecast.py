"""What a private fit will cost in accuracy and standard errors, before any budget is spent: simulation and theory.

The estimator is fitted as it is configured on synthetic tables of the asked shape (``synthetic.py``), with seeded
noise, at several budgets and numbers of rows. No private record is read, so a forecast costs nothing.

*Many rows.* The noise of a mean over n records is (noise multiplier) (sensitivity) / n: a fit on n' rows with the
multiplier z' = z n'/n sees the same signal and the same noise as one on n rows with z. So at most ``max_cells`` numbers
are drawn, and the budget of the smaller fit is the price of its plan at z'. Plans that see Poisson samples only keep
their batches, and z, instead. What does not follow is the sampling error of the rows themselves, of order p/n': that is
why there are always 25 p of them, and why the gap is to a model without privacy that was fitted on the same rows.

What is simulated is the *gap*: by how much the score falls against the same model without privacy. The scores
themselves are those of synthetic tables, and say nothing about anybody's own: words and tables leave them out.

*Theory* bounds the excess risk E F - F*, in units of the loss. A bound holds in expectation for the run as it is
configured: output and objective perturbation, gradient and coordinate descent have one, and only where nothing is
clipped, since no theorem here counts the bias of a clip. It is shown where it says something, which is where it is
below what a model of zeros is certain to have (``excess_of_zeros``). Noise is not bounded, so a larger bound must not
be cut down to that: the released coefficients can be far worse than zeros.

*An order*, without its constant: on the worst data nobody does better than L D sqrt(p) / (n epsilon), pure:
L D p / (n epsilon) (Bassily, Smith & Thakurta 2014), for gradients of norm at most L, best coefficients within a ball
of radius D, and p coordinates.

*Standard errors* of effects (power analysis) are those of rehearsals (``inference/forecast.py``): the fit itself, with
its plan's noise, on rows of a declared law. A column of deviation s has 1 / s of what is forecast for a deviation; one
that others predict with R2 has 1 / sqrt(1 - R2) times as much.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone

from discreet.accounting.events import SAMPLING_DENOMINATOR
from discreet.accounting.plan import Plan
from discreet.accounting.pricing import price, price_plan
from discreet.bounds import Bounds, Domain
from discreet.budget import Budget, InvalidBudget, Neighbors
from discreet.curator import PrivateData, use_entropy
from discreet.errors import Unsupported
from discreet.inference.forecast import (
    EMPTY,
    FEW_RUNS,
    FEWEST_RUNS,
    NUMBER,
    RUNS,
    ExpectedEffect,
    Law,
    Rehearsed,
    Stream,
    assumption,
    rehearse,
    usual_law,
    with_least,
)
from discreet.inference.sandwich import Sandwich
from discreet.json_schemas import Json
from discreet.losses.base import Loss, gradient_bound
from discreet.models.base import DPLinearModel
from discreet.models.fit import budget_of, choose_solver, inference_start, inferring, penalty_of
from discreet.models.synthetic import Classes, Counts, Groups, Numbers, Rehearsal, Target, indicator_groups, rehearsal
from discreet.parameters import Count, Finite, NonNegative, Positive, Probability, Rows, Share, checked
from discreet.penalties.base import Penalty
from discreet.solvers.cd import CoordinateDescent
from discreet.solvers.gd import GradientDescent
from discreet.solvers.output import OneShot, OutputPerturbation
from discreet.solvers.risk_bounds import excess_of_zeros
from discreet.solvers.sgd import StochasticGradientDescent
from discreet.typing import Floats


def summary(values: Sequence[float]) -> tuple[float, float]:
    """Return the mean, and its standard error."""
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
    predicted : str, default=""
        What ``model.quote(X, y).explain()`` predicts of such a table, without a simulation; empty where it does not.
    weights : str, default=""
        What uneven weights cost, where their range is declared: the simulated rows count alike.

    Examples
    --------
    >>> from discreet import DPRidge
    >>> forecast = DPRidge(bounds=1.0, target=(0, 1)).forecast(n=300, p=2, epsilons=[1.0], n_grid=[300], seeds=2)
    >>> forecast.score, len(forecast.over_n)
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
    predicted: str = ""
    weights: str = ""

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

        def cost(other: ForecastRow) -> str:
            return shown(other.gap) if other.gap < row.gap else "about as much"

        others = [f"twice the rows it would cost {cost(rows)}"] if rows else []
        others += [f"twice the epsilon {cost(budget)}"] if budget else []
        return f"{expected} With {' and with '.join(others)}." if others else expected

    @property
    def remarks(self) -> tuple[str, ...]:
        """How the numbers came about, and what they are not."""
        remarks = [
            f"Simulated on {len(self.asked.gaps)} public synthetic tables whose best possible {self.score} is set to "
            f"{self.shown(self.ceiling)} (the ceiling): no data was read and no budget spent. Only the loss is meant "
            f"for your table, not the {self.score}: how well a model can predict it, no simulation knows."
        ]
        fewer = [row for row in self.rows if row.simulated_rows < row.n]
        if fewer:
            least = min(row.n for row in fewer)
            remarks.append(
                f"Tables of {least:,} rows and more were simulated with {fewer[0].simulated_rows:,} rows and the same "
                "signal-to-noise."
            )
        replaced = sorted({(row.solver, row.stand_in) for row in self.rows if row.stand_in})
        remarks += [f"{there} was simulated in place of {chosen}, which takes longer." for chosen, there in replaced]
        if self.predicted:
            remarks.append(f"By formula, as a quote explains it, on a table that is nothing special: {self.predicted}.")
        if self.weights:
            remarks.append(f"Simulated rows count alike, and yours have weights: {self.weights}.")
        return (*remarks, self.theory)

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

    def to_dict(self) -> Json:
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
            lines += [*_aligned(*self.table(over=over)), ""]
        return "\n".join([*lines, *self.remarks])


def _aligned(names: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table, its columns aligned at the right."""
    widths = [max(map(len, column)) for column in zip(names, *rows, strict=True)]
    return ["  ".join(cell.rjust(w) for cell, w in zip(row, widths, strict=True)) for row in (names, *rows)]


DEFAULT_TARGET, DEFAULT_COUNTS = (-1.0, 1.0), (0.0, 20.0)
ACCURACY_CEILING, R2_CEILING, COUNT_CEILING = 0.85, 0.6, 0.4


@dataclass(frozen=True)
class Setting:
    """What is fitted: declared bounds (the usual ones where nothing is declared), loss, penalty, target.

    ``ranges`` is what the synthetic columns lie within: as declared, but an indicator is 0 or 1. ``indicators`` are the
    columns of which at most one is on, group by group.
    """

    estimator: DPLinearModel
    bounds: Bounds
    ranges: tuple[Floats, Floats]
    loss: Loss
    penalty: Penalty
    target: Target
    indicators: Groups
    cells: Groups = ()
    """Those that are declared, where effects are forecast."""

    @property
    def n_columns(self) -> int:
        """p, without the intercept."""
        return len(self.ranges[0])

    @property
    def usual_ceiling(self) -> float:
        """What a good linear model reaches on such targets."""
        if isinstance(self.target, Classes):
            return ACCURACY_CEILING
        return COUNT_CEILING if isinstance(self.target, Counts) else R2_CEILING

    def table(self, rows: int, *, ceiling: float, seed: int) -> Rehearsal:
        """Return a synthetic table of this shape."""
        return rehearsal(rows, self.ranges, self.target, ceiling=ceiling, seed=seed, indicators=self.indicators)

    def model(self, rows: int, **changes: object) -> DPLinearModel:
        """Return the estimator with declared bounds, and some settings changed."""
        bounds = self.bounds if self.bounds.n is None else self.bounds.with_facts(n=rows)
        facts: Json = {"classes": None} if isinstance(self.target, Classes) else {"target": None}
        facts |= {"ledger": False, "verbose": False, "allow_large_delta": True, "start": None}  # public rows
        facts["public_moments"] = None
        model: DPLinearModel = clone(self.estimator).set_params(bounds=bounds, **facts, **changes)
        return model

    def facts(self) -> PrivateData:
        """Return two public rows, through which declared bounds are read as a fit reads them."""
        low, _ = self.ranges
        ends = self.bounds.classes or self.bounds.target
        assert ends is not None
        two = np.array(ends[:2], dtype=object)
        bounds = self.bounds.with_facts(n=None)
        return PrivateData(np.stack([low, low]), two, bounds, fit_intercept=self.estimator.fit_intercept, ledger=False)

    def planned(self, n: int, epsilon: float, *, allow_large_delta: bool = True) -> tuple[Domain, Budget]:
        """Return what is public of a table of n rows, as a fit knows it, and the budget of a fit."""
        estimator, relation = self.estimator, Neighbors(self.estimator.neighbors)
        public = n if relation.n_is_public or self.bounds.n is not None else None
        domain = replace(self.facts().domain(Neighbors.ZERO_OUT, self.loss), neighbors=relation, n=public)
        return domain, budget_of(epsilon, estimator.delta, relation, public, allow_large_delta=allow_large_delta)

    def truth(self, table: Rehearsal) -> Floats:
        """The law's coefficients in training coordinates, (p + 1, K); of a softmax the shortest that say the same."""
        facts = self.facts()
        scaling, (center, scale) = facts.scaling, self.loss.coefficient_place(*facts.target_place(self.loss))
        offsets = table.offsets + scaling.center @ table.slopes - center
        w = np.vstack([table.slopes * scaling.scale[:, None], offsets]) / scale
        return np.asarray(w - w.mean(axis=1, keepdims=True) if self.loss.n_outputs > 1 else w)


def setting_of(estimator: DPLinearModel, p: int | None, indicators: Groups | None = None) -> Setting:
    """Return the facts of an estimator, fitted or not, for a table of p columns."""
    if getattr(estimator, "inference", None):  # what standard errors cost is not forecast
        estimator = clone(estimator).set_params(inference=None)
    bounds, ranges = _columns(estimator.bounds, p)
    groups = indicator_groups(len(ranges[0])) if indicators is None else indicators
    penalty = penalty_of(getattr(estimator, "penalty", None), getattr(estimator, "alpha", 0.0))
    if hasattr(estimator, "classes"):
        labels = estimator.classes if estimator.classes is not None else bounds.classes
        bounds = bounds.with_facts(classes=(0, 1) if labels is None else labels)
        assert bounds.classes is not None
        loss = estimator._loss(len(bounds.classes))
        if 1 < estimator._n_margins(len(bounds.classes)) < len(bounds.classes):
            raise Unsupported("ordered classes are not forecast: DPLogisticRegression of the same classes costs more")
        return Setting(estimator, bounds, ranges, loss, penalty, Classes(bounds.classes), groups)
    target = estimator.target if estimator.target is not None else bounds.target
    counts = estimator._loss(bounds.with_facts(target=target or DEFAULT_COUNTS)).log_link
    bounds = bounds.with_facts(target=target or (DEFAULT_COUNTS if counts else DEFAULT_TARGET))
    assert bounds.target is not None
    low, high = bounds.target
    loss = estimator._loss(bounds)
    if not high > max(low, 0.0 if counts else -math.inf):
        raise Unsupported("the declared range of the target is one point: there is nothing to predict")
    law: Target = Counts(high) if counts else Numbers(low, high)
    return Setting(estimator, bounds, ranges, loss, penalty, law, groups)


def _columns(given: Any, p: int | None) -> tuple[Bounds, tuple[Floats, Floats]]:
    """Bounds with one range per column, and what the synthetic columns lie within."""
    bounds = given if isinstance(given, Bounds) or given is None else Bounds(features=given)
    declared = None if bounds is None or isinstance(bounds.features, float) else len(bounds.features)
    p = declared if p is None else p
    if isinstance(p, bool) or not (isinstance(p, (int, np.integer)) and p >= 1):
        raise Unsupported("p, the number of columns to forecast for, must be a whole number of at least 1")
    if declared not in (None, p):
        raise Unsupported(f"bounds declare {declared} columns: leave p out, or make it {declared}")
    indicators = [j for group in indicator_groups(p) for j in group]
    if bounds is None:
        bounds = Bounds(features=[(0.0, 1.0) if j in indicators else (-1.0, 1.0) for j in range(p)])
    names = list(bounds.features) if isinstance(bounds.features, dict) else None
    low, high = bounds.ranges(p, names)
    bounds = bounds.with_facts(features=list(zip(low.tolist(), high.tolist(), strict=True)))
    if declared is None:
        low[indicators] = np.maximum(low[indicators], 0.0)
    return bounds, (low, high)


LIMIT_STEPS = 600  # for penalties that have no exact solve here


def score_without_privacy(table: Rehearsal, setting: Setting, rows: int) -> float:
    """Return the expected score of the model that the first ``rows`` rows give where nobody asks for privacy."""
    X, y = table.X[:rows], table.y[:rows]
    if setting.penalty.ridge:
        if setting.loss.quadratic:
            return table.score(_least_squares(X, y, table.held_out, setting))
        solver = "auto" if setting.loss.log_link else OutputPerturbation()  # exponentials bend too much
        return table.score(_noise_free(X, y, setting, solver).predict(table.held_out))
    steps = GradientDescent(n_steps=LIMIT_STEPS, momentum="nesterov", restart=True)
    return table.score(_noise_free(X, y, setting, steps).predict(table.held_out))


def _noise_free(X: Any, y: Any, setting: Setting, solver: Any) -> Any:
    return setting.model(len(X), epsilon=math.inf, neighbors="zero_out", solver=solver).fit(X, y)


def _least_squares(X: Any, y: Any, held_out: Any, setting: Setting) -> Floats:
    """Ridge in training coordinates, in closed form."""
    scaling = setting.facts().scaling
    center, scale = scaling.center, scaling.scale
    inverse = np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0)
    constants = int(setting.estimator.fit_intercept)
    train, test = (np.hstack([(part - center) * inverse, np.ones((len(part), constants))]) for part in (X, held_out))
    ridge = max(setting.penalty.strong_convexity, 1e-12) * len(train)
    return np.asarray(test @ np.linalg.solve(train.T @ train + ridge * np.eye(train.shape[1]), train.T @ y))


@dataclass(frozen=True)
class Theory:
    """What is proven of one run: ``bound`` (None: nothing that says anything), ``order``, and ``zeros``."""

    bound: float | None
    order: float
    zeros: float


def theory_of(
    solver: object, domain: Domain, loss: Loss, penalty: Penalty, budget: Budget, diameter: float, n: int
) -> Theory:
    """Return what is proven for best coefficients of length at most ``diameter``.

    ``n`` is the number of records; where it is private, ``domain`` does not know it, and no bound holds.
    """
    zeros = excess_of_zeros(loss, domain, diameter)
    p = domain.n_features * domain.n_outputs
    size = gradient_bound(loss, domain, diameter) * diameter * (p if budget.is_pure else math.sqrt(p))
    bound = _own_bound(solver, domain, loss, penalty, budget, diameter)
    return Theory(bound if bound < zeros else None, min(size / (n * budget.epsilon), zeros), zeros)


def _own_bound(solver: object, domain: Domain, loss: Loss, penalty: Penalty, budget: Budget, diameter: float) -> float:
    """Return the solver's own bound on the mean loss without the penalty; inf where there is none."""
    try:
        if isinstance(solver, OneShot):  # the penalty's strong convexity is part of its regularization
            whole: Any = replace(solver, regularization=solver.strength(penalty))
            return float(whole.bound(domain, loss, budget, radius=diameter).upper)
        if isinstance(solver, CoordinateDescent):  # the penalized minimizer is no longer than the best coefficients
            descent = solver.bound(domain, loss, budget, radius=diameter, penalty=penalty)
            return descent.upper + penalty.strong_convexity * diameter**2 / 2
        if isinstance(solver, GradientDescent | StochasticGradientDescent):
            covered = penalty.ridge and penalty.strong_convexity == 0 and (solver.radius or 0.0) >= diameter
            return solver.bound(domain, loss, budget).upper if covered else math.inf
    except Unsupported:
        return math.inf  # a setting that its theorem does not cover
    return math.inf


BUDGETS = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)  # in units of the asked epsilon
TABLES = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)  # in units of the asked n
MOST_SAMPLES = 20_000  # steps on samples in one fit: more take minutes
NO_NOISE = 1_000.0  # an epsilon beyond which a rehearsal is as good as without noise
MAX_CELLS = 1_000_000
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
    rehearsed: Json
    chosen: str
    stand_in: str | None


Trial = tuple[float, float, float]
"""The score of a private fit, without privacy, and of the best prediction that looks at no column."""


@checked
def forecast(
    estimator: DPLinearModel,
    n: Rows,
    p: Count | None = None,
    *,
    epsilons: Sequence[Positive] | None = None,
    n_grid: Sequence[Rows] | None = None,
    seeds: Count = 5,
    ceiling: Share | None = None,
    diameter: Positive | None = None,
    max_cells: Positive = MAX_CELLS,
    indicators: Groups | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Forecast:
    """Return the forecast of an estimator for a table of n rows and p columns; ``DPLinearModel.forecast`` explains it.

    ``indicators`` are the columns of which at most one is on, group by group. None: the last third, in fours.
    """
    if min(n, seeds, *(n_grid or ())) < 2:
        raise Unsupported("forecasts are for at least 2 rows, and from at least 2 seeds: one fit shows no spread")
    if not Budget(estimator.epsilon, neighbors=estimator.neighbors).is_private:  # type: ignore[arg-type]
        raise InvalidBudget("a forecast is of what privacy costs: give a finite epsilon")
    setting = setting_of(estimator, p, indicators)
    n, epsilon = int(n), float(estimator.epsilon)
    setting.planned(n, epsilon, allow_large_delta=estimator.allow_large_delta)  # a fit that is refused is not forecast
    budgets = [float(f"{epsilon * by:.6g}") for by in BUDGETS if by != 1] if epsilons is None else epsilons
    counts = [max(2, round(by * n)) for by in TABLES] if n_grid is None else n_grid
    over_epsilon = [(n, other) for other in sorted({epsilon, *map(float, budgets)})]
    over_n = [(other, epsilon) for other in sorted({n, *map(int, counts)})]
    points = {key: point_of(setting, *key, max_cells) for key in dict.fromkeys([*over_epsilon, *over_n])}
    ceiling = setting.usual_ceiling if ceiling is None else ceiling
    trials, best, length = _rehearsed(setting, points, seeds, ceiling, progress)
    diameter = length if diameter is None else float(diameter)
    rows = {key: _row(setting, point, trials[key], diameter) for key, point in points.items()}
    return Forecast(
        model=type(estimator).__name__,
        n_features=setting.n_columns,
        score=setting.target.score_name,
        ceiling=best,
        neighbors=str(Neighbors(estimator.neighbors)),
        asked=rows[n, epsilon],
        over_epsilon=tuple(rows[key] for key in over_epsilon),
        over_n=tuple(rows[key] for key in over_n),
        diameter=diameter,
        risk_of_nothing=excess_of_zeros(setting.loss, points[n, epsilon].domain, diameter),
        predicted=_predicted(setting, points[n, epsilon]),
        weights=" ".join(estimator._fit_settings(setting.bounds, setting.loss).cost_of_weights(n)),
    )


def _predicted(setting: Setting, point: Point) -> str:
    """Return what the default's own formula says of a point, where its solver is planned."""
    from discreet.default.table import (
        Facts,
        prediction,  # here: only a forecast of the default needs it
    )

    facts = Facts(point.domain, setting.loss, setting.penalty, point.budget)
    return prediction(facts, point.solver)


def point_of(setting: Setting, n: int, epsilon: float, max_cells: float) -> Point:
    """Choose, plan and price as a fit would; then find the budget at which fewer rows see the same noise."""
    estimator, loss, penalty = setting.estimator, setting.loss, setting.penalty
    domain, budget = setting.planned(n, epsilon)
    solver, _ = choose_solver(estimator.solver, domain, loss, penalty, budget)
    chosen, stand_in = str(getattr(solver, "name", type(solver).__name__)), None
    plan = solver.plan(domain, loss, penalty)
    if plan.is_sampled and plan.count > MOST_SAMPLES:
        if estimator.solver != "auto":
            raise Unsupported(
                f"this solver would take more than {MOST_SAMPLES} steps on samples: too many to rehearse. Forecast "
                "with solver='gd', or for fewer rows"
            )
        stand_in = "gd"  # full batches instead of too many samples, where the choice was ours
        solver, _ = choose_solver(stand_in, domain, loss, penalty, budget)
        plan = solver.plan(domain, loss, penalty)
    multiplier = price_plan(plan, budget).noise_multiplier
    rows = min(n, max(int(max_cells // setting.n_columns), ROWS_PER_COLUMN * setting.n_columns, LEAST_ROWS))
    rehearsed: Json = {"epsilon": epsilon, "solver": solver if stand_in else estimator.solver}
    if rows < n:
        smaller, factor = _shrunk(solver, plan, rows / n)
        there = smaller.plan(replace(domain, n=domain.n and rows), loss, penalty)
        cost = min(price(there, multiplier * factor, budget.delta, budget.neighbors), NO_NOISE)
        rehearsed = {"epsilon": cost, "delta": budget.delta, "solver": smaller}
    return Point(n, budget, domain, solver, plan, multiplier, rows, rehearsed, chosen, stand_in)


def _shrunk(solver: Any, plan: Plan, part: float) -> tuple[Any, float]:
    """Return the solver for a part of the rows, and the factor of its noise multiplier at which means are as noisy."""
    if hasattr(solver, "solver"):  # a stage, which sees all records
        inner, factor = _shrunk(solver.solver, plan, part)
        return replace(solver, solver=inner), factor
    batch = getattr(solver, "batch_size", None)
    releases = [release for release in plan.releases if release.count]
    if batch is None:
        return solver, part
    if releases and all(release.sampling_numerator < SAMPLING_DENOMINATOR for release in releases):
        return solver, 1.0  # the same batches, with the same noise
    return replace(solver, batch_size=max(1.0, batch * part)), part


def _rehearsed(
    setting: Setting, points: dict[Key, Point], seeds: int, ceiling: float, progress: Callable[[int, int], None] | None
) -> tuple[dict[Key, list[Trial]], float, float]:
    """Fit every point on a synthetic table per seed, and return the scores.

    The noise of a seed is the same at all points, so that curves are smooth. Returns the mean score of the tables' own
    laws, and the mean length of these laws' coefficients, too.
    """
    trials: dict[Key, list[Trial]] = {key: [] for key in points}
    sizes, bests, lengths = sorted({point.rows for point in points.values()}), [], []
    for seed in range(seeds):
        table = setting.table(sizes[-1], ceiling=ceiling, seed=seed)
        bests.append(table.best)
        lengths.append(float(np.linalg.norm(setting.truth(table))))
        free = {rows: score_without_privacy(table, setting, rows) for rows in sizes}
        for done, (key, point) in enumerate(points.items()):
            model = setting.model(point.rows, **point.rehearsed)
            with use_entropy(Stream(seed, 5)):
                model.fit(table.X[: point.rows], table.y[: point.rows])
            trials[key].append((table.score(model.predict(table.held_out)), free[point.rows], table.trivial))
            if progress is not None:
                progress(seed * len(points) + done + 1, seeds * len(points))
    return trials, float(np.mean(bests)), math.fsum(lengths) / seeds


def _row(setting: Setting, point: Point, trials: list[Trial], diameter: float) -> ForecastRow:
    scores, non_private, trivial = zip(*trials, strict=True)
    gaps = tuple(without - score for score, without in zip(scores, non_private, strict=True))
    score, error = summary(scores)
    gap, gap_error = summary(gaps)
    facts = point.domain, setting.loss, setting.penalty, point.budget
    proven = theory_of(point.solver, *facts, diameter, point.n)
    return ForecastRow(
        n=point.n,
        epsilon=point.budget.epsilon,
        delta=point.budget.delta,
        score=score,
        error=error,
        non_private=float(np.mean(non_private)),
        trivial=float(np.mean(trivial)),
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


EFFECT_BUDGETS = (0.5, 1.0, 2.0, 4.0)  # in units of the asked epsilon
EFFECT_TABLES = (0.5, 1.0, 2.0, 5.0, 10.0)  # in units of the asked n
ROUNDS = 24
"""Rehearsals at most until the number of rows is found that has a standard error."""
MOSTLY_HIDDEN = "most effects would probably be hidden"
DETECTED = 2.8
"""An effect of so many standard errors is found by a test at .05 in 80 % of studies: 1.96 + .84."""
MOST_ROWS = 10**12


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
    assumed : str
        What chances assume of the strength of predictors, and of ranges.

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
    assumed: str = ""

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
            said = f"{start}expect no standard errors. {row.refused[:1].upper()}{row.refused[1:]}."
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
            *filter(None, [self.assumed]),
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
        return "\n".join([self.answer, "", *_aligned(*self.table()), "", *self.remarks])


def _without_nan(values: Json) -> Json:
    return {name: None if isinstance(value, float) and math.isnan(value) else value for name, value in values.items()}


def _shown(value: float) -> str:
    return "refused" if math.isnan(value) else f"{value:.3g}"


def _sentence(kind: ExpectedEffect) -> str:
    """Say how likely an effect is to be shown."""
    what = "The effect of a number" if kind.name == "number" else f"That of a yes/no column {kind.name}"
    error = "" if math.isnan(kind.se) or kind.name == "number" else f" (standard error {kind.se:.2g})"
    return f"{what} is shown with a chance of about {kind.chances}{error}."


@checked
def forecast_effects(
    estimator: DPLinearModel,
    n: Rows,
    p: Count | None = None,
    *,
    standard_error: Positive | None = None,
    mean: Finite | None = None,
    cells: Sequence[Share] | Mapping[int, Share] = (),
    strength: NonNegative | None = None,
    fill: Probability | None = None,
    indicators: Groups | None = None,
) -> EffectsForecast:
    """Return the standard errors of an estimator on n rows and p columns; see ``DPLinearModel.forecast_effects``.

    ``indicators`` are the columns of which at most one is on, group by group.
    """
    if n < 2:
        raise Unsupported("forecasts are for at least 2 rows")
    setting, n = replace(setting_of(estimator, p), cells=indicators or ()), int(n)
    law = usual_law(setting.loss, cells, mean, strength, fill)
    epsilon = float(estimator.epsilon)
    points = [
        *((round(part * n), epsilon) for part in EFFECT_TABLES),
        *((n, part * epsilon) for part in EFFECT_BUDGETS),
    ]
    row, rehearsed = expected_row(setting, n, epsilon, law, RUNS)
    rows = {
        key: expected_row(setting, *key, law, threshold=EMPTY)[0]
        for key in dict.fromkeys(points)
        if key != (n, epsilon)
    }
    needed = None if standard_error is None else rows_for(setting, row, law, standard_error)
    if row.refused == MOSTLY_HIDDEN:
        row = replace(row, refused=_advice(setting, n, epsilon, law) or MOSTLY_HIDDEN)
    classes, counts = setting.loss.task == "classification", setting.loss.log_link
    return EffectsForecast(
        model=type(estimator).__name__,
        n_features=setting.n_columns,
        neighbors=str(Neighbors(estimator.neighbors)),
        mean=law.mean,
        unit="of log odds" if classes else "of log rate" if counts else "residual standard deviations",
        asked=row,
        rows=tuple(({**rows, (n, epsilon): row})[key] for key in dict.fromkeys(points)),
        standard_error=standard_error,
        rows_needed=needed,
        kinds=() if rehearsed is None or row.refused else with_least(rehearsed, *_method(setting, n, epsilon), law),
        assumed=assumption(setting.loss, law),
    )


def expected_row(
    setting: Setting, n: int, epsilon: float, law: Law, runs: int = FEW_RUNS, threshold: float | None = None
) -> tuple[EffectsRow, Rehearsed | None]:
    """Rehearse a fit; return the standard errors that it has, and the rehearsal; none where it is refused."""
    delta = setting.planned(n, epsilon)[1].delta
    try:
        method = _method(setting, n, epsilon)
    except Unsupported as reason:
        return EffectsRow(n, epsilon, delta, refused=str(reason)), None
    rehearsed = rehearse(*method, law, runs, threshold)
    if rehearsed.chance < EMPTY:
        return EffectsRow(n, epsilon, delta, chance=rehearsed.chance, refused=MOSTLY_HIDDEN), rehearsed
    kind = NUMBER if NUMBER in rehearsed.names else max(rehearsed.kinds, key=lambda kind: kind.chance).name
    _, se, privacy, inflation = rehearsed.expected(kind)
    return EffectsRow(n, epsilon, delta, se, privacy, inflation, rehearsed.chance), rehearsed


def _method(setting: Setting, n: int, epsilon: float) -> tuple[Sandwich, Domain, Loss, Penalty, Budget]:
    """Return the method of a fit and its facts; where n is private, n rows are assumed."""
    estimator, loss, penalty = setting.estimator, setting.loss, setting.penalty
    domain, budget = setting.planned(n, epsilon)
    cov_type = getattr(estimator, "cov_type", None) or "robust"
    cov_type = "robust" if cov_type == "cluster" else cov_type  # rows are persons here
    inner, _ = choose_solver(estimator.solver, domain, loss, penalty, budget)
    solver = inferring(cov_type, inner, domain, loss, penalty, budget, automatic=True, even_if_empty=True)
    return solver, replace(domain, n=n, indicators=setting.cells), loss, penalty, budget


def _advice(setting: Setting, n: int, epsilon: float, law: Law) -> str | None:
    """Return what a fit is refused with, and what would help."""
    solver, domain, loss, penalty, budget = _method(setting, n, epsilon)
    inner, _ = choose_solver(setting.estimator.solver, domain, loss, penalty, budget)
    start = inference_start(inner, loss, penalty, automatic=True)
    return solver.too_few(domain, loss, penalty, budget, law, start)


def rows_for(setting: Setting, row: EffectsRow, law: Law, standard_error: float) -> int | None:
    """Return the least number of rows, to two digits, whose standard error is small enough; None without one.

    The noise's part of a variance falls with the square of n, the rest with n: from each rehearsal follows the number
    of rows for the next.
    """
    for _ in range(ROUNDS):
        if math.isnan(row.se):
            if row.n > MOST_ROWS or (row.refused is not None and row.refused != MOSTLY_HIDDEN):
                return None
            row, _ = expected_row(setting, 4 * row.n, row.epsilon, law, FEWEST_RUNS)
            continue
        rest, noise = row.se**2 - row.se_privacy**2, row.se_privacy
        times = (rest + math.hypot(rest, 2.0 * noise * standard_error)) / (2.0 * standard_error**2)
        if 0.95 < times < 1.0:
            break
        row, _ = expected_row(setting, max(2, math.ceil(row.n * times)), row.epsilon, law, FEWEST_RUNS)
    digits = int(10 ** max(0, int(math.log10(row.n)) - 1))
    return None if row.n > MOST_ROWS else -(-row.n // digits) * digits
