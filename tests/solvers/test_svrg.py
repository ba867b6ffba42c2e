"""DP-SVRG: changes of gradients and their clip, its price, its steps."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse, stats

from discreet import Bounds, Budget, DPLogisticRegression
from discreet.accounting import AdaptivePlan, Plan, Release
from discreet.accounting.events import Gaussian, PoissonSampled
from discreet.accounting.priced_plan import price_plan
from discreet.accounting.pricing import epsilon_of
from discreet.curator import PrivateData
from discreet.curator.lattice import noise
from discreet.curator.lattice.entropy import use_entropy
from discreet.errors import DiscreetError, Unsupported
from discreet.losses import Huber, Logistic, Poisson, SmoothedHinge, Softmax, Squared
from discreet.losses.base import gradient_bound
from discreet.penalties import L2, NoPenalty
from discreet.solvers import VarianceReducedDescent
from discreet.testing import seeded
from tests.covering import covering
from tests.entropy import Buffered
from tests.registry import RELATIONS
from tests.replaying import window

LOSSES = (Logistic(), Squared(), Huber(0.7), SmoothedHinge(0.5), Poisson(3.0), Softmax(3))
PURE = Budget(1.0, 0.0, "zero_out")
SIGNIFICANCE = 1e-9


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


def test_below_the_clip_nothing_is_lost():
    X, y = table()
    X = np.nan_to_num(X)
    seen, curator = change(X, y, Logistic(), 0.3, -0.2, 40.0)
    rows = np.hstack([np.rint(np.clip(X, -1, 1) * 2**14) / 2**14, np.ones((len(X), 1))])
    t = 2 * y - 1

    def slope(m):
        return -t / (1 + np.exp(t * m))

    expected = (slope(rows @ np.full(4, 0.3)) - slope(rows @ np.full(4, -0.2))) @ rows
    np.testing.assert_allclose(seen.exact[0] * seen.unit.step, expected, atol=1e-4)
    assert curator.budget.is_private


def answers_of(relation, clip, runs=40, p=100, **settings):
    rng = np.random.default_rng(1)
    with use_entropy(Buffered(9)), window() as seen:
        curator = opened(rng.uniform(-1, 1, (5, p)), np.ones(5), budget=Budget(1.0, 1e-6, relation), count=runs,
                         intercept=False, **settings)  # fmt: skip
        w, anchor = rng.normal(size=p), rng.normal(size=p)
        answers = [curator.noisy_gradient_change(w, anchor, clip=clip) for _ in range(runs)]
    errors = [a - m.exact.ravel() * m.unit.step for a, m in zip(answers, seen, strict=True)]
    return np.concatenate(errors), curator, seen


def proportional(relation, clip):
    """The measured noise is z a clip: the p of that, from both sides."""
    errors, curator, seen = answers_of(relation, clip)
    a = 2 if relation == "replace_one" else 1
    statistic = float(np.sum(np.square(errors / (curator.noise_multiplier * a * clip))))
    assert all(2**m.unit.m >= curator.noise_multiplier * m.factor * m.unit.bound for m in seen)
    return 2 * min(stats.chi2.cdf(statistic, errors.size), stats.chi2.sf(statistic, errors.size))


@pytest.mark.statistical
@covering(("clip", [2.0, 1e-3, 1e-12, 1e-150]), ("relation", RELATIONS))
def test_the_noise_vanishes_with_the_clip(relation, clip):
    assert proportional(relation, clip) > SIGNIFICANCE


def test_where_nothing_changes_only_noise_is_left():
    X, y = table()
    seen, _ = change(X, y, Logistic(), 0.7, 0.7, 1e-6)
    assert not seen.exact.any()


def test_it_has_no_place_in_an_adaptive_plan():
    X, y = table()
    data = PrivateData(X, y, bounds_for(Logistic()))

    def ask():
        curator = data.open(
            price_plan(AdaptivePlan([Release("noisy_gradient_change", 0)]), Budget(1.0, 1e-6)), Logistic()
        )
        curator.noisy_gradient_change(np.zeros(4), np.ones(4), clip=1.0)

    with pytest.raises(DiscreetError):
        ask()


# --- the price of a run of DP-SVRG, computed a second time from events written by hand, and by

S, M, Q, SHARE = 3, 4, 0.25, 0.4
SOLVER = VarianceReducedDescent(
    n_epochs=S, n_inner=M, sampling_probability=Q, clip=0.3, anchor_share=SHARE, step_size=1.0
)


def price_table(n=40):
    rng = np.random.default_rng(2)
    X = rng.uniform(-1, 1, (n, 2))
    return X, (X[:, 0] > 0).astype(float)


def certified(relation="replace_one", epsilon=1.0, delta=1e-6, solver=SOLVER):
    bounds = Bounds(1.0, classes=(0, 1), n=40 if relation == "add_remove" else None)
    with seeded(1), window() as seen:
        model = DPLogisticRegression(epsilon, delta, bounds=bounds, neighbors=relation, solver=solver).fit(
            *price_table()
        )
    return model.certificate_, seen


def realized(measurement):
    """Noise over sensitivity, from the lattice."""
    return float(Fraction(1 << measurement.unit.m) / (measurement.factor * measurement.unit.bound))


def checked(relation="replace_one"):
    """The noise that was drawn, priced as what was drawn: S Gaussians and S m sampled ones."""
    certificate, seen = certified(relation)
    anchors = [realized(m) for m in seen if m.query == "noisy_gradient"]
    changes = [realized(m) for m in seen if m.query == "noisy_gradient_change"]
    assert len(anchors) == S
    assert S * (M - 1) <= len(changes) <= S * M
    assert all(m.factor == (2 if relation == "replace_one" else 1) for m in seen)
    by_hand = [Gaussian(min(anchors), S), PoissonSampled(math.ceil(Q * 65536), Gaussian(min(changes), len(changes)))]
    spent = epsilon_of(by_hand, 1e-6, relation).epsilon
    assert spent <= 1.0 * (1 + 1e-3), "what was drawn costs more than the certificate says"
    assert spent >= 0.9, "the price is far from what was drawn"
    listed = certificate.events
    assert listed[0] == Gaussian(listed[0].noise_multiplier, S)
    assert isinstance(listed[1], PoissonSampled)
    assert listed[1].numerator == 16384
    assert listed[1].event.count >= len(changes)
    assert min(anchors) >= listed[0].noise_multiplier * (1 - 1e-12)
    assert min(changes) >= listed[1].event.noise_multiplier * (1 - 1e-12)
    return certificate, anchors, changes


@pytest.mark.parametrize("relation", RELATIONS)
def test_the_certificate_is_the_composition_of_both_kinds(relation):
    certificate, anchors, changes = checked(relation)
    z = certificate.noise_multiplier
    assert min(changes) == pytest.approx(z, rel=1e-4)
    assert min(anchors) == pytest.approx(z * math.sqrt((1 - SHARE) / (SHARE * (M - 1))) / Q, rel=1e-4)
    listed = certificate.events
    by_hand = [Gaussian(listed[0].noise_multiplier)] * S
    by_hand += [PoissonSampled(16384, Gaussian(z))] * listed[1].event.count
    again = epsilon_of(by_hand, 1e-6, relation).epsilon
    assert 1.0 - 2e-3 <= again <= 1.0
    assert certificate.epsilon == 1.0


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
