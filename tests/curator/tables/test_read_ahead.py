"""Reading ahead changes nothing but time: order, errors, memory and the end are those of the items themselves."""

import threading
import time

import pytest

from discreet.curator.tables.files import read_ahead


def readers():
    return [thread for thread in threading.enumerate() if thread.name.startswith("discreet-reader")]


def counted(n, made, closed):
    try:
        for i in range(n):
            made.append(i)
            yield i
    finally:
        closed.append(threading.current_thread().name)


def test_an_error_comes_in_its_place():
    def broken():
        yield 1
        yield 2
        raise ValueError("the third")

    items = read_ahead(broken())
    assert [next(items), next(items)] == [1, 2]
    with pytest.raises(ValueError, match="the third"):
        next(items)
    assert readers() == []


def test_who_stops_early_leaves_no_thread():
    made, closed = [], []
    for i in read_ahead(counted(1000, made, closed)):
        if i == 3:
            break
    time.sleep(0.05)
    assert readers() == []
    assert len(closed) == 1
