"""Tasks on batches of Spark make the parts that frames make, and return failures without values; no Spark is needed."""

import pickle

import numpy as np
import pyarrow as pa
import pytest

from discreet import Bounds, Schema
from discreet.curator.clusters.calls import asked_by_number, call, outcome, packed_each, unpack, unpickled
from discreet.curator.clusters.tasks import Answer, Failed, TableRows, answer, encode, sealed
from discreet.curator.known_answers import known_records
from discreet.curator.queries.moments import MomentQuery
from discreet.curator.records.admission import TargetScaling, scaling_for
from discreet.curator.records.stream import Encoding
from discreet.schema import Number, Target

SENTINEL = "sentinel-4711"
SCHEMA = Schema({"a": Number((0, 9))}, Target("b", classes=(0, 1)))
ROWS = TableRows(SCHEMA, False)
TYPES = pa.schema([("a", pa.float64()), ("b", pa.int64())])
TABLE = pa.table({"a": np.linspace(0, 9, 7), "b": [0, 1, 0, 1, 1, 0, 1]})
HOW = Encoding(scaling_for(Bounds({"a": (0, 9)}, classes=(0, 1)), 1, ["a"], True), TargetScaling(signed=True))


def test_batches_make_the_part_of_the_whole_table():
    batches = TABLE.rename_columns(["c0", "c1"]).to_batches(max_chunksize=2)
    found = outcome(call(encode, ROWS, HOW), 5, TYPES, iter(batches))
    expected = encode(5, ROWS, HOW, TABLE)
    assert (found.number, found.seal) == (5, expected.seal)
    assert found.seal.units == 7


def test_a_failure_is_returned_without_its_words():
    def broken():
        raise ValueError(SENTINEL)
        yield

    other = pa.schema([(SENTINEL, pa.float64())])
    for batches, types in ((broken(), TYPES), (iter(TABLE.to_batches()), other)):
        found = outcome(call(encode, ROWS, HOW), 0, types, batches)
        assert isinstance(found, Failed)
        assert SENTINEL not in found.reason


def test_a_part_answers_the_question_of_its_own_number():
    part = sealed(1, known_records(False))
    questions = packed_each([None, MomentQuery(1 << 34, 40.0, moment="outer"), None])
    words = {"message": call(answer, placement=None), "tells": True}
    found = unpack(asked_by_number(part, asked=questions, **words))
    assert isinstance(found, Answer)
    assert (found.part, found.seal) == (1, part.seal)
    wrong = asked_by_number(part, asked=[questions[1], questions[0]], **words)
    assert isinstance(unpack(wrong), Failed)
    handed_on = Failed("a worker could not do its part")
    assert unpack(asked_by_number(handed_on, asked=questions, **words)) == handed_on


@pytest.mark.parametrize("kind", [bytes, bytearray])
def test_what_was_packed_is_unpacked(kind):
    part = sealed(3, known_records(False))
    assert unpickled([kind(pickle.dumps(part))]).seal == part.seal
