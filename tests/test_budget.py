import math

import pytest

from discreet import Budget, Neighbors


def test_defaults():
    budget = Budget(1.0)
    assert (budget.epsilon, budget.delta, budget.neighbors) == (1.0, 0.0, Neighbors.REPLACE_ONE)
    assert budget.is_pure
    assert budget.is_private


def test_no_privacy():
    budget = Budget(math.inf, 1e-6)
    assert not budget.is_private
    assert not budget.is_pure


@pytest.mark.parametrize(
    ("relation", "public", "factor"), [("replace_one", True, 2), ("zero_out", True, 1), ("add_remove", False, 1)]
)
def test_what_a_relation_means(relation, public, factor):
    assert Neighbors(relation).n_is_public is public
    assert Neighbors(relation).sum_factor == factor
    assert str(Neighbors(relation)) == relation
