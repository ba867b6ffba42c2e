"""Noisy counts: the exact sum, the noise, and what is refused."""

import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from discreet.accounting.certificate import QUERY
from discreet.accounting.plan import Plan, Release
from discreet.accounting.pricing import price_plan
from discreet.bounds import Bounds
from discreet.budget import Budget
from discreet.curator import PrivateData
from discreet.curator.noise import SeededEntropy, use_entropy
from discreet.curator.queries.counts import planned_counts
from discreet.errors import PlanViolation, Unsupported
from discreet.losses import Logistic
from tests.covering import covering
from tests.curator.queries.counting import count_once
from tests.priced import at_noise
from tests.replaying import window

PLAN = Plan([Release(QUERY, 1), Release("noisy_gradient", 3)])
RELATIONS = ("replace_one", "zero_out", "add_remove")


def budget_of(relation="replace_one", *, pure=False):
    return Budget(1.0, 0.0 if pure else 1e-6, relation)


def measured(blocks, size, per_record, *, shares=None, budget=None, n=10, noise_multiplier=2.0):
    """The measurement, and what was answered."""
    budget = budget_of() if budget is None else budget
    n = n if budget.neighbors.n_is_public else None
    with window() as seen:
        found = count_once(PLAN, budget, noise_multiplier, iter(blocks), size, per_record, n=n, shares=shares)
    assert [one.query for one in seen] == [QUERY]
    return seen[0], found


def one_of(measurement, per_record):
    """b, in Python's integers."""
    bound = measurement.unit.bound
    return bound // per_record if measurement.norm == "l1" else math.isqrt(bound**2 // per_record)


def by_hand(rows, shares, size, one):
    total = [0] * size
    for row, share in zip(rows, shares, strict=True):
        for cell in {cell for cell in row if 0 <= cell < size}:
            total[cell] += one // share if share > 0 else 0
    return total


rows_of = st.integers(1, 5).flatmap(
    lambda m: st.lists(
        st.tuples(
            st.lists(st.integers(-2, 8) | st.sampled_from([-(1 << 63), (1 << 63) - 1]), min_size=m, max_size=m),
            st.integers(-1, 4),
        ),
        min_size=1,
        max_size=9,
    )
)


@given(rows_of, st.sampled_from(RELATIONS), st.booleans(), st.integers(1, 4))
def test_the_sum_is_that_of_pythons_integers(drawn, relation, pure, step):
    """Cells named twice, cells that do not exist and shares that make no sense among them; in blocks of any size."""
    rows, shares = zip(*drawn, strict=True)
    cells, share = np.array(rows, dtype=np.int64), np.array(shares, dtype=np.int64)
    pieces = [slice(first, first + step) for first in range(0, len(cells), step)]
    blocks, beside = [cells[piece] for piece in pieces], [share[piece] for piece in pieces]
    seen, _ = measured(blocks, 7, cells.shape[1], shares=beside, budget=budget_of(relation, pure=pure))
    assert seen.exact.tolist() == by_hand(rows, shares, 7, one_of(seen, cells.shape[1]))


@covering(("pure", [False, True]), ("relation", RELATIONS))
def test_the_bound_is_used_up(relation, pure):
    """A row that is in as many cells as it may be: within a millionth of the bound, at the factor of the proof."""
    seen, _ = measured([np.arange(36)[None, :]], 40, 36, budget=budget_of(relation, pure=pure))
    size = seen.exact.sum() if pure else np.linalg.norm(seen.exact.astype(float))
    assert 1 - 1e-6 <= size / seen.unit.bound <= 1 + 1e-12
    expected = 1.0 if relation != "replace_one" else 2.0 if pure else math.sqrt(2)
    assert expected <= float(seen.factor) <= expected * (1 + 1e-9)
    assert 2.0**seen.unit.m / (float(seen.factor) * seen.unit.bound) >= 2.0 * (1 - 1e-12)


@pytest.mark.statistical
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("pure", [False, True])
def test_the_noise_is_what_was_planned_and_what_is_said(pure, relation):
    """40,000 empty cells, at a significance of 1e-6; noise a tenth too small would be noticed."""
    budget, m = budget_of(relation, pure=pure), 12
    found = count_once(PLAN, budget, 3.0, [np.full((5, m), -1)], 40_000, m, n=5)
    factor = {True: 2.0, False: math.sqrt(2)}[pure] if relation == "replace_one" else 1.0
    scale = 3.0 * factor * (m if pure else math.sqrt(m))
    law = stats.laplace(scale=scale) if pure else stats.norm(scale=scale)
    assert found.noise_std == pytest.approx(law.std(), rel=1e-3)
    assert stats.kstest(found.counts, law.cdf).pvalue > 1e-6
    assert stats.kstest(found.counts * 0.9, law.cdf).pvalue < 1e-6


def test_noise_is_drawn_before_a_record_is_read():
    events, entropy = [], SeededEntropy(1)
    draw = entropy.words
    entropy.words = lambda count: events.append("noise") or draw(count)

    def read():
        events.append("records")
        yield np.zeros((1, 1), dtype=np.int64)

    with use_entropy(entropy):
        count_once(PLAN, budget_of(), 2.0, read(), 4, 1, n=1)
    assert events[-1] == "records"
    assert events[0] == "noise"


def unread():
    raise AssertionError("a record was read")
    yield


@pytest.mark.parametrize(("size", "per_record"), [(0, 1), (1, 0), (4, 1 << 45)])
def test_what_cannot_be_counted_is_refused_before_records_are_read(size, per_record):
    with pytest.raises(Unsupported):
        count_once(PLAN, budget_of(pure=True), 2.0, unread(), size, per_record, n=1)


def test_memory_is_that_of_the_cells_and_one_block():
    def blocks():
        for _ in range(100):
            yield np.zeros((10_000, 4), dtype=np.int64)  # 0.3 MB each, 32 MB in all

    measured([np.zeros((1, 4), dtype=np.int64)], 8, 4)
    tracemalloc.start()
    try:
        count_once(PLAN, budget_of(), 2.0, blocks(), 8, 4, n=1_000_000)
        assert tracemalloc.get_traced_memory()[1] < 2e6
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("pure", [False, True], ids=["gaussian", "laplace"])
@pytest.mark.parametrize("n", [10**9, 1 << 40, 1 << 62, 1 << 70])
def test_a_private_n_is_counted_however_large_it_is(n, pure):
    """One that raised would tell n, after the charge."""
    data = PrivateData(np.ones((4, 1)), [0, 1, 1, 0], Bounds(1.0, classes=(0, 1)))
    budget = Budget(1.0, 0.0 if pure else 1e-6, "add_remove")
    answers = []
    for units in (n, n + 1):
        with window() as seen, use_entropy(SeededEntropy(3)):
            curator = data.open(price_plan(Plan([Release("noisy_count", 1)]), budget), Logistic())
            curator._session.engine.n_units = units
            assert curator.noisy_count() == pytest.approx(n, rel=1e-6)
        answers.append(seen[0])
    first, second = answers
    assert int(second.exact[0]) - int(first.exact[0]) == first.unit.bound
    assert (second.noisy - second.exact == first.noisy - first.exact).all()


@pytest.mark.parametrize("rows", [1 << 30, 1 << 62, -(1 << 63)])
def test_counts_of_cells_wrap_around_and_never_raise(rows):
    """Of tables whose rows are counted elsewhere: modulo 2^64, for both neighbors alike."""
    counted = {1: np.full(3, rows, dtype=np.int64)}
    with window() as seen:
        count_once(PLAN, budget_of("add_remove"), 2.0, lambda: counted, 3, 1, n=None)
    one = one_of(seen[0], 1)
    assert [int(cell) % (1 << 64) for cell in seen[0].exact] == [one * rows % (1 << 64)] * 3


def test_counts_are_released_once_and_take_no_more_rows():
    """The difference of two answers with one noise would be exact."""
    counts = planned_counts(at_noise(PLAN, budget_of(), 2.0), 4, 3, 1)
    counts.add(np.zeros((4, 1), dtype=np.int64))
    counts.released()
    for again in (
        counts.released,
        lambda: counts.add(np.zeros((1, 1), dtype=np.int64)),
        lambda: counts.add_counts({1: 1}),
    ):
        with pytest.raises(PlanViolation, match="have been released"):
            again()
