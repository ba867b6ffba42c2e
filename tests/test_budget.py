import pytest

from discreet import Neighbors


@pytest.mark.parametrize(
    ("relation", "public", "factor"), [("replace_one", True, 2), ("zero_out", True, 1), ("add_remove", False, 1)]
)
def test_what_a_relation_means(relation, public, factor):
    assert Neighbors(relation).n_is_public is public
    assert Neighbors(relation).sum_factor == factor
    assert str(Neighbors(relation)) == relation
