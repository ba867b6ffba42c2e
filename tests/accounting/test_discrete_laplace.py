"""One number with discrete Laplace noise: booked as the continuous mechanism that it is no worse than."""

import math
from fractions import Fraction

import numpy as np
import pytest

from discreet import Bounds, Budget, DPLogisticRegression
from discreet.accounting import rdp
from discreet.accounting.events import Laplace
from discreet.accounting.plan import Plan, Release
from discreet.accounting.pricing import price_plan
from discreet.curator import PrivateData
from discreet.curator.lattice import for_a_scalar, unit_for
from discreet.curator.session import observe
from discreet.errors import PlanViolation
from discreet.losses import Squared
from discreet.solvers import AdaptiveClip, CoordinateDescent, GreedyCoordinateDescent
from tests.covering import covering


def hockey_stick(r, distance, factor):
    """Exactly, in fractions: the divergence at e^epsilon = ``factor`` of X + distance from X, P(X = k) ~ r^|k|.

    Beyond the two centers the likelihoods' ratio is r^-distance or r^distance: each tail is a geometric series.
    """
    one = (1 - r) / (1 + r)
    middle = sum(max(0, one * (r ** abs(k - distance) - factor * r ** abs(k))) for k in range(distance))
    above = one / (1 - r) * max(0, 1 - factor * r**distance)
    below = one * r / (1 - r) * max(0, r**distance - factor)
    return middle + above + below


def renyi_moment(r, distance, order):
    """Exactly: sum P^order Q^(1 - order) for the same pair."""
    one = (1 - r) / (1 + r)
    middle = sum(one * r ** (order * abs(k - distance)) * r ** ((1 - order) * abs(k)) for k in range(distance))
    above = one / (1 - r) * r ** (distance * (1 - order))
    below = one * r / (1 - r) * r ** (distance * order)
    return middle + above + below


def continuous_hockey_stick(epsilon, noise_multiplier):
    return max(0.0, -math.expm1((epsilon - 1 / noise_multiplier) / 2)) if epsilon >= 0 else None


GRID = [(r, distance) for r in (Fraction(9, 10), Fraction(1, 2), Fraction(1, 10)) for distance in (1, 2, 3, 7)]


@pytest.mark.parametrize(("r", "distance"), GRID, ids=str)
def test_a_discrete_scalar_is_no_worse_than_the_continuous_one_that_it_is_booked_as(r, distance):
    scale = -1 / math.log(r)
    short = 0
    for j in range(1, 40):
        epsilon = j / 40 * distance / scale
        exact = float(hockey_stick(r, distance, Fraction(math.exp(epsilon))))
        assert exact <= continuous_hockey_stick(epsilon, scale / (distance + 1)) * (1 + 1e-12) + 1e-15
        short += exact > continuous_hockey_stick(epsilon, scale / distance) * (1 + 1e-12) + 1e-15
    assert short  # the negative control: without the one step more, the booking falls short


@pytest.mark.parametrize(("r", "distance"), GRID, ids=str)
def test_the_renyi_price_of_a_scalar_covers_discrete_noise(r, distance):
    scale, orders = -1 / math.log(r), np.arange(2.0, 12.0)
    exact = np.array([math.log(renyi_moment(r, distance, int(order))) for order in orders])
    assert (exact <= rdp.moments_of_laplace((distance + 1) / scale, orders) * (1 + 1e-12)).all()
    assert (exact > rdp.moments_of_laplace(distance / scale, orders) * (1 + 1e-12)).any()


@covering(("noise_multiplier", [0.3, 1.0, 7.3, 1e3, 1e6]), ("relation", ["zero_out", "replace_one", "add_remove"]))
def test_the_lattice_leaves_a_scalar_the_room_that_its_price_needs(relation, noise_multiplier):
    """2^m / (D + 1) is at least what is booked, for every scalar Laplace answer; without the room it is not."""
    factor = Budget(1.0, neighbors=relation).neighbors.sum_factor
    short = 0
    for n in (1, 10, 10**6, 2**26):
        for clip in (0.5, 1.0):
            bare = unit_for(noise_multiplier, factor, clip, n)
            unit = for_a_scalar(bare, clip)
            assert unit.bound * unit.step == pytest.approx(clip, rel=1e-15)
            assert (1 << unit.m) / Fraction(factor * unit.bound + 1) >= Fraction(noise_multiplier)
            short += (1 << bare.m) / Fraction(factor * bare.bound + 1) < Fraction(noise_multiplier)
    assert short


SCALARS = {
    "cd": CoordinateDescent(n_inner=3),
    "cd, adaptive clips": CoordinateDescent(n_inner=3, adaptive=AdaptiveClip()),
    "gcd": GreedyCoordinateDescent(n_steps=3),
}


@pytest.mark.few(1)
@covering(("name", SCALARS), ("relation", ["zero_out", "replace_one", "add_remove"]))
def test_every_scalar_of_a_pure_fit_is_booked_as_the_lemma_says(name, relation):
    """What the curator adds, seen through the window, against the event in the certificate."""
    rows = np.random.default_rng(0).uniform(-1, 1, (40, 2))
    seen = []
    with observe(lambda measurement: seen.append(measurement) or measurement.noisy):
        model = DPLogisticRegression(
            1.0, 0.0, bounds=Bounds(1.0, classes=(-1, 1)), neighbors=relation, solver=SCALARS[name]
        ).fit(rows, np.sign(rows[:, 0]))
    booked = [e.noise_multiplier for e in model.certificate_.events if isinstance(e, Laplace) and e.dimension == 1]
    noisy = {m.query: (1 << m.unit.m) / Fraction(m.factor * m.unit.bound + 1) for m in seen if m.norm == "l1"}
    scalars = {"noisy_coordinate_gradient", "noisy_share_within", "noisy_count"} & set(noisy)
    assert scalars
    for realized, planned in zip(sorted(noisy[query] for query in scalars), sorted(booked), strict=True):
        assert realized >= Fraction(planned)


def test_a_vector_is_not_answered_where_a_scalar_was_priced():
    """In a ledger that counts in Renyi divergences a scalar costs less than a vector of the same pure epsilon."""
    data = PrivateData(np.zeros((4, 2)), np.zeros(4), Bounds(1.0, target=(-1, 1)))
    curator = data.open(
        price_plan(Plan([Release("noisy_gradient", 1, dimension=1)]), Budget(1.0, 0.0, "zero_out")), Squared()
    )
    with pytest.raises(PlanViolation, match="without a dimension"):
        curator.noisy_gradient(np.zeros(3), clip=1.0)
