"""Effects of three classes or more: against maximum likelihood, in blocks against the first class, saved, refused."""

import math

import numpy as np
import pytest

from discreet import DPLogisticRegression
from discreet.errors import Unsupported
from discreet.testing import seeded

LABELS = ("a", "b", "c")
TRUTH = np.array([[0.8, -0.5, 0.4, -0.2], [-0.3, 0.6, 0.2, 0.3]])
"""Of b and c against a: three slopes and the intercept."""


def drawn(n=6000, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 3))
    margins = np.column_stack([np.zeros(n), X @ TRUTH[:, :3].T + TRUTH[:, 3]])
    return X, np.array(LABELS)[np.argmax(margins + rng.gumbel(size=margins.shape), axis=1)]


def model_of(epsilon=4.0, **settings):
    facts = {"bounds": 1.0, "classes": LABELS, "inference": "sandwich", "ledger": False, **settings}
    return DPLogisticRegression(epsilon, 1e-6, **facts)


def plain_fit(X, y, groups=None):
    """Newton's method in differences from the first class; the robust (cluster) sandwich, by hand."""
    rows, labels = np.column_stack([X, np.ones(len(X))]), np.searchsorted(LABELS, y)
    onto, w = np.eye(3)[labels][:, 1:], np.zeros((2, 4))
    for _ in range(30):
        margins = np.column_stack([np.zeros(len(X)), rows @ w.T])
        chances = np.exp(margins - np.logaddexp.reduce(margins, axis=1)[:, None])[:, 1:]
        scores = ((chances - onto)[:, :, None] * rows[:, None, :]).reshape(len(X), -1)
        bends = np.einsum("ik,kl->ikl", chances, np.eye(2)) - chances[:, :, None] * chances[:, None, :]
        hessian = np.einsum("ikl,ij,im->kjlm", bends, rows, rows).reshape(8, 8)
        w = w - np.linalg.solve(hessian, scores.sum(axis=0)).reshape(2, 4)
    if groups is not None:
        scores = np.add.reduceat(scores, np.flatnonzero(np.diff(groups, prepend=-1)), axis=0)
    inverse = np.linalg.inv(hessian)
    return w.ravel(), inverse @ scores.T @ scores @ inverse, inverse


@pytest.fixture(scope="module")
def fitted():
    X, y = drawn(20_000)
    with seeded(3):
        return model_of().fit(X, y)


@pytest.mark.few(1)
@pytest.mark.parametrize("cov_type", ["robust", "model"])
def test_without_noise_it_is_maximum_likelihood(cov_type):
    X, y = drawn()
    found = model_of(math.inf, cov_type=cov_type).fit(X, y).summary()
    w, robust, model = plain_fit(X, y)
    expected = robust if cov_type == "robust" else model
    se = np.sqrt(np.diag(expected))
    np.testing.assert_allclose(found.values, w, atol=0.02 * se.max())
    np.testing.assert_allclose(found.columns()["se"], se, rtol=0.02)
    np.testing.assert_allclose(found.effects.covariance, expected, atol=0.02 * np.diag(expected).max())
    assert not found.columns()["se_privacy"].any()


def test_wald_tests_of_a_feature_are_of_all_classes(fitted):
    summary = fitted.summary()
    assert summary.wald_test("x0").df == 2
    assert summary.wald_test(["b: x0", "c: x1"]).df == 2
    alone, z = summary.wald_test("b: x0"), summary.frame["z"]["b"]["x0"]
    assert alone.statistic == pytest.approx(z**2)
    block = summary.effects.covariance[np.ix_([0, 4], [0, 4])]
    gap = summary.values[[0, 4]]
    assert summary.wald_test("x0").statistic == pytest.approx(gap @ np.linalg.solve(block, gap))
    with pytest.raises(Unsupported, match="no effect called"):
        summary.wald_test("d: x0")


@pytest.mark.thorough
@pytest.mark.parametrize("relation", ["zero_out", "replace_one"])
def test_intervals_cover(relation):
    """60 fits, 8 coefficients each: .95 within four errors; the noise left out would cover less."""
    covered, narrow = [], []
    for seed in range(60):
        X, y = drawn(6000, seed)
        with seeded(seed):
            found = model_of(2.0, neighbors=relation).fit(X, y).summary().columns()
        truth = TRUTH.ravel()
        covered.append((found["low"] <= truth) & (truth <= found["high"]))
        sampling = np.sqrt(found["se"] ** 2 - found["se_privacy"] ** 2)
        narrow.append(np.abs(found["coef"] - truth) <= 1.96 * sampling)
    assert 0.90 <= np.mean(covered) <= 0.99
    assert np.mean(narrow) < np.mean(covered)
