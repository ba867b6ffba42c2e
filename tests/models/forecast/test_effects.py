"""Power analysis: standard errors from the plan, near what fits have, monotone, and refused where fits are."""

import json
import math

import numpy as np
import pytest

from benchmarks.problems.effects import features, targets
from discreet import DPLasso, DPLinearRegression, DPLogisticRegression, DPPoissonRegressor
from discreet.errors import Unsupported
from discreet.models import EffectsForecast
from discreet.models.forecast.effects import expected_row
from discreet.models.forecast.setting import setting_of
from discreet.testing import seeded


@pytest.mark.parametrize(
    ("kind", "name", "facts"),
    [
        (DPLogisticRegression, "logistic", {"classes": (0, 1)}),
        (DPLinearRegression, "linear", {"target": (-12.0, 12.0)}),
    ],
)
def test_fits_have_the_inflation_that_was_forecast(kind, name, facts):
    n, p = 20_000, 6
    rng = np.random.default_rng(0)
    X = features(rng, n, p)
    y = targets(rng, X, name, "right")
    ranges = [(0.0, 1.0) if j >= 3 else (-1.0, 1.0) for j in range(p - 1)]
    model = kind(2.0, 1e-8, bounds=ranges, neighbors="zero_out", inference="sandwich", ledger=False, **facts)
    with seeded(1):
        inflation = model.fit(X, y).summary().columns()["inflation"]
    assert model.forecast_effects(n).asked.inflation == pytest.approx(np.nanmedian(inflation), rel=0.15)


def test_more_rows_and_larger_epsilons_have_smaller_errors():
    found = DPLogisticRegression(1.0, 1e-9).forecast_effects(20_000, 10, standard_error=0.02)
    assert isinstance(found, EffectsForecast)
    by_rows = [row.se for row in found.rows if row.epsilon == 1.0]
    by_epsilon = [row.se for row in sorted(found.rows, key=lambda row: row.epsilon) if row.n == 20_000]
    assert by_rows == sorted(by_rows, reverse=True)
    assert by_epsilon == sorted(by_epsilon, reverse=True)
    assert found.asked.se == pytest.approx(math.hypot(found.asked.se_privacy, found.asked.se / found.asked.inflation))
    setting = setting_of(DPLogisticRegression(1.0, 1e-9), 10)
    assert found.rows_needed is not None
    assert expected_row(setting, found.rows_needed, 1.0, 0.5).se <= 0.02
    assert expected_row(setting, int(0.9 * found.rows_needed), 1.0, 0.5).se > 0.02
    assert f"{found.rows_needed:,} rows" in str(found)


def test_rare_outcomes_have_larger_errors():
    even, rare = (DPLogisticRegression(1.0).forecast_effects(50_000, 5, mean=mean).asked for mean in (0.5, 0.05))
    assert rare.se > 2 * even.se
    few, many = (DPPoissonRegressor(2.0).forecast_effects(50_000, 5, mean=mean).asked for mean in (0.5, 5.0))
    assert few.se > many.se


def test_what_a_fit_refuses_is_refused():
    found = DPLogisticRegression(1.0).forecast_effects(500, 10, standard_error=0.05)
    assert "Too few rows" in str(found.asked.refused)
    assert math.isnan(found.asked.se)
    assert found.rows_needed is not None, "more rows would do"
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["asked"]["se"] is None
    assert "L1" in str(DPLasso(1.0).forecast_effects(50_000, 5).asked.refused)
    assert DPLasso(1.0).forecast_effects(50_000, 5, standard_error=0.1).rows_needed is None
    assert "two classes" in str(DPLogisticRegression(1.0, classes=(0, 1, 2)).forecast_effects(50_000, 5).asked.refused)


@pytest.mark.parametrize("words", [{"n": 1}, {"standard_error": 0.0}, {"mean": 1.5}])
def test_nonsense_is_refused(words):
    with pytest.raises(Unsupported):
        DPLogisticRegression(1.0).forecast_effects(**{"n": 1000, "p": 3, **words})
