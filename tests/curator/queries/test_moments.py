"""Moments against plain Python integers: exact for every size, every bound, every number of threads."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from discreet.curator.engines import engine_for
from discreet.curator.kernels.moments import outer_sums
from discreet.curator.queries.moments import MomentQuery, outer_coefficients, square_shift
from discreet.errors import Unsupported
from tests.covering import covering
from tests.solvers.whitened.cases import ceil_norm, dense_of, records_of

STRIP, BLOCK = 256, 4096


def made(n, p, seed=0, groups=None, stored="dense", extreme=False, fine=False):
    rng = np.random.default_rng(seed)
    X = rng.choice([-1.0, 1.0, 0.0], (n, p)) if extreme else rng.uniform(-1, 1, (n, p))
    X[rng.uniform(size=n) < 0.1] = np.nan
    if stored == "sparse":
        X = sparse.csr_array(np.where(np.abs(X) < 0.5, 0.0, X))
    return records_of(X, np.ones(n), groups=groups, fine=fine)


def by_hand(records, query, kind):
    """The sum in unbounded integers, row by row."""
    rows = dense_of(records).astype(object)
    shares = np.ones(len(rows), dtype=object) if records.shares is None else records.shares.astype(object)
    shift = square_shift(records.n_columns, records.grid)
    total = 0
    for row, k in zip(rows, shares, strict=True):
        vector = {"mean": row, "squares": [int(x) * int(x) >> shift for x in row], "outer": row}[kind]
        vector = np.array(vector, dtype=object)
        reach = sum(map(abs, vector)) if query.use_l1 else ceil_norm(vector)
        if reach == 0:
            continue
        reach = reach**2 if kind == "outer" else reach
        scale = query.scale * 2.0**shift if kind == "squares" else query.scale
        c = min(math.floor(1.0 / k * min(scale, 2.0**50)), query.bound // k // reach)
        c = min(c, 1 << 30) if kind == "mean" else c
        total = total + c * (np.outer(vector, vector) if kind == "outer" else vector)
    return total


def same(records, query, kind):
    engine = engine_for(records)
    found = {"mean": query.mean_over, "squares": query.squares_over, "outer": query.outer_over}[kind](engine)
    assert found.dtype == np.int64
    np.testing.assert_array_equal(found.astype(object), by_hand(records, query, kind))


def added(rows, coefficients, before=0):
    """The kernel alone on a table that already holds a symmetric ``before``."""
    out = np.full((rows.shape[1], rows.shape[1]), before, dtype=np.int64)
    outer_sums(rows, coefficients, out)
    return out


def exactly(rows, coefficients):
    rows = rows.astype(object)
    return (rows * coefficients.astype(object)[:, None]).T @ rows


@pytest.mark.few(3)
@covering(
    ("p", [1, 2, 3, 4, 5, 7, 9]), ("n", [0, 1, 7, STRIP - 1, STRIP, STRIP + 1, 3 * STRIP, BLOCK - 1, BLOCK, BLOCK + 1])
)
def test_strips_of_any_number_of_rows_and_columns(n, p):
    """Around every length at which the kernel turns, adds up or flushes, for columns that do not fill a block."""
    rng = np.random.default_rng(n + p)
    for dtype, largest in ((np.int16, 32767), (np.int32, 1 << 19)):
        rows = rng.integers(-largest, largest + 1, (n, p)).astype(dtype)
        coefficients = rng.integers(0, (1 << 40) // largest**2 // p + 1, n)
        np.testing.assert_array_equal(added(rows, coefficients), exactly(rows, coefficients) if n else np.zeros((p, p)))


@covering(("seed", range(3)), ("kind", ["mean", "squares", "outer"]))
def test_persons_of_any_number_of_rows(kind, seed):
    rng = np.random.default_rng(seed)
    groups = np.concatenate([np.repeat(np.arange(12), rng.integers(1, 40, 12)), [99] * 300])
    records, _ = made(len(groups), 3, seed, rng.permutation(groups))
    for bound in (1 << 20, (1 << 39) + 1):
        for use_l1 in (False, True):
            same(records, MomentQuery(bound, max(2.0, bound / 2**29), use_l1), kind)


LIMIT = MomentQuery(1 << 40, 4095.0)
"""4095 (1 - 2^-14)^2 2^28 is odd and 2^-12 below 2^40."""


def largest(n, p=1):
    """Rows whose products are odd and as large as the bound allows: beyond 2^53 doubles would lose their last bit."""
    X = np.full((n, p), 1 - 2.0**-14)
    if p > 1:
        X[:, 1:] *= np.where(np.random.default_rng(0).uniform(size=(n, p - 1)) < 0.5, -1, 1) * 2.0**-14
    return records_of(X, np.ones(n), intercept=False)[0]


@pytest.mark.parametrize("n", [BLOCK, BLOCK + 1, 2 * BLOCK + 1, 3 * BLOCK + 1, 5 * BLOCK + 3])
def test_rows_at_the_largest_bound_over_many_blocks(n):
    """The largest sums that double precision must hold exactly, and sums far beyond them."""
    records = largest(n)
    product = 4095 * 16383**2
    assert (1 << 40) * 0.999 < product < 1 << 40
    assert LIMIT.outer_over(engine_for(records, threads=1)).tolist() == [[n * product]]
    for threads in (2, 3):
        assert LIMIT.outer_over(engine_for(records, threads=threads)).tolist() == [[n * product]]


def test_what_cannot_be_exact_is_refused():
    records, _ = made(5, 2)
    for query in (MomentQuery((1 << 40) + 1, 2.0), MomentQuery(1 << 30, 0.9)):
        with pytest.raises(Unsupported):
            query.outer_over(engine_for(records))
    with pytest.raises(Unsupported, match="diagonal"):
        MomentQuery(1 << 30, 2.0).outer_over(engine_for(made(5, 2, stored="sparse")[0]))


@pytest.mark.parametrize("use_l1", [False, True])
def test_lengths_whose_square_does_not_fit_have_no_coefficient(use_l1):
    """2^32 squared is 0 in 64 bits: such a row would have counted in full."""
    records, _ = made(6, 2, seed=1)
    lengths = np.array([1 << 31, (1 << 31) + 1, 1 << 32, (1 << 32) + 1, 1 << 40, 3 << 32])
    long = replace(records, norms=lengths, sums=lengths)
    assert not outer_coefficients(engine_for(long), MomentQuery(1 << 40, 1e6, use_l1)).any()


@pytest.mark.parametrize("p", [1, (1 << 18) + 1, (1 << 19) + 1])
def test_squares_of_very_wide_rows(p):
    """The sum of p fourth powers stays below 2^63, whatever the number of columns."""
    rows = np.full((2, p), -32767, dtype=np.int16)
    rows[1, 1:] = 0
    norms = np.array([math.isqrt(p * 32767**2) + 1, 32767])
    records = replace(made(2, 1)[0], rows=rows, norms=norms, sums=np.abs(rows.astype(np.int64)).sum(1), n_columns=p)
    square = 32767**2 >> square_shift(records.n_columns, records.grid)
    assert p * square**2 < 1 << 62
    for use_l1 in (False, True):
        reach = [k * square if use_l1 else math.isqrt(k * square**2 - 1) + 1 for k in (p, 1)]
        found = MomentQuery(1 << 40, 1e9, use_l1).squares_over(engine_for(records))
        rest = (1 << 40) // reach[0] * square
        assert found[0] == rest + (1 << 40) // reach[1] * square
        assert set(found[1:].tolist()) <= {rest}
