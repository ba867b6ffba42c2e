"""Whitened fits on worst-case neighbors with frozen answers: what still differs is a leak."""

import numpy as np
import pytest

from discreet import Bounds, DPLogisticRegression
from discreet.testing import assert_fresh_noise, assert_replay, neighbor_pairs
from tests.replaying import worst_ratio
from tests.solvers.perturbation.cases import N, bounds_of, fit_of, table
from tests.solvers.whitened.cases import RELATIONS, descent

SOLVERS = {
    "full": descent("full", n_steps=3),
    "diagonal": descent("diagonal", n_steps=3, momentum=0.9),
    "plain": descent("plain", n_steps=3),
    "plain, averaged": descent("plain", n_steps=4, momentum=0.0, clip=0.2, average="tail"),
}


def worst(kind, relation, name="logistic", engine="dense", groups=False, every=5, declared=False, start=0, **settings):
    data = table(name, engine, groups)
    n = (N // 3 if groups else N) if declared else None
    fit = fit_of(name, SOLVERS[kind], relation, declared_n=n, **settings)
    pairs = list(neighbor_pairs(*data, relation=relation, bounds=bounds_of(name)))
    return worst_ratio(fit, pairs[start::every], relation)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("kind", ["full", "diagonal", "plain"])
def test_classifiers_replay(kind, relation):
    assert 0.4 < worst(kind, relation, every=4) <= 1.0


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("kind", ["full", "plain, averaged"])
@pytest.mark.parametrize("name", ["ridge", "huber", "linear"])
def test_regressors_replay(kind, relation, name):
    assert 0.1 < worst(kind, relation, name, every=8, start=len(name) % 3) <= 1.0


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("name", ["softmax", "svc"])
@pytest.mark.parametrize("kind", ["full"])
def test_every_class_loss_replays(name, kind, relation):
    assert 0.1 < worst(kind, relation, name, every=8) <= 1.0


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("kind", ["diagonal", "plain"])
def test_sparse_records_replay(kind, relation):
    assert 0.1 < worst(kind, relation, engine="sparse", every=8) <= 1.0


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize(
    ("kind", "name"),
    [("full", "logistic"), ("diagonal", "logistic"), ("full", "ridge")],
)
def test_persons_replay(kind, name, relation):
    assert 0.1 < worst(kind, relation, name, groups=True, every=5) <= 1.0


@pytest.mark.parametrize(("kind", "name"), [("full", "logistic"), ("full", "ridge")])
def test_a_declared_n_replays(kind, name):
    assert worst(kind, "add_remove", name, declared=True, every=6) <= 1.0


@pytest.mark.parametrize(("kind", "name"), [("full", "logistic"), ("full", "huber"), ("plain", "logistic")])
def test_without_an_intercept_it_replays(kind, name):
    assert worst(kind, "replace_one", name, fit_intercept=False, every=6) <= 1.0


@pytest.mark.parametrize("relation", RELATIONS)
def test_ranges_far_from_zero_replay(relation):
    """The fine grid, and centers that the declared ranges give."""
    rng = np.random.default_rng(0)
    X, y = rng.uniform(1990, 2020, (9, 2)), rng.choice([0.0, 1.0], 9)
    bounds = Bounds([(1990.0, 2020.0)] * 2, classes=(0, 1))

    def fit(X, y, groups=None):
        return DPLogisticRegression(2.0, 1e-5, bounds=bounds, neighbors=relation, solver=SOLVERS["full"]).fit(X, y)

    for pair in list(neighbor_pairs(X, y, relation=relation, bounds=bounds))[::6]:
        assert assert_replay(fit, pair.data, pair.neighbor, relation).ratio <= 1


@pytest.mark.parametrize(("kind", "name"), [("full", "logistic"), ("diagonal", "svc"), ("full", "ridge")])
def test_noise_is_fresh(kind, name):
    assert_fresh_noise(fit_of(name, SOLVERS[kind], "zero_out"), table(name), runs=2)


def test_nobody_and_somebody():
    """Under add_remove a table without records has a neighbor with one."""
    bounds = Bounds(1.0, classes=(0, 1))
    for solver in (SOLVERS["full"], SOLVERS["diagonal"]):

        def fit(X, y, groups=None, solver=solver):
            return DPLogisticRegression(2.0, 1e-5, bounds=bounds, neighbors="add_remove", solver=solver).fit(X, y)

        empty, one = (np.zeros((0, 2)), np.zeros(0)), (np.ones((1, 2)), np.ones(1))
        assert assert_replay(fit, empty, one, "add_remove").ratio <= 1
