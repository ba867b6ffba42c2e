"""DP-AGD on worst-case neighbors with frozen answers: what still differs is a leak."""

import pytest

from discreet.solvers import AdaptiveDescent
from discreet.testing import assert_fresh_noise, neighbor_pairs
from tests.replaying import worst_ratio
from tests.solvers.agd.cases import RELATIONS
from tests.solvers.perturbation.cases import N, bounds_of, fit_of, table

SOLVERS = {
    "exponential": AdaptiveDescent(n_rounds=3, n_step_sizes=4, clip=0.2, loss_bound=1.0),
    "noisy_max": AdaptiveDescent(n_rounds=3, n_step_sizes=4, clip=0.2, loss_bound=1.0, selection="noisy_max"),
    "wide": AdaptiveDescent(n_rounds=2, n_step_sizes=3, clip=10.0, loss_bound=50.0),
}


def worst(kind, relation, name="logistic", engine="dense", groups=False, every=7):
    data = table(name, engine, groups)
    declared = (N // 3 if groups else N) if relation == "add_remove" else None
    fit = fit_of(name, SOLVERS[kind], relation, declared_n=declared)
    pairs = list(neighbor_pairs(*data, relation=relation, bounds=bounds_of(name)))
    return worst_ratio(fit, pairs[(len(kind) + len(name)) % every :: every], relation)


@pytest.mark.few(1)
@pytest.mark.parametrize("engine", ["dense", "sparse"])
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("kind", ["exponential", "noisy_max", "wide"])
def test_it_replays(kind, relation, engine):
    assert 0.01 < worst(kind, relation, engine=engine, every=5) <= 1.0


@pytest.mark.few(2)
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("name", ["softmax", "svc", "huber", "ridge"])
def test_every_loss_replays(name, relation):
    assert 0.001 < worst("exponential", relation, name, every=9) <= 1.0


@pytest.mark.few(1)
@pytest.mark.parametrize("engine", ["dense", "sparse"])
@pytest.mark.parametrize("relation", RELATIONS)
def test_persons_replay(relation, engine):
    assert 0.01 < worst("exponential", relation, engine=engine, groups=True, every=5) <= 1.0


def test_the_defaults_replay(monkeypatch):
    monkeypatch.setattr("discreet.solvers.agd.MOST_ROUNDS", 15)
    monkeypatch.setitem(SOLVERS, "default", "agd")
    assert worst("default", "replace_one", every=9) <= 1.0


def test_noise_is_fresh():
    """Of the sums; a choice shows no noise of its own."""
    assert_fresh_noise(fit_of("logistic", SOLVERS["exponential"], "zero_out"), table("logistic"), runs=1)
