"""Whitened solvers refuse sparse records before anything is released, and each sum has a lattice of its own."""

import numpy as np
import pytest
from scipy import sparse

from discreet import Bounds, Budget
from discreet.accounting import Plan, Release
from discreet.accounting.pricing import price_plan
from discreet.curator import PrivateData
from discreet.curator.lattice import ROOT_TWO
from discreet.errors import Unsupported
from discreet.losses import Logistic, Squared
from discreet.penalties import NoPenalty
from tests.solvers.whitened.cases import descent

SOLVERS = {"full": (descent("full", n_steps=5), Logistic()), "full numbers": (descent("full", n_steps=3), Squared())}


def problem(loss, n=40, p=3, stored="dense", intercept=True, declared=None):
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, (n, p))
    y = rng.uniform(0, 2, n) if loss.task == "regression" else rng.integers(0, max(2, loss.n_outputs), n)
    bounds = Bounds(1.0, target=(0.0, 2.0), classes=tuple(range(max(2, loss.n_outputs))), n=declared)
    return PrivateData(sparse.csr_array(X) if stored == "sparse" else X, y, bounds, fit_intercept=intercept)


@pytest.mark.parametrize("kind", ["full numbers", "full"])
def test_dense_solvers_refuse_sparse_records_before_anything_is_released(kind):
    solver, loss = SOLVERS[kind]
    data = problem(loss, stored="sparse")
    with pytest.raises(Unsupported):
        solver.plan(data.domain(Budget(1.0).neighbors, loss), loss, NoPenalty())


def test_lattices_are_kept_apart_by_their_factor():
    """Squares and sums of the same clip and noise have other bounds: a lattice made for one is too fine for both."""
    loss = Logistic()
    plan = Plan([Release("noisy_mean", 1), Release("noisy_mean_squares", 1)])
    curator = problem(loss).open(price_plan(plan, Budget(1.0, 1e-6, "replace_one")), loss)
    session = curator._session
    release = plan.releases[1]
    units = [session.unit(release, 1.0, factor) for factor in (2, ROOT_TWO, 2, ROOT_TWO)]
    assert units[:2] == units[2:]
    assert units[0] != units[1]
    for unit, factor in zip(units, (2, ROOT_TWO), strict=False):
        realized = 2.0**unit.m / (float(factor) * unit.bound)
        assert curator.noise_multiplier <= realized <= curator.noise_multiplier * (1 + 1e-6)
