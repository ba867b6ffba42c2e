"""Declared facts that make no sense are refused with an example of ones that do."""

import numpy as np
import pytest

from discreet.bounds import Bounds
from discreet.budget import Budget, InvalidBudget
from discreet.curator.private_data import PrivateData
from discreet.errors import DiscreetError, MissingBounds
from discreet.losses import Logistic


@pytest.mark.parametrize(
    "facts",
    [
        {"features": None}, {"features": 0.0}, {"features": -1.0}, {"features": np.inf}, {"features": np.nan},
        {"features": [(1, 0)]}, {"features": [(0, np.inf)]}, {"features": [(np.nan, 1)]}, {"features": {"a": (2, 1)}},
        {"features": [1, 2]}, {"features": [(1, 2, 3)]}, {"features": "ab"}, {"features": {"a": 1}},
        {"features": [("x", "y")]}, {"features": 1.0, "target": (1, 0)}, {"features": 1.0, "target": 5},
        {"features": 1.0, "classes": (1,)}, {"features": 1.0, "classes": (1, 1)}, {"features": 1.0, "classes": 5},
        {"features": 1.0, "classes": ([0], [1])}, {"features": 1.0, "n": 0}, {"features": 1.0, "n": 2.5},
        {"features": 1.0, "n": "x"}, {"features": 1.0, "row_norm": 0.0}, {"features": 1.0, "row_norm": np.nan},
        {"features": 1.0, "scale": "none"},
    ],
    ids=str,
)  # fmt: skip
def test_bounds_that_make_no_sense(facts):
    with pytest.raises(MissingBounds):
        Bounds(**facts)


@pytest.mark.parametrize(
    "facts",
    [{"epsilon": 0}, {"epsilon": -1}, {"epsilon": np.nan}, {"epsilon": "1"}, {"epsilon": 1, "delta": 1.0},
     {"epsilon": 1, "delta": -0.1}, {"epsilon": 1, "delta": np.nan}, {"epsilon": 1, "neighbors": "any"}],
    ids=str,
)  # fmt: skip
def test_budgets_that_make_no_sense(facts):
    with pytest.raises(InvalidBudget):
        Budget(**facts)


def test_n_is_read_only_where_it_is_public():
    data = PrivateData(np.ones((3, 1)), [0, 1, 0], Bounds(1.0, classes=(0, 1)))
    assert data.domain(Budget(1.0, 1e-6, "zero_out").neighbors, Logistic()).n == 3
    assert data.domain(Budget(1.0, 1e-6, "add_remove").neighbors, Logistic()).n is None
    wrong = PrivateData(np.ones((3, 1)), [0, 1, 0], Bounds(1.0, classes=(0, 1), n=4))
    with pytest.raises(DiscreetError, match="declared n"):
        wrong.public_n(Budget(1.0).neighbors)


def test_no_records_are_refused_only_where_n_is_public():
    empty = PrivateData(np.empty((0, 2)), [], Bounds(1.0, classes=(0, 1)))
    with pytest.raises(DiscreetError, match="0 sample"):
        empty.public_n(Budget(1.0).neighbors)
    assert empty.public_n(Budget(1.0, neighbors="add_remove").neighbors) is None
