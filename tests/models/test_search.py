"""DPRandomizedSearch: what is released, at what price, and what it refuses."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import discreet
from discreet import Bounds, DPLogisticRegression, DPPoissonRegressor, DPRandomizedSearch, DPRidge
from discreet.accounting.events import Gaussian, RepeatedSelection
from discreet.accounting.pricing import price_plan
from discreet.accounting.selection import Stopping
from discreet.curator.records import derived
from discreet.errors import PlanViolation, Unsupported
from discreet.models import search as selection_module
from discreet.solvers import GradientDescent
from discreet.testing import assert_fresh_noise, neighbor_pairs
from tests.covering import covering
from tests.replaying import window, worst_ratio
from tests.solvers.perturbation.cases import RELATIONS, bounds_of, table

FEW = {"solver": [GradientDescent(n_steps=3, clip=0.5), "cd"], "alpha": [1e-4, 1e-1]}


def classifier(**settings):
    return DPLogisticRegression(bounds=1.0, classes=(-1, 1), **settings)


@pytest.fixture(scope="module")
def rows(request):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (300, 3))
    return X, np.where(X @ [2.0, -1.0, 0.5] + 0.3 * rng.normal(size=300) > 0, 1, -1)


@pytest.fixture(scope="module")
def fitted(rows):
    return DPRandomizedSearch(classifier(), FEW, epsilon=3.0).fit(*rows)


# ---------------------------------------------------------------------------------------------- outcome


def test_what_is_released(fitted, rows):
    assert set(fitted.best_params_) == {"solver", "alpha"}
    assert fitted.best_estimator_.alpha == fitted.best_params_["alpha"]
    assert (fitted.best_estimator_.epsilon, fitted.best_estimator_.delta) == (3.0, 1e-6)
    assert fitted.best_estimator_.certificate_ is fitted.certificate_
    np.testing.assert_array_equal(fitted.predict(rows[0]), fitted.best_estimator_.predict(rows[0]))
    assert fitted.score(*rows) == fitted.best_estimator_.score(*rows)
    assert fitted.predict_proba(rows[0]).shape == (300, 2)
    assert fitted.predict_log_proba(rows[0]).shape == (300, 2)
    assert fitted.decision_function(rows[0]).shape == (300,)
    assert (fitted.classes_.tolist(), fitted.n_features_in_) == ([-1, 1], 3)
    assert -1 < fitted.best_score_ < 2


def test_the_certificate(fitted):
    certificate = fitted.certificate_
    assert certificate.is_private
    assert (certificate.epsilon, certificate.delta, certificate.unit) == (3.0, 1e-6, "record")
    (event,) = certificate.events
    assert isinstance(event, RepeatedSelection)
    assert (event.mean, event.shape) == (4.0, 0.0)
    found = certificate.verify()
    assert 0.99 * 3 < found.epsilon <= 3.0
    assert certificate.solver["selected_from"] == 4
    assert certificate.assumed_public["n"] == 300
    assert certificate.solver["run_epsilon"] < 2.2
    assert discreet.Certificate.from_json(certificate.to_json()) == certificate
    assert "secret" in certificate.text()


def test_nothing_tells_the_number_of_runs(rows, monkeypatch, capsys):
    """Two fits that differ in the number of runs alone show the same, but for the noise."""
    shown = []
    size, _ = DPRandomizedSearch(classifier(), {"alpha": [1e-3]}, epsilon=3.0)._sizes(300)
    parts = (slice(0, size), slice(size, 300))
    halves = tuple(derived.Part(rows[0][part], rows[1][part], None) for part in parts)
    monkeypatch.setattr(selection_module, "split", lambda *given: halves)
    for count in (1, 7):
        monkeypatch.setattr(Stopping, "draw", lambda self, word, count=count: count)
        model = DPRandomizedSearch(classifier(verbose=True), {"alpha": [1e-3]}, epsilon=3.0).fit(*rows)
        shown.append((sorted(vars(model)), sorted(vars(model.best_estimator_)), model.certificate_.to_json()))
    assert shown[0] == shown[1]
    assert capsys.readouterr() == ("", "")


def test_the_best_score_wins_and_of_equal_ones_the_first(rows, monkeypatch):
    scores, turns = iter([0.3, 0.9, 0.9, 0.1]), iter(range(4))
    monkeypatch.setattr(Stopping, "draw", lambda self, word: 4)
    monkeypatch.setattr(selection_module, "uniform_below", lambda sides, entropy: next(turns))
    monkeypatch.setattr(selection_module.Runs, "_score", lambda *args: next(scores))
    model = DPRandomizedSearch(classifier(), {"alpha": [1e-4, 1e-3, 1e-2, 1e-1]}, epsilon=3.0).fit(*rows)
    assert (model.best_params_, model.best_score_) == ({"alpha": 1e-3}, 0.9)


# --------------------------------------------------------------------------------------------- the price


@covering(("neighbors", RELATIONS), ("stopping", ["poisson", "geometric", "logarithmic", "auto"]))
def test_it_costs_what_was_asked_for(rows, stopping, neighbors):
    estimator = DPLogisticRegression(bounds=Bounds(1.0, classes=(-1, 1), n=300))
    chosen = DPRandomizedSearch(estimator, FEW, epsilon=2.0, neighbors=neighbors, stopping=stopping)
    offer = chosen.offer(300, 3)
    assert 0.99 * 2 < offer.price.epsilon <= 2.0
    assert offer.run.epsilon < 2.0
    fitted = chosen.fit(*rows)
    assert fitted.certificate_.verify().epsilon <= 2.0
    assert fitted.certificate_.neighbors == neighbors
    assert fitted.certificate_.assumed_public["n"] == 300


def test_an_approximate_sampler_cannot_be_selected_among(rows):
    with pytest.raises(Unsupported, match="only approximate"):
        DPRandomizedSearch(classifier(), {"solver": ["exponential"]}, epsilon=4.0).fit(*rows)


def test_a_run_releases_what_was_priced_and_no_more(rows, monkeypatch):
    """Counted through the window: each run's noise is at least that of the certificate's events."""
    monkeypatch.setattr(Stopping, "draw", lambda self, word: 3)
    with window() as seen:
        model = DPRandomizedSearch(classifier(), {"solver": [GradientDescent(n_steps=3, clip=0.5)]}, epsilon=3.0).fit(
            *rows
        )
    assert [m.query for m in seen] == (["noisy_gradient"] * 3 + ["noisy_score"]) * 3
    ((run,),) = model.certificate_.events[0].runs
    mu = math.sqrt(sum((2 * m.unit.bound / 2**m.unit.m) ** 2 for m in seen[:3]))
    assert mu <= 1 / run.noise_multiplier
    assert 2 * seen[3].unit.bound / 2 ** seen[3].unit.m <= 1 / run.noise_multiplier
    assert not model.certificate_.is_private  # somebody looked


def test_a_candidate_that_releases_something_else_is_stopped(rows, monkeypatch):
    planned = selection_module.offer

    def other(*asked):
        found = planned(*asked)
        other_price = price_plan([Gaussian(100.0)], found.run)
        return replace(found, planned=tuple(replace(one, priced=other_price) for one in found.planned))

    monkeypatch.setattr(selection_module, "offer", other)
    monkeypatch.setattr(Stopping, "draw", lambda self, word: 1)
    with pytest.raises(PlanViolation, match="priced"):
        DPRandomizedSearch(classifier(), FEW, epsilon=3.0).fit(*rows)


# ------------------------------------------------------------------------------------------- the privacy


def selecting(name, relation, delta=1e-5, declared=None, **settings):
    """A selection for replay."""
    bounds = bounds_of(name, declared)
    estimator = {"logistic": DPLogisticRegression, "softmax": DPLogisticRegression, "ridge": DPRidge,
                 "poisson": DPPoissonRegressor}[name](bounds=bounds)  # fmt: skip
    solvers = [GradientDescent(n_steps=2, clip=0.3), "svrg" if name == "softmax" else "cd"]

    def fit(X, y, groups=None):
        chosen = DPRandomizedSearch(
            estimator, {"solver": solvers}, epsilon=3.0, delta=delta, neighbors=relation, **settings
        )
        return chosen.fit(X, y, groups)

    return fit


@pytest.mark.few(2)
@covering(
    ("name", ["logistic", "softmax", "ridge", "poisson"]), ("relation", RELATIONS), ("engine", ["dense", "sparse"])
)
def test_it_replays(name, relation, engine):
    declared = 40 if relation == "add_remove" else None
    pairs = list(neighbor_pairs(*table(name, engine, n=40), relation=relation, bounds=bounds_of(name), sampled=True))
    ratio = worst_ratio(selecting(name, relation, declared=declared, mean_runs=4), pairs[2::25], relation)
    assert 0.01 < ratio <= 1.0


@pytest.mark.few(1)
@pytest.mark.parametrize("relation", RELATIONS)
def test_persons_replay(relation):
    declared = 20 if relation == "add_remove" else None
    data = table("logistic", groups=True, n=60)
    pairs = list(neighbor_pairs(*data, relation=relation, bounds=bounds_of("logistic"), sampled=True))
    assert 0.01 < worst_ratio(selecting("logistic", relation, declared=declared), pairs[1::25], relation) <= 1.0


def test_noise_is_fresh_in_every_run(monkeypatch):
    monkeypatch.setattr(Stopping, "draw", lambda self, word: 4)
    assert_fresh_noise(selecting("logistic", "zero_out"), table("logistic", n=40), runs=2)


@pytest.mark.parametrize("kind", ["array", "frame", "list", "csr", "coo"])
def test_parts(kind, seeded):
    X, y = np.arange(60.0).reshape(30, 2), np.arange(30)
    given = {
        "array": X,
        "frame": pd.DataFrame(X, columns=["a", "b"], index=range(5, 35)),
        "list": X.tolist(),
        "csr": sparse.csr_matrix(X),
        "coo": sparse.coo_array(X),
    }[kind]
    with seeded(2):
        first, second = derived.split(given, pd.Series(y), None, 1 << 14)
    assert first.n_rows + second.n_rows == 30
    assert second.n_rows > 1
    assert sorted([*first.y, *second.y]) == list(range(30))
    for part in (first, second):
        cells = part.X.toarray() if sparse.issparse(part.X) else np.asarray(part.X, dtype=float)
        np.testing.assert_array_equal(cells[:, 0], 2 * part.y)


@pytest.mark.parametrize("names", [list("abcabcabcd"), np.arange(10) // 3, [None, (1,), "x"] * 3 + ["y"]])
def test_persons_stay_together(names, seeded):
    for seed in range(5):
        with seeded(seed):
            one, two = derived.split(np.zeros((10, 1)), np.arange(10), names, 1 << 15)
        assert not {str(name) for name in one.groups} & {str(name) for name in two.groups}
        assert [names[i] for i in one.y.tolist()] == one.groups.tolist()


# ----------------------------------------------------------------------------------------------- refusals


def test_a_run_that_fails_ends_the_selection_and_is_not_drawn_again(rows, monkeypatch):
    asked = []

    def fails(self, *args):
        asked.append(self)
        raise Unsupported("no")

    monkeypatch.setattr(Stopping, "draw", lambda self, word: 3)
    monkeypatch.setattr(DPLogisticRegression, "fit", fails)
    with pytest.raises(Unsupported, match="no"):
        DPRandomizedSearch(classifier(), FEW, epsilon=3.0).fit(*rows)
    assert len(asked) == 1


@pytest.mark.whole
@pytest.mark.parametrize(
    "candidate",
    [
        {"fit_intercept": 2}, {"alpha": "1"}, {"start": ([1.0], 0.0)}, {"public_moments": ([0.0], [1.0])},
        {"inference": "jackknife"}, {"inference": "sandwich"}, {"solver": "output", "start": ([0.0, 0.0], 0.0)},
    ],
    ids=str,
)  # fmt: skip
def test_candidates_that_cannot_be_fitted_are_refused_before_the_charge(candidate):
    ledger = discreet.Ledger(":memory:")
    ledger.grant("census", 10.0, 1e-5)
    model = discreet.DPLogisticRegression(bounds=discreet.Bounds(1.0, classes=(0, 1)), solver="gd")
    search = discreet.DPRandomizedSearch(model, [{}, candidate], epsilon=1.0, ledger=ledger, dataset="census")
    with pytest.raises(discreet.DiscreetError):
        search.fit(np.ones((60, 2)), [0, 1] * 30)
    assert len(ledger.entries()) == 1  # the grant
