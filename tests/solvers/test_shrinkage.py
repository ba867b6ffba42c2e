"""Shrinking by empirical Bayes: noise goes, what stands out stays, nothing is made larger."""

import numpy as np
import pytest

from discreet.default.rows import posterior_weights


def left(q, noise=1.0):
    return q * posterior_weights(q, np.ones(len(q)), noise)


def test_mere_noise_is_taken_away():
    rng = np.random.default_rng(0)
    energies = [np.mean(left(rng.normal(size=60)) ** 2) for _ in range(40)]
    assert np.mean(energies) < 0.08


def test_few_large_entries_stay_among_noise():
    q = np.random.default_rng(0).normal(size=60)
    q[:2] += 8.0
    kept = left(q)
    np.testing.assert_allclose(kept[:2], q[:2], rtol=0.15)
    assert np.mean(kept[2:] ** 2) < 0.2


@pytest.mark.parametrize("noise", [0.0, 1e-9, 1.0, 1e6])
def test_nothing_is_turned_or_made_larger(noise):
    q, values = np.random.default_rng(1).normal(size=20), np.geomspace(1e-3, 10, 20)
    weights = posterior_weights(q, values, noise)
    assert ((weights >= 0) & (weights <= (1 + 1e-9) / values)).all()


def test_where_nothing_is_clear_nothing_moves():
    assert not posterior_weights(np.ones(5), np.ones(5), 1.0, np.zeros(5, dtype=bool)).any()
