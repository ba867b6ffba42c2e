import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet import Bounds, Neighbors
from discreet.bounds import Domain
from discreet.errors import MissingBounds


def test_a_list_is_one_range_a_column():
    low, high = Bounds([(0, 120), (-1.5, 1)]).ranges(2)
    np.testing.assert_array_equal(low, [0, -1.5])
    np.testing.assert_array_equal(high, [120, 1])
    array = Bounds(np.array([[0, 120], [-1.5, 1]]))
    assert array == Bounds([(0, 120), (-1.5, 1)])


def test_a_dictionary_follows_the_names_of_the_columns():
    bounds = Bounds({"age": (0, 120), "height": (40, 250), "unused": (0, 1)})
    low, high = bounds.ranges(2, ["height", "age"])
    np.testing.assert_array_equal(low, [40, 0])
    np.testing.assert_array_equal(high, [250, 120])


def test_columns_that_are_not_declared_are_named():
    with pytest.raises(MissingBounds, match="weight, income"):
        Bounds({"age": (0, 120)}).ranges(3, ["age", "weight", "income"])
    with pytest.raises(MissingBounds, match="data frame"):
        Bounds({"age": (0, 120)}).ranges(1)
    with pytest.raises(MissingBounds, match="2 feature ranges are declared for 3 columns"):
        Bounds([(0, 1), (0, 1)]).ranges(3)


@pytest.mark.parametrize("features", ["wide", [1.0, 2.0], [(0, 1, 2)], {"a": 3}], ids=str)
def test_ranges_of_another_form_name_the_remedy(features):
    """Whatever is wrong with a declaration, the error is discreet's and shows how to write it."""
    with pytest.raises(MissingBounds, match=r"Bounds|range"):
        Bounds(features)


def test_a_class_that_is_not_a_number_is_no_label():
    """NaN equals no label, so a class NaN could never be met."""
    with pytest.raises(MissingBounds):
        Bounds(1.0, classes=(0.0, math.nan))


def test_facts_are_frozen_and_can_be_replaced_in_a_copy():
    bounds = Bounds(1.0)
    with pytest.raises(dataclasses.FrozenInstanceError):
        bounds.features = 2.0
    other = bounds.with_facts(target=(0, 1), n=10)
    assert (other.target, other.n, bounds.target, bounds.n) == ((0.0, 1.0), 10, None, None)
    with pytest.raises(MissingBounds):
        bounds.with_facts(n=-1)


@given(st.lists(st.tuples(st.floats(-1e9, 1e9), st.floats(0, 1e9)), min_size=1, max_size=6))
def test_ranges_come_back_in_order(pairs):
    declared = [(low, low + width) for low, width in pairs]
    low, high = Bounds(declared).ranges(len(declared))
    np.testing.assert_array_equal(low, [pair[0] for pair in declared])
    np.testing.assert_array_equal(high, [pair[1] for pair in declared])
    assert (low <= high).all()


def test_domain_shapes():
    one = Domain(np.ones(4), 2.0, 10, Neighbors.REPLACE_ONE)
    assert (one.n_features, one.shape) == (4, (4,))
    several = Domain(np.ones(4), 2.0, 10, Neighbors.REPLACE_ONE, n_outputs=3)
    assert several.shape == (4, 3)
