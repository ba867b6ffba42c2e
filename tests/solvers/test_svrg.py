"""DP-SVRG: changes of gradients and their clip, its price, its steps."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from discreet import Bounds, Budget
from discreet.accounting import Plan, Release
from discreet.accounting.pricing import price_plan
from discreet.curator import PrivateData, noise
from discreet.losses import Huber, Logistic, Poisson, SmoothedHinge, Softmax, Squared
from discreet.penalties import L2, NoPenalty
from discreet.solvers import VarianceReducedDescent
from discreet.testing import seeded
from tests.covering import covering
from tests.replaying import window

LOSSES = (Logistic(), Squared(), Huber(0.7), SmoothedHinge(0.5), Poisson(3.0), Softmax(3))
PURE = Budget(1.0, 0.0, "zero_out")


ZERO_OUT = Budget(1.0, 1e-6, "zero_out")


def bounds_for(loss):
    return Bounds(1.0, classes=tuple(range(max(2, loss.n_outputs))), target=(0.0, 3.0))


def opened(X, y, loss=None, *, budget=ZERO_OUT, count=1, groups=None, intercept=True, **release):
    """A curator that answers ``count`` changes of gradients."""
    loss = Logistic() if loss is None else loss
    data = PrivateData(X, y, bounds_for(loss), groups=groups, fit_intercept=intercept)
    return data.open(price_plan(Plan([Release("noisy_gradient_change", count, **release)]), budget), loss)


def shaped(curator, values):
    return np.resize(np.asarray(values, dtype=np.float64), curator.domain.shape)


def change(X, y, loss=None, w=1.0, anchor=0.0, clip=0.3, **settings):
    """The Measurement of one answer."""
    curator = opened(X, y, loss, **settings)
    with window() as seen:
        curator.noisy_gradient_change(shaped(curator, w), shaped(curator, anchor), clip=clip)
    return seen[0], curator


def ratio_of(measurement):
    """The squared norm of the exact sum over B squared, in integers: (numerator, denominator)."""
    values = [int(v) for v in measurement.exact.ravel()]
    norm = sum(map(abs, values)) ** 2 if measurement.norm == "l1" else sum(v * v for v in values)
    return norm, measurement.unit.bound**2


def table(n=9, p=3, seed=0):
    rng = np.random.default_rng(seed)
    X = np.clip(rng.normal(0, 0.8, (n, p)), -1.5, 1.5)
    X[2] = 0.0
    X[4, 1] = np.nan
    return X, rng.integers(0, 2, n).astype(float)


@covering(("groups", [None, np.array([2, 0, 1, 0, 2, 1, 0, 2, 2])]), ("engine", [np.asarray, sparse.csr_array]))
def test_both_gradients_see_the_same_sample(engine, groups, monkeypatch):
    """The sample is drawn once an answer: its sum is that of ``tests/curator/kernels/test_integers.py``."""
    X, y = table()
    X = np.nan_to_num(X)
    w, anchor = np.linspace(-3, 3, 30), np.linspace(1, -1, 30)
    drawn = []
    honest = noise.poisson_sample
    monkeypatch.setattr(noise, "poisson_sample", lambda *args: drawn.append(honest(*args)) or drawn[-1])
    with seeded(7), window() as seen:
        curator = opened(engine(X), y, groups=groups, count=12, sampling_probability=0.4)
        for _ in range(12):
            curator.noisy_gradient_change(shaped(curator, w), shaped(curator, anchor), clip=0.3)
    assert len(drawn) == len(seen) == 12
    assert len({tuple(units) for units in drawn}) > 3


wild = st.one_of(
    st.floats(-2, 2), st.sampled_from([0.0, 1.0, -1.0, 1e-300, 1e308, -1e308, math.inf, -math.inf, math.nan, 1e-5])
)
points = st.lists(st.one_of(st.floats(-5, 5), st.floats(-1e6, 1e6)), min_size=4, max_size=4)


@pytest.mark.thorough
@given(
    row=st.lists(wild, min_size=3, max_size=3), label=st.sampled_from([0.0, 1.0, 7.0, math.nan]), w=points,
    anchor=points, clip=st.sampled_from([1e-250, 1e-12, 1e-3, 0.5, 3.0, 1e6]), loss=st.sampled_from(LOSSES),
    pure=st.booleans(), rows=st.integers(1, 4),
)  # fmt: skip
@settings(max_examples=80)
def test_one_record_never_contributes_more_than_the_clip(row, label, w, anchor, clip, loss, pure, rows):
    """One person with up to four rows is all there is: the sum is that person's, and within B exactly."""
    budget = PURE if pure else Budget(2.0, 1e-6, "zero_out")
    X, y = np.tile(np.array(row), (rows, 1)), np.full(rows, label)
    seen, _ = change(X, y, loss, w, anchor, clip, budget=budget, groups=np.zeros(rows, dtype=int))
    norm, limit = ratio_of(seen)
    assert norm <= limit
    assert seen.unit.step * seen.unit.bound == pytest.approx(clip)


def test_the_clip_bites_far_below_the_change():
    """The bound rests on the executed clip: here a record's change is a thousand times longer."""
    seen, _ = change(np.ones((1, 2)), np.ones(1), Squared(), 100.0, -100.0, 0.2)
    norm, limit = ratio_of(seen)
    assert 0.99 * limit <= norm <= limit


# --- dP-SVRG's steps, seen through a curator that answers from a script; its limit without nois

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
