"""The numbers of whitened solvers, and the steps that are exact: what public facts and released values make of them."""

import math

import numpy as np
import pytest

from discreet import Budget
from discreet.bounds import Domain
from discreet.curator.records.recoding import Recoding
from discreet.losses import Logistic
from discreet.penalties import L2
from discreet.solvers import GradientDescent, Preconditioned
from discreet.solvers.coordinates import LEAST_SCALE, cleaned, estimate_features, feature_releases, ridge_in
from discreet.solvers.propagation import affine
from tests.covering import covering
from tests.solvers.whitened.cases import bounds_of, opened, records_of

P = 4


def a_domain(n=10_000, p=P, relation="zero_out", outputs=1, **facts):
    neighbors = Budget(1.0, 1e-6, relation).neighbors
    return Domain(np.ones(p), math.sqrt(p), n, neighbors, n_outputs=outputs, **facts)


def noisy_moment(spectrum, edge, rng):
    """Return a second moment with these eigenvalues, and the same with symmetric noise of this edge."""
    p = len(spectrum)
    axes = np.linalg.qr(rng.normal(size=(p, p)))[0]
    moment, noise = (axes * spectrum) @ axes.T, rng.normal(size=(p, p)) * edge / math.sqrt(2.0 * p)
    return moment, moment + (noise + noise.T) / 2.0


@pytest.mark.parametrize("edge", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("law", ["alike", "decaying", "few are large"])
def test_a_second_moment_is_cleaned_of_its_noise(law, edge):
    """Along the eigenvectors of the noisy moment, nearer to what rows are there than the eigenvalues cut at 0."""
    p, rng = 80, np.random.default_rng(3)
    spectrum = {"alike": np.ones(p), "decaying": 8.0 / (1.0 + np.arange(p)), "few are large": np.ones(p)}[law]
    spectrum[: 3 * (law == "few are large")] = 10.0
    moment, noisy = noisy_moment(spectrum, edge, rng)
    values, vectors = np.linalg.eigh(noisy)
    truth = np.einsum("ij,ik,kj->j", vectors, moment, vectors)
    miss = np.sqrt(np.mean(np.square(cleaned(values, edge) - truth)))
    assert miss < 0.15 * edge
    assert miss < 0.5 * np.sqrt(np.mean(np.square(np.maximum(values, 0.0) - truth)))


def test_a_second_moment_without_noise_stays_as_it_is():
    values = np.array([0.0, 0.1, 0.1, 2.0])
    np.testing.assert_array_equal(cleaned(values, 0.0), values)


def test_no_scale_is_below_a_tenth_of_what_was_declared():
    """Neither a constant feature nor a rare category is blown up by more."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (500, 3)) * [1.0, 1e-3, 0.0]
    domain = records_of(X, np.ones(500))[1]
    releases = feature_releases(domain, mean=0.1, scale=0.1)
    curator = opened(X, np.ones(500), releases, Budget(math.inf), intercept=True, bounds=bounds_of(Logistic()))
    found = estimate_features(curator, 500.0)
    assert found.recoding.scale[0] == pytest.approx(X[:, 0].std(), rel=0.05)
    np.testing.assert_allclose(found.recoding.scale[1:], LEAST_SCALE)


def a_recoding(kind, intercept=True):
    rng = np.random.default_rng(1)
    columns = P + intercept
    matrix = rng.normal(size=(columns, columns)) if kind == "matrix" else None
    center = rng.uniform(-1, 1, P) if intercept else np.zeros(P)
    middle = 0.3 if intercept else 0.0
    return Recoding(center, 10.0 ** rng.uniform(-2, 1, P), 0.4, 1.0, matrix, target_center=middle)


@covering(("alpha", [1e-7, 0.1, 1e6]), ("intercept", [True, False]), ("outputs", [1, 3]))
def test_a_ridge_step_is_the_minimum(outputs, intercept, alpha):
    """(v - v0) / step + alpha Q^T (Q v + c) = 0, with a target center in c, for any strength."""
    recoding, domain = a_recoding("matrix", intercept), a_domain(p=P + intercept, outputs=outputs, intercept=intercept)
    linear, offset = affine(recoding, domain)
    start = np.random.default_rng(2).normal(size=domain.shape)
    v = ridge_in(L2(alpha), recoding, domain).prox(start, 0.7)
    w = (linear @ v).T + offset
    pull = 0.7 * alpha * (linear.T @ w.T)
    size = 0.7 * alpha * np.linalg.norm(linear) ** 2 * np.abs(v).max()  # what cancels in the pull
    np.testing.assert_allclose(v - start + pull, 0.0, atol=1e-9 * max(1.0, size))
    assert np.linalg.norm(w) <= np.linalg.norm((linear @ start).T + offset) * (1 + 1e-12)


@pytest.mark.parametrize("outputs", [1, 3])
def test_without_a_matrix_slopes_are_penalized_one_by_one(outputs):
    """The intercept at the center: what ``coefficients`` makes of v but for the center."""
    recoding, domain = a_recoding("none"), a_domain(p=P + 1, outputs=outputs)
    units = np.append(1 / recoding.scale, recoding.constant)
    start = np.random.default_rng(2).normal(size=domain.shape)
    v = Preconditioned(GradientDescent(), "diagonal")._penalty(L2(0.3), recoding, domain).prox(start, 0.7)
    np.testing.assert_allclose((v - start).T + 0.7 * 0.3 * units**2 * v.T, 0.0, atol=1e-12)
