"""Probabilities on their scale: one more noisy gradient, weighed against what clipping usually does."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from discreet import DPLogisticRegression
from discreet.accounting.plan import Plan
from discreet.bounds import Domain
from discreet.budget import Neighbors
from discreet.curator.lattice.entropy import SeededEntropy, use_entropy
from discreet.curator.records.recoding import Recoding
from discreet.losses import Logistic, SmoothedHinge, Softmax
from discreet.penalties import L2, NoPenalty
from discreet.solvers.probability_calibration import REACH, SHARE, calibrate
from tests.solvers.whitened.cases import descent

RNG = np.random.default_rng(5)
TRUE = np.array([1.4, -0.8, 0.5, 0.0])
X = RNG.uniform(-1, 1, (20_000, 4))
Y = (RNG.random(20_000) < 1 / (1 + np.exp(0.7 - 2 * X @ TRUE))).astype(int)


def fitted(seed=0, epsilon=4.0, **settings):
    with use_entropy(SeededEntropy(seed)):
        solver = descent(n_steps=8, **settings)
        return DPLogisticRegression(epsilon, bounds=1.0, classes=(0, 1), ledger=False, solver=solver).fit(X, Y)


def slope(model):
    """The factor that margins would need: 1 where probabilities are right."""
    margins = model.decision_function(X)[:, None]
    return float(LogisticRegression(C=1e6).fit(margins, Y).coef_[0, 0])


def test_margins_come_back_to_scale():
    assert slope(fitted(calibrate_probabilities=False)) < 0.75  # the negative control: clipping makes margins too large
    assert slope(fitted()) == pytest.approx(1.0, abs=0.06)
    assert np.abs(fitted().coef_[0] - 2 * TRUE).max() < 0.25


def test_directions_stay():
    plain, scaled = fitted(calibrate_probabilities=False, epsilon=50.0), fitted(epsilon=50.0)
    assert np.corrcoef(plain.coef_[0], scaled.coef_[0])[0, 1] > 0.999


def domain(intercept=True, outputs=1):
    return Domain(np.ones(5), 5**0.5, 1000, Neighbors.REPLACE_ONE, intercept=intercept, n_outputs=outputs)


def gradients(plan: Plan) -> int:
    return next(release.count for release in plan.releases if release.query == "noisy_gradient")


def test_the_plan_has_one_gradient_more_where_it_is_used():
    counts = {
        "logistic": (descent(), domain(), Logistic()),
        "asked not to": (descent(calibrate_probabilities=False), domain(), Logistic()),
        "no intercept": (descent(), domain(intercept=False), Logistic()),
        "hinge": (descent(), domain(), SmoothedHinge(0.5)),
        "softmax": (descent(), domain(outputs=3), Softmax(3)),
        "plain": (descent("plain"), domain(), Logistic()),
        "diagonal": (descent("diagonal"), domain(), Logistic()),
    }
    found = {name: gradients(solver.plan(where, loss, NoPenalty())) for name, (solver, where, loss) in counts.items()}
    assert found == {name: 13 if name == "logistic" else 12 for name in counts}
    assert len(fitted().certificate_.events) == 4


class StandIn:
    """Rows (u, 1) and targets by a law; answers exactly, or with what it is told to add."""

    def __init__(self, law, added=0.0):
        u = np.clip(np.random.default_rng(1).normal(size=40_000), -3, 3)
        self.rows, self.added, self.law = np.column_stack([u, np.ones_like(u)]), added, np.asarray(law)
        self.asked = []

    def recode(self, recoding, *, once):
        assert once
        self.recoding = recoding

    def noisy_gradient(self, theta, *, clip):
        self.asked.append(clip)
        chance, true = (1 / (1 + np.exp(-self.rows @ t)) for t in (theta, self.law))
        return (chance - true) @ self.rows + self.added * len(self.rows)


def found(law, *, deviation, added=0.0, penalty=None, spread=2.0, middle=-0.5):
    """theta, from a map whose only feature is the margin itself."""
    recoding = Recoding(np.zeros(1), np.ones(1), constant=1.0, matrix=np.eye(2))
    curator = StandIn(law, added)
    v = np.array([spread, middle])  # margin = spread * feature + middle
    result = calibrate(curator, recoding, v, middle, spread, penalty or NoPenalty(), 40_000.0, deviation)
    assert curator.asked == [REACH]
    return result


def test_without_noise_it_is_a_newton_step_to_the_law():
    result = found((0.62 * 2.0, -0.4), deviation=1e-9)
    assert result.coefficients == pytest.approx([0.62 * 2.0, -0.4], abs=0.03)
    assert result.share == pytest.approx(0.62, abs=0.02)
    assert result.deviations.max() < 1e-6


def test_where_noise_hides_everything_it_is_what_clipping_usually_does():
    result = found((1.3, 0.4), deviation=1e9, added=0.3)
    assert result.coefficients == pytest.approx([SHARE * 2.0, SHARE * -0.5], abs=1e-6)


def test_a_wild_answer_never_turns_the_model_around():
    assert found((1.0, 0.0), deviation=1e-9, added=50.0).share >= 0.1 * SHARE * 0.999


def test_a_penalty_pulls_here_too():
    free, pulled = (found((1.1, -0.3), deviation=1e-9, penalty=p).coefficients for p in (NoPenalty(), L2(0.5)))
    assert np.abs(pulled[0]) < 0.6 * np.abs(free[0])


def test_a_run_without_privacy_is_not_touched():
    model = DPLogisticRegression(float("inf"), bounds=1.0, classes=(0, 1), ledger=False).fit(X, Y)
    free = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000).fit(X, Y)
    assert model.coef_ == pytest.approx(free.coef_, abs=1e-3)


def test_what_the_noise_did_is_told():
    models = [fitted(seed, epsilon=1.0) for seed in range(24)]
    values, told = np.array([m.coef_[0] for m in models]), np.array([m.coef_noise_[0] for m in models])
    actual = values.std(axis=0, ddof=1)
    assert (told.mean(axis=0) > 0.7 * actual).all()
    assert (told.mean(axis=0) < 4 * actual).all()
