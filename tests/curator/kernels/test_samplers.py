"""Poisson samples from given words are those of a plain search among 128-bit thresholds, also where words tie."""

from bisect import bisect_right

import numpy as np
import pytest

from discreet.curator.kernels import samplers
from discreet.curator.noise import _gap_search, _gap_table
from tests.covering import covering

ONES = 2**64 - 1


def thresholds_of(numerator):
    _, high, low = _gap_table(numerator)
    return [(int(h) << 64) + int(v) for h, v in zip(high, low, strict=True)]


def by_hand(n, numerator, words):
    """The chosen units, the words that were used, and whether a comparison stayed undecided."""
    thresholds, chosen, position, at = thresholds_of(numerator), [], 0, 0
    high = [threshold >> 64 for threshold in thresholds]
    while position < n and at + 2 <= len(words):
        value, tied, at = words[at] << 64, words[at] in high, at + 1
        if tied:
            value, at = value + words[at], at + 1
            if value in thresholds:
                return chosen, at, True
        gap = bisect_right(thresholds, value if tied else value + ONES)
        position += gap
        if gap < len(thresholds):
            if position < n:
                chosen.append(position)
            position += 1
    return chosen, at, False


def compiled(n, numerator, words):
    chosen, cursor = np.empty(n + 1, dtype=np.int64), np.zeros(2, dtype=np.int64)
    given = np.array(words, dtype=np.uint64)
    given.setflags(write=False)
    filled, _ = samplers.poisson_sample(chosen, 0, 0, n, *_gap_search(numerator), given, cursor)
    return chosen[:filled].tolist(), int(cursor[0]), bool(cursor[1])


@pytest.mark.parametrize("numerator", [64, 655, 6554, 1 << 15, 60_000, (1 << 16) - 1])
def test_random_words(numerator):
    words = np.random.default_rng(numerator).integers(0, 2**64, 400, dtype=np.uint64).tolist()
    n = 300 * (1 << 16) // numerator
    assert compiled(n, numerator, words) == by_hand(n, numerator, words)


@covering(
    ("second", ["below", "equal", "above"]),
    ("beside", [-1, 0, 1]),
    ("place", [0, 1, 7, -1]),
    ("numerator", [655, 1 << 15]),
)
def test_words_at_a_threshold(numerator, place, beside, second):
    """Only the second word decides a tie; an equal one decides nothing, and says so."""
    threshold = thresholds_of(numerator)[place]
    follower = (threshold + {"below": -1, "equal": 0, "above": 1}[second]) & ONES
    words = [(threshold >> 64) + beside, follower, 12345 << 40, ONES >> 1, 0, 0]
    if words[0] >= 0:
        found = compiled(10_000, numerator, words)
        assert found == by_hand(10_000, numerator, words)
        assert found[2] == (beside == 0 and second == "equal")


@pytest.mark.parametrize("numerator", [64, 6554, 1 << 15])
def test_extreme_words(numerator):
    words = [0, ONES, ONES, 0, ONES - 1, 1, ONES, 0, 0]
    assert compiled(10**6, numerator, words)[:2] == by_hand(10**6, numerator, words)[:2]


def test_a_full_sample_waits_for_room():
    words = np.zeros(10, dtype=np.uint64)
    words.setflags(write=False)
    chosen, cursor = np.empty(3, dtype=np.int64), np.zeros(2, dtype=np.int64)
    assert samplers.poisson_sample(chosen, 0, 0, 100, *_gap_search(1 << 15), words, cursor) == (3, 3)
    assert chosen.tolist() == [0, 1, 2]
    assert cursor.tolist() == [3, 0]
