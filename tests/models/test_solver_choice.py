"""The decision table of ``auto``, line by line: public facts in, a name and its reason out."""

import math

import numpy as np
import pytest
from scipy import sparse

from discreet import (
    Bounds,
    Budget,
    DPClassifier,
    DPElasticNet,
    DPHuberRegressor,
    DPLasso,
    DPLinearRegression,
    DPLinearSVC,
    DPLogisticRegression,
    DPPoissonRegressor,
    DPRegressor,
    DPRidge,
)
from discreet.bounds import Domain
from discreet.default import Recipe
from discreet.default.table import FORMS, GREEDY, LEAST_MEAN, SCALES, WEAK, choose
from discreet.losses import Huber, Logistic, Poisson, SmoothedHinge, Softmax, Squared
from discreet.models.fit import choose_solver, fills
from discreet.penalties import L1, L2, Box, ElasticNet, GroupL2, L2Ball, NoPenalty
from discreet.solvers import GradientDescent
from discreet.solvers.coordinates import WIDEST
from discreet.solvers.signal import PRIVATE_N, Signal
from tests.covering import covering

LIMIT = "without noise, full gradients reach the optimum"
ESTIMATE = "estimating the mean and covariance first improves accuracy"
DIAGONAL = "the signal is too weak to estimate a covariance"
DECLARED = "the signal is too weak to estimate coordinates"
ANY = "full gradients serve any penalty and any records"
WIDE = "rows of sparse or very wide records have the noise of their own length only"
ONE = "one release is cheapest where noise is pure"
FULL = "full batches have the least noise per pass"
FEW = "greedy steps find the few columns that matter"

SMOOTH = (NoPenalty(), L2(0.1))
SEPARABLE = (L1(0.1), ElasticNet(0.1, 0.1), Box(-1.0, 1.0))
OTHER = (GroupL2(0.1, ((0, 1), (2,))), L2Ball(1.0))
CLASSES = (Logistic(), SmoothedHinge(0.5), Softmax(3))
NUMBERS = (Squared(), Huber(0.3))
COUNTS = (Poisson(3.0),)


def a_domain(loss, n=20_000, p=5, relation="zero_out", **facts):
    ends = {"target_range": (-1.0, 1.0)} if loss.task == "regression" else {}
    bounds = np.ones(p)
    return Domain(
        bounds, math.sqrt(p), n, Budget(1.0, 1e-6, relation).neighbors, n_outputs=loss.n_outputs, **ends, **facts
    )


def chosen(loss, penalty, epsilon=1.0, delta=1e-6, relation="zero_out", **facts):
    _, why = choose(a_domain(loss, relation=relation, **facts), loss, penalty, Budget(epsilon, delta, relation))
    return why.removeprefix("auto chose ").split(":")[0], why


def line(name, reason):
    return name, f"auto chose {name}: {reason}"


def rows_for(least, notion, loss, p=5, relation="zero_out", epsilon=1.0):
    """Return the smallest n whose signal, of this notion, is at least so much."""
    budget = Budget(epsilon, 1e-6, relation)
    return math.ceil(least / getattr(Signal.of(a_domain(loss, 1, p, relation), budget), notion))


def test_every_reason_is_tested_here():
    assert {one.reason for one in FORMS} == {LIMIT, ESTIMATE, DIAGONAL, DECLARED, ANY, WIDE, ONE, FULL, FEW}


def test_without_noise_it_is_gradient_descent():
    for loss in (*CLASSES, *NUMBERS, *COUNTS):
        for penalty in (*SMOOTH, *SEPARABLE, *OTHER):
            for facts in ({}, {"n": 10}, {"sparse": True}, {"p": 5000}, {"relation": "add_remove", "n": None}):
                assert chosen(loss, penalty, math.inf, **facts) == line("gd", LIMIT)


@pytest.mark.parametrize("loss", [*CLASSES, *NUMBERS, *COUNTS], ids=lambda one: type(one).__name__)
def test_every_loss_and_penalty_with_signal_is_served_by_a_recipe(loss):
    for facts in ({}, {"p": 60}, {"relation": "replace_one"}, {"grouped": True}, {"relation": "add_remove", "n": None}):
        for penalty in (*SMOOTH, *SEPARABLE, *OTHER):
            if facts.get("p") != 60 or not greedy(loss, penalty):
                assert chosen(loss, penalty, **facts) == line("recipe", ESTIMATE)


@pytest.mark.parametrize("relation", ["zero_out", "replace_one"])
@pytest.mark.parametrize("loss", CLASSES, ids=lambda one: type(one).__name__)
def test_classes_have_scales_before_they_have_a_covariance(loss, relation):
    full, scales = (rows_for(least, "per_row", loss, relation=relation) for least in (SCALES, WEAK))
    for penalty in (*SMOOTH, *OTHER, Box(-1.0, 1.0)):
        for grouped in (False, True):
            facts = {"relation": relation, "grouped": grouped}
            assert chosen(loss, penalty, n=full, **facts) == line("recipe", ESTIMATE)
            assert chosen(loss, penalty, n=full - 1, **facts) == line("recipe", DIAGONAL)
            assert chosen(loss, penalty, n=scales, **facts) == line("recipe", DIAGONAL)
            assert chosen(loss, penalty, n=scales - 1, **facts) == line("recipe", DECLARED)


@covering(
    (("least", "notion", "p"), [(LEAST_MEAN, "total", 5), (WEAK, "per_row", 400)]),
    ("relation", ["zero_out", "replace_one"]),
)
@pytest.mark.parametrize("loss", [*NUMBERS, *COUNTS], ids=lambda one: type(one).__name__)
def test_numbers_and_counts_with_a_weak_signal_keep_the_declared_coordinates(least, notion, p, loss, relation):
    n = rows_for(least, notion, loss, p, relation)
    for penalty in SMOOTH:
        assert chosen(loss, penalty, n=n, p=p, relation=relation) == line("recipe", ESTIMATE)
        assert chosen(loss, penalty, n=n - 1, p=p, relation=relation) == line("recipe", DECLARED)


def greedy(loss, penalty):
    """Say whether greedy steps may serve: one output, and a penalty that says that few columns matter."""
    return loss.n_outputs == 1 and isinstance(penalty, (L1, ElasticNet))


ONE_OUTPUT = [loss for loss in (*CLASSES, *NUMBERS, *COUNTS) if loss.n_outputs == 1]


@pytest.mark.parametrize("relation", ["zero_out", "replace_one"])
@pytest.mark.parametrize("loss", ONE_OUTPUT, ids=lambda one: type(one).__name__)
def test_an_l1_penalty_with_little_signal_per_coefficient_is_for_greedy_steps(loss, relation):
    n = rows_for(GREEDY, "per_coefficient", loss, 100, relation)
    for penalty in (L1(0.1), ElasticNet(0.1, 0.1)):
        assert greedy(loss, penalty)
        assert chosen(loss, penalty, n=n, p=100, relation=relation) == line("recipe", ESTIMATE)
        assert chosen(loss, penalty, n=n - 1, p=100, relation=relation) == line("gcd", FEW)
        assert chosen(loss, penalty, n=n - 1, p=100, relation=relation, sparse=True) == (
            line("wide", WIDE) if loss.task == "classification" else line("gd", ANY)
        )
        assert chosen(loss, penalty, n=n - 1, p=100, relation=relation, delta=0.0) == line("gd", FULL)
    for penalty in (*SMOOTH, Box(-1.0, 1.0)):
        assert chosen(loss, penalty, n=n - 1, p=100, relation=relation)[0] == "recipe"


def test_several_classes_have_no_greedy_steps():
    for n in (100, 20_000):
        assert chosen(Softmax(3), L1(0.1), n=n, p=100)[0] == "recipe"


@pytest.mark.parametrize("facts", [{"sparse": True}, {"p": WIDEST + 1, "n": 10**6}])
def test_records_whose_second_moments_do_not_fit(facts):
    for loss in (*CLASSES, *NUMBERS, *COUNTS):
        for penalty in (*SMOOTH, *SEPARABLE, *OTHER):
            follows = loss.task == "classification" and penalty.l1_l2 is not None
            assert chosen(loss, penalty, **facts) == (line("wide", WIDE) if follows else line("gd", ANY))


@pytest.mark.parametrize("loss", CLASSES, ids=lambda one: type(one).__name__)
def test_sparse_records_without_the_signal_of_a_mean_have_full_gradients(loss):
    n = rows_for(LEAST_MEAN, "total", loss)
    for penalty in SMOOTH:
        assert chosen(loss, penalty, n=n, sparse=True) == line("wide", WIDE)
        assert chosen(loss, penalty, n=n - 1, sparse=True) == line("gd", ANY)


def test_pure_budgets():
    for penalty in SMOOTH:
        for facts in ({}, {"n": 100}, {"sparse": True}):
            for loss in CLASSES:
                assert chosen(loss, penalty, delta=0.0, **facts) == line("objective", ONE)
        for loss in CLASSES:
            assert chosen(loss, penalty, delta=0.0, grouped=True) == line("gd", FULL)
        for loss in COUNTS:
            assert chosen(loss, penalty, delta=0.0) == line("gd", FULL)
        for loss in NUMBERS:
            assert chosen(loss, penalty, delta=0.0) == line("recipe", ESTIMATE)
            assert chosen(loss, penalty, delta=0.0, n=10) == line("recipe", DECLARED)
            assert chosen(loss, penalty, delta=0.0, sparse=True) == line("gd", FULL)
    for loss in (*CLASSES, *NUMBERS, *COUNTS):
        for penalty in (*SEPARABLE, *OTHER):
            assert chosen(loss, penalty, delta=0.0) == line("gd", FULL)


def test_one_release_is_for_pure_budgets_only():
    for loss in (*CLASSES, *NUMBERS, *COUNTS):
        for penalty in (*SMOOTH, *SEPARABLE, *OTHER):
            for facts in ({}, {"n": 10}, {"n": 100}, {"sparse": True}, {"p": 400, "n": 100}):
                assert chosen(loss, penalty, **facts)[0] != "objective"


def test_the_coordinates_are_those_of_the_line():
    middling = rows_for(SCALES, "per_row", Logistic()) - 1
    for loss, n, coordinates in (
        (Squared(), 10, "declared"),
        (Squared(), 20_000, "full"),
        (Logistic(), 10, "declared"),
        (Logistic(), middling, "diagonal"),
        (Logistic(), middling + 1, "full"),
        (Poisson(3.0), 10, "declared"),
        (Poisson(3.0), 20_000, "full"),
    ):
        for name in ("auto", "recipe"):
            made, _ = choose_solver(name, a_domain(loss, n), loss, L2(0.1), Budget(1.0, 1e-6, "zero_out"))
            assert isinstance(made, Recipe)
            assert made.coordinates == coordinates
            assert coordinates == "full" or (made.n_travel, made.n_newton) == (0, 0)


def test_a_private_n_counts_as_the_usual_one():
    unknown = chosen(Squared(), L1(0.1), relation="add_remove", n=None)
    assert unknown == chosen(Squared(), L1(0.1), relation="add_remove", n=PRIVATE_N)


# ------------------------------------------------------------------------------- fits


def notes_of(model, X=None, y=None, n=3000):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (n, 3)) if X is None else X
    y = rng.integers(0, 2, X.shape[0]) if y is None else y
    return model.fit(X, y).certificate_.notes


CLASS = {"bounds": 1.0, "classes": (0, 1)}
NUMBER = {"bounds": 1.0, "target": (0, 1)}
FITS = {
    "classes": (DPLogisticRegression(2.0, 1e-6, **CLASS), ("recipe", ESTIMATE)),
    "classes, little signal": (DPLogisticRegression(0.01, 1e-6, **CLASS), ("recipe", DECLARED)),
    "classes, some signal": (DPLogisticRegression(0.03, 1e-6, **CLASS), ("recipe", DIAGONAL)),
    "margins": (DPLinearSVC(2.0, 1e-6, **CLASS), ("recipe", ESTIMATE)),
    "numbers": (DPLinearRegression(2.0, 1e-6, **NUMBER), ("recipe", ESTIMATE)),
    "ridge": (DPRidge(2.0, 1e-6, **NUMBER), ("recipe", ESTIMATE)),
    "ridge, little signal": (DPRidge(0.01, 1e-6, **NUMBER), ("recipe", DECLARED)),
    "huber": (DPHuberRegressor(2.0, 1e-6, **NUMBER), ("recipe", ESTIMATE)),
    "lasso": (DPLasso(2.0, 1e-6, **NUMBER), ("recipe", ESTIMATE)),
    "net": (DPElasticNet(2.0, 1e-6, **NUMBER), ("recipe", ESTIMATE)),
    "lasso, little signal": (DPLasso(0.01, 1e-6, **NUMBER), ("gcd", FEW)),
    "counts": (DPPoissonRegressor(2.0, 1e-6, **NUMBER), ("recipe", ESTIMATE)),
    "counts, little signal": (DPPoissonRegressor(0.01, 1e-6, **NUMBER), ("recipe", DECLARED)),
    "counts, L1, little signal": (DPRegressor(0.01, 1e-6, loss=Poisson(3.0), penalty=L1(0.01), **NUMBER), ("gcd", FEW)),
    "counts, a ball": (DPRegressor(2.0, 1e-6, loss=Poisson(3.0), penalty=L2Ball(1.0), **NUMBER), ("recipe", ESTIMATE)),
    "classes, a ball": (DPClassifier(2.0, 1e-6, penalty=L2Ball(1.0), **CLASS), ("recipe", ESTIMATE)),
    "l1 classes": (DPLogisticRegression(2.0, 1e-6, penalty="l1", alpha=0.01, **CLASS), ("recipe", ESTIMATE)),
    "l1 classes, little signal": (
        DPLogisticRegression(0.01, 1e-6, penalty="l1", alpha=0.01, **CLASS),
        ("gcd", FEW),
    ),
    "pure classes": (DPLogisticRegression(2.0, 0.0, **CLASS), ("objective", ONE)),
    "pure numbers": (DPRidge(2.0, 0.0, **NUMBER), ("recipe", ESTIMATE)),
    "pure counts": (DPPoissonRegressor(2.0, 0.0, **NUMBER), ("gd", FULL)),
    "limit": (DPRidge(math.inf, **NUMBER), ("gd", LIMIT)),
}


@pytest.mark.parametrize("name", FITS)
def test_the_reason_stands_in_the_certificate(name):
    model, (chose, reason) = FITS[name]
    model = type(model)(**{**model.get_params(deep=False), "solver": "auto"})
    notes = notes_of(model)
    assert f"auto chose {chose}: {reason}" in notes
    assert "unset parameters were chosen from declared facts only" in notes
    assert str(reason) in str(model.certificate_)


def test_sparse_numbers_in_the_certificate():
    """Zeros are stored where that is small and n is public: then the covariance can be estimated."""
    X = sparse.random_array((3000, 3), density=0.3, rng=np.random.default_rng(0), format="csr")
    assert f"auto chose recipe: {ESTIMATE}" in notes_of(DPRidge(2.0, 1e-6, **NUMBER), X)
    unfilled = DPRidge(2.0, 1e-6, neighbors="add_remove", **NUMBER)
    assert f"auto chose gd: {ANY}" in notes_of(unfilled, X)


@pytest.mark.parametrize("loss", [*CLASSES, *NUMBERS])
def test_zeros_are_stored_where_dense_records_would_have_estimated_coordinates(loss):
    for facts, expected in (
        ({}, True),
        ({"sparse": False}, False),
        ({"n": 10}, False),
        ({"p": WIDEST + 1, "n": 10}, False),
        ({"n": 10**8}, False),
        ({"grouped": True}, False),
        ({"relation": "add_remove", "n": None}, False),
    ):
        domain = a_domain(loss, **{"sparse": True, **facts})
        budget = Budget(1.0, 1e-6, domain.neighbors)
        assert fills("auto", domain, loss, NoPenalty(), budget) is expected
        assert fills("recipe", domain, loss, NoPenalty(), budget) is expected
        assert not fills("gd", domain, loss, NoPenalty(), budget)
        assert not fills(GradientDescent(), domain, loss, NoPenalty(), budget)
        pure = fills("auto", domain, loss, NoPenalty(), Budget(1.0, 0.0, domain.neighbors))
        assert pure is (expected and loss.task == "regression")
        assert not fills("auto", domain, loss, NoPenalty(), Budget(math.inf))


@pytest.mark.parametrize("name", ["classes", "ridge", "lasso", "lasso, little signal"])
def test_the_choice_does_not_look_at_records(name):
    """Tables of the same shape and nothing else in common: one solver, with the same settings, for the same reason."""
    rng = np.random.default_rng(1)
    model, _ = FITS[name]
    tables = [
        (rng.uniform(-1, 1, (3000, 3)), rng.integers(0, 2, 3000)),
        (np.zeros((3000, 3)), np.zeros(3000)),
        (np.full((3000, 3), np.nan), np.ones(3000)),
        (np.full((3000, 3), 1e300), rng.integers(0, 2, 3000)),
    ]
    seen = []
    for X, y in tables:
        again = type(model)(**model.get_params(deep=False)).fit(X, y)
        seen.append((again.certificate_.solver, again.certificate_.notes))
    assert all(one == seen[0] for one in seen)


def test_the_choice_under_add_remove_does_not_count_records():
    bounds = Bounds(1.0, target=(0, 1))
    seen = [
        notes_of(DPLasso(2.0, 1e-6, bounds=bounds, neighbors="add_remove"), np.zeros((n, 2)), np.zeros(n))
        for n in (3, 400)
    ]
    assert seen[0] == seen[1]


def test_a_name_that_was_asked_for_is_said_so():
    assert "gd was asked for" in notes_of(DPRidge(2.0, 1e-6, solver="gd", **NUMBER))
    assert "recipe was asked for" in notes_of(DPRidge(2.0, 1e-6, solver="recipe", **NUMBER))
