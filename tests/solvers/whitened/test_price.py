"""What whitened solvers plan is what they ask and what they pay for: shares, events, epsilon."""

import math

import numpy as np
import pytest
from scipy import sparse

from discreet import Bounds, Budget
from discreet.accounting import Plan, Release
from discreet.accounting.gaussian import mu_of
from discreet.accounting.priced_plan import price_plan
from discreet.curator import PrivateData
from discreet.curator.lattice.lattice import ROOT_TWO
from discreet.errors import DiscreetError, PlanViolation, Unsupported
from discreet.losses import Huber, Logistic, SmoothedHinge, Softmax, Squared
from discreet.penalties import NoPenalty
from discreet.testing import seeded
from tests.covering import covering
from tests.replaying import window
from tests.solvers.whitened.cases import RELATIONS, descent

SOLVERS = {
    "full": (descent("full", n_steps=5), Logistic()),
    "diagonal": (descent("diagonal", n_steps=7), Softmax(3)),
    "plain": (descent("plain", n_steps=4), SmoothedHinge(0.5)),
    "plain numbers": (descent("plain", n_steps=4, average="tail"), Squared()),
    "full numbers": (descent("full", n_steps=3), Squared()),
    "full huber": (descent("full", n_steps=5, moment_share=0.4), Huber(0.3)),
}


def problem(loss, n=40, p=3, stored="dense", intercept=True, declared=None):
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, (n, p))
    y = rng.uniform(0, 2, n) if loss.task == "regression" else rng.integers(0, max(2, loss.n_outputs), n)
    bounds = Bounds(1.0, target=(0.0, 2.0), classes=tuple(range(max(2, loss.n_outputs))), n=declared)
    return PrivateData(sparse.csr_array(X) if stored == "sparse" else X, y, bounds, fit_intercept=intercept)


def run(solver, loss, relation="zero_out", epsilon=1.0, **facts):
    data = problem(loss, **facts)
    budget = Budget(epsilon, 1e-6, relation)
    plan = solver.plan(data.domain(budget.neighbors, loss), loss, NoPenalty())
    with seeded(1), window() as seen:
        curator = data.open(price_plan(plan, budget), loss)
        solution = solver.solve(curator, NoPenalty())
    return curator, plan, seen, solution


EACH = pytest.mark.parametrize("kind", SOLVERS)
EACH_RELATION = pytest.mark.parametrize("relation", RELATIONS)


@EACH
@covering(("stored", ["dense", "sparse"]), ("intercept", [True, False]))
def test_shares_add_up_to_one(kind, intercept, stored):
    solver, loss = SOLVERS[kind]
    if stored == "sparse" and kind.startswith("full"):
        pytest.skip("dense records only")
    curator, plan, _, _ = run(solver, loss, intercept=intercept, stored=stored)
    assert math.fsum(r.count / r.relative_noise**2 for r in plan.releases) == pytest.approx(1.0, abs=1e-12)
    assert curator.noise_multiplier == pytest.approx(1 / mu_of(1.0, 1e-6), rel=1e-6)


@EACH
@EACH_RELATION
def test_noise_follows_the_relative_noise(kind, relation):
    """Each release has the noise of its own share, no other's."""
    curator, plan, seen, _ = run(*SOLVERS[kind], relation)
    relative = {release.query: release.relative_noise for release in plan.releases}
    for m in seen:
        realized = 2.0**m.unit.m / (float(m.factor) * m.unit.bound)
        assert realized == pytest.approx(curator.noise_multiplier * relative[m.query], rel=1e-6)
        assert realized >= curator.noise_multiplier * relative[m.query] * (1 - 1e-15)


def test_other_clips_than_planned_are_refused():
    loss = Logistic()
    plan = SOLVERS["full"][0].plan(problem(loss).domain(Budget(1.0).neighbors, loss), loss, NoPenalty())
    curator = problem(loss).open(price_plan(plan, Budget(1.0, 1e-6)), loss)
    with pytest.raises(PlanViolation, match="another clip"):
        curator.noisy_mean_squares(clip=17.0, n=10)
    for clip in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(DiscreetError):
            curator.noisy_second_moment(clip=clip, n=10)
    for n in (0.0, -3.0, math.nan, math.inf):
        with pytest.raises(DiscreetError):
            curator.noisy_second_moment(clip=1.0, n=n)
    curator.noisy_second_moment(clip=1.0, n=10)  # what was refused was not spent


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
    release = session._next("noisy_mean_squares").release
    units = [session.unit(release, 1.0, factor) for factor in (2, ROOT_TWO, 2, ROOT_TWO)]
    assert units[:2] == units[2:]
    assert units[0] != units[1]
    for unit, factor in zip(units, (2, ROOT_TWO), strict=False):
        realized = 2.0**unit.m / (float(factor) * unit.bound)
        assert curator.noise_multiplier <= realized <= curator.noise_multiplier * (1 + 1e-6)
