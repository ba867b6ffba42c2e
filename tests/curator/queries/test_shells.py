"""Noisy counts by shells: exact counts, bounded contributions, true noise, and bugs that must be noticed."""

import numpy as np
import pytest

from discreet.curator import Edges
from tests.covering import covering
from tests.curator.queries.effect_cases import SHEAR, STRETCH, P, rows_for
from tests.replaying import window
from tests.solvers.whitened.cases import RELATIONS, budget_of, opened, ratio_squared, worst_pair

POINT = np.array([0.4, -0.2, 0.1])
EDGES = Edges(np.array([0.5, 1.0, 1.5]), np.array([0.05, 0.1, 0.2]), np.array([0.2, 0.4, 0.8]), np.full(P, 0.5))
FEW = Edges(EDGES.lengths, *(np.empty(0) for _ in range(3)))


def counted(X, y, *, edges=EDGES, reach=0.9, w=POINT, **facts):
    """Return the measurement of one query."""
    curator = opened(X, y, ["noisy_shells"], **facts)
    with window() as seen:
        curator.noisy_shells(w, edges=edges, reach=reach, slack=1.5)
    return seen[0]


def contribution(rows, *, label=1, persons=False, relation="zero_out", **facts):
    """Return what one unit adds to the counts, beside null records."""
    rows = np.atleast_2d(np.asarray(rows, dtype=float))
    blank = np.full((1, rows.shape[1]), np.nan)
    X, y = np.vstack([blank, rows, blank]), np.array([1.0, *[label] * len(rows), 1.0])
    groups = np.array([0, *[1] * len(rows), 2]) if persons else None
    found = counted(X, y, budget=budget_of(relation), groups=groups, **facts)
    return [int(value) for value in found.exact], found


def assert_neighbors_stay_within_the_bound(relation, persons=False, recoding=None, edges=EDGES):
    found = []
    for row in rows_for(persons):
        for label in (-1, 1):
            vector, measured = contribution(
                row, label=label, relation=relation, persons=persons, recoding=recoding, edges=edges
            )
            assert ratio_squared(vector, [0] * len(vector), measured) * measured.factor**2 <= 1
            found.append(vector)
    worst, _ = worst_pair(found, relation, measured)
    assert 0.9 <= worst <= 1


@pytest.mark.parametrize("edges", [EDGES, FEW], ids=["four kinds", "one kind"])
@covering(("relation", RELATIONS), ("layout", ["dense", "recoded", "persons", "stretched"]))
def test_neighbors_move_counts_up_to_the_bound_and_not_beyond(relation, layout, edges):
    recoding = {"recoded": SHEAR, "stretched": STRETCH}.get(layout)
    assert_neighbors_stay_within_the_bound(relation, layout == "persons", recoding, edges)


@pytest.mark.parametrize("relation", RELATIONS)
def test_the_factor_is_that_of_the_docstring(relation):
    factor = counted(np.ones((2, P)), np.ones(2), budget=budget_of(relation)).factor
    expected = 2.0**0.5 if relation == "replace_one" else 1.0
    assert expected <= factor <= expected * (1 + 1e-9)


@pytest.mark.parametrize("w", [1e6 * POINT, -1e12 * POINT, np.zeros(P)])
def test_no_point_breaks_the_bound(w):
    for row in (np.ones(P), -np.ones(P), np.array([1e300, -1e300, 0.5])):
        vector, found = contribution(row, w=w)
        assert sum(value > 0 for value in vector) == 4
        assert ratio_squared(vector, [0] * len(vector), found) * found.factor**2 <= 1


def test_rows_are_counted_by_the_column_in_which_they_go_farthest():
    """In units of the columns' edges; a row with nothing far out is in the first shell, and no row in two."""
    edges = FEW._replace(lengths=np.empty(0), columns=np.array([0.5, 0.5, 0.05]))
    rows = {0: [0.4, -0.4, 0.04], 1: [0.9, -0.6, 0.06], 2: [0.6, -0.9, 0.0], 3: [1.0, 1.0, -0.5]}
    for shell, row in rows.items():
        vector = contribution(np.array(row), edges=edges)[0]
        assert np.flatnonzero(vector).tolist() == [shell]
