"""The data-free rules behind ``solver="auto"`` and every unset default. Public facts in, a solver out.

Facts: p (with the intercept), n, epsilon, delta, the relation, the declared row norm R, the loss. No
rule looks at a record. Training coordinates have |x_j| <= 1.

The rules, and why:

``clip``
    C = c R with R the declared row norm, c half of the loss's typical slope. Real rows are shorter
    than the bound R, and noise is proportional to C: clipping at half the worst case costs little
    bias (a clipped GLM gradient is the gradient of a Huberized convex loss) and halves the noise.
``step_size`` and ``momentum``
    1/beta with beta = sup f'' R^2 is safe for every data set but slow; Nesterov's momentum, which is
    free, makes T steps travel as far as T^2/4 plain ones.
``n_steps``
    Information I = n mu / (a sqrt(p)): gradient signal over noise if the budget bought one step.
    More steps divide the same budget; T grows with I and is kept within [MIN_STEPS, MAX_STEPS].
``auto``
    Full batches: at equal budget they have the least noise a pass, and their price is exact.
    Sampled batches only where a full pass is dear (n p above ``LARGE``).
``epsilon=inf``
    Nothing is noisy: no clip that bites, many steps; the non-private optimum.
"""

import math
from dataclasses import replace
from typing import Any

from discreet.accounting.gaussian import mu_of
from discreet.bounds import Domain
from discreet.budget import Budget
from discreet.errors import Unsupported
from discreet.losses.constants import gradient_smoothness
from discreet.penalties.base import Penalty
from discreet.solvers.base import Solver
from discreet.solvers.descent import Descent
from discreet.solvers.gd import GradientDescent
from discreet.solvers.sgd import StochasticGradientDescent

MIN_STEPS, MAX_STEPS = 10, 200
LIMIT_STEPS = 5000
CLIP_SHARE = 0.5
SGD_EPOCHS = 10
SGD_BATCH = 1024
LARGE = 10**9

NAMES = ("auto", "gd", "sgd")


def choose_solver(
    solver: Any, domain: Domain, loss: Any, penalty: Penalty, budget: Budget
) -> tuple[Solver, tuple[str, ...]]:
    """A configured solver from a name or a solver object, and the reasons for what was chosen."""
    if not isinstance(solver, str):
        return _with_defaults(solver, domain, loss, budget), ("solver configured by the user",)
    if solver not in NAMES:
        raise Unsupported(f"solver must be one of {', '.join(NAMES)}, or a solver object such as GradientDescent(n_steps=50)")
    if solver == "auto":
        large = domain.n is not None and domain.n * domain.n_features > LARGE
        chosen = "sgd" if large and budget.is_private else "gd"
        why = f"auto chose {chosen}: " + ("a full pass is dear at this size" if large else "full batches have the least noise a pass")
    else:
        chosen, why = solver, f"{solver} was asked for"
    made = stochastic(domain, budget) if chosen == "sgd" else GradientDescent(momentum="nesterov", n_steps=steps(domain, budget))
    return _with_defaults(made, domain, loss, budget), (why, "clip, step size and steps from declared facts alone")


def steps(domain: Domain, budget: Budget) -> int:
    """How many full-batch gradients to buy."""
    if not budget.is_private:
        return LIMIT_STEPS
    mu = 1.0 / budget.epsilon if budget.is_pure else mu_of(budget.epsilon, budget.delta)
    n = domain.n if domain.n is not None else 10_000
    information = n * mu / (budget.neighbors.sum_factor * math.sqrt(domain.n_features * domain.n_outputs))
    return int(min(MAX_STEPS, max(MIN_STEPS, round(2.0 * math.sqrt(information)))))


def stochastic(domain: Domain, budget: Budget) -> StochasticGradientDescent:
    """DP-SGD with a batch and a number of steps from n alone."""
    if domain.n is None:
        raise Unsupported("n is private here: configure StochasticGradientDescent(sampling_probability=...), or declare Bounds(n=...)")
    batch = float(min(domain.n, SGD_BATCH))
    epochs = SGD_EPOCHS if budget.is_private else 100
    return StochasticGradientDescent(n_steps=max(20, math.ceil(epochs * domain.n / batch)), batch_size=batch, average="suffix")


def clip(domain: Domain, loss: Any, budget: Budget) -> float:
    """The default bound on a record's gradient."""
    worst = loss.lipschitz_for(domain.target_bound, domain.row_norm) * domain.row_norm
    if not budget.is_private:
        # far beyond any gradient met on the way to an optimum; the lattice keeps its precision
        return 16.0 * worst
    return CLIP_SHARE * min(worst, 2.0 * domain.row_norm)


def _with_defaults(solver: Any, domain: Domain, loss: Any, budget: Budget) -> Any:
    """Fill what a descent leaves open; other solvers come as they are."""
    if not isinstance(solver, Descent):
        return solver
    filled = solver
    if filled.clip is None:
        filled = replace(filled, clip=clip(domain, loss, budget))
    if filled.step_size is None:
        filled = replace(filled, step_size=1.0 / gradient_smoothness(loss, domain))
    return filled
