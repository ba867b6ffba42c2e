"""Every model, solver, relation and engine on worst-case neighbors with frozen answers: nothing else may differ."""

import pytest

from discreet import DPLogisticRegression
from discreet.solvers import GradientDescent
from discreet.testing import Data, assert_fresh_noise, assert_replay, neighbor_pairs, replay
from tests.testing.small_fits import ESTIMATORS, bounds_of, fit_of, prices_remembered, table

RELATIONS = ("replace_one", "zero_out", "add_remove")
NEAR = {name: 0.86 if name == "softmax" else 0.9 for name in ESTIMATORS}  # two softmax gradients are never opposite


@pytest.fixture(autouse=True, scope="module")
def _cheap_prices():
    with prices_remembered():
        yield


def check_all(name, kind, relation, data):
    """Replay every pair of neighbors; the worst must come near the sensitivity, or the pairs are too tame."""
    fit, worst = fit_of(name, kind, relation), 0.0
    pairs = list(neighbor_pairs(*data, relation=relation, bounds=bounds_of(name), sampled=kind == "sgd"))
    for pair in pairs:
        try:
            worst = max(worst, assert_replay(fit, pair.data, pair.neighbor, relation).ratio)
        except AssertionError as error:
            raise AssertionError(f"{pair.name}: {error}") from None
    return len(pairs), worst


@pytest.mark.few(8)
@pytest.mark.parametrize("engine", ["dense", "sparse"])
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("kind", ["gd", "sgd", "pure"])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_fit_replays(name, kind, relation, engine):
    count, worst = check_all(name, kind, relation, table(name, engine))
    assert count >= 17
    assert NEAR[name] < worst <= 1.0


@pytest.mark.few(2)
@pytest.mark.parametrize("engine", ["dense", "sparse"])
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize(
    ("name", "kind"), [("logistic", "gd"), ("softmax", "sgd"), ("ridge", "pure"), ("huber", "sgd")]
)
def test_persons_replay(name, kind, relation, engine):
    count, worst = check_all(name, kind, relation, table(name, engine, groups=True))
    assert count >= 30
    assert NEAR[name] < worst <= 1.0


@pytest.mark.parametrize("row_norm", [0.5, 2.0])
@pytest.mark.parametrize("scale", ["feature", "global"])
def test_row_norms_and_scales_replay(row_norm, scale):
    bounds = bounds_of("huber").with_facts(row_norm=row_norm, scale=scale)
    for pair in neighbor_pairs(*table("huber"), relation="zero_out", bounds=bounds):
        assert_replay(fit_of("huber", "gd", "zero_out", bounds=bounds), pair.data, pair.neighbor, "zero_out")


@pytest.mark.parametrize("engine", ["dense", "sparse"])
@pytest.mark.parametrize("kind", ["gd", "sgd"])
def test_the_only_record_removed(kind, engine):
    data = table("logistic", engine, n=1)
    none = Data(data.X[:0], data.y[:0])
    assert_replay(fit_of("logistic", kind, "add_remove"), data, none, "add_remove")


@pytest.mark.parametrize("relation", RELATIONS)
def test_default_settings_replay(relation):
    """Without a solver or a clip of the user's: the rules behind "auto" read no record either."""
    for pair in list(neighbor_pairs(*table("softmax"), relation=relation, bounds=bounds_of("softmax")))[::4]:
        assert_replay(fit_of("softmax", "gd", relation, solver="auto"), pair.data, pair.neighbor, relation)


def test_without_an_intercept():
    fit = fit_of("logistic", "gd", "replace_one", fit_intercept=False)
    for pair in neighbor_pairs(*table("logistic"), relation="replace_one", bounds=bounds_of("logistic")):
        assert_replay(fit, pair.data, pair.neighbor)


def test_the_sensitivity_is_attained():
    """A clipped record against its mirror image moves the sum by twice the bound, up to rounding."""
    X, y, _ = table("logistic")
    X[0] = [1.0, 10.0, -5.0]
    y[0] = 0.0
    other = y.copy()
    other[0] = 1.0
    assert replay(fit_of("logistic"), (X, y), (X, other)).ratio > 0.999


@pytest.mark.parametrize("name", ["logistic", "softmax"])
@pytest.mark.parametrize("kind", ["gd", "sgd", "pure"])
def test_noise_is_never_used_twice(name, kind):
    report = assert_fresh_noise(fit_of(name, kind), table(name), runs=3)
    assert report.releases == 9


def test_two_models_in_one_fit_have_noise_of_their_own():
    def fit(X, y, groups):
        given = {"bounds": bounds_of("logistic"), "solver": GradientDescent(n_steps=2, clip=1.0)}
        return [DPLogisticRegression(1.0, 1e-5, **given).fit(X, y) for _ in range(3)]

    assert assert_fresh_noise(fit, table("logistic")).releases == 12
