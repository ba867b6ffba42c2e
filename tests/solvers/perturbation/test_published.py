"""Published noise and regularizers of the one-shot solvers, and the lecture's example in which noise cannot help."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from discreet import Budget, DPLogisticRegression
from discreet.accounting import price_plan
from discreet.bounds import Domain
from discreet.errors import Unsupported
from discreet.losses import Logistic, Softmax, Squared
from discreet.losses.base import least, values
from discreet.penalties import NoPenalty
from discreet.solvers import ExponentialMechanism, ObjectivePerturbation, OutputPerturbation
from discreet.testing import seeded

BUDGET = Budget(0.5, 1e-5, "zero_out")


def facts(n=10_000, p=10):
    return Domain(feature_bounds=np.ones(p), row_norm=1.0, n=n, neighbors=BUDGET.neighbors)


def multiplier(solver, budget=BUDGET):
    return price_plan(solver.plan(facts(), Logistic(), NoPenalty()), budget).noise_multiplier


def test_the_papers_noise_is_more_than_the_tight_one():
    output, objective = (cls(regularization=0.01) for cls in (OutputPerturbation, ObjectivePerturbation))
    classical = math.sqrt(2 * math.log(1.25e5)) / 0.5
    assert multiplier(replace(output, calibration="paper")) == pytest.approx(classical)
    kifer = math.sqrt(8 * math.log(2e5) + 2.0) / 0.5
    assert multiplier(replace(objective, calibration="paper")) == pytest.approx(kifer)
    assert multiplier(output) < classical
    assert multiplier(objective) < kifer


def test_the_papers_noise_is_refused_where_its_theorem_does_not_hold():
    with pytest.raises(Unsupported, match="calibrate"):
        multiplier(OutputPerturbation(regularization=0.01, calibration="paper"), Budget(2.0, 1e-5, "zero_out"))
    weak = ObjectivePerturbation(regularization=0.9 / 10_000, calibration="paper")  # lambda below 2 beta / epsilon = 1
    with pytest.raises(Unsupported, match="2 beta / epsilon"):
        multiplier(weak)
    with pytest.raises(Unsupported, match="tight or paper"):
        OutputPerturbation(calibration="slides")


def largest_loss(loss, points, domain):
    """The largest loss over rows at the corners of the box that are no longer than the declared norm."""
    rows = np.array(list(itertools.product([-1.0, 0.0, 1.0], repeat=domain.n_features))) * domain.feature_bounds
    rows = rows[np.linalg.norm(rows, axis=1) <= domain.row_norm * (1 + 1e-12)]
    targets = range(domain.n_outputs) if domain.n_outputs > 1 else (-domain.target_bound, domain.target_bound)
    margins = np.einsum("rj,ij...->ir...", rows, points).reshape(-1, domain.n_outputs)
    return max(float(values(loss, m, float(t)) - least(loss, float(t))) for m in margins for t in targets)


@pytest.mark.parametrize("loss", [Logistic(), Squared(), Softmax(3)], ids=["logistic", "squared", "softmax"])
@pytest.mark.parametrize("row_norm", [1.0, 4.0])
def test_candidates_losses_are_bounded_by_what_is_declared(loss, row_norm):
    """By the lesser of the row norm and the columns' ranges: no loss is larger, and for one output some is as large."""
    bounds, shape = np.array([1.0, 0.5, 2.0, 1.0]), (4, 3) if loss.n_outputs > 1 else (4,)
    domain = replace(facts(), feature_bounds=bounds, row_norm=row_norm, n_outputs=loss.n_outputs)
    points = np.stack([np.zeros(shape), 2.0 * np.eye(4)[1].reshape(4, *(1,) * (len(shape) - 1)) * np.ones(shape)])
    bound = ExponentialMechanism(candidates=points).plan(domain, loss, NoPenalty()).releases[0].clip
    true = largest_loss(loss, points, domain)
    assert bound >= true * (1 - 1e-12)
    if loss.n_outputs == 1:
        assert bound == pytest.approx(true)


def median(records, b):
    """The minimizer of sum |w - y| + b w for two records: a record, or without bound."""
    low, high = sorted(records)
    return high if -2 < b < 0 else low if 0 < b < 2 else -math.copysign(math.inf, b)


def test_a_median_gives_a_record_away_whatever_the_noise():
    """{0, 100} against {0, 101}: for -2 < b < 0 the answer is the second record itself, half of all finite answers."""
    rng, answers = np.random.default_rng(0), {}
    for name, records in {"D": (0, 100), "D'": (0, 101)}.items():
        draws = np.array([median(records, b) for b in rng.normal(0.0, 1.0, 4000)])
        answers[name] = draws[np.isfinite(draws)]
    assert 0.45 < np.mean(answers["D"] == 100) < 0.55
    assert not np.any(answers["D'"] == 100)  # delta is the probability of this answer, for every epsilon


def test_a_ball_brings_the_trivial_bound_and_it_holds():
    """300 rows at epsilon 0.2: without a ball the bound says nothing; the projected release keeps the trivial one."""
    rng, domain = np.random.default_rng(0), facts(300, 3)
    budget = Budget(0.2, 1e-5, "zero_out")
    free, ball = OutputPerturbation(regularization=0.01), OutputPerturbation(regularization=0.01, radius=1.0)
    assert free.bound(domain, Logistic(), budget, radius=1.0).upper > 2.0
    assert ball.bound(domain, Logistic(), budget, radius=1.0).upper == pytest.approx(2.0)
    X = rng.uniform(-0.5, 0.5, (300, 2))
    y = (X[:, 0] > 0).astype(int)
    model = DPLogisticRegression(0.2, 1e-5, bounds=1.0, classes=(0, 1), neighbors="zero_out", solver=ball, ledger=False)
    for seed in range(20):
        with seeded(seed):
            model.fit(X, y)
        assert np.hypot(np.linalg.norm(model.coef_), np.ravel(model.intercept_)[0]) <= 1.0 + 1e-9
