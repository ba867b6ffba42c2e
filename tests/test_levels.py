"""The sample of a grid shows every value, and both levels together are all tests."""

from itertools import product

import pytest

from tests.levels import covering

SUITE = """
import pytest

@pytest.mark.parametrize("a", ["x", "y", "z"])
@pytest.mark.parametrize(("b", "c"), [(0, 1), (0, 2)])
def test_grid(a, b, c): pass

@pytest.mark.whole
@pytest.mark.parametrize("a", ["x", "y"])
@pytest.mark.parametrize("b", [0, 1])
def test_whole(a, b): pass

@pytest.mark.parametrize("a", range(5))
def test_list(a): pass

@pytest.mark.few(2)
@pytest.mark.parametrize("a", range(5))
def test_few(a): pass

@pytest.mark.parametrize("a", [0, pytest.param(1, marks=pytest.mark.thorough)])
def test_one_case(a): pass

@pytest.mark.thorough
def test_thorough(): pass

def test_alone(): pass
"""


@pytest.mark.parametrize("sizes", [(3,), (2, 3), (4, 2, 5)])
def test_a_sample_has_every_value_and_no_more_cases_than_the_longest_list(sizes):
    cases = [frozenset(enumerate(case)) for case in product(*map(range, sizes))]
    kept = covering(cases)
    assert frozenset().union(*(cases[at] for at in kept)) == frozenset().union(*cases)
    assert len(kept) == max(sizes)


@pytest.fixture
def suite(pytester):
    pytester.makeconftest("from tests.levels import pytest_collection_modifyitems")
    pytester.makeini("[pytest]\nmarkers =\n    thorough\n    whole\n    few")
    pytester.makepyfile(SUITE)

    def selected(*options):
        _, calls = pytester.inline_genitems("-p", "no:xdist", *options)
        (call,) = calls.getcalls("pytest_collection_modifyitems")
        return [item.name for item in call.items]

    return selected


def test_both_levels_are_all_tests(suite):
    quick, rest = suite("-m", "not thorough"), suite("-m", "thorough")
    assert sorted(quick + rest) == sorted(suite())
    assert not set(quick) & set(rest)


def test_what_the_quick_level_has(suite):
    quick = suite("-m", "not thorough")
    assert sorted(quick) == sorted(
        [
            *(f"test_grid[{b}-{c}-{a}]" for b, c, a in ((0, 1, "x"), (0, 2, "y"), (0, 1, "z"))),
            *(f"test_whole[{b}-{a}]" for b, a in product((0, 1), "xy")),
            *(f"test_list[{a}]" for a in (0, 1, 3)),
            "test_few[0]",
            "test_few[2]",
            "test_one_case[0]",
            "test_alone",
        ]
    )
