"""noisy_gradient_change: the exact sum, the executed clip, noise in proportion to it."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse, stats

from discreet import Budget
from discreet.accounting import AdaptivePlan, Release
from discreet.accounting.priced_plan import price_plan
from discreet.curator import PrivateData
from discreet.curator.lattice import noise
from discreet.curator.lattice.entropy import use_entropy
from discreet.errors import DiscreetError
from discreet.losses import Huber, Logistic, Poisson, SmoothedHinge, Softmax, Squared
from discreet.testing import seeded
from tests.covering import covering
from tests.entropy import Buffered
from tests.replaying import window
from tests.solvers.svrg.cases import RELATIONS, bounds_for, by_hand, change, opened, ratio_of, shaped

LOSSES = (Logistic(), Squared(), Huber(0.7), SmoothedHinge(0.5), Poisson(3.0), Softmax(3))
PURE = Budget(1.0, 0.0, "zero_out")
SIGNIFICANCE = 1e-9


def table(n=9, p=3, seed=0):
    rng = np.random.default_rng(seed)
    X = np.clip(rng.normal(0, 0.8, (n, p)), -1.5, 1.5)
    X[2] = 0.0
    X[4, 1] = np.nan
    return X, rng.integers(0, 2, n).astype(float)


@pytest.mark.parametrize("loss", [Logistic(), Softmax(3)], ids=lambda loss: type(loss).__name__)
def test_persons_share_one_bound(loss):
    X, y = table()
    groups = np.array([2, 0, 1, 0, 2, 1, 0, 2, 2])
    w, anchor = np.linspace(-3, 3, 30), np.linspace(1, -1, 30)
    seen, curator = change(X, y, loss, w, anchor, 0.05, groups=groups)
    expected = by_hand(curator, X, y, shaped(curator, w), shaped(curator, anchor), seen.unit, groups=groups)
    assert seen.exact.tolist() == expected


@covering(("groups", [None, np.array([2, 0, 1, 0, 2, 1, 0, 2, 2])]), ("engine", [np.asarray, sparse.csr_array]))
def test_both_gradients_see_the_same_sample(engine, groups, monkeypatch):
    """The sample is drawn once an answer; a record in it changes from anchor to w, the others stay out."""
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
    for measurement, units in zip(seen, drawn, strict=True):
        expected = by_hand(
            curator, X, y, shaped(curator, w), shaped(curator, anchor), measurement.unit, groups=groups,
            units=set(units.tolist()),
        )  # fmt: skip
        assert measurement.exact.tolist() == expected


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
