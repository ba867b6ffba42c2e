"""The posterior samplers against numerically integrated densities, in one and two dimensions.

A sample becomes uniform numbers through the density's own distribution functions (conditional ones in two
dimensions); shape, place and scale of those are tested, and the same sample, stretched, must fail: by 5 %
where the sample is large, by 20 % where a variant has a small one.
"""

import math

import numpy as np
import pytest
from scipy import special, stats

from discreet.curator.noise import Draws
from discreet.curator.queries.minimizers import (
    acceptance_bound,
    factor_of,
    gaussian_in_ball,
    langevin_chain,
    log_concave_on_interval,
    strongly_log_concave,
)
from tests.covering import covering
from tests.entropy import Buffered

SIGNIFICANCE = 1e-6
LARGE = (8000, 1.05)  # draws, and the stretch that they must tell (in the plane each draw tells twice)
LARGE_PLANE = (5000, 1.05)
SMALL = (1000, 1.25)


def draws(seed=0):
    return Draws(Buffered(seed))


def is_uniform(*columns):
    """Independent uniform columns: shape, place and scale (of the normal scores); pairs in an 8 x 8 table."""
    columns = np.clip(columns, 1e-15, 1 - 1e-15)
    scores = special.ndtri(columns).reshape(-1)
    squares = np.sum(scores**2)
    values = [stats.kstest(column, "uniform").pvalue for column in columns]
    values.append(2 * stats.norm.sf(abs(scores.sum()) / math.sqrt(scores.size)))
    values.append(2 * min(stats.chi2.sf(squares, scores.size), stats.chi2.cdf(squares, scores.size)))
    if len(columns) == 2:
        table = np.histogram2d(*columns, bins=8, range=[[0, 1], [0, 1]])[0]
        values.append(stats.chisquare(table.reshape(-1)).pvalue)
    return min(values) > SIGNIFICANCE


def cumulative(weights):
    """Distribution functions along the last axis, from the masses of its cells."""
    total = np.cumsum(weights, axis=-1)
    return np.concatenate([np.zeros_like(total[..., :1]), total], axis=-1) / total[..., -1:]


def line_law(energy, low, high, cells=100_000):
    """The test of a sample against exp(-energy) on an interval."""
    edges = np.linspace(low, high, cells + 1)
    levels = energy((edges[:-1] + edges[1:]) / 2)
    distribution = cumulative(np.exp(levels.min() - levels))
    return lambda sample: is_uniform(np.interp(sample, edges, distribution))


def plane_law(energy, radius, end=6.0, cells=400):
    """The same in the plane or a disk, by Rosenblatt's transform: one coordinate, then the other given the first."""
    end = min(end, radius)

    def chord(first):
        return np.sqrt(np.maximum(end**2 - first**2, 0)) if radius < math.inf else np.full_like(first, end)

    edges = np.linspace(-1, 1, cells + 1)
    middle = (edges[:-1] + edges[1:]) / 2
    grid = np.stack(np.broadcast_arrays(end * middle[:, None], chord(end * middle)[:, None] * middle), axis=-1)
    levels = energy(grid)
    mass = np.exp(levels.min() - levels)
    marginal, conditional = cumulative(mass.sum(axis=1) * chord(end * middle)), cumulative(mass)

    def fits(sample):
        scaled = np.stack([sample[:, 0] / end, sample[:, 1] / np.maximum(chord(sample[:, 0]), 1e-300)], axis=1)
        place = np.clip((scaled + 1) / 2 * cells, 0, cells - 1e-9)
        row, cell = place.astype(int).T
        low, high = conditional[row, cell], conditional[row, cell + 1]
        return is_uniform(np.interp(scaled[:, 0], edges, marginal), low + (place[:, 1] - cell) * (high - low))

    return fits


def stretched(sample, factor):
    middle = np.median(sample, axis=0)
    return middle + factor * (sample - middle)


# ---------------------------------------------------------------------------------------- one dimension


def softplus(x):
    return np.logaddexp(0, x)


def logistic(w):
    return 4 * softplus(-w) + 2 * softplus(0.7 * w)


def logistic_slope(w):
    return -4 / (1 + math.exp(w)) + 1.4 / (1 + math.exp(-0.7 * w))


# energy, slope, interval, and the interval that carries the mass
LINES = {
    "logistic": (logistic, logistic_slope, (-4, 6), (-4, 6)),
    "absolute value": (lambda w: 3 * np.abs(w - 0.2), lambda w: 3 * np.sign(w - 0.2), (-3, 3), (-3, 3)),
    "peaked": (lambda w: 1e6 * (w - 0.3) ** 2, lambda w: 2e6 * (w - 0.3), (-1, 1), (0.29, 0.31)),
    "a kink, peaked": (lambda w: 1e6 * np.abs(w), lambda w: 1e6 * np.sign(w), (-1, 2), (-1e-4, 1e-4)),
    "at an end": (lambda w: 1e5 * w + 3e11 * w**2, lambda w: 1e5 + 6e11 * w, (0, 1), (0, 2e-5)),
    "skewed": (lambda w: 40 * softplus(3 * w) - w, lambda w: 120 * special.expit(3 * w) - 1, (-9, 1), (-9, 1)),
}


@pytest.mark.few(2)
@pytest.mark.statistical
@pytest.mark.parametrize("name", LINES)
def test_line(name):
    energy, slope, (low, high), mass = LINES[name]
    n, factor = LARGE if name == "logistic" else SMALL
    source = draws(1)
    sample = np.array([log_concave_on_interval(energy, slope, low, high, source) for _ in range(n)])
    assert sample.min() >= low
    assert sample.max() <= high
    fits = line_law(energy, *mass)
    assert fits(sample)
    assert not fits(factor * sample if name == "at an end" else stretched(sample, factor))


# --------------------------------------------------------------------------------------- two dimensions

ROWS = np.array([[1.0, 0.3], [-0.7, 0.9], [0.4, -1.0], [0.9, 0.5], [-0.2, 0.6]])
SIGNS = np.array([1, 1, -1, 1, 1])
MODULUS = 1.5


def posterior(w):
    """Logistic losses and a quadratic penalty: the regularized exponential mechanism's energy."""
    return 2 * softplus(-(w @ ROWS.T) * SIGNS).sum(axis=-1) + MODULUS / 2 * np.sum(w * w, axis=-1)


def posterior_gradient(w):
    return -2 * (SIGNS * special.expit(-SIGNS * (ROWS @ w))) @ ROWS + MODULUS * w


def rough(w):
    """Not smooth, and tilted."""
    return np.abs(w[..., 0] - 0.3 * w[..., 1]) + 0.8 * w[..., 1] + MODULUS / 2 * np.sum(w * w, axis=-1)


def rough_gradient(w):
    return np.sign(w[0] - 0.3 * w[1]) * np.array([1, -0.3]) + np.array([0, 0.8]) + MODULUS * w


CENTER = np.array([0.55, 0.75])  # near the posterior's minimum
PLANES = {
    "logistic": (posterior, posterior_gradient, CENTER, MODULUS, math.inf),
    "center away from the minimum": (posterior, posterior_gradient, np.array([-0.2, 0.3]), MODULUS, math.inf),
    "modest modulus": (posterior, posterior_gradient, CENTER, MODULUS / 2, math.inf),
    "cut by the ball": (posterior, posterior_gradient, CENTER, MODULUS, 1.0),
    "minimum outside the ball": (posterior, posterior_gradient, np.array([0.3, 0.4]), MODULUS, 0.5),
    "not strongly convex": (posterior, posterior_gradient, CENTER, 0.0, 0.9),
    "rough": (rough, rough_gradient, np.array([-0.1, -0.4]), MODULUS, math.inf),
}


@pytest.mark.few(2)
@pytest.mark.statistical
@pytest.mark.parametrize("name", PLANES)
def test_plane(name):
    energy, gradient, center, modulus, radius = PLANES[name]
    n, factor = LARGE_PLANE if name == "cut by the ball" else SMALL
    source = draws(4)
    sample = np.array([strongly_log_concave(energy, gradient, center, modulus, radius, source) for _ in range(n)])
    assert np.linalg.norm(sample, axis=1).max() <= radius
    fits = plane_law(energy, radius)
    assert fits(sample)
    assert not fits(stretched(sample, factor))


GAUSSIANS = {  # mean, precision, radius
    "everywhere": ([0.5, -0.3], [[2.0, 0.6], [0.6, 1.0]], math.inf),
    "a generous ball": ([0.5, -0.3], [[2.0, 0.6], [0.6, 1.0]], 1.5),
    "a mean far outside": ([6.0, 2.0], [[2.0, 0.6], [0.6, 1.0]], 1.0),
    "nearly uniform": ([0.5, -0.3], [[0.2, 0.06], [0.06, 0.1]], 0.5),
}


@pytest.mark.statistical
@pytest.mark.parametrize("name", GAUSSIANS)
def test_gaussian_in_ball(name):
    mean, precision, radius = (np.array(value) for value in GAUSSIANS[name])
    n, factor = LARGE_PLANE if name == "a generous ball" else SMALL
    cholesky, source = np.linalg.cholesky(precision), draws(5)
    sample = np.array([gaussian_in_ball(mean, cholesky, float(radius), source) for _ in range(n)])

    def energy(w):
        return np.einsum("...i,ij,...j->...", w - mean, precision, w - mean) / 2

    assert np.linalg.norm(sample, axis=1).max() <= radius
    fits = plane_law(energy, float(radius))
    assert fits(sample)
    assert not fits(stretched(sample, factor))


# ---------------------------------------------------------------------------------------------- the chain


@pytest.mark.few(1)
@pytest.mark.statistical
@pytest.mark.parametrize("radius", [math.inf, 0.9])
def test_chain_on_a_logistic_posterior(radius):
    source = draws(8)
    curvature = 2 * ROWS.T @ np.diag(special.expit(ROWS @ CENTER) * special.expit(-ROWS @ CENTER)) @ ROWS
    precision = curvature + MODULUS * np.eye(2)

    def look(w):
        return posterior(w), posterior_gradient(w)

    sample = np.array([langevin_chain(look, CENTER, precision, radius, source, 10) for _ in range(600)])
    assert np.linalg.norm(sample, axis=1).max() <= radius
    fits = plane_law(posterior, radius)
    assert fits(sample)
    assert not fits(sample * 1.3)


# --------------------------------------------------------------------------------------- limits and bounds


def test_no_number_of_tries_ends_a_draw():
    """Envelopes that are kept once in ten thousand tries or so: a draw takes as long as it takes."""
    looks = 0

    def energy(w):
        nonlocal looks
        looks += 1
        return 50.0 * (w @ w)

    sample = [strongly_log_concave(energy, lambda w: 100.0 * w, np.zeros(4), 1.0, 5.0, draws(s)) for s in range(3)]
    assert looks > 3000
    assert np.linalg.norm(sample, axis=1).max() < 1.0
    assert np.linalg.norm(gaussian_in_ball(np.full(3, 1e9), np.eye(3), 1.0, draws())) <= 1.0


def test_rounding_that_lifts_an_envelope_does_not_end_a_draw():
    """An energy below its envelope, as only rounding (or a false modulus) makes it: the point is kept."""
    assert np.isfinite(
        strongly_log_concave(lambda w: w @ w / 2, lambda w: w, np.zeros(2), 2.0, math.inf, draws())
    ).all()
    assert -1 <= log_concave_on_interval(lambda w: -5 * w * w, lambda w: -10 * w, -1.0, 1.0, draws()) <= 1
    with pytest.raises(ValueError, match="positive modulus, or a ball"):
        strongly_log_concave(lambda w: 0.0, lambda w: w, np.zeros(2), 0.0, math.inf, draws())


@pytest.mark.parametrize("condition", [1.0, 1e8, 1e17, 1e30])
def test_a_precision_that_rounding_makes_singular_has_a_factor(condition):
    rng = np.random.default_rng(1)
    axes = np.linalg.qr(rng.normal(size=(6, 6)))[0]
    precision = (axes * np.array([condition, 1, 1, 1, 1, 1])) @ axes.T
    factor = factor_of((precision + precision.T) / 2)
    assert np.allclose(factor, np.tril(factor))
    assert (np.diag(factor) > 0).all()
    assert np.allclose(factor @ factor.T, precision, atol=1e-12 * condition)


@pytest.mark.few(1)
@covering(("away", [0.0, 3.0]), (("p", "radius"), [(1, math.inf), (4, math.inf), (4, 1.2), (8, 2.0)]))
def test_acceptance_bound(p, radius, away):
    """Attained by a quadratic of the greatest smoothness around the minimizer, on a ball around the nearest point."""
    modulus, rounds, minimizer = 2.0, 1000, np.full(p, away / math.sqrt(p))
    center = minimizer if away <= radius else minimizer * (radius / away)

    def rate(smoothness):
        looks, source, curvature = 0, draws(10), modulus + smoothness

        def energy(w):
            nonlocal looks
            looks += 1
            return curvature / 2 * ((w - minimizer) @ (w - minimizer))

        def slope(w):
            return curvature * (w - minimizer)

        for _ in range(rounds):
            strongly_log_concave(energy, slope, center, modulus, radius, source)
        return rounds / (looks - rounds)

    bound = acceptance_bound(modulus, 3.0, p)
    # without a further curvature all that is lost is lost by the envelope of the tilted Gaussian on the ball
    assert rate(3.0) > 0.85 * bound * min(1.0, rate(0.0))
    if radius == math.inf:
        assert bound == pytest.approx((modulus / (modulus + 3.0)) ** (p / 2))
        assert rate(3.0) < 1.15 * bound
