"""Contracts with the privacy loss distributions that we use: closed forms, and count = list."""

import math

import numpy as np
import pytest

from discreet.accounting import gaussian, pld, rdp
from discreet.accounting.events import BoundedRange, Gaussian, Laplace, PoissonSampled, PureDP
from discreet.budget import Neighbors
from tests.covering import covering

ADD, REPLACE = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE
GRID = 1e-4


def test_laplace_compositions():
    assert pld.epsilon_of([Laplace(10.0, 100, 1)], 1e-6, ADD, GRID) == pytest.approx(4.692667, abs=1e-3)
    assert pld.epsilon_of([Laplace(2.0, 10, 1)], 1e-6, ADD, GRID) == pytest.approx(4.998978, abs=1e-5)
    assert pld.delta_of([Laplace(2.0, 10, 1)], 3.0, ADD, GRID) == pytest.approx(3.185911e-2, rel=1e-4)


def test_mixture_of_laplace_and_gaussian():
    events = [Laplace(20.0, 10, 1), Gaussian(10.0, 10)]
    assert pld.epsilon_of(events, 1e-6, REPLACE, GRID) == pytest.approx(1.531631, abs=1e-5)
    rho = 10 * rdp.zcdp_of_laplace(1 / 20) + 10 * rdp.zcdp_of_gaussian(10)
    assert rho == pytest.approx(0.06229425, abs=1e-8)
    assert rdp.epsilon_of_zcdp(rho, 1e-6) == pytest.approx(1.657023, abs=1e-6)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("q", "z", "count", "delta", "expected"),
    [
        (0.01, 1, 1000, 1e-5, 1.828244),
        (0.01, 4, 10000, 1e-5, 0.946999),
        (0.001, 0.8, 5000, 1e-6, 0.733626),
        (0.1, 5, 200, 1e-5, 1.098100),
        (256 / 60000, 1.1, 14062, 1e-5, 2.381686),
    ],
)
def test_sampled_gaussian_add_remove(q, z, count, delta, expected):
    """The oracle's q is no multiple of 2^-16: bracket it between the two that are."""
    below, above = (PoissonSampled(rounding(q * 2**16), Gaussian(z, count)) for rounding in (math.floor, math.ceil))
    low, high = (pld.epsilon_of([event], delta, ADD, GRID) for event in (below, above))
    assert low <= expected <= high
    share = q * 2**16 - math.floor(q * 2**16)
    assert low + share * (high - low) == pytest.approx(expected, rel=2e-4)


@pytest.mark.parametrize(
    ("q", "z_in_clips", "count", "expected"), [(0.01, 4, 10000, 1.993194), (0.1, 10, 200, 1.060365)]
)
def test_sampled_gaussian_replace_one(q, z_in_clips, count, expected):
    """The oracle counts noise in units of C; under replace_one this library counts in 2C."""
    events = [
        PoissonSampled(rounding(q * 2**16), Gaussian(z_in_clips / 2, count)) for rounding in (math.floor, math.ceil)
    ]
    low, high = (pld.epsilon_of([event], 1e-5, REPLACE, GRID) for event in events)
    assert low <= expected <= high
    assert low == pytest.approx(expected, rel=2e-3)


@covering(("count", [1, 100, 10_000]), ("neighbors", Neighbors))
def test_full_batch_gaussian_is_gaussian_dp(neighbors, count):
    for delta in (1e-3, 1e-6, 1e-9):
        exact = gaussian.epsilon_of(1.0, delta)
        found = pld.epsilon_of([Gaussian(math.sqrt(count), count)], delta, neighbors)
        assert exact <= found <= exact * (1 + 1e-4)


def direct_power(values, lower_loss, count):
    """A self-convolution without transforms: every term is positive, so that no digit cancels."""

    def trimmed(pair):
        # What is cut off is far below any delta; it would only slow the products down by underflow.
        kept = np.flatnonzero(pair[0] > 1e-30)
        return pair[0][kept[0] : kept[-1] + 1], pair[1] + kept[0]

    base, answer = trimmed((np.asarray(values), lower_loss)), None
    while count:
        if count & 1:
            answer = base if answer is None else trimmed((np.convolve(answer[0], base[0]), answer[1] + base[1]))
        count >>= 1
        if count:
            base = trimmed((np.convolve(base[0], base[0]), 2 * base[1]))
    return answer


def shortfall(q, z, count, grid):
    """By how much dp_accounting's delta falls short of the same distribution's, and what we allow for."""
    from dp_accounting.pld import privacy_loss_distribution

    single = privacy_loss_distribution.from_gaussian_mechanism(z, sampling_prob=q, value_discretization_interval=grid)
    composed, worst = single.self_compose(count), 0.0
    for name in ("_pmf_remove", "_pmf_add"):
        one, all_ = (getattr(each, name).to_dense_pmf() for each in (single, composed))
        values, start = direct_power(one._probs, one._lower_loss, count)
        losses = (np.arange(len(values)) + start) * grid
        for epsilon in np.linspace(0, 10, 80):
            above = losses > epsilon
            exact = float(np.sum(-np.expm1(epsilon - losses[above]) * values[above]))
            worst = max(worst, exact - all_.get_delta_for_epsilon(epsilon))
    return worst, pld.hidden_delta(composed, count)


@pytest.mark.parametrize(
    ("q", "z", "count", "grid"), [(0.01, 1, 1000, 4e-3), (0.01, 4, 10000, 5e-4), (1, 100, 10000, 2e-3)]
)
def test_hidden_delta_covers_the_rounding_of_the_transforms(q, z, count, grid):
    short, allowed = shortfall(q, z, count, grid)
    assert short <= allowed


@covering(
    (
        "event",
        [
            Gaussian(3.0, 4),
            Laplace(3.0, 4, 1),
            Laplace(3.0, 4),
            Laplace(3.0, 4, 7),
            PureDP(0.2, 4),
            BoundedRange(0.2, 4),
            PoissonSampled(6554, Gaussian(2.0, 4)),
            PoissonSampled(6554, Laplace(1.0, 4, 1)),
            PoissonSampled(6554, Laplace(1.0, 4)),
            PoissonSampled(6554, PureDP(1.0, 4)),
            PoissonSampled(65536, Gaussian(3.0, 4)),
        ],
    ),
    ("neighbors", Neighbors),
)
def test_count_is_a_list(event, neighbors):
    together = pld.epsilon_of([event], 1e-5, neighbors, 5e-4)
    apart = pld.epsilon_of([event.with_count(1)] * 4, 1e-5, neighbors, 5e-4)
    assert together == pytest.approx(apart, rel=6e-3)
    assert together > 1.2 * pld.epsilon_of([event.with_count(1)], 1e-5, neighbors, 5e-4)


def test_closed_forms_of_single_events():
    assert pld.delta_of([Laplace(1.0, 1, 1)], 0.5, ADD) == pytest.approx(1 - math.exp(-0.25), rel=1e-4)
    assert pld.epsilon_of([PureDP(0.7)], 1e-8, ADD) == pytest.approx(0.7, rel=1e-3)
    assert pld.epsilon_of([PureDP(0.7)], 1e-8, ADD) >= 0.69999
    response = (math.exp(1.0) - math.exp(0.5)) / (1 + math.exp(1.0))
    assert pld.delta_of([PureDP(1.0)], 0.5, ADD) == pytest.approx(response, rel=1e-2)
    assert pld.delta_of([Gaussian(1.0)], 1.0, ADD) == pytest.approx(gaussian.delta_of(1.0, 1.0), rel=1e-6)


@pytest.mark.parametrize("ratio", [1.0, 1.7])
def test_replace_one_pair_dominates_in_the_plane(ratio):
    """Hockey-stick divergences of tilted pairs of contributions in two dimensions never exceed the line's."""
    q, z = 0.3, ratio
    axis, step = np.linspace(-9 * z, 9 * z, 401, retstep=True)
    x, y = np.meshgrid(axis, axis)

    def density(a, b):
        return np.exp(-((x - a) ** 2 + (y - b) ** 2) / (2 * z * z)) / (2 * math.pi * z * z)

    def divergence(first, second, factor):
        p, r = ((1 - q) * density(0, 0) + q * density(*point) for point in (first, second))
        return float(np.maximum(p - factor * r, 0).sum()) * step * step

    for factor in (1.0, 1.1, 1.5):
        worst = divergence((1, 0), (-1, 0), factor)
        for angle in np.linspace(0, math.pi, 7):
            for size in (0.3, 1.0):
                other = (size * math.cos(angle), size * math.sin(angle))
                assert divergence((1, 0), other, factor) <= worst + 1e-9
                assert divergence(other, (1, 0), factor) <= worst + 1e-9
