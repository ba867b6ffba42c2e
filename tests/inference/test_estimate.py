"""Steps that settle where chords overshoot, what noise leaves of a gap, and what counts say that cuts may lose."""

import math

import numpy as np
import pytest
from scipy.special import expit

from discreet.inference.estimate import LimitedSteps, Metric, told_apart
from discreet.inference.limits import most_beyond, most_lost, tells_rows


def rare_outcome(margin):
    """The gradient of an intercept of 1 % outcomes, and its curvature."""
    return expit(margin) - 0.01, expit(margin) * (1 - expit(margin))


def settled(noise, *, turns=True, rounds=6):
    """How far from the root two steps by each of a few Hessians end, from a start that is too flat for chords."""
    root, v, path = math.log(0.01 / 0.99), np.array([-6.5]), LimitedSteps()
    rng = np.random.default_rng(0)
    for _ in range(rounds):
        path = path if turns else LimitedSteps()
        hessian = Metric(np.array([rare_outcome(v[0])[1]]), np.eye(1), 1e-12)
        path.follow(hessian, np.array([3.0]))
        for _ in range(2):
            gradient = np.array([rare_outcome(v[0])[0] + noise * rng.normal()])
            v = path.after(v, gradient, noise) if turns else v + np.clip(-hessian.safe[0] * gradient, -3.0, 3.0)
    return abs(v[0] - root)


def test_steps_settle_where_chords_of_a_flat_start_would_turn_around_the_root():
    assert settled(0.0) < 1e-3
    assert settled(1e-4) < 0.05
    assert settled(0.0, turns=False) > 0.5, "the negative control: chords alone"


def test_limits_stay_as_wide_as_they_became_by_another_hessian():
    path, v = LimitedSteps(), np.zeros(1)
    lengths = []
    for _ in range(4):
        path.follow(Metric(np.ones(1), np.eye(1), 1e-9), np.array([0.1]))
        after = path.after(v, np.array([v[0] - 10.0]), 0.0)
        lengths.append(after[0] - v[0])
        v = after
    np.testing.assert_allclose(lengths, [0.1, 0.2, 0.4, 0.8])


def test_a_gap_is_nothing_within_its_noise_and_nearly_whole_far_beyond():
    np.testing.assert_allclose(told_apart(np.array([0.5, -1.0, 2.0, -100.0]), np.ones(4)), [0, 0, 1.5, -99.99])
    np.testing.assert_array_equal(told_apart(np.array([0.0, 3.0]), np.zeros(2)), [0.0, 3.0])


@pytest.mark.parametrize(("noise", "most"), [(0.0, 2 * 6.0), (0.01, 2.01 * 6.0), (0.6, math.inf)])
def test_counts_that_tell_rows_bound_what_cuts_lose(noise, most):
    """Two rows between 8 and 16, and a limit at 10."""
    counts, edges = np.array([90.0, 5.0, 3.0, 2.0, 0.0]), np.array([2.0, 4.0, 8.0, 16.0])
    assert most_lost(counts, edges, 10.0, noise) == pytest.approx(most)
    assert most_lost(counts, edges, 16.0, 0.0) == 0.0
    assert tells_rows(noise, edges) == (noise < 0.07)
    assert most_beyond(counts, edges, 16.0, 0.0) == 0.0
