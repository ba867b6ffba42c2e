"""Proximal steps in a metric against solutions by enumeration, by bounded least squares, and by another library."""

import itertools

import numpy as np
import pytest
from scipy import optimize

from discreet.penalties import L1, Box, ElasticNet, GroupL2, L2Ball
from discreet.penalties.recoded import metric_prox
from tests.covering import covering


def in_units(point, metric, units, penalty):
    """argmin (w - point)^T metric (w - point) / 2 + penalty(units * w)."""
    return metric_prox(units * point, metric / np.outer(units, units), penalty) / units


def a_case(p, seed, spread=1.0):
    """A positive definite metric with eigenvalues over that many decades, a point, units of any size."""
    rng = np.random.default_rng(seed)
    Q = np.linalg.qr(rng.normal(size=(p, p)))[0]
    metric = (Q * 10.0 ** rng.uniform(-spread, 0, p)) @ Q.T
    return metric, rng.normal(size=p), 10.0 ** rng.uniform(-1, 1, p)


def by_enumeration(point, metric, units, l1, l2=0.0):
    """The minimum over all patterns of signs: the one whose own conditions hold."""
    hessian = metric / np.outer(units, units)
    pull, curved = hessian @ (units * point), hessian + l2 * np.eye(len(point))
    for pattern in itertools.product((-1, 0, 1), repeat=len(point)):
        signs = np.array(pattern)
        active = signs != 0
        w = np.zeros(len(point))
        w[active] = np.linalg.solve(curved[np.ix_(active, active)], pull[active] - l1 * signs[active])
        slope = curved @ w - pull
        if (np.sign(w) == signs).all() and (np.abs(slope[~active]) <= l1 * (1 + 1e-9)).all():
            return w / units
    raise AssertionError("no pattern fits")


@covering(("p", [1, 2, 4]), ("seed", range(8)))
def test_the_lasso_by_enumeration(p, seed):
    metric, point, units = a_case(p, seed)
    pull = np.abs(metric @ point / units).max()
    for part in (0.01, 0.3, 0.9, 1.1):
        found = in_units(point, metric, units, L1(part * pull))
        best = by_enumeration(point, metric, units, part * pull)
        np.testing.assert_allclose(found, best, atol=1e-6 * np.abs(point).max())
        assert (found[best == 0] == 0).all()  # zeros are zeros
    assert not found.any()
    net = ElasticNet(0.3 * pull, 0.2)
    np.testing.assert_allclose(
        in_units(point, metric, units, net), by_enumeration(point, metric, units, 0.3 * pull, 0.2), atol=1e-6
    )


@pytest.mark.parametrize("seed", range(4))
def test_a_box_by_bounded_least_squares(seed):
    metric, point, units = a_case(5, seed)
    root = np.linalg.cholesky(metric).T
    best = optimize.lsq_linear(root, root @ point, (-0.3 / units, 0.2 / units), tol=1e-14).x
    found = in_units(point, metric, units, Box(-0.3, 0.2))
    np.testing.assert_allclose(found, best, atol=1e-6)
    assert (units * found >= -0.3 - 1e-15).all()
    assert (units * found <= 0.2 + 1e-15).all()


@pytest.mark.parametrize("spread", [2, 4, 6, 9])
def test_flat_directions_do_not_make_it_worse(spread):
    """Coordinate steps are slow in long valleys: what is left over is small against what the step gains."""
    metric, point, units = a_case(12, 5, spread)
    penalty = L1(1e-3)

    def objective(w):
        return (w - point) @ metric @ (w - point) / 2 + penalty.value(units * w)

    found = in_units(point, metric, units, penalty)
    value = objective(found)
    assert np.isfinite(found).all()
    assert value <= objective(point)
    rng = np.random.default_rng(0)
    steps = rng.normal(size=(300, 12)) * 10.0 ** rng.uniform(-4, 0, (300, 1))
    nearby = min(objective(found + step) for step in steps)
    assert value - nearby <= 1e-3 * (objective(point) - value)


# ------------------------------------------------------------------------------- in fits


@pytest.mark.parametrize("seed", range(3))
def test_any_penalty_of_several_outputs(seed):
    """Of coefficients (p, K) a metric is of the outputs one after the other; a penalty that is not separable counts."""
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(6, 6))
    metric, point = root @ root.T + 0.1 * np.eye(6), rng.normal(size=(3, 2))
    for penalty in (GroupL2(0.5, ((0, 1), (2,))), L2Ball(0.7), L1(0.4)):
        found = metric_prox(point, metric, penalty)

        def objective(w, penalty=penalty):
            away = (w - point).T.ravel()
            return away @ metric @ away / 2 + penalty.value(w)

        best = objective(found)
        steps = rng.normal(size=(500, 3, 2)) * 10.0 ** rng.uniform(-5, 0, (500, 1, 1))
        assert best <= min(objective(penalty.prox(found + step, 1e-9)) for step in steps) + 1e-9


@pytest.mark.parametrize("penalty", [L1(1e-3), ElasticNet(1e-3, 1e-4), Box(-0.01, 0.02)])
def test_nearly_collinear_columns_are_no_obstacle(penalty):
    """Columns far from 0 without an intercept have a condition number of a million."""
    rng = np.random.default_rng(0)
    A = 30.0 + rng.normal(size=(400, 12)) / 4.0
    metric, point = A.T @ A / 400, rng.normal(size=12) / 10.0
    found = metric_prox(point, metric, penalty)
    slope = metric @ (found - point)
    unit = np.diag(metric).max()
    np.testing.assert_allclose(penalty.prox(found - slope / unit, 1.0 / unit), found, atol=1e-9)
