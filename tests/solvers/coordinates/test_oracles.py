"""Numbers of the specification: clips, noise scales, calibrations, selection scales, greedy scores."""

import math

import numpy as np
import pytest

from discreet import Budget, Neighbors
from discreet.accounting import Release, calibrate
from discreet.accounting.events import BoundedRange, Gaussian, Laplace, PureDP
from discreet.accounting.pricing import epsilon_of
from discreet.bounds import Domain
from discreet.losses import Logistic, Squared
from discreet.penalties import NoPenalty
from discreet.solvers import CoordinateDescent, Geometry, GreedyCoordinateDescent
from tests.covering import covering
from tests.solvers.coordinates.tables import csr, drawn, opened

RELATIVE = 1e-6


def domain(p, n=None, bounds=None, relation="replace_one"):
    r = np.ones(p) if bounds is None else np.asarray(bounds, dtype=float)
    return Domain(
        feature_bounds=r,
        row_norm=float(np.linalg.norm(r)),
        n=n,
        neighbors=Neighbors(relation),
        intercept=False,
        n_outputs=1,
        target_bound=1.0,
    )


def test_true_epsilon_of_the_published_constants():
    """CAp and ICML at nominal (1, 1e-6); the tight constant."""
    for calibration, true in (("slides", 0.37618703), ("paper", 0.63587797)):
        plan = CoordinateDescent(n_inner=50, calibration=calibration).plan(domain(4, 100), Logistic(), NoPenalty())
        multiplier = calibrate(plan, Budget(1.0, 1e-6))
        price = epsilon_of(plan.events(multiplier, pure=False), 1e-6, Neighbors.REPLACE_ONE).epsilon
        assert price == pytest.approx(true, rel=1e-4)
    tight = calibrate(CoordinateDescent(n_inner=50).plan(domain(4, 100), Logistic(), NoPenalty()), Budget(1.0, 1e-6))
    assert tight**2 / (50 * math.log(1e6)) == pytest.approx(1.291875, rel=1e-5)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("steps", "own", "laplace"), [(10, 0.0212694637, 94.03152002), (100, 0.0067259950, 297.35377511)]
)
def test_greedy_paper_calibration(steps, own, laplace):
    solver = GreedyCoordinateDescent(n_steps=steps, rule="gs", calibration="paper")
    plan = solver.plan(domain(5, 1000), Logistic(), NoPenalty())
    multiplier = calibrate(plan, Budget(1.0, 1e-6))
    assert 1 / multiplier == pytest.approx(own, rel=RELATIVE)
    assert 2 * multiplier == pytest.approx(laplace, rel=RELATIVE)
    select, update = plan.events(multiplier, pure=False)
    assert isinstance(select, PureDP)
    assert isinstance(update, Laplace)
    assert select.epsilon == pytest.approx(2 * own, rel=RELATIVE)
    rho = steps * (2 * own) ** 2 / 2 + steps * own**2 / 2
    assert rho == pytest.approx(0.15625 / math.log(1e6), rel=1e-6)
    price = epsilon_of((select, update), 1e-6, Neighbors.REPLACE_ONE).epsilon
    assert price <= 0.663831 * (1 + 1e-6)


def test_greedy_tight_calibration():
    """Equal split at (1, 1e-6), T = 10: the CKS conversion gives Gumbel scale and sigma 20.263; never more noise."""
    solver = GreedyCoordinateDescent(n_steps=10)
    plan = solver.plan(domain(5, 1000), Logistic(), NoPenalty())
    select, update = plan.events(20.263, pure=False)
    assert isinstance(select, BoundedRange)
    assert isinstance(update, Gaussian)
    assert 2 / select.epsilon == pytest.approx(20.263, rel=1e-9)  # Gumbel scale in units of one score's sensitivity
    rho = 10 * select.epsilon**2 / 8, 10 / (2 * update.noise_multiplier**2)
    assert rho[0] == pytest.approx(rho[1], rel=1e-9)
    assert sum(rho) == pytest.approx(0.024355970360, rel=1e-4)
    multiplier = calibrate(plan, Budget(1.0, 1e-6))
    assert 0.85 * 20.263 < multiplier <= 20.263 * (1 + 1e-4)


@covering(
    ("sparse", [False, True]),
    (("relation", "factor"), [("replace_one", math.sqrt(2)), ("zero_out", 1), ("add_remove", 1)]),
)
def test_squared_norms_have_the_right_noise(relation, factor, sparse):
    X, y = drawn(Squared(), 60, 40)
    clip = float(np.sqrt(3.0))
    budget = Budget(2.0, 1e-5, relation)
    release = Release("noisy_squared_norms", 50, clip=clip)
    curator = opened(csr(X) if sparse else X, y, Squared(), release, budget=budget)
    sums = np.array([curator.noisy_squared_norms(clip=clip) for _ in range(50)])
    rows = np.rint(X * 2**14) / 2**14
    exact = rows**2 * np.minimum(1, 3.0 / np.maximum((rows**2).sum(axis=1, keepdims=True), 1e-9))
    deviation = curator.noise_multiplier * factor * 3.0
    residual = (sums - exact.sum(axis=0)) / deviation
    assert abs(residual.mean()) * math.sqrt(residual.size) < 5
    assert residual.std() == pytest.approx(1.0, abs=5 / math.sqrt(2 * residual.size))


@pytest.mark.parametrize("delta", [1e-5, 0.0], ids=["gauss", "pure"])
@pytest.mark.parametrize("relation", ["replace_one", "zero_out"])
def test_bought_smoothness_is_floored_at_twice_its_noise(relation, delta):
    """With nothing but noise in the sums, M_j is at least twice the noise's deviation, at most declared."""
    X = np.full((2000, 3), np.nan)
    geometry = Geometry(smoothness="private", share=0.5)
    release = Release("noisy_squared_norms", 1, clip=math.sqrt(3.0))
    curator = opened(X, np.zeros(2000), Squared(), release, budget=Budget(2.0, delta, relation))
    M = geometry.measure(curator, 2000.0)
    if delta == 0.0:
        scale = 3.0 * curator.noise_multiplier * (2 if relation == "replace_one" else 1)
        deviation = math.sqrt(2) * scale
    else:
        deviation = 3.0 * curator.noise_multiplier * (math.sqrt(2) if relation == "replace_one" else 1)
    assert (M <= 1.0).all()
    assert (min(1.0, 2 * deviation / 2000 * (1 - 1e-6)) <= M).all()
