"""What the worst record betrays through the real release path is what is claimed, to the last bit.

One release at noise multiplier z is exactly (1/z)-Gaussian-DP: on the worst neighbors the best threshold test has error
rates a, b with Phi^-1(1 - a) + Phi^-1(1 - b) = 1/z. Lower bounds at a confidence of 1e-6 must not exceed the claim, and
must come near it.
"""

import numpy as np
import pytest
from scipy import stats

from discreet.accounting.plan import Plan, Release
from discreet.accounting.pricing import calibrate, price_plan
from discreet.bounds import Bounds
from discreet.budget import Budget, Neighbors
from discreet.curator import session
from discreet.curator.lattice import PRIVATE_N_CAP, unit_for
from discreet.curator.noise import SeededEntropy, SystemEntropy, discrete_laplace, rounded_gaussian, use_entropy
from discreet.curator.private_data import PrivateData
from discreet.losses import Logistic
from tests.priced import at_noise

# --- a canary at the clip bound ----------------------------------------------------------------------


RUNS = 20_000
CLIP = 0.25
CONFIDENCE = 1e-6


def releases(X, y, neighbors, monkeypatch, *, narrow=1.0):
    """RUNS noisy sums of one clipped gradient (first coordinate), at noise multiplier ``narrow``."""
    plan = Plan([Release("noisy_gradient", RUNS, clip=CLIP)])
    data = PrivateData(X, y, Bounds(features=1.0, classes=(0, 1)), fit_intercept=False)
    curator = data.open(at_noise(plan, Budget(1.0, 1e-6, neighbors), narrow), Logistic())
    w = np.zeros(1)
    return np.array([curator.noisy_gradient(w, clip=CLIP)[0] for _ in range(RUNS)])


def lower_bound_on_mu(out, inside):
    """Clopper-Pearson bound on mu from the test 'above the middle'."""
    middle = (np.median(out[::2]) + np.median(inside[::2])) / 2  # threshold from one half, rates from the other
    out, inside = out[1::2], inside[1::2]
    false_alarms, misses = int((out >= middle).sum()), int((inside < middle).sum())
    rates = [
        stats.beta.ppf(1 - CONFIDENCE, errors + 1, len(side) - errors)
        for errors, side in ((false_alarms, out), (misses, inside))
    ]
    return float(stats.norm.isf(rates[0]) - stats.norm.ppf(rates[1]))


def worst_pair(neighbors):
    """Data sets whose sums differ by the whole sensitivity: gradients at -clip and +clip, or a null record."""
    low = (np.array([[1.0]]), [1])
    if neighbors is Neighbors.REPLACE_ONE:
        return low, (np.array([[1.0]]), [0])
    if neighbors is Neighbors.ZERO_OUT:
        return low, (np.array([[np.nan]]), [1])
    return (np.array([[1.0], [1.0]]), [1, 1]), low


WORST = [Neighbors.REPLACE_ONE, *(pytest.param(one, marks=pytest.mark.thorough) for one in list(Neighbors)[1:])]


@pytest.mark.parametrize("neighbors", WORST)
def test_a_release_gives_away_what_is_claimed_and_no_more(neighbors, monkeypatch):
    small, large = (releases(*side, neighbors, monkeypatch) for side in worst_pair(neighbors))
    bound = lower_bound_on_mu(small, large)
    assert 0.75 <= bound <= 1.0  # 0.88 on average with a deviation of 0.019: more than six from either end


@pytest.mark.thorough
def test_noise_three_tenths_too_small_is_refuted(monkeypatch):
    small, large = (
        releases(*side, Neighbors.REPLACE_ONE, monkeypatch, narrow=0.7) for side in worst_pair(Neighbors.REPLACE_ONE)
    )
    assert lower_bound_on_mu(small, large) > 1.0


def test_the_wrong_sensitivity_factor_is_refuted(monkeypatch):
    original = session.unit_for
    monkeypatch.setattr(session, "unit_for", lambda z, factor, *more: original(z, 1, *more))
    small, large = (releases(*side, Neighbors.REPLACE_ONE, monkeypatch) for side in worst_pair(Neighbors.REPLACE_ONE))
    assert lower_bound_on_mu(small, large) > 1.5


# --- attacks on the last bits (Haney, Desfontaines, Hartman, Shrestha & Hay 2022) --------------------


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


@pytest.mark.parametrize("kind", ["normal", "sum of two normals", pytest.param("laplace", marks=pytest.mark.thorough)])
def test_floating_point_noise_fails_the_same_attack(kind):
    release = float_releases()[kind]
    zero, one = release(0.0), release(1.0)
    assert haney(zero, one) >= 8
    assert haney(zero, one, level=1e-6) >= 7
    assert learned(zero, one) >= 7
