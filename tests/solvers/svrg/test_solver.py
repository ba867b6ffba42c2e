"""DP-SVRG's steps, seen through a curator that answers from a script; its limit without noise; its settings."""

import math

import numpy as np
import pytest

from discreet import Bounds, Budget, DPLogisticRegression
from discreet.accounting import Plan, Release
from discreet.curator import PrivateData
from discreet.errors import Unsupported
from discreet.losses import Logistic
from discreet.losses.base import gradient_bound
from discreet.penalties import L2, NoPenalty
from discreet.solvers import VarianceReducedDescent
from tests.covering import covering

N, P = 100, 2


class Script:
    """A curator that answers with the change of a quadratic's gradient, and notes what it was asked."""

    def __init__(self, gradient=lambda w: w - 1.0):
        self.domain = PrivateData(
            np.ones((N, P)), np.ones(N), Bounds(1.0, classes=(-1, 1)), fit_intercept=False
        ).domain(Budget(1.0).neighbors, Logistic())
        self.loss, self.gradient = Logistic(), gradient
        self.anchors, self.changes = [], []
        self.budget, self.noise_multiplier = Budget(1.0, 1e-6), 1.0
        self.plan = Plan([Release("noisy_gradient", 1), Release("noisy_gradient_change", 1)])

    def noisy_gradient(self, w, *, clip):
        self.anchors.append((w.copy(), clip))
        return N * self.gradient(w)

    def noisy_gradient_change(self, w, anchor, *, clip):
        self.changes.append((w.copy(), anchor.copy(), clip))
        return self.expected * (self.gradient(w) - self.gradient(anchor))


def run(penalty=None, q=0.5, **settings):
    script = Script()
    script.expected = N * math.ceil(q * 65536) / 65536
    solver = VarianceReducedDescent(sampling_probability=q, **{"n_epochs": 3, "n_inner": 4, "clip": 0.2, **settings})
    return solver.solve(script, penalty or NoPenalty()).coefficients, script, solver


def test_the_first_inner_step_asks_nothing():
    """w is the anchor: there is no change, and nothing to divide by."""
    _, script, _ = run()
    assert len(script.anchors) == 3
    assert len(script.changes) == 3 * (4 - 1)
    assert all(clip > 0 for *_, clip in script.changes)


@covering(("penalty", [NoPenalty(), L2(0.3)]), ("average", ["last", "uniform"]))
def test_the_steps_are_those_of_the_algorithm(average, penalty):
    """On a quadratic a change is exact, so that inner steps are plain proximal gradient steps."""
    step = 0.3
    found, script, _ = run(penalty, step_size=step, average=average)
    anchor = np.zeros(P)
    for s in range(3):
        np.testing.assert_allclose(script.anchors[s][0], anchor, rtol=1e-12)
        w, inner = anchor, []
        for _ in range(4):
            w = penalty.prox(w - step * (w - 1.0), step)
            inner.append(w)
        anchor = np.mean(inner, axis=0) if average == "uniform" else w
    np.testing.assert_allclose(found, anchor, rtol=1e-12)


@pytest.mark.parametrize("q", [0.3, 1 / 3, 1e-5, 0.5, 1.0])
def test_the_probability_is_rounded_up_and_divided_by(q):
    """What is drawn, what is priced and what the sum is divided by are one number."""
    settings = {"clip": 0.2, "n_epochs": 2, "n_inner": 3, "step_size": 0.1}
    solver = VarianceReducedDescent(sampling_probability=q, **settings)
    script = Script()
    release = solver.plan(script.domain, Logistic(), NoPenalty()).releases[1]
    assert release.query == "noisy_gradient_change"
    numerator = release.sampling_numerator
    assert numerator == math.ceil(q * 65536)
    script.expected = N * numerator / 65536
    found = solver.solve(script, NoPenalty()).coefficients
    exact = VarianceReducedDescent(sampling_probability=1.0, **settings)
    script.expected = N
    np.testing.assert_allclose(found, exact.solve(script, NoPenalty()).coefficients, rtol=1e-9)


def test_the_plan_has_both_kinds():
    domain = Script().domain
    solver = VarianceReducedDescent(n_epochs=4, n_inner=6, sampling_probability=0.25)
    anchors, changes = solver.plan(domain, Logistic(), NoPenalty()).releases
    assert (anchors.query, anchors.count, anchors.sampling_numerator) == ("noisy_gradient", 4, 65536)
    assert anchors.clip == gradient_bound(Logistic(), domain)
    assert changes.query == "noisy_gradient_change"
    assert changes.sampling_numerator == 16384
    assert changes.count >= 4 * (6 - 1)
    assert changes.clip is None


def test_where_n_is_private_a_probability_is_asked_for():
    data = {"X": np.ones((5, 2)), "y": np.ones(5)}
    for solver in ("svrg", VarianceReducedDescent(batch_size=3)):
        with pytest.raises(Unsupported, match="sampling_probability"):
            DPLogisticRegression(
                1.0, 1e-6, bounds=1.0, classes=(0, 1), solver=solver, neighbors="add_remove"
            ).fit(**data)  # fmt: skip
    solver = VarianceReducedDescent(n_epochs=2, n_inner=2, sampling_probability=0.5)
    model = DPLogisticRegression(1.0, 1e-6, bounds=1.0, classes=(0, 1), solver=solver, neighbors="add_remove").fit(
        **data
    )
    assert model.certificate_.verify().is_private
