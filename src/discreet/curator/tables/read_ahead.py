"""``read_ahead``: reads the next batches of a file while the last one is being used."""

from collections import deque
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

Item = TypeVar("Item")

DEPTH = 2
"""Batches that wait to be used, at most: memory stays bounded, and a reader that is a little late is waited for."""
_END: Any = object()


def read_ahead(items: Generator[Item, None, None], depth: int = DEPTH) -> Iterator[Item]:
    """Yield the items, each made by another thread while those before it are being used; at most ``depth`` wait.

    They come one by one and in their order, so that nothing but time changes. What making one raises is raised here, in
    its place. When this iterator is closed, so are the items, after the one that is being made.
    """
    reader = ThreadPoolExecutor(1, thread_name_prefix="discreet-reader")
    try:
        waiting = deque(reader.submit(next, items, _END) for _ in range(depth))
        while (item := waiting.popleft().result()) is not _END:
            waiting.append(reader.submit(next, items, _END))
            yield item
            del item  # or it would be kept until the next one is there
    finally:
        reader.shutdown(cancel_futures=True)
        items.close()
