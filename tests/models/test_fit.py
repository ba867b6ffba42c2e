"""A fit: what must be declared, what is made of it, what its certificate says, what is refused before a charge."""

import math

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from discreet import (
    Bounds,
    BudgetExceeded,
    DiscreetError,
    DPLinearSVC,
    DPLogisticRegression,
    DPPoissonRegressor,
    DPRandomizedSearch,
    DPRidge,
    Ledger,
    private_score,
)
from discreet.budget import InvalidBudget
from discreet.curator.records import admission
from discreet.curator.session import observe
from discreet.errors import MissingBounds, Unsupported
from discreet.models.fit import LARGEST_DEFAULT_DELTA, budget_of
from discreet.models.forecast.forecast import forecast
from discreet.penalties import GroupL2
from discreet.solvers import GradientDescent, StochasticGradientDescent
from tests.covering import covering
from tests.models.declared import CLASSIFIERS, GD, REGRESSORS, every, fit, make

# -------------------------------------------------------------------------------------------- certificates


@every
@pytest.mark.parametrize("neighbors", ["replace_one", "zero_out"])
def test_every_model_carries_a_certificate_that_holds(kind, neighbors, small_table):
    certificate = fit(kind, small_table, epsilon=0.7, neighbors=neighbors).certificate_
    assert (certificate.epsilon, certificate.neighbors, certificate.unit) == (0.7, neighbors, "record")
    assert (certificate.delta, certificate.model) == (1e-6, kind.__name__)
    assert (certificate.solver["name"], certificate.solver["n_steps"]) == ("gd", 5)
    assert (certificate.entropy, certificate.arithmetic) == ("ChaCha20 keyed by os.urandom", "exact lattice")
    public = certificate.assumed_public
    assert (public["n"], public["features"]) == (120, 1.0)
    assert tuple(public["classes" if kind in CLASSIFIERS else "target"]) == ((0, 1) if kind in CLASSIFIERS else (0, 10))
    assert certificate.is_private
    assert 0.7 * 0.999 <= certificate.verify().epsilon <= 0.7  # nothing is left unspent


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
        ({"solver": "newton"}, Unsupported, "auto, recipe, gd, sgd"),
        ({"bounds": [(0, 1)]}, MissingBounds, "1 feature ranges are declared for 3 columns"),
        ({"bounds": {"a": (0, 1)}}, MissingBounds, "data frame"),
    ],
    ids=str,
)
def test_errors_name_the_remedy(kind, small_table, settings, error, match):
    with pytest.raises(error, match=match):
        fit(kind, small_table, **settings)


@pytest.mark.parametrize(
    ("kind", "settings", "match"),
    [
        (DPLogisticRegression, {"penalty": "l3"}, "l2, l1, elasticnet"),
        (DPLogisticRegression, {"alpha": -1.0}, "alpha"),
        (DPRidge, {"alpha": -1.0}, "alpha"),
        (DPLinearSVC, {"classes": (0, 1, 2)}, "binary"),
    ],
)
def test_settings_of_some_models_are_refused_by_name(kind, settings, match, small_table):
    with pytest.raises(Unsupported, match=match):
        fit(kind, small_table, **settings)


@every
def test_targets_of_another_shape_are_refused(kind, small_table):
    for targets, match in ((np.zeros((120, 2)), "one column"), (np.zeros(119), "one target for each row"), (None, "y")):
        with pytest.raises(ValueError, match=match):
            make(kind).fit(small_table.X, targets)


# ------------------------------------------------------------------------------------------------- defaults


@every
@covering(("epsilon", [0.5, math.inf]), ("solver", ["auto", "gd", "sgd"]))
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
    ("kind", "settings"),
    [
        (DPLogisticRegression, {"solver": 3}),
        (DPLogisticRegression, {"solver": GradientDescent}),
        (DPLogisticRegression, {"penalty": 3}),
        (DPLogisticRegression, {"bounds": "wide"}),
        (DPLogisticRegression, {"bounds": [(0, 0)] * 3, "fit_intercept": False}),
        (DPRidge, {"target": 3}),
        (DPRidge, {"target": (1, 2, 3)}),
        (DPRidge, {"target": "wide"}),
        (DPPoissonRegressor, {"target": (-5, -1)}),  # every count would be clipped to 0
    ],
    ids=str,
)
def test_settings_of_another_kind_are_refused_by_name(kind, settings, small_table):
    with pytest.raises(DiscreetError):
        fit(kind, small_table, **settings)


def test_a_penalty_that_does_not_fit_is_refused_before_anything_is_released(small_table):
    released = []

    def watch(measurement):
        released.append(measurement.query)
        return measurement.noisy

    with observe(watch), pytest.raises(Unsupported, match="column"):
        fit(DPLogisticRegression, small_table, penalty=GroupL2(0.1, ((0, 9),)))
    assert not released


# ---------------------------------------------------------------------------------------------------- delta

N = 50
TWO_COLUMNS = Bounds(features=[(-1, 1)] * 2, classes=(0, 1))
ROWS, LABELS = np.linspace(-1, 1, 2 * N).reshape(N, 2), np.arange(N) % 2


@pytest.mark.parametrize("n", [1, 2, 10, 100, 300, 999])
def test_the_default_delta_of_a_small_table_is_small(n):
    assert budget_of(1.0, None, "replace_one", n).delta == LARGEST_DEFAULT_DELTA <= 1 / (100 * n)


@pytest.mark.parametrize("n", [1_000, 20_000, 10**6])
def test_the_default_delta_of_a_large_table_is_the_inverse_square(n):
    assert budget_of(1.0, None, "replace_one", n).delta == 1 / n**2


def asked(kind, delta, **settings):
    """Ask for one release of this kind."""
    model = DPLogisticRegression(1.0, 1e-6, bounds=TWO_COLUMNS)
    large = clone(model).set_params(delta=delta)
    if kind == "fit":
        return large.set_params(**settings).fit(ROWS, LABELS)
    if kind == "quote":
        return large.set_params(**settings).quote(ROWS, LABELS)
    if kind == "select":
        return DPRandomizedSearch(model, {"alpha": [1e-3, 1e-2]}, delta=delta, mean_runs=3, **settings).fit(
            ROWS, LABELS
        )
    if kind == "score":
        return private_score(
            model.set_params(ledger=False).fit(ROWS, LABELS), ROWS, LABELS, epsilon=1.0, delta=delta, **settings
        )
    return forecast(large.set_params(**settings), N, seeds=2, epsilons=[1.0], n_grid=[N])


KINDS = ("fit", "quote", "select", "score", "forecast")


@covering(("kind", KINDS), ("delta", [1 / N, 0.5]))
def test_a_delta_that_allows_publishing_a_record_is_refused(kind, delta):
    with pytest.raises(InvalidBudget, match=r"delta is at least 1/n.*allow_large_delta"):
        asked(kind, delta)


@pytest.mark.parametrize("kind", KINDS)
def test_a_delta_just_below_and_an_explicit_wish_are_granted(kind):
    assert asked(kind, 0.9 / N) is not None
    assert asked(kind, 1.5 / N, allow_large_delta=True) is not None


@pytest.mark.parametrize("kind", ["fit", "select", "score"])
def test_a_refused_delta_charges_nothing(kind, tmp_path):
    ledger = Ledger.create(tmp_path / "budget.db")
    ledger.grant("people", epsilon=100.0, delta=0.9, neighbors="replace_one")
    with pytest.raises(InvalidBudget):
        asked(kind, 0.5, ledger=ledger, dataset="people")
    assert ledger.spent("people").share == 0


def test_a_delta_is_compared_with_a_declared_number_of_records_only():
    private = DPLogisticRegression(1.0, 0.5, bounds=TWO_COLUMNS, neighbors="add_remove")
    assert private.fit(ROWS, LABELS).certificate_.delta == 0.5  # n is private: nothing to compare with
    with pytest.raises(InvalidBudget, match="at least 1/n"):
        private.set_params(bounds=TWO_COLUMNS.with_facts(n=N)).fit(ROWS, LABELS)


def test_other_numbers_of_rows_may_be_compared_with_the_same_delta():
    model = DPLogisticRegression(1.0, 1e-3, bounds=TWO_COLUMNS)
    assert forecast(model, 500, seeds=2, epsilons=[1.0], n_grid=[500, 2_000]).over_n[-1].delta == 1e-3


# ------------------------------------------------ narrow sparse records are stored with their zeros once charged for


def refuse(*_):
    raise AssertionError("a record was read")


def test_nothing_is_read_before_the_charge(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    X, y = sparse.csr_array(np.where(rng.random((4000, 5)) < 0.3, 1.0, 0.0)), rng.integers(0, 2, 4000)
    facts = {"bounds": [(0, 1)] * 5, "classes": (0, 1)}
    made = Ledger.create(tmp_path / "budget.db")
    made.grant("words", 0.5, 1e-6)
    monkeypatch.setattr(admission, "canonical", refuse)
    assert DPLogisticRegression(1.0, 1e-7, ledger=False, **facts).quote(X, y).solver["name"] == "recipe"
    with pytest.raises(BudgetExceeded):
        DPLogisticRegression(1.0, 1e-7, ledger=tmp_path / "budget.db", dataset="words", **facts).fit(X, y)
    paid = DPLogisticRegression(0.1, 1e-7, ledger=tmp_path / "budget.db", dataset="words", **facts)
    with pytest.raises(AssertionError, match="was read"):
        paid.fit(X, y)
    assert Ledger(tmp_path / "budget.db").spent("words").fits == 1
