"""Why ``auto`` is what it is for given facts: the signal, the forms in question, the settings, what privacy will cost.

Made of public facts alone, so that it is free and can be read before anything is charged.
"""

from collections.abc import Iterator
from dataclasses import replace

from discreet.default.forecast import Forecast, forecast
from discreet.default.recipe import Recipe
from discreet.default.table import FORMS, SETTINGS, SHARES, Facts, recipe_for
from discreet.solvers.base import Solver


def explanation(facts: Facts, solver: Solver, reason: tuple[str, ...]) -> str:
    """Return the explanation as text, a line each."""
    return "\n".join((*reason, "", *_signal(facts), *_forecast(facts, solver), "", *_forms(facts), *_settings(solver)))


def forecast_for(facts: Facts, recipe: Recipe) -> Forecast:
    """Return what a recipe will probably cost for these facts."""
    plan = recipe.plan(facts.domain, facts.loss, facts.penalty)
    gradients = (release for release in plan.releases if release.query == "noisy_gradient")
    steps = next(release for release in gradients if release.count == recipe.n_steps)
    return forecast(recipe, facts.signal, facts.loss, steps.count / steps.relative_noise**2)


def _signal(facts: Facts) -> Iterator[str]:
    signal = facts.signal
    yield (
        f"Signal: N = n mu / a = {signal.total:,.3g} for {signal.coefficients:,} coefficients: {signal.per_row:,.3g} "
        f"per row, {signal.per_coefficient:,.3g} per coefficient, {signal.per_record:,.3g} of the sampling error"
    )


def _forecast(facts: Facts, solver: Solver) -> Iterator[str]:
    if not isinstance(solver, Recipe) or not facts.budget.is_private or facts.budget.is_pure:
        yield "Forecast: there is none for this solver"
        return
    found = forecast_for(facts, solver)
    low, high = found.range
    yield (
        f"Forecast: privacy costs about {found.lost:.0%} of what can be learned ({low:.0%} to {high:.0%} on nine "
        f"tables in ten); no choice of steps could cost less than {found.floor:.1%}"
    )
    yield "What would help: " + "; ".join(f"{what}: about {cost:.0%}" for what, cost in _remedies(facts))


def _remedies(facts: Facts) -> Iterator[tuple[str, float]]:
    """Forecast the same with more rows, a larger epsilon and fewer columns."""
    domain, budget = facts.domain, facts.budget
    others = {"twice epsilon": replace(facts, budget=replace(budget, epsilon=2 * budget.epsilon))}
    if domain.n is not None:
        others = {"twice the rows": replace(facts, domain=replace(domain, n=2 * domain.n)), **others}
    if domain.n_features > 3:
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
        yield f" {mark} {form.name:10s} {form.reason}"


def _settings(solver: Solver) -> Iterator[str]:
    if not isinstance(solver, Recipe):
        return
    yield ""
    yield "Settings:"
    for rows, values in ((SETTINGS, solver), (SHARES, solver.shares)):
        for row in rows:
            name = row.name if values is solver else f"shares.{row.name}"
            yield f"    {name:20s} {getattr(values, row.name):<8.3g} {row.reason}"
