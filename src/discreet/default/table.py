"""What ``solver="auto"`` is: which form for which public facts, and every setting of a recipe, each with its reason.

All of it is a function of declared facts: the task, the penalty, how records are stored, and the signal N = n mu / a
with its powers of p (``solvers/signal``). No record is looked at. ``python -m benchmarks defaults`` measures the forms
against each other and the settings against their neighbors, on public tables and on generated problems.

``explanation`` says why, for given facts, with a forecast of what privacy will cost: it is free, and can be read before
anything is charged. In whitened coordinates all directions look alike, so one number tells what the noise of T clipped
steps makes of each coefficient (``solvers/propagation``), and another what is left of the way from 0. With theta^2 the
variance of the best predictor, assumed, noise s^2 in it costs s^2 / (s^2 + theta^2) of what can be learned once the
predictor has been calibrated, and what is left of the way its square.

    noise    s^2 = p (step clip sqrt(T / share) / N)^2 gain
    floor    the same with the whole budget in one step along the true curvature: no choice of steps could be better
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from discreet.default.recipe import Recipe, Shares, steps_query
from discreet.default.weighted import WIDEST
from discreet.errors import Unsupported
from discreet.losses.base import Loss, slope_at_zero
from discreet.schema.columns import FEWEST_KNOTS, KNOTS
from discreet.solvers import settings
from discreet.solvers.base import Solver, solver_named
from discreet.solvers.coordinates import is_wide, width_share
from discreet.solvers.output import ExactMinimizer
from discreet.solvers.propagation import average_weights, gain, left_of_start
from discreet.solvers.settings import Setting, beyond, within
from discreet.solvers.signal import Signal

# --- forms: the first line that holds -----------------------------------------------------------------


@dataclass(frozen=True)
class Facts(settings.Facts):
    """The public facts that a form is chosen from."""

    @property
    def few_columns_matter(self) -> bool:
        """Whether the penalty says that few columns matter, and noise that not all can be found at once."""
        greedy = not self.penalty.ridge and self.penalty.l1_l2 is not None and self.domain.n_outputs == 1
        return greedy and self.signal.per_coefficient < GREEDY

    @property
    def is_recipe(self) -> bool:
        """Whether a recipe's steps serve loss, penalty and records."""
        return not is_wide(self.domain) and (not self.is_regression or self.loss.movable_target or self.loss.log_link)

    @property
    def is_weak(self) -> bool:
        """Whether coordinates cost more than they show."""
        return self.signal.per_row < WEAK or (self.is_regression and self.signal.total < LEAST_MEAN)

    @property
    def is_middling(self) -> bool:
        """Whether scales show more than they cost, and a second moment does not."""
        return self.signal.per_row < SCALES and not self.is_regression

    @property
    def is_one_release(self) -> bool:
        """Whether objective perturbation serves: public n, one row per person, a proven loss, one machine."""
        proven = self.loss.proven and self.penalty.ridge and not self.is_regression
        follows = self.domain.moments is None or not self.budget.is_pure  # scales are followed by Gaussian noise alone
        local = self.domain.n is not None and not (self.domain.grouped or self.domain.remote or self.domain.weighted)
        return proven and follows and local and self.domain.start is None  # it takes no steps from anywhere

    def serves(self, solver: Solver) -> bool:
        """Whether a solver has a plan for these facts."""
        try:
            solver.plan(self.domain, self.loss, self.penalty)
        except Unsupported:
            return False
        return True


GREEDY = 8.0
"""The signal per coefficient below which an L1 penalty is followed by greedy steps."""
WEAK, SCALES, LEAST_MEAN = 5.0, 15.0, 25.0
"""The signal per row below which estimates cost more than they show: of scales, and for classes of a second moment; for
numbers also the least signal of a mean."""


@dataclass(frozen=True)
class Form:
    """A line of the table: when it holds, what is run, and why; a recipe in which coordinates."""

    name: str
    holds: Callable[[Facts], bool]
    reason: str
    coordinates: str = ""


FORMS = (
    Form(
        "exact", lambda f: not f.budget.is_private and f.serves(ExactMinimizer()), "without noise, the minimizer itself"
    ),
    Form("gd", lambda f: not f.budget.is_private, "without noise, full gradients reach the optimum"),
    Form("objective", lambda f: f.budget.is_pure and f.is_one_release, "one release is cheapest where noise is pure"),
    Form(
        "gd",
        lambda f: f.budget.is_pure and not (f.loss.movable_target and f.is_recipe and f.penalty.ridge),
        "full batches have the least noise per pass",
    ),
    Form(
        "gcd", lambda f: f.few_columns_matter and not is_wide(f.domain), "greedy steps find the few columns that matter"
    ),
    Form(
        "wide",
        lambda f: (
            is_wide(f.domain) and f.penalty.l1_l2 is not None and not f.is_regression and f.signal.total >= LEAST_MEAN
        ),
        "rows of sparse or very wide records have the noise of their own length only",
    ),
    Form("gd", lambda f: not f.is_recipe, "full gradients serve any penalty and any records"),
    Form(
        "gd",
        lambda f: f.loss.log_link and f.domain.intercept and LOOKED_FOR <= f.signal.total < LEAST_MEAN,
        "counts start from a mean that one short answer tells, where noise hides the mean of all that they may be",
    ),
    Form("recipe", lambda f: f.is_weak, "the signal is too weak to estimate coordinates", "declared"),
    Form("recipe", lambda f: f.is_middling, "the signal is too weak to estimate a covariance", "diagonal"),
    Form("recipe", lambda f: True, "estimating the mean and covariance first improves accuracy", "full"),
)


def choose(facts: Facts) -> tuple[Solver, str]:
    """Return what ``auto`` is for these facts, and why."""
    form = next(form for form in FORMS if form.holds(facts))
    if form.name == "recipe":
        solver: Solver = recipe_for(facts)
    elif form.name == "exact":
        solver = ExactMinimizer()
    elif form.name == "wide":
        solver = settings.wide_steps(facts, lambda steps: steps)
    else:
        solver = solver_named(form.name, facts.domain, facts.loss, facts.penalty, facts.budget)
    return solver, f"auto chose {form.name}: {form.reason}"


# --- settings of a recipe ------------------------------------------------------------------------------

NEWTON, LATER = 4.0, 50.0
"""The signal per record from which on Newton steps are taken; of numbers, but counts, whose clipped slopes are biased.
Then all before is accurate enough with less of the budget."""

SETTINGS = (
    Setting("n_steps", lambda s: Recipe.n_steps * within(1, s.columns**0.5 / 8, 2),
            reason="in whitened coordinates few steps do; wide tables have more directions that are not quite white"),
    Setting("momentum", Recipe.momentum, reason="brings flat directions along; more of it carries noise along"),
    Setting("clip", Recipe.clip, numbers=lambda s: 0.2 * within(1, s.per_coefficient / 20, 8),
            reason="of the slope at 0: clipped slopes halve the noise, and bias lengths, which calibration corrects"),
    Setting("constant", Recipe.constant, numbers=lambda s: s.columns**-0.5,
            reason="an intercept is learned first where it is large; a number's target is centered before"),
    Setting("row_radius", lambda s: beyond(1000, s.per_matrix) ** 0.2,
            numbers=lambda s: 0.8 * beyond(100, s.per_row) ** (1 / 3),
            reason="long rows raise everybody's noise; for numbers they carry more of the slope"),
    Setting("floor", Recipe.floor, reason="directions below the noise are shrunk, not cut off"),
    Setting("least_scale", Recipe.least_scale, numbers=settings.SETTINGS["one_shot.least_scale"].rule,
            reason="a smaller one blows up rare categories; numbers in ranges far too wide need it"),
    Setting("calibration_clip", Recipe.calibration_clip, numbers=lambda s: 0.2 * s.total**0.5,
            reason="its noise falls as its bias does"),
    Setting("n_newton", lambda s: newton(s.per_record / NEWTON), numbers=lambda s: newton(s.per_record / LATER),
            reason="from where their noise is below the sampling error; numbers gain from bounded slopes for longer"),
    Setting("n_travel", lambda s: travel(s.per_record / NEWTON), numbers=lambda s: travel(s.per_record / LATER),
            reason="clips leave the start farther from the optimum than a Newton step sees; squares have one Hessian"),
    Setting("weight_radius", lambda s: radius(s, s.per_record ** (1 / 3)), numbers=lambda s: radius(s, widened(s)),
            reason="noise falls against the sampling error, bias with it, and the metric stays above its noise"),
    Setting("slope_limit", Recipe.slope_limit,
            numbers=lambda s: max(Recipe.slope_limit, math.cbrt(math.sqrt(20 * s.per_record))),
            reason="classes have bounded slopes; residuals have shorter tails than rows and counts"),
)  # fmt: skip
SHARES = (
    Setting("target", lambda s: within(Shares.target, 2 / 3 / math.sqrt(s.total), 0.2),
            reason="a wrong mean costs more than a wrong slope"),
    Setting("width", lambda s: width_share(s, Shares.mean),
            reason="ranges far too wide cost most of all, where counts can tell where in them most rows are"),
    Setting("mean", Shares.mean, reason="flat: p numbers of one answer"),
    Setting("scale", Shares.scale, reason="columns of unlike sizes cost as much"),
    Setting("moment", Shares.moment, reason="p^2 numbers; more of it starves the steps"),
    Setting("calibration", Shares.calibration, reason="two numbers"),
    Setting("slope", 0.0, numbers=Shares.slope, reason="one number"),
    Setting("sizes", lambda s: (TOLD * s.n / s.total) ** 2 * (TOLD * s.n <= math.sqrt(Shares.slope) * s.total),
            reason="counts that tell single rows say where sizes end: wider limits would be noise alone"),
    Setting("bound", Shares.bound, reason="p^2 numbers of rows that are not shrunk; these four with such steps"),
    Setting("travel", Shares.travel, reason="Newton steps forget its noise"),
    Setting("hessian", Shares.hessian, reason="p^2 numbers at the estimate"),
    Setting("newton", Shares.newton, reason="about as much as the clipped steps keep"),
)  # fmt: skip
PURE = {"n_steps": 4.0, "target_looks": 0.0, "n_travel": 0.0, "n_newton": 0.0}
PURE_SHARES = {"moment": 0.5, "calibration": 0.0, "width": 0.0}
"""With pure noise answers share epsilon itself, not its square: few of them, and most for the p^2 numbers."""
FLAT = {"n_steps": 24.0, "momentum": 0.85}
FLAT_SHARES = {"calibration": 0.0}
"""A check loss is flat but for few residuals: its steps are short, and its mean gradient does not tell a scale."""
FEW = {"constant": 0.2, "n_travel": 0.0, "n_newton": 0.0}
COORDINATES = {
    "declared": {"n_steps": float(Recipe.n_steps), **FEW},
    "diagonal": {"n_steps": 20.0, "momentum": 0.8, **FEW},
    "full": {},
}
"""What differs in coordinates of less signal: scales alone need more steps."""
TOLD = 60.0
"""The signal of one record from which on each of about a dozen counts tells single rows: a noise of an eighth."""
TRAVEL = 10
"""Steps with a bound on the Hessian come first from so many times the signal on that Newton steps need, up to its
square: with less their noise does more harm than a Hessian from afar."""
LOOKED_FOR = 8.0
"""The signal of a mean from which on a numeric target's place is looked for: below it is left where it was declared."""


def travel(excess: float) -> float:
    """Return how many steps come before the Hessian."""
    return within(0, TRAVEL * ((excess / TRAVEL) ** 0.5 - 1), TRAVEL**2)


def newton(excess: float) -> float:
    """Return how many steps are taken with a Hessian: each leaves a part of the error before it."""
    return 5 + math.log2(excess) if excess >= 1 else 0


def radius(signal: Signal, wanted: float) -> float:
    """Return the wanted radius, as far as a Hessian of such rows stands out of its noise."""
    return max(Recipe.weight_radius, min(wanted, math.sqrt(0.1 * signal.per_matrix)))


def widened(signal: Signal) -> float:
    """Return how far rows of numbers count in full, in typical ones."""
    return math.sqrt(math.sqrt(2 * signal.per_record))


def skewed(least: float, signal: Signal) -> float:
    """Return how far rows or slopes of counts count in full: twice as far, as what is rare of them is far out."""
    return 2.0 * within(least, widened(signal), WIDEST / 2.0)


def recipe_for(facts: Facts, *, weighted: bool = True) -> Recipe:
    """Return the recipe of the table for these facts; without weighted steps where others follow."""
    signal, coordinates = (
        facts.signal,
        next(form.coordinates for form in FORMS if form.coordinates and form.holds(facts)),
    )
    values: dict[str, Any] = {row.name: value_of(row, facts, signal) for row in SETTINGS}
    if facts.loss.log_link:
        values["n_newton"] = min(WIDEST, newton(signal.per_record / NEWTON))
        values["slope_limit"] = skewed(Recipe.slope_limit, signal)
        values["weight_radius"] = radius(signal, skewed(Recipe.weight_radius, signal))
    values |= COORDINATES[coordinates]
    if not weighted:
        values |= {"n_travel": 0.0, "n_newton": 0.0}
    shares = {row.name: value_of(row, facts, signal) for row in SHARES}
    least = LEAST_MEAN if facts.loss.log_link else LOOKED_FOR * facts.is_regression
    shares["target"] *= signal.total >= least
    if values["n_newton"]:
        early = within(1.0 / WIDEST, (LATER / signal.per_record) ** 0.25, 1.0)
        shares = {name: early * share for name, share in shares.items()}
        shares["newton"] += 1.0 - early
    values["target_looks"] = Recipe.target_looks * (signal.total >= LOOKED_FOR)
    if facts.loss.normal_curvature is not None:
        values, shares = values | FLAT, shares | FLAT_SHARES
    if facts.budget.is_pure:
        values, shares = values | PURE, shares | PURE_SHARES
    whole = {name: round(values.pop(name)) for name in COUNTS if name in values}
    return Recipe(coordinates, Shares(**shares), **whole, **values)


COUNTS = ("n_steps", "n_travel", "n_newton", "target_looks")


def value_of(row: Setting, facts: Facts, signal: Signal) -> float:
    """Return a setting's value."""
    return min(WIDEST, row.value(signal, is_regression=facts.is_regression))


# --- terms of a table ----------------------------------------------------------------------------------

CURVES = Setting("curves", 12.0, numbers=20.0,
                 reason="bends cost noise and sampling error even where effects are straight")  # fmt: skip
"""The signal per coefficient, bends among them, that curves of a table's numbers need: straight effects then lose about
a two-hundredth of the AUC or of the variance, with however many knots."""


def knots_for(facts: Facts, features: Callable[[int], int]) -> tuple[int | None, str]:
    """Return how many knots the curves of a table's numbers have, None for lines, and why.

    Parameters
    ----------
    facts
        Those of the table with lines.
    features
        The number of features, from the number of knots.
    """
    served = (
        facts.is_recipe
        and not facts.loss.log_link
        and facts.penalty.ridge
        and not facts.budget.is_pure
        and facts.domain.moments is None
    )
    if not served or facts.domain.start is not None:
        return None, "numbers have linear effects: curves are the default only where auto's own algorithm serves"
    needed, lines = value_of(CURVES, facts, facts.signal), facts.domain.n_features
    least = f"a signal of {needed:g} per coefficient"
    for knots in range(KNOTS, FEWEST_KNOTS - 1, -1):
        columns = features(knots) + facts.domain.intercept
        if _curve_signal(facts.signal, columns, columns - lines) >= needed:
            return knots, f"numbers have curves with {knots} knots: {least} suffices"
    return None, f"numbers have linear effects: curves need {least}"


def _curve_signal(signal: Signal, columns: int, bends: int) -> float:
    """Return the signal per coefficient, where bends cost sampling error as well as noise.

    Bends raise the noise of every coefficient, in proportion to p, and have as much themselves: they cost straight
    effects bends p / N^2, and bends / n for what is estimated for nothing. Both are about 1 / S^2 of the signal S.
    """
    wider = replace(signal, columns=columns)
    return 1.0 / (1.0 / wider.per_coefficient + 2.0 * bends * signal.outputs / signal.n)


VARIANCE = {"classification": 1.5, "regression": 0.25}
"""What is assumed of the best predictor's variance: of margins, and of a target of variance 1."""
CURVED = 0.3
"""What clips leave of the largest curvature for classes, about; for numbers the share of residuals within the clip."""
DIRECTIONS = 0.8
"""p columns are correlated: noise is felt in about this power of p directions."""
SPREAD = 0.35
"""Nine in ten public tables were within this of the forecast, of labels and of numbers."""


@dataclass(frozen=True)
class Forecast:
    """The share of what can be learned that privacy will cost: the forecast, how far off it may be, and the floor.

    Parameters
    ----------
    lost : float
        0: as good as without privacy; 1: nothing learned.
    spread : float
        Nine in ten tables are within this of it.
    floor : float
        What the noise of one answer with the whole budget would cost.

    Examples
    --------
    >>> from discreet.default.table import Forecast
    >>> Forecast(lost=0.1, spread=0.3, floor=0.02).range
    (0.0, 0.4)
    """

    lost: float
    spread: float
    floor: float

    @property
    def range(self) -> tuple[float, float]:
        """From where to where the loss probably is."""
        return max(0.0, self.lost - self.spread), min(1.0, self.lost + self.spread)


def forecast(recipe: Recipe, signal: Signal, loss: Loss, share: float) -> Forecast:
    """Return what a recipe will probably cost; ``share`` is what its clipped steps get of mu^2."""
    variance, directions = VARIANCE[loss.task], signal.coefficients**DIRECTIONS
    curved = CURVED if loss.task == "classification" else math.erf(recipe.clip / math.sqrt(2.0))
    momenta, weights = np.full(recipe.n_steps, recipe.momentum), average_weights("polynomial", recipe.n_steps)
    pull = np.array([curved])
    clip = recipe.clip * slope_at_zero(loss) * math.sqrt(directions)
    one = clip / loss.smoothness * math.sqrt(recipe.n_steps / share) / signal.total
    noise = directions * one**2 * float(gain(momenta, weights, pull)[0])
    left = float(left_of_start(momenta, weights, pull)[0])
    least = directions * (clip / (curved * loss.smoothness * signal.total)) ** 2
    lost = min(1.0, noise / (noise + variance) + left**2)
    return Forecast(lost, SPREAD, least / (least + variance))


def explanation(facts: Facts, solver: Solver, reason: tuple[str, ...]) -> str:
    """Return the explanation as text, a line each."""
    parts = (*expectations(facts, solver), *_help(facts, solver), "", *_forms(facts), *_settings(facts, solver))
    notes = [line for line in reason[1:] if line not in parts]
    return "\n".join((reason[0], *notes, "", *parts))


def forecast_for(facts: Facts, recipe: Recipe) -> Forecast:
    """Return what a recipe will probably cost for these facts."""
    plan = recipe.plan(facts.domain, facts.loss, facts.penalty)
    gradients = (release for release in plan.releases if release.query == steps_query(facts.loss))
    steps = next(release for release in gradients if release.count == recipe.n_steps)
    return forecast(recipe, facts.signal, facts.loss, steps.count / steps.relative_noise**2)


def expectations(facts: Facts, solver: Solver) -> tuple[str, str]:
    """Return the signal, and what privacy will probably cost with its spread and floor: for the certificate too."""
    signal = facts.signal
    first = (
        f"Signal: N = n mu / a = {signal.total:,.3g}, {signal.coefficients:,} coefficients: {signal.per_row:,.3g} for "
        f"a row of them (N over the root), {signal.per_coefficient:,.3g} for each (N over the number); the sampling "
        f"error is {signal.per_record:,.3g} x the noise"
    )
    return first, f"Forecast: {prediction(facts, solver) or 'there is none for this solver'}"


NEARLY_FREE = 0.005
"""Below this cost there is nothing to help."""


def prediction(facts: Facts, solver: Solver) -> str:
    """Return what privacy will probably cost, in words: by this formula alone, wherever it is shown; "" for none."""
    if not isinstance(solver, Recipe) or not facts.budget.is_private or facts.budget.is_pure:
        return ""
    expected = forecast_for(facts, solver)
    low, high = expected.range
    cost = "less than 1%" if expected.lost < NEARLY_FREE else f"about {expected.lost:.0%}"
    least = f"; no choice of steps could cost less than {expected.floor:.1%}" if expected.floor >= NEARLY_FREE else ""
    return f"privacy costs {cost} of what can be learned ({low:.0%} to {high:.0%} on nine tables in ten){least}"


def _help(facts: Facts, solver: Solver) -> Iterator[str]:
    if isinstance(solver, Recipe) and prediction(facts, solver) and forecast_for(facts, solver).lost >= NEARLY_FREE:
        yield "What would help: " + "; ".join(f"{what}: about {cost:.0%}" for what, cost in _remedies(facts))


def _remedies(facts: Facts) -> Iterator[tuple[str, float]]:
    """Forecast the same with more rows, a larger epsilon and fewer columns."""
    domain, budget = facts.domain, facts.budget
    others = {"twice epsilon": replace(facts, budget=replace(budget, epsilon=2 * budget.epsilon))}
    if domain.n is not None:
        others = {"twice the rows": replace(facts, domain=replace(domain, n=2 * domain.n)), **others}
    if domain.n_features > 2:
        kept = slice(domain.n_features // 2, None)
        ranges = None if domain.ranges is None else domain.ranges[domain.n_features // 2 :]
        half = replace(domain, feature_bounds=domain.feature_bounds[kept], ranges=ranges, start=None, moments=None)
        others["half the columns"] = replace(facts, domain=half)
    for what, other in others.items():
        yield what, forecast_for(other, recipe_for(other)).lost


def _forms(facts: Facts) -> Iterator[str]:
    chosen = next(form for form in FORMS if form.holds(facts))
    yield "Forms, the first that holds:"
    for form in FORMS:
        mark = "->" if form is chosen else ("  " if form.holds(facts) else " -")
        name = f"{form.name}, {form.coordinates}" if form.coordinates else form.name
        yield f" {mark} {name:16s} {form.reason}"


def _settings(facts: Facts, solver: Solver) -> Iterator[str]:
    """List the settings that this recipe uses for these facts, and what each step's answers get of mu^2."""
    if not isinstance(solver, Recipe):
        return
    yield ""
    yield "Settings:"
    for row in SETTINGS:
        if _is_used(row.name, solver, facts):
            yield f"    {row.name:20s} {getattr(solver, row.name):<8.3g} {row.reason}"
    plan = solver.plan(facts.domain, facts.loss, facts.penalty)
    for row in SHARES:
        less = replace(solver, shares=replace(solver.shares, **{row.name: getattr(solver.shares, row.name) / 2}))
        if less.plan(facts.domain, facts.loss, facts.penalty) != plan:
            yield f"    shares.{row.name:13s} {getattr(solver.shares, row.name):<8.3g} {row.reason}"


def _is_used(name: str, recipe: Recipe, facts: Facts) -> bool:
    """Say whether the steps that a setting is of are taken."""
    takes_weighted, is_bounded = bool(recipe.n_travel or recipe.n_newton), facts.loss.task == "classification"
    needed = {
        "floor": recipe.coordinates == "full",
        "least_scale": recipe.coordinates != "declared",
        "calibration_clip": facts.loss.movable_target and recipe.shares.calibration > 0,
        "weight_radius": takes_weighted,
        "slope_limit": takes_weighted and not is_bounded,
        "n_travel": takes_weighted,
    }
    return needed.get(name, True)
