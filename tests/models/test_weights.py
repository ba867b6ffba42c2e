"""Weights, offsets and class weights: without noise a GLM's model, and a record's part is bounded with them too."""

import math
import re

import numpy as np
import pytest

from discreet import Bounds, DPLinearRegression, DPLogisticRegression, DPPoissonRegressor, private_score
from discreet.curator.records.admission import TargetScaling
from discreet.errors import MissingBounds, Unsupported
from discreet.losses import Logistic, Poisson, Squared
from discreet.solvers import GradientDescent
from discreet.testing import assert_replay

sm = pytest.importorskip("statsmodels.api")
RANGES = [(-1.0, 1.0)] * 3
EXACT = {"epsilon": 1e6, "delta": 1e-6, "ledger": False}


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X, w, o = rng.uniform(-1, 1, (40_000, 3)), rng.uniform(0.1, 5, 40_000), rng.uniform(-1, 1, 40_000)
    margins = X @ [1.0, -0.5, 0.3] + 0.2
    return X, w, o, margins, rng


def labels(table, margins):
    return (table[4].random(len(margins)) < 1 / (1 + np.exp(-margins))).astype(int)


def difference(model, theirs):
    return np.abs(np.r_[model.intercept_, np.ravel(model.coef_)] - theirs.params).max()


def test_weights_of_classes_and_records(table):
    X, w, _, margins, _ = table
    y, family = labels(table, margins), sm.families.Binomial()
    model = DPLogisticRegression(bounds=Bounds(RANGES, classes=(0, 1), weights=(0, 5)), alpha=0, **EXACT)
    theirs = sm.GLM(y, sm.add_constant(X), family=family, freq_weights=w).fit()
    assert difference(model.fit(X, y, sample_weight=w), theirs) < 2e-5
    model = DPLogisticRegression(bounds=Bounds(RANGES, classes=(0, 1)), class_weight={1: 5}, alpha=0, **EXACT)
    theirs = sm.GLM(y, sm.add_constant(X), family=family, freq_weights=np.where(y == 1, 5, 1)).fit()
    assert difference(model.fit(X, y), theirs) < 2e-5
    assert model.certificate_.assumed_public["class_weights"] == [1.0, 5.0]


@pytest.mark.parametrize("alpha", [0.0, 0.05])
def test_a_weight_repeats_a_record(table, alpha):
    """The penalty is weighed against the total weight, as against the rows that it stands for."""
    X, y = table[0][:60], labels(table, table[3])[:60]
    times = np.arange(60) % 5
    solver = GradientDescent(n_steps=4000, momentum="nesterov")
    bounds = Bounds(RANGES, classes=(0, 1), weights=(0, 5))
    model = DPLogisticRegression(math.inf, bounds=bounds, alpha=alpha, solver=solver, ledger=False)
    weighted = model.fit(X, y, sample_weight=times).coef_
    repeated = model.fit(np.repeat(X, times, axis=0), np.repeat(y, times)).coef_
    np.testing.assert_allclose(weighted, repeated, atol=1e-5)


def test_offsets(table):
    X, w, o, margins, rng = table
    columns, kind = sm.add_constant(X), sm.families
    y = labels(table, margins + o)
    model = DPLogisticRegression(bounds=Bounds(RANGES, classes=(0, 1), offsets=(-1, 1)), alpha=0, **EXACT)
    assert difference(model.fit(X, y, offset=o), sm.GLM(y, columns, family=kind.Binomial(), offset=o).fit()) < 2e-5
    counts = rng.poisson(np.exp(margins + o))
    model = DPPoissonRegressor(bounds=Bounds(RANGES, target=(0, 40), offsets=(-1, 1)), alpha=0, **EXACT)
    theirs = sm.GLM(counts, columns, family=kind.Poisson(), offset=o).fit()
    assert difference(model.fit(X, counts, offset=o), theirs) < 1e-4
    predicted = model.predict(X[:9], offset=o[:9])
    np.testing.assert_allclose(predicted, theirs.predict(columns[:9], offset=o[:9]), rtol=1e-3)
    y = margins + o + rng.normal(size=len(o))
    bounds = Bounds(RANGES, target=(-8, 8), offsets=(-1, 1), weights=5)
    model = DPLinearRegression(bounds=bounds, **EXACT).fit(X, y, offset=o, sample_weight=w)
    assert difference(model, sm.WLS(y - o, columns, weights=w).fit()) < 1e-4


EXTREMES = [(1e9, 5.0), (0.0, 0.0), (-3.0, -1e9), (math.inf, math.nan), (math.nan, 0.5), (2.0, math.inf)]
TASKS = {"classes": (DPLogisticRegression, {"classes": (0, 1)}), "counts": (DPPoissonRegressor, {"target": (0, 9)})}


@pytest.mark.parametrize("relation", ["replace_one", "zero_out", "add_remove"])
@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("extreme", EXTREMES)
def test_no_weight_and_no_offset_moves_an_answer_by_more_than_its_noise_is_for(relation, task, extreme):
    rng, n, (kind, facts) = np.random.default_rng(1), 30, TASKS[task]
    X, y, w, o = rng.uniform(-1, 1, (n, 3)), rng.integers(0, 2, n), rng.uniform(0, 3, n), rng.uniform(-1, 1, n)
    X[0], (w[0], o[0]) = 1.0, extreme
    bounds = Bounds(RANGES, n=n, weights=(0, 2), offsets=(-1, 1), **facts)
    others = [column.copy() for column in (X, y, w, o)]
    if relation == "add_remove":
        others = [column[1:] for column in others]
    else:
        others[0][0] = math.nan if relation == "zero_out" else -1.0
        others[1][0], others[2][0], others[3][0] = 1 - y[0], 2.0, 1.0

    def fit(X, y, w, o):
        model = kind(1.0, 1e-6, bounds=bounds, neighbors=relation, ledger=False)
        return model.fit(X, y, sample_weight=w, offset=o)

    assert_replay(fit, (X, y, w, o), others, relation)


@pytest.mark.parametrize("relation", ["replace_one", "zero_out", "add_remove"])
def test_a_person_with_several_rows_of_the_largest_weight_counts_once(relation):
    rng, n = np.random.default_rng(2), 30
    X, y, persons = rng.uniform(-1, 1, (n, 3)), rng.integers(0, 2, n), np.maximum(np.arange(n) - 9, 0)
    w = np.where(persons == 0, 2.0, rng.uniform(0, 2, n))
    bounds = Bounds(RANGES, classes=(0, 1), n=21, weights=(0, 2))
    others = [column.copy() for column in (X, y, w, persons)]
    if relation == "add_remove":
        others = [column[persons > 0] for column in others]
    else:
        others[0][persons == 0] = math.nan if relation == "zero_out" else -1.0
        others[2][persons == 0] = 0.0

    def fit(X, y, w, persons):
        model = DPLogisticRegression(1.0, 1e-6, bounds=bounds, neighbors=relation, ledger=False)
        return model.fit(X, y, persons, sample_weight=w)

    assert_replay(fit, (X, y, w, persons), others, relation)


@pytest.mark.parametrize("loss", [Poisson(3.0), Logistic().with_offsets((-1.0, 1.0)), Squared()], ids=repr)
def test_an_offset_beyond_its_declared_range_counts_as_the_end_of_it(loss):
    ends = None if loss.task == "classification" else (0.0, 1.0)
    scaling = TargetScaling(range=ends, signed=ends is None, offsets=(-1.0, 1.0), loss=loss)
    beyond, at = (scaling.placed(np.ones(2), None, np.array(offsets)) for offsets in ([-9.0, 9.0], [-1.0, 1.0]))
    assert all(np.array_equal(one, other) for one, other in zip(beyond, at, strict=True) if one is not None)


def test_what_is_not_declared_is_refused(table):
    X, w, o, margins, _ = table
    y = labels(table, margins)
    model = DPLogisticRegression(bounds=Bounds(RANGES, classes=(0, 1)), ledger=False)
    with pytest.raises(MissingBounds, match=r"weights=\(low, high\)"):
        model.fit(X, y, sample_weight=w)
    with pytest.raises(MissingBounds, match=r"offsets=\(low, high\)"):
        model.quote(X, y, offset=o)
    with pytest.raises(Unsupported, match="declare them"):
        model.set_params(class_weight="balanced").fit(X, y)
    with pytest.raises(MissingBounds, match="not negative"):
        Bounds(1.0, weights=(-1, 2))


@pytest.mark.parametrize("solver", ["auto", "gd", "sgd", "svrg", "cd", "gcd"])
def test_solvers_serve_weights(table, solver):
    X, w, _, margins, _ = table
    bounds = Bounds(RANGES, classes=(0, 1), weights=(0, 5))
    model = DPLogisticRegression(50.0, 1e-6, bounds=bounds, solver=solver, ledger=False)
    model.fit(X, labels(table, margins), sample_weight=w)
    np.testing.assert_allclose(model.coef_[0], [1.0, -0.5, 0.3], atol=0.3)


@pytest.mark.parametrize("solver", ["agd", "output", "objective", "exponential"])
def test_solvers_that_do_not_serve_weights_refuse_before_a_charge(table, solver):
    X, w, _, margins, _ = table
    bounds = Bounds(RANGES, classes=(0, 1), weights=(0, 5))
    model = DPLogisticRegression(1.0, 1e-6, bounds=bounds, alpha=0.01, solver=solver, ledger=False)
    with pytest.raises(Unsupported, match="weights are served by"):
        model.quote(X, labels(table, margins), sample_weight=w)
    pure = DPLogisticRegression(1.0, 0, bounds=bounds, ledger=False)
    assert "objective" not in pure.quote(X, labels(table, margins), sample_weight=w).solver["name"]


def test_quotes_and_forecasts_say_what_uneven_weights_cost(table):
    X, w, _, margins, _ = table
    n = len(X)
    model = DPLogisticRegression(bounds=Bounds(RANGES, classes=(0, 1), weights=(1, 5)), ledger=False)
    drawn = np.random.default_rng(0).uniform(1, 5, 400_000)  # spread evenly, as is assumed
    noise, sampling = drawn.mean() / 5, drawn.mean() ** 2 / np.square(drawn).mean()
    ends = np.where(np.arange(600) < 500, 1.0, 5.0)  # five in six at the low end: the worst for the sampling error
    worst = ends.mean() ** 2 / np.square(ends).mean()
    (note,) = [text for text in model.quote(X, labels(table, margins), sample_weight=w).reason if "weight" in text]
    shares = [float(text.replace(",", "")) / n for text in re.findall(r"(?:as|and) ([\d,]+)", note)]
    np.testing.assert_allclose(shares, [noise, sampling, 0.2, worst], atol=3e-3)
    forecast = model.forecast(n, epsilons=[1.0], n_grid=[n], seeds=2, max_cells=1e4)
    assert note in str(forecast)
    plain = DPLogisticRegression(bounds=Bounds(RANGES, classes=(0, 1)), ledger=False)
    assert not plain.forecast(n, epsilons=[1.0], n_grid=[n], seeds=2, max_cells=1e4).weights


GLMS = {
    "classes": (DPLogisticRegression, {"classes": (0, 1)}, {"alpha": 0}, "Binomial"),
    "numbers": (DPLinearRegression, {"target": (-8, 8)}, {}, "Gaussian"),
    "counts": (DPPoissonRegressor, {"target": (0, 40)}, {"alpha": 0}, "Poisson"),
}


@pytest.mark.parametrize("task", GLMS)
@pytest.mark.parametrize("beside", ["weights", "offsets", "both"])
def test_standard_errors_are_those_of_a_weighted_glm(table, task, beside):
    X, w, o, margins, rng = table
    kind, facts, settings, family = GLMS[task]
    has_weights, has_offsets = beside != "offsets", beside != "weights"
    margins = margins + o if has_offsets else margins
    noise = rng.normal(size=len(o)) * (1 + 0.5 * X[:, 0])
    y = {"classes": labels(table, margins), "numbers": margins + noise, "counts": rng.poisson(np.exp(margins))}[task]
    bounds = Bounds(RANGES, weights=(0, 5), offsets=(-1, 1), **facts)
    model = kind(1e5, 1e-6, bounds=bounds, inference="sandwich", ledger=False, **settings)
    model.fit(X, y, sample_weight=w if has_weights else None, offset=o if has_offsets else None)
    words = {"var_weights": w} if has_weights else {}
    words |= {"offset": o} if has_offsets else {}
    theirs = sm.GLM(y, sm.add_constant(X), family=getattr(sm.families, family)(), **words).fit(cov_type="HC0")
    ours = np.sqrt(np.diag(model.effects_.covariance))
    np.testing.assert_allclose(ours, np.r_[theirs.bse[1:], theirs.bse[0]], rtol=0.05)
    interval = model.predict_interval(X[:5], offset=o[:5] if has_offsets else None)
    np.testing.assert_allclose(
        interval.mean, theirs.predict(sm.add_constant(X)[:5], offset=o[:5] * has_offsets), rtol=0.01
    )


def test_a_score_of_arrays_refuses_a_model_with_offsets(table):
    X, _, o, margins, _ = table
    bounds = Bounds(RANGES, classes=(0, 1), offsets=(-1, 1))
    y = labels(table, margins)
    model = DPLogisticRegression(bounds=bounds, ledger=False).fit(X, y, offset=o)
    with pytest.raises(Unsupported, match="score a TableModel"):
        private_score(model, X, y, epsilon=1.0, ledger=False)
