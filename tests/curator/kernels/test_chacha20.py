"""The compiled cipher is the published one, in any number of blocks, and leaves no key behind."""

import numpy as np
import pytest

from discreet.curator.kernels import samplers
from discreet.curator.noise import chacha20_words
from tests.covering import covering

# RFC 8439, section 2.3.2 and appendix A.1: key, counter, nonce, key stream
VECTORS = [
    (bytes(range(32)), 1, "000000090000004a00000000",
     "10f1e7e4d13b5915500fdd1fa32071c4c7d1f4c733c068030422aa9ac3d46c4e"
     "d2826446079faa0914c2d705d98b02a2b5129cd1de164eb9cbd083e8a2503c4e"),
    (bytes(32), 0, "00" * 12,
     "76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7"
     "da41597c5157488d7724e03fb8d84a376a43b8f41518a11cc387b669b2ee6586"),
    (bytes(32), 1, "00" * 12,
     "9f07e7be5551387a98ba977c732d080dcb0f29a048e3656912c6533e32ee7aed"
     "29b721769ce64e43d57133b074d839d531ed1f28510afb45ace10a1f4b794d6f"),
    (bytes(31) + b"\x01", 1, "00" * 12,
     "3aeb5224ecf849929b9d828db1ced4dd832025e8018b8160b82284f3c949aa5a"
     "8eca00bbb4a73bdad192b5c42f73f2fd4e273644c8b36125a64addeb006c13a0"),
    (b"\x00\xff" + bytes(30), 2, "00" * 12,
     "72d54dfbf12ec44b362692df94137f328fea8da73990265ec1bbbea1ae9af0ca"
     "13b25aa26cb4a648cb9b9d1be65b2c0924a66c54d545ec1b7374f4872e99f096"),
    (bytes(32), 0, "00" * 11 + "02",
     "c2c64d378cd536374ae204b9ef933fcd1a8b2288b3dfa49672ab765b54ee27c7"
     "8a970e0e955c14f3a88e741b97c286f75f8fc299e8148362fa198a39531bed6d"),
]  # fmt: skip


@pytest.mark.parametrize(("key", "counter", "nonce", "stream"), VECTORS)
def test_chacha20_is_the_published_one(key, counter, nonce, stream):
    parts = tuple(np.frombuffer(bytes.fromhex(nonce), dtype="<u4").tolist())
    assert chacha20_words(key, 8, first=counter, nonce=parts).tobytes().hex() == stream
    if counter:  # the same block as the last of a longer run
        assert chacha20_words(key, 8 * (counter + 1), nonce=parts)[-8:].tobytes().hex() == stream


def plain_stream(parts, groups):
    """The same blocks without the compiler."""
    out = np.empty((groups, samplers.WORDS), dtype=np.uint64)
    for group, words in enumerate(out):
        samplers.sixteen_blocks(parts, int(parts[8]) + group * samplers.LANES, words)
    return out.ravel()


@covering(("groups", [0, 1, 3]), ("first", [0, 1, 2**31 - 5, 2**32 - 20, 2**32 - 1]))
def test_compiled_is_plain(first, groups):
    parts = np.random.default_rng(first).integers(0, 2**32, samplers.PARTS, dtype=np.uint32)
    parts[8] = first  # the counter wraps as 32 bits do
    out = np.zeros(groups * samplers.WORDS, dtype=np.uint64)
    samplers.key_stream(parts, False, out)
    assert (out == plain_stream(parts, groups)).all()


def test_nothing_is_written_beside_the_words_that_were_asked_for():
    room = np.zeros(3 * samplers.WORDS, dtype=np.uint64)
    samplers.key_stream(np.ones(samplers.PARTS, dtype=np.uint32), False, room[samplers.WORDS : 2 * samplers.WORDS])
    assert not room[: samplers.WORDS].any()
    assert not room[2 * samplers.WORDS :].any()
    assert room[samplers.WORDS : 2 * samplers.WORDS].all()


@pytest.mark.parametrize("forget", [False, True])
def test_a_key_is_overwritten_where_it_is_to_be_forgotten(forget):
    parts = np.arange(1, samplers.PARTS + 1, dtype=np.uint32)
    expected = plain_stream(parts, 2)
    out = np.empty(2 * samplers.WORDS, dtype=np.uint64)
    samplers.key_stream(parts, forget, out)
    assert (out == expected).all()
    assert parts.any() != forget


def test_parts_of_a_stream_begin_at_their_block():
    key = bytes(range(32))
    whole = chacha20_words(key, 1000)
    for block in (1, 7, 16, 100):
        assert (chacha20_words(key, 17, first=block) == whole[8 * block : 8 * block + 17]).all()
