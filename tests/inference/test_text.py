"""Frames with broom's names, models side by side, and the epsilon that a standard error needs."""

import math
import re

import numpy as np
import pandas as pd
import pytest

from discreet import Bounds, DPLinearRegression, DPLogisticRegression, etable
from discreet.accounting import gaussian
from discreet.errors import Unsupported
from discreet.inference.text import number_text
from discreet.models import Summary
from discreet.solvers.base import Effects
from discreet.testing import seeded
from tests.report import samples

HOSTILE = "a|b_*c*&%\\ <img src=x onerror=alert(1)>`\n$^{#}~ [x](y)"


def made(names=("age", HOSTILE, "intercept"), hidden=(), ratio="odds ratio", **settings):
    size = len(names)
    covariance = np.diag(np.arange(1, size + 1) / 100.0)
    blind = np.diag([float(j in hidden) for j in range(size)])
    effects = Effects(covariance, covariance / 4, np.eye(size), blind, np.eye(size))
    facts = {"model": "DPLogisticRegression"}
    return Summary(tuple(names), np.linspace(1.0, -1.0, size), effects, facts, ratio, **settings)


def test_tidy_has_brooms_names():
    summary = made(hidden=[1])
    tidy = summary.tidy()
    names = ["term", "estimate", "std.error", "statistic", "p.value", "conf.low", "conf.high"]
    assert list(tidy.columns) == [*names, "std.error.privacy", "inflation"]
    np.testing.assert_allclose(tidy.estimate, summary.frame.coef)
    assert tidy.iloc[1, 1:].isna().all()
    ratios = summary.tidy(exponentiate=True, level=0.9)
    assert ratios.term.tolist() == ["age", HOSTILE]
    np.testing.assert_allclose(ratios[["estimate", "conf.low", "conf.high"]], summary.ratios(0.9))
    np.testing.assert_allclose(ratios["std.error"], summary.frame.se[:2])
    with pytest.raises(Unsupported, match="not ratios"):
        made(ratio="").tidy(exponentiate=True)


def test_hostile_names_break_no_table():
    summary = made()
    for table in (summary, etable([summary, summary], labels=[HOSTILE, "b"])):
        markdown = table.to_markdown().splitlines()
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in markdown}) == 1
        assert not any(re.search(r"(?<!\\)[<`*]", line) for line in markdown)
        latex = table.to_latex()
        assert len({len(re.findall(r"(?<!\\)&", line)) for line in latex.splitlines() if line.endswith(r"\\")}) == 1
        assert r"\textbackslash{}" in latex
        assert "<img" not in table.to_html()
        assert table._repr_html_() == table.to_html()
    width = {len(line) for line in str(etable(summary)).splitlines() if set(line) <= {"=", "-"}}
    assert len(width) == 1
    assert "\n".join(str(etable(summary)).splitlines()) == str(etable(summary))


def test_a_standard_error_needs_an_epsilon():
    paid = samples.certificate()
    summary = made(("age", "sex", "intercept"), certificate=paid)
    se, mu = 0.1, gaussian.mu_of(paid.epsilon, paid.delta)
    assert summary.epsilon_for("age", standard_error=se) == pytest.approx(paid.epsilon, rel=1e-6)
    wished = se * math.sqrt(0.75 + 0.25 / 4)  # half the noise: twice mu
    assert summary.epsilon_for("age", standard_error=wished) == pytest.approx(gaussian.epsilon_of(2 * mu, paid.delta))
    assert summary.epsilon_for("age - sex", standard_error=1.0) < paid.epsilon
    with pytest.raises(Unsupported, match=r"sampling alone has about 0\.087; more than 3 times as many rows"):
        summary.epsilon_for("age", standard_error=0.05)
    for wrong in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(Unsupported, match="positive"):
            summary.epsilon_for("age", standard_error=wrong)
    with pytest.raises(Unsupported, match="hides"):
        made(hidden=[1], certificate=paid).epsilon_for(f"`{HOSTILE.replace('`', '``')}`", standard_error=1.0)
    with pytest.raises(Unsupported, match="private fit"):
        made().epsilon_for("age", standard_error=0.1)


@pytest.fixture(scope="module")
def fitted():
    rng, n = np.random.default_rng(0), 20_000
    X = pd.DataFrame(rng.uniform(-1, 1, (n, 3)), columns=["a", "b", "c"])
    margin = X @ [1.0, 0.5, 0.0]
    y = (rng.random(n) < 1 / (1 + np.exp(-margin))).astype(int)
    facts = {"bounds": 1.0, "inference": "sandwich", "ledger": False}
    with seeded(1):
        few = DPLogisticRegression(1.0, 1e-6, classes=(0, 1), **facts).fit(X[["a", "b"]], y)
        numbers = DPLinearRegression(4.0, 1e-6, target=(-6, 6), **facts).fit(X, margin + rng.normal(size=n))
    return few, numbers


def test_advice_on_epsilon_can_be_followed(fitted):
    """The standard error of a fit with the advised epsilon is about what was wished for."""
    rng, n = np.random.default_rng(0), 20_000
    X = pd.DataFrame(rng.uniform(-1, 1, (n, 3)), columns=["a", "b", "c"])[["a", "b"]]
    y = (rng.random(n) < 1 / (1 + np.exp(-(X @ [1.0, 0.5])))).astype(int)
    summary = fitted[0].summary()
    wished = 0.92 * summary.frame.se["a"]
    epsilon = summary.epsilon_for("a", standard_error=wished)
    settings = {"bounds": 1.0, "classes": (0, 1), "inference": "sandwich", "ledger": False}
    with seeded(2):
        again = DPLogisticRegression(epsilon, 1e-6, **settings).fit(X, y).summary()
    assert again.frame.se["a"] == pytest.approx(wished, rel=0.15)


@pytest.mark.parametrize(
    ("ratio", "shown"), [(1.00003, "1.000030"), (0.99998, "0.999980"), (1.0312, "1.031"), (1.0, "1"), (2.5, "2.5")]
)
def test_ratios_near_one_have_digits_of_what_they_add(ratio, shown):
    assert number_text("odds ratio", ratio) == shown


def test_columns_in_small_units_are_named_with_a_larger_unit():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(0, 50_000, 20_000), rng.random(20_000) < 0.5])
    y = (rng.random(20_000) < 1 / (1 + np.exp(-(X[:, 0] / 30_000 - 0.8)))).astype(int)
    with seeded(1):
        fit = DPLogisticRegression(
            2.0, bounds=Bounds([(0, 50_000), (0, 1)], classes=(0, 1)), inference="sandwich", ledger=False
        ).fit(X, y)
    summary = fit.summary()
    assert "such as x0 = 10000" in summary.facts["units"]
    assert "x1" not in summary.facts["units"]
    assert "1.00003" in str(summary)
    assert "[1, 1]" not in str(etable([fit], ratios=True))
