import dataclasses
import math

import numpy as np
import pytest

from discreet import Bounds
from discreet.errors import MissingBounds


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
