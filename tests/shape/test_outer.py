"""Moments against plain Python integers: exact for every size, with and without the shortcut for rows that fit."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from discreet import Logistic
from discreet.curator.engines.base import MomentQuery
from discreet.curator.engines.choice import engine_for
from discreet.curator.engines.moments import square_shift
from discreet.curator.recode import recoded
from discreet.curator.recoding import Recoding
from discreet.errors import Unsupported
from tests.shape.cases import asked, budget_of, ceil_norm, dense_of, records_of

BLOCK = 4096


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
    shift = square_shift(records)
    total = 0
    for row, k in zip(rows, shares, strict=True):
        vector = {"mean": row, "squares": [int(x) * int(x) >> shift for x in row], "outer": row}[kind]
        vector = np.array(vector, dtype=object)
        reach = sum(map(abs, vector)) if query.use_l1 else ceil_norm(vector)
        if reach == 0:
            continue
        reach = reach**2 if kind == "outer" else reach
        scale = query.scale * 2.0**shift if kind == "squares" else query.scale
        c = min(math.floor(1.0 / k * scale), query.bound // k // reach)
        c = min(c, 1 << 30) if kind == "mean" else c
        total = total + c * (np.outer(vector, vector) if kind == "outer" else vector)
    return total


def same(records, query, kind):
    engine = engine_for(records)
    found = {"mean": engine.mean_sum, "squares": engine.diagonal_sum, "outer": engine.outer_sum}[kind](query)
    assert found.dtype == np.int64
    np.testing.assert_array_equal(found.astype(object), by_hand(records, query, kind))


LONG = 1 << 40  # longer than any row: the general path


@pytest.mark.parametrize("n", [1, 2, 7, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK + 13])
def test_blocks_of_any_number_of_rows(n):
    records, _ = made(n, 2, extreme=True)
    for bound in (1 << 16, (1 << 33) + 12345, 1 << 40):
        scale = max(1.0, bound / 2**29)
        same(records, MomentQuery(bound, scale, LONG), "outer")


@pytest.mark.parametrize("p", [1, 2, 3, 5, 16, 33, 70])
@pytest.mark.parametrize("bound", [1 << 16, (1 << 25) - 1, (1 << 40) - 7, 1 << 40])
@pytest.mark.parametrize("kind", ["mean", "squares", "outer"])
def test_any_number_of_columns(p, bound, kind):
    for extreme in (False, True):
        records, _ = made(60, p, seed=p, extreme=extreme)
        for use_l1 in (False, True):
            same(records, MomentQuery(bound, max(1.0, bound / 2**28), LONG, use_l1), kind)
            same(records, MomentQuery(bound, 1.7, LONG, use_l1), kind)


@pytest.mark.parametrize("kind", ["mean", "squares", "outer"])
@pytest.mark.parametrize("seed", range(3))
def test_persons_of_any_number_of_rows(kind, seed):
    rng = np.random.default_rng(seed)
    groups = np.concatenate([np.repeat(np.arange(12), rng.integers(1, 40, 12)), [99] * 300])
    records, _ = made(len(groups), 3, seed, rng.permutation(groups))
    for bound in (1 << 20, (1 << 39) + 1):
        for use_l1 in (False, True):
            same(records, MomentQuery(bound, max(2.0, bound / 2**29), LONG, use_l1), kind)


@pytest.mark.parametrize("kind", ["mean", "squares"])
@pytest.mark.parametrize("grouped", [False, True])
def test_compressed_rows(kind, grouped):
    records, _ = made(200, 6, stored="sparse", groups=np.arange(200) // 7 if grouped else None)
    for use_l1 in (False, True):
        same(records, MomentQuery((1 << 36) + 3, 55.5, LONG, use_l1), kind)


@pytest.mark.parametrize("kind", ["mean", "squares", "outer"])
def test_the_fine_grid(kind):
    records, _ = made(40, 3, fine=True)
    small = records_of(np.random.default_rng(0).uniform(-0.01, 0.01, (40, 3)), np.ones(40), fine=True, intercept=False)
    for table in (records, small[0]):
        for use_l1 in (False, True):
            same(table, MomentQuery(1 << 40, 3.5, LONG, use_l1), kind)


@settings(max_examples=40)
@given(st.integers(1, 6), st.integers(1, 40), st.integers(16, 40), st.floats(1.0, 1e6), st.integers(0, 99))
def test_the_shortcut_is_the_general_path(p, n, bits, scale, seed):
    """A ``longest`` that is true changes nothing but the time."""
    records, domain = made(n, p, seed)
    if seed % 2:
        rng = np.random.default_rng(seed)
        recoding = Recoding(rng.uniform(-1, 1, p), rng.uniform(0.1, 2, p), 0.3, float(rng.uniform(0.1, 3)))
        records, domain = recoded(records, recoding, domain, numeric_target=False), recoding.domain(domain)
    true = math.ceil(domain.row_norm * records.grid.one)
    assert records.norms.max(initial=0) <= true
    general = engine_for(records).outer_sum(MomentQuery(1 << bits, scale, LONG))
    np.testing.assert_array_equal(engine_for(records).outer_sum(MomentQuery(1 << bits, scale, true)), general)


@pytest.mark.parametrize("row_norm", [0.3, 1.0, None])
def test_what_is_said_of_the_longest_row_is_true(row_norm):
    """Rows at the very corner of what is declared."""
    from discreet import Bounds

    X = np.vstack([np.ones(7), -np.ones(7), np.eye(7), np.full(7, 1e300)])
    bounds = Bounds([(-1, 1)] * 3 + [(-3, 0.1)] * 4, row_norm=row_norm, classes=(-1, 1))
    for intercept in (False, True):
        records, domain = records_of(X, np.ones(len(X)), intercept=intercept, bounds=bounds, loss=Logistic())
        assert records.norms.max() <= math.ceil(domain.row_norm * records.grid.one)


def test_largest_bounds_and_largest_blocks_stay_below_53_bits():
    """A full block of rows at the bound: the largest sums that double precision must hold exactly."""
    records, _ = records_of(np.ones((BLOCK, 1)), np.ones(BLOCK), intercept=False)
    same(records, MomentQuery(1 << 40, 4096.0, LONG), "outer")
    odd, _ = records_of(np.full((BLOCK, 1), 1 - 2.0**-14), np.ones(BLOCK), intercept=False)
    same(odd, MomentQuery((1 << 40) - 1, 4097.0, LONG), "outer")


def test_what_cannot_be_exact_is_refused():
    records, _ = made(5, 2)
    for query in (MomentQuery((1 << 41) + 1, 2.0, LONG), MomentQuery(1 << 30, 0.9, LONG)):
        with pytest.raises(Unsupported):
            engine_for(records).outer_sum(query)
    with pytest.raises(Unsupported, match="diagonal"):
        engine_for(made(5, 2, stored="sparse")[0]).outer_sum(MomentQuery(1 << 30, 2.0, LONG))


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_threads_give_the_same_sums(threads):
    records, _ = made(9000, 150, groups=None)
    query = MomentQuery(1 << 38, 1000.0, LONG)
    one, many = engine_for(records, threads=1), engine_for(records, threads=threads)
    np.testing.assert_array_equal(one.mean_sum(query), many.mean_sum(query))
    np.testing.assert_array_equal(one.outer_sum(query), many.outer_sum(query))


@pytest.mark.parametrize("query", ["noisy_mean", "noisy_mean_squares", "noisy_second_moment"])
@pytest.mark.parametrize("rows", [0, 1])
def test_empty_tables(query, rows):
    """Under add_remove a table may hold nobody."""
    measurement = asked(query, np.zeros((rows, 2)), np.zeros(rows), budget=budget_of("add_remove"))
    assert not measurement.exact.any()
