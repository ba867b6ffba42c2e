"""The decision table of ``auto``, line by line: public facts in, a name and its reason out."""

import math
import re

import numpy as np
import pytest
from scipy import sparse

from discreet import (
    Bounds,
    Budget,
    DPElasticNet,
    DPHuberRegressor,
    DPLasso,
    DPLinearRegression,
    DPLinearSVC,
    DPLogisticRegression,
    DPPoissonRegressor,
    DPRidge,
)
from discreet.accounting.gaussian import mu_of
from discreet.bounds import Domain
from discreet.errors import Unsupported
from discreet.losses import Huber, Logistic, Poisson, SmoothedHinge, Softmax, Squared
from discreet.models.solver_choice import automatic, choose_solver, fills
from discreet.penalties import L1, L2, Box, ElasticNet, GroupL2, L2Ball, NoPenalty
from discreet.solvers import GradientDescent, default_rules
from discreet.solvers import whitened_defaults as rules
from discreet.solvers.whitened_numbers import LEAST_SIGNAL, LEAST_TARGET_SIGNAL

LIMIT = "without noise, full gradients reach the optimum"
COUNTS = "counts need the declared coordinates"
ESTIMATE = "estimating the mean and covariance first improves accuracy"
GREEDY = "greedy steps fail least where there is little signal"
PROXIMAL = "a proximal step follows a penalty that is not smooth"
ONE = "one release is cheapest where noise is pure"
FULL = "full batches have the least noise per pass"
NOISY = "more steps, since second moments are noisy"
FEW = "an L1 penalty: greedy steps find the few columns that matter"

SMOOTH = (NoPenalty(), L2(0.1))
SEPARABLE = (L1(0.1), ElasticNet(0.1, 0.1), Box(-1.0, 1.0))
OTHER = (GroupL2(0.1, ((0, 1), (2,))), L2Ball(1.0))
CLASSES = (Logistic(), SmoothedHinge(0.5), Softmax(3))
NUMBERS = (Squared(), Huber(0.3))


def a_domain(loss, n=20_000, p=5, relation="zero_out", **facts):
    ends = {"target_range": (-1.0, 1.0)} if loss.task == "regression" else {}
    bounds = np.ones(p)
    return Domain(
        bounds, math.sqrt(p), n, Budget(1.0, 1e-6, relation).neighbors, n_outputs=loss.n_outputs, **ends, **facts
    )


def chosen(loss, penalty, epsilon=1.0, delta=1e-6, relation="zero_out", **facts):
    budget = Budget(epsilon, delta, relation)
    return automatic(a_domain(loss, relation=relation, **facts), loss, penalty, budget)


def line(name, reason):
    return name, f"auto chose {name}: {reason}"


def test_without_noise_it_is_gradient_descent():
    for loss in (*CLASSES, *NUMBERS, Poisson(3.0)):
        for penalty in (*SMOOTH, *SEPARABLE, *OTHER):
            for facts in ({}, {"n": 10}, {"sparse": True}, {"p": 5000}, {"relation": "add_remove", "n": None}):
                assert chosen(loss, penalty, math.inf, **facts) == line("gd", LIMIT)


def test_counts():
    for penalty in (*SMOOTH, *SEPARABLE, *OTHER):
        for facts in ({}, {"n": 10}, {"sparse": True}, {"delta": 0.0}, {"p": 5000}):
            assert chosen(Poisson(3.0), penalty, **facts) == line("gd", COUNTS)


@pytest.mark.parametrize("loss", NUMBERS)
def test_numbers_with_signal(loss):
    for penalty in (*SMOOTH, *SEPARABLE):
        for facts in (
            {},
            {"p": 60},
            {"relation": "replace_one"},
            {"relation": "add_remove", "n": None},
            {"delta": 0.0},
            {"delta": 0.0, "n": 10**6, "p": 400},
        ):
            assert chosen(loss, penalty, **facts) == line("whitened", ESTIMATE)


@pytest.mark.parametrize("loss", NUMBERS)
@pytest.mark.parametrize("relation", ["zero_out", "replace_one"])
def test_second_moments_with_less_signal_than_entries_are_not_leaned_on(loss, relation):
    """Right below n mu / a = p^2 many steps, or greedy ones for an L1 penalty; right above, Newton's.

    With more than 50 columns many steps up to p^3 / 50.
    """
    factor = 2.0 if relation == "replace_one" else 1.0
    for p, most in ((40, 40**2), (100, 100**3 / 50)):
        n = math.ceil(factor * most / mu_of(1.0, 1e-6))
        for penalty in SMOOTH:
            assert chosen(loss, penalty, n=n - 1, p=p, relation=relation) == line("gd", NOISY)
            assert chosen(loss, penalty, n=n, p=p, relation=relation) == line("whitened", ESTIMATE)
    n = math.ceil(factor * p**2 / mu_of(1.0, 1e-6))
    for penalty in (L1(0.1), ElasticNet(0.1, 0.1)):
        assert chosen(loss, penalty, n=n - 1, p=p, relation=relation) == line("gcd", FEW)
        assert chosen(loss, penalty, n=n, p=p, relation=relation) == line("whitened", ESTIMATE)
    assert chosen(loss, Box(-1.0, 1.0), n=n - 1, p=p, relation=relation) == line("whitened", ESTIMATE)


@pytest.mark.parametrize("loss", NUMBERS)
@pytest.mark.parametrize("facts", [{"n": 150}, {"sparse": True}, {"p": 3000}])
def test_numbers_with_a_separable_penalty_where_the_shape_is_not_seen(loss, facts):
    for penalty in SEPARABLE:
        greedy = penalty.l1_l2 is not None  # greedy steps know no box
        assert chosen(loss, penalty, **facts) == (line("gcd", GREEDY) if greedy else line("gd", PROXIMAL))
    assert chosen(loss, L1(0.1), n=100) == line("gcd", FEW)


def test_penalties_that_are_not_smooth():
    for loss in CLASSES:
        for penalty in (*SEPARABLE, *OTHER):
            greedy = loss.n_outputs == 1 and penalty.l1_l2 is not None
            for facts in ({}, {"n": 100}):
                assert chosen(loss, penalty, **facts) == (line("gcd", FEW) if greedy else line("gd", PROXIMAL))
            for facts in ({"sparse": True, "delta": 0.0}, {"delta": 0.0}):
                assert chosen(loss, penalty, **facts) == line("gd", PROXIMAL)
        for penalty in SEPARABLE:  # rows of their typical length follow all of these but a box
            expected = line("gd", PROXIMAL) if penalty.l1_l2 is None else line("whitened", ESTIMATE)
            for facts in ({"sparse": True}, {"p": rules.WIDEST + 1}):
                assert chosen(loss, penalty, **facts) == expected
        for penalty in OTHER:
            assert chosen(loss, penalty, sparse=True) == line("gd", PROXIMAL)
    for loss in NUMBERS:
        for penalty in OTHER:
            for facts in ({}, {"n": 100}, {"sparse": True}, {"delta": 0.0}):
                assert chosen(loss, penalty, **facts) == line("gd", PROXIMAL)


def test_an_l1_penalty_of_classes_is_for_greedy_steps_where_rows_are_few_or_the_signal_is_clear():
    for loss in (Logistic(), SmoothedHinge(0.5)):
        for penalty in (L1(0.1), ElasticNet(0.1, 0.1)):
            assert chosen(loss, penalty, n=2400, p=100) == line("gcd", FEW)
            assert chosen(loss, penalty, n=2600, p=100, epsilon=0.1) == line("gd", PROXIMAL)  # J = 8
            assert chosen(loss, penalty, n=20_000, p=100) == line("gcd", FEW)  # J = 400
            assert chosen(loss, penalty, n=900, p=100, epsilon=100.0) == line("gcd", FEW)
            assert chosen(loss, penalty, n=900, p=100, delta=0.0) == line("gd", PROXIMAL)
        for penalty in (*SMOOTH, Box(-1.0, 1.0)):
            assert chosen(loss, penalty, n=900, p=100)[0] != "gcd"


def test_pure_budgets():
    for penalty in SMOOTH:
        for facts in ({}, {"n": 100}, {"sparse": True}):
            for loss in CLASSES:
                assert chosen(loss, penalty, delta=0.0, **facts) == line("objective", ONE)
            for loss in NUMBERS:
                expected = line("gd", FULL) if "sparse" in facts else line("whitened", ESTIMATE)
                assert chosen(loss, penalty, delta=0.0, **facts) == expected


def test_numbers_whose_second_moments_do_not_fit():
    """Steps in rows of typical length; shrunken ones where there is too little signal for them."""
    budget = Budget(1.0, 1e-6, "zero_out")
    for loss in NUMBERS:
        for penalty in SMOOTH:
            for facts, inner in (
                ({"sparse": True}, "gd"),
                ({"sparse": True, "n": 100}, "shrunken"),
                ({"p": rules.WIDEST + 1}, "gd"),
            ):
                assert chosen(loss, penalty, **facts) == line("whitened", ESTIMATE)
                made, _ = choose_solver("auto", a_domain(loss, **facts), loss, penalty, budget)
                assert (made.name, made.solver.name) == ("declared", inner)


def test_everything_else():
    for penalty in SMOOTH:
        for loss in CLASSES:
            for facts in ({}, {"n": 10}, {"sparse": True}, {"p": 5000}, {"relation": "replace_one"}, {"n": None}):
                facts = {**facts, **({"relation": "add_remove"} if facts.get("n", 1) is None else {})}
                assert chosen(loss, penalty, **facts) == line("whitened", ESTIMATE)
        for loss in NUMBERS:
            assert chosen(loss, penalty, n=10) == line("whitened", ESTIMATE)


FACTS = [
    {**facts, "delta": delta, "epsilon": epsilon, "intercept": intercept, **relation}
    for facts in ({"n": 100}, {"n": 3000}, {"n": 3000, "p": 60}, {"n": 100_000}, {"sparse": True}, {"p": 3000})
    for delta in (1e-6, 0.0)
    for epsilon in (0.1, 8.0)
    for intercept in (True, False)
    for relation in ({}, {"relation": "replace_one"}, {"relation": "add_remove", "n": None})
]


def planned(name, loss, penalty, epsilon, delta, relation="zero_out", **facts):
    domain, budget = a_domain(loss, relation=relation, **facts), Budget(epsilon, delta, relation)
    return choose_solver(name, domain, loss, penalty, budget)[0].plan(domain, loss, penalty)


@pytest.mark.parametrize("penalty", [*SMOOTH, *SEPARABLE, L2Ball(1.0)], ids=lambda penalty: type(penalty).__name__)
def test_auto_has_a_plan_for_every_penalty_and_no_refusal_advises_one(penalty):
    """What a refusal of a solver by its name advises is not refused in turn."""
    for loss in (*CLASSES, *NUMBERS, Poisson(3.0)):
        for facts in FACTS:
            planned("auto", loss, penalty, **facts)
            for name in ("whitened", "cd", "gcd"):
                try:
                    planned(name, loss, penalty, **facts)
                except Unsupported as refusal:
                    advice = re.search(r"\buse (.*)", str(refusal))
                    for other in re.findall(r"\b(gcd|cd|gd|sgd|objective)\b", advice[1] if advice else ""):
                        planned(other, loss, penalty, **facts)


# ------------------------------------------------------------------------------- what `whitened` then is


def signal_of(n, p, relation, epsilon=1.0, delta=1e-6):
    factor = 2.0 if relation == "replace_one" else 1.0
    return n * mu_of(epsilon, delta) / (factor * math.sqrt(p))


@pytest.mark.parametrize("relation", ["zero_out", "replace_one"])
@pytest.mark.parametrize(
    ("loss", "least", "solver", "plain"),
    [
        (Logistic(), rules.PLAIN_CLASSES, "gd", "gd"),
        (SmoothedHinge(0.5), rules.PLAIN_CLASSES, "gd", "gd"),
        (Softmax(3), rules.PLAIN_CLASSES, "gd", "gd"),
        (Squared(), LEAST_TARGET_SIGNAL / math.sqrt(5), "newton", "shrunken"),
        (Huber(0.3), LEAST_TARGET_SIGNAL / math.sqrt(5), "newton", "shrunken"),
    ],
)
def test_the_form_follows_the_signal(loss, least, solver, plain, relation):
    """Right above the threshold the shape is seen, right below it is not."""
    columns = 5 * loss.n_outputs
    n = math.ceil(least / signal_of(1, columns, relation))
    for count, seen in ((n, True), (n - 1, False)):
        budget = Budget(1.0, 1e-6, relation)
        made, _ = choose_solver("auto", a_domain(loss, count, relation=relation), loss, NoPenalty(), budget)
        assert made.settings()["name"] == ("whitened" if seen else "declared")
        assert made.settings()["solver"]["name"] == (solver if seen else plain)


def test_many_columns_need_a_signal_of_their_own():
    """Where a target's mean is clear, the shape of many columns may not be."""
    budget, p = Budget(1.0, 1e-6, "zero_out"), 400
    n = math.ceil(LEAST_SIGNAL / signal_of(1, p, "zero_out"))
    assert rules.form_for(a_domain(Squared(), n, p), budget, numbers=True) == "full"
    assert rules.form_for(a_domain(Squared(), n - 1, p), budget, numbers=True) == "plain"


def test_the_form_follows_the_storage_and_the_width():
    budget = Budget(1.0, 1e-6, "zero_out")
    for facts, form in (
        ({"n": 1000}, "whitened"),
        ({"n": 20_000}, "refined"),
        ({"sparse": True}, "declared"),
        ({"p": rules.WIDEST + 1, "n": 10**6}, "declared"),
    ):
        made, _ = choose_solver("auto", a_domain(Logistic(), **facts), Logistic(), NoPenalty(), budget)
        assert made.name == form


def test_a_private_n_counts_as_the_usual_one():
    unknown = chosen(Squared(), L1(0.1), relation="add_remove", n=None)
    assert unknown == chosen(Squared(), L1(0.1), relation="add_remove", n=default_rules.UNKNOWN_N)


# ------------------------------------------------------------------------------- fits


def notes_of(model, X=None, y=None, n=3000):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (n, 3)) if X is None else X
    y = rng.integers(0, 2, X.shape[0]) if y is None else y
    return model.fit(X, y).certificate_.notes


CLASS = {"bounds": 1.0, "classes": (0, 1)}
NUMBER = {"bounds": 1.0, "target": (0, 1)}
FITS = {
    "classes": (DPLogisticRegression(2.0, 1e-6, **CLASS), ("whitened", ESTIMATE)),
    "margins": (DPLinearSVC(2.0, 1e-6, **CLASS), ("whitened", ESTIMATE)),
    "numbers": (DPLinearRegression(2.0, 1e-6, **NUMBER), ("whitened", ESTIMATE)),
    "ridge": (DPRidge(2.0, 1e-6, **NUMBER), ("whitened", ESTIMATE)),
    "huber": (DPHuberRegressor(2.0, 1e-6, **NUMBER), ("whitened", ESTIMATE)),
    "lasso": (DPLasso(2.0, 1e-6, **NUMBER), ("whitened", ESTIMATE)),
    "net": (DPElasticNet(2.0, 1e-6, **NUMBER), ("whitened", ESTIMATE)),
    "lasso, little signal": (DPLasso(0.01, 1e-6, **NUMBER), ("gcd", FEW)),
    "counts": (DPPoissonRegressor(2.0, 1e-6, **NUMBER), ("gd", COUNTS)),
    "l1 classes": (DPLogisticRegression(2.0, 1e-6, penalty="l1", alpha=0.01, **CLASS), ("gcd", FEW)),
    "l1 classes, little signal": (
        DPLogisticRegression(0.01, 1e-6, penalty="l1", alpha=0.01, **CLASS),
        ("gd", PROXIMAL),
    ),
    "pure classes": (DPLogisticRegression(2.0, 0.0, **CLASS), ("objective", ONE)),
    "pure numbers": (DPRidge(2.0, 0.0, **NUMBER), ("whitened", ESTIMATE)),
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
    assert f"auto chose whitened: {ESTIMATE}" in notes_of(DPRidge(2.0, 1e-6, **NUMBER), X)
    unfilled = DPRidge(2.0, 1e-6, neighbors="add_remove", **NUMBER)
    assert f"auto chose whitened: {ESTIMATE}" in notes_of(unfilled, X)
    assert unfilled.certificate_.solver["name"] == "declared"


@pytest.mark.parametrize("loss", [*CLASSES, *NUMBERS])
def test_zeros_are_stored_where_dense_records_would_be_whitened(loss):
    for facts, expected in (
        ({}, True),
        ({"sparse": False}, False),
        ({"n": 10}, False),
        ({"p": rules.WIDEST + 1, "n": 10}, False),
        ({"n": 10**8}, False),
        ({"grouped": True}, False),
        ({"relation": "add_remove", "n": None}, False),
    ):
        domain = a_domain(loss, **{"sparse": True, **facts})
        budget = Budget(1.0, 1e-6, domain.neighbors)
        assert fills("auto", domain, loss, NoPenalty(), budget) is expected
        assert fills("whitened", domain, loss, NoPenalty(), budget) is expected
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
    assert "whitened was asked for" in notes_of(DPRidge(2.0, 1e-6, solver="whitened", **NUMBER))
