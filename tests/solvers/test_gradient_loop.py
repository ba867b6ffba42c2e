"""The loop that gradient methods share, against plain transcriptions of its update. No records are read here."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from discreet import Budget, Neighbors
from discreet.accounting import Plan, Release
from discreet.bounds import Domain
from discreet.errors import Unsupported
from discreet.losses import Huber, Logistic, Softmax, Squared
from discreet.losses.base import gradient_bound, gradient_smoothness
from discreet.penalties import NoPenalty
from discreet.solvers import GradientDescent, StochasticGradientDescent
from discreet.solvers.gradient_loop import Averager


def domain(p=3, n=100, neighbors=Neighbors.REPLACE_ONE, n_outputs=1):
    return Domain(np.ones(p), math.sqrt(p), n, neighbors, n_outputs=n_outputs)


class Answers:
    """A curator that answers with a known gradient of a quadratic, and remembers what it was asked."""

    def __init__(self, domain, loss=None, gradient=None, count=50.0):
        self.domain, self.loss = domain, loss or Logistic()
        self.asked, self.clips, self.counts, self.n = [], [], 0, count
        p = domain.n_features
        self._curvature, self._center = np.linspace(0.1, 1.0, p), np.linspace(-1, 2, p)
        self._gradient = gradient
        self.budget, self.noise_multiplier = Budget(1.0, 1e-6), 1.0
        self.plan = Plan([Release("noisy_gradient", 1)])

    def noisy_gradient(self, w, *, clip):
        self.asked.append(w.copy())
        self.clips.append(clip)
        if self._gradient is not None:
            return self._gradient
        curvature = self._curvature if w.ndim == 1 else self._curvature[:, None]
        center = self._center if w.ndim == 1 else self._center[:, None]
        return 100.0 * curvature * (w - center)

    def noisy_count(self):
        self.counts += 1
        return self.n


def solve(solver, curator, penalty=None):
    return solver.solve(curator, penalty or NoPenalty()).coefficients


# ----------------------------------------------------------------------------------------------- averages


def averaged(mode, iterates):
    averager = Averager(mode, iterates[0], len(iterates) - 1)
    for t, w in enumerate(iterates[1:], start=1):
        averager.add(w, t)
    return averager.result


@pytest.mark.parametrize("n_steps", [1, 2, 3, 10, 11])
def test_averages_are_what_they_say(n_steps):
    iterates = np.random.default_rng(n_steps).normal(size=(n_steps + 1, 4))
    t = np.arange(n_steps + 1)
    weights = (t + 1) * (t + 2) * (t + 3)
    np.testing.assert_allclose(averaged("uniform", iterates), iterates.mean(axis=0))
    np.testing.assert_allclose(averaged("polynomial", iterates), np.average(iterates, axis=0, weights=weights))
    np.testing.assert_allclose(averaged("suffix", iterates), iterates[n_steps // 2 :].mean(axis=0))
    np.testing.assert_allclose(averaged("tail", iterates), iterates[n_steps // 2 + 1 :].mean(axis=0))
    np.testing.assert_array_equal(averaged("last", iterates), iterates[-1])


# -------------------------------------------------------------------------------------------- prox, then ball


def test_prox_comes_after_the_step_and_before_the_ball():
    calls = []

    def prox(w, step):
        calls.append((w.copy(), step))
        return w * 10

    penalty = SimpleNamespace(prox=prox, strong_convexity=0.0, hessian=None, l1_l2=None)
    curator = Answers(domain(), gradient=np.array([-100.0, 0.0, 0.0]))
    w = solve(GradientDescent(n_steps=1, step_size=0.25, radius=1.0), curator, penalty)
    (argument, step), *rest = calls
    assert not rest
    np.testing.assert_allclose(argument, [0.25, 0, 0])  # the gradient step first
    assert step == 0.25  # the prox's own step is the gradient's
    np.testing.assert_allclose(w, [1.0, 0, 0])  # the ball last: 10 * 0.25 is outside


# ----------------------------------------------------------------------------------------- plans and counts


def test_sgd_divides_by_the_expected_batch():
    """Also where rounding the probability up to k/2^16 makes it differ from the batch size that was asked for."""
    facts = domain(n=1000)
    for batch in (10.0, 333.3, 1000.0):
        solver = StochasticGradientDescent(n_steps=1, batch_size=batch, step_size=1.0, average="last")
        release = solver.plan(facts, Logistic(), NoPenalty()).releases[0]
        expected = 1000 * math.ceil(65536 * batch / 1000) / 65536
        assert release.sampling_numerator == math.ceil(65536 * batch / 1000)
        curator = Answers(facts, gradient=np.full(3, -expected))
        np.testing.assert_allclose(solve(solver, curator), 1.0, rtol=1e-15)
        assert expected >= batch


def test_sgd_with_a_private_n():
    facts = domain(n=None, neighbors=Neighbors.ADD_REMOVE)
    with pytest.raises(Unsupported, match="sampling_probability"):
        StochasticGradientDescent(batch_size=10).plan(facts, Logistic(), NoPenalty())
    solver = StochasticGradientDescent(sampling_probability=0.25, n_steps=1, step_size=1.0, average="last")
    plan = solver.plan(facts, Logistic(), NoPenalty())
    assert [r.query for r in plan.releases] == ["noisy_gradient", "noisy_count"]
    assert [r.sampling_numerator for r in plan.releases] == [2**14, 2**16]
    curator = Answers(facts, gradient=np.full(3, -10.0), count=40.0)
    np.testing.assert_allclose(solve(solver, curator), 1.0)


# ------------------------------------------------------------------------------------------------- defaults


@pytest.mark.parametrize("loss", [Logistic(), Huber(0.3), Softmax(3)], ids=lambda loss: type(loss).__name__)
def test_unset_clip_and_step_follow_from_the_declared_facts(loss):
    facts = domain(p=4, n_outputs=loss.n_outputs)
    curator = Answers(facts, loss, gradient=np.full(facts.shape, -100.0))
    w = solve(GradientDescent(n_steps=1), curator)
    assert curator.clips == [gradient_bound(loss, facts)]
    np.testing.assert_allclose(w, 1 / gradient_smoothness(loss, facts))
    assert gradient_bound(loss, facts) == pytest.approx(loss.lipschitz_for(1.0) * 2.0)
    assert gradient_smoothness(loss, facts) == pytest.approx(loss.smoothness * 4.0)


def test_an_unbounded_gradient_needs_a_clip_or_a_ball():
    with pytest.raises(Unsupported, match="radius"):
        GradientDescent().plan(domain(), Squared(), NoPenalty())
    plan = GradientDescent(radius=2.0).plan(domain(p=4), Squared(), NoPenalty())
    assert plan.releases[0].clip == pytest.approx((2.0 * 2.0 + 1.0) * 2.0)
