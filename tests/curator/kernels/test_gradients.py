"""Sums over batches of any size are those of the kernels that go row by row."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from discreet.curator.kernels import gradients
from discreet.losses import Huber, Logistic
from tests.covering import covering

SIZES = (0, 1, 2, 3, 4, 5, 8, 9, gradients.BLOCK - 1, gradients.BLOCK, gradients.BLOCK + 1, 3 * gradients.BLOCK + 2)
N = 200


def problem(columns, dtype):
    rng = np.random.default_rng(columns)
    one = 1 << (14 if dtype == np.int16 else 21)
    rows = np.where(rng.random((N, columns)) < 0.4, rng.integers(-one, one, (N, columns)), 0).astype(dtype)
    facts = np.column_stack([rng.choice([-1.0, 1.0], N), rng.choice([1.0, 0.5], N), rng.integers(0, 1 << 20, N)])
    w = rng.integers(-(2**26), 2**26, columns).astype(np.int32)
    return rows, facts, w, (2.0**-40 * (2**14 / one), 2.0**19), rng


@pytest.mark.few(4)
@covering(("columns", [1, 5, 33, 100]), ("dtype", [np.int16, np.int32]), ("loss", [Logistic(), Huber(0.5)]))
def test_batches_are_sums_of_rows(columns, dtype, loss):
    rows, facts, w, scales, rng = problem(columns, dtype)
    compressed = csr_array(rows)
    entries = compressed.indptr.astype(np.int64), compressed.indices.astype(np.int32), compressed.data
    for size in SIZES:
        chosen = np.sort(rng.choice(N, size, replace=False))
        expected, batch, sparse_batch, sparse_rows = (np.zeros((1, columns), dtype=np.int64) for _ in range(4))
        gradients.gradient_over_rows(rows, facts, chosen, w[None], *scales, False, loss, expected)
        gradients.gradient_over_batch(rows, facts, chosen, w, *scales, loss, batch[0])
        gradients.gradient_over_sparse_batch(*entries, facts, chosen, w, *scales, loss, sparse_batch[0])
        gradients.gradient_over_sparse_rows(*entries, facts, chosen, w[None], *scales, False, loss, sparse_rows)
        assert (batch == expected).all()
        assert (sparse_batch == expected).all()
        assert (sparse_rows == expected).all()
        assert expected.any() or size < 8
