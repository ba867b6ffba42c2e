"""What an estimator asks to be declared, what it makes of it, and what it says when something is missing."""

import math

import numpy as np
import pytest

from discreet import Bounds, DiscreetError, DPLinearSVC, DPLogisticRegression, DPPoissonRegressor, DPRidge
from discreet.budget import InvalidBudget
from discreet.curator.observer import observe
from discreet.errors import MissingBounds, Unsupported
from discreet.penalties import GroupL2
from discreet.solvers import GradientDescent, StochasticGradientDescent
from tests.models.declared import CLASSIFIERS, GD, REGRESSORS, every, fit, make

# -------------------------------------------------------------------------------------------- certificates


@every
@pytest.mark.parametrize("neighbors", ["replace_one", "zero_out"])
def test_every_model_carries_a_certificate_that_holds(kind, neighbors, small_table):
    model = fit(kind, small_table, epsilon=0.7, neighbors=neighbors)
    certificate = model.certificate_
    assert (certificate.epsilon, certificate.neighbors, certificate.unit) == (0.7, neighbors, "record")
    assert certificate.delta == 1e-6
    assert certificate.model == kind.__name__
    assert certificate.solver["name"] == "gd"
    assert certificate.solver["n_steps"] == 5
    assert certificate.entropy == "ChaCha20 keyed by os.urandom"
    assert certificate.arithmetic == "exact lattice"
    assert certificate.assumed_public["n"] == 120
    assert certificate.assumed_public["features"] == 1.0
    assert certificate.is_private
    verified = certificate.verify()
    assert verified.epsilon <= 0.7
    assert verified.epsilon == pytest.approx(0.7, rel=1e-3)  # nothing is left unspent


@every
def test_declared_facts_are_in_the_certificate(kind, small_table):
    public = fit(kind, small_table).certificate_.assumed_public
    if kind in CLASSIFIERS:
        assert tuple(public["classes"]) == (0, 1)
    else:
        assert tuple(public["target"]) == (0, 10)


@every
def test_an_infinite_epsilon_is_stamped(kind, small_table):
    certificate = fit(kind, small_table, epsilon=math.inf).certificate_
    assert not certificate.is_private
    assert certificate.stamp.startswith("NOT PRIVATE")
    assert "do not release" in certificate.text()


@every
def test_seeded_noise_is_stamped(kind, small_table, seeded):
    with seeded(0):
        certificate = fit(kind, small_table).certificate_
    assert certificate.stamp.startswith("NOT PRIVATE")


@every
def test_pure_budgets(kind, small_table):
    certificate = fit(kind, small_table, epsilon=2.0, delta=0.0).certificate_
    assert certificate.delta == 0
    assert certificate.verify().epsilon <= 2.0


@every
def test_private_n(kind, small_table):
    with pytest.raises(MissingBounds, match="delta=1e-6"):
        fit(kind, small_table, neighbors="add_remove")
    model = fit(kind, small_table, neighbors="add_remove", delta=1e-5)
    assert "n" not in model.certificate_.assumed_public
    assert len(model.certificate_.events) == 2  # the gradients, and a count
    declared = fit(kind, small_table, neighbors="add_remove", bounds=Bounds(1.0, n=1000))
    assert declared.certificate_.delta == 1 / 1000**2
    assert len(declared.certificate_.events) == 1


@pytest.mark.few(2)
@every
def test_sampled_batches(kind, small_table):
    solver = StochasticGradientDescent(n_steps=4, batch_size=30)
    certificate = fit(kind, small_table, solver=solver).certificate_
    assert certificate.solver["name"] == "sgd"
    assert certificate.events[0].numerator == 2**16 // 4
    certificate.verify()


def test_more_privacy_is_more_noise(small_table):
    noise = [fit(DPRidge, small_table, epsilon=e).certificate_.noise_multiplier for e in (0.1, 1.0, 10.0)]
    assert noise == sorted(noise, reverse=True)


def test_a_given_delta_is_the_delta_used(small_table):
    assert fit(DPRidge, small_table, delta=1e-7).certificate_.delta == 1e-7


def test_noise_is_fresh(small_table):
    model = make(DPRidge)
    first = model.fit(small_table.X, small_table.counts).coef_.copy()
    assert not np.array_equal(first, model.fit(small_table.X, small_table.counts).coef_)


# -------------------------------------------------------------------------------------------- missing facts


@every
def test_features_must_be_declared(kind, small_table):
    with pytest.raises(MissingBounds, match=r"bounds=Bounds\("):
        fit(kind, small_table, bounds=None)


@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_classes_must_be_declared(kind, small_table):
    with pytest.raises(MissingBounds, match=r"classes=\(0, 1\)"):
        fit(kind, small_table, classes=None)
    fit(kind, small_table, classes=None, bounds=Bounds(1.0, classes=(0, 1)))


@pytest.mark.parametrize("kind", REGRESSORS)
def test_targets_must_be_declared(kind, small_table):
    with pytest.raises(MissingBounds, match=r"target=\(low, high\)"):
        fit(kind, small_table, target=None)
    fit(kind, small_table, target=None, bounds=Bounds(1.0, target=(0, 10)))


@every
def test_a_wrong_n_is_refused_where_n_is_public(kind, small_table):
    with pytest.raises(MissingBounds, match="declared n"):
        fit(kind, small_table, bounds=Bounds(1.0, n=119))


@every
@pytest.mark.parametrize(
    ("settings", "error", "match"),
    [
        ({"epsilon": -1.0}, InvalidBudget, "epsilon must be"),
        ({"epsilon": 0.0}, InvalidBudget, "epsilon must be"),
        ({"delta": 1.0}, InvalidBudget, "delta must lie"),
        ({"neighbors": "swap"}, InvalidBudget, "replace_one"),
        ({"solver": "newton"}, Unsupported, "auto, agd, cd, exponential"),
        ({"bounds": [(0, 1)]}, MissingBounds, "1 feature ranges are declared for 3 columns"),
        ({"bounds": {"a": (0, 1)}}, MissingBounds, "data frame"),
    ],
    ids=str,
)
def test_errors_name_the_remedy(kind, small_table, settings, error, match):
    with pytest.raises(error, match=match):
        fit(kind, small_table, **settings)


def test_unknown_penalties_and_negative_strengths(small_table):
    with pytest.raises(Unsupported, match="l2, l1, elasticnet"):
        fit(DPLogisticRegression, small_table, penalty="l3")
    with pytest.raises(Unsupported, match="alpha"):
        fit(DPLogisticRegression, small_table, alpha=-1.0)
    with pytest.raises(Unsupported, match="alpha"):
        fit(DPRidge, small_table, alpha=-1.0)


def test_the_svm_knows_two_classes(small_table):
    with pytest.raises(Unsupported, match="binary"):
        fit(DPLinearSVC, small_table, classes=(0, 1, 2))


@every
def test_targets_of_several_columns_are_refused(kind, small_table):
    with pytest.raises(Unsupported, match="one column"):
        make(kind).fit(small_table.X, np.zeros((120, 2)))
    with pytest.raises(Unsupported, match="one target for each row"):
        make(kind).fit(small_table.X, np.zeros(119))


@every
def test_a_missing_y_is_said_to_be_missing(kind, small_table):
    with pytest.raises(ValueError, match="y"):
        make(kind).fit(small_table.X, None)


# ------------------------------------------------------------------------------------------------- defaults


@every
@pytest.mark.parametrize("solver", ["auto", "gd", "sgd"])
@pytest.mark.parametrize("epsilon", [0.5, math.inf])
def test_defaults_do_not_look_at_the_records(kind, solver, epsilon, small_table):
    """Same declared facts, other records: the same plan, step and clip."""
    if solver == "sgd" and epsilon == math.inf:
        pytest.skip("five thousand steps tell no more")
    if epsilon == math.inf:
        solver = GD  # clip and step unset
    rng = np.random.default_rng(0)
    X = rng.choice([-1.0, 1.0], size=small_table.X.shape)
    zeros = make(kind, epsilon, solver=solver).fit(X, np.zeros(120))
    usual = fit(kind, small_table, epsilon, solver=solver)
    assert zeros.certificate_ == usual.certificate_


@pytest.mark.parametrize("delta", [None, 0.0])
def test_a_larger_budget_never_buys_fewer_steps(delta, small_table):
    made = [
        fit(DPLogisticRegression, small_table, epsilon=e, delta=delta, solver="gd").certificate_.solver
        for e in (0.05, 0.5, 5.0)
    ]
    steps = [settings.get("solver", settings)["n_steps"] for settings in made]  # of the solver in a stage
    assert steps == sorted(steps)
    assert steps[0] < steps[-1]


# ---------------------------------------------------------------------------- settings that make no sense


@pytest.mark.parametrize(
    "settings",
    [
        {"solver": 3},
        {"solver": GradientDescent},
        {"penalty": 3},
        {"bounds": "wide"},
        {"bounds": [(0, 0)] * 3, "fit_intercept": False},
    ],
    ids=str,
)
def test_settings_of_another_kind_are_refused_by_name(settings, small_table):
    with pytest.raises(DiscreetError):
        fit(DPLogisticRegression, small_table, **settings)


@pytest.mark.parametrize("target", [3, (1, 2, 3), "wide"], ids=str)
def test_targets_of_another_form_are_refused_by_name(target, small_table):
    with pytest.raises(DiscreetError):
        fit(DPRidge, small_table, target=target)


def test_counts_cannot_be_declared_negative(small_table):
    """Every target would be clipped to 0: whoever declares that means another model."""
    with pytest.raises(DiscreetError):
        fit(DPPoissonRegressor, small_table, target=(-5, -1))


def test_a_penalty_that_does_not_fit_is_refused_before_anything_is_released(small_table):
    released = []

    def watch(measurement):
        released.append(measurement.query)
        return measurement.noisy

    with observe(watch), pytest.raises(Unsupported, match="column"):
        fit(DPLogisticRegression, small_table, penalty=GroupL2(0.1, ((0, 9),)))
    assert not released
