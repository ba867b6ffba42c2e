"""A curator answers exactly what was planned, once each, and cannot be talked, raced, copied or forked into more."""

import copy
import os
import pickle
import threading
from contextlib import suppress

import numpy as np
import pytest

from discreet.accounting.plan import Plan, Release
from discreet.accounting.pricing import price_plan
from discreet.budget import Budget
from discreet.curator.engines import Limits
from discreet.curator.private_data import PrivateData
from discreet.errors import PlanViolation, Unsupported
from discreet.losses import Logistic
from tests.promises.reference import ZERO_OUT, bounds_for


def opened(*releases, budget=ZERO_OUT, loss=None):
    data = PrivateData(np.ones((4, 2)), [0, 1, 1, 0], bounds_for(loss or Logistic()))
    return data.open(price_plan(Plan(releases), budget), loss or Logistic())


GRADIENT = Release("noisy_gradient", 2, clip=1.0)


def test_an_unplanned_query_is_refused():
    count_only = opened(Release("noisy_count", 1), budget=Budget(1.0, 1e-6, "add_remove"))
    with pytest.raises(PlanViolation, match="plan it before"):
        count_only.noisy_gradient(np.zeros(3), clip=1.0)
    gradient_only = opened(GRADIENT, budget=Budget(1.0, 1e-6, "add_remove"))
    with pytest.raises(PlanViolation, match="plan it before"):
        gradient_only.noisy_count()
    with pytest.raises(Unsupported, match="declared n"):
        opened(GRADIENT).noisy_count()


def test_one_too_many_is_refused():
    curator = opened(GRADIENT)
    for _ in range(2):
        curator.noisy_gradient(np.zeros(3), clip=1.0)
    for _ in range(3):
        with pytest.raises(PlanViolation, match="further"):
            curator.noisy_gradient(np.zeros(3), clip=1.0)


@pytest.mark.parametrize("clip", [0.5, 1.0000000001, np.nan, np.inf, 0.0, -1.0])
def test_another_clip_is_refused(clip):
    with pytest.raises(PlanViolation, match="clip"):
        opened(GRADIENT).noisy_gradient(np.zeros(3), clip=clip)


def test_two_threads_cannot_share_the_last_answer():
    """Both are stopped inside the check of the clip, where both have seen that one answer is left."""
    curator = opened(Release("noisy_gradient", 1, clip=1.0))
    meeting = threading.Barrier(2)

    class Slow(float):
        def __ne__(self, other):
            with suppress(threading.BrokenBarrierError):
                meeting.wait(timeout=0.5)
            return float(self) != other

        __hash__ = float.__hash__

    answers = []

    def ask():
        with suppress(PlanViolation):
            answers.append(curator.noisy_gradient(np.zeros(3), clip=Slow(1.0)))

    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 1


def test_two_threads_cannot_swap_their_clips():
    """One thread is stopped between computing its limits and returning them, while another asks for larger ones."""
    computed, swapped = threading.Event(), threading.Event()

    class Stopped(Limits):
        def __setattr__(self, name, value):
            super().__setattr__(name, value)
            if threading.current_thread().name == "small" and not computed.is_set():
                computed.set()
                swapped.wait(timeout=2)

    limits = Stopped(np.array([10]), np.array([10]), None)
    got = {}
    small = threading.Thread(target=lambda: got.update(small=limits.of(1000, False)), name="small")
    small.start()
    computed.wait(timeout=2)
    large = threading.Thread(target=lambda: got.update(large=limits.of(10**6, False)))
    large.start()
    large.join(timeout=0.5)  # a lock may make it wait for the small one
    swapped.set()
    small.join()
    large.join()
    assert got["small"].tolist() == [100]
    assert got["large"].tolist() == [10**5]
    assert limits.of(1000, False).tolist() == [100]


@pytest.mark.parametrize(
    "duplicate", [copy.deepcopy, lambda c: pickle.loads(pickle.dumps(c))], ids=["deepcopy", "pickle"]
)
def test_a_copy_does_not_answer_again(duplicate):
    curator = opened(Release("noisy_gradient", 1, clip=1.0))
    answers = []
    with suppress(PlanViolation, TypeError, pickle.PicklingError):
        for one in (duplicate(curator), curator):
            answers.append(one.noisy_gradient(np.zeros(3), clip=1.0))
    assert len(answers) < 2


def test_a_forked_process_does_not_answer_again():
    curator = opened(Release("noisy_gradient", 1, clip=1.0))
    child = os.fork()
    if child == 0:
        try:
            curator.noisy_gradient(np.zeros(3), clip=1.0)
        except PlanViolation:
            os._exit(0)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
