"""A whole score on worst-case neighbors with frozen answers: what still differs is a leak."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse

from discreet import private_score
from discreet.accounting.priced_plan import PricedPlan
from discreet.accounting.pricing import remembered_prices
from discreet.curator.metrics import METRICS as METRICS_BY_NAME
from discreet.curator.metrics import prediction_errors, roc
from discreet.testing import Pair, assert_fresh_noise, neighbor_pairs
from tests.models.scored import METRICS, RELATIONS, Stream, model_of, table
from tests.priced import at_noise
from tests.replaying import worst_ratio


@pytest.fixture(autouse=True, scope="module")
def _cheap_prices():
    with remembered_prices():
        yield


def asked(metric, name, relation, *, delta=1e-5, streamed=False, compressed=False, by=None):
    """A fit for replay that does nothing but score."""

    def fit(X, y, groups=None):
        if compressed:
            X = sparse.csr_array(X)
        if streamed:
            X, y, groups = Stream(X, np.asarray(y, dtype=float), groups, 7), None, None
        score = private_score(
            model_of(name),
            X,
            y,
            groups,
            metric=metric,
            epsilon=2.0,
            delta=delta,
            neighbors=relation,
            ledger=False,
            by=by,
        )
        return SimpleNamespace(score=score, certificate_=score.certificate)

    return fit


def pairs_of(name, relation, groups=False, every=2):
    X, y = table(name, 24, missing=False)
    persons = np.arange(24) // 3 if groups else None
    return list(neighbor_pairs(X, y, persons, relation=relation, bounds=model_of(name).bounds))[::every]


@pytest.mark.parametrize("delta", [0.0, 1e-5])
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize(("metric", "name"), METRICS.items())
def test_scores_replay(metric, name, relation, delta):
    near = {"brier": 0.4, "log_loss": 0.4, "mae": 0.4, "r2": 0.6, "rmse": 0.4}.get(
        metric, 0.99
    )  # no row here brings all that it could
    assert near < worst_ratio(asked(metric, name, relation, delta=delta), pairs_of(name, relation), relation) <= 1.0


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize(("metric", "name"), [("accuracy", "softmax"), ("r2", "poisson"), ("auc", "logistic")])
def test_other_models_replay(metric, name, relation):
    assert 0.4 < worst_ratio(asked(metric, name, relation), pairs_of(name, relation, every=5), relation) <= 1.0


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize(("metric", "name"), METRICS.items())
def test_persons_replay(metric, name, relation):
    found = worst_ratio(asked(metric, name, relation), pairs_of(name, relation, groups=True, every=5), relation)
    assert 0.4 < found <= 1.0


@pytest.mark.parametrize("relation", ["replace_one", "add_remove"])
@pytest.mark.parametrize(("metric", "name"), METRICS.items())
@pytest.mark.parametrize("stored", ["streamed", "compressed"])
def test_other_containers_replay(metric, name, relation, stored):
    fit = asked(metric, name, relation, **{stored: True})
    assert 0.4 < worst_ratio(fit, pairs_of(name, relation, every=6), relation) <= 1.0


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("stored", ["streamed", "compressed", None])
@pytest.mark.parametrize("metric", ["accuracy", "brier", "log_loss"])
def test_scores_by_group_replay(metric, stored, relation):
    fit = asked(metric, "logistic", relation, by=0, **({stored: True} if stored else {}))
    assert 0.4 < worst_ratio(fit, pairs_of("logistic", relation, every=6), relation) <= 1.0


@pytest.mark.parametrize(("metric", "name"), METRICS.items())
def test_noise_is_fresh(metric, name):
    assert_fresh_noise(asked(metric, name, "zero_out"), table(name, 24), runs=2)


def test_a_statistic_of_the_whole_table_is_found(monkeypatch):
    """Bins from the margins themselves, as a careless hand would make them."""

    def quantiles(model, margins, scored, noisy):
        noisy.released += 1
        return np.unique(np.quantile(margins[scored], np.linspace(0, 1, 9)[1:-1]))

    monkeypatch.setattr(roc, "_bins", quantiles)
    with pytest.raises(AssertionError):
        worst_ratio(asked("auc", "logistic", "replace_one"), pairs_of("logistic", "replace_one"), "replace_one")


def test_errors_in_units_of_the_largest_are_found(monkeypatch):
    """The width of the range read off the rows, where the declared one belongs."""
    honest = prediction_errors.row_errors

    def of_the_largest(model, margins, targets):
        found = honest(model, margins, targets)
        return found / max(np.nanmax(found, initial=1e-9), 1e-9)

    monkeypatch.setitem(METRICS_BY_NAME, "mae", replace(METRICS_BY_NAME["mae"], row_values=of_the_largest))
    with pytest.raises(AssertionError):
        worst_ratio(asked("mae", "ridge", "replace_one"), pairs_of("ridge", "replace_one"), "replace_one")


def test_noise_below_the_price_is_found(monkeypatch):
    """All three releases at the noise of one."""
    honest = PricedPlan.only

    def only(self, place, clip):
        part = honest(self, place, clip)
        return at_noise(part.plan, part.budget, 1.0)

    monkeypatch.setattr(PricedPlan, "only", only)
    with pytest.raises(AssertionError, match="less noise"):
        worst_ratio(asked("auc", "logistic", "zero_out"), pairs_of("logistic", "zero_out")[:1], "zero_out")


def test_one_row_from_right_to_wrong_moves_the_counts_by_all_that_is_paid_for():
    X, y = table("logistic", 24, missing=False)
    changed = y.copy()
    changed[0] = 1 - changed[0]
    pair = Pair("one label turned", (X, y), (X, changed))
    found = worst_ratio(asked("accuracy", "logistic", "replace_one"), [pair], "replace_one")
    assert 0.999 < found <= 1.0
