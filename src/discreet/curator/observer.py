"""A hook for tests and audits: what a mechanism is about to release, before and after its noise.

Inside ``observe(observer)`` every release of every curator passes through ``observer``, which sees the
exact integers and may put other answers in place of the noisy ones (replay). An
observer sees private data: the curator's certificate is stamped NOT PRIVATE.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from discreet.curator.lattice.lattice import Unit
from discreet.typing import Integers


@dataclass(frozen=True)
class Measurement:
    """One release: the exact integer sum, the bound on a contribution, its norm, the relation's factor, the lattice."""

    query: str
    exact: Integers
    noisy: Integers
    norm: str
    factor: int | Fraction
    unit: Unit


class Observer(Protocol):
    """Takes a measurement, returns the integers to release."""

    def __call__(self, measurement: Measurement) -> Integers: ...


_observer: ContextVar[Observer | None] = ContextVar("discreet_observer", default=None)


def current_observer() -> Observer | None:
    """The observer in force, if any."""
    return _observer.get()


@contextmanager
def observe(observer: Observer) -> Iterator[Observer]:
    """Pass every release inside the block through ``observer``."""
    token = _observer.set(observer)
    try:
        yield observer
    finally:
        _observer.reset(token)
