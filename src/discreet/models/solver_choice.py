"""Which solver ``solver="auto"`` is, and how a name or an object becomes a complete one: from public facts alone.

Each solver's own file has the rules for what its name means (``defaults``, ``filled``); what several of them share is
in ``solvers/default_rules.py``.
"""

from dataclasses import replace
from typing import Annotated, Literal

from discreet.bounds import Domain
from discreet.budget import Budget
from discreet.errors import Unsupported
from discreet.losses.base import Loss
from discreet.parameters import OneOf
from discreet.penalties.base import Penalty
from discreet.solvers.base import COV_TYPES, Solver
from discreet.solvers.registry import SOLVERS, filled, solver_named

ESTIMATE_FIRST = "estimating the mean and covariance first improves accuracy"
Inference = Annotated[str, OneOf("sandwich", "bootstrap")] | Literal[False] | None
"""What ``inference=`` takes."""
Covariance = Annotated[str, OneOf(*COV_TYPES)]
START_ROW = 0.8
"""Where inference starts, rows are shrunk to this many deviations per column: wide ones bring noise to a start that is
refined by unshrunk rows anyway (standard errors over plain ones 3.84 -> 3.30, 2.30 -> 1.99 and 1.51 -> 1.40 for three
linear designs, 80 tables each, at equal coverage)."""
FEW_ROWS = 25
"""Below this many rows per column an L1 penalty is taken to mean that few columns matter, however little signal.

Elsewhere from a signal of 40 on, where greedy steps have scales. Accuracy of ``gcd`` and ``gd`` for J = 26 to 58: IPUMS
.66 and .70, credit default .78 and .79, bank .89 and .88, electricity .65 and .63; at epsilon 0.5 .76 and .76, .82 and
.81, .90 and .90, .75 and .73. Where few of many columns matter: .83 and .74 (6,000 x 300), .94 and .86 (1,000 x 100).
Where all of 300 do, an L1 penalty is the wrong one: .63 and .79."""
MANY_COLUMNS = 50
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
    name, why = (solver, f"{solver} was asked for") if solver != "auto" else automatic(domain, loss, penalty, budget)
    made = solver_named(name, domain, loss, penalty, budget)
    return made, (why, "unset parameters were chosen from declared facts only")


def fills(solver: Solver | str, domain: Domain, loss: Loss, penalty: Penalty, budget: Budget) -> bool:
    """Say whether sparse records are stored with their zeros: narrow ones whose shape would be estimated if dense.

    A few hundred columns have a covariance that can be estimated, whatever the container (sylva, 10,468 x 216, accuracy
    at epsilon 0.5 / 1 / 4: .980 / .984 / .984 filled, .945 / .945 / .973 not). Public facts only: where n is private,
    or a person may have several rows, their number must not decide.
    """
    small = domain.sparse and not domain.grouped and domain.n is not None and domain.n * domain.n_features <= FILLED
    if not small or solver not in ("auto", "whitened") or not budget.is_private:
        return False
    from discreet.solvers.whitened_defaults import form_for  # here: a fit imports no solver but its own

    dense, numbers = replace(domain, sparse=False), loss.task == "regression"
    recoded = loss.movable_target if numbers else not budget.is_pure
    return recoded and form_for(dense, budget, numbers=numbers) == "full" and (penalty.ridge or penalty.separable)


def inferring(
    inference: str, cov_type: str, solver: Solver, domain: Domain, loss: Loss, penalty: Penalty, budget: Budget
) -> Solver:
    """Return a solver that refines what ``solver`` finds and estimates its covariance; refuse what cannot be."""
    from discreet.solvers.refined import Refined  # here: a fit imports no solver but its own
    from discreet.solvers.sandwich import Sandwich
    from discreet.solvers.stage import Stage
    from discreet.solvers.whitened import LENGTHS, Whitened

    if inference == "bootstrap" and loss.n_outputs > 1:
        raise Unsupported("a bootstrap simulates numbers and two classes: use inference='sandwich' for more")
    if isinstance(solver, Refined) or (isinstance(solver, Stage) and not isinstance(solver, Whitened)):
        solver = solver.solver  # one refinement is enough; inference estimates scales itself
    if isinstance(solver, Whitened) and solver.relative_row_norm is not None:
        narrow = min(solver.relative_row_norm, START_ROW)
        solver = replace(solver, relative_row_norm=narrow, lengths=min(solver.lengths, LENGTHS))
        solver = replace(solver, target_rounds=0, calibrate_predictions=0.0)  # refined slopes have no such bias
    return Sandwich(solver, cov_type).filled(domain, loss, penalty, budget)


def has_noisy_moments(domain: Domain, budget: Budget) -> bool:
    """Say whether a second moment's p^2 entries have less than their signal n mu / a: Newton steps lean on it.

    Measured with Newton steps on standardized rows, which penalties with corners still have (whitened ones: below). R^2
    of ``whitened`` and of ``gd``, whose many steps bear a wrong curvature, zero_out, at J / p = n mu / (a p^1.5):
    6,000 x 300 normal columns .09 and .76 (J / p .2), .80 and .91 (.7); melting point .33 and .40 (.13), .40 and .45
    (.26), .46 and .51 (.9), .49 and .52 (3); 4,000 x 50 .87 and .92 (1.9), .76 and .92 (6.8); California housing .30
    and .54 (2.7), .59 and .64 (6.6). RAND health, which is heavy-tailed: -.06 and -.07 (2.3), .01 and -.06 (5.5), .04
    and -.02 (11). The bound n mu / a = p^2 is J / p = 3 for nine columns, 7 for 50 and 14 for 200.
    """
    from discreet.solvers.public_signal import clarity  # here: a fit imports no solver but its own

    return budget.is_private and clarity(domain, budget) < domain.n_features


def wants_more_steps(domain: Domain, budget: Budget) -> bool:
    """Say whether ``gd`` takes a smooth regression further than few Newton steps.

    Up to n mu / a = p^2, and with more than 50 columns up to p^3 / 50. R^2 lost by ``gd`` and by ``whitened``, on
    whitened rows (zero_out). Six fits below and above p^2: California, 500 rows, at epsilon .5 / 1 .19 / .02 and .40 /
    .09, Friedman, 800 rows, .03 / .01 and .10 / .02; RAND health, 1,000 rows, above it: .13 / .09 and .05 / .02. Two to
    four fits of wide tables: 16,000 x 100 correlated columns at epsilon 4 / 16 / 64 .000 / .000 / .000 and .017 / .008
    / .004, with heavy tails .000 and .002 / .001 / .000; 4,000 x 150 at 16 / 64 .002 / .002 and .012 / .006; melting
    point, over what can be learned, at 256 / 1000 .039 / .030 and .066 / .060.
    """
    from discreet.solvers.public_signal import clarity  # here: a fit imports no solver but its own

    columns = domain.n_features
    return budget.is_private and clarity(domain, budget) < columns * max(1.0, columns / MANY_COLUMNS)


def automatic(domain: Domain, loss: Loss, penalty: Penalty, budget: Budget) -> tuple[str, str]:
    """Return the first line of the decision table of ``auto`` that holds. Public facts only."""
    from discreet.solvers.coordinate_defaults import GREEDY_SIGNAL  # here: a fit imports no solver but its own
    from discreet.solvers.declared import is_wide
    from discreet.solvers.public_signal import signal
    from discreet.solvers.whitened_defaults import form_for

    smooth, counts, numbers = penalty.ridge, loss.log_link, loss.task == "regression"
    one_release = not numbers and not domain.grouped and domain.n is not None and loss.proven
    moved = numbers and loss.movable_target
    newton = moved and form_for(domain, budget, numbers=True) == "full"
    wide = is_wide(domain)
    lasso = not smooth and penalty.l1_l2 is not None  # greedy steps know no other penalty with corners, such as a box
    sparse_truth = lasso and domain.n_outputs == 1 and not budget.is_pure
    noisy_moments = numbers and not budget.is_pure and has_noisy_moments(domain, budget)
    more_steps = not budget.is_pure and wants_more_steps(domain, budget)
    few_rows = domain.n is not None and domain.n < FEW_ROWS * domain.n_features
    seen = noisy_moments if numbers else few_rows or signal(domain, budget) >= GREEDY_SIGNAL
    greedy = sparse_truth and seen and not wide
    wide_classes = not numbers and wide and penalty.l1_l2 is not None and not budget.is_pure
    table = (
        (not budget.is_private, "gd", "without noise, full gradients reach the optimum"),
        (counts, "gd", "counts need the declared coordinates"),
        (numbers and not moved, "gd", "this loss needs the declared coordinates"),
        (greedy, "gcd", "an L1 penalty: greedy steps find the few columns that matter"),
        (wide_classes, "whitened", ESTIMATE_FIRST),
        (newton and smooth and more_steps, "gd", "more steps, since second moments are noisy"),
        (newton and (smooth or penalty.separable), "whitened", ESTIMATE_FIRST),
        (numbers and lasso, "gcd", "greedy steps fail least where there is little signal"),
        (not smooth, "gd", "a proximal step follows a penalty that is not smooth"),
        (budget.is_pure and one_release, "objective", "one release is cheapest where noise is pure"),
        (budget.is_pure and (not numbers or wide), "gd", "full batches have the least noise per pass"),
        (True, "whitened", ESTIMATE_FIRST),
    )
    name, reason = next((name, reason) for holds, name, reason in table if holds)
    return name, f"auto chose {name}: {reason}"
