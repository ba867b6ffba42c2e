import dataclasses
import math
import pickle

import numpy as np
import pytest

from discreet import Budget, DiscreetError, Neighbors
from discreet.budget import InvalidBudget


def test_defaults():
    budget = Budget(1.0)
    assert (budget.epsilon, budget.delta, budget.neighbors) == (1.0, 0.0, Neighbors.REPLACE_ONE)
    assert budget.is_pure
    assert budget.is_private


def test_no_privacy():
    budget = Budget(math.inf, 1e-6)
    assert not budget.is_private
    assert not budget.is_pure


@pytest.mark.parametrize("epsilon", [0, -1, math.nan, "1", None, -math.inf])
def test_epsilons_that_are_none(epsilon):
    with pytest.raises(InvalidBudget, match=r"epsilon must be a positive number .* Budget\(epsilon=1.0\)"):
        Budget(epsilon)


@pytest.mark.parametrize("delta", [-1e-9, 1, 2.0, math.nan, "0", None, math.inf])
def test_deltas_that_are_none(delta):
    with pytest.raises(InvalidBudget, match="delta must lie in"):
        Budget(1.0, delta)


@pytest.mark.parametrize("relation", ["swap", "", None, 3])
def test_relations_that_are_none(relation):
    with pytest.raises(InvalidBudget, match="'replace_one', 'zero_out', 'add_remove'"):
        Budget(1.0, neighbors=relation)


@pytest.mark.parametrize("number", [np.float64(0.5), np.float32(0.5), 0.5])
def test_numbers_of_every_kind(number):
    assert Budget(number).epsilon == 0.5
    assert type(Budget(number).epsilon) is float


def test_an_integer_of_numpy_is_a_number():
    assert Budget(np.int64(2)).epsilon == 2.0


def test_relations_by_name():
    assert Budget(1.0, neighbors="zero_out").neighbors is Neighbors.ZERO_OUT


@pytest.mark.parametrize(
    ("relation", "public", "factor"), [("replace_one", True, 2), ("zero_out", True, 1), ("add_remove", False, 1)]
)
def test_what_a_relation_means(relation, public, factor):
    assert Neighbors(relation).n_is_public is public
    assert Neighbors(relation).sum_factor == factor
    assert str(Neighbors(relation)) == relation


def test_budgets_are_values():
    assert Budget(1, 1e-6, "zero_out") == Budget(1.0, 1e-6, Neighbors.ZERO_OUT)
    assert len({Budget(1), Budget(1.0)}) == 1
    assert pickle.loads(pickle.dumps(Budget(1.0, 1e-6))) == Budget(1.0, 1e-6)
    with pytest.raises(dataclasses.FrozenInstanceError):
        Budget(1.0).epsilon = 2.0


def test_invalid_budget_is_a_value_error_of_discreet():
    assert issubclass(InvalidBudget, ValueError)
    assert issubclass(InvalidBudget, DiscreetError)
