"""Events and plans: exact, strict, serializable."""

import json
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.accounting.events import (
    ZCDP,
    BoundedRange,
    Gaussian,
    Laplace,
    NonPrivate,
    PoissonSampled,
    PureDP,
    event_from_dict,
)
from discreet.accounting.plan import Plan, Release
from discreet.errors import AccountingError

positive = st.floats(1e-6, 1e6)
counts = st.integers(1, 10**6)
inner = st.one_of(
    st.builds(Gaussian, positive, counts),
    st.builds(Laplace, positive, counts, st.none() | st.integers(1, 9)),
    st.builds(PureDP, positive, counts),
    st.builds(BoundedRange, positive, counts),
)
events = st.one_of(
    inner, st.builds(PoissonSampled, st.integers(1, 65536), inner), st.builds(ZCDP, positive), st.just(NonPrivate())
)


@given(events)
def test_round_trip(event):
    assert event_from_dict(json.loads(json.dumps(event.to_dict()))) == event


@pytest.mark.parametrize(
    "stored",
    [
        {},
        {"kind": "magic"},
        {"kind": ["gaussian"]},
        {"kind": "gaussian", "noise_multiplier": 1.0},
        {"kind": "gaussian", "noise_multiplier": 1.0, "count": 1, "extra": 0},
        {"kind": "gaussian", "noise_multiplier": 0.0, "count": 1},
        {"kind": "gaussian", "noise_multiplier": "1", "count": 1},
        {"kind": "gaussian", "noise_multiplier": float("nan"), "count": 1},
        {"kind": "gaussian", "noise_multiplier": 1.0, "count": 0},
        {"kind": "gaussian", "noise_multiplier": 1.0, "count": 1.5},
        {"kind": "gaussian", "noise_multiplier": 1.0, "count": True},
        {"kind": "poisson_sampled", "numerator": 65537, "event": Gaussian(1.0).to_dict()},
        {"kind": "poisson_sampled", "numerator": 5, "event": ZCDP(1.0).to_dict()},
    ],
)
def test_malformed_events_are_refused(stored):
    with pytest.raises(AccountingError):
        event_from_dict(stored)


@given(st.fractions(Fraction(1, 10**6), 1) | st.floats(1e-6, 1))
def test_sampling_is_rounded_up(q):
    release = Release("noisy_gradient", 1, q)
    numerator = release.sampling_numerator
    assert Fraction(numerator - 1, 65536) < Fraction(q) <= Fraction(numerator, 65536)


def test_events_of_a_plan():
    plan = Plan([Release("a", 3), Release("b", 2, 0.5, 2.0, clip=1.0), Release("c", 0)])
    assert plan.events(4.0, pure=False) == (Gaussian(4.0, 3), PoissonSampled(32768, Gaussian(8.0, 2)))
    assert plan.events(4.0, pure=True) == (Laplace(4.0, 3), PoissonSampled(32768, Laplace(8.0, 2)))
    assert plan.events(0.0, pure=True) == (NonPrivate(), NonPrivate())
    assert plan.count == 5
    assert plan.is_sampled
    chosen = Plan([Release("select", 3, mechanism="exponential"), Release("pick", 1, mechanism="permute_and_flip")])
    assert chosen.events(4.0, pure=False) == (BoundedRange(0.25, 3), PureDP(0.25))
