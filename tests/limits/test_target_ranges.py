"""Declared ranges of targets from 1e-300 to 1e300: refused before the charge, with units that serve, or finite."""

import numpy as np
import pytest

from discreet import Bounds, DPHuberRegressor, DPLinearRegression
from discreet.errors import DiscreetError, Unsupported
from discreet.models import DPGammaRegressor, DPNegativeBinomialRegressor, DPPoissonRegressor, DPTweedieRegressor
from discreet.solvers.base import SOLVERS
from discreet.testing import seeded

COUNTS = {
    "poisson": DPPoissonRegressor,
    "negative binomial": DPNegativeBinomialRegressor,
    "tweedie": DPTweedieRegressor,
    "gamma": DPGammaRegressor,
}
NAMES = (*(name for name in SOLVERS.names() if name != "recipe"), "auto")


def model_of(kind, ends, solver, p, epsilon=1.0, delta=1e-6, unit=1.0, **facts):
    bounds = Bounds(features=[(-unit, unit)] * p, target=ends)
    return kind(epsilon, delta, bounds=bounds, solver=solver, ledger=False, **facts)


def outcome(model, X, y):
    """Return the refusal of a price, or None where the fit ends in finite numbers: anything else fails."""
    try:
        model.quote(X, y)
    except DiscreetError as refused:
        return str(refused)
    with seeded(0):
        model.fit(X, y)
    noise = np.zeros(1) if model.coef_noise_ is None else model.coef_noise_
    for numbers in (model.coef_, model.intercept_, noise, model.predict(X)):
        assert np.isfinite(numbers).all()
    return None


def table(rng, n, p, high, low=0.0):
    return rng.uniform(-1, 1, (n, p)), np.clip(rng.gamma(2.0, high / 20.0, n), low, high)


@pytest.mark.parametrize("kind", COUNTS)
def test_greedy_steps_on_any_range_are_finite_or_refused_before_the_charge(kind):
    """Steps by typical curvatures are far longer than 1 / M_j in wide ranges: scores were beyond the lattice."""
    X, y = table(np.random.default_rng(0), 40, 2, 1.0)
    refused = {}
    for power in (-300, -15, 6, 14, 30, 300):
        for intercept in (True, False):
            high = 10.0**power
            model = model_of(COUNTS[kind], (0.0, high), "gcd", 2, fit_intercept=intercept)
            refused[power, intercept] = outcome(model, X, y * high)
    assert refused[6, True] is refused[14, False] is refused[-15, False] is None
    assert "other units" in refused[300, False]


@pytest.mark.parametrize("name", ["gd", "cd", "output"])
@pytest.mark.parametrize("kind", [DPLinearRegression, DPHuberRegressor])
def test_the_noise_of_coefficients_is_finite_or_units_are_asked_for(kind, name):
    X, y = table(np.random.default_rng(0), 40, 2, 1.0)
    refused = {power: outcome(model_of(kind, (0.0, 10.0**power), name, 2), X, y * 10.0**power) for power in (-60, 60)}
    assert set(refused.values()) == {None}
    for high, unit in ((1e150, 1.0), (1e-150, 1.0), (1e100, 1e-100), (1.0, 1e-200)):
        with pytest.raises(Unsupported, match="units"):
            model_of(kind, (0.0, high), name, 2, unit=unit).quote(X * unit, y * high)


@pytest.mark.thorough
@pytest.mark.parametrize("name", NAMES)
def test_any_range_is_refused_before_the_charge_or_ends_in_finite_numbers(name):
    """Drawn public facts; what is refused for its range is served in units in which the range ends at 1."""
    rng, served = np.random.default_rng(NAMES.index(name)), 0
    for trial in range(40):
        kind = COUNTS[rng.choice(list(COUNTS))]
        high = 10.0 ** rng.choice([rng.uniform(-16, 16), rng.uniform(-300, 300)])
        low = rng.choice([0.0, 1e-3 * high, 0.5 * high])
        n, p = int(rng.choice([40, 2000])), int(rng.choice([1, 12]))
        facts = {
            "neighbors": str(rng.choice(["zero_out", "replace_one", "add_remove"])),
            "fit_intercept": bool(rng.integers(2)),
            "delta": float(rng.choice([1e-6, 1e-6, 0.0])),
            "epsilon": float(rng.choice([0.05, 1.0, 8.0])),
        }
        X, y = table(rng, n, p, high, low)
        refused = outcome(model_of(kind, (low, high), name, p, **facts), X, y)
        if refused is not None and "other units" in refused:
            refused = outcome(model_of(kind, (low / high, 1.0), name, p, **facts), X, y / high)
        assert refused is None or "units" not in refused, trial
        served += refused is None
    assert served >= 10
