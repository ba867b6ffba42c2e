"""Every estimator with every one-shot solver: it fits, or says what would work; and what it leaves behind holds."""

import pytest

import discreet
from discreet import (
    Bounds,
    DPElasticNet,
    DPHuberRegressor,
    DPLasso,
    DPLinearRegression,
    DPLinearSVC,
    DPLogisticRegression,
    DPPoissonRegressor,
    DPRidge,
)
from discreet.errors import Unsupported
from discreet.solvers import ExponentialMechanism, ObjectivePerturbation, OutputPerturbation
from tests.solvers.perturbation.cases import stream, table

KINDS = {
    "logistic": DPLogisticRegression,
    "softmax": DPLogisticRegression,
    "svc": DPLinearSVC,
    "linear": DPLinearRegression,
    "ridge": DPRidge,
    "lasso": DPLasso,
    "elastic": DPElasticNet,
    "huber": DPHuberRegressor,
    "poisson": DPPoissonRegressor,
}


@pytest.fixture(autouse=True, scope="module")
def _cheap_prices():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("discreet.curator.queries.sampling.CHAIN_STEPS", 5)  # only that it is run, not how well it mixes
        yield


def facts_of(name, n=None):
    features = [(-1.0, 1.0), (0.0, 10.0), (-5.0, 3.0)]
    if name in ("logistic", "svc", "softmax"):
        return Bounds(features, classes=(0, 1, 2) if name == "softmax" else (0, 1), n=n)
    return Bounds(features, target=(0.0, 4.0), n=n)


def fit(name, solver, relation="replace_one", delta=1e-5, n=None, epsilon=1.0, **settings):
    data = table(name if name in ("logistic", "svc", "softmax") else "ridge")
    model = KINDS[name](epsilon, delta, bounds=facts_of(name, n), solver=solver, neighbors=relation, **settings)
    with stream(1):
        return model.fit(data.X, data.y)


SOLVERS = {
    "output": OutputPerturbation(regularization=0.1),
    "steps": OutputPerturbation(n_steps=3),
    "objective": ObjectivePerturbation(regularization=0.5),
    "candidates": ExponentialMechanism(candidates=[[0.0, 0.0, 0.0, 0.0], [1.0, 0.5, 0.0, -0.5]]),
    "chain": ExponentialMechanism(regularization=0.3, sampler="chain", total_variation=1e-9),
    "rejection": ExponentialMechanism(regularization=3.0),
}


@pytest.fixture(scope="module")
def fitted():
    return {name: fit("logistic", solver, "zero_out") for name, solver in SOLVERS.items()}


def test_pure_noise_of_gamma_length_is_said_to_be_idealized():
    for solver in (SOLVERS["output"], SOLVERS["objective"]):
        certificate = fit("logistic", solver, "zero_out", 0.0, epsilon=3.0).certificate_
        assert certificate.arithmetic == "idealized"
        assert certificate.delta == 0.0
        assert certificate.verify()


def test_a_chain_is_an_assumption_in_the_certificate_and_never_pure(fitted):
    certificate = fitted["chain"].certificate_
    assert [event.kind for event in certificate.events] == ["gaussian", "total_variation"]
    with pytest.raises(Unsupported, match="delta"):
        fit("logistic", SOLVERS["chain"], "zero_out", 0.0)
    with pytest.raises(Unsupported):
        fit("logistic", ExponentialMechanism(radius=1.0, sampler="chain"), "zero_out", 0.0, penalty=None)


def test_a_chain_pays_for_the_distance_that_was_given():
    """More total variation than delta can carry leaves nothing to spend; it is not quietly replaced by less."""
    with pytest.raises(discreet.DiscreetError):
        fit("logistic", ExponentialMechanism(regularization=0.3, sampler="chain", total_variation=0.5), "zero_out")


def test_objective_perturbation_is_never_booked_as_gaussian_unless_it_is(fitted):
    kinds = [event.kind for event in fitted["objective"].certificate_.events]
    assert kinds == ["perturbed_minimum", "gaussian"]
