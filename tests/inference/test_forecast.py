"""Forecasts of effects: chances to be shown, standard errors, refusals before the charge, and advice that holds."""

import json
import math
import re

import numpy as np
import pytest

from benchmarks.commands.shown import Design
from benchmarks.problems.effects import features, targets
from discreet import DPHuberRegressor, DPLasso, DPLinearRegression, DPLogisticRegression, DPPoissonRegressor
from discreet.curator import rehearsal, use_entropy
from discreet.errors import PlanViolation, Unsupported
from discreet.inference.forecast import FEW_RUNS, Law, Stream, assumption, rehearse, usual_law
from discreet.solvers.coordinates import noises
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


def expected(name, n, p, epsilon, relation):
    """The chance that an effect is shown, by twice the rehearsals that a refusal rests on."""
    quote = quoted(name, n, p, epsilon, relation, even_if_empty=True)
    return rehearse(quote.configured, *quote.facts, quote.priced.budget, usual_law(quote.facts[1]), 2 * FEW_RUNS).chance


def found_in_fits(name, n, p, epsilon, relation, tables=8):
    """How often real fits show effects of tables with moderate effects."""
    cls, facts, classes = MODELS[name]
    words = {"bounds": 1.0, "neighbors": relation, "inference": "sandwich", "even_if_empty": True, "ledger": False}
    shown = []
    for table in range(tables):
        rng = np.random.default_rng([table, n, p])
        X = rng.uniform(-1.0, 1.0, (n, p))
        X[:, 1::2] = np.clip(rng.normal(0.0, 0.33, X[:, 1::2].shape), -1.0, 1.0)
        margins = X @ (0.8 / np.sqrt(p) * rng.choice([-1.0, 1.0], p))
        y = {
            "linear": 0.5 + (margins + rng.normal(size=n)) / 12.0,
            "poisson": rng.poisson(np.exp(margins)),
        }.get(name, np.clip(np.round(margins + rng.normal(size=n) + (classes - 1) / 2.0), 0, classes - 1))
        model = cls(epsilon, **words, **facts)
        with seeded(table):
            try:
                coef = model.fit(X, y).summary().columns()["coef"]
            except Unsupported:
                shown.append(0.0)
                continue
        shown.append(1.0 - np.isnan(coef.reshape(classes - 1, -1)[:, :p]).mean())
    return float(np.mean(shown))


def refused_design(seed):
    """Draw a table with too few rows for its columns."""
    rng = np.random.default_rng([seed, 7])
    name = sorted(MODELS)[seed % len(MODELS)]
    p, relation = int(rng.integers(2, 13)), str(rng.choice(["zero_out", "replace_one"]))
    unit = (p + 1) ** 1.5 * {"linear": 40, "logistic": 50, "softmax": 90, "poisson": 130}[name]
    return name, int(unit * rng.uniform(0.5, 1.0) * (1.4 if relation == "replace_one" else 1.0)), p, relation


def advice(name, n, p, relation):
    """What a refusal advises: rows, epsilon and columns, each as a whole design."""
    with pytest.raises(Unsupported) as refused:
        quoted(name, n, p, 1.0, relation)
    said = str(refused.value)
    found = re.search(
        rf"You have {n:,} rows\. At epsilon = 1, {p} feature columns need about ([\d,]+) rows; with these rows "
        r"epsilon = ([\d.]+)",
        said,
    )
    assert found, said
    assert said.startswith("Too few rows for standard errors")
    fewer = re.search(r"at most (\d+) feature column", said)
    remedies = [(int(found[1].replace(",", "")), p, 1.0), (n, p, float(found[2].rstrip(".")))]
    return remedies + ([(n, int(fewer[1]), 1.0)] if fewer else [])


@pytest.mark.thorough
@pytest.mark.parametrize("seed", [5, 2, 8, 11, 4, 7])
def test_advice_shows_effects_if_followed_and_not_well_below(seed):
    """More rows, a larger epsilon, fewer columns: each by itself; half of what is advised is not enough."""
    name, n, p, relation = refused_design(seed)
    for rows, columns, epsilon in advice(name, n, p, relation):
        assert expected(name, rows, columns, epsilon, relation) >= 0.65, (name, rows, columns, epsilon)
        quoted(name, rows, columns, epsilon, relation)
        less = rows // 2 if rows > n else rows, min(2 * columns + 1, p), epsilon / 2.0 if epsilon > 1.0 else epsilon
        assert expected(name, *less, relation) < 0.65, (name, *less)
    assert quoted(name, n, p, 1.0, relation, even_if_empty=True).price is not None, "the named way out is one"


@pytest.mark.thorough
@pytest.mark.parametrize("seed", [2, 3, 4, 5])
def test_fits_that_follow_advice_show_effects(seed):
    name, n, p, relation = refused_design(seed)
    assert found_in_fits(name, n, p, 1.0, relation) <= 0.65
    for rows, columns, epsilon in advice(name, n, p, relation):
        shown = found_in_fits(name, rows, columns, epsilon, relation, tables=24)
        assert shown >= 0.6, (name, rows, columns, epsilon)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "design",
    [
        Design("linear", 1329, 4, 1.0, "zero_out", 0.05, math.nan),
        Design("softmax", 4000, 4, 1.0, "zero_out", 0.2, 0.3),
        Design("poisson", 6336, 12, 3.0, "zero_out", 0.5, 1.0),
        Design("logistic", 5245, 8, 1.0, "zero_out", 0.2, 0.5),
        Design("logistic", 5000, 4, 1.0, "zero_out", 0.1, 0.02),
        Design("huber", 1300, 8, 3.0, "replace_one", 0.2, math.nan),
        Design("logistic", 6000, 6, 1.0, "replace_one", 0.2, 0.5, strength=3.0, fill=0.3),
        Design("logistic", 9000, 4, 1.0, "zero_out", 0.2, 0.5, strength=2.0, fill=0.1),
        Design("poisson", 6336, 4, 3.0, "zero_out", 0.5, 1.0, strength=1.0, fill=0.3),
    ],
)
def test_effects_are_shown_as_often_as_forecast(design):
    """Within .15, and 2.6 Monte Carlo errors of the tables; ``python -m benchmarks shown`` has more designs."""
    tables = 12
    seen = np.mean([design.shown(table) for table in range(tables)], axis=0)
    for kind, share in zip(design.forecast(), seen, strict=True):
        assert abs(kind.chance - share) <= 0.15 + 2.6 * math.sqrt(max(share * (1 - share), 0.02) / tables), kind
        assert (kind.chance > 0) == (not math.isnan(kind.se))


def test_the_least_chance_is_that_of_strong_predictors_in_wide_ranges():
    """Where nothing is declared there are two chances, and texts say what they assume; where it is, one."""
    quote = quoted("logistic", 6000, 6, 1.0, "replace_one")
    (kind,) = quote.effects()
    assert kind.least < 0.2 < 0.8 < kind.chance
    assert "(at least" in kind.chances
    loss = quote.facts[1]
    assert "vary by 0.35, and ranges to be filled to 100%; for the least chances, by up to 6 and to 10%" in assumption(
        loss
    )
    assert assumption(loss, usual_law(loss, strength=3.0, fill=0.3)).endswith("by 3, and ranges to be filled to 30%.")
    with pytest.raises(Unsupported, match="strength is a deviation from 0 to 30"):
        quote.effects(strength=-1.0)
    with pytest.raises(Unsupported, match="fill is a part"):
        quote.effects(fill=0.0)


@pytest.mark.parametrize("strength", [0.0, 1.0, 6.0, 30.0])
@pytest.mark.parametrize("name", ["logistic", "softmax", "poisson"])
def test_laws_of_any_strength_have_the_declared_mean(name, strength):
    domain, loss, _ = quoted(name, 100_000, 3, 1.0, "zero_out").facts
    law = usual_law(loss, mean=0.2, strength=strength, fill=0.1)
    rows = law.rows(Stream(1), 2048, domain)
    y = law.outcomes(Stream(2), rows, domain, loss)
    if name == "poisson":
        assert strength > 1.0 or y.mean() == pytest.approx(0.2, abs=0.05), "rare large counts are cut"
    else:
        assert (y == 1).mean() == pytest.approx(0.2, abs=0.03)
    assert np.abs(rows).max() <= 0.35


def test_a_rehearsal_answers_with_the_noise_of_the_plan():
    """Sums are those of as many rows as there are said to be; noise has the planned deviation, whatever the sample."""
    quote = quoted("linear", 50_000, 3, 1.0, "zero_out")
    domain, loss, _ = quote.facts
    law, gaps = Law(((0, 0.3),)), []
    rows = law.rows(Stream(1), 500, domain)
    y = law.outcomes(Stream(1), rows, domain, loss)
    assert abs((rows[:, 0] == 1).mean() - 0.3) < 0.01
    for seed in range(60):
        with use_entropy(Stream(3, seed)):
            curator = rehearsal(rows, y, domain, loss, quote.priced, times=100)
            answer = curator.noisy_weighted_gradient(np.zeros(4), clip=0.5, reach=100.0)
        deviation = noises(curator, "noisy_weighted_gradient")[0] * 0.5
        whole = np.column_stack([rows, np.ones(len(rows))])
        slopes = np.where(np.linalg.norm(whole, axis=1) * abs(y) > 0.5, 0.5 / np.linalg.norm(whole, axis=1), abs(y))
        gaps.append((answer + 100 * whole.T @ (slopes * np.sign(y))) / deviation)
    assert np.std(gaps) == pytest.approx(1.0, rel=0.2)
    with pytest.raises(PlanViolation, match="public seed"):
        rehearsal(rows, y, domain, loss, quote.priced, times=100)


@pytest.mark.few(1)
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
    three = DPLogisticRegression(1.0, classes=(0, 1, 2)).forecast_effects(50_000, 5, mean=0.1)
    assert three.asked.chance > 0.9
    plain = math.sqrt((1 / 0.45 + 1 / 0.45) / 50_000)  # of the third class, for a variance of 1
    assert plain < three.asked.se < 5 * plain, "against the first class"


@pytest.mark.parametrize("epsilon", [0.01, 1.0])
@pytest.mark.parametrize("kind", [DPLogisticRegression, DPLinearRegression])
def test_what_is_fitted_even_if_empty_is_answered(kind, epsilon):
    """Little signal, where a fit without inference would not estimate coordinates."""
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-1, 1, (300, 7)), rng.integers(0, 2, 300)
    facts = {"classes": (0, 1)} if kind is DPLogisticRegression else {"target": (0, 1)}
    model = kind(epsilon, 1e-6, bounds=1.0, inference="sandwich", even_if_empty=True, ledger=False, **facts)
    assert np.isfinite(model.fit(X, y).coef_).all()


def test_a_narrow_huber_loss_is_not_refused_for_a_wide_range_of_targets():
    """Its width tells how far residuals go: twenty columns are shown where their targets fill a part of the range."""
    X, y, words = np.zeros((20_000, 20)), np.zeros(20_000), {"neighbors": "zero_out", "inference": "sandwich"}
    model = DPHuberRegressor(1.0, 1 / 20_000**2, bounds=1.0, target=(-20, 20), width=2.4, ledger=False, **words)
    assert model.quote(X, y).price is not None
