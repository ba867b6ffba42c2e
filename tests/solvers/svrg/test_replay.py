"""DP-SVRG on worst-case neighbors with frozen answers: what still differs is a leak."""

import pytest

from discreet.solvers import VarianceReducedDescent
from discreet.testing import assert_fresh_noise, neighbor_pairs
from tests.replaying import worst_ratio
from tests.solvers.perturbation.cases import bounds_of, fit_of, table
from tests.solvers.svrg.cases import RELATIONS
from tests.testing.small_fits import prices_remembered

SOLVERS = {
    "tight": VarianceReducedDescent(n_epochs=2, n_inner=3, sampling_probability=0.5, clip=0.1, step_size=2.0),
    "wide": VarianceReducedDescent(n_epochs=2, n_inner=3, sampling_probability=0.75, clip=10.0, step_size=0.2),
    "mean": VarianceReducedDescent(
        n_epochs=2, n_inner=3, sampling_probability=0.5, clip=0.1, average="uniform", radius=1.0
    ),
    "full": VarianceReducedDescent(n_epochs=1, n_inner=3, clip=0.1, step_size=2.0),
}


@pytest.fixture(autouse=True, scope="module")
def _cheap_prices():
    with prices_remembered():
        yield


def worst(kind, relation, name="logistic", engine="dense", groups=False, every=7, delta=1e-5):
    data = table(name, engine, groups)
    fit = fit_of(name, SOLVERS[kind], relation, delta)
    pairs = list(neighbor_pairs(*data, relation=relation, bounds=bounds_of(name), sampled=kind != "full"))
    return worst_ratio(fit, pairs[(len(kind) + len(name)) % every :: every], relation)


@pytest.mark.parametrize("engine", ["dense", "sparse"])
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("kind", SOLVERS)
def test_it_replays(kind, relation, engine):
    assert 0.005 < worst(kind, relation, engine=engine) <= 1.0


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("name", ["softmax", "svc", "huber", "poisson", "ridge"])
def test_every_loss_replays(name, relation):
    assert 0.001 < worst("tight", relation, name, every=9) <= 1.0


@pytest.mark.parametrize("engine", ["dense", "sparse"])
@pytest.mark.parametrize("relation", RELATIONS)
def test_persons_replay(relation, engine):
    assert 0.005 < worst("tight", relation, engine=engine, groups=True, every=5) <= 1.0


@pytest.mark.parametrize("relation", RELATIONS)
def test_pure_budgets_replay(relation):
    assert worst("tight", relation, every=7, delta=0.0) <= 1.0


def test_noise_is_fresh():
    assert_fresh_noise(fit_of("softmax", SOLVERS["tight"], "zero_out"), table("softmax"), runs=3)
