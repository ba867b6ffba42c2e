"""Nothing that a solver meets on its way is an outcome; and plans that do not fit are refused, nothing released."""

import math

import numpy as np
import pytest

from discreet import Bounds, Budget, DPClassifier
from discreet.accounting import Perturbation, Plan, Release
from discreet.curator import PrivateData, Problem
from discreet.curator.certified import minimize
from discreet.curator.queries import minimizers
from discreet.errors import DiscreetError, PlanViolation, Unsupported
from discreet.losses import Logistic, SmoothedHinge, Softmax
from discreet.penalties import L1, L2, ElasticNet, NoPenalty
from discreet.solvers import ExponentialMechanism, ObjectivePerturbation, OutputPerturbation
from tests.replaying import window
from tests.solvers.perturbation.cases import domain_of, inside, opened, stream

X = np.linspace(-1, 1, 20)[:, None] * [1.0, 0.5]
Y = np.where(np.arange(20) % 3 == 0, -1.0, 1.0)
PROBLEM = Problem(0.5, 20)
BUDGET = Budget(1.0, 1e-5, "zero_out")


def output(loss=None, X=X, y=Y, budget=BUDGET):
    loss = loss or Logistic()
    return opened(X, y, loss, [Release("noisy_minimizer", 1)], budget)


def objective(loss=None, X=X, y=Y, budget=BUDGET, problem=PROBLEM):
    loss = loss or Logistic()
    return opened(X, y, loss, inside(problem, loss, domain_of(X, y, loss, budget.neighbors)), budget)


def draw(loss=None, X=X, y=Y, budget=BUDGET, total_variation=0.0):
    return opened(
        X, y, loss or Logistic(), Plan([Release("sample_minimizer", 1)], total_variation=total_variation), budget
    )


ASKED = {
    "output": (output, lambda curator: curator.noisy_minimizer(PROBLEM)),
    "objective": (objective, lambda curator: curator.perturbed_minimizer(PROBLEM)),
    "exponential": (draw, lambda curator: curator.sample_minimizer(PROBLEM, sampler="rejection")),
}


@pytest.mark.parametrize("kind", ASKED)
def test_a_newton_method_that_fails_changes_nothing_that_can_be_seen(kind, monkeypatch):
    """Stopped before its first step, or broken by an error: the answer is certified all the same, and spent."""

    def broken(*given):
        raise np.linalg.LinAlgError("private")

    open_it, ask = ASKED[kind]
    answers = []
    for name, value in ((None, None), ("MAX_STEPS", 0), ("search", broken)):
        with monkeypatch.context() as patch, stream(5), window() as seen:
            if name is not None:
                patch.setattr(minimize, name, value)
            curator = open_it()
            answers.append(ask(curator))
            assert seen
            with pytest.raises(PlanViolation, match=r"no .further."):
                ask(curator)
    assert answers[0] == pytest.approx(answers[1], abs=1e-6)
    assert answers[1] == pytest.approx(answers[2], abs=1e-6)


@pytest.mark.parametrize(("given", "same"), [(L1(0.0), NoPenalty()), (ElasticNet(0.0, 0.1), L2(0.1))])
@pytest.mark.parametrize(
    "solver",
    [OutputPerturbation(0.1), OutputPerturbation(n_steps=5), ObjectivePerturbation(0.1)],
    ids=["minimizer", "steps", "objective"],
)
def test_corners_of_strength_0_are_none(solver, given, same):
    """The penalty is smooth, and answered like one: nothing is refused after the charge."""
    bounds = Bounds([(-1, 1)] * 2, classes=(-1, 1))
    fits = []
    for penalty in (given, same):
        with stream(5):
            fits.append(DPClassifier(bounds=bounds, penalty=penalty, solver=solver, delta=1e-5).fit(X, Y).coef_)
    np.testing.assert_array_equal(*fits)


@pytest.mark.parametrize("kind", ASKED)
def test_an_error_after_the_charge_leaves_the_budget_spent(kind, monkeypatch):
    """A machine that runs out of memory, say: nothing is released, and nothing is given back."""

    def fails(*given):
        raise MemoryError

    open_it, ask = ASKED[kind]
    with window() as seen:
        curator = open_it()
        with monkeypatch.context() as patch:
            patch.setattr(minimizers, "minimize", fails)
            with pytest.raises(MemoryError):
                ask(curator)
        with pytest.raises(PlanViolation, match=r"no .further."):
            ask(curator)
        assert not seen


@pytest.mark.parametrize("solver", [OutputPerturbation, ObjectivePerturbation, ExponentialMechanism])
def test_a_minimizer_that_might_take_forever_is_refused_before_the_charge(solver):
    """By public facts alone: the plan is made without data, and so the same for all neighbors."""
    domain = domain_of(X, Y, Logistic())
    with pytest.raises(Unsupported, match="too small against the curvature"):
        solver(regularization=1e-15).plan(domain, Logistic(), NoPenalty())
    solver(regularization=1e-12).plan(domain, Logistic(), NoPenalty())


# ----------------------------------------------------------------------------------------- plans that do not fit


@pytest.mark.parametrize("asked", [Problem(0.4, 20), Problem(0.5, 19), Problem(0.5, 20, clip=0.3)])
def test_objective_perturbation_priced_for_another_problem_is_refused(asked):
    with window() as seen, pytest.raises(PlanViolation, match="priced for another"):
        objective().perturbed_minimizer(asked)
    assert not seen


def test_shorter_rows_are_covered_by_the_price_of_longer_ones_and_not_the_other_way_round():
    shorter = Problem(0.5, 20, row_norm=0.5)
    with window() as seen:
        objective().perturbed_minimizer(shorter)
    assert seen
    with pytest.raises(PlanViolation, match="priced for another"):
        objective(problem=shorter).perturbed_minimizer(PROBLEM)


def test_objective_perturbation_priced_for_another_loss_is_refused():
    """A hinge at the logistic loss's price: one-signed is dearer."""
    loss = SmoothedHinge(2.0)
    plan = inside(PROBLEM, Logistic(), domain_of(X, Y, Logistic()))
    with pytest.raises(PlanViolation, match="priced for another"):
        opened(X, Y, loss, plan, BUDGET).perturbed_minimizer(PROBLEM)


def test_a_made_up_perturbation_is_refused():
    plan = (
        Release("perturb_objective", 1, mechanism="objective", perturbation=Perturbation(1e-9)),
        Release("perturbed_minimizer", 1),
    )
    with pytest.raises(PlanViolation, match="priced for another"):
        opened(X, Y, Logistic(), plan, BUDGET).perturbed_minimizer(PROBLEM)


def test_a_draw_is_never_pure():
    with pytest.raises(Unsupported, match="never pure"):
        draw(budget=Budget(1.0, 0.0, "zero_out"))


def test_a_perturbation_without_its_second_noise_is_refused():
    plan = inside(PROBLEM, Logistic(), domain_of(X, Y, Logistic()))[:1]
    with window() as seen, pytest.raises(PlanViolation):
        opened(X, Y, Logistic(), plan, BUDGET).perturbed_minimizer(PROBLEM)
    assert not seen


def test_a_chain_is_planned_with_its_total_variation_and_an_exact_sampler_without():
    with pytest.raises(PlanViolation, match="total variation"):
        draw().sample_minimizer(PROBLEM, sampler="chain")
    with pytest.raises(PlanViolation, match="total variation"):
        draw(total_variation=1e-9).sample_minimizer(PROBLEM, sampler="rejection")


def test_a_regularized_draw_is_no_bounded_range():
    curator = opened(X, Y, Logistic(), [Release("sample_minimizer", 1, mechanism="exponential")], BUDGET)
    with pytest.raises(PlanViolation, match="additive"):
        curator.sample_minimizer(PROBLEM, sampler="rejection")


def test_a_draw_without_regularization_is_no_gaussian():
    curator = opened(X[:, :1], Y, Logistic(), [Release("sample_minimizer", 1)], BUDGET)
    with pytest.raises(PlanViolation, match="exponential"):
        curator.sample_minimizer(Problem(0.0, 20, radius=1.0), sampler="interval")


def test_steps_that_do_not_contract_are_refused():
    curator = opened(X, Y, Logistic(), [Release("noisy_descent", 1)], BUDGET)
    beta = 0.25 * 2.0
    for step in (2 / (beta + 1.0) * 1.001, -1.0, 0.0, math.nan):
        with pytest.raises(PlanViolation, match="step"):
            curator.noisy_descent(PROBLEM, n_steps=3, step_size=step)
    curator.noisy_descent(PROBLEM, n_steps=3, step_size=2 / (beta + 1.0))


def test_gradient_steps_need_the_true_n():
    """Half of n doubles the mean's smoothness, so that steps stretch instead of contracting."""
    curator = opened(X, Y, Logistic(), [Release("noisy_descent", 1)], BUDGET)
    with pytest.raises(DiscreetError):
        curator.noisy_descent(Problem(0.5, 2), n_steps=3, step_size=0.5)


def test_clipped_softmax_is_no_gradient():
    problem = Problem(0.5, 20, clip=0.1)
    domain = PrivateData(X, Y, Bounds(1.0, classes=(-1, 0, 1)), fit_intercept=False).domain(
        BUDGET.neighbors, Softmax(3)
    )
    with pytest.raises(Unsupported, match="clip"):
        problem.perturbation_for(Softmax(3), domain)
    curator = opened(X, Y, Softmax(3), [Release("noisy_minimizer", 1)], BUDGET, bounds=Bounds(1.0, classes=(-1, 0, 1)))
    with pytest.raises(Unsupported, match="bounds"):
        curator.noisy_minimizer(problem)


def test_a_rejection_sampler_that_would_hardly_ever_keep_a_point_is_refused():
    """Whether it gives up depends on the data: below a thousandth, by public numbers, it must not be tried."""
    rng = np.random.default_rng(0)
    wide = rng.uniform(-1, 1, (20, 12))
    curator = opened(wide, Y, Logistic(), [Release("sample_minimizer", 1)], BUDGET)
    with pytest.raises((Unsupported, PlanViolation)):
        curator.sample_minimizer(Problem(1e-4, 20), sampler="rejection")
