"""Random bits come from the operating system, are never repeated, and the test generator is the published one."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from discreet.accounting.plan import Plan, Release
from discreet.accounting.priced_plan import price_plan
from discreet.curator.lattice.entropy import SeededEntropy, SystemEntropy, chacha20_blocks, current_entropy, use_entropy
from discreet.curator.lattice.noise import discrete_laplace, exponential_choice, poisson_sample, rounded_gaussian
from discreet.curator.private_data import PrivateData
from discreet.losses import Logistic
from tests.equivalence.reference import ZERO_OUT, bounds_for

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
    words = np.frombuffer(key, dtype="<u4").astype(np.uint32)
    parts = tuple(np.frombuffer(bytes.fromhex(nonce), dtype="<u4").tolist())
    assert chacha20_blocks(words, counter, 1, parts).astype("<u4").tobytes().hex() == stream
    if counter:  # the same block as the last of a longer run
        assert chacha20_blocks(words, 0, counter + 1, parts)[-16:].astype("<u4").tobytes().hex() == stream


def test_the_seeded_source_replays_and_never_reuses_words():
    first, second = SeededEntropy(7), SeededEntropy(7)
    pieces = np.concatenate([first.words(n) for n in (3, 8, 1, 1000)])
    assert (pieces == np.concatenate([second.words(n) for n in (3, 8, 1, 1000)])).all()
    assert np.unique(pieces).size == pieces.size
    assert not (SeededEntropy(8).words(8) == SeededEntropy(7).words(8)).any()


def test_the_operating_system_is_asked_and_nothing_else(monkeypatch):
    """With os.urandom replaced by a known stream every sampler repeats itself: there is no other source."""
    asked, genuine = [], os.urandom

    def answers(seed):
        stream = SeededEntropy(seed)

        def urandom(count):
            asked.append(count)
            return stream.words(-(-count // 8)).tobytes()[:count]

        return urandom

    def everything():
        monkeypatch.setattr(os, "urandom", answers(3))
        source = current_entropy()
        drawn = (
            rounded_gaussian(50, 40, source).tolist(), discrete_laplace(50, 40, source).tolist(),
            poisson_sample(1000, 6554, source).tolist(), exponential_choice(np.zeros(9, dtype=np.int64), 20, source),
            curator().noisy_gradient(np.zeros(3), clip=1.0).tolist(),
        )  # fmt: skip
        monkeypatch.setattr(os, "urandom", genuine)
        return drawn

    everything()  # compiling writes files under random names, which asks the operating system too
    asked.clear()
    first = everything()
    assert len(asked) >= 5
    assert first == everything()
    assert current_entropy().is_private


def curator(count=1):
    data = PrivateData(np.ones((4, 2)), [0, 1, 1, 0], bounds_for(Logistic()))
    return data.open(price_plan(Plan([Release("noisy_gradient", count, clip=1.0)]), ZERO_OUT), Logistic())


def fresh(_=None):
    return rounded_gaussian(20, 50, SystemEntropy()).tolist()


def all_differ(batches):
    values = [abs(v) for batch in batches for v in batch]
    return len(set(values)) == len(values)


def test_no_repetition_across_calls_answers_and_threads():
    assert all_differ([fresh() for _ in range(50)])
    with ThreadPoolExecutor(4) as pool:
        assert all_differ(pool.map(fresh, range(50)))
    opened = curator(40)
    assert all_differ([opened.noisy_gradient(np.zeros(3), clip=1.0).tolist() for _ in range(40)])
    assert not all_differ([[1, 2], [3, -1]])  # the control


def test_no_repetition_across_forks():
    fresh()
    batches = [fresh()]
    for _ in range(4):
        receiver, sender = os.pipe()
        child = os.fork()
        if child == 0:
            os.write(sender, repr(fresh()).encode())
            os._exit(0)
        os.close(sender)
        with os.fdopen(receiver) as answer:
            batches.append([int(v) for v in answer.read().strip("[]").split(",")])
        os.waitpid(child, 0)
    batches.append(fresh())
    assert all_differ(batches)


def test_no_repetition_across_processes():
    program = "from tests.privacy.test_distributions_entropy import fresh; print(*fresh())"
    paths = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", program]
    ran = [subprocess.run(command, capture_output=True, text=True, check=True, env=paths) for _ in range(2)]
    assert all_differ([[int(v) for v in result.stdout.split()] for result in ran])


def test_a_seeded_source_never_outlives_its_block_and_stamps_the_certificate():
    with use_entropy(SeededEntropy(1)):
        seeded = curator()
    assert current_entropy().is_private
    settings = {"model": "test", "solver": {}}
    assert seeded.certificate(**settings).not_private
    assert not curator().certificate(**settings).not_private
