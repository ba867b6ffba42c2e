"""The data-free rules behind ``solver="auto"`` and every unset default: public facts in, a solver out.

Facts: the columns p (with the intercept) and their bounds, n, epsilon, delta, the relation, a declared
row norm, the loss. No rule looks at a record. Training coordinates have |x_j| <= 1.

``typical row norm``
    rho = 0.4 sqrt(sum of squared feature bounds), or the declared row norm where that is smaller. A
    feature within +-1 has a root mean square of 0.58 if uniform, of about 0.3 if one-hot or skewed;
    the worst case, every value at its bound, does not occur in tables of people. Steps and clips made
    for the worst case starve: on six public data sets the mean gap to the non-private model (0: none,
    1: the trivial predictor) was 0.82, 0.53 and 0.37 at epsilon 0.1, 1 and 4 with them, and 0.52, 0.23
    and 0.10 with rho (zero_out, delta 1/n^2). Privacy does not depend on rho: the clip is executed.
``clip``
    C = (typical slope of the loss) rho. A clipped GLM gradient is the gradient of a Huberized convex
    loss, so a tight clip costs little, and the noise is proportional to it.
``step_size``, ``momentum``
    1 / (typical curvature rho^2) with Nesterov's momentum, which is free and makes T steps travel as far
    as T^2 / 4 plain ones.
``n_steps``
    I = n mu / (a sqrt(p)) is the signal-to-noise ratio of one gradient if it got the whole budget. More
    steps divide the budget among them: T = 8 sqrt(I), within [8, 200].
``cd``, ``gcd``
    Clips in proportion to sqrt(M_j). ``cd`` buys M_j with a tenth of the budget and makes 2 to 100 passes (I / 10 for
    numbers, at most 40: more drown in noise; on seven public tables the mean gap at epsilon 1 was 1.5 so, now 0.6);
    ``gcd`` takes 0.4 (n mu / a)^(2/3) greedy steps.
``agd``
    200 cheap rounds, a fifth of each for the choice among 10 steps. Fewer and dearer rounds were worse on three public
    data sets (credit default, bank marketing, electricity): steepest descent needs many.
``svrg``
    3 to 20 anchors with half of the budget, six inner steps from each on a tenth of the records, with momentum.
``output``, ``objective``, ``exponential``
    Rows longer than rho are shrunk onto it and slopes clipped as above (a convex loss still). ``output`` and
    ``exponential`` add the regularizer that is best for coefficients of length 25 / rho; ``objective`` adds lambda =
    0.15 (1 + 1/(4 epsilon)) rho times its noise, or what keeps the curvature's part of the price within a quarter of
    epsilon. Chosen on six public data sets (credit default, electricity, spambase, bank marketing, IPUMS-BR, Adult),
    among some 25 settings.
``whitened``
    In ``solvers/whitened_defaults.py``.
``auto``
    The table in ``automatic``: ``whitened`` wherever it applies.
``epsilon=inf``
    Nothing is noisy: worst-case constants, no clip that bites, many steps with restarts: the non-private
    optimum.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from discreet.accounting.gaussian import mu_of
from discreet.bounds import Domain
from discreet.budget import Budget
from discreet.errors import Unsupported
from discreet.losses import Huber, Poisson, Softmax, Squared
from discreet.losses.constants import gradient_smoothness, lipschitz_within
from discreet.penalties import L2, NoPenalty
from discreet.penalties.base import Penalty
from discreet.solvers.agd import AdaptiveDescent
from discreet.solvers.base import Solver
from discreet.solvers.cd import CoordinateDescent
from discreet.solvers.coordinate_geometry import Geometry
from discreet.solvers.exponential import ExponentialMechanism
from discreet.solvers.gcd import GreedyCoordinateDescent
from discreet.solvers.gd import GradientDescent
from discreet.solvers.gradient_loop import Descent
from discreet.solvers.newton import NewtonDescent
from discreet.solvers.objective import ObjectivePerturbation
from discreet.solvers.output import OutputPerturbation
from discreet.solvers.perturbation_base import OneShot
from discreet.solvers.sgd import StochasticGradientDescent
from discreet.solvers.svrg import VarianceReducedDescent
from discreet.solvers.whitened_defaults import UNKNOWN_N, WIDEST, form_for, whitened_for

NAMES = ("auto", "whitened", "gd", "sgd", "cd", "gcd", "svrg", "agd", "output", "objective", "exponential")

TYPICAL_RMS = 0.4
STEEP = 1.6
MIN_STEPS, MAX_STEPS, LIMIT_STEPS = 8, 200, 5000
SGD_BATCH, SGD_EPOCHS = 1024, 10
TYPICAL_LENGTH, CURVATURE_SHARE = 25.0, 0.25
LIMIT_LOSS = 1e3  # beyond any loss on the way to an optimum
LIMIT_STRENGTH = 1e-9  # without noise any strong convexity will do


def choose_solver(
    solver: Any, domain: Domain, loss: Any, penalty: Penalty, budget: Budget
) -> tuple[Solver, tuple[str, ...]]:
    """A configured solver from a name or a solver object, and the reasons for what was chosen."""
    if not isinstance(solver, str):
        if isinstance(solver, type) or not all(hasattr(solver, name) for name in ("plan", "solve", "settings")):
            raise Unsupported(
                f"solver must be one of {', '.join(NAMES)}, or a solver object: GradientDescent(n_steps=50)"
            )
        return _filled(solver, domain, loss, penalty, budget), ("solver configured by the user",)
    if solver not in NAMES:
        known = ", ".join(NAMES)
        raise Unsupported(f"solver must be one of {known}, or a solver object such as GradientDescent(n_steps=50)")
    name, why = (solver, f"{solver} was asked for") if solver != "auto" else automatic(domain, loss, penalty, budget)
    made = _MAKERS[name](domain, loss, penalty, budget)
    return _filled(made, domain, loss, penalty, budget), (why, "what was left open follows from declared facts alone")


def automatic(domain: Domain, loss: Any, penalty: Penalty, budget: Budget) -> tuple[str, str]:
    """The decision table of ``auto``: the first line that holds. Public facts only."""
    smooth, counts = isinstance(penalty, (NoPenalty, L2)), isinstance(loss, Poisson)
    numbers = loss.task == "regression"
    one_release = not numbers and not domain.grouped and domain.n is not None
    newton = numbers and not counts and not budget.is_pure and form_for(domain, budget, numbers=True) == "full"
    table = (
        (not budget.is_private, "gd", "without noise, full gradients reach the optimum"),
        (counts, "gd", "counts need the declared coordinates"),
        (newton and (smooth or penalty.separable), "whitened", "seeing the data's shape first pays for itself"),
        (numbers and penalty.separable and not smooth, "gcd", "greedy steps fail least where there is little signal"),
        (not smooth, "gd", "a proximal step follows a penalty that is not smooth"),
        (budget.is_pure and one_release, "objective", "one release is cheapest where noise is pure"),
        (budget.is_pure, "gd", "full batches have the least noise a pass"),
        (numbers and (domain.sparse or domain.n_features > WIDEST), "gd", "second moments would not fit"),
        (True, "whitened", "seeing the data's shape first pays for itself"),
    )
    name, reason = next((name, reason) for holds, name, reason in table if holds)
    return name, f"auto chose {name}: {reason}"


def _full_batch(domain: Domain, loss: Any, penalty: Penalty, budget: Budget) -> GradientDescent:
    limit = not budget.is_private
    return GradientDescent(n_steps=step_count(domain, budget), momentum="nesterov", restart=limit)


def _stochastic(domain: Domain, loss: Any, penalty: Penalty, budget: Budget) -> StochasticGradientDescent:
    if domain.n is None:
        raise Unsupported(
            "n is private here: configure StochasticGradientDescent(sampling_probability=...), or declare Bounds(n=...)"
        )
    batch = float(min(domain.n, SGD_BATCH))
    epochs = SGD_EPOCHS if budget.is_private else 10 * SGD_EPOCHS
    return StochasticGradientDescent(n_steps=max(20, math.ceil(epochs * domain.n / batch)), batch_size=batch)


def _coordinate(domain: Domain, loss: Any, penalty: Penalty, budget: Budget) -> CoordinateDescent:
    """Cyclic passes with bought smoothness; two outer rounds, so that the result averages the second half."""
    p = domain.n_features
    average = "uniform" if isinstance(penalty, (NoPenalty, L2)) else "last"  # a mean of iterates has no exact zeros
    if not budget.is_private:
        geometry = Geometry(clip=_limit_clip(domain, loss) * math.sqrt(p))
        return CoordinateDescent(n_inner=LIMIT_STEPS * p, geometry=geometry, schedule="cyclic", average="last")
    slope = 1.5 if loss.task == "classification" else 2.0 * typical_slope(domain, loss)
    geometry = Geometry(relative_clip=slope, smoothness="private")
    passes = min(20.0 if budget.neighbors.sum_factor == 2 else 40.0, max(2.0, information(domain, budget) / 10))
    if loss.task == "classification":
        noise = (
            p**2
            * (budget.neighbors.sum_factor * 1.5) ** 2
            / (2 * loss.smoothness * (_mu(domain, budget) * _n(domain)) ** 2)
        )
        passes = min(100.0, max(2.0, 0.003 * math.log(2.0) / noise))
    inner = max(1, round(passes / 2)) * p
    return CoordinateDescent(n_outer=2, n_inner=inner, geometry=geometry, schedule="cyclic", average=average)


def _greedy(domain: Domain, loss: Any, penalty: Penalty, budget: Budget) -> GreedyCoordinateDescent:
    """T in proportion to (n mu)^(2/3), as the theory has it; declared smoothness, since buying it costs p squares."""
    if not budget.is_private:
        geometry = Geometry(clip=_limit_clip(domain, loss) * math.sqrt(domain.n_features))
        return GreedyCoordinateDescent(n_steps=LIMIT_STEPS, geometry=geometry)
    signal = _n(domain) * _mu(domain, budget) / budget.neighbors.sum_factor
    count = int(min(500, max(4, round(0.4 * signal ** (2 / 3)))))
    geometry = Geometry(relative_clip=TYPICAL_RMS * typical_slope(domain, loss))
    selection = "permute_and_flip" if budget.is_pure else "exponential"
    return GreedyCoordinateDescent(n_steps=count, geometry=geometry, selection=selection, selection_share=0.65)


def _variance_reduced(domain: Domain, loss: Any, penalty: Penalty, budget: Budget) -> VarianceReducedDescent:
    """A few anchors; inner steps on batches of a tenth of the records, or the usual batch where that is more."""
    if domain.n is None:
        raise Unsupported(
            "n is private here: configure VarianceReducedDescent(sampling_probability=...), or declare Bounds(n=...)"
        )
    if not budget.is_private:
        return VarianceReducedDescent(n_epochs=400, n_inner=20, batch_size=max(1.0, domain.n / 4))
    batch = float(min(domain.n, max(SGD_BATCH, domain.n / 10)))
    epochs = max(3, min(20, round(step_count(domain, budget) ** 2 / 2000)))
    return VarianceReducedDescent(n_epochs=epochs, n_inner=6, batch_size=batch, momentum="nesterov")


def _adaptive(domain: Domain, loss: Any, penalty: Penalty, budget: Budget) -> AdaptiveDescent:
    """Many cheap rounds, up to steps that move a margin of a typical row by 2; gradients clipped at rho."""
    return AdaptiveDescent(largest_step=2.0 / typical_row_norm(domain), clip=_adaptive_clip(domain, loss, budget))


def _filled_one_shot(solver: OneShot, domain: Domain, loss: Any, penalty: Penalty, budget: Budget) -> OneShot:
    """Rows shrunk to rho, slopes clipped, and the regularizer by public facts, each where it was left open."""
    if solver.clip is None and solver.radius is None:
        lipschitz_within(loss, domain, None)  # refuses the squared loss without a ball
    if budget.is_private and solver.row_norm is None:
        solver = replace(solver, row_norm=typical_row_norm(domain))
    if budget.is_private and solver.clip is None and solver.radius is None and loss.n_outputs == 1:
        solver = replace(solver, clip=typical_slope(domain, loss) * (solver.row_norm or domain.row_norm))
    if solver.regularization is not None or getattr(solver, "n_steps", None) is not None:
        return solver
    strength = LIMIT_STRENGTH
    if budget.is_private:
        choose = objective_strength if isinstance(solver, ObjectivePerturbation) else output_strength
        strength = choose(solver, domain, loss, budget)
    missing = strength - penalty.strong_convexity
    return replace(solver, regularization=missing) if missing > 0 else solver


def output_strength(solver: OneShot, domain: Domain, loss: Any, budget: Budget) -> float:
    """The best regularizer for coefficients of length ``TYPICAL_LENGTH`` / rho: about how long a good model's are."""
    known = replace(domain, n=_n(domain))
    settings = {"clip": solver.clip, "row_norm": solver.row_norm}
    radius = solver.radius or TYPICAL_LENGTH / typical_row_norm(domain)
    made = OutputPerturbation.for_diameter(known, loss, radius=radius, budget=budget, **settings)
    return made.regularization or LIMIT_STRENGTH


def objective_strength(solver: OneShot, domain: Domain, loss: Any, budget: Budget) -> float:
    """lambda / n: 0.15 (1 + 1/(4 epsilon)) rho times the noise, and at least what keeps the curvature to a quarter."""
    n = _n(domain)
    problem = solver.problem(1.0 / n, n)  # lambda = 1, at which the curvature is beta
    noise = budget.neighbors.sum_factor * problem.bound_for(loss, domain) / _mu(domain, budget)
    beta, rank = problem.perturbation_for(loss, domain).curvature, max(1, domain.n_outputs - 1)
    least = 2 * beta / (rank + 1) / math.expm1(min(CURVATURE_SHARE * budget.epsilon / rank, 700.0))
    return max(0.15 * (1 + 0.25 / budget.epsilon) * typical_row_norm(domain) * noise, least) / n


def _filled_exponential(
    solver: ExponentialMechanism, domain: Domain, loss: Any, penalty: Penalty, budget: Budget
) -> ExponentialMechanism:
    """Rows shrunk to rho, the best regularizer for the typical length, and a thousandth of delta for the chain."""
    if solver.candidates is not None:
        return solver
    if budget.is_private and not budget.is_pure:
        distance = 1e-3 * budget.delta / (1 + math.exp(min(budget.epsilon, 700.0)))
        solver = replace(solver, total_variation=solver.total_variation or distance)
    if solver.radius is None:
        lipschitz_within(loss, domain, None)
    if budget.is_private and solver.row_norm is None and solver.radius is None:
        solver = replace(solver, row_norm=typical_row_norm(domain))
    if solver.regularization is not None or budget.is_pure or domain.n_outputs > 1:
        return solver
    best: float | None = LIMIT_STRENGTH
    if budget.is_private:
        seen = replace(domain, n=_n(domain), row_norm=solver.row_norm or domain.row_norm)
        radius = solver.radius or TYPICAL_LENGTH / typical_row_norm(domain)
        best = ExponentialMechanism.for_diameter(seen, loss, radius=radius, budget=budget).regularization
    missing = (best or 0.0) - penalty.strong_convexity
    return replace(solver, regularization=missing) if missing > 0 else solver


def _whitened(domain: Domain, loss: Any, penalty: Penalty, budget: Budget) -> Solver:
    """Return the stage that fits the facts: descent for classes, Newton steps for numbers."""
    if isinstance(loss, Poisson):
        raise Unsupported("whitened coordinates know no Poisson loss: use solver='gd'")
    if budget.is_pure:
        raise Unsupported("whitened coordinates need a delta above 0: leave delta out, or use solver='objective'")
    made = whitened_for(domain, loss, budget)
    if not isinstance(penalty, (NoPenalty, L2)) and not isinstance(made.solver, NewtonDescent):
        raise Unsupported("whitened coordinates know no penalty but l2: use solver='gcd', 'cd' or 'gd' for this one")
    return made


_MAKERS: dict[str, Callable[[Domain, Any, Penalty, Budget], Solver]] = {
    "whitened": _whitened,
    "gd": _full_batch,
    "sgd": _stochastic,
    "cd": _coordinate,
    "gcd": _greedy,
    "svrg": _variance_reduced,
    "agd": _adaptive,
    "output": lambda *facts: OutputPerturbation(),  # all that is open is filled below
    "objective": lambda *facts: ObjectivePerturbation(),
    "exponential": lambda *facts: ExponentialMechanism(),
}


def _n(domain: Domain) -> int:
    return domain.n if domain.n is not None else UNKNOWN_N


def _mu(domain: Domain, budget: Budget) -> float:
    """The budget as Gaussian DP; a pure one buys Laplace noise in the L1 norm: as if mu were epsilon / sqrt(p)."""
    if budget.is_pure:
        return budget.epsilon / math.sqrt(domain.n_features * domain.n_outputs)
    return mu_of(budget.epsilon, budget.delta)


def step_count(domain: Domain, budget: Budget) -> int:
    """How many full-batch gradients to buy."""
    if not budget.is_private:
        return LIMIT_STEPS
    return int(min(MAX_STEPS, max(MIN_STEPS, round(8.0 * math.sqrt(information(domain, budget))))))


def information(domain: Domain, budget: Budget) -> float:
    """I: the signal-to-noise ratio of one gradient that gets the whole budget."""
    coordinates = domain.n_features * domain.n_outputs
    return _n(domain) * _mu(domain, budget) / (budget.neighbors.sum_factor * math.sqrt(coordinates))


def typical_row_norm(domain: Domain) -> float:
    """rho, from declared bounds."""
    return min(domain.row_norm, TYPICAL_RMS * math.sqrt(float(np.sum(np.square(domain.feature_bounds)))))


def typical_slope(domain: Domain, loss: Any) -> float:
    """The size of |f'| on most records early in training, in training coordinates."""
    if isinstance(loss, Huber):
        return float(loss.width)
    if isinstance(loss, Poisson):
        return 0.5 * max(1.0, domain.target_bound / 4)
    return 0.7 if isinstance(loss, Softmax) else 0.5


def typical_curvature(domain: Domain, loss: Any) -> float:
    """The loss's curvature: its bound, except for Poisson's, whose bound exp(limit) is never met in the mean."""
    return max(1.0, domain.target_bound / 4) if isinstance(loss, Poisson) else float(loss.smoothness)


def _filled(solver: Any, domain: Domain, loss: Any, penalty: Penalty, budget: Budget) -> Any:
    """Fill what a solver of ours leaves open; others come as they are."""
    if isinstance(solver, OneShot):
        return _filled_one_shot(solver, domain, loss, penalty, budget)
    if isinstance(solver, ExponentialMechanism):
        return _filled_exponential(solver, domain, loss, penalty, budget)
    if isinstance(solver, (CoordinateDescent, GreedyCoordinateDescent)):
        geometry = solver.geometry
        if geometry.clip is not None or geometry.relative_clip is not None:
            return solver
        make = _coordinate if isinstance(solver, CoordinateDescent) else _greedy
        made = make(domain, loss, NoPenalty(), budget).geometry
        return replace(solver, geometry=replace(geometry, clip=made.clip, relative_clip=made.relative_clip))
    if isinstance(solver, AdaptiveDescent):
        if not budget.is_private and solver.loss_bound is None:
            solver = replace(solver, loss_bound=LIMIT_LOSS)
        return solver if solver.clip is not None else replace(solver, clip=_adaptive_clip(domain, loss, budget))
    if not isinstance(solver, (Descent, VarianceReducedDescent)):
        return solver
    rho = typical_row_norm(domain)
    if loss.task == "regression":  # features are not centered: their mean's direction is steep, and residuals grow
        rho = min(domain.row_norm, STEEP * rho)
    step = 1.0 / (typical_curvature(domain, loss) * rho**2 if budget.is_private else gradient_smoothness(loss, domain))
    return replace(
        solver,
        clip=_typical_clip(domain, loss, budget) if solver.clip is None else solver.clip,
        step_size=step if solver.step_size is None else solver.step_size,
    )


def _adaptive_clip(domain: Domain, loss: Any, budget: Budget) -> float:
    """Twice the typical clip: a tighter one turns the gradient away from where the losses that are compared descend."""
    return _typical_clip(domain, loss, budget) * (2.0 if budget.is_private else 1.0)


def _typical_clip(domain: Domain, loss: Any, budget: Budget) -> float:
    """(typical slope) rho, or beyond any gradient where there is no noise to fear."""
    return typical_slope(domain, loss) * typical_row_norm(domain) if budget.is_private else _limit_clip(domain, loss)


def _limit_clip(domain: Domain, loss: Any) -> float:
    """Beyond any gradient on the way to an optimum, within the lattice's precision."""
    margins = 16.0 if isinstance(loss, Squared) else math.inf
    return float(loss.lipschitz_for(domain.target_bound, margins)) * domain.row_norm
