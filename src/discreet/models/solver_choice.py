"""Which solver ``solver="auto"`` is, and how a name or an object becomes a complete one: from public facts alone.

What a solver's name means: ``solvers/settings``; what ``auto`` means: ``default/table``.
"""

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Literal

from discreet.bounds import Domain
from discreet.budget import Budget
from discreet.errors import Unsupported
from discreet.losses.base import Loss
from discreet.parameters import OneOf
from discreet.penalties.base import Penalty
from discreet.solvers.base import COV_TYPES, SOLVERS, Solver, filled, solver_named

if TYPE_CHECKING:
    from discreet.inference.sandwich import Sandwich

Inference = Annotated[str, OneOf("sandwich")] | Literal[False] | None
"""What ``inference=`` takes."""
Covariance = Annotated[str, OneOf(*COV_TYPES)]
START_RADIUS = 0.8
"""Where inference starts, rows are shrunk to this many typical lengths at most."""
DECLARED = "unset parameters were chosen from declared facts only"
FILLED = 1 << 25
"""The most cells that a sparse table may have to be stored with its zeros: 256 MB while it is read."""


def solver_names() -> tuple[str, ...]:
    """Return every name that ``solver=`` takes."""
    return ("auto", *SOLVERS.names())


def choose_solver(
    solver: Solver | str, domain: Domain, loss: Loss, penalty: Penalty, budget: Budget
) -> tuple[Solver, tuple[str, ...]]:
    """Return a configured solver from a name or a solver object, and the reasons for what was chosen."""
    if not isinstance(solver, str):
        if isinstance(solver, type) or not all(hasattr(solver, name) for name in ("plan", "solve", "settings")):
            raise Unsupported(
                f"solver must be one of {', '.join(solver_names())}, or a solver object: GradientDescent(n_steps=50)"
            )
        return filled(solver, domain, loss, penalty, budget), ("solver configured by the user",)
    if solver not in solver_names():
        known = ", ".join(solver_names())
        raise Unsupported(f"solver must be one of {known}, or a solver object such as GradientDescent(n_steps=50)")
    if solver == "auto":
        from discreet.default.explain import expectations  # here: a fit imports no solver but its own
        from discreet.default.table import Facts, choose

        chosen, why = choose(domain, loss, penalty, budget)
        return chosen, (why, *expectations(Facts(domain, loss, penalty, budget), chosen), DECLARED)
    return solver_named(solver, domain, loss, penalty, budget), (f"{solver} was asked for", DECLARED)


def fills(solver: Solver | str, domain: Domain, loss: Loss, penalty: Penalty, budget: Budget) -> bool:
    """Say whether sparse records are stored with their zeros: narrow ones whose shape would be estimated if dense.

    A few hundred columns have a covariance that can be estimated, whatever the container. Public facts only: where n is
    private, or a person may have several rows, their number must not decide.
    """
    small = domain.sparse and not domain.grouped and domain.n is not None and domain.n * domain.n_features <= FILLED
    if not small or solver not in ("auto", "recipe") or not budget.is_private:
        return False
    from discreet.default.table import choose  # here: a fit imports no solver but its own

    chosen, _ = choose(replace(domain, sparse=False), loss, penalty, budget)
    return getattr(chosen, "gives_shape", False)


def inferring(
    cov_type: str,
    solver: Solver,
    domain: Domain,
    loss: Loss,
    penalty: Penalty,
    budget: Budget,
    *,
    automatic: bool,
    even_if_empty: bool = False,
) -> "Sandwich":
    """Return a solver that refines what ``solver`` finds and estimates its covariance; refuse what cannot be.

    ``automatic``: the solver was not asked for by name, so that another may be where inference starts.
    ``even_if_empty``: fit, too, where the summary would probably show nothing.
    """
    from discreet.default.recipe import Recipe  # here: a fit imports no solver but its own
    from discreet.default.table import Facts, recipe_for
    from discreet.inference.sandwich import Sandwich
    from discreet.solvers.coordinates import Preconditioned

    facts = Facts(domain, loss, penalty, budget)
    if automatic and loss.log_link:
        solver = solver_named("gd", domain, loss, penalty, budget)
    elif isinstance(solver, Recipe) or (automatic and facts.is_recipe and budget.is_private):
        recipe = solver if isinstance(solver, Recipe) and not automatic else recipe_for(facts, weighted=False)
        # its own weighted steps refine the start; wide rows would only bring noise to it
        solver = replace(recipe, n_travel=0, n_newton=0, row_radius=min(recipe.row_radius, START_RADIUS))
        if automatic and loss.task == "classification":  # effects settle from any start: no answer is spent on it
            solver = replace(solver, shares=replace(solver.shares, target=0.0))
    elif isinstance(solver, Preconditioned) and not solver.gives_shape:
        solver = solver.solver  # inference estimates scales itself
    return Sandwich(solver, cov_type, even_if_empty=even_if_empty).filled(domain, loss, penalty, budget)
