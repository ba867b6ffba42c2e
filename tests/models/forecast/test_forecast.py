"""Forecasts: the law is what it says, fewer rows stand for more, and a real fit does as forecast."""

import json
import math

import numpy as np
import pytest
from sklearn.base import clone

from discreet import (
    Bounds,
    Budget,
    DPElasticNet,
    DPHuberRegressor,
    DPLasso,
    DPLinearRegression,
    DPLinearSVC,
    DPLogisticRegression,
    DPPoissonRegressor,
    DPRidge,
)
from discreet.budget import InvalidBudget
from discreet.curator.noise import current_entropy
from discreet.errors import MissingBounds, Unsupported
from discreet.models.forecast import point_of, setting_of, summary
from discreet.models.synthetic import Classes, Numbers, rehearsal
from discreet.solvers import GradientDescent
from tests.covering import covering


def unit_ranges(p):
    return np.full(p, -1.0), np.full(p, 1.0)


# ------------------------------------------------------------------------------------------------ the law


@pytest.mark.parametrize(
    ("target", "ceiling", "trivial"),
    [(Classes((0, 1)), 0.85, 1 / 1.7), (Classes(("a", "b", 3)), 0.7, 1 / 2.19), (Numbers(0, 300), 0.6, 0.0)],
)
def test_the_law_has_the_asked_ceiling(target, ceiling, trivial):
    table = rehearsal(4000, unit_ranges(6), target, ceiling=ceiling, seed=2)
    assert table.best == pytest.approx(ceiling, abs=1e-3)
    assert table.trivial == pytest.approx(trivial, abs=2e-3)
    margins = table.held_out @ table.slopes + table.offsets
    assert np.allclose(target.expected(margins), table.expected)


# ------------------------------------------------------------------------------------- every estimator


@pytest.mark.few(4)
@pytest.mark.parametrize(
    "estimator",
    [
        DPLogisticRegression(),
        DPLogisticRegression(classes=("low", "middle", 3), neighbors="zero_out"),
        DPLogisticRegression(penalty="l1", alpha=1e-3, bounds=2.0),
        DPLogisticRegression(bounds=Bounds(features=1.0, row_norm=1.5), fit_intercept=False),
        DPLogisticRegression(delta=1e-6, neighbors="add_remove"),
        DPLogisticRegression(neighbors="add_remove", bounds=Bounds(features=1.0, n=77)),
        DPLogisticRegression(delta=0.0),
        DPLinearSVC(),
        DPLinearRegression(),
        DPRidge(target=(0, 300)),
        DPLasso(),
        DPElasticNet(),
        DPHuberRegressor(),
        DPPoissonRegressor(),
        DPPoissonRegressor(target=(0, 3)),
    ],
    ids=lambda estimator: repr(estimator)[:60],
)
def test_every_estimator_has_a_forecast(estimator):
    before = clone(estimator).get_params()
    found = estimator.forecast(2500, 6, epsilons=(1.0,), n_grid=(), seeds=2)
    assert repr(estimator.get_params()) == repr(before)
    assert not hasattr(estimator, "coef_")
    assert current_entropy().is_private  # the seeded noise stayed inside
    row = found.asked
    assert (row.n, row.epsilon, found.n_features) == (2500, 1.0, 6)
    assert row.simulated_rows == 2500
    assert row.noise_multiplier > 0
    assert row.gap == pytest.approx(row.non_private - row.score)
    assert row.trivial < row.non_private <= found.ceiling + 0.01
    assert 0 < row.risk_order <= found.risk_of_nothing
    assert row.risk_bound is None  # the defaults clip, and no theorem counts that
    assert row.delta == (before["delta"] if before["delta"] is not None else 1 / 2500**2)
    assert json.loads(json.dumps(found.to_dict()))["asked"]["gap"] == row.gap


# ---------------------------------------------------------------------------- what the numbers are worth


@pytest.mark.few(1)
@covering(("neighbors", ["replace_one", "zero_out"]), ("solver", ["auto", "gd", "objective", "output", "cd"]))
def test_fewer_rows_with_less_noise_stand_for_more(solver, neighbors):
    """The same gap, within the noise of four seeds, from a sixth of the rows."""
    estimator = DPLogisticRegression(0.4, solver=solver, neighbors=neighbors)
    whole = estimator.forecast(12_000, 5, epsilons=(), n_grid=(), seeds=4).asked
    part = estimator.forecast(12_000, 5, epsilons=(), n_grid=(), seeds=4, max_cells=1).asked
    assert (whole.simulated_rows, part.simulated_rows) == (12_000, 2_000)
    assert part.noise_multiplier == whole.noise_multiplier
    assert abs(part.gap - whole.gap) < 5 * math.hypot(part.gap_error, whole.gap_error) + 0.006


@pytest.mark.parametrize(("relation", "delta"), [("replace_one", 1e-7), ("add_remove", 1e-7), ("zero_out", 0.0)])
def test_the_rehearsal_is_as_noisy_as_the_plan(relation, delta):
    """Calibrated on the smaller table, the noise multiplier over n is the larger table's."""
    from dataclasses import replace

    from discreet.accounting import calibrate

    estimator = DPLogisticRegression(0.5, delta, neighbors=relation, solver=GradientDescent(n_steps=20, clip=0.5))
    setting = setting_of(estimator, 4)
    point = point_of(setting, 50_000, 0.5, 8_000)
    assert point.rows == 2_000
    domain = replace(point.domain, n=2_000 if relation != "add_remove" else None)
    there = point.rehearsed["solver"].plan(domain, setting.loss, setting.penalty)
    found = calibrate(there, Budget(point.rehearsed["epsilon"], delta, relation))
    assert found / 2_000 == pytest.approx(point.noise_multiplier / 50_000, rel=2e-3)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "estimator", [DPLogisticRegression(1.0), DPHuberRegressor(1.0), DPLogisticRegression(2.0, solver="objective")]
)
def test_a_fit_does_as_forecast(estimator):
    """Fresh tables of the same law, real noise, labels that were drawn: the score is the forecast one."""
    row = estimator.forecast(3_000, 6, epsilons=(), n_grid=(), seeds=6).asked
    setting = setting_of(estimator, 6)
    scores = []
    for seed in range(50, 56):
        table = rehearsal(6_000, setting.ranges, setting.target, ceiling=setting.usual_ceiling, seed=seed)
        model = setting.model(3_000).fit(table.X[:3_000], table.y[:3_000])
        assert "NOT PRIVATE" not in model.certificate_.text()
        scores.append(model.score(table.X[3_000:], table.y[3_000:]))
    mean, error = summary(scores)
    assert abs(mean - row.score) < 5 * math.hypot(error, row.error) + 0.02


# ------------------------------------------------------------------------------------------ the face


def test_what_a_fit_refuses_is_refused():
    with pytest.raises(InvalidBudget, match="finite epsilon"):
        DPLogisticRegression(math.inf).forecast(100, 3)
    with pytest.raises(InvalidBudget, match="positive"):
        DPLogisticRegression(-1.0).forecast(100, 3)
    with pytest.raises(MissingBounds, match="give delta"):
        DPLogisticRegression(neighbors="add_remove").forecast(100, 3)
    with pytest.raises(Unsupported, match="solver must be one of"):
        DPLogisticRegression(solver="magic").forecast(100, 3)
    with pytest.raises(Unsupported, match="nothing to predict"):
        DPRidge(target=(2, 2)).forecast(100, 3)
