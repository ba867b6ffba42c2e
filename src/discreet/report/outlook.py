"""``outlook``: how accuracy would move with epsilon and with the number of rows. From public facts alone, in seconds.

Two answers, kept apart. *Simulation*: the estimator is fitted as it is configured on three small synthetic tables, at
eleven settings (``models/forecast.py``). *Theory*: bounds on the excess risk for the worst data within the declared
ranges (``models/forecasting/rates.py``). Where a simulation would take longer than a report should, there is the theory
alone, and the outlook says so.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from discreet.errors import DiscreetError

if TYPE_CHECKING:
    from discreet.models.forecasting.result import Forecast, ForecastRow
    from discreet.models.forecasting.setting import Setting

MULTIPLES = (0.05, 0.2, 0.5, 1.0, 2.0, 5.0)  # of the asked epsilon, and of the asked n
FITS, CELLS, ROWS = 3, 50_000, 2_000
WIDEST = 250  # columns beyond which one simulated fit takes seconds
POINTS = 33  # of a theoretical curve
SECONDS = 4.0


@dataclass(frozen=True)
class Simulated:
    """Simulated fits at one epsilon or number of rows: their mean score, the lowest and the highest."""

    at: float
    score: float
    low: float
    high: float


@dataclass(frozen=True)
class Bounded:
    """What is proven at one epsilon or number of rows: the most that is lost, and the order that nobody can beat."""

    at: float
    upper: float
    order: float


@dataclass(frozen=True)
class Outlook:
    """What other budgets and other tables would give.

    Parameters
    ----------
    n, p, epsilon
        The table and the budget that were asked for; the curves go through them.
    score, non_private, trivial
        ``"accuracy"`` or ``"R2"``, and its value without privacy and for a model that looks at no column.
    over_epsilon, over_rows
        The simulation. Empty where there was no time for one.
    bound_over_epsilon, bound_over_rows
        The theory, in units of the loss per record.
    bound_of, general, diameter, nothing, pure
        Whose bound, and whether it is the general one that the page has a formula of; for coefficients of which length;
        the excess risk of a model of zeros, above which a bound says nothing; whether delta is 0.
    steps
        The queries of the plan, in order.
    remarks
        How the numbers came about.
    """

    n: int
    p: int
    epsilon: float
    score: str
    non_private: float
    trivial: float
    over_epsilon: tuple[Simulated, ...]
    over_rows: tuple[Simulated, ...]
    bound_over_epsilon: tuple[Bounded, ...]
    bound_over_rows: tuple[Bounded, ...]
    bound_of: str
    general: bool
    diameter: float
    nothing: float
    pure: bool
    steps: tuple[str, ...]
    remarks: tuple[str, ...]


class _Late(Exception):
    """The simulation takes too long."""


def outlook(estimator: Any, n: int, p: int | None = None, *, seconds: float = SECONDS) -> Outlook | None:
    """The outlook of an estimator, fitted or not, for a table of n rows and p columns. No data is read.

    Parameters
    ----------
    estimator
        A linear model of this library, as configured for the fit.
    n, p
        Rows (persons, where they are the unit) and columns that the estimator sees. p may be left out where its bounds
        list them.
    seconds
        How long a simulation may compute before there is none.

    Returns
    -------
    Outlook or None
        None where there is nothing to foresee: epsilon is infinite, or the settings cannot be planned without data.
    """
    from discreet.models.forecasting.setting import setting_of

    if not math.isfinite(estimator.epsilon):
        return None
    try:
        setting = setting_of(estimator, p)
        theory = _Theory(setting, int(n))
        found, remarks = _simulation(setting, theory, int(n), seconds)
    except DiscreetError:
        return None
    own = float(estimator.epsilon)
    asked = found.asked if found else None
    lowest, highest = MULTIPLES[0], MULTIPLES[-1]
    return Outlook(
        n=int(n),
        p=setting.n_columns,
        epsilon=own,
        score=setting.target.score_name,
        non_private=asked.non_private if asked else math.nan,
        trivial=asked.trivial if asked else math.nan,
        over_epsilon=_points(found.over_epsilon, lambda row: row.epsilon) if found else (),
        over_rows=_points(found.over_n, lambda row: float(row.n)) if found else (),
        bound_over_epsilon=tuple(theory.at(int(n), own * by, own * by) for by in _spread(lowest, highest)),
        bound_over_rows=tuple(theory.at(round(n * by), own, round(n * by)) for by in _spread(lowest, highest)),
        bound_of=theory.source,
        general=theory.is_general,
        diameter=theory.lengths.euclidean,
        nothing=theory.nothing,
        pure=theory.pure,
        steps=theory.steps,
        remarks=remarks,
    )


def _simulation(
    setting: "Setting", theory: "_Theory", n: int, seconds: float
) -> "tuple[Forecast | None, tuple[str, ...]]":
    from discreet.models.forecast import forecast

    if theory.is_sampled:
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
            progress=on_time,
        )
    except _Late:
        return None, (f"No simulation: it takes more than {seconds:g} seconds. DPLinearModel.forecast has the time.",)
    return found, found.remarks[:-1]  # the last one is of the theory, which the page tells itself


class _Theory:
    """Bounds for one estimator: at any epsilon and n, for coefficients as long as a synthetic law's."""

    def __init__(self, setting: "Setting", n: int) -> None:
        from discreet.models.defaults import choose_solver
        from discreet.models.forecasting.law import rehearsal
        from discreet.models.forecasting.rates import Lengths

        self._setting = setting
        table = rehearsal(ROWS, setting.ranges, setting.target, ceiling=setting.usual_ceiling, seed=0)
        self.lengths, self.nothing = Lengths.of(setting.truth(table)), setting.risk_of_zero(table)
        domain, budget = self._facts(n, float(setting.estimator.epsilon))
        self.solver, _ = choose_solver(setting.estimator.solver, domain, setting.loss, setting.penalty, budget)
        plan = self.solver.plan(domain, setting.loss, setting.penalty)
        self.pure, self.is_sampled = budget.is_pure, bool(getattr(plan, "is_sampled", False))
        releases = getattr(plan, "releases", ())
        self.steps = tuple(release.query for release in releases if release.count)
        self.source, self.is_general = "", False

    def at(self, n: int, epsilon: float, place: float) -> Bounded:
        from discreet.models.forecasting.rates import YARDSTICK, risk_bound

        n = max(2, n)
        domain, budget = self._facts(n, epsilon)
        found = risk_bound(self.solver, replace(domain, n=n), self._setting.loss, budget, self.lengths)
        self.source = found.source
        self.is_general = found.source == YARDSTICK or (budget.is_pure and not hasattr(self.solver, "bound"))
        return Bounded(float(place), found.upper, found.lower)

    def _facts(self, n: int, epsilon: float) -> tuple[Any, Any]:
        """The domain and the budget as a fit would have them."""
        from discreet.budget import Neighbors
        from discreet.models.fitting import budget_of

        setting, relation = self._setting, Neighbors(self._setting.estimator.neighbors)
        public = n if relation.n_is_public or setting.bounds.n is not None else None
        if not hasattr(self, "_domain"):
            self._domain = setting.facts().domain(Neighbors.ZERO_OUT, setting.loss)
        budget = budget_of(epsilon, setting.estimator.delta, relation, public, allow_large_delta=True)
        return replace(self._domain, neighbors=relation, n=public), budget


def _points(rows: "tuple[ForecastRow, ...]", x: "Callable[[ForecastRow], float]") -> tuple[Simulated, ...]:
    return tuple(
        Simulated(x(row), row.score, row.non_private - max(row.gaps), row.non_private - min(row.gaps)) for row in rows
    )


def _spread(low: float, high: float) -> list[float]:
    """Factors from low to high, evenly on a logarithmic axis, and 1."""
    return sorted({1.0, *(low * (high / low) ** (k / (POINTS - 1)) for k in range(POINTS))})
