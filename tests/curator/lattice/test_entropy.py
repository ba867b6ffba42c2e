"""Uniform integers from random words: exactly uniform, whatever the bound."""

import numpy as np
import pytest
from scipy import stats

from discreet.curator.lattice.entropy import SeededEntropy, uniform_below

SIGNIFICANCE = 1e-6


@pytest.mark.few(1)
@pytest.mark.statistical
@pytest.mark.parametrize("bound", [1, 3, 10])
def test_uniform_below(bound):
    source = SeededEntropy(6)
    seen = np.bincount([uniform_below(bound, source) for _ in range(2_000)], minlength=bound)
    assert seen.size == bound
    assert bound == 1 or stats.chisquare(seen).pvalue > SIGNIFICANCE


def test_uniform_below_refuses_the_incomplete_multiple():
    class Sequence:
        def __init__(self, *given):
            self._given = list(given)

        def words(self, count):
            return np.array([self._given.pop(0) for _ in range(count)], dtype=np.uint64)

    assert uniform_below(3, Sequence(2**64 - 1, 2**64 - 2)) == 2  # 2^64 - 1 is a multiple of three
    assert uniform_below(2**64, Sequence(2**64 - 1)) == 2**64 - 1
    bound = 2**63 + 1
    assert uniform_below(bound, Sequence(bound, 2**64 - 1, 7)) == 7


@pytest.mark.parametrize("bound", [0, -1, 2**64 + 1])
def test_uniform_below_needs_a_bound(bound):
    with pytest.raises(ValueError, match="between 1 and"):
        uniform_below(bound, SeededEntropy(7))
