"""Random bits come from the operating system, and are never repeated: across calls, threads, forks and copies."""

import copy
import os
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from discreet.accounting.plan import Plan, Release
from discreet.accounting.pricing import price_plan
from discreet.curator.noise import (
    DIRECT_WORDS,
    SeededEntropy,
    SystemEntropy,
    current_entropy,
    discrete_laplace,
    exponential_choice,
    poisson_sample,
    rounded_gaussian,
    use_entropy,
)
from discreet.curator.private_data import PrivateData
from discreet.losses import Logistic
from tests.promises.reference import ZERO_OUT, bounds_for


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


SIZES = (1, DIRECT_WORDS - 1, DIRECT_WORDS, 200)
"""Of requests: words of the operating system, and key streams."""


def fresh_words(_=None):
    source = SystemEntropy()
    return [int(word) for size in SIZES for word in source.words(size)]


def all_differ(batches):
    values = [abs(v) for batch in batches for v in batch]
    return len(set(values)) == len(values)


def test_no_repetition_across_calls_answers_and_threads():
    assert all_differ([fresh() for _ in range(50)])
    with ThreadPoolExecutor(4) as pool:
        assert all_differ(pool.map(fresh, range(50)))
        assert all_differ(pool.map(fresh_words, range(50)))
    opened = curator(40)
    assert all_differ([opened.noisy_gradient(np.zeros(3), clip=1.0).tolist() for _ in range(40)])
    assert not all_differ([[1, 2], [3, -1]])  # the control


def in_a_fork(draw):
    """What ``draw`` returns in a forked process."""
    receiver, sender = os.pipe()
    child = os.fork()
    if child == 0:
        with os.fdopen(sender, "w") as answer:
            answer.write(repr(draw()))
        os._exit(0)
    os.close(sender)
    with os.fdopen(receiver) as answer:
        text = answer.read()
    os.waitpid(child, 0)
    return [int(v) for v in text.strip("[]").split(",")]


@pytest.mark.whole
@pytest.mark.parametrize("draw", [fresh, fresh_words])
def test_no_repetition_across_forks(draw):
    draw()
    batches = [draw(), *(in_a_fork(draw) for _ in range(4)), draw()]
    assert all(len(batch) == len(batches[0]) for batch in batches)
    assert all_differ(batches)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda source: pickle.loads(pickle.dumps(source))])
def test_no_repetition_across_copies(copied):
    source = SystemEntropy()
    source.words(200)
    other = copied(source)
    assert vars(source) == vars(other) == {}  # there is nothing to copy
    assert all_differ([drawn.words(200).tolist() for drawn in (source, other)])


def test_no_repetition_across_processes():
    program = "from tests.promises.test_entropy import fresh; print(*fresh())"
    paths = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", program]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, env=paths)
    assert all_differ([fresh(), [int(v) for v in ran.stdout.split()]])


def test_a_seeded_source_never_outlives_its_block_and_stamps_the_certificate():
    with use_entropy(SeededEntropy(1)):
        seeded = curator()
    assert current_entropy().is_private
    settings = {"model": "test", "solver": {}}
    assert seeded.certificate(**settings).not_private
    assert not curator().certificate(**settings).not_private
