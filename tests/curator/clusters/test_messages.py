"""Messages hold arrays and plain values, come back as they were, and are refused when they do not fit."""

import contextlib
import json
import math
import pickle
from dataclasses import fields, is_dataclass
from typing import NamedTuple

import numpy as np
import pytest

from discreet import Bounds, Schema, losses
from discreet.curator.clusters import calls, persons, tasks
from discreet.curator.clusters.calls import Misfit, pack, unpack
from discreet.curator.metrics import row_values
from discreet.curator.records.admission import TargetScaling, scaling_for
from discreet.curator.records.row_sketches import RowSketch
from discreet.curator.records.stream import Encoding
from discreet.errors import Unsupported
from discreet.losses.base import Loss
from discreet.schema import Boolean, Category, Number, Offset, Ordinal, Target, Weight
from tests.curator.engines.test_questions import kinds_of_questions, questions, records_of

SCHEMA = Schema(
    {
        "age": Number((18, 110)),
        "pay": Number("private", within=(0, 1e6)),
        "ward": Category(("a", "b")),
        "stage": Ordinal(("low", "high")),
        "smokes": Boolean(),
    },
    Target("ill", classes=("no", "yes")),
    person="who",
    weight=Weight("w", (0, 2)),
    offset=Offset("days", (1, 365), log=True),
)


def same(one, other):
    """Whether two values are equal, arrays and objects of them included."""
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()
    if is_dataclass(one) and not isinstance(one, type):
        return all(same(getattr(one, field.name), getattr(other, field.name)) for field in fields(one))
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    return one == other or (one != one and other != other)


def encoding():
    bounds = Bounds(1.0, classes=(0, 1))
    secrets = np.arange(3, dtype=np.uint64)
    return Encoding(scaling_for(bounds, 4, None, True), TargetScaling(signed=True), secrets, True)


VALUES = {
    "plain": [None, True, 1, -(2**80), 0.1, -0.0, "é", b"\x00\xff", (1, (2.0,)), {1: "a", "b": [()]}],
    "floats": [math.inf, -math.inf, math.nan, 5e-324, 1.7976931348623157e308],
    "arrays": [np.arange(6).reshape(2, 3), np.zeros((0, 4)), np.array(["a", "bc"]), np.array([b"x"]), np.float32(1.5)],
    "order": [np.asfortranarray(np.arange(6.0).reshape(2, 3)), np.arange(10)[::2], np.array(7)],
    "schema": SCHEMA,
    "rows": [tasks.TableRows(SCHEMA, True), tasks.ArrayRows(3, (0, "x", None), "y", ("groups", "weights"))],
    "encoding": encoding(),
    "answer": tasks.Answer(3, tasks.Seal(7, b"seal"), ("1", "2"), np.arange(4)),
    "seen": tasks.Seen(RowSketch(3, (2**64 - 1, 5), (1, 2**63)), {1: np.arange(3)}, b"x", (np.arange(2), None)),
    "failed": tasks.Failed("why"),
    "persons": [persons.Dealing(3, b"k" * 16), persons.EncodedRows(encoding()), persons.NoColumns()],
    "cells": [row_values.RankCells(np.arange(3.0), np.ones(4), np.zeros(4)), row_values.ShareCells(2)],
    "chosen": tasks.Chosen(tasks.Seal(2, b"s"), np.array([True, False])),
}


@pytest.mark.parametrize("name", VALUES)
def test_values_come_back_as_they_were(name):
    value = VALUES[name]
    assert same(unpack(pack(value)), value)


def test_every_question_comes_back_and_is_small():
    """Questions of five columns and forty units: a few kilobytes, less than their pickles twice."""
    for question in questions(records_of("dense")):
        message = pack(question)
        assert same(unpack(message), question)
        assert len(message) < 2 * len(pickle.dumps(question)) + 500 < 4000
    assert {kind.__name__ for kind in kinds_of_questions()} <= set(calls._modules())


def test_every_loss_of_ours_can_be_sent():
    ours = [getattr(losses, name) for name in losses.__all__]
    ours = [kind for kind in ours if isinstance(kind, type) and issubclass(kind, Loss) and kind is not Loss]
    assert len(ours) >= 8
    for kind in ours:
        loss = kind._make(range(1, 1 + len(kind._fields)))
        assert unpack(pack(loss)) == loss
        assert type(unpack(pack(loss))) is kind


def test_every_class_that_travels_exists_under_its_name():
    for name in calls._modules():
        assert calls._kind(name).__name__ == name


class Own(NamedTuple):
    width: float


class Logistic(NamedTuple):
    """Not discreet's."""

    sharpness: float


@pytest.mark.parametrize(
    "value", [Own(1.0), Logistic(1.0), object(), {1, 2}, np.array([object()]), np.datetime64("now")]
)
def test_what_is_not_ours_is_not_sent(value):
    with pytest.raises(Unsupported, match="discreet's own"):
        pack([value])


def spoiled(change):
    """A message whose text is changed."""
    message = pack({"a": np.arange(3), "b": tasks.Failed("why")})
    length = calls._HEAD.unpack_from(message)[2]
    text = json.loads(message[calls._HEAD.size : calls._HEAD.size + length])
    text = json.dumps(change(text) or text).encode()
    tail = message[calls._HEAD.size + length :]
    return calls._HEAD.pack(calls._NAME, calls.VERSION, len(text)) + text + tail


def field_of(text):
    return text["map"][1][1]


WRONG = {
    "empty": b"",
    "other": b"\x80\x05K\x01." * 9,
    "another version": b"dsm\x02" + pack(1)[4:],
    "cut": pack(np.arange(9))[:-1],
    "more": pack(np.arange(9)) + b"x",
    "another class": spoiled(lambda text: field_of(text).update({"is": "system"})),
    "a module": spoiled(lambda text: field_of(text).update({"is": "os:system"})),
    "another field": spoiled(lambda text: field_of(text).update({"of": {"reason": "a", "other": 1}})),
    "a missing field": spoiled(lambda text: field_of(text).update({"of": {}})),
    "another tag": spoiled(lambda text: {"object": 1}),
    "a private tag": spoiled(lambda text: {"object__": 1}),
    "two tags": spoiled(lambda text: {"float": "nan", "bytes": ""}),
    "objects": spoiled(lambda text: text["map"][0].__setitem__(1, {"array": ["|O", [3]]})),
    "negative": spoiled(lambda text: text["map"][0].__setitem__(1, {"array": ["<i8", [-3]]})),
    "huge": spoiled(lambda text: text["map"][0].__setitem__(1, {"array": ["<i8", [2**62, 2**62]]})),
    "no number": spoiled(lambda text: text["map"][0].__setitem__(1, {"float": "1"})),
    "refused by its class": pack(SCHEMA).replace(b'"classes"', b'"classes "'),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_does_not_fit_is_refused(name):
    with pytest.raises(Misfit):
        unpack(WRONG[name])


def test_random_changes_are_refused_or_read_as_plain_values():
    rng = np.random.default_rng(0)
    message = bytearray(pack(VALUES["answer"]))
    for _ in range(500):
        changed = bytearray(message)
        changed[rng.integers(len(changed))] = rng.integers(256)
        with contextlib.suppress(Misfit):
            unpack(bytes(changed))


def test_a_call_of_what_is_no_task_is_refused():
    part = tasks.Failed("x")
    for name in ("system", "sealed", "__import__"):
        found = calls.told(pack((name, (), {})))
        assert "does not know" in unpack(found).reason
    assert unpack(calls.told(pack(("answer", (), {})), part)) == part
    with pytest.raises(AssertionError):
        calls.call(print)
