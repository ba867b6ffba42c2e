"""Edges of the one-shot mechanisms: empty tables, loose tolerances, more than one draw, noise beyond the lattice."""

import math

import numpy as np
import pytest

from discreet import Bounds, Budget, DPClassifier, Neighbors
from discreet.accounting import Release
from discreet.accounting.objective_perturbation import Perturbation
from discreet.curator import PrivateData, Problem
from discreet.curator.queries import sampling
from discreet.curator.records.admission import scaling_for
from discreet.errors import PlanViolation, Unsupported
from discreet.losses import Huber, Logistic, Squared
from discreet.losses.base import lipschitz_within
from discreet.penalties import NoPenalty
from discreet.solvers import ObjectivePerturbation
from tests.covering import covering
from tests.solvers.perturbation.cases import domain_of, opened


def test_a_gaussian_posterior_pays_for_its_centers_tolerance(monkeypatch):
    seen = []
    honest = sampling.inverse_temperature
    monkeypatch.setattr(sampling, "inverse_temperature", lambda z, s, problem: seen.append(s) or honest(z, s, problem))
    X, y = np.linspace(-1, 1, 20).reshape(-1, 1), np.linspace(-1, 1, 20)
    budget = Budget(1.0, 1e-5, "zero_out")
    for tolerance in (1e-11, 0.1):
        curator = opened(X, y, Squared(), [Release("sample_minimizer", 1)], budget)
        curator.sample_minimizer(Problem(0.2, 20, radius=1.0, tolerance=tolerance), sampler="gaussian")
    exact, loose = seen
    assert exact == pytest.approx(2.0, rel=1e-6)  # (radius R + Y) R
    assert loose == pytest.approx(2.0 + 2 * 0.1 * 20 * 2.0, rel=1e-6)


def test_gamma_noise_beyond_the_lattice_is_refused():
    curator = opened(np.ones((3, 2)), np.ones(3), Logistic(), [Release("noisy_minimizer", 1)], Budget(1e-17, 0.0))
    with pytest.raises(Unsupported, match="lattice"):
        curator.noisy_minimizer(Problem(0.5, 3))


def test_rounding_stays_within_the_declared_bounds():
    """One common scale: a bound of a third is between two steps of the grid, and values at it are rounded up."""
    bounds = Bounds([(-1.0, 1.0), (-1 / 3, 1 / 3)], scale="global", classes=(0, 1))
    scaling = scaling_for(bounds, 2, None, intercept=False)
    one = scaling.grid.one
    assert scaling.feature_bounds[1] * one >= np.rint(one / 3)
    domain = PrivateData(np.ones((2, 2)), [0, 1], bounds, fit_intercept=False).domain(Neighbors.ZERO_OUT, Logistic())
    assert domain.row_norm * one >= math.hypot(one, np.rint(one / 3))


def test_a_weighted_squared_loss_is_not_taken_for_another():
    domain = domain_of(np.ones((10, 2)), np.ones(10), Squared())
    assert isinstance(lipschitz_within(Squared(), domain, 1.0), Huber)
    with pytest.raises(Unsupported):
        lipschitz_within(Squared(2.0), domain, 1.0)


@pytest.mark.parametrize("query", ["noisy_minimizer", "perturb_objective", "sample_minimizer"])
def test_the_certificate_says_idealized_before_the_answer_too(query):
    plans = {
        "noisy_minimizer": ([Release("noisy_minimizer", 1)], Budget(1.0, 0.0)),
        "perturb_objective": (ObjectivePerturbation(regularization=5.0).plan, Budget(2.0, 0.0)),
        "sample_minimizer": ([Release("sample_minimizer", 1)], Budget(1.0, 1e-5)),
    }
    plan, budget = plans[query]
    X, y = np.ones((3, 2)), np.ones(3)
    if callable(plan):
        plan = plan(domain_of(X, y, Logistic()), Logistic(), NoPenalty())
    curator = opened(X, y, Logistic(), plan, budget)
    assert curator.certificate(model="m", solver={}).arithmetic == "idealized"


def rare_labels():
    rng = np.random.default_rng([100, 10])
    return np.clip(rng.normal(size=(100, 10)), -4, 4), (np.arange(100) % 50 == 0).astype(float)


def hardly_any_signal(solver, alpha=0.0):
    """Ten columns within a tenth of their ranges, through the origin, with next to no budget."""
    facts = {"bounds": Bounds(40.0, classes=(0.0, 1.0)), "neighbors": "replace_one", "fit_intercept": False}
    return DPClassifier(0.01, alpha=alpha, solver=solver, ledger=False, **facts).fit(*rare_labels())


@covering(("solver", ["objective", "auto"]), ("alpha", [0.0, 1e-7, 0.1, 1.0]))
def test_a_plan_covers_what_is_minimized_where_the_signal_is_weak(solver, alpha):
    """The same numbers in another order differ in their last bits: a plan is rounded up, and fits after its charge."""
    assert np.isfinite(hardly_any_signal(solver, alpha).coef_).all()


def test_without_rounding_up_it_would_not(monkeypatch):
    monkeypatch.setattr(Perturbation, "rounded_up", property(lambda self: self))
    with pytest.raises(PlanViolation, match="priced for another"):
        hardly_any_signal("objective")
