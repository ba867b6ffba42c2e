"""The deep comparison behind replay."""

import threading
from dataclasses import dataclass, replace

import numpy as np
import pytest

from discreet.accounting.certificate import Certificate
from discreet.accounting.events import Gaussian
from discreet.audit.deep_diff import differences
from discreet.budget import Neighbors


@dataclass(frozen=True)
class Inner:
    values: np.ndarray
    name: str = "a"


class Slotted:
    __slots__ = ("__secret", "shown")

    def __init__(self, secret):
        self.__secret, self.shown = secret, 1


def closure(value):
    return lambda: value


def paths(first, second):
    return [path for path, _ in differences(first, second)]


@pytest.mark.parametrize(
    "make",
    [
        lambda: {"a": [1, (2.0, np.nan)], "b": {"c": np.array([np.nan, 1.0])}},
        lambda: Inner(np.arange(3)),
        lambda: Slotted(np.arange(3)),
        lambda: closure([1, 2]),
        lambda: np.array([{"a": 1}, None], dtype=object),
        lambda: (np.float32(1.5), {1, 2}, "text", b"x", None, True, 1j),
    ],
)
def test_equal_things(make):
    assert paths(make(), make()) == []


@pytest.mark.parametrize(
    ("first", "second", "path"),
    [
        ({"a": [1, 2]}, {"a": [1, 3]}, "a[1]"),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, ""),
        (0.0, -0.0, ""),
        (1, 1.0, ""),
        ([1], [1, 2], ""),
        (np.zeros(2), -np.zeros(2), ""),
        (np.zeros(2), np.zeros(2, dtype=np.float32), ""),
        (Inner(np.arange(3)), Inner(np.arange(3) + 1), "values"),
        (Slotted(1), Slotted(2), "_Slotted__secret"),
        (closure(1), closure(2), "closure[0]"),
        (np.array([[1], None], dtype=object), np.array([[2], None], dtype=object), "[0][0]"),
        (threading.Lock(), threading.Lock(), ""),
    ],
)
def test_different_things(first, second, path):
    assert paths(first, second) == [path]


def test_cycles_end():
    first, second = [1], [1]
    first.append(first)
    second.append(second)
    assert paths(first, second) == []


def test_the_date_of_a_certificate_is_left_out():
    claim = {"epsilon": 1.0, "delta": 1e-6, "neighbors": Neighbors.ZERO_OUT, "events": (Gaussian(10.0),)}
    one = Certificate(**claim, created="2020-01-01")
    assert paths(one, replace(one, created="2021-01-01")) == []
    assert paths(one, replace(one, notes=("clipped 3 records",))) == ["notes"]
