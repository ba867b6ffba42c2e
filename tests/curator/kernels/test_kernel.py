"""Kernels and numba's cache on disk."""

import pickle
from pathlib import Path

import numba
import numpy as np
import pytest

from discreet.curator.kernels.kernel import Kernel
from discreet.curator.kernels.moments import row_sums


def total():
    """Run a loop of a fresh process' kernel: what it adds up, and how often numba's cache knew it."""
    out = np.zeros(2, dtype=np.int64)
    kernel = Kernel(row_sums.py_func, _nrt=False)
    kernel(np.array([[1, 2]], dtype=np.int16), np.array([3]), out)
    return out.tolist(), sum(kernel.compiled.stats.cache_hits.values())


@pytest.fixture
def index(monkeypatch, tmp_path):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    assert total() == ([3, 6], 0)
    (written,) = tmp_path.rglob("*.nbi")
    return written


def test_an_index_of_any_bytes_is_replaced(index):
    honest, rng = index.read_bytes(), np.random.default_rng(0)
    cut = [honest[: len(honest) * part // 8] for part in (0, 5)]
    flipped = [honest[:place] + bytes([honest[place] ^ 255]) + honest[place + 1 :] for place in (0, 9, 36)]
    for content in (*cut, *flipped, pickle.dumps(numba.__version__) + rng.bytes(40), b"garbage"):
        index.write_bytes(content)
        assert total()[0] == [3, 6], content
    assert total() == ([3, 6], 1)


def test_an_index_that_cannot_be_replaced_costs_the_cache_alone(index, monkeypatch):
    def refuse(self, missing_ok=False):
        raise PermissionError

    index.write_bytes(b"garbage")
    monkeypatch.setattr(Path, "unlink", refuse)
    assert total() == ([3, 6], 0)
    assert index.read_bytes() == b"garbage"


def test_what_only_kernels_call_refuses_a_call_by_python():
    from discreet.curator.kernels.encode import ceil_sqrt

    with pytest.raises(TypeError, match="only kernels"):
        ceil_sqrt(9)
    assert ceil_sqrt.py_func(9) == 3
