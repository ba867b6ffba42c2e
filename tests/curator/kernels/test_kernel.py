"""Kernels and numba's cache on disk."""

import pickle

import numba
import numpy as np

from discreet.curator.kernels.kernel import Kernel
from discreet.curator.kernels.moments import row_sums


def test_an_index_of_another_version_is_replaced(monkeypatch, tmp_path):
    """An index that names a class of a module that is gone: numba reads it before it looks at its date."""

    def total():
        out = np.zeros(2, dtype=np.int64)
        kernel = Kernel(row_sums.py_func, _nrt=False)
        kernel(np.array([[1, 2]], dtype=np.int16), np.array([3]), out)
        return out.tolist(), sum(kernel.compiled.stats.cache_hits.values())

    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    assert total() == ([3, 6], 0)
    (index,) = tmp_path.rglob("*.nbi")
    index.write_bytes(pickle.dumps(numba.__version__) + b"cdiscreet.losses.gone\nLoss\n.")
    assert total() == ([3, 6], 0)
    assert total() == ([3, 6], 1)
