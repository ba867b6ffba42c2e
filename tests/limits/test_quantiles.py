"""Without noise, a quantile regression is the minimizer of the smoothed check loss."""

import numpy as np
import pytest
from scipy.optimize import minimize

from discreet import Bounds
from discreet.errors import Unsupported
from discreet.losses import Quantile
from discreet.models import DPQuantileRegressor, DPRegressor

RANGES, TARGET, WIDTH = [(-1.0, 1.0)] * 2, (-6.0, 6.0), 0.3


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (20_000, 2))
    return X, X @ [1.0, -0.5] + 0.2 + rng.normal(size=len(X))


def minimizer(X, y, level):
    columns = np.column_stack([np.ones(len(X)), X])

    def objective(w):
        residual = columns @ w - y
        inside = np.clip(residual, -WIDTH, WIDTH)
        losses = (inside + WIDTH) ** 2 / (4 * WIDTH) + np.maximum(residual - WIDTH, 0) - level * residual
        return losses.mean(), columns.T @ ((inside + WIDTH) / (2 * WIDTH) - level) / len(y)

    return minimize(objective, np.zeros(3), jac=True, tol=1e-12).x


@pytest.mark.parametrize("level", [0.5, 0.9])
def test_without_noise_it_is_the_minimizer_and_near_the_quantile(table, level):
    X, y = table
    bounds = Bounds(RANGES, target=TARGET)
    model = DPRegressor(1e6, 1e-6, bounds=bounds, loss=Quantile(level, WIDTH), alpha=0, ledger=False).fit(X, y)
    coefficients = np.r_[model.intercept_, model.coef_]
    np.testing.assert_allclose(coefficients, minimizer(X, y, level), atol=2e-5)
    sm = pytest.importorskip("statsmodels.api")
    np.testing.assert_allclose(coefficients, sm.QuantReg(y, sm.add_constant(X)).fit(level).params, atol=0.03)
    assert abs(np.mean(y <= model.predict(X)) - level) < 0.01


@pytest.mark.parametrize("level", [0.1, 0.5, 0.9])
def test_a_small_budget_does_not_shorten_slopes(level, seeded):
    """A check loss is flat: short steps stopped on the way, the more so the farther the quantile is from the median."""
    rng, slopes = np.random.default_rng(1), np.array([1.0, -0.5])
    X = rng.uniform(-1, 1, (20_000, 2))
    y = X @ slopes + rng.exponential(1.0, len(X))
    found = []
    for seed in range(4):
        with seeded(seed):
            model = DPQuantileRegressor(1.0, 1e-6, bounds=Bounds(RANGES, target=TARGET), quantile=level, ledger=False)
            found.append(model.fit(X, y).coef_ @ slopes / (slopes @ slopes))
            assert abs(np.mean(y <= model.predict(X)) - level) < 0.03
    assert abs(np.mean(found) - 1.0) < 0.1


def test_inference_is_refused(table):
    model = DPRegressor(bounds=Bounds(RANGES, target=TARGET), loss=Quantile(0.5, WIDTH), inference="sandwich")
    with pytest.raises(Unsupported, match="not proven"):
        model.quote(*table)
