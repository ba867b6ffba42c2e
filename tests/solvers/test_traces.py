"""How noise travels through steps: the recursion, the bound by flatness, the averages, the model of the margins."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.curator.records.recoding import Recoding
from discreet.losses import Logistic
from discreet.solvers.gradient_loop import AVERAGES, average_weights, momentum_weight
from discreet.solvers.propagation import gain, taken_back
from discreet.solvers.traces import binary_margins
from tests.covering import covering


def simulated(H, noises, step, momenta, averages, shrink):
    """The recursion itself, forward, for a whole matrix of curvature."""
    previous = d = np.zeros(len(H))
    total = averages[0] * d
    for t, xi in enumerate(noises):
        point = d + momenta[t] * (d - previous)
        previous, d = d, shrink * (point - step * (H @ point) - step * xi)
        total = total + averages[t + 1] * d
    return total


def rotated(rng, eigenvalues):
    basis, _ = np.linalg.qr(rng.normal(size=(len(eigenvalues),) * 2))
    return (basis * eigenvalues) @ basis.T


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    T=st.integers(1, 40),
    momentum=st.sampled_from(["none", "heavy", "nesterov"]),
    mode=st.sampled_from(AVERAGES),
    alpha=st.sampled_from([0.0, 0.01, 0.5]),
)
def test_no_curvature_spreads_noise_more_than_flatness(seed, T, momentum, mode, alpha):
    """For any H with 0 <= eta H <= 1, in any basis, each coordinate's variance is at most that of a flat loss."""
    rng, step = np.random.default_rng(seed), 0.4
    weights = {"none": np.zeros(T), "heavy": np.full(T, rng.random())}
    weights["nesterov"] = np.array([momentum_weight("nesterov", t, step, alpha) for t in range(T)])
    momenta, averages, shrink = weights[momentum], average_weights(mode, T), 1 / (1 + step * alpha)
    values = rng.random(4) * rng.integers(0, 2, 4) / step
    basis = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    spectrum = gain(momenta, averages, step * values, shrink)
    variances = np.square(basis) @ spectrum
    assert (variances <= gain(momenta, averages, 0.0, shrink)[0] * (1 + 1e-9)).all()


def test_a_basis_mixes_the_spectrum():
    """The variances of a coordinate of the matrix recursion are averages of those of its eigenvalues."""
    rng, T, step = np.random.default_rng(1), 6, 0.5
    values, momenta, averages = np.array([0.0, 0.3, 1.9]), np.full(T, 0.6), average_weights("suffix", T)
    H = rotated(rng, values)
    columns = [simulated(H, np.eye(3 * T)[k].reshape(T, 3), step, momenta, averages, 1.0) for k in range(3 * T)]
    _, basis = np.linalg.eigh(H)
    expected = step**2 * np.square(basis) @ gain(momenta, averages, step * values)
    np.testing.assert_allclose(np.square(columns).sum(axis=0), expected, rtol=1e-10)


@covering(("intercept", [True, False]), ("outputs", [(), (3,)]))
def test_deviations_are_taken_back_as_coefficients_are(outputs, intercept):
    rng = np.random.default_rng(2)
    center = rng.normal(size=4) if intercept else np.zeros(4)
    recoding = Recoding(center, 0.5 + rng.random(4), constant=0.7, target_scale=1.3)
    shape = (4 + intercept, *outputs)
    variances = rng.random(shape)
    offset = recoding.coefficients(np.zeros(shape))
    expected = np.zeros(shape)
    for index in np.ndindex(*shape):
        unit = np.zeros(shape)
        unit[index] = np.sqrt(variances[index])
        expected += np.square(recoding.coefficients(unit) - offset)
    np.testing.assert_allclose(taken_back(recoding, variances), np.sqrt(expected), rtol=1e-12)


def test_without_a_clip_targets_follow_the_margins():
    """The factor at which steps come to rest is 1 for the logistic loss, and E f'' is then E p (1 - p)."""
    found = binary_margins(Logistic(), 0.3, 1.5, slope=1e9, directions=1e9)
    p = 1 / (1 + np.exp(-(0.3 + 1.5 * found.units)))
    np.testing.assert_allclose(found.chances[:, 0], p, atol=1e-2)
    assert found.curvature() == pytest.approx((p * (1 - p)).mean(), rel=1e-2)
    assert found.along() < found.curvature()
