"""Small matrices on one thread.

Threads of a BLAS library keep spinning for some milliseconds after each call. Where matrices are small that gains
nothing, and the spinning threads take the cores from passes over records.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

SMALL = 512
"""Matrices of up to so many columns are factored about as fast by one thread."""


@cache
def _libraries() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


@contextmanager
def on_one_thread(columns: int) -> Iterator[None]:
    """Let BLAS run on one thread inside the block, if its matrices have few columns; afterwards as before."""
    if columns > SMALL:
        yield
        return
    with _libraries().limit(limits=1, user_api="blas"):
        yield
