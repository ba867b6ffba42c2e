"""The noise that a rho buys: never less than its zCDP needs, and no more than a hair above."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from discreet.testing import seeded
from tests.covering import covering
from tests.replaying import window
from tests.solvers.agd.cases import (
    CHOICE,
    GRADIENT,
    NOISY_MAX,
    RELATIONS,
    ask_choice,
    ask_gradient,
    large_budget,
    opened,
    realized_rho,
)

RHOS = [1e-9, 3e-5, 0.02, 0.7, 11.0]
SIGNIFICANCE = 1e-9


def deviation_p(values, sigma):
    """How well N(0, sigma^2) explains the spread, from both sides."""
    statistic = float(np.sum(np.square(values / sigma)))
    return 2 * min(stats.chi2.cdf(statistic, values.size), stats.chi2.sf(statistic, values.size))


def gradient_errors(relation, rho, clip, repeats=40, p=100):
    """Released minus exact sums, in real units."""
    rng = np.random.default_rng(0)
    with seeded(11), window() as seen:
        curator = opened(large_budget(relation), X=rng.uniform(-1, 1, (6, p)), y=rng.choice([-1, 1], 6))
        answers = [ask_gradient(curator, rho, clip) for _ in range(repeats)]
    exact = [m.exact.ravel() * m.unit.step for m in seen]
    return np.concatenate([a - e for a, e in zip(answers, exact, strict=True)]), seen


@pytest.mark.statistical
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize(("rho", "clip"), [(1e-9, 3.0), (0.02, 0.4), (11.0, 1e-3)])
def test_a_gradient_has_the_noise_of_its_rho(relation, rho, clip):
    errors, seen = gradient_errors(relation, rho, clip)
    a = 2 if relation == "replace_one" else 1
    sigma = a * clip / math.sqrt(2 * rho)
    assert deviation_p(errors, sigma) > SIGNIFICANCE
    assert deviation_p(errors, 1.3 * sigma) < SIGNIFICANCE
    assert deviation_p(errors, sigma / 1.3) < SIGNIFICANCE
    assert all(realized_rho(m) <= Fraction(rho) for m in seen)


@covering(("choice", [CHOICE, NOISY_MAX]), ("rho", RHOS), ("relation", RELATIONS))
def test_each_answer_costs_its_rho_and_little_less(relation, rho, choice):
    with window() as seen:
        curator = opened(large_budget(relation), (GRADIENT, choice))
        ask_gradient(curator, rho, 0.3)
        ask_choice(curator, rho, 2.0)
    for measurement in seen:
        assert measurement.factor == (2 if relation == "replace_one" else 1)
        cost = realized_rho(measurement, choice.mechanism)
        assert Fraction(rho) * (1 - Fraction(1, 10**4)) <= cost <= Fraction(rho)


@covering((("choice", "cost"), [(CHOICE, 8), (NOISY_MAX, 2)]), ("relation", RELATIONS))
def test_a_choice_has_the_scale_of_its_rho(relation, choice, cost):
    rho, bound = 0.03, 3.0
    with window() as seen:
        curator = opened(large_budget(relation), (choice,))
        ask_choice(curator, rho, bound)
    unit = seen[0].unit
    a = 2 if relation == "replace_one" else 1
    scale = math.ldexp(unit.step, unit.m)  # of the noise, or of the exponential's weights, in units of loss
    assert scale == pytest.approx(a * bound / math.sqrt(cost * rho), rel=1e-4)
    assert scale >= a * bound / math.sqrt(cost * rho)


def test_answers_of_unlike_rho_do_not_share_a_lattice():
    """Noise is kept with its lattice: the second answer at a clip must not get the first one's."""
    asked = [(ask_gradient, 0.5), (ask_choice, 0.5), (ask_gradient, 1e-4), (ask_choice, 1e-4), (ask_gradient, 0.5),
             (ask_choice, 3e-7), (ask_gradient, 3e-7), (ask_gradient, 0.5 * (1 + 1e-3))]  # fmt: skip
    with window() as seen:
        curator = opened(large_budget())
        for ask, rho in asked:
            ask(curator, rho, 0.7)
    for measurement, (_, rho) in zip(seen, asked, strict=True):
        assert realized_rho(measurement) == pytest.approx(rho, rel=1e-4)
        assert realized_rho(measurement) <= Fraction(rho)
