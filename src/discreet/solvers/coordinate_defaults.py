"""What ``solver="cd"`` and ``solver="gcd"`` stand for: every number from public facts alone, with its reason.

Coordinate steps are as long as their column is narrow, so they want to know its scale: where there is signal, a stage
that estimates centers and scales stands in front. J = n mu / (a sqrt(p)) is ``public_signal``'s. Figures: excess loss
over the trivial model's (20,000 x 20, ``zero_out``, epsilon 0.1 / 1 / 4, J = 85 / 790 / 2800, means of 2 fits on *even*
and *uneven* columns: ``benchmarks tuned``).

``Whitened`` for cd from J = 10 on with an L2 penalty or none, ``Standardized`` with others, and for gcd from J = 40 on
    cd, labels, last iterate: even .26 .008 .0002 without a stage, .03 .008 .002 standardized; uneven .82 .39 .17 and
    .44 .12 .06; whitened and averaged, ten fits on other seeds: even .055 .002 .0008, uneven .24 .012 .0013. gcd,
    labels: even .48 .17 .08 without and .07 .003 .001 standardized, uneven 2.2 2.2 2.4 and .48 .14 .11. cd, numbers,
    uneven: .74 .30 .28 without, .26 .18 .18 standardized, .15 .003 .0001 whitened. In whitened coordinates L2 is not
    separable: cd follows it by ``parabolas_above``. Tables at epsilon 1, standardized and whitened: bank .05 and .06,
    credit default .02 and .05, electricity .16 and .003 (gap, 20 passes in two rounds).
Passes of cd: labels 10 (J / 85)^0.4 within [4, 30], all iterates averaged; with corners, where a mean has no exact
zeros, J / 33 within [4, 35] and the last; numbers 24 (J / 85)^(1/3) within [10, 50], the second half averaged
    Labels, even, epsilon 1, standardized: .009 with the last of 25 passes, .0013 with their mean. Even columns want few
    passes, uneven ones many: at epsilon 1 14 leave .0015 / .015, 20 .0018 / .013, 40 .0035 / .005 (clips of 1 to 1.4).
Rows are shrunk at 1.3 sqrt(p) standard deviations
    Coordinates are clipped one by one, so shrinking rows saves no noise: at their typical length it tripled the excess
    on even columns at epsilon 1 and 4. But it bounds the curvature: where all columns are at their bounds at once, mean
    squares, which are clipped, come out at .35 of what they are, and M_j with them. Rows of 1.5 sqrt(p) left 2.25 M_j
    there, more than steps of 1 / M_j bear (columns that are all equal, epsilon 1000: 3.7 times the trivial excess, 0
    with 1.3; four fifths of them equal: 4.1 and 0). On the tables above the two are within .003 of each other.
Steps of cd: (K / 4)^2 / M_j where K = n mu / (a p) is below 4
    What is left of the noise is clip^2 passes / K^2 of the target's variance with whole steps (800 x 1000 at epsilon 4:
    R^2 -74). Labels with an L1 penalty, excess of which 1 is a model without columns, four fits: 1,000 x 100 at K = 1.2
    / 4.2 1.63 / .32 with whole steps, .92 / .32 so; madelon at K = .6 / 2.0 3.5 / 1.25 and 1.01 / .80.
Steps of gcd: 0.85 J, at least 8, from J = 85 on 72 (J / 85)^0.36, at most 200; half of the budget for choices
    Even columns want few, uneven ones many. Labels at J = 395, five fits, 80 / 120 / 200 steps: even .006 / .011 /
    .015, uneven .24 / .21 / .17; at J = 790, 110 / 160 / 200: .004 / .004 / .006 and .19 / .16 / .15. Shares of 0.2 and
    0.5 differ by less than noise.
``relative_clip`` 0.5 (J / 85)^0.45 within [0.4, 1.6], for numbers 0.4 (J / 85)^0.35 within [0.4, 2.5]
    In root mean squares of a column, times the slope: clips that hardly bite where there is signal for them.
``Declared`` below J = 10 (cd) and J = 40 (gcd)
    cd: two passes of steps that are at most (J / 10)^2 as long as bounds allow, and shorter where K says so. gcd: 0.4
    (n mu / a)^(2/3) steps, the order of the theory, with 0.65 of the budget for choices and a clip of 0.5 (numbers:
    0.3) root mean squares; M_j start from what columns that are all alike would have, and double where a step was too
    long. On sparse problems (replace_one), epsilon 1 / 4: 800 x 100, accuracy .85 / .92 (declared M_j: .83 / .81;
    standardized .67 / .89; gd .62 / .76); 800 x 1000, lasso, R^2 .04 / .93 (.00 / .13; .00 / .38; -.04 / .00).
Pure budgets, and losses whose targets cannot be recoded
    Declared smoothness, no stage.
"""

import math

from discreet.bounds import Domain
from discreet.budget import Budget
from discreet.losses.base import Loss
from discreet.penalties.base import Penalty
from discreet.solvers.base import Solver
from discreet.solvers.declared import is_wide
from discreet.solvers.signal import Signal
from discreet.solvers.stage import Stage

LEAST_SIGNAL, GREEDY_SIGNAL = 10.0, 40.0
ROW = 1.3


def can_be_staged(domain: Domain, loss: Loss, penalty: Penalty, budget: Budget) -> bool:
    """Say whether a stage can recode the records for coordinate steps."""
    possible = penalty.separable and domain.n_outputs == 1 and (loss.task == "classification" or loss.movable_target)
    return possible and budget.is_private and not budget.is_pure


def few_greedy_steps(domain: Domain, loss: Loss, budget: Budget) -> tuple[int, float]:
    """Return how many coordinates gcd chooses where there is little signal, and their clip."""
    found = Signal.of(domain, budget).per_row * math.sqrt(domain.n_features)
    return int(min(100, max(4, round(0.4 * found ** (2 / 3))))), 0.5 if loss.task == "classification" else 0.3


def passes(domain: Domain, loss: Loss, penalty: Penalty, budget: Budget) -> int:
    """Return how often cd goes over the coordinates of recoded records."""
    found = Signal.of(domain, budget).per_row
    if loss.task == "regression":
        return int(min(50, max(10, round(24.0 * (found / 85.0) ** (1 / 3)))))
    if penalty.ridge:
        return int(min(30, max(4, round(10.0 * (found / 85.0) ** 0.4))))
    return int(min(35, max(4, round(found / 33.0))))


def step_length(domain: Domain, budget: Budget) -> float:
    """Return gamma of cd: shorter steps where a coordinate has little signal of its own."""
    return min(1.0, (Signal.of(domain, budget).per_coefficient / 4.0) ** 2)


def greedy_steps(domain: Domain, budget: Budget) -> int:
    """Return how many coordinates gcd chooses."""
    found = Signal.of(domain, budget).per_row
    return int(min(200, max(8, round(0.85 * min(found, 85.0) * max(1.0, found / 85.0) ** 0.36))))


def coordinate_clip(domain: Domain, loss: Loss, budget: Budget) -> float:
    """Return the clip of recoded coordinates, in root mean squares of a column."""
    found = Signal.of(domain, budget).per_row
    if loss.task == "classification":
        return float(min(1.6, max(0.4, 0.5 * (found / 85.0) ** 0.45)))
    return float(min(2.5, max(0.4, 0.4 * (found / 85.0) ** 0.35)))


def staged(solver: Solver, domain: Domain, loss: Loss, penalty: Penalty) -> Stage:
    """Return the stage that coordinate steps run in."""
    from discreet.solvers.standardized import Standardized
    from discreet.solvers.whitened import Whitened

    if penalty.ridge and not is_wide(domain) and solver.name == "cd":
        return Whitened(solver, calibrate_probabilities=False)
    return Standardized(solver, relative_row_norm=ROW)
