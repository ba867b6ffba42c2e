"""The schedule of a plan: several noises of one query, in the order of the plan, none more often than it was priced."""

from itertools import permutations

import numpy as np
import pytest

from discreet.accounting.plan import AdaptivePlan, Plan, Release
from discreet.accounting.pricing import price_plan
from discreet.curator.private_data import PrivateData
from discreet.errors import PlanViolation
from discreet.losses import Logistic
from tests.promises.reference import ZERO_OUT, bounds_for
from tests.replaying import window

NOISES = (4.0, 1.5, 2.0)
COUNTS = (2, 1, 3)


def listed(noises=NOISES, counts=COUNTS, **facts):
    """One query several times, others between."""
    gradients = [
        Release("noisy_gradient", count, relative_noise=noise, **facts)
        for noise, count in zip(noises, counts, strict=True)
    ]
    return Plan([gradients[0], Release("noisy_mean", 1, relative_noise=3.0), *gradients[1:]])


def opened(plan, budget=ZERO_OUT):
    data = PrivateData(np.ones((4, 2)), [0, 1, 1, 0], bounds_for(Logistic()))
    return data.open(price_plan(plan, budget), Logistic())


def multiplier(measurement):
    """The noise of an answer over its sensitivity."""
    return 2.0**measurement.unit.m / (float(measurement.factor) * measurement.unit.bound)


def answered(curator, count, query="noisy_gradient"):
    """The noises of so many answers, in units of the curator's."""
    with window() as seen:
        for _ in range(count):
            curator.noisy_gradient(np.zeros(3), clip=1.0)
    return [multiplier(one) / curator.noise_multiplier for one in seen]


def check_order(noises=NOISES, counts=COUNTS):
    """Each answer has the noise of its entry, in the order of the plan."""
    expected = [noise for noise, count in zip(noises, counts, strict=True) for _ in range(count)]
    assert answered(opened(listed(noises, counts)), len(expected)) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("noises", list(permutations(NOISES)))
def test_answers_take_the_noises_in_the_order_of_the_plan(noises):
    check_order(noises)


def test_several_answers_at_once_come_from_one_entry():
    """A draw of three is priced at one noise: it does not span entries, and what is refused is not spent."""
    session = opened(listed())._session
    with pytest.raises(PlanViolation, match="further"):
        session.spend("noisy_gradient", 1.0, count=3)
    assert session.spend("noisy_gradient", 1.0, count=2).relative_noise == 4.0
    assert session.spend("noisy_gradient", 1.0).relative_noise == 1.5
    with pytest.raises(PlanViolation, match="further"):
        session.spend("noisy_gradient", 1.0, count=4)
    assert session.spend("noisy_gradient", 1.0, count=3).relative_noise == 2.0
    with pytest.raises(PlanViolation, match="further"):
        session.spend("noisy_gradient", 1.0)


def test_each_entry_has_its_own_clip():
    plan = Plan([Release("noisy_gradient", 1, clip=1.0), Release("noisy_gradient", 1, clip=0.5)])
    curator = opened(plan)
    with pytest.raises(PlanViolation, match="another clip"):
        curator.noisy_gradient(np.zeros(3), clip=0.5)
    curator.noisy_gradient(np.zeros(3), clip=1.0)
    with pytest.raises(PlanViolation, match="another clip"):
        curator.noisy_gradient(np.zeros(3), clip=1.0)
    curator.noisy_gradient(np.zeros(3), clip=0.5)


def test_each_entry_has_its_own_sample():
    """All records first, then a sample."""
    plan = Plan([Release("noisy_gradient", 1), Release("noisy_gradient", 1, sampling_probability=2.0**-16)])
    session = opened(plan)._session
    assert session.sample(session.spend("noisy_gradient", 1.0)) is None
    assert session.sample(session.spend("noisy_gradient", 1.0)) is not None


def test_an_adaptive_plan_names_each_query_once():
    """Its answers bring their own rho: there would be no telling which entry they belong to."""
    entries = (Release("noisy_gradient", 1), Release("noisy_gradient", 2))
    with pytest.raises(PlanViolation, match="once"):
        opened(AdaptivePlan(entries))
