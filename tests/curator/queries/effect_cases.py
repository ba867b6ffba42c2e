"""What tests of the sums for effects ask, for one output and for several."""

import math

import numpy as np

from discreet.curator.records.recoding import Recoding
from tests.replaying import window
from tests.solvers.whitened.cases import budget_of, opened, pool, ratio_squared, worst_pair

P = 3
QUERIES = ("noisy_weighted_gradient", "noisy_curvature", "noisy_score_covariance", "noisy_squared_slopes")
SHEAR = Recoding(np.zeros(P), np.ones(P), 1.0, math.inf, np.array([[1.0, 0.5, 0], [0, 1, 0.2], [0.3, 0, 1]]))

STRETCH = Recoding(np.zeros(P), np.ones(P), 1.0, math.inf, np.diag([400.0, 30.0, 1.0]), reach=60.0, drop_longer=True)
"""Rows of up to 400, of which those beyond 60 do not count; the others are whole, far beyond any reach."""


def words_of(query, clip=0.05, reach=0.9, slack=1.0):
    return {"clip": clip} if query == "noisy_squared_slopes" else {"clip": clip, "reach": reach, "slack": slack}


def asked(query, X, y, *, w, clip=0.05, reach=0.9, slack=1.0, **facts):
    """The measurement of one query at a point."""
    curator = opened(X, y, [query], **facts)
    with window() as seen:
        getattr(curator, query)(w, **words_of(query, clip, reach, slack))
    return seen[0]


def contribution(query, rows, *, label=1, persons=False, relation="zero_out", **facts):
    """What one unit adds to the sum, beside null records."""
    rows = np.atleast_2d(np.asarray(rows, dtype=float))
    blank = np.full((1, rows.shape[1]), np.nan)
    X, y = np.vstack([blank, rows, blank]), np.array([1.0, *[label] * len(rows), 1.0])
    groups = np.array([0, *[1] * len(rows), 2]) if persons else None
    found = asked(query, X, y, budget=budget_of(relation), groups=groups, **facts)
    return [int(value) for value in found.exact.ravel()], found


def assert_neighbors_reach_the_bound(query, relation, rows, labels, **facts):
    """The worst pair of contributions is within the sensitivity, and near it."""
    found = []
    for row in rows:
        for label in labels:
            vector, measurement = contribution(query, row, label=label, relation=relation, **facts)
            assert ratio_squared(vector, [0] * len(vector), measurement) * measurement.factor**2 <= 1
            found.append(vector)
    worst, _ = worst_pair(found, relation, measurement)
    assert 0.9 <= worst <= 1


def rows_for(persons):
    """Rows in corners and inside, for persons also several at a time."""
    rng = np.random.default_rng(3)
    rows = [*pool(P, rng, spread=9)]
    if persons:
        rows += [np.tile(rows[0], (k, 1)) for k in (2, 7, 50)] + [rng.uniform(-1, 1, (4, P)), np.vstack(rows[:2])]
    return rows
