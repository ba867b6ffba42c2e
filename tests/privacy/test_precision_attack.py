"""Attacks on the last bits (Haney, Desfontaines, Hartman, Shrestha & Hay 2022) at a claimed (1, 1e-6).

The event "0 < y < 1/4 and y is no multiple of 2^-53" never happens for 1 + float noise, but often for
0 + float noise. The lattice's release is a fixed function of one noisy integer, so it gives nothing away.
"""

import numpy as np
import pytest
from scipy import stats

from discreet.accounting.calibration import calibrate
from discreet.accounting.plan import Plan, Release
from discreet.accounting.priced_plan import price_plan
from discreet.bounds import Bounds
from discreet.budget import Budget
from discreet.curator.lattice.entropy import SeededEntropy, SystemEntropy, use_entropy
from discreet.curator.lattice.lattice import PRIVATE_N_CAP, unit_for
from discreet.curator.lattice.noise import discrete_laplace, rounded_gaussian
from discreet.curator.private_data import PrivateData
from discreet.losses import Logistic

EPSILON, DELTA, DRAWS = 1.0, 1e-6, 1_000_000
BUDGET = Budget(EPSILON, DELTA, "add_remove")
COUNT = Plan([Release("noisy_count", 1)])
pytestmark = pytest.mark.statistical


def off_grid(y):
    scaled = y * 2.0**53
    return (y > 0) & (y < 0.25) & (scaled != np.floor(scaled))


def lowest_bit(y):
    """The exponent of a double's lowest set bit."""
    mantissa, exponent = np.frexp(y)
    whole = (mantissa * 2.0**53).astype(np.int64)
    return exponent - 53 + np.log2(np.maximum(whole & -whole, 1)).astype(int)


def epsilon_lower_bound(hits, others, draws, delta=DELTA, level=0.025):
    """Clopper-Pearson: what epsilon must at least be, given how often an event happened on two neighbors."""
    low = stats.beta.ppf(level, hits, draws - hits + 1) if hits else 0.0
    high = stats.beta.isf(level, others + 1, draws - others) if others < draws else 1.0
    return max(0.0, float(np.log(max(low - delta, 1e-300) / high)))


def haney(zero, one, level=0.025):
    return epsilon_lower_bound(int(off_grid(zero).sum()), int(off_grid(one).sum()), zero.size, level=level)


def learned(zero, one):
    """The best event among last-bit positions, found on one half of the draws and tried on the other."""
    half = zero.size // 2
    near = [y[(y > 0) & (y < 0.25)] for y in (zero[:half], one[:half], zero[half:], one[half:])]
    counts = [np.bincount(np.clip(lowest_bit(y) + 200, 0, 200), minlength=201) for y in near]
    chosen = counts[0] > 3 * (counts[1] + 1)
    return epsilon_lower_bound(int(counts[2][chosen].sum()), int(counts[3][chosen].sum()), half)


def lattice_release(records, draws, source, pure=False):
    """``Curator.noisy_count``'s expression, many times over; the next test holds it to that."""
    budget = Budget(EPSILON, 0.0 if pure else DELTA, "add_remove")
    unit = unit_for(calibrate(COUNT, budget), 1, 1.0, PRIVATE_N_CAP)
    noise = (discrete_laplace if pure else rounded_gaussian)(draws, unit.m, source)
    return (unit.bound * records + noise) * unit.step


@pytest.mark.parametrize("pure", [False, True], ids=["gaussian", "laplace"])
def test_this_is_the_curators_expression(pure):
    bounds = Bounds(1.0, classes=(0, 1))
    for records in (0, 1, 5):
        data = PrivateData(np.ones((records, 1)), [0] * records, bounds)
        budget = Budget(EPSILON, 0.0 if pure else DELTA, "add_remove")
        with use_entropy(SeededEntropy(11)):
            answer = data.open(price_plan(COUNT, budget), Logistic()).noisy_count()
        assert answer == lattice_release(records, 1, SeededEntropy(11), pure)[0]


def test_a_gradient_is_released_by_the_same_expression():
    bounds = Bounds(1.0, classes=(0, 1))
    plan = Plan([Release("noisy_gradient", 1, clip=1.0)])
    X = np.array([[1.0, -0.5]])
    budget = Budget(EPSILON, DELTA, "zero_out")
    with use_entropy(SeededEntropy(5)):
        answer = (
            PrivateData(X, [1], bounds).open(price_plan(plan, budget), Logistic()).noisy_gradient(np.zeros(3), clip=1.0)
        )
    unit = unit_for(calibrate(plan, budget), 1, 1.0, 1)
    integers = np.rint(answer / unit.step).astype(np.int64)
    assert (integers * unit.step == answer).all()
    exact = integers - rounded_gaussian(3, unit.m, SeededEntropy(5))
    assert np.allclose(exact * unit.step, [-0.5, 0.25, -0.5], atol=1e-4)  # -y sigmoid(0) x, unclipped


@pytest.mark.parametrize("pure", [False, True], ids=["gaussian", "laplace"])
def test_the_lattice_shows_nothing(pure):
    """At a confidence of 1 - 1e-6, since the ideal Gaussian itself prefers zero here, by a true log-ratio of 0.02."""
    zero, one = (lattice_release(records, DRAWS, SystemEntropy(), pure) for records in (0, 1))
    assert haney(zero, one, level=1e-6) <= (EPSILON if pure else 0.0)
    assert learned(zero, one) <= EPSILON


def float_releases():
    g = np.random.default_rng()
    sigma = calibrate(COUNT, BUDGET)
    return {
        "normal": lambda x: x + sigma * g.standard_normal(DRAWS),
        "sum of two normals": lambda x: x + sigma * (g.standard_normal(DRAWS) + g.standard_normal(DRAWS)) / np.sqrt(2),
        "laplace": lambda x: x + g.laplace(size=DRAWS),
    }


@pytest.mark.parametrize("kind", ["normal", "sum of two normals", "laplace"])
def test_floating_point_noise_fails_the_same_attack(kind):
    release = float_releases()[kind]
    zero, one = release(0.0), release(1.0)
    assert haney(zero, one) >= 8
    assert haney(zero, one, level=1e-6) >= 7
    assert learned(zero, one) >= 7


def test_real_curators_answers_too():
    bounds, draws = Bounds(1.0, classes=(0, 1)), 4000
    plan = Plan([Release("noisy_count", draws)])
    answers = []
    for records in (0, 1):
        data = PrivateData(np.ones((records, 1)), [0] * records, bounds)
        curator = data.open(price_plan(plan, Budget(draws**0.5, DELTA, "add_remove")), Logistic())
        answers.append(np.array([curator.noisy_count() for _ in range(draws)]))
    assert haney(*answers, level=1e-6) == 0
