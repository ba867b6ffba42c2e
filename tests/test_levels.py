"""Both levels together are all tests."""

import pytest

SUITE = """
import pytest

@pytest.mark.parametrize("a", range(5))
def test_list(a): pass

@pytest.mark.few(2)
@pytest.mark.parametrize("a", range(5))
def test_few(a): pass

@pytest.mark.whole
@pytest.mark.parametrize("a", range(5))
def test_whole(a): pass

@pytest.mark.parametrize("a", [0, pytest.param(1, marks=pytest.mark.thorough)])
def test_one_case(a): pass

@pytest.mark.thorough
def test_thorough(): pass

def test_alone(): pass
"""


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
    lists = {"test_list": (0, 1, 3), "test_few": (0, 2), "test_whole": range(5), "test_one_case": (0,)}
    assert sorted(quick) == sorted([*(f"{name}[{a}]" for name, kept in lists.items() for a in kept), "test_alone"])
