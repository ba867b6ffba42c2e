"""Why ``auto`` is what it is for given facts: the signal, the forms in question, the settings, what privacy will cost.

Made of public facts alone, so that it is free and can be read before anything is charged. The forecast: in whitened
coordinates all directions look alike, so one number tells what the noise of T clipped steps makes of each coefficient
(``solvers/propagation``), and another what is left of the way from 0. With theta^2 the variance of the best predictor,
assumed, noise s^2 in it costs s^2 / (s^2 + theta^2) of what can be learned once the predictor has been calibrated, and
what is left of the way its square.

    noise    s^2 = p (step clip sqrt(T / share) / N)^2 gain
    floor    the same with the whole budget in one step along the true curvature: no choice of steps could be better
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from discreet.default.recipe import Recipe, steps_query
from discreet.default.table import FORMS, SETTINGS, SHARES, Facts, recipe_for
from discreet.losses.base import Loss, slope_at_zero
from discreet.solvers.base import Solver
from discreet.solvers.gradient_loop import average_weights
from discreet.solvers.propagation import gain, left_of_start
from discreet.solvers.signal import Signal

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
    >>> from discreet.default.explain import Forecast
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
        f"Signal: N = n mu / a = {signal.total:,.3g} for {signal.coefficients:,} coefficients: {signal.per_row:,.3g} "
        f"per row, {signal.per_coefficient:,.3g} per coefficient, {signal.per_record:,.3g} of the sampling error"
    )
    return first, f"Forecast: {prediction(facts, solver) or 'there is none for this solver'}"


def prediction(facts: Facts, solver: Solver) -> str:
    """Return what privacy will probably cost, in words: by this formula alone, wherever it is shown; "" for none."""
    if not isinstance(solver, Recipe) or not facts.budget.is_private or facts.budget.is_pure:
        return ""
    expected = forecast_for(facts, solver)
    low, high = expected.range
    return (
        f"privacy costs about {expected.lost:.0%} of what can be learned ({low:.0%} to {high:.0%} on nine tables in "
        f"ten); no choice of steps could cost less than {expected.floor:.1%}"
    )


def _help(facts: Facts, solver: Solver) -> Iterator[str]:
    if prediction(facts, solver):
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
