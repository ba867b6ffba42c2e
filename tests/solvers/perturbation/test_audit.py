"""Audits at epsilon = 1: what a threshold on the released coefficient betrays, and planted bugs that it must betray."""

import numpy as np
import pytest
from scipy import stats

from discreet import Bounds, Budget
from discreet.accounting import Plan, Release
from discreet.accounting.gaussian import mu_of
from discreet.curator import PrivateData, Problem, session
from discreet.curator.queries import minimizers
from discreet.losses import SmoothedHinge
from tests.priced import at_noise
from tests.solvers.perturbation.cases import stream

pytestmark = pytest.mark.statistical

CONFIDENCE = 1e-7
LINEAR = SmoothedHinge(0.5)


def data_of(rows, labels):
    return PrivateData(
        np.array(rows, dtype=float)[:, None], np.array(labels), Bounds(1.0, classes=(-1, 1)), fit_intercept=False
    )


def remembered(monkeypatch):
    """The same problem is solved once: only the noise is audited."""
    honest, found = minimizers.minimize, {}

    def lookup(engine, objective, tolerance):
        if id(engine) not in found:
            found[id(engine)] = (engine, honest(engine, objective, tolerance))  # held, so that its id stays its own
        return found[id(engine)][1]

    monkeypatch.setattr(minimizers, "minimize", lookup)


def lower_bound_on_mu(out, inside_):
    """Clopper-Pearson bounds on both error rates of a threshold, chosen on one half and tested on the other."""
    middle = (np.median(out[::2]) + np.median(inside_[::2])) / 2
    out, inside_ = out[1::2], inside_[1::2]
    errors = int((out >= middle).sum()), int((inside_ < middle).sum())
    rates = [stats.beta.ppf(1 - CONFIDENCE, wrong + 1, len(out) - wrong) for wrong in errors]
    return float(stats.norm.isf(rates[0]) - stats.norm.ppf(rates[1]))


def output_audit(epsilon, count=2500):
    """The worst pair of neighbors under replace_one: linear losses of slopes -1 and +1."""
    budget, answers = Budget(epsilon, 1e-5, "replace_one"), []
    with stream(1):
        for first in (-1.0, 1.0):
            data = data_of([first, 1.0, -1.0], [1, 1, 1])
            plan = Plan([Release("noisy_minimizer", count)])
            curator = data.open(at_noise(plan, budget, 1 / mu_of(epsilon, 1e-5)), LINEAR)
            answers.append(np.array([curator.noisy_minimizer(Problem(20.0, 3))[0] for _ in range(count)]))
    return lower_bound_on_mu(*answers)


def test_output_perturbation_gives_away_what_it_claims_and_no_more(monkeypatch):
    remembered(monkeypatch)
    claim = mu_of(3.0, 1e-5)
    assert 0.4 * claim <= output_audit(3.0) <= claim
    assert output_audit(1.0, 1000) <= mu_of(1.0, 1e-5)


def test_output_noise_without_the_factor_of_replace_one_is_refuted(monkeypatch):
    remembered(monkeypatch)
    monkeypatch.setattr(session.Session, "factor", property(lambda self: 1))
    assert output_audit(3.0) > mu_of(3.0, 1e-5)
