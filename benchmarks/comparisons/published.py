"""Designs of the literature, and what was published on them: coverage, tests and widths of correct and other methods.

Where a paper counts privacy in mu, epsilon is what makes mu at delta = 1 / n^2. All fits are under ``replace_one``, the
strictest relation. A regularized logistic regression on a census of Ontario was published too; its table is not public.
"""

from typing import NamedTuple

from benchmarks.problems.effects import Design
from discreet.accounting.gaussian import epsilon_of

ROWS, BUDGETS = (100, 200, 500, 1_000, 2_000), (0.1, 0.3, 1.0, 3.0, 10.0)
SLOPE_ROWS, SLOPES = (500, 2_000, 5_000), (0.0, 0.1, 0.2, 0.4)
UNIFORM_ROWS, MUS = 2_000, (0.5, 1.0, 2.0, 5.0)


class Coverage(NamedTuple):
    """Coverage of a logistic slope, nominal .95, by epsilon and n: output perturbation, and repro samples."""

    output: tuple[float, ...]
    repro: tuple[float, ...]


BETA = {
    0.1: Coverage((0.754, 0.778, 0.803, 0.769, 0.796), (0.975, 0.971, 0.984, 0.994, 0.994)),
    0.3: Coverage((0.810, 0.814, 0.795, 0.767, 0.813), (0.983, 0.979, 0.992, 0.994, 0.994)),
    1.0: Coverage((0.831, 0.807, 0.807, 0.824, 0.862), (0.990, 0.986, 0.989, 0.994, 0.996)),
    3.0: Coverage((0.847, 0.859, 0.898, 0.924, 0.934), (0.987, 0.990, 0.992, 0.990, 0.994)),
    10.0: Coverage((0.906, 0.933, 0.946, 0.947, 0.946), (0.981, 0.983, 0.990, 0.991, 0.995)),
}
"""x ~ Beta(1/2, 1/2), coefficients .5 and 2."""
REJECTED = {
    500: {"parametric bootstrap": (0.047, 0.46, 0.988, 1.0), "repro samples": (0.0, 0.13, 0.84, 1.0)},
    2_000: {"parametric bootstrap": (0.078, 1.0, 1.0, 1.0), "repro samples": (0.0, 1.0, 1.0, 1.0)},
    5_000: {"parametric bootstrap": (0.107,)},
}
"""A test of a slope at level .05 and mu = 1, x ~ N(.5, 1), errors of deviation .5: rejected at slopes 0, .1, .2, .4."""
BINNED = {0.5: (0.917, 0.518), 1.0: (0.931, 0.291), 2.0: (0.934, 0.181), 5.0: (0.918, 0.103)}
"""Binned aggregation, three columns uniform on 0 to 10, n = 2,000, errors of deviation 1: coverage and width by mu."""


def for_mu(mu: float, n: int) -> float:
    """Return the epsilon that is mu at delta = 1 / n^2."""
    return round(epsilon_of(mu, 1.0 / n**2), 4)


def beta(epsilon: float, n: int) -> Design:
    """Return a logistic regression on one column."""
    return Design("logistic", n, 2, epsilon, "replace_one", "beta")


def slope(n: int, value: float) -> Design:
    """Return a line through a Gaussian column, at mu = 1."""
    return Design("linear", n, 2, for_mu(1.0, n), "replace_one", "slope", slope=value)


def uniform(mu: float) -> Design:
    """Return least squares on three uniform columns."""
    return Design("linear", UNIFORM_ROWS, 4, for_mu(mu, UNIFORM_ROWS), "replace_one", "uniform")


PUBLISHED = (
    *(beta(epsilon, n) for epsilon in BUDGETS for n in ROWS),
    *(slope(n, value) for n in SLOPE_ROWS for value in SLOPES),
    *map(uniform, MUS),
)
