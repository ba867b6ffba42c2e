"""Audits at epsilon = 1: what a threshold on the released coefficient betrays, and planted bugs that it must betray."""

import math

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import brentq
from scipy.special import expit

from discreet import Bounds, Budget
from discreet.accounting import Plan, Release
from discreet.accounting.gaussian import mu_of
from discreet.accounting.priced_plan import price_plan
from discreet.curator import PrivateData, Problem, session
from discreet.curator.certified.minimize import Minimum
from discreet.curator.queries import minimizers
from discreet.losses import Logistic, SmoothedHinge
from tests.priced import at_noise
from tests.solvers.perturbation.cases import inside, stream

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


def objective_draws(rows, labels, problem, multiplier, count, seed):
    """Released coefficients at a noise multiplier, whatever it would cost."""
    data, budget = data_of(rows, labels), Budget(1.0, 0.05, "zero_out")
    plan = Plan(inside(problem, Logistic(), data.domain(budget.neighbors, Logistic())))
    priced = at_noise(plan, budget, multiplier)
    with stream(seed):
        return np.array([data.open(priced, Logistic()).perturbed_minimizer(problem)[0] for _ in range(count)])


def least_delta(draws, other, event, epsilon=1.0):
    """A lower bound on delta(epsilon) from one event: P(E) - e^epsilon Q(E), both at their confidence limits."""
    hits, misses = int(event(draws).sum()), int(event(other).sum())
    low = stats.beta.ppf(CONFIDENCE, hits, len(draws) - hits + 1) if hits else 0.0
    high = stats.beta.ppf(1 - CONFIDENCE, misses + 1, len(other) - misses)
    return float(low - math.exp(epsilon) * high)


@pytest.mark.thorough
def test_objective_perturbation_keeps_its_delta_in_one_dimension():
    """Base records that pull against the one that goes (a tilted base), both directions, many thresholds."""
    problem, budget = Problem(1.2 / 3, 3), Budget(1.0, 0.05, "zero_out")
    data = data_of([1.0, -1.0, -1.0], [1, 1, 1])
    plan = Plan(inside(problem, Logistic(), data.domain(budget.neighbors, Logistic())))
    multiplier = price_plan(plan, budget).noise_multiplier
    here = objective_draws([1.0, -1.0, -1.0], [1, 1, 1], problem, multiplier, 450, 2)
    gone = objective_draws([math.nan, -1.0, -1.0], [1, 1, 1], problem, multiplier, 450, 3)
    for one, other in ((here, gone), (gone, here)):
        for threshold in np.quantile(np.concatenate([here, gone]), [0.05, 0.2, 0.5, 0.8, 0.95]):
            for sign in (1, -1):
                assert least_delta(one, other, lambda w, s=sign, t=threshold: s * w > s * t) <= 0.05


WEAK = Problem(1e-4, 1)  # lambda = 1e-4, against beta = 1/4


@pytest.mark.thorough
def test_a_price_without_the_determinant_is_refuted(monkeypatch):
    """The Gaussian mechanism's noise with hardly any regularization: one record keeps w from being huge.

    Without it w = -b/lambda, at least thousands; with it b in (0, 1) is balanced by the slope, and w stays within 50.
    """
    multiplier, answers = 1 / mu_of(1.0, 1e-5), []
    for rows, slope in (([1.0], -1.0), ([math.nan], 0.0)):

        def solved(engine, objective, tolerance, slope=slope):
            """In one dimension, whatever the conditioning."""
            b, reach = float(objective.linear[0]), 2 * (abs(float(objective.linear[0])) + 1) / objective.regularization
            found = brentq(lambda w: slope * expit(-w) + objective.regularization * w + b, -reach, reach, xtol=1e-9)
            return Minimum(np.array([found]), tolerance)

        monkeypatch.setattr(minimizers, "minimize", solved)
        answers.append(objective_draws(rows, [1], WEAK, multiplier, 1200, 4))
    assert least_delta(*answers, lambda w: np.abs(w) < 50.0) > 1000 * 1e-5
