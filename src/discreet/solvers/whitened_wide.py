"""The composition that ``solver="whitened"`` stands for where records are sparse or very wide.

    Declared( Nesterov steps of 1 / (a bound on the curvature) )      rows shrunk onto their estimated typical length

A row that is no longer than a typical one feels the noise of its own length only, never that of all p columns: how far
predictions stand out depends on the reach n mu / a, not on J = n mu / (a sqrt(p)). Figures: accuracy in floating-point
sketches on BASEHOCK (1,594 x 4,862), GISETTE (800 x 5,000) and Dorothea (920 x 100,000; 92 % of one class), means of 3
fits; zero_out, delta 1/n^2.

``n_steps`` 2.2 sqrt(reach) within [8, 200]
    At reach 100 / 200 / 360 / 700 / 1300: 1.5 gave .82 .87 .90 .93 .96, 2.2 gave .83 .89 .92 .94 .97, 3 gave .84 .89
    .91 .94 .96; twice as many lose .02 to .10.
Steps 1 / (sup f'' row^2), Nesterov's momentum
    Rows are shrunk, so this bounds the curvature of any table. A measured curvature (.2 to .4 of the bound: the mean of
    rows that cannot be centered) would save a third of the steps. Assuming 1 / length of a row, ten to twenty times too
    little, brought accuracy down to .5.
``relative_clip`` 0.5 |f'(0)|
    0.25 and 1 of it were worse by .01 to .05: at first every record is clipped, and pulls alike.
``constant`` max(.3, 30 / reach)
    In units of the features' length. Below a reach of 100 more of it: Dorothea at epsilon .02 / .1 had .63 / .88 with
    .3, and .917, the larger class, with it.
Scales are left out
    Most columns of such a table are rarer than their noise.
Numbers: 1.15 sqrt(reach) steps within [30, 200], ``relative_clip`` 0.2 half target ranges; plain below a reach of 40
    Squared losses do not level off, so noise wants fewer steps. R^2 at epsilon 1 / 4, two fits, on BASEHOCK and GISETTE
    (their class as a number) and on numbers of words (4,000 x 4,000, 200 relevant): .30 / .47, .34 / .40 and .09 / .26.
    50 steps .49 / .57, .47 / .57 and - / .24; 60 at epsilon 1 on the last -.03; sqrt(reach) of them at epsilon 1 .15,
    .10 and .07. A clip of 0.1 halves R^2 at epsilon 1. At epsilon 1000 .66 on the last, with clips of 0.2 and of 0.4.
    Gradient steps in declared coordinates (one fit): -.72 / -.28 on BASEHOCK, .01 / .03 on words; sums shrunk by
    empirical Bayes .05 / .13 on words, greedy steps .11 / .27. Below a reach of 20 a noisy length of rows alone made
    R^2 -289.
"""

import math

from discreet.accounting.gaussian import mu_of
from discreet.bounds import Domain
from discreet.budget import Budget
from discreet.losses.base import Loss
from discreet.solvers.declared import Declared
from discreet.solvers.default_rules import count_of
from discreet.solvers.gd import GradientDescent
from discreet.solvers.gradient_loop import slope_at_zero

LEAST_STEPS, MOST_STEPS = 8, 200
LARGEST, NUMBERS_CLIP = 100.0, 0.2


def reach(domain: Domain, budget: Budget) -> float:
    """Return n mu / a, per output: how far a mean of records of length 1 stands out of the noise."""
    n = count_of(domain) / math.sqrt(domain.n_outputs)
    return n * mu_of(budget.epsilon, budget.delta) / budget.neighbors.sum_factor


def wide_steps(domain: Domain, loss: Loss, budget: Budget) -> Declared:
    """Return safe steps with Nesterov's momentum, for rows of their typical length."""
    far, numbers = reach(domain, budget), loss.task == "regression"
    least, each = (30, 1.15) if numbers else (LEAST_STEPS, 2.2)
    inner = GradientDescent(
        n_steps=int(min(MOST_STEPS, max(least, round(each * math.sqrt(far))))),
        momentum="nesterov",
        relative_clip=NUMBERS_CLIP if numbers else 0.5 * slope_at_zero(loss),
        radius=LARGEST,
    )
    return Declared(inner, constant=max(0.3, 30.0 / far))
