"""No stage claims less curvature than its recoded records have: steps made for too little of it run away.

The claims are ``Typical.moment``, which gradient steps divide by, and ``Typical.squares``, which coordinate steps do.
"""

from dataclasses import replace
from functools import partial

import numpy as np
from scipy import sparse

from discreet import Bounds, Budget
from discreet.accounting.pricing import price_plan
from discreet.curator import PrivateData
from discreet.losses import Logistic
from discreet.penalties import NoPenalty
from discreet.solvers import GradientDescent, Preconditioned
from discreet.testing import seeded
from tests.covering import covering
from tests.solvers.whitened.cases import rows_through

N = 400
STAGES = {
    "whitened": partial(Preconditioned, coordinates="full"),
    "standardized": partial(Preconditioned, coordinates="diagonal"),
    "declared": partial(Preconditioned, coordinates="declared"),
}
LIMITS = {"whitened": 2.9, "standardized": 1.0, "declared": 1.0}
"""Rows are shrunk to what is claimed. Whitened directions within the noise may be 1 / 0.35, the floor, as steep."""


def bag_of_words(n=N, p=60, seed=0, topic=0.0):
    """Counts cut to 0 and 1; word j occurs with a probability that falls like 1/j, and a topic makes some likelier."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    often = np.minimum(0.9, 3.0 / np.arange(1, p + 1))
    tilt = np.exp(topic * np.outer(2 * y - 1, rng.choice([-1, 1], p)))
    return (rng.random((n, p)) < often * tilt).astype(float), y


def tables():
    rng = np.random.default_rng(1)
    normal = rng.normal(size=(N, 6))
    return {
        "uniform": rng.uniform(-1, 1, (N, 6)),
        "words": bag_of_words()[0],
        "at the bound": np.ones((N, 6)),
        "signs": rng.choice([-1.0, 1.0], (N, 6)),
        "one direction": np.clip(normal[:, :1] * 0.3 * np.ones(6), -1, 1),
        "far from the middle": 0.9 + 0.1 * np.tanh(normal),
        "one category": np.eye(6)[rng.integers(0, 6, N)],
        "narrow": 1e-3 * normal,
        "heavy tails": np.clip(0.01 / rng.uniform(size=(N, 6)), 0, 1),
    }


TABLES = tables()


def estimated(around, X, epsilon):
    """What a stage claims, and the records' second moment as its recoding leaves them."""
    loss, solver = Logistic(), STAGES[around](GradientDescent(n_steps=2))
    data = PrivateData(X, np.ones(X.shape[0]), Bounds(1.0, classes=(-1, 1)), ledger=False)
    budget = Budget(epsilon, 1e-6, "zero_out")
    plan = solver.plan(data.domain(budget.neighbors, loss), loss, NoPenalty())
    with seeded(3):
        curator = data.open(price_plan(plan, budget), loss)
        estimate = solver.estimate(curator, float(N))
    dense = X.toarray() if sparse.issparse(X) else X
    rows, _ = rows_through(replace(estimate.recoding, matrix=None), dense, 2**14)
    if estimate.recoding.matrix is not None:
        rows = rows @ estimate.recoding.matrix
    return estimate.typical, rows.T @ rows / N


@covering(("table", TABLES), ("around", STAGES), ("epsilon", [0.5, 4.0, 100.0]), ("stored", ["dense", "sparse"]))
def test_the_claimed_curvature_is_at_least_the_measured_one(table, around, epsilon, stored):
    if stored == "sparse" and around == "whitened":
        return  # refused
    X = sparse.csr_array(TABLES[table]) if stored == "sparse" else TABLES[table]
    typical, second = estimated(around, X, epsilon)
    top = float(np.linalg.eigvalsh(second)[-1])
    assert top <= LIMITS[around] * typical.moment * (1 + 1e-3)
    assert (np.diag(second) <= 2.0 * typical.squares * LIMITS[around]).all()  # a coordinate's step bears twice its M_j
