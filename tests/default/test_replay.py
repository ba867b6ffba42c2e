"""Recipes on worst-case neighbors with frozen answers: what still differs is a leak."""

import numpy as np
import pytest

from discreet import Bounds, DPClassifier, DPElasticNet, DPLasso, DPLogisticRegression, DPRegressor
from discreet.losses import Poisson
from discreet.penalties import L1, Box, GroupL2, L2Ball
from discreet.testing import assert_fresh_noise, assert_replay, neighbor_pairs
from tests.default.cases import RECIPES
from tests.replaying import worst_ratio
from tests.solvers.perturbation.cases import DELTA, N, bounds_of, fit_of, table
from tests.solvers.whitened.cases import RELATIONS

SOLVERS = {**RECIPES, "auto": "auto", "recipe": "recipe"}
EACH_RELATION = pytest.mark.parametrize("relation", RELATIONS)


def worst(kind, relation, name="logistic", engine="dense", groups=False, every=6, declared=False, start=0, **settings):
    data = table(name, engine, groups)
    n = (N // 3 if groups else N) if declared else None
    fit = fit_of(name, SOLVERS[kind], relation, declared_n=n, **settings)
    pairs = list(neighbor_pairs(*data, relation=relation, bounds=bounds_of(name)))
    return worst_ratio(fit, pairs[start::every], relation)


@EACH_RELATION
@pytest.mark.parametrize("kind", SOLVERS)
def test_two_classes_replay(kind, relation):
    assert 0.1 < worst(kind, relation, every=5) <= 1.0


@EACH_RELATION
@pytest.mark.parametrize("kind", ["clipped", "weighted", "declared", "diagonal", "two Hessians", "auto"])
@pytest.mark.parametrize("name", ["softmax", "svc"])
def test_other_losses_of_classes_replay(name, kind, relation):
    assert 0.1 < worst(kind, relation, name, every=8) <= 1.0


@EACH_RELATION
@pytest.mark.parametrize("kind", SOLVERS)
@pytest.mark.parametrize("name", ["ridge", "huber", "linear", "poisson"])
def test_numbers_and_counts_replay(kind, relation, name):
    assert 0.1 < worst(kind, relation, name, every=9, start=len(name) % 3) <= 1.0


@EACH_RELATION
@pytest.mark.parametrize("kind", ["weighted", "declared, weighted", "travel", "two Hessians"])
@pytest.mark.parametrize("name", ["logistic", "softmax", "ridge", "huber", "poisson"])
def test_weighted_steps_that_move_replay(kind, name, relation):
    """With a budget that lets them: small tables have weighted steps stay where they begin."""
    assert 0.1 < worst(kind, relation, name, every=9, epsilon=300.0) <= 1.0


@EACH_RELATION
@pytest.mark.parametrize("kind", ["weighted", "declared, weighted", "diagonal", "two Hessians", "auto"])
@pytest.mark.parametrize("name", ["logistic", "softmax", "ridge", "poisson"])
def test_persons_replay(kind, name, relation):
    assert 0.05 < worst(kind, relation, name, groups=True, every=6) <= 1.0


@pytest.mark.parametrize("kind", ["weighted", "declared", "diagonal"])
@pytest.mark.parametrize("name", ["logistic", "ridge", "poisson"])
def test_a_declared_n_replays(kind, name):
    assert worst(kind, "add_remove", name, declared=True) <= 1.0


@EACH_RELATION
@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("weighted", "logistic"),
        ("weighted", "huber"),
        ("declared", "logistic"),
        ("clipped", "ridge"),
        ("moments", "poisson"),
        ("two Hessians", "poisson"),
        ("diagonal", "softmax"),
    ],
)
def test_without_an_intercept_it_replays(kind, name, relation):
    assert worst(kind, relation, name, fit_intercept=False, every=8) <= 1.0


CORNERS = {
    "lasso": lambda given: DPLasso(2.0, DELTA, alpha=0.05, **given),
    "net": lambda given: DPElasticNet(2.0, DELTA, alpha=0.05, **given),
    "L1 of classes": lambda given: DPLogisticRegression(2.0, DELTA, penalty=L1(0.02), **given),
    "box of classes": lambda given: DPClassifier(2.0, DELTA, penalty=Box(-0.2, 0.3), **given),
    "box of numbers": lambda given: DPRegressor(2.0, DELTA, penalty=Box(0.0, 0.3), **given),
    "groups of classes": lambda given: DPClassifier(2.0, DELTA, penalty=GroupL2(0.05, ((0, 1), (2,))), **given),
    "ball of numbers": lambda given: DPRegressor(2.0, DELTA, penalty=L2Ball(0.2), **given),
    "L1 of counts": lambda given: DPRegressor(2.0, DELTA, loss=Poisson(1.5), penalty=L1(0.05), **given),
}


@EACH_RELATION
@pytest.mark.parametrize("kind", ["clipped", "weighted", "declared", "diagonal"])
@pytest.mark.parametrize("penalty", CORNERS)
def test_penalties_with_corners_replay(penalty, kind, relation):
    name = "logistic" if "classes" in penalty else "ridge"
    given = {"bounds": bounds_of(name), "neighbors": relation, "solver": SOLVERS[kind]}

    def fit(X, y, groups=None):
        return CORNERS[penalty](given).fit(X, y, groups=groups)

    pairs = list(neighbor_pairs(*table(name), relation=relation, bounds=bounds_of(name)))
    assert 0.1 < worst_ratio(fit, pairs[::9], relation) <= 1.0


@EACH_RELATION
@pytest.mark.parametrize("name", ["logistic", "ridge"])
def test_sparse_records_replay(name, relation):
    assert 0.1 < worst("auto", relation, name, engine="sparse", every=8) <= 1.0


@EACH_RELATION
@pytest.mark.parametrize("kind", ["weighted", "declared", "diagonal"])
def test_ranges_far_from_zero_replay(kind, relation):
    """The fine grid, and centers that the declared ranges give."""
    rng = np.random.default_rng(0)
    X, y = rng.uniform(1990, 2020, (9, 2)), rng.choice([0.0, 1.0], 9)
    bounds = Bounds([(1990.0, 2020.0)] * 2, classes=(0, 1))

    def fit(X, y, groups=None):
        return DPLogisticRegression(2.0, 1e-5, bounds=bounds, neighbors=relation, solver=SOLVERS[kind]).fit(X, y)

    for pair in list(neighbor_pairs(X, y, relation=relation, bounds=bounds))[::6]:
        assert assert_replay(fit, pair.data, pair.neighbor, relation).ratio <= 1


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("weighted", "logistic"),
        ("weighted", "softmax"),
        ("weighted", "ridge"),
        ("declared", "svc"),
        ("moments", "huber"),
        ("diagonal", "logistic"),
        ("two Hessians", "poisson"),
    ],
)
def test_noise_is_fresh(kind, name):
    assert_fresh_noise(fit_of(name, SOLVERS[kind], "zero_out"), table(name), runs=2)


@pytest.mark.parametrize("kind", ["auto", "weighted", "declared", "diagonal"])
def test_nobody_and_somebody(kind):
    """Under add_remove a table without records has a neighbor with one."""

    def fit(X, y, groups=None):
        given = {"bounds": Bounds(1.0, classes=(0, 1)), "neighbors": "add_remove", "solver": SOLVERS[kind]}
        return DPLogisticRegression(2.0, 1e-5, **given).fit(X, y)

    empty, one = (np.zeros((0, 2)), np.zeros(0)), (np.ones((1, 2)), np.ones(1))
    assert assert_replay(fit, empty, one, "add_remove").ratio <= 1
