"""What the tests of coordinate methods share: opened curators, small tables, a window on exact sums, a noise stream."""

import math
from contextlib import contextmanager
from unittest import mock

import numpy as np
from scipy import sparse

from discreet import Bounds, Budget
from discreet.accounting import Plan, Release
from discreet.accounting.pricing import price_plan
from discreet.curator import PrivateData
from discreet.losses import Huber, Logistic, Poisson, SmoothedHinge, Squared

LOSSES = {
    "squared": Squared(),
    "logistic": Logistic(),
    "huber": Huber(0.3),
    "hinge": SmoothedHinge(0.5),
    "poisson": Poisson(2.0),
}
RELATIONS = ("replace_one", "zero_out", "add_remove")


def bounds_for(loss, p, **facts):
    """Every feature within +-1, targets within +-1 (counts up to 3, classes 0 and 1)."""
    features = [(-1.0, 1.0)] * p
    if loss.task == "classification":
        return Bounds(features, classes=(0, 1), **facts)
    return Bounds(features, target=(0.0, 3.0) if isinstance(loss, Poisson) else (-1.0, 1.0), **facts)


def drawn(loss, n, p, seed=0):
    """Random records, a third of their entries zero, each column with a size of its own."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, p)) * (rng.random((n, p)) > 0.3) * 2.0 ** -(np.arange(p) % 4)
    score = X @ rng.normal(size=p) + 0.3 * rng.normal(size=n)
    if loss.task == "classification":
        return X, (score > 0).astype(float)
    return X, np.clip(np.exp(score), 0, 3) if isinstance(loss, Poisson) else np.clip(score, -1, 1)


def opened(X, y, loss, *releases, budget=None, groups=None, intercept=False, bounds=None):
    """A curator for these releases."""
    budget = Budget(math.inf, 1e-6, "zero_out") if budget is None else budget
    bounds = bounds_for(loss, X.shape[1]) if bounds is None else bounds
    data = PrivateData(X, y, bounds, groups=groups, fit_intercept=intercept)
    return data.open(price_plan(Plan(releases), budget), loss)


def gradients(count=10_000, **settings):
    return Release("noisy_coordinate_gradient", count, **settings)


@contextmanager
def one_stream(seed=0):
    """Bulk and single draws of noise come from one stream, in the same order."""
    rng = np.random.default_rng(seed)

    def draw(count, m, entropy):
        return np.array([int(rng.normal() * 2.0**m) for _ in range(count)], dtype=np.int64)

    with (
        mock.patch("discreet.curator.session.noise.rounded_gaussian", draw),
        mock.patch("discreet.curator.session.noise.discrete_laplace", draw),
    ):
        yield


def csr(X):
    return sparse.csr_array(X)
