"""The noise that is really there: on the minimizer, inside the objective, on the point after it; planted errors."""

import math
from unittest import mock

import numpy as np
import pytest
from scipy import stats

from discreet import Bounds, Budget
from discreet.accounting import Plan, Release
from discreet.accounting.pricing import price_plan
from discreet.curator import PrivateData, Problem, session
from discreet.curator.noise import Draws
from discreet.curator.queries import minimizers
from discreet.losses import Logistic, SmoothedHinge
from tests.priced import at_noise
from tests.replaying import window
from tests.solvers.perturbation import cases
from tests.solvers.perturbation.cases import domain_of, inside, opened, stream

pytestmark = pytest.mark.statistical

CHANCE = 1e-7
Z = 1.5
X = np.array([[1.0, 0.0], [0.5, -1.0], [-0.25, 0.5], [1.0, 1.0]])
Y = np.array([1.0, -1.0, 1.0, 1.0])
PROBLEM = Problem(2.0, 4)  # lambda = 8
C, LAMBDA = math.sqrt(2.0), 8.0


@pytest.fixture(autouse=True)
def _this_much_noise(monkeypatch):
    def priced(plan, budget):
        return at_noise(plan, budget, 0.0 if math.isinf(budget.epsilon) else Z)

    monkeypatch.setattr(cases, "price_plan", priced)
    monkeypatch.setitem(globals(), "price_plan", priced)


def two_sided(statistic, degrees):
    return 2 * min(stats.chi2.cdf(statistic, degrees), stats.chi2.sf(statistic, degrees))


def exact_minimizer(problem=PROBLEM):
    curator = opened(X, Y, Logistic(), [Release("noisy_minimizer", 1)])
    return curator.noisy_minimizer(problem)


def noisy_minimizers(relation, delta, count, problem=PROBLEM):
    budget = Budget(1.0, delta, relation)
    curator = opened(X, Y, Logistic(), [Release("noisy_minimizer", count)], budget)
    honest, found = minimizers.minimize, []  # the same problem each time: solved once

    def remembered(*asked):
        return found[0] if found else found.append(honest(*asked)) or found[0]

    with mock.patch.object(minimizers, "minimize", remembered):
        return np.array([curator.noisy_minimizer(problem) for _ in range(count)])


def scale_of(relation, problem=PROBLEM):
    factor = 2 if relation == "replace_one" else 1
    return Z * (factor * C + 2 * problem.tolerance * problem.n * C) / problem.total


def scaled_noise(monkeypatch, share, query=None):
    honest = session.Session.noise

    def planted(self, release, unit, count):
        drawn = honest(self, release, unit, count)
        return drawn if query not in (None, release.query) else np.rint(share * drawn).astype(np.int64)

    monkeypatch.setattr(session.Session, "noise", planted)


def radius_p_value(count=3000):
    with stream(4):
        noise = noisy_minimizers("replace_one", 0.0, count) - exact_minimizer()
    lengths = np.linalg.norm(noise, axis=1) / scale_of("replace_one")
    return two_sided(2 * lengths.sum(), 4 * count), lengths, noise


def test_pure_noise_has_a_gamma_radius_and_no_direction():
    p_value, lengths, noise = radius_p_value()
    assert p_value > CHANCE
    assert lengths.mean() == pytest.approx(2.0, rel=0.1)  # p times the scale
    assert stats.kstest(lengths, stats.gamma(2).cdf).pvalue > CHANCE
    angles = np.arctan2(*noise.T) / (2 * np.pi) + 0.5
    assert stats.kstest(angles, "uniform").pvalue > CHANCE


def test_a_gamma_radius_a_tenth_too_short_is_noticed(monkeypatch):
    honest = Draws.gamma_vector
    monkeypatch.setattr(Draws, "gamma_vector", lambda self, p, scale: honest(self, p, 0.9 * scale))
    assert radius_p_value()[0] < CHANCE


# ------------------------------------------------------------------------------------- inside the objective


def gradient(w):
    return -(X.T @ (Y / (1 + np.exp(Y * (X @ w)))))


def linear_terms(relation, delta, count=500):
    """b, read back from the released minimizer: b = -grad S(w) - lambda w; the second noise is negligible."""
    budget, terms = Budget(1.0, delta, relation), []
    domain = domain_of(X, Y, Logistic(), relation)
    domain = domain if domain.n else domain_of(X, Y, Logistic())
    data = PrivateData(X, Y, Bounds(1.0, classes=(-1, 1)), fit_intercept=False)
    plan = inside(PROBLEM, Logistic(), domain)
    with stream(5):
        for _ in range(count):
            w = data.open(price_plan(Plan(plan), budget), Logistic()).perturbed_minimizer(PROBLEM)
            terms.append(-gradient(w) - LAMBDA * w)
    return np.array(terms) / (Z * C * (2 if relation == "replace_one" else 1))


@pytest.mark.few(1)
@pytest.mark.parametrize("relation", ["replace_one", "zero_out", "add_remove"])
def test_the_linear_term_has_the_planned_scale(relation):
    terms = linear_terms(relation, 1e-5)
    assert two_sided(float(np.square(terms).sum()), terms.size) > CHANCE
    assert stats.kstest(terms.ravel(), "norm").pvalue > CHANCE


@pytest.mark.thorough
def test_the_pure_linear_term_has_a_gamma_radius():
    lengths = np.linalg.norm(linear_terms("replace_one", 0.0), axis=1)
    assert two_sided(2 * lengths.sum(), 4 * len(lengths)) > CHANCE
    assert stats.kstest(lengths, stats.gamma(2).cdf).pvalue > CHANCE


def second_noise_p_value(count=400):
    """Linear losses: w = -(g + b)/lambda + second noise, both Gaussian; the variances add."""
    loss, data = SmoothedHinge(0.01), PrivateData(X[:, :1], Y, Bounds(1.0, classes=(-1, 1)), fit_intercept=False)
    budget, domain = Budget(1.0, 1e-5, "zero_out"), domain_of(X[:, :1], Y, SmoothedHinge(0.01))
    problem = Problem(1000.0, 4, tolerance=0.02)
    plan = Plan(inside(problem, loss, domain))
    with stream(6):
        drawn = np.array(
            [data.open(price_plan(plan, budget), loss).perturbed_minimizer(problem)[0] for _ in range(count)]
        )
    mean = float(X[:, 0] @ Y) / problem.total
    tau = problem.tolerance * problem.n
    spread = math.hypot(Z, 16 * Z * 2 * tau) / problem.total
    return two_sided(float(np.square((drawn - mean) / spread).sum()), count)


def test_the_second_noise_covers_the_tolerance():
    assert second_noise_p_value() > CHANCE


def test_the_second_noise_left_out_is_noticed(monkeypatch):
    scaled_noise(monkeypatch, 0.0, "perturbed_minimizer")
    assert second_noise_p_value() < CHANCE


# -------------------------------------------------------------------------------------------- the lattice


def test_the_lattice_of_the_released_point_is_public():
    """Its step multiplies every released coordinate: were it made from the hidden b, it would tell ||b||."""
    steps = set()
    for seed in range(6):
        with stream(seed), window() as seen:
            curator = opened(
                X,
                Y,
                Logistic(),
                inside(PROBLEM, Logistic(), domain_of(X, Y, Logistic())),
                Budget(1.0, 1e-5, "zero_out"),
            )
            curator.perturbed_minimizer(PROBLEM)
        steps.add(seen[-1].unit)
    assert len(steps) == 1


@pytest.mark.parametrize("size", [1.0, 2.0**12, 2.0**24])
def test_two_points_within_the_sensitivity_stay_within_the_lattice_bound(size):
    """Coordinates of more than 2^53 steps: dividing by the step must not move neighbors apart by more than is paid."""
    release = Release("noisy_minimizer", 40_000)
    curator = opened(X[:, :1], Y, Logistic(), [release], Budget(1.0, 1e-5, "zero_out"))
    ulp = 2.0**-54 * size
    sensitivity = 18_000 * ulp  # about 1e-12 of it, as 2 tau / lambda is in objective perturbation
    worst = 0.0
    rng = np.random.default_rng(0)
    for start in rng.integers(1 << 51, 1 << 52, 300):
        point = float(start) * ulp * 2  # between 1/4 and 1/2 of the size, on the grid of doubles
        with window() as seen:
            for place in (point, point + sensitivity):
                minimizers.release_point(curator._session, release, np.array([place]), sensitivity)
        moved = abs(int(seen[0].exact[0]) - int(seen[1].exact[0]))
        worst = max(worst, moved / seen[0].unit.bound)
    assert worst <= 1.0
