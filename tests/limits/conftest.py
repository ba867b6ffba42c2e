"""One thread for the oracles' small matrices, and what the default does not reach yet.

``misses.txt`` lists the cases that fail today: they may pass, and no other may fail. Take out what is mended.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from threadpoolctl import threadpool_limits

HERE = Path(__file__).parent
MISSES = frozenset((HERE / "misses.txt").read_text(encoding="utf-8").splitlines())


@pytest.fixture(autouse=True, scope="package")
def one_thread() -> Iterator[None]:
    with threadpool_limits(1):
        yield


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.parent == HERE and f"{item.path.name}::{item.name}" in MISSES:
            item.add_marker(pytest.mark.xfail(reason="not reached yet: misses.txt", strict=False))
