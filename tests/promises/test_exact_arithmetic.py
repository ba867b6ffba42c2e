"""Sums are exact integers: the same whatever the order, the threads and the storage, and within 64 bits."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numba import njit

from discreet.curator.kernels import kernel
from discreet.curator.kernels.encode import ceil_sqrt
from discreet.curator.kernels.kernel import bound_vector
from discreet.curator.lattice import (
    COARSE,
    FINE,
    PRIVATE_N_CAP,
    place_weights,
    unit_for,
)
from discreet.curator.records import admission
from discreet.errors import Unsupported
from tests.promises.reference import LOSSES, bounds_for, contribution, encode_row, engine_for, query_for, records_of

# --- compiled kernels are plain Python integers ------------------------------------------------------


EDGES = [np.nan, np.inf, 1e308, -1e308, 5e-324, 0.0, 1.0, -1.0, 0.5 / 16384, 1.5 / 16384, -2.5 / 16384]
cells = st.one_of(st.sampled_from(EDGES), st.floats(-1.5, 1.5), st.floats(width=64))
rows = st.lists(st.lists(cells, min_size=3, max_size=3), min_size=1, max_size=5)


def plain_total(X, y, bounds, groups, query, intercept):
    """The whole path from floats to the sum, in Python."""
    scaling = admission.scaling_for(bounds, X.shape[1], None, intercept)
    total = np.zeros(query.weights.integers.shape, dtype=object)
    for row, target, name in zip(X.tolist(), y, groups, strict=True):
        integers = encode_row(row, np.isfinite(target), scaling)
        total += np.array(contribution(integers, target, list(groups).count(name), query, scaling.grid), dtype=object)
    return total.tolist()


def check(loss, table, w, bounds, use_l1, clip, persons, intercept):
    X = np.array(table, dtype=np.float64)
    y = np.resize([1.0, 0.0, np.nan, 1.0], len(X)) * (2 if loss.n_outputs > 1 else 1)
    groups = np.arange(len(X)) // (2 if persons else 1)
    for stored in (X, sp.csr_matrix(X)):
        records = records_of(stored, y, bounds, groups if persons else None, intercept)
        query = query_for(records, loss, w, clip=clip, use_l1=use_l1)
        compiled = query.over(engine_for(records, threads=1)).tolist()
        assert compiled == plain_total(X, y, bounds, groups, query, intercept)


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)
@settings(max_examples=40, deadline=None)
@given(
    table=rows, w=st.lists(st.floats(-5, 5), min_size=1, max_size=4), use_l1=st.booleans(), persons=st.booleans(),
    clip=st.sampled_from([1e-5, 0.3, 100.0]), longest=st.sampled_from([None, 1.0, 0.05]), intercept=st.booleans(),
)  # fmt: skip
def test_the_compiled_sum_is_the_plain_sum(loss, table, w, use_l1, persons, clip, longest, intercept):
    check(loss, table, w, bounds_for(loss, row_norm=longest), use_l1, clip, persons, intercept)


@pytest.mark.thorough
@settings(max_examples=40, deadline=None)
@given(table=rows, w=st.lists(st.floats(-5, 5), min_size=1, max_size=4), softmax=st.booleans())
def test_also_on_the_fine_grid(table, w, softmax):
    loss = LOSSES[5 if softmax else 0]
    features = [(-1.0, 1.0), (0.0, 1e-3), (-1e5, 2.0)]
    check(loss, table, w, bounds_for(loss, features, scale="global", row_norm=0.8), False, 0.3, False, True)


@settings(max_examples=300, deadline=None)
@given(
    values=st.lists(st.one_of(st.floats(width=64), st.floats(-1e9, 1e9)), min_size=2, max_size=12),
    limit=st.one_of(st.integers(0, 2**30), st.integers(0, 5)), use_l1=st.booleans(),
)  # fmt: skip
def test_the_clip_of_a_vector_holds_for_every_bit_pattern(values, limit, use_l1):
    out = np.empty(len(values), dtype=np.int64)
    bound_vector(np.array(values), limit, use_l1, out)
    integers = [int(v) for v in out]
    assert (sum(map(abs, integers)) if use_l1 else sum(v * v for v in integers)) <= (limit if use_l1 else limit**2)
    assert all(c == 0 or (c > 0) == (v > 0) for c, v in zip(integers, values, strict=True))


# --- one set of records has one sum ------------------------------------------------------------------


N, P = 1000, 7
each_loss = pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)


@pytest.fixture(autouse=True)
def _split_even_small_sums(monkeypatch):
    monkeypatch.setattr(kernel, "_LEAST_WORK", 1)


def random_table(loss, seed=0, n=N):
    """A table with clipped, null, empty and ordinary rows, its targets, and weights."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, P)) * rng.choice([0.0, 0.1, 1.0, 30.0], size=(n, P))
    X[::97, 2] = np.nan
    X[::89] = 0.0
    y = rng.integers(0, loss.n_outputs, n) if loss.n_outputs > 1 else rng.choice([-1.0, 1.0], n)
    y = np.abs(y) if type(loss).__name__ == "Poisson" else y.astype(float)
    y[::101] = np.nan
    return X, y, rng.standard_normal((P + 1) * loss.n_outputs)


def total(X, y, loss, w, *, groups=None, units=None, use_l1=False, clip=0.3, **options):
    records = records_of(X, y, bounds_for(loss), groups)
    query = query_for(records, loss, w, units=units, use_l1=use_l1, clip=clip)
    return query.over(engine_for(records, **options))


@each_loss
@pytest.mark.parametrize("use_l1", [False, True], ids=["l2", "l1"])
def test_order_and_storage_and_sampling_all(loss, use_l1):
    X, y, w = random_table(loss)
    first = total(X, y, loss, w, use_l1=use_l1, threads=1)
    order = np.random.default_rng(1).permutation(N)
    assert first.any()
    for storage in (np.asarray, sp.csr_matrix, sp.coo_array):
        for units in (None, np.arange(N)):
            other = total(storage(X[order]), y[order], loss, w, use_l1=use_l1, units=units, threads=2)
            assert (other == first).all()


@each_loss
def test_threads_and_tiles(loss):
    X, y, w = random_table(loss)
    first = total(X, y, loss, w, threads=1, tile_rows=64)
    for count in (1, 2, 3):
        for rows in (64, 128, 1024, 37, 1):
            assert (total(X, y, loss, w, threads=count, tile_rows=rows) == first).all()
        assert (total(sp.csr_matrix(X), y, loss, w, threads=count) == first).all()


@each_loss
def test_persons_too(loss):
    use_l1 = loss in LOSSES[::2]
    X, y, w = random_table(loss)
    rng = np.random.default_rng(2)
    groups = rng.integers(0, 300, N)
    first = total(X, y, loss, w, groups=groups, use_l1=use_l1, threads=1)
    order = rng.permutation(N)
    persons = len(np.unique(groups))
    for table in (X[order], sp.csr_matrix(X[order])):
        for units in (None, np.arange(persons)):
            moved = total(table, y[order], loss, w, groups=groups[order], units=units, use_l1=use_l1, threads=3)
            assert (moved == first).all()


@pytest.mark.parametrize("grouped", [False, True], ids=["records", "persons"])
def test_every_sparse_format_is_admitted(grouped):
    loss = LOSSES[0]
    X, y, w = random_table(loss, n=60)
    X = np.nan_to_num(X)
    groups = np.arange(60) // 3 if grouped else None
    for storage in (sp.coo_matrix, sp.csc_matrix, sp.lil_matrix, sp.dok_array, sp.bsr_array, sp.dia_matrix):
        assert (total(storage(X), y, loss, w, groups=groups) == total(X, y, loss, w, groups=groups)).all()


def test_the_environment_chooses_the_number_of_threads(monkeypatch):
    for wanted in (1, 2, 3):
        monkeypatch.setenv(kernel.VARIABLE, str(wanted))
        assert kernel.thread_count() == wanted
    for junk in ("0", "-1", "x", ""):
        monkeypatch.setenv(kernel.VARIABLE, junk)
        assert kernel.thread_count() >= 1


# --- the lattice, in fractions -----------------------------------------------------------------------


LARGEST = 2**63 - 1
GAUSSIAN_REACH, LAPLACE_REACH = 14, 91  # noise of scale 2^m is below these multiples of 2^m: the tables' lengths

multipliers = st.one_of(st.floats(1e-3, 1e6), st.floats(0.3, 30), st.integers(-60, 20).map(lambda e: 2.0**e))
counts = st.one_of(st.integers(1, 2**40), st.sampled_from([1, 2, 1000, 2**20, 2**26, 2**31, PRIVATE_N_CAP]))


@settings(max_examples=400, deadline=None)
@given(z=multipliers, factor=st.sampled_from([1, 2]), clip=st.sampled_from([1e-9, 1.0, 3.7]), n=counts)
@example(z=1e-15, factor=1, clip=1.0, n=2**26)
@example(z=1e-21, factor=1, clip=1.0, n=2**26)
@example(z=4.221, factor=2, clip=1.0, n=1)
def test_noise_is_never_below_the_calibrated_and_sums_fit(z, factor, clip, n):
    try:
        unit = unit_for(z, factor, clip, n)
    except Unsupported:
        assert z * factor >= 1 or n > 2**36  # ordinary plans are not refused
        return
    realized = Fraction(1 << unit.m, factor * unit.bound)
    assert realized >= Fraction(z)
    for reach in (GAUSSIAN_REACH, LAPLACE_REACH):
        assert n * unit.bound + reach * (1 << unit.m) <= LARGEST
    assert abs(unit.step * unit.bound / clip - 1) < 1e-15


@settings(max_examples=200, deadline=None)
@given(z=st.floats(0.1, 1e4), factor=st.sampled_from([1, 2]), n=st.integers(1, 10**9))
def test_and_hardly_above_it(z, factor, n):
    unit = unit_for(z, factor, 1.0, n)
    assert Fraction(1 << unit.m, factor * unit.bound) <= Fraction(z) * (1 + Fraction(1, 10_000))


def test_without_noise_sums_fit_too():
    for n in (1, 1000, 2**26, 2**40):
        unit = unit_for(0.0, 2, 1.0, n)
        assert unit.m is None
        assert n * unit.bound <= LARGEST


def test_a_multiplier_beyond_the_lattice_is_refused():
    with pytest.raises(Unsupported, match="raise epsilon"):
        unit_for(1e18, 1, 1.0, 1000)
    for clip in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(Unsupported, match="clip"):
            unit_for(1.0, 1, clip, 1000)


@pytest.mark.parametrize("clip", [5e-324, 1e-315, 1e-300, 1e300])
def test_a_clip_whose_step_underflows_is_refused_or_usable(clip):
    try:
        unit = unit_for(1.0, 1, clip, 1000)
        scale = unit.coefficient_scale(COARSE)
    except Unsupported:
        return
    assert unit.step > 0
    assert 0 < scale < float("inf")


sizes = st.one_of(st.floats(allow_nan=False, allow_infinity=False), st.floats(-10, 10), st.just(0.0))


@settings(max_examples=100, deadline=None)
@given(
    w=st.lists(sizes, min_size=1, max_size=40),
    copies=st.sampled_from([1, 1, 1, 1000]),
    grid=st.sampled_from([COARSE, FINE]),
)
@example(w=[1.7e308] * 40, copies=1000, grid=FINE)
@example(w=[5e-324], copies=1, grid=COARSE)
@pytest.mark.filterwarnings("error")
def test_no_record_can_make_a_margin_overflow(w, copies, grid):
    placed = place_weights(np.array(w * copies), grid)
    worst = sum(abs(int(v)) for v in placed.integers[0]) * grid.one
    assert worst < 2**62
    top = max(map(abs, w))
    for given_weight, integer in zip(w, placed.integers[0].tolist(), strict=False):
        real = Fraction(integer) * Fraction(2) ** -placed.shift
        assert abs(real - Fraction(given_weight)) <= Fraction(top) * Fraction(len(w) * copies, 2**30)


def test_margins_of_millions_of_columns_do_not_overflow():
    for p in (2**17 + 1, 2**21):
        placed = place_weights(np.full(p, 0.3), FINE)
        assert int(np.abs(placed.integers[0].astype(np.int64)).sum()) * FINE.one < 2**62


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_weights_that_are_not_finite_are_refused(bad):
    with pytest.raises(Unsupported, match="finite"):
        place_weights(np.array([1.0, bad]), COARSE)


@njit
def compiled_root(s):
    """Only kernels call it."""
    return ceil_sqrt(s)


@settings(max_examples=300, deadline=None)
@given(s=st.one_of(st.integers(0, 2**62 - 1), st.integers(1, 2**31 - 1).map(lambda r: r * r)), off=st.integers(-1, 1))
def test_the_ceiling_of_a_root_is_exact(s, off):
    s = min(max(s + off, 0), 2**62 - 1)
    r = int(compiled_root(s))
    assert r * r >= s
    assert r == 0 or (r - 1) * (r - 1) < s
