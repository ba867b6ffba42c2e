"""Exact sums over parts of the records that are asked elsewhere: each part counted once, or no answer at all.

A task that a scheduler repeats may answer twice, a worker that comes late may run other code, and a part that is made
again from a file that has changed holds other records. A sum over parts has the sensitivity of a sum over records only
if every record is in it once, and the same records in every pass. So every answer names its part and what the part
was when it was encoded; a second answer of a part is dropped; anything else that does not fit ends the fit.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np

from discreet.errors import ClusterFailed
from discreet.typing import Integers

CHANGED = (
    "a part of the records was made again, and is not what it was: files must not change while a model is fitted. "
    "What was charged stays charged"
)
LOST = "the cluster did not answer for every part of the records, once each; what was charged stays charged"
OTHER_CODE = (
    "a worker runs other code than this process: install the same versions of discreet, numba and numpy everywhere. "
    "What was charged stays charged"
)

Told = TypeVar("Told")


@dataclass(frozen=True, repr=False)
class Seal:
    """What a part was when it was encoded: how many rows, and the checksum of their bytes. As private as they are."""

    rows: int
    checksum: bytes


@dataclass(frozen=True, repr=False)
class Answer(Generic[Told]):
    """What a worker says of one part, with the part's seal and what the worker runs."""

    part: int
    seal: Seal | None
    software: tuple[str, ...]
    told: Told


class Tally(Generic[Told]):
    """Answers by part. ``seals`` is the plan: the parts there are, with what they were (None: not encoded yet)."""

    def __init__(self, seals: Mapping[int, Seal | None], software: tuple[str, ...]) -> None:
        self._seals, self._software = seals, software
        self._told: dict[int, Told] = {}

    def add(self, answer: Any) -> None:
        """Take an answer; one of a part that has answered before is dropped."""
        if not isinstance(answer, Answer) or answer.part not in self._seals:
            raise ClusterFailed(LOST)
        if answer.software != self._software:
            raise ClusterFailed(OTHER_CODE)
        seal = self._seals[answer.part]
        if seal is not None and answer.seal != seal:
            raise ClusterFailed(CHANGED)
        self._told.setdefault(answer.part, answer.told)

    def complete(self) -> list[Told]:
        """Return the answers, in the order of the parts, once every part has answered."""
        if self._told.keys() != self._seals.keys():
            raise ClusterFailed(LOST)
        return [self._told[part] for part in sorted(self._told)]


def added(told: Sequence[Integers]) -> Integers:
    """Return the exact sum: of integers whose total fits 62 bits, as the lattice was made for."""
    total: Integers = np.zeros_like(told[0])
    for part in told:
        if part.shape != total.shape or part.dtype != total.dtype:
            raise ClusterFailed(LOST)
        total += part
    return total
