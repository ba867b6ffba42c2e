"""Somebody else's models: a small private logistic regression in numpy, and its broken kin, through ``audit.model``."""

import numpy as np
import pytest

from discreet import audit
from discreet.accounting.events import Gaussian
from tests.audit.laws import NEVER, accuracy_of, mu_of, power

EPSILON, DELTA, STEPS, CLIP = 2.0, 1e-5, 3, 0.25
MU = mu_of(EPSILON, DELTA)
EVENTS = (Gaussian(np.sqrt(STEPS) / MU, STEPS),)


class NoisyLogisticRegression:
    """Gradient descent with clipped gradients and Gaussian noise, as in many repositories.

    Parameters
    ----------
    noise
        Its share of what the claim needs.
    classes
        None: read from the labels.
    clips
        Whether gradients are clipped; else only the rows' norms are, and those above 1 are forgotten.
    """

    def __init__(self, noise=1.0, classes=(0, 1), clips=True, generator=None):
        self.noise, self.classes, self.clips = noise, classes, clips
        self.generator = np.random.default_rng() if generator is None else generator

    def fit(self, X, y):
        classes = np.unique(y) if self.classes is None else np.array(self.classes)
        signs = np.where(y == classes[-1], 1.0, -1.0)
        scale = self.noise * 2 * CLIP * np.sqrt(STEPS) / MU
        self.coef_ = np.zeros(X.shape[1])
        for _ in range(STEPS):
            gradients = (-signs / (1 + np.exp(signs * (X @ self.coef_))))[:, None] * X
            if self.clips:
                norms = np.linalg.norm(gradients, axis=1, keepdims=True)
                gradients = gradients * np.minimum(1, CLIP / np.maximum(norms, 1e-300))
            noise = self.generator.normal(scale=scale, size=X.shape[1])
            self.coef_ = self.coef_ - 1e-3 * (gradients.sum(axis=0) + noise)
        self.intercept_ = 0.0
        return self


def canary(label, length=1.0, rows=6):
    """Two tables that differ in the last record."""
    X = np.zeros((rows, 2))
    X[:, 0] = 0.01
    X[-1] = [length, 0.0]
    y = np.tile([0, 1], rows)[:rows]
    y[-1] = 1
    other = y.copy()
    other[-1] = label
    return (X, y), (X, other)


def audited(make, data, neighbor, *, runs, confidence=0.99, events=EVENTS):
    settings = {"epsilon": EPSILON, "delta": DELTA, "events": events, "runs": runs, "confidence": confidence}
    return audit.model(lambda X, y: make().fit(X, y), data, neighbor, **settings)


@pytest.mark.statistical
@pytest.mark.parametrize("events", [EVENTS, None])
def test_the_honest_one_is_not_refuted(events):
    found = audited(NoisyLogisticRegression, *canary(0), runs=1000, confidence=1 - NEVER, events=events)
    assert not found.refuted


@pytest.mark.statistical
def test_half_the_noise_is_refuted():
    assert power(MU, accuracy_of(2 * MU) - 0.02, 2500, 0.99) > 1 - NEVER
    assert audited(lambda: NoisyLogisticRegression(noise=0.5), *canary(0), runs=2500).refuted


@pytest.mark.statistical
def test_rows_that_are_not_clipped_are_refuted():
    """A row of length 40: forty times the sensitivity, and every guess right."""
    found = audited(lambda: NoisyLogisticRegression(clips=False), *canary(0, length=40.0), runs=300)
    assert found.refuted
    assert audited(lambda: NoisyLogisticRegression(clips=False), *canary(0, 40.0), runs=300, events=None).refuted
    assert not audited(NoisyLogisticRegression, *canary(0, length=40.0), runs=300, confidence=1 - NEVER).refuted
