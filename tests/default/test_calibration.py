"""Predictors on their scale: more noisy gradients in two unknowns, weighed against what clipping usually does."""

import math

import numpy as np
import pytest

from discreet import Bounds, DPLinearRegression, DPLogisticRegression, DPPoissonRegressor, DPRidge
from discreet.accounting.plan import Plan
from discreet.bounds import Domain
from discreet.budget import Neighbors
from discreet.curator.records.recoding import Recoding
from discreet.default import Recipe, Shares
from discreet.default.rows import PREDICTED, Rows
from discreet.losses import Huber, Logistic, Poisson, SmoothedHinge, Softmax, Squared
from discreet.penalties import NoPenalty
from discreet.solvers.calibration import CLASSES, NUMBERS, WIDEST, Calibration
from discreet.solvers.coordinates import Target
from discreet.solvers.propagation import average_weights
from discreet.solvers.traces import DescentTrace, Noise
from discreet.testing import seeded
from tests.solvers.whitened.cases import descent

RNG = np.random.default_rng(5)
X = RNG.uniform(-1, 1, (20_000, 4))


def domain(intercept=True, outputs=1):
    return Domain(np.ones(5), 5**0.5, 1000, Neighbors.REPLACE_ONE, intercept=intercept, n_outputs=outputs)


def gradients(plan: Plan) -> int:
    return sum(
        release.count for release in plan.releases if release.query in ("noisy_gradient", "noisy_weighted_gradient")
    )


def test_the_plan_has_two_gradients_more_where_it_is_used_and_a_stage_one():
    counts = {
        "logistic": (Recipe(), domain(), Logistic()),
        "no intercept": (Recipe(), domain(intercept=False), Logistic()),
        "squared": (Recipe(), domain(), Squared()),
        "huber": (Recipe("declared"), domain(), Huber(0.3)),
        "counts": (Recipe(), domain(), Poisson(3.0)),
        "stage": (descent(), domain(), Logistic()),
        "stage, no intercept": (descent(), domain(intercept=False), Logistic()),
    }
    without = {
        "asked not to": (Recipe(shares=Shares(calibration=0.0)), domain(), Logistic()),
        "hinge": (Recipe(), domain(), SmoothedHinge(0.5)),
        "softmax": (Recipe(), domain(outputs=3), Softmax(3)),
        "stage, asked not to": (descent(calibrate=False), domain(), Logistic()),
        "stage of numbers": (descent(), domain(), Squared()),
        "plain": (descent("plain"), domain(), Logistic()),
        "diagonal": (descent("diagonal"), domain(), Logistic()),
    }
    asked = {**counts, **without}
    found = {name: gradients(solver.plan(where, loss, NoPenalty())) for name, (solver, where, loss) in asked.items()}
    first = {"softmax"}  # for the shares of classes; those of two are an entry of a gradient
    more = {name: 1 if name.startswith("stage") else 2 for name in counts}
    assert found == {name: 12 + more.get(name, 0) + (name in first) for name in asked}


class StandIn:
    """Rows (u, 1) and targets by a law; answers exactly, or with what it is told to add."""

    def __init__(self, law, added=0.0, loss=None):
        u = np.clip(np.random.default_rng(1).normal(size=40_000), -3, 3)
        self.rows, self.added, self.law = np.column_stack([u, np.ones_like(u)]), added, np.asarray(law)
        self.asked, self.loss = [], loss or Logistic()

    def noisy_gradient(self, theta, *, clip):
        self.asked.append(clip)
        link = (lambda m: m) if self.loss.task == "regression" else (lambda m: 1 / (1 + np.exp(-m)))
        chance, true = (link(self.rows @ t) for t in (theta, self.law))
        return (chance - true) @ self.rows + self.added * len(self.rows)


def calibrated(curator, v, noises, **facts):
    recoding = Recoding(np.zeros(1), np.ones(1), constant=1.0, matrix=np.eye(2))
    unknowns = Calibration(curator.loss, recoding, v, noises=noises, **facts)
    for _ in noises:
        unknowns.add(curator.noisy_gradient(unknowns.theta, clip=unknowns.clip) / len(curator.rows))
    return unknowns.result()


def found(law, *, deviation, added=0.0, penalty=None, spread=2.0, middle=-0.5, loss=None, answers=1, **facts):
    """theta, from a map whose only feature is the margin itself; ``deviation``: of the noise in an answer."""
    curator, v = StandIn(law, added, loss), np.array([spread, middle])  # margin = spread * feature + middle
    facts |= {"mean": middle, "deviation": spread, "clip": 3.2, "penalty": penalty or NoPenalty()}
    result = calibrated(curator, v, [deviation / 3.2] * answers, **facts)
    assert curator.asked == [3.2] * answers
    return result


@pytest.mark.parametrize(("loss", "near"), [(Logistic(), 0.03), (Squared(), 0.02)], ids=["logistic", "squared"])
def test_without_noise_two_answers_tell_the_law(loss, near):
    result = found((0.62 * 2.0, -0.4), deviation=1e-9, loss=loss, answers=2)
    assert result.coefficients == pytest.approx([0.62 * 2.0, -0.4], abs=near)
    assert result.share == pytest.approx(0.62, abs=0.02)
    assert result.deviations.max() < 1e-6


@pytest.mark.parametrize(("loss", "kept"), [(Logistic(), CLASSES.kept), (Squared(), NUMBERS.kept)], ids=str)
def test_where_noise_hides_everything_it_is_what_clipping_usually_does(loss, kept):
    for whole in (1.0, 3.0):  # of slopes that went the whole way, or a third of it
        result = found((1.3, 0.4), deviation=1e9, added=0.3, loss=loss, whole=whole)
        spread = CLASSES.spread * whole * 2.0  # of classes it is held back as far as predictors mostly vary less
        weight = 1.0 / (1.0 + (spread / WIDEST) ** 2) if isinstance(loss, Logistic) else 1.0
        assert result.coefficients == pytest.approx([weight * kept * whole * 2.0, kept * -0.5], abs=1e-6)


def test_log_odds_that_vary_far_beyond_what_is_usual_are_believed_as_far_as_they_are_known():
    """Of nothing but noise, next to which a deviation of ten means little; and where answers show that it is right."""
    noise, signal = (found((0.0, 0.0), deviation=1e9, spread=10.0, middle=0.0, likely=likely) for likely in (0.0, 1.0))
    assert abs(noise.coefficients[0]) < 1.0 < 3.0 < signal.coefficients[0]
    shown = found((5.5, 0.0), deviation=1e-3, spread=10.0, middle=0.0, likely=0.0, answers=2)
    assert shown.coefficients[0] == pytest.approx(5.5, rel=0.05)


@pytest.mark.parametrize("loss", [Logistic(), Squared()], ids=str)
def test_a_wild_answer_never_turns_the_model_around(loss):
    for added in (-50.0, 50.0):
        assert found((1.0, 0.0), deviation=1e-9, added=added, loss=loss).share >= 0.0


@pytest.mark.parametrize("loss", [Logistic(), Squared()], ids=str)
def test_a_direction_that_is_only_noise_is_left_out(loss):
    assert found((0.0, 0.3), deviation=1e-3, loss=loss, answers=3).share < 0.02


def skewed(n=8000):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    return X, np.clip(np.exp(0.5 * X[:, 0] + rng.normal(0, 0.9, n)), 0, 30)


def numbers(share, kind=DPLinearRegression, **settings):
    X, y = skewed()
    solver = Recipe(clip=0.75, row_radius=2.0, calibration_clip=8.0, shares=Shares(calibration=share))
    with seeded(0):
        model = kind(2.0, bounds=Bounds([(-4.0, 4.0)] * 3, target=(0.0, 30.0)), solver=solver, **settings).fit(X, y)
    return model, model.predict(X).mean() - y.mean(), y.std()


def test_the_mean_of_skewed_predictions_comes_back():
    (plain, before, spread), (calibrated, after, _) = numbers(0.0), numbers(0.1)
    assert before < -0.1 * spread
    assert abs(after) < 0.5 * abs(before)  # shrunk rows keep the rest
    assert abs(calibrated.coef_[0]) > abs(plain.coef_[0])
    assert (calibrated.coef_noise_ > 0).all()


@pytest.mark.parametrize(("center", "spread"), [(0.3, 1.4), (-0.2, 0.7)])
def test_a_predictor_whose_law_was_taken_for_another_is_brought_to_scale(center, spread):
    """A rare class, and a predictor that is wider than it was taken for: one linear step would overshoot."""
    curator = StandIn((1.2, -3.0))
    curator.rows[:, 0] = np.clip(center + spread * curator.rows[:, 0], -3.0, 3.0)
    facts = {"mean": -4.0, "deviation": 2.0, "clip": 3.2, "penalty": NoPenalty()}
    result = calibrated(curator, np.array([2.0, -4.0]), [1e-4] * 2, **facts)
    margins, best = curator.rows @ result.coefficients, curator.rows @ curator.law
    chance = 1 / (1 + np.exp(-best))
    excess = np.mean(np.logaddexp(0, margins) - chance * margins) - np.mean(np.logaddexp(0, best) - chance * best)
    assert excess < 1e-3


def test_a_predictor_that_hardly_varies_leaves_the_constant_where_it_was_found():
    """Rare columns, ranges too wide: in units of a deviation that noise hides rows were long, and the constant lost."""
    rng, above = np.random.default_rng(0), []
    rare, counts = (rng.random((6000, 12)) < 0.01).astype(float), np.minimum(rng.poisson(0.5, 6000), 10).astype(float)
    model = DPPoissonRegressor(0.3, bounds=Bounds([(0, 100)] * 12, target=(0, 10)), neighbors="zero_out", ledger=False)
    for seed in range(6):
        with seeded(seed):
            predicted = model.fit(rare, counts).predict(rare)
        above.append(np.mean(predicted - counts * np.log(predicted)))
    assert np.mean(above) < np.mean(counts) * (1.0 - np.log(np.mean(counts))) + 0.02


def test_a_predictor_that_nothing_speaks_for_becomes_a_constant():
    """Without a slope in the answers and in the steps; with either, it stays."""
    facts = {"mean": 0.0, "deviation": 1.0, "clip": CLASSES.length, "penalty": NoPenalty()}

    def share(slope, evidence):
        answers = StandIn((slope, 0.0)), np.array([1.0, 0.0]), [0.01, 0.01]
        return calibrated(*answers, evidence=evidence, **facts).share

    assert share(0.0, 0.0) < 0.2 * share(0.0, 30.0)
    assert share(0.6, 0.0) == pytest.approx(share(0.6, 30.0), rel=0.05)
    assert share(0.6, None) == share(0.6, math.inf)


@pytest.mark.parametrize(("cls", "target"), [(DPRidge, (-5.0, 5.0)), (DPLogisticRegression, None)])
def test_a_strong_penalty_is_weighed_as_clipped_slopes_are(cls, target):
    """Else coefficients would be held back by as much more as clips take from the slopes."""
    y = X @ [3.0, -2.0, 1.0, 0.0] + RNG.normal(0, 0.5, len(X))
    facts = {"bounds": Bounds(1.0, target=target)} if target else {"bounds": Bounds(1.0, classes=(0, 1))}
    y = y.clip(-5, 5) if target else (y > 0).astype(int)
    exact = cls(np.inf, alpha=0.3, ledger=False, **facts).fit(X, y)
    with seeded(0):
        found = cls(2.0, 1e-6, alpha=0.3, ledger=False, solver=Recipe(clip=0.4), **facts).fit(X, y)
    np.testing.assert_allclose(found.coef_, exact.coef_, rtol=0.15, atol=0.02)


@pytest.mark.parametrize(("multiplier", "n_steps"), [(0.5, 12), (4.0, 12), (4.0, 40)])
def test_what_is_expected_of_slopes_is_their_regression_on_what_steps_find(multiplier, n_steps):
    """Of slopes drawn by the assumed law, after steps with noise that go a part of the way."""
    p, count, clip, scale, draws = 30, 100.0, 0.4, 0.4, 4000
    rng, averages = np.random.default_rng(0), average_weights("polynomial", n_steps)
    steps = DescentTrace((p,), 1.0, clip, count, np.full(n_steps, 0.6), averages, Noise(1, multiplier, 1.0, False))
    moment = np.eye(p) / p
    rows = Rows(Target(0.0, scale), Recoding(np.zeros(p), np.ones(p)), 1.0, moment, moment, np.zeros(p))
    variance, curved = PREDICTED["regression"] / scale**2, math.erf(clip / math.sqrt(2.0)) / p
    slopes = rng.normal(size=(draws, p)) * math.sqrt(variance)
    v = last = found = np.zeros_like(slopes)
    for weight in averages[1:]:
        ahead = v + 0.6 * (v - last)
        noise = rng.normal(size=v.shape) * multiplier * clip / count
        v, last = ahead - curved * (ahead - slopes) - noise, v
        found = found + weight * v
    whole, share = rows.expected(steps, Squared())
    assert whole == pytest.approx(np.sum(slopes * found) / np.sum(found**2), rel=0.03)
    assert share == pytest.approx(np.corrcoef(slopes.ravel(), found.ravel())[0, 1] ** 2, rel=0.05, abs=1e-3)


@pytest.mark.parametrize("epsilon", [1.0, 4.0, 16.0])
def test_a_predictor_of_rare_rows_keeps_its_scale(epsilon):
    """Rows that are shrunk have another margin: rare ones, which are long, would push their coefficient far off."""
    rng = np.random.default_rng(3)
    rare = (rng.random((6_000, 1)) < 0.015).astype(float)
    counts = np.minimum(rng.poisson(np.exp(1.0 + 2.9 * rare[:, 0])), 100).astype(float)
    labels = (rng.random(6_000) < 1 / (1 + np.exp(-(3.0 * rare[:, 0] - 0.5)))).astype(int)
    for kind, y, facts in (
        (DPPoissonRegressor, counts, {"target": (0.0, 100.0)}),
        (DPLogisticRegression, labels, {"classes": (0, 1)}),
    ):
        found = []
        for seed in range(6):
            model = kind(epsilon, bounds=Bounds([(0.0, 1.0)], **facts), neighbors="zero_out", ledger=False)
            with seeded(seed):
                found.append(float(np.ravel(model.fit(rare, y).coef_)[0]))
        assert abs(np.mean(found) - 2.95) < 1.0


def test_weak_answers_leave_a_constant_that_was_told_well_where_columns_say_nothing():
    told, asked = ({"is_told": yes} for yes in (True, False))
    curator = StandIn([0.0, -1.0], added=0.5)
    facts = {
        "mean": -1.0, "deviation": 0.1, "clip": CLASSES.length, "penalty": NoPenalty(), "start": -1.0, "unsure": 0.05,
    }  # fmt: skip
    left = [
        calibrated(curator, np.array([0.1, -1.0]), [0.06, 0.06], **facts, **one).coefficients[-1]
        for one in (told, asked)
    ]
    assert abs(left[0] + 1.0) < 0.05
    assert abs(left[1] + 1.0) > 0.3
