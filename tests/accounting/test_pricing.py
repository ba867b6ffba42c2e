"""Prices, calibration and the agreement of accountants."""

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.accounting import gaussian, pld, pricing
from discreet.accounting.events import ZCDP, BoundedRange, Gaussian, Laplace, PoissonSampled, PureDP, renyi_epsilon
from discreet.accounting.plan import Plan, Release
from discreet.accounting.pricing import calibrate, epsilon_of, price
from discreet.budget import Budget
from discreet.errors import AccountingError, Unsupported
from tests.covering import covering


def steps(count, q=1.0, relative_noise=1.0):
    return Plan([Release("noisy_gradient", count, q, relative_noise)])


def test_full_batch_oracles():
    assert calibrate(steps(100), Budget(1, 1e-5)) == pytest.approx(37.306316, rel=1e-7)
    # 434.864535 in units of C: under replace_one the sensitivity is 2C.
    assert 2 * calibrate(steps(50), Budget(0.1, 1e-5)) == pytest.approx(434.864535, rel=1e-7)
    assert price(steps(400), 112.277795, 1 / 45312**2) == pytest.approx(1, abs=1e-6)


def test_sampled_oracles():
    z = calibrate(steps(1000, 0.01), Budget(1, 1e-5, "add_remove"))
    assert z == pytest.approx(1.4158, rel=2e-3)
    z = calibrate(steps(100, 0.1), Budget(1, 1e-5, "add_remove"))
    assert z == pytest.approx(3.9420, rel=2e-3)


@settings(max_examples=40, deadline=None)
@given(st.floats(0.01, 20), st.floats(1e-12, 1e-2), st.integers(1, 5000), st.floats(0.1, 10))
def test_full_batch_round_trip(epsilon, delta, count, relative):
    plan = Plan([Release("a", count), Release("b", 3, 1, relative)])
    spent = price(plan, calibrate(plan, Budget(epsilon, delta)), delta)
    assert epsilon * (1 - 1e-8) <= spent <= epsilon


@settings(max_examples=40, deadline=None)
@given(st.floats(0.01, 20), st.integers(1, 5000), st.integers(1, 65536))
def test_pure_round_trip(epsilon, count, numerator):
    plan = Plan([Release("a", count, Fraction(numerator, 65536)), Release("b", 2)])
    spent = price(plan, calibrate(plan, Budget(epsilon)), 0.0)
    assert epsilon * (1 - 1e-8) <= spent <= epsilon


@pytest.mark.few(1)
@covering(
    (("epsilon", "count", "q"), [(0.2, 50, 0.1), (1, 1000, 0.01), (8, 100, 0.02)]),
    ("neighbors", ["replace_one", "add_remove", "zero_out"]),
)
def test_sampled_round_trip(epsilon, count, q, neighbors):
    plan, budget = steps(count, q), Budget(epsilon, 1e-6, neighbors)
    spent = price(plan, calibrate(plan, budget), 1e-6, neighbors)
    assert epsilon * (1 - 1e-3) <= spent <= epsilon


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "plan",
    [
        Plan([Release("anchor", 5), Release("change", 100, 0.02, 0.7)]),
        Plan([Release("select", 20, mechanism="exponential"), Release("step", 20)]),
        Plan([Release("select", 20, mechanism="permute_and_flip"), Release("step", 20)]),
        Plan([Release("step", 100, 0.01)]),
    ],
)
def test_mixed_round_trip(plan):
    delta = 1e-6
    spent = price(plan, calibrate(plan, Budget(1, delta)), delta)
    assert 1 - 1e-3 <= spent <= 1


def test_pure_prices():
    assert epsilon_of([Laplace(100.0, 100)], 0.0).epsilon == 1.0
    # a price ends 2^-32 below its budget, and the search for it 1e-9 below that
    assert 2.0**-32 * (1 - 1e-5) <= calibrate(steps(100), Budget(1)) / 100 - 1 <= 2.0**-32 + 1e-9
    assert epsilon_of([PureDP(0.1, 3), BoundedRange(0.2, 2), Laplace(4.0)], 0).epsilon == pytest.approx(0.95)
    q, inner = 0.25, 1.5
    sampled = epsilon_of([PoissonSampled(16384, PureDP(inner, 7))], 0).epsilon
    assert sampled == pytest.approx(7 * math.log(1 + q * math.expm1(inner)), rel=1e-13)
    assert sampled >= 7 * math.log1p(q * math.expm1(inner))
    with pytest.raises(Unsupported, match="delta above 0"):
        epsilon_of([Gaussian(1.0)], 0.0)
    with pytest.raises(Unsupported, match="delta above 0"):
        epsilon_of([PoissonSampled(655, Gaussian(1.0))], 0.0)


def test_every_price_has_two_accountants():
    for events in (
        [Gaussian(5.0, 3)],
        [PoissonSampled(655, Gaussian(1.0, 10))],
        [Laplace(5.0, 3, 1), Gaussian(3.0)],
        [ZCDP(0.1), Gaussian(3.0)],
        [BoundedRange(0.1, 100)],
    ):
        assert len(epsilon_of(events, 1e-6).accountants) >= 2
    assert len(epsilon_of([PureDP(1.0)], 0.0).accountants) == 2


def test_tiny_deltas_fall_back_on_renyi():
    found = epsilon_of([PoissonSampled(655, Gaussian(2.0, 1000))], 1e-15)
    assert "pld" not in found.accountants
    assert found.epsilon == renyi_epsilon(
        [PoissonSampled(655, Gaussian(2.0, 1000))], 1e-15, pricing.Neighbors.REPLACE_ONE
    )


def test_a_wrong_accountant_is_caught(monkeypatch):
    """Halve the noise's price in one accountant at a time: each price must fail."""
    sampled = [PoissonSampled(655, Gaussian(2.0, 1000))]
    honest = pld.epsilon_of(sampled, 1e-5)
    monkeypatch.setattr(pld, "epsilon_of", lambda *_: 0.5 * honest)
    with pytest.raises(AccountingError, match="disagree"):
        epsilon_of(sampled, 1e-5)
    monkeypatch.setattr(pld, "epsilon_of", lambda *_: 2 * honest)
    with pytest.raises(AccountingError, match="disagree"):
        epsilon_of(sampled, 1e-5)
    for factor in (0.5, 3):
        exact = gaussian.epsilon_of(1.0, 1e-6)
        monkeypatch.setattr(gaussian, "epsilon_of", lambda *_, value=factor * exact: value)
        with pytest.raises(AccountingError, match="disagree"):
            epsilon_of([Gaussian(1.0)], 1e-6)
        monkeypatch.undo()


@settings(max_examples=150, deadline=None)
@given(st.floats(1e-6, 300), st.floats(1e-14, 0.9))
def test_the_two_gaussian_accountants_always_agree(mu, delta):
    found = epsilon_of([Gaussian(1 / mu)], delta)
    assert found.epsilon <= found.accountants["zcdp"] * (1 + 1e-9) + 1e-15


@settings(max_examples=12, deadline=None)
@given(st.integers(7, 40000), st.floats(0.5, 20), st.integers(1, 2000), st.sampled_from([1e-3, 1e-6]), st.booleans())
def test_the_numerical_accountants_always_agree(numerator, z, count, delta, replaced):
    neighbors = "replace_one" if replaced else "add_remove"
    found = epsilon_of([PoissonSampled(numerator, Gaussian(z, count))], delta, neighbors)
    assert 0 <= found.epsilon < math.inf
