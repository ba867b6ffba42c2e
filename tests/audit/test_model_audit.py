"""``audit.model``: anything that can be called, its bound on honest mechanisms, and on broken ones."""

import math

import numpy as np
import pytest

from discreet import audit
from discreet.accounting.events import Gaussian
from tests.audit.laws import most_exceptions, mu_of

ROWS = np.zeros((4, 1)), np.zeros(4)
OTHER = np.array([[1.0], [0], [0], [0]]), np.zeros(4)
EPSILON, DELTA = 1.0, 1e-5
MU = mu_of(EPSILON, DELTA)


@pytest.fixture
def rng():
    return np.random.default_rng(11)


def mean(rng, kind, scale, width=1):
    """The sum of a column in [0, 1], ``width`` times, with noise."""
    draw = {"normal": rng.normal, "laplace": rng.laplace}[kind]
    return lambda X, y: np.full(width, X.sum() / math.sqrt(width)) + draw(scale=scale, size=width)


def response(rng, epsilon):
    rate = 1 / (1 + math.exp(-epsilon))
    return lambda X, y: float((X.sum() > 0) == (rng.random() < rate))


HONEST = {
    "gaussian": (lambda rng: mean(rng, "normal", 1 / MU), DELTA, (Gaussian(1 / MU),)),
    "gaussian, no events": (lambda rng: mean(rng, "normal", 1 / MU), DELTA, None),
    "laplace": (lambda rng: mean(rng, "laplace", 1.0), 0.0, None),
    "randomized response": (lambda rng: response(rng, EPSILON), 0.0, None),
    "constant": (lambda rng: lambda X, y: 3.0, 0.0, None),
    "wide": (lambda rng: mean(rng, "normal", 1 / MU, 200), DELTA, (Gaussian(1 / MU),)),
}


@pytest.mark.few(2)
@pytest.mark.statistical
@pytest.mark.parametrize("name", HONEST)
def test_honest_functions_are_refuted_no_more_often_than_the_confidence_says(name, rng):
    make, delta, events = HONEST[name]
    repetitions = 20 if name == "wide" else 40
    fit, settings = make(rng), {"runs": 400, "confidence": 0.9, "events": events}
    found = [audit.model(fit, ROWS, OTHER, epsilon=EPSILON, delta=delta, **settings) for _ in range(repetitions)]
    assert sum(one.refuted for one in found) <= most_exceptions(repetitions, 0.1)
    assert {one.runs for one in found} == {200}


@pytest.mark.parametrize(
    ("fit", "delta", "events"),
    [
        (lambda rng: mean(rng, "normal", 0.5 / MU), DELTA, (Gaussian(1 / MU),)),
        (lambda rng: mean(rng, "normal", 0.2 / MU), DELTA, None),
        (lambda rng: mean(rng, "laplace", 0.2), 0.0, None),
        (lambda rng: response(rng, 3.0), 0.0, None),
        (lambda rng: lambda X, y: X.sum(), 0.0, None),  # no noise at all
        (lambda rng: lambda X, y: np.append(rng.normal(size=5), 1e-12 * X.sum()), 0.0, None),  # one cell without
        (lambda rng: lambda X, y: (1 + 9 * X.sum()) * rng.normal(), DELTA, None),  # another spread, the same mean
    ],
)
def test_broken_functions_are_refuted(fit, delta, events, rng):
    found = audit.model(fit(rng), ROWS, OTHER, epsilon=EPSILON, delta=delta, events=events, runs=4000, confidence=0.999)
    assert found.refuted
    assert found.verdict == "REFUTED"


def test_a_shape_that_tells(rng):
    """A model with a row of coefficients for each class that it saw."""
    fit = lambda X, y: rng.normal(size=1 + int(X.sum()))  # noqa: E731
    assert audit.model(fit, ROWS, OTHER, epsilon=EPSILON, runs=400).refuted


def test_an_exception_that_tells(rng):
    def fit(X, y):
        if X.sum():
            raise ValueError("this solver needs samples of at least 2 classes")
        return rng.normal()

    assert audit.model(fit, ROWS, OTHER, epsilon=EPSILON, runs=400).refuted
