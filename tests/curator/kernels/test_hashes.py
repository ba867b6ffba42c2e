"""The hash behind fingerprints, against its authors' vectors and another implementation."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from discreet.curator.records import row_sketches as hashes

WORDS = st.integers(0, 2**64 - 1)
MASK = 2**64 - 1


def siphash(message, key):
    """SipHash-2-4 of any bytes, as its authors describe it, in Python's integers."""
    k0, k1 = (int.from_bytes(key[i : i + 8], "little") for i in (0, 8))
    v = [k0 ^ 0x736F6D6570736575, k1 ^ 0x646F72616E646F6D, k0 ^ 0x6C7967656E657261, k1 ^ 0x7465646279746573]

    def rounds(count):
        for _ in range(count):
            for a, b, turn, halves in ((0, 1, 13, True), (2, 3, 16, False)):
                v[a] = (v[a] + v[b]) & MASK
                v[b] = ((v[b] << turn) | (v[b] >> (64 - turn))) & MASK
                v[b] ^= v[a]
                if halves:
                    v[a] = ((v[a] << 32) | (v[a] >> 32)) & MASK
            for a, b, turn, halves in ((0, 3, 21, False), (2, 1, 17, True)):
                v[a] = (v[a] + v[b]) & MASK
                v[b] = ((v[b] << turn) | (v[b] >> (64 - turn))) & MASK
                v[b] ^= v[a]
                if halves:
                    v[a] = ((v[a] << 32) | (v[a] >> 32)) & MASK

    padded = message + bytes(-(len(message) + 1) % 8) + bytes([len(message) & 0xFF])
    for start in range(0, len(padded), 8):
        word = int.from_bytes(padded[start : start + 8], "little")
        v[3] ^= word
        rounds(2)
        v[0] ^= word
    v[2] ^= 0xFF
    rounds(4)
    return v[0] ^ v[1] ^ v[2] ^ v[3]


def compiled(word, key):
    k0, k1 = (int.from_bytes(key[i : i + 8], "little") for i in (0, 8))
    return int(hashes.siphash(np.uint64(word), np.uint64(k0), np.uint64(k1)))


def test_the_reference_vectors_of_siphash():
    """From the authors' test program (key 00..0f): the messages of 0, 1, 7, 8 and 15 bytes."""
    key = bytes(range(16))
    known = {
        0: 0x726FDB47DD0E0E31,
        1: 0x74F839C593DC67FD,
        7: 0xAB0200F58B01D137,
        8: 0x93F5F5799A932462,
        15: 0xA129CA6149BE45E5,
    }
    for length, answer in known.items():
        assert siphash(bytes(range(length)), key) == answer
    assert compiled(int.from_bytes(bytes(range(8)), "little"), key) == known[8]


@given(WORDS, st.binary(min_size=16, max_size=16))
def test_siphash_of_random_words_is_the_reference(word, key):
    assert compiled(word, key) == siphash(word.to_bytes(8, "little"), key)
