"""Published noise and regularizers of the one-shot solvers, and the lecture's example in which noise cannot help."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from discreet import Budget, DPLogisticRegression
from discreet.accounting import Perturbation, Plan, Release, calibrate, price_plan
from discreet.bounds import Domain
from discreet.errors import Unsupported
from discreet.losses import Logistic, Softmax, Squared
from discreet.losses.base import least, values
from discreet.penalties import NoPenalty
from discreet.solvers import ExponentialMechanism, ObjectivePerturbation, OutputPerturbation
from discreet.solvers.perturbation import noise_lengths
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


@pytest.mark.parametrize("n", [1000, 100_000])
def test_the_best_regularizer_for_a_diameter(n):
    domain = facts(n)
    best = ObjectivePerturbation.for_diameter(domain, Logistic(), radius=3.0, budget=BUDGET)
    least = best.bound(domain, Logistic(), BUDGET, radius=3.0).upper
    for factor in (0.5, 0.8, 1.25, 2.0):
        other = replace(best, regularization=best.regularization * factor)
        assert least <= other.bound(domain, Logistic(), BUDGET, radius=3.0).upper * (1 + 1e-3)
    lecture = ObjectivePerturbation.lecture(domain, Logistic(), radius=3.0, budget=BUDGET)
    sigma = math.sqrt(8 * math.log(1.25e5)) / 0.5
    assert lecture.regularization == pytest.approx(sigma * math.sqrt(10) / (3.0 * n))
    assert least <= lecture.bound(domain, Logistic(), BUDGET, radius=3.0).upper


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


def test_a_loss_with_corners_has_no_price():
    """A corner of width h has the curvature 1/h: as h falls the price of the determinant passes every budget."""
    for width, has_price in ((1.0, True), (0.01, False)):
        inside = Perturbation(curvature=1.0 / (width * 10.0), slopes="two_signed")
        plan = Plan([Release("perturb_objective", 1, mechanism="objective", perturbation=inside)])
        if has_price:
            assert calibrate(plan, BUDGET) > 0
        else:
            with pytest.raises(Unsupported, match="larger regularization"):
                calibrate(plan, BUDGET)


@pytest.mark.parametrize("pure", [False, True])
def test_lengths_of_noise_and_their_quantiles(pure):
    rng, p = np.random.default_rng(1), 7
    b = rng.normal(size=(200_000, p))
    length = rng.gamma(p, size=200_000) if pure else np.linalg.norm(b, axis=1)
    first, second = noise_lengths(p, pure=pure)
    assert np.mean(length) <= first * 1.01
    assert np.mean(length**2) == pytest.approx(second, rel=0.02)
    quantile, square = noise_lengths(p, pure=pure, confidence=0.95)
    assert np.mean(length <= quantile) == pytest.approx(0.95, abs=5e-3)
    assert square == quantile**2
    with pytest.raises(Unsupported, match="confidence"):
        noise_lengths(p, pure=pure, confidence=1.0)


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
