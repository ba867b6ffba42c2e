"""Summaries: their table, tests and texts against plain formulas; units, bases, saving, refusals."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import discreet
from discreet import DPLinearRegression, DPLogisticRegression, Schema, TableModel
from discreet.errors import Unsupported
from discreet.inference.intervals import freedom, joint_p_value, p_value, quantile
from discreet.models import Summary
from discreet.schema import Boolean, Category, Number, Target
from discreet.solvers.base import Effects
from discreet.testing import seeded

COLUMNS = ["coef", "se", "se_privacy", "z", "p", "low", "high", "inflation"]


def made(wobble=0.0, hidden=None, ratio="odds ratio"):
    covariance = np.array([[0.04, 0.01, 0.0], [0.01, 0.09, 0.0], [0.0, 0.0, 0.01]])
    blind = np.zeros((3, 3))
    if hidden is not None:
        blind[hidden, hidden] = 0.5
    effects = Effects(covariance, 0.25 * covariance, np.eye(3), blind, np.eye(3), wobble, 0.2, 0.5)
    return Summary(("age", "a_b|c<d>", "intercept"), np.array([1.0, -0.3, 0.2]), effects, {"model": "M"}, ratio)


def test_the_frame_is_what_plain_formulas_say():
    frame = made().frame
    assert list(frame.columns) == COLUMNS
    assert list(frame.index) == ["age", "a_b|c<d>", "intercept"]
    se = np.array([0.2, 0.3, 0.1])
    np.testing.assert_allclose(frame.se, se)
    np.testing.assert_allclose(frame.se_privacy, se / 2)
    np.testing.assert_allclose(frame.z, frame.coef / se)
    np.testing.assert_allclose(frame.p, 2 * stats.norm.sf(np.abs(frame.z)))
    np.testing.assert_allclose(frame.low, frame.coef - stats.norm.ppf(0.975) * se)
    np.testing.assert_allclose(frame.inflation, 1 / math.sqrt(0.75))
    np.testing.assert_allclose(made().conf_int(0.8).high, frame.coef + stats.norm.ppf(0.9) * se)
    assert made().cov_params().loc["age", "a_b|c<d>"] == 0.01


def test_inflation_is_not_stated_where_it_contradicts_the_noise():
    plain = made()
    rest = plain.effects.covariance - plain.effects.privacy
    frame = replace(plain, effects=replace(plain.effects, sampling=rest @ np.diag([1.1, 2.0, 0.5]))).frame
    assert frame.inflation.isna().tolist() == [False, True, False]
    assert frame.inflation["age"] >= 1


def test_what_limits_may_do_is_a_cost_of_privacy():
    plain = made()
    bias = np.diag([0.02, 0.0, 0.0])
    effects = replace(plain.effects, covariance=plain.effects.covariance + bias, bias=bias)
    frame = replace(plain, effects=effects).frame
    assert frame.inflation["age"] == pytest.approx(math.sqrt(0.06 / 0.03))
    assert frame.inflation["intercept"] == pytest.approx(plain.frame.inflation["intercept"])


def test_a_noisy_variance_has_students_law():
    frame = made(wobble=2.0).frame  # a relative deviation of .5: 8 degrees of freedom
    np.testing.assert_allclose(frame.p, 2 * stats.t.sf(np.abs(frame.z), 8))
    np.testing.assert_allclose(frame.high - frame.coef, stats.t.ppf(0.975, 8) * frame.se)
    assert freedom(0.0) == math.inf
    assert freedom(10.0) == 4.0
    assert quantile(0.95, math.inf) == pytest.approx(stats.norm.ppf(0.975))
    assert p_value(2.0, 5.0) == pytest.approx(2 * stats.t.sf(2.0, 5))
    assert joint_p_value(6.0, 2, 9.0) == pytest.approx(stats.f.sf(3.0, 2, 9))


def test_hidden_effects_have_no_standard_error():
    summary = made(hidden=1)
    assert summary.frame[["se", "p", "low", "high"]].loc["a_b|c<d>"].isna().all()
    assert not summary.frame.loc["age"].isna().any()
    assert "hidden" in str(summary)
    assert "hidden" not in str(made())
    with pytest.raises(Unsupported, match="hidden"):
        summary.wald_test("a_b|c<d>")


TRUTH = {"age": 0.03, "ward = b": 0.5, "ward = c": 0.0, "ok": -0.4}


def stays(n=30_000, seed=0):
    rng = np.random.default_rng(seed)
    table = {"age": rng.uniform(18, 90, n), "ward": rng.choice(["a", "b", "c"], n), "ok": rng.random(n) < 0.3}
    margin = 0.03 * (table["age"] - 50) + 0.5 * (table["ward"] == "b") - 0.4 * table["ok"]
    return {**table, "back": (rng.random(n) < 1 / (1 + np.exp(-margin))).astype(int)}


def schema_of(**ward):
    columns = {"age": Number((18, 110)), "ward": Category(("a", "b", "c"), **ward), "ok": Boolean()}
    return Schema(columns, Target("back", classes=(0, 1)))


@pytest.fixture(scope="module")
def fitted():
    with seeded(3):
        return TableModel(schema_of(), DPLogisticRegression(2.0, inference="sandwich", ledger=False)).fit(stays())


@pytest.mark.parametrize("ward", [{}, {"base": "a"}, {"other": False}])
def test_tables_have_effects_in_their_own_units(ward):
    with seeded(4):
        model = TableModel(schema_of(**ward), DPLogisticRegression(4.0, inference="sandwich", ledger=False))
        frame = model.fit(stays()).summary().frame
    found = frame.loc[list(TRUTH)]
    assert (np.abs(found.coef - list(TRUTH.values())) < 4.5 * found.se).all()
    assert found.se.between(0.0003, 0.1).all()
    assert abs(frame.coef["intercept"] + 1.5) < 4.5 * frame.se["intercept"]
    assert "ward = a" not in frame.index
    if not ward:  # nobody is in another ward: there is nothing to tell of it
        assert "ward (other)" not in frame.index, "about no row is in it"


def test_predicted_means_have_intervals(fitted):
    rows = {"age": [30, 80], "ward": ["a", "b"], "ok": [True, False]}
    found = fitted.predict_interval(rows)
    truth = 1 / (1 + np.exp(-np.array([0.03 * -20 - 0.4, 0.03 * 30 + 0.5])))
    assert (found.low < found.mean).all()
    assert (found.mean < found.high).all()
    assert (np.abs(found.mean - truth) < 3 * (found.high - found.low)).all()
    np.testing.assert_allclose(found.mean, fitted.predict_proba(rows)[:, 1], rtol=1e-9)
    wide = fitted.predict_interval(rows, level=0.999)
    assert (wide.low < found.low).all()


def test_a_charge_gives_the_same_summary_again(tmp_path):
    ledger = discreet.Ledger.create(tmp_path / "budget.db")
    ledger.grant("stays", 10.0, 1e-5)
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (8000, 2))
    y = X[:, 0] + rng.normal(size=8000)
    words = {"bounds": 1.0, "target": (-5, 5), "inference": "sandwich", "ledger": ledger, "dataset": "stays"}
    first, second = (DPLinearRegression(2.0, 1e-6, **words).fit(X, y, charge_id="one") for _ in range(2))
    pd.testing.assert_frame_equal(first.summary().frame, second.summary().frame)
    with pytest.raises(Exception, match="charge"):
        DPLinearRegression(2.0, 1e-6, **words | {"cov_type": "model"}).fit(X, y, charge_id="one")


def test_a_fit_with_all_effects_hidden_is_not_summarized(fitted):
    from dataclasses import replace

    model = fitted.estimator_
    kept = model.effects_
    try:
        model.effects_ = replace(kept, blind=kept.metric)
        with pytest.raises(Unsupported, match=r"every effect is hidden .*privacy noise.*The budget was spent"):
            model.summary()
    finally:
        model.effects_ = kept


def test_the_summary_names_its_target(fitted):
    """Where noisy counts show rows or residuals that count less, the heading says how many."""
    from dataclasses import replace

    model = fitted.estimator_
    kept = model.effects_
    try:
        model.effects_ = replace(kept, far=0.0, cut=0.0)
        facts = model.summary().facts
        assert facts["target"].startswith("the population's unpenalized coefficients, for records clipped")
        assert "weights" not in facts
        model.effects_ = replace(kept, far=0.021, cut=0.0004, reach=1.5)
        facts = model.summary().facts
        assert facts["target"].startswith("bounded-influence regression: ")
        assert (
            "about 2.1% of rows (over 1.5 times the typical size) and 0.04% of residuals count less" in facts["target"]
        )
        assert "(over 1.5 times the typical size) are down-weighted" in facts["weights"]
    finally:
        model.effects_ = kept


def test_a_private_number_of_rows_is_a_caution_of_its_own(fitted):
    from dataclasses import replace

    model = fitted.estimator_
    certificate, facts = model.certificate_, dict(model.certificate_.assumed_public)
    assert "rows" not in model.summary().facts
    try:
        model.certificate_ = replace(certificate, assumed_public={k: v for k, v in facts.items() if k != "n"})
        assert "intervals may be too short" in model.summary().facts["rows"]
    finally:
        model.certificate_ = certificate
