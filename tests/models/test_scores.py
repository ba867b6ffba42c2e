"""Private scores: right without noise, covered by their intervals with it, paid for before a row is read."""

import json
import math
from functools import lru_cache

import numpy as np
import pytest
from scipy import sparse

from discreet import BudgetExceeded, DiscreetError, DPLogisticRegression, Ledger, private_score, public_score
from discreet.curator import Groups, measure_private, private_data, session
from discreet.curator.metrics import noisy_sums
from discreet.curator.metrics.noisy_sums import Noise
from discreet.curator.noise import SeededEntropy, use_entropy
from discreet.errors import Unsupported
from discreet.models.scores import released
from tests.covering import covering
from tests.models.scored import Stream, by_hand, model_of, table
from tests.registry import METRICS, RELATIONS

ALL = [
    *METRICS.items(),
    ("accuracy", "svc"),
    ("auc", "svc"),
    ("accuracy", "softmax"),
    ("balanced_accuracy", "svc"),
    ("balanced_accuracy", "softmax"),
    ("brier", "logistic"),
    ("brier", "softmax"),
    ("log_loss", "logistic"),
    ("log_loss", "softmax"),
    ("calibration", "logistic"),
    ("confusion", "softmax"),
    ("r2", "huber"),
    ("r2", "poisson"),
]


def scored(name, metric, X, y, groups=None, *, epsilon=1.0, delta=1e-5, seed=None, **settings):
    settings = {"ledger": False, **settings}
    if seed is None:
        return private_score(model_of(name), X, y, groups, metric=metric, epsilon=epsilon, delta=delta, **settings)
    with use_entropy(SeededEntropy(seed)):
        return scored(name, metric, X, y, groups, epsilon=epsilon, delta=delta, **settings)


# --- without noise ----------------------------------------------------------------------------------


@covering((("metric", "name"), ALL), ("relation", RELATIONS))
def test_without_noise_it_is_the_score(metric, name, relation):
    X, y = table(name)
    found = scored(name, metric, X, y, epsilon=math.inf, neighbors=relation)
    true = by_hand(model_of(name), X, y, metric)
    assert found.low <= true <= found.high
    assert abs(found.value - true) < (2e-3 if metric == "auc" else 1e-4)
    assert found.n == (None if relation == "add_remove" else len(y))
    assert not found.is_private


@pytest.mark.parametrize(("metric", "name"), ALL)
def test_public_rows_are_scored_exactly(metric, name):
    X, y = table(name)
    found, true = public_score(model_of(name), X, y, metric), by_hand(model_of(name), X, y, metric)
    assert found.value == pytest.approx(true, abs=1e-12)
    assert found.low == found.high == found.value
    assert found.population_low < true < found.population_high
    assert found.certificate is None
    assert "declared public" in found.text()
    assert found.to_dict()["rows"] == "declared public"


@covering(("relation", RELATIONS), (("metric", "name"), METRICS.items()))
def test_a_persons_rows_share_one_vote(metric, name, relation):
    X, y = table(name)
    groups = np.random.default_rng(1).integers(0, 150, len(y))
    found = scored(name, metric, X, y, groups, epsilon=math.inf, neighbors=relation)
    true = by_hand(model_of(name), X, y, metric, groups)
    assert found.low - 1e-5 <= true <= found.high + 1e-5
    assert found.certificate.unit == "person"
    assert found.n == (None if relation == "add_remove" else len(np.unique(groups)))


@pytest.mark.parametrize(("metric", "name"), METRICS.items())
def test_nothing_to_score(metric, name):
    """Rows without a target leave noise only: an interval that says nothing, and no exception."""
    X, _ = table(name)
    low = -math.inf if metric == "r2" else 0.0
    found = scored(name, metric, X, np.full(len(X), np.nan), neighbors="add_remove", seed=0)
    high = {"log_loss": -math.log(0.01), "mae": 5.0, "rmse": 5.0}.get(metric, 1.0)
    assert (found.low, found.high) == (low, high)
    empty = scored(name, metric, X[:0], np.zeros(0), neighbors="add_remove", seed=0)
    assert (empty.low, empty.high) == (low, high)
    json.dumps(empty.to_dict(), allow_nan=False)
    assert empty.text()
    exact = public_score(model_of(name), X[:3], np.full(3, np.nan), metric)
    assert math.isnan(exact.value)
    json.dumps(exact.to_dict(), allow_nan=False)


# --- coverage ---------------------------------------------------------------------------------------

RUNS = {**dict.fromkeys(METRICS, 100), "auc": 40}  # an area takes longest, and its interval has room to spare


@lru_cache
def covered(*given, **settings):
    return coverage(*given, **settings)


def coverage(metric, name, relation, level, *, epsilon=2.0, delta=1e-5, groups=None, n=600):
    """How often the interval holds the score, over seeds."""
    (X, y), runs = table(name, n), RUNS[metric]
    persons = None if groups is None else np.arange(n) % groups
    true = by_hand(model_of(name), X, y, metric, persons)
    settings = {"epsilon": epsilon, "delta": delta, "neighbors": relation, "level": level}
    found = [scored(name, metric, X, y, persons, seed=seed, **settings) for seed in range(runs)]
    return sum(one.low <= true <= one.high for one in found) / runs


def least(level, metric):
    """Below this with a chance of about 1e-4, where coverage is exactly the level."""
    return level - 3.7 * math.sqrt(level * (1 - level) / RUNS[metric])


SITUATIONS = {
    **{f"{relation} at {level}": (relation, level, {}) for relation in RELATIONS for level in (0.8, 0.95)},
    "pure": ("replace_one", 0.8, {"delta": 0.0}),
    "pure, n private": ("add_remove", 0.8, {"delta": 0.0}),
    "noise is all there is": ("replace_one", 0.8, {"epsilon": 0.05, "n": 200}),
    "little noise": ("zero_out", 0.8, {"epsilon": 40.0}),
    "persons": ("zero_out", 0.8, {"groups": 300}),
}


@covering((("metric", "name"), METRICS.items()), ("situation", SITUATIONS))
def test_intervals_cover(metric, name, situation):
    relation, level, settings = SITUATIONS[situation]
    assert covered(metric, name, relation, level, **settings) >= least(level, metric)


@pytest.mark.few(1)
@covering(("delta", [0.0, 1e-5]), (("metric", "name"), [("accuracy", "logistic"), ("r2", "ridge")]))
def test_half_the_noise_in_the_interval_is_found(metric, name, delta, monkeypatch):
    monkeypatch.setattr(noisy_sums, "GUARD", 0.5)
    assert coverage(metric, name, "replace_one", 0.8, delta=delta) < least(0.8, metric)


# --- groups, classes, tenths and cells ----------------------------------------------------------------


@pytest.mark.parametrize("metric", ["accuracy", "brier", "log_loss"])
def test_groups_are_scored_at_no_extra_price(metric):
    X, y = table("logistic", missing=False)
    X[:, 0], model = np.where(X[:, 0] > 0, 1.0, -1.0), model_of("logistic")
    exact = public_score(model, X, y, metric, by=0)
    assert [part.name for part in exact.parts] == ["0 < 0", "0 > 0"]
    for part, rows in zip(exact.parts, (X[:, 0] < 0, X[:, 0] > 0), strict=True):
        assert part.value == pytest.approx(by_hand(model, X[rows], y[rows], metric), abs=1e-12)
    assert exact.value == pytest.approx(by_hand(model, X, y, metric), abs=1e-12)
    noisy = private_score(model, X, y, metric=metric, by=0, epsilon=4.0, delta=1e-5, ledger=False)
    alone = private_score(model, X, y, metric=metric, epsilon=4.0, delta=1e-5, ledger=False)
    assert noisy.certificate.events == alone.certificate.events
    assert noisy.certificate.solver["by"] == ["0 < 0", "0 > 0"]
    for part, true in zip(noisy.parts, exact.parts, strict=True):
        assert part.low <= part.value <= part.high
        assert part.high - part.low < 0.5
        assert abs(part.value - true.value) < 0.3


@pytest.mark.parametrize("relation", RELATIONS)
def test_a_row_is_in_one_group_only(relation):
    """Exchanging a row moves the sums by no more than one row's length, whatever its group was."""
    X, y = table("logistic", 40, missing=False)
    model = model_of("logistic")
    other = X.copy()
    other[3] = -other[3]
    tables = []
    for rows in (X, other):
        asked = Recorded()
        known = released(model, rows)
        groups = Groups(("below", "above"), (0,), 0.0)
        measure_private("brier", known, rows, y, asked, level=0.9, reservation=None, groups=groups)
        tables.append(asked.table.power(2).toarray())
    moved = tables[0].sum(axis=0) - tables[1].sum(axis=0)
    assert np.linalg.norm(moved) <= math.sqrt(2.0)
    assert max(np.linalg.norm(row) for row in tables[0]) <= 1.0


class Recorded:
    """Stands for noisy sums, and keeps what was asked."""

    groups = None

    def release(self, values, cells, **_):
        self.table = table = cells(values)
        return np.asarray(table.power(2).sum(axis=0), dtype=float).ravel(), Noise(0.0)


# --- containers -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("metric", "name"), METRICS.items())
def test_frames_lists_and_compressed_rows_are_scored_alike(metric, name):
    pandas = pytest.importorskip("pandas")
    X, y = table(name, 200)
    X[np.abs(X) < 0.3] = 0.0
    array = scored(name, metric, X, y, seed=3)
    assert scored(name, metric, sparse.csr_array(X), y, seed=3) == array
    assert scored(name, metric, pandas.DataFrame(X), pandas.Series(y), seed=3) == array
    assert scored(name, metric, X.tolist(), y.tolist(), seed=3) == array
    assert public_score(model_of(name), sparse.csr_array(X), y, metric) == public_score(model_of(name), X, y, metric)
    assert public_score(model_of(name), Stream(X, y), metric=metric) == public_score(model_of(name), X, y, metric)


# --- paying -----------------------------------------------------------------------------------------


@pytest.fixture
def path(tmp_path):
    made = Ledger.create(tmp_path / "budget.db")
    made.grant("stays", 1.0, 1e-4)
    made.grant("pure", 1.0)
    return tmp_path / "budget.db"


class Untouched(Stream):
    """A stream that nobody may read."""

    def blocks(self):
        raise AssertionError("a row was read")


@pytest.mark.parametrize(("metric", "name"), METRICS.items())
def test_a_score_is_charged_before_it_is_read(metric, name, path):
    X, y = table(name)
    paid = scored(name, metric, X, y, epsilon=0.6, ledger=path, dataset="stays")
    ledger = Ledger(path)
    ledger.verify(paid.certificate, prices=True)
    assert ledger.spent("stays").fits == 1
    assert paid.certificate.verify().is_private
    with pytest.raises(BudgetExceeded):
        scored(name, metric, Untouched(X, y), None, epsilon=1.5, ledger=path, dataset="stays")
    with pytest.raises(AssertionError, match="was read"):
        scored(name, metric, Untouched(X, y), None, epsilon=0.01, ledger=path, dataset="stays")
    assert ledger.spent("stays").fits == 2  # charged first, read later
    pure = scored(name, metric, Stream(X, y), None, epsilon=0.5, delta=0.0, ledger=path, dataset="pure")
    ledger.verify(pure.certificate, prices=True)
    assert pure.certificate.delta == 0


# --- refusals ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("score", [private_score, public_score])
def test_a_private_number_of_rows_is_in_no_text(score):
    """One column by itself is refused by its shape, which must not be quoted: under add_remove n is private."""
    budget = {"epsilon": 1.0, "delta": 1e-6, "neighbors": "add_remove"} if score is private_score else {}
    with pytest.raises(Unsupported, match="two dimensions") as refusal:
        score(model_of("ridge"), np.zeros(4321), np.zeros(4321), **budget)
    error = refusal.value
    while error is not None:
        assert "4321" not in str(error)
        error = error.__context__


def test_a_score_under_a_charge_id_is_charged_and_released_once(tmp_path):
    from discreet.datasets import hospital
    from discreet.errors import LedgerError

    stays = hospital(600)
    model = DPLogisticRegression(bounds=stays.bounds, ledger=False).fit(stays.X[:300], stays.y[:300])
    ledger = Ledger.create(tmp_path / "budget.db")
    ledger.grant("held out", 3.0, 1e-6)
    asked = {"epsilon": 0.5, "delta": 1e-7, "ledger": ledger, "dataset": "held out", "charge_id": "monday"}
    first = private_score(model, stays.X[300:], stays.y[300:], metric="calibration", **asked)
    again = private_score(model, stays.X[300:], stays.y[300:], metric="calibration", **asked)
    assert again.to_text() == first.to_text()
    assert ledger.spent("held out").fits == 1
    with pytest.raises(LedgerError, match="something else"):
        private_score(model, stays.X[300:], stays.y[300:], metric="accuracy", **asked)
    model.coef_ = model.coef_ + 1  # another model
    with pytest.raises(LedgerError, match="something else"):
        private_score(model, stays.X[300:], stays.y[300:], metric="calibration", **asked)


# --- what public facts alone make impossible is refused before the charge ------------------------------


@pytest.fixture
def ledger():
    made = Ledger.create(":memory:")
    made.grant("people", 50.0, 1e-2)
    return made


def charges(ledger):
    return [entry for entry in ledger.entries() if entry.kind == "charge"]


def refuse(*_, **__):
    raise Unsupported("planted")


PLANTS = {
    "no lattice": (session, "unit_for", refuse),
    "no columns": (private_data.admission, "check_containers", lambda X, *_: refuse() if X.shape[0] == 1 else None),
    "no kernels": (private_data, "check_planned", refuse),
}


@covering(("metric", METRICS), ("plant", PLANTS))
def test_a_refusal_anywhere_on_the_way_comes_before_the_charge(monkeypatch, ledger, metric, plant):
    """Whatever depends on the plan, on classes and groups, and not on a row."""
    monkeypatch.setattr(*PLANTS[plant])
    name = METRICS[metric]
    X, y = table(name, n=50)
    with pytest.raises(DiscreetError, match="planted"):
        private_score(model_of(name), X, y, metric=metric, epsilon=1.0, delta=1e-5, ledger=ledger, dataset="people")
    assert charges(ledger) == []


def test_the_roc_curve_is_within_its_band_and_drawn():
    """The band holds for the whole exact curve, comes with the area for nothing, and can be drawn."""
    pytest.importorskip("matplotlib")
    rng = np.random.default_rng(3)
    X = rng.uniform(-1, 1, (4000, 3))
    y = (rng.random(4000) < 1 / (1 + np.exp(-(X @ [2.0, -1.0, 0.5])))).astype(int)
    with use_entropy(SeededEntropy(0)):
        model = DPLogisticRegression(2.0, 1e-6, bounds=1.0, classes=(0, 1), ledger=False).fit(X, y)
    exact = public_score(model, X, y, metric="auc").parts
    missed = 0
    for seed in range(20):
        with use_entropy(SeededEntropy(seed)):
            score = private_score(model, X, y, metric="auc", epsilon=1.0, level=0.99, ledger=False)
        missed += any(not a.low - 1e-3 <= b.value <= a.high + 1e-3 for a, b in zip(score.parts, exact, strict=True))
        values = [part.value for part in score.parts]
        assert values == sorted(values)
    assert missed <= 3  # of 20 bands of level .99
    axes = score.plot()
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("false positive rate", "true positive rate")
    with pytest.raises(Unsupported, match="auc"):
        private_score(model, X, y, metric="accuracy", epsilon=1.0, ledger=False).plot()
