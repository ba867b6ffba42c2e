import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

from discreet.penalties import L1, L2, Box, ElasticNet, GroupL2, L2Ball, NoPenalty
from discreet.penalties.base import prox_coordinate

PENALTIES = [
    NoPenalty(),
    L2(0.7),
    L1(0.6),
    ElasticNet(0.4, 1.5),
    GroupL2(0.5, ((0, 2), (1, 3, 4))),
    Box(-0.5, 1.0),
    L2Ball(1.3),
]
SEPARABLE = [penalty for penalty in PENALTIES if penalty.separable]
STEPS = [0.1, 1.0, 3.0]

vectors = st.lists(st.floats(-5, 5), min_size=5, max_size=5).map(np.array)


def points(count=30, shape=(5,)):
    rng = np.random.default_rng(0)
    return rng.normal(size=(count, *shape)) * rng.choice([0.1, 1.0, 3.0], size=(count, *(1 for _ in shape)))


def name(penalty):
    return type(penalty).__name__


@njit
def loop(penalty, x, step, out):
    for j in range(x.shape[0]):
        out[j] = prox_coordinate(penalty, x[j], step, j)


@pytest.mark.parametrize("penalty", PENALTIES, ids=name)
@pytest.mark.parametrize("shape", [(5,), (5, 3)])
def test_prox_minimizes_its_objective(penalty, shape):
    """No perturbation of the prox, small or large, has a lower objective."""
    rng = np.random.default_rng(1)
    for step in STEPS:
        for w in points(8, shape):
            best = penalty.prox(w, step)

            def objective(v, w=w, step=step):
                return penalty.value(v) + float(np.sum((v - w) ** 2)) / (2 * step)

            lowest = objective(best)
            assert math.isfinite(lowest)
            for size in (1e-4, 1e-2, 1.0):
                for direction in (*rng.normal(size=(12, *shape)), -best, w - best):
                    assert objective(best + size * direction) >= lowest - 1e-12


@pytest.mark.parametrize("penalty", PENALTIES, ids=name)
@given(v=vectors, w=vectors, step=st.sampled_from(STEPS))
@settings(max_examples=40, deadline=None, derandomize=True)
def test_prox_is_firmly_non_expansive(penalty, v, w, step):
    moved = penalty.prox(v, step) - penalty.prox(w, step)
    assert moved @ moved <= moved @ (v - w) + 1e-9
    # strong convexity makes it a contraction
    contraction = 1 / (1 + step * penalty.strong_convexity)
    assert np.linalg.norm(moved) <= contraction * np.linalg.norm(v - w) * (1 + 1e-9) + 1e-9


@pytest.mark.parametrize("penalty", PENALTIES, ids=name)
def test_fixed_points_of_proximal_gradient_steps_are_the_optima(penalty):
    """For a quadratic data term the iteration settles; there, and only there, no direction descends."""
    rng = np.random.default_rng(2)
    factor = rng.normal(size=(5, 5))
    quadratic, linear = factor @ factor.T / 5 + 0.3 * np.eye(5), rng.normal(size=5)
    step = 1 / np.linalg.eigvalsh(quadratic).max()

    def objective(w):
        return float(w @ quadratic @ w / 2 + linear @ w) + penalty.value(w)

    def iterate(w):
        return penalty.prox(w - step * (quadratic @ w + linear), step)

    w = np.zeros(5)
    for _ in range(600):
        w = iterate(w)
    np.testing.assert_allclose(iterate(w), w, atol=1e-12)
    for direction in rng.normal(size=(200, 5)):
        assert objective(w + 1e-3 * direction) >= objective(w) - 1e-13
    elsewhere = penalty.prox(w + 0.3, step)
    assert np.linalg.norm(iterate(elsewhere) - elsewhere) > 1e-6
    assert objective(iterate(elsewhere)) < objective(elsewhere)


@pytest.mark.parametrize("penalty", SEPARABLE, ids=name)
def test_prox_of_a_coordinate_is_that_of_the_vector(penalty):
    for step in STEPS:
        for w in points():
            compiled = np.empty(5)
            loop(penalty, w, step, compiled)
            plain = [prox_coordinate(penalty, x, step, j) for j, x in enumerate(w.tolist())]
            np.testing.assert_array_equal(compiled, plain)
            np.testing.assert_allclose(penalty.prox(w, step), plain, rtol=1e-15)


@pytest.mark.parametrize("penalty", PENALTIES, ids=name)
def test_strong_convexity_and_convexity(penalty):
    rng = np.random.default_rng(3)
    tightest = math.inf
    for v, w in zip(points(40), points(80)[40:], strict=True):
        v, w = penalty.prox(v, 0.1), penalty.prox(w, 0.1)  # inside, where there is a constraint
        a = float(rng.uniform(0.2, 0.8))
        chord = a * penalty.value(v) + (1 - a) * penalty.value(w)
        gap = chord - penalty.value(a * v + (1 - a) * w)
        needed = a * (1 - a) / 2 * float(np.sum((v - w) ** 2))
        assert gap >= penalty.strong_convexity * needed - 1e-10
        tightest = min(tightest, gap / needed)
    if isinstance(penalty, L2):
        assert tightest == pytest.approx(penalty.strong_convexity, rel=1e-6)
