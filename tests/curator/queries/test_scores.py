"""The noisy score: what it counts, on the lattice, and what one record can do to it."""

import math

import numpy as np
import pytest
from scipy import sparse

from discreet import Budget
from discreet.accounting import Plan, Release
from discreet.accounting.pricing import price_plan
from discreet.curator import PrivateData
from discreet.losses import Huber, Logistic, Poisson, SmoothedHinge, Softmax, Squared
from tests.covering import covering
from tests.solvers.perturbation.cases import bounds_of, table

LOSSES = {
    "logistic": Logistic(),
    "svc": SmoothedHinge(0.5),
    "softmax": Softmax(3),
    "ridge": Squared(),
    "huber": Huber(0.1),
    "poisson": Poisson(1.5),
}
PLAN = Plan((Release("noisy_score", 1),))


def weights(name):
    shape = (4, 3) if name == "softmax" else (4,)
    return np.random.default_rng(3).normal(0, 0.6, shape)


def opened(name, data, budget, declared=None):
    private = PrivateData(data.X, data.y, bounds_of(name, declared), groups=data.groups)
    return private.open(price_plan(PLAN, budget), LOSSES[name])


def by_hand(name, data, error):
    """The sum of 1/2 - bad in plain numpy, a person's rows averaged."""
    low = np.array([-1.0, 0.0, -5.0])
    high = np.array([1.0, 10.0, 3.0])
    X = data.X.toarray() if sparse.issparse(data.X) else data.X
    rows = np.clip(X, low, high) / np.maximum(-low, high)
    margins = np.column_stack([np.rint(rows * 2**14) / 2**14, np.ones(len(rows))]) @ weights(name)
    y = data.y
    if name == "softmax":
        bad = margins.argmax(axis=1) != y
    elif name in ("logistic", "svc"):
        bad = (margins > 0) != (y > 0)
    else:
        predicted = np.exp(np.minimum(margins, 1.5)) if name == "poisson" else margins
        bad = np.minimum(((predicted - (y if name == "poisson" else y / 4)) / error) ** 2, 1)
    share = 0.5 - bad.astype(float)
    if data.groups is None:
        return share.sum()
    return sum(share[data.groups == person].mean() for person in np.unique(data.groups))


@covering(("name", LOSSES), ("engine", ["dense", "sparse"]), ("groups", [False, True]))
def test_it_counts_what_it_says(name, engine, groups):
    data = table(name, engine, groups, n=30)
    found = opened(name, data, Budget(math.inf, 1e-5, "zero_out")).noisy_score(weights(name), error=0.8)
    assert found == pytest.approx(by_hand(name, data, 0.8), abs=1e-4)


def test_a_null_record_counts_nothing():
    data = table("logistic", n=30)
    without = data.X.copy()
    without[4] = np.nan
    scored = [
        opened("logistic", data._replace(X=X), Budget(math.inf, 1e-5, "zero_out")).noisy_score(weights("logistic"))
        for X in (data.X, without)
    ]
    assert abs(scored[0] - scored[1]) == pytest.approx(0.5, abs=1e-9)
