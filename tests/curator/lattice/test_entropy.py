"""Requests for words, each with a key of its own; and uniform integers from them, whatever the bound."""

import math
import os

import numpy as np
import pytest
from scipy import stats

from discreet.curator import noise
from discreet.curator.noise import DIRECT_WORDS, SeededEntropy, SystemEntropy, chacha20_words, uniform_below

SIGNIFICANCE = 1e-6
SMALL, LARGE = (0, 1, 8, DIRECT_WORDS - 1), (DIRECT_WORDS, DIRECT_WORDS + 1, 127, 128, 129, 1412, 5000)


@pytest.fixture
def given(monkeypatch):
    """What the operating system gave, request by request."""
    SystemEntropy().words(DIRECT_WORDS)  # compiled before: a compiler with an empty cache asks for names of files
    found, genuine = [], os.urandom

    def urandom(count):
        found.append(genuine(count))
        return found[-1]

    monkeypatch.setattr(os, "urandom", urandom)
    return found


@pytest.mark.whole
@pytest.mark.parametrize("count", [*SMALL, *LARGE])
def test_every_request_asks_the_operating_system_once(given, count):
    first, second = (SystemEntropy().words(count) for _ in range(2))
    assert [len(answer) for answer in given] == [8 * count if count < DIRECT_WORDS else 32] * 2
    for words, answer in zip((first, second), given, strict=True):
        expected = np.frombuffer(answer, dtype=np.uint64) if count < DIRECT_WORDS else chacha20_words(answer, count)
        assert words.tolist() == expected.tolist()
        assert words.dtype == np.uint64
        assert not words.flags.writeable  # both kinds alike, so that one compiled sampler serves them
    assert not count or first.tolist() != second.tolist()


def test_a_key_is_overwritten_before_words_are_returned(monkeypatch):
    kept, compiled = [], noise.samplers.key_stream

    def watched(parts, forget, out):
        kept.append((parts, parts.copy()))
        compiled(parts, forget, out)

    monkeypatch.setattr(noise.samplers, "key_stream", watched)
    SystemEntropy().words(1000)
    ((parts, before),) = kept
    assert before[:8].any()
    assert not before[8:].any()  # counter and nonce
    assert not parts.any()


def test_more_words_than_a_key_has_are_refused(monkeypatch):
    monkeypatch.setattr(noise, "MOST_WORDS", 1000)
    assert SystemEntropy().words(1000).size == 1000
    with pytest.raises(ValueError, match="at most"):
        SystemEntropy().words(1001)


def bits_p(words):
    """p-value of how often each of the 64 bits is one."""
    bits = (words[:, None] >> np.arange(64, dtype=np.uint64)) & np.uint64(1)
    deviations = (bits.sum(axis=0) - len(words) / 2) / math.sqrt(len(words) / 4)
    return stats.chi2.sf(float((deviations**2).sum()), 64)


def bytes_p(words):
    """p-value of the frequencies of pairs of neighboring bytes."""
    pairs = np.ascontiguousarray(words).view(np.uint16)
    return stats.chisquare(np.bincount(pairs, minlength=1 << 16)).pvalue


@pytest.mark.statistical
def test_the_words_of_a_request_are_uniform():
    words = SystemEntropy().words(1 << 19)
    assert np.unique(words).size == words.size
    assert (
        min(bits_p(words), bytes_p(words), bits_p(words[1:] ^ words[:-1]), bits_p(words[8:] ^ words[:-8]))
        > SIGNIFICANCE
    )
    blocks = words.reshape(-1, 8)
    assert bits_p(blocks[1:, 0] ^ blocks[:-1, 0]) > SIGNIFICANCE
    # the control: the counter's words without the rounds between
    assert bits_p(np.arange(1 << 19, dtype=np.uint64)) < SIGNIFICANCE
    assert bytes_p(words & np.uint64(0xFFFF_FFFF_FFFF_FFFE)) < SIGNIFICANCE


class OneKey:
    """What must not be: every request begins the same key stream."""

    def __init__(self):
        self._key = os.urandom(32)

    def words(self, count):
        return chacha20_words(self._key, count)


def requests_p(source, count):
    """p-value of the bits of the first word, and of the last, over many requests."""
    drawn = np.stack([source.words(count)[[0, -1]] for _ in range(4000)])
    return min(bits_p(drawn[:, 0]), bits_p(drawn[:, 1]), bits_p(drawn[1:, 0] ^ drawn[:-1, 0]))


@pytest.mark.statistical
@pytest.mark.parametrize("count", [DIRECT_WORDS - 1, DIRECT_WORDS, 300])
def test_requests_are_independent_of_each_other(count):
    assert requests_p(SystemEntropy(), count) > SIGNIFICANCE
    assert requests_p(OneKey(), count) < SIGNIFICANCE


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
