"""Two or more threads over serial kernels that release the lock: of integers, any split gives the same sum."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

VARIABLE = "DISCREET_NUM_THREADS"
_LEAST_WORK = 1 << 19

Number = TypeVar("Number", np.int64, np.float64)
Result = TypeVar("Result")


def thread_count() -> int:
    """How many threads may be used: the variable DISCREET_NUM_THREADS, else the cores this process has."""
    wanted = os.environ.get(VARIABLE, "")
    if wanted.isdigit() and int(wanted) > 0:
        return int(wanted)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)


class Workers:
    """Splits a sum over ``count`` items among threads. Holds its pool, so that it dies with its engine."""

    def __init__(self, threads: int | None = None) -> None:
        self.threads = thread_count() if threads is None else threads
        self._pool: ThreadPoolExecutor | None = None

    def sum(self, part: Callable[[int, int], NDArray[Number]], count: int, work: int) -> NDArray[Number]:
        """The sum of ``part(first, last)`` over a partition of range(count); ``work`` is its size in values."""
        first, *rest = self.each(part, count, work)
        for other in rest:
            first += other
        return first

    def each(self, part: Callable[[int, int], Result], count: int, work: int) -> list[Result]:
        """``part(first, last)`` over a partition of range(count), in its order."""
        threads = min(self.threads, count, max(1, work // _LEAST_WORK))
        if threads <= 1:
            return [part(0, count)]
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self.threads, thread_name_prefix="discreet")
        edges = [count * t // threads for t in range(threads + 1)]
        rest = [self._pool.submit(part, first, last) for first, last in pairwise(edges[1:])]
        return [part(edges[0], edges[1]), *(future.result() for future in rest)]
