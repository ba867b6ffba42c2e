"""Every kind of finding of a replay: a fit that shows more than it released is told by how it shows it."""

import logging
import sys
import warnings
from types import SimpleNamespace

import numpy as np
import pytest

from discreet import Budget
from discreet.accounting.plan import Plan, Release
from discreet.accounting.pricing import price_plan
from discreet.curator import PrivateData
from discreet.curator.queries.gradients import GradientQuery
from discreet.losses import Logistic
from discreet.testing import neighbor_pairs, replay
from tests.registry import SOLVERS, bounds_of, fit_of, table

CASE = SOLVERS["gd"]["steps"]
HONEST = fit_of("logistic", CASE, "replace_one")


def kinds(fit, *, only="", relation="replace_one"):
    """The kinds of findings over all pairs of neighbors whose name contains ``only``."""
    pairs = neighbor_pairs(*table("logistic"), relation=relation, bounds=bounds_of("logistic"))
    reports = [replay(fit, pair.data, pair.neighbor, relation) for pair in pairs if only in pair.name]
    return {finding.kind for report in reports for finding in report.findings}


def talking(act):
    """A fit that does something with the records in addition to the honest one."""

    def fit(X, y, groups=None):
        act(X)
        return HONEST(X, y, groups)

    return fit


def refuse(X):
    raise ValueError(f"cannot use {X[0, 0]}")


ACTS = {
    "printed": lambda X: print(np.nanmax(X)),
    "complained": lambda X: print(np.nanmax(X), file=sys.stderr),
    "logged": lambda X: logging.getLogger("some.solver").debug(np.nanmax(X)),
    "warned": lambda X: warnings.warn(f"largest {np.nanmax(X)}", stacklevel=2),
    "raised": refuse,
}


@pytest.mark.parametrize("kind", ACTS)
def test_what_is_said_about_values_is_found(kind):
    assert kind in kinds(talking(ACTS[kind]), only="far outside" if kind != "raised" else "first: replaced by high")


def with_diagnostics(X, y, groups=None):
    model = HONEST(X, y, groups)
    model.fraction_null_ = float(np.mean(~np.isfinite(X).all(axis=1)))
    return model


def test_a_diagnostic_on_the_model_is_found_unless_it_is_declared_private():
    pairs = neighbor_pairs(*table("logistic"), bounds=bounds_of("logistic"))
    pair = next(pair for pair in pairs if "by missing" in pair.name)
    report = replay(with_diagnostics, pair.data, pair.neighbor)
    assert [finding.kind for finding in report.findings] == ["attribute"]
    assert "fraction_null_" in str(report)
    assert replay(with_diagnostics, pair.data, pair.neighbor, private=["fraction_null_"]).ok


def early_stopping(X, y, groups=None):
    """A toy solver that looks at the training loss, in the clear, to decide when to stop."""
    plan = Plan([Release("noisy_gradient", 5, clip=0.05)])
    opened = PrivateData(X, y, bounds_of("logistic")).open(price_plan(plan, Budget(2.0, 1e-5)), Logistic())
    w = np.zeros(opened.domain.shape)
    for _ in range(5):
        w = w - opened.noisy_gradient(w, clip=0.05) / len(y)
        with np.errstate(all="ignore"):
            loss = np.mean(np.logaddexp(0, -(2 * y - 1) * (X @ w[:-1] + w[-1])))
        if loss < 10:
            break
    return w


def test_early_stopping_on_data_is_found():
    assert "queries" in kinds(early_stopping)


def test_the_exact_sum_next_to_the_noisy_one_is_found():
    def fit(X, y, groups=None):
        return SimpleNamespace(coef_=HONEST(X, y, groups).coef_ / max(1.0, np.nansum(np.abs(X[:, 0]))))

    assert "attribute" in kinds(fit, only="high")


def test_a_sum_that_is_beyond_its_sensitivity_once(monkeypatch):
    """Memory that was not cleared, say: the third run is honest, and as near to the first as to the second."""
    errors, honest = iter([6, 0, 0, -6]), GradientQuery.over
    HONEST(*table("logistic"))  # kernels are checked in the first fit

    def wrong_once(query, engine):
        total = honest(query, engine)
        total[0, 0] += next(errors, 0) * query.bound // 5
        return total

    monkeypatch.setattr(GradientQuery, "over", wrong_once)
    report = replay(HONEST, table("logistic"), table("logistic"))
    assert [finding.kind for finding in report.findings] == ["sensitivity"]
    assert report.ratio == pytest.approx(1.2)
