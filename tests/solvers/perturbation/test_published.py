"""One-shot solvers: published noise, bounds that hold, corners, and edges of tables, tolerances and the lattice."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from discreet import Bounds, Budget, DPClassifier, DPRegressor, Neighbors
from discreet.accounting import Release, price_plan
from discreet.accounting.objective_perturbation import Perturbation
from discreet.bounds import Domain
from discreet.curator import PrivateData, Problem
from discreet.curator.queries import minimizers
from discreet.curator.records.admission import scaling_for
from discreet.errors import PlanViolation, Unsupported
from discreet.losses import Huber, Logistic, Softmax, Squared
from discreet.losses.base import least, lipschitz_within, values
from discreet.penalties import ElasticNet, NoPenalty
from discreet.solvers import ExponentialMechanism, ObjectivePerturbation, OutputPerturbation
from tests.covering import covering
from tests.solvers.perturbation.cases import domain_of, opened

BUDGET = Budget(0.5, 1e-5, "zero_out")


def facts(n=10_000, p=10):
    return Domain(feature_bounds=np.ones(p), row_norm=1.0, n=n, neighbors=BUDGET.neighbors)


def multiplier(solver, budget=BUDGET):
    return price_plan(solver.plan(facts(), Logistic(), NoPenalty()), budget).noise_multiplier


def test_the_papers_noise_is_more_than_the_tight_one():
    output, objective = (cls(regularization=0.01) for cls in (OutputPerturbation, ObjectivePerturbation))
    classical = math.sqrt(2 * math.log(1.25e5)) / 0.5
    assert multiplier(replace(output, calibration="paper")) == pytest.approx(classical)
    kifer = math.sqrt(8 * math.log(2e5) + 2.0) / 0.5
    assert multiplier(replace(objective, calibration="paper")) == pytest.approx(kifer)
    assert multiplier(output) < classical
    assert multiplier(objective) < kifer


def test_the_papers_noise_is_refused_where_its_theorem_does_not_hold():
    with pytest.raises(Unsupported, match="calibrate"):
        multiplier(OutputPerturbation(regularization=0.01, calibration="paper"), Budget(2.0, 1e-5, "zero_out"))
    weak = ObjectivePerturbation(regularization=0.9 / 10_000, calibration="paper")  # lambda below 2 beta / epsilon = 1
    with pytest.raises(Unsupported, match="2 beta / epsilon"):
        multiplier(weak)
    with pytest.raises(Unsupported, match="tight or paper"):
        OutputPerturbation(calibration="slides")


def largest_loss(loss, points, domain):
    """The largest loss over rows at the corners of the box that are no longer than the declared norm."""
    rows = np.array(list(itertools.product([-1.0, 0.0, 1.0], repeat=domain.n_features))) * domain.feature_bounds
    rows = rows[np.linalg.norm(rows, axis=1) <= domain.row_norm * (1 + 1e-12)]
    targets = range(domain.n_outputs) if domain.n_outputs > 1 else (-domain.target_bound, domain.target_bound)
    margins = np.einsum("rj,ij...->ir...", rows, points).reshape(-1, domain.n_outputs)
    return max(float(values(loss, m, float(t)) - least(loss, float(t))) for m in margins for t in targets)


@pytest.mark.parametrize("loss", [Logistic(), Squared(), Softmax(3)], ids=["logistic", "squared", "softmax"])
@pytest.mark.parametrize("row_norm", [1.0, 4.0])
def test_candidates_losses_are_bounded_by_what_is_declared(loss, row_norm):
    """By the lesser of the row norm and the columns' ranges: no loss is larger, and for one output some is as large."""
    bounds, shape = np.array([1.0, 0.5, 2.0, 1.0]), (4, 3) if loss.n_outputs > 1 else (4,)
    domain = replace(facts(), feature_bounds=bounds, row_norm=row_norm, n_outputs=loss.n_outputs)
    points = np.stack([np.zeros(shape), 2.0 * np.eye(4)[1].reshape(4, *(1,) * (len(shape) - 1)) * np.ones(shape)])
    bound = ExponentialMechanism(candidates=points).plan(domain, loss, NoPenalty()).releases[0].clip
    true = largest_loss(loss, points, domain)
    assert bound >= true * (1 - 1e-12)
    if loss.n_outputs == 1:
        assert bound == pytest.approx(true)


# --- known numbers of output perturbation and of the regularized exponential mechanism, through

# n = 1000 records of norm at most 1 (so L = 1), ten coefficients, mu = 0.01
DATA = PrivateData(np.zeros((1000, 10)), np.ones(1000), Bounds(1.0, row_norm=1.0, classes=(-1, 1)), fit_intercept=False)


def domain(relation="replace_one"):
    return DATA.domain(Budget(1.0, neighbors=relation).neighbors, Logistic())


def test_proximal_steps_end_at_the_elastic_nets_minimizer():
    """Without noise, and before it; Huber's loss of so large a width is the squared one."""
    rng, l1, l2 = np.random.default_rng(0), 0.05, 0.1
    X = rng.uniform(-1, 1, (400, 5))
    y = np.clip(X @ [0.5, -0.4, 0.0, 0.0, 0.02] + 0.1 * rng.normal(size=400), -2.0, 2.0)
    model = DPRegressor(
        epsilon=math.inf, loss=Huber(100.0), penalty=ElasticNet(l1, l2), fit_intercept=False, ledger=False,
        bounds=Bounds(1.0, target=(-1.0, 1.0)), solver=OutputPerturbation(n_steps=2000),
    )  # fmt: skip
    w = model.fit(X, np.clip(y, -1, 1)).coef_
    slopes = X.T @ (X @ w - np.clip(y, -1, 1)) / 400 + l2 * w
    assert (np.abs(w) > 1e-9).sum() == 2
    np.testing.assert_allclose(slopes[np.abs(w) > 1e-9], -l1 * np.sign(w[np.abs(w) > 1e-9]), atol=1e-6)
    assert (np.abs(slopes[np.abs(w) <= 1e-9]) <= l1 + 1e-9).all()


def test_corners_need_steps():
    with pytest.raises(Unsupported, match=r"n_steps"):
        OutputPerturbation(regularization=0.1).plan(domain(), Logistic(), ElasticNet(0.1, 0.1))
    assert OutputPerturbation(n_steps=3).plan(domain(), Logistic(), ElasticNet(0.1, 0.1)).releases


# --- epsilon=inf


@pytest.mark.parametrize("sampler", ["gaussian", "rejection"])
def test_shrunk_rows_are_shrunk_in_every_sampler(sampler):
    """Rows of norm 1 shrunk to 0.1: the minimizer of sum (0.1 w - 1)^2 / 2 + (lambda/2) w^2 with lambda = 0.2."""
    curator = opened(np.ones((20, 1)), np.ones(20), Squared(), [Release("sample_minimizer", 1)])
    point = curator.sample_minimizer(Problem(0.01, 20, row_norm=0.1, radius=50.0), sampler=sampler)
    assert point[0] == pytest.approx(20 * 0.1 / (20 * 0.01 + 0.2), abs=1e-6)


# --- edges of the one-shot mechanisms


def test_a_gaussian_posterior_pays_for_its_centers_tolerance(monkeypatch):
    seen = []
    honest = minimizers.inverse_temperature
    monkeypatch.setattr(
        minimizers, "inverse_temperature", lambda z, s, problem: seen.append(s) or honest(z, s, problem)
    )
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
