"""Every part of the records is counted once, as it was encoded, or there is no answer."""

import numpy as np
import pytest

from discreet.curator.clusters.tasks import Answer, Seal, Tally, added
from discreet.errors import ClusterFailed

CODE = ("1", "2")
SEALS = {number: Seal(10 + number, bytes([number])) for number in range(3)}


def answer(part, told=0, *, seal=None, software=CODE):
    return Answer(part, seal or SEALS.get(part), software, told)


def tallied(*answers):
    tally = Tally(SEALS, CODE)
    for one in answers:
        tally.add(one)
    return tally.complete()


def test_answers_come_in_any_order():
    assert tallied(answer(2, "c"), answer(0, "a"), answer(1, "b")) == ["a", "b", "c"]


@pytest.mark.whole
@pytest.mark.parametrize("late", ["a", "other"])
def test_a_second_answer_of_a_part_is_dropped(late):
    assert tallied(answer(0, "a"), answer(1, "b"), answer(0, late), answer(2, "c")) == ["a", "b", "c"]


def test_a_part_that_is_left_out_ends_the_fit():
    with pytest.raises(ClusterFailed, match="every part"):
        tallied(answer(0), answer(2))


@pytest.mark.whole
@pytest.mark.parametrize("other", [answer(3), answer(-1), None, 7])
def test_what_is_no_answer_of_a_part_ends_the_fit(other):
    with pytest.raises(ClusterFailed, match="every part"):
        tallied(answer(0), answer(1), answer(2), other)


@pytest.mark.whole
@pytest.mark.parametrize("seal", [Seal(11, bytes([0])), Seal(10, bytes([1]))], ids=["rows", "bytes"])
def test_a_part_that_is_not_what_it_was_ends_the_fit(seal):
    with pytest.raises(ClusterFailed, match="not what it was"):
        tallied(answer(0, seal=seal), answer(1), answer(2))


def test_a_worker_that_runs_other_code_ends_the_fit():
    with pytest.raises(ClusterFailed, match="same versions"):
        tallied(answer(0, software=("1", "3")), answer(1), answer(2))


def test_sums_are_added_exactly_and_of_one_shape():
    parts = [np.array([2**61, -1]), np.array([2**60, 1]), np.array([1, 0])]
    assert added(parts).tolist() == [2**61 + 2**60 + 1, 0]
    assert parts[0].tolist() == [2**61, -1]
    with pytest.raises(ClusterFailed):
        added([np.zeros(2, dtype=np.int64), np.zeros(3, dtype=np.int64)])
