"""Forecasts of effects: chances to be shown, standard errors, refusals before the charge, and advice that holds."""

import json
import math
import re

import numpy as np
import pytest

from benchmarks.commands.shown import Design
from benchmarks.problems.effects import features, targets
from discreet import DPLasso, DPLinearRegression, DPLogisticRegression, DPPoissonRegressor
from discreet.errors import Unsupported
from discreet.inference.forecast import Law, PublicRows, Stream
from discreet.testing import seeded

MODELS = {
    "linear": (DPLinearRegression, {"target": (0.0, 1.0)}, 2),
    "logistic": (DPLogisticRegression, {"classes": (0, 1)}, 2),
    "softmax": (DPLogisticRegression, {"classes": (0, 1, 2)}, 3),
    "poisson": (DPPoissonRegressor, {"target": (0.0, 20.0)}, 2),
}


def quoted(name, n, p, epsilon, relation, delta=None, **words):
    cls, facts, classes = MODELS[name]
    X, y = np.zeros((n, p)), np.arange(n) % classes
    words |= {"bounds": 1.0, "neighbors": relation, "inference": "sandwich", "ledger": False, **facts}
    return cls(epsilon, delta, **words).quote(X, y)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("name", "n", "p", "relation", "delta"),
    [
        ("linear", 2380, 12, "replace_one", None),
        ("logistic", 2380, 12, "zero_out", None),
        ("logistic", 2380, 12, "replace_one", 1e-6),
        ("softmax", 1500, 3, "replace_one", None),
        ("poisson", 5000, 8, "zero_out", None),
    ],
)
def test_the_advice_of_a_refusal_can_be_followed(name, n, p, relation, delta):
    """More rows, a larger epsilon, fewer columns: each by itself; half of any is refused again."""
    with pytest.raises(Unsupported) as refused:
        quoted(name, n, p, 1.0, relation, delta)
    said = str(refused.value)
    found = re.search(
        rf"You have {n:,} rows\. At epsilon = 1, {p} feature columns need about ([\d,]+) rows; with these rows "
        r"epsilon = ([\d.]+)",
        said,
    )
    assert found, said
    assert said.startswith("Too few rows for standard errors")
    rows, epsilon = int(found[1].replace(",", "")), float(found[2].rstrip("."))
    quoted(name, rows, p, 1.0, relation, delta)
    quoted(name, n, p, epsilon, relation, delta)
    fewer = re.search(r"at most (\d+) feature column", said)
    if fewer:
        quoted(name, n, int(fewer[1]), 1.0, relation, delta)
    for less in (
        []
        if name == "poisson"
        else ((rows // 2, p, 1.0), (n, p, 0.5 * epsilon), (n, 2 * int(fewer[1]) + 1 if fewer else 1, 1.0))
    ):
        with pytest.raises(Unsupported, match="Too few rows"):
            quoted(name, *less, relation, delta)
    assert quoted(name, n, p, 1.0, relation, delta, even_if_empty=True).price is not None, "the named way out is one"


@pytest.mark.parametrize(
    "design",
    [
        Design("linear", 1329, 4, 1.0, "zero_out", 0.05, math.nan),
        Design("logistic", 5245, 8, 1.0, "zero_out", 0.2, 0.5),
        Design("logistic", 5000, 4, 1.0, "zero_out", 0.1, 0.02),
        pytest.param(Design("poisson", 6336, 12, 3.0, "zero_out", 0.5, 1.0), marks=pytest.mark.whole),
    ],
)
def test_effects_are_shown_as_often_as_forecast(design):
    """Within .15, and 2.6 Monte Carlo errors of the tables; ``python -m benchmarks shown`` has more designs."""
    tables = 12
    seen = np.mean([design.shown(table) for table in range(tables)], axis=0)
    for kind, share in zip(design.forecast(), seen, strict=True):
        assert abs(kind.chance - share) <= 0.15 + 2.6 * math.sqrt(max(share * (1 - share), 0.02) / tables), kind
        assert (kind.chance > 0) == (not math.isnan(kind.se))


def test_public_rows_answer_with_the_noise_of_the_plan():
    """Sums are multiplied up to n rows; noise has the planned deviation, whatever the sample."""
    quote = quoted("linear", 50_000, 3, 1.0, "zero_out")
    domain, loss, _ = quote.facts
    rows = Law().rows(Stream(1), 3, intercept=True)
    assert np.allclose(rows.T @ rows / len(rows), np.eye(4), atol=0.15)
    facts = (loss, domain, quote.priced.budget, quote.priced.plan)
    exact = PublicRows(rows, np.zeros(len(rows)), 50_000 / len(rows), *facts, 0.0, Stream(2), 1)
    moment, _ = exact.noisy_second_moment(100.0)
    assert np.allclose(moment, rows.T @ rows / len(rows))
    gaps = []
    for seed in range(300):
        noisy = PublicRows(rows, np.zeros(len(rows)), 1.0, *facts, quote.priced.noise_multiplier, Stream(3, seed), 1)
        second, deviation = noisy.noisy_second_moment(100.0)
        gaps.append((second - rows.T @ rows / len(rows))[0, 0] / deviation)
    assert np.std(gaps) == pytest.approx(1.0, rel=0.2)


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


@pytest.mark.thorough
def test_what_a_fit_refuses_is_refused():
    found = DPLogisticRegression(1.0).forecast_effects(500, 10, standard_error=0.05)
    assert "Too few rows" in str(found.asked.refused)
    assert math.isnan(found.asked.se)
    assert found.rows_needed is not None, "more rows would do"
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["asked"]["se"] is None
    assert "L1" in str(DPLasso(1.0).forecast_effects(50_000, 5).asked.refused)
    assert DPLasso(1.0).forecast_effects(50_000, 5, standard_error=0.1).rows_needed is None
    assert "two classes" in str(DPLogisticRegression(1.0, classes=(0, 1, 2)).forecast_effects(50_000, 5).asked.refused)


@pytest.mark.parametrize("epsilon", [0.01, 1.0])
@pytest.mark.parametrize("kind", [DPLogisticRegression, DPLinearRegression])
def test_what_is_fitted_even_if_empty_is_answered(kind, epsilon):
    """Little signal, where a fit without inference would not estimate coordinates."""
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-1, 1, (300, 7)), rng.integers(0, 2, 300)
    facts = {"classes": (0, 1)} if kind is DPLogisticRegression else {"target": (0, 1)}
    model = kind(epsilon, 1e-6, bounds=1.0, inference="sandwich", even_if_empty=True, ledger=False, **facts)
    assert np.isfinite(model.fit(X, y).coef_).all()
