"""What one record, or one person, can add to a coordinate sum: integers within the bound, for any bits."""

import itertools
import math
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import Bounds, Budget
from discreet.accounting import Plan, Release, price_plan
from discreet.curator import PrivateData
from discreet.curator.engines.local import DenseEngine, SparseEngine
from discreet.curator.lattice.lattice import block_bounds, on_weight_grid, weight_scale
from discreet.curator.queries.coordinates import CoordinateQuery
from discreet.curator.queries.moments import SquareQuery
from discreet.curator.records import admission
from discreet.losses import Squared
from discreet.losses.base import Loss, derivative, one_output
from discreet.penalties import L1, NoPenalty
from tests.covering import covering
from tests.replaying import window
from tests.solvers.coordinates.tables import LOSSES, bounds_for, csr, drawn, forced, gradients, opened

JUNK = (np.nan, np.inf, -np.inf, 1e308, -1e308, 0.0, 5e-324, 1.0, -1.0, 0.3)
PURE = Budget(np.inf, 0.0, "zero_out")
NOT_PURE = Budget(np.inf, 1e-6, "zero_out")


def within(measurement):
    q, bound = [int(v) for v in measurement.exact], measurement.unit.bound
    total = sum(abs(v) for v in q) if measurement.norm == "l1" else sum(v * v for v in q)
    return total <= (bound if measurement.norm == "l1" else bound * bound)


@pytest.mark.parametrize("budget", [PURE, NOT_PURE], ids=["l1", "l2"])
@pytest.mark.parametrize("name", LOSSES)
def test_one_record_of_junk(name, budget):
    """A table of one record: its exact sum is its contribution."""
    loss, rng = LOSSES[name], np.random.default_rng(1)
    rows = [np.array(row) for row in itertools.product(JUNK[:5], JUNK[6:8])]
    rows += list(rng.choice(JUNK, (10, 2)))
    clips = np.array([1e-3, 5.0])
    for i, row in enumerate(rows):
        target = JUNK[i % len(JUNK)]
        for X in (row[None, :], csr(row[None, :])):
            curator = opened(X, np.array([target]), loss, gradients(), budget=budget)
            with window() as seen:
                for w in (np.zeros(2), np.array([1000.0, -30.0]), np.array([-3e4, 1e3])):
                    curator.noisy_coordinate_gradient(w, [0], clips=[1e-6])
                    curator.noisy_coordinate_gradient(w, [1, 0], clips=clips)
            assert all(within(measurement) for measurement in seen)
            assert all(measurement.exact.dtype == np.int64 for measurement in seen)


class _Fields(NamedTuple):
    size: float = 1.0


class JunkSlope(_Fields, Loss):
    """A loss of somebody's own, whose slope is NaN for one class and infinite for the other where the margin is 0."""

    __slots__ = ()
    task = "classification"
    smoothness = 1.0


@derivative.of(JunkSlope)
def _junk(loss, margin, target):
    return target if margin != 0.0 or target == 0.0 else (math.nan if target < 0 else math.inf)


one_output(JunkSlope)


@covering(("sparse", [False, True]), ("label", [0, 1]))
def test_a_null_record_adds_nothing_whatever_its_slope(label, sparse):
    """Else it would add -B where another record adds B: twice the sensitivity under zero_out and add_remove."""
    rows = np.array([[np.nan, 0.5]])
    data = PrivateData(csr(rows) if sparse else rows, [label], Bounds(1.0, classes=(0, 1)), ledger=False)
    curator = data.open(price_plan(Plan([gradients()]), NOT_PURE), JunkSlope())
    with window() as seen:
        curator.noisy_coordinate_gradient(np.zeros(3), [0, 1, 2], clips=np.ones(3))
    assert seen[0].exact.tolist() == [0, 0, 0]


@given(st.lists(st.floats(allow_nan=True, allow_infinity=True), min_size=4, max_size=4), st.floats(1e-9, 1e9))
@settings(max_examples=60)
def test_one_record_of_any_bits(values, clip):
    row, target = np.array(values[:3])[None, :], np.array(values[3:])
    for X in (row, csr(row)):
        curator = opened(X, target, Squared(), gradients())
        with window() as seen:
            curator.noisy_coordinate_gradient(np.array([3.0, -2.0, 100.0]), [2, 0, 1], clips=[clip, 1.0, clip / 7])
        assert within(seen[0])


@pytest.mark.few(2)
@covering(("sparse", [False, True]), ("name", LOSSES))
def test_one_person_of_many_rows(name, sparse):
    """All rows at their worst, and a number of rows that does not divide the bound."""
    loss = LOSSES[name]
    for k in (3, 1000):
        X = np.ones((k, 2))
        y = np.zeros(k)
        curator = opened(csr(X) if sparse else X, y, loss, gradients(), groups=np.zeros(k))
        with window() as seen:
            for w in (np.zeros(2), np.array([50.0, 50.0]), np.array([-50.0, -50.0])):
                curator.noisy_coordinate_gradient(w, [0], clips=[1e-3])
                curator.noisy_coordinate_gradient(w, [0, 1], clips=[1e-3, 2e-3])
                run = curator.noisy_coordinate_steps(
                    w, [0, 1], clips=np.full(2, 1e-3), steps=np.ones(2), penalty=NoPenalty(), n=1.0
                )
                assert np.isfinite(run.last).all()
        assert len(seen) == 12
        assert all(within(measurement) for measurement in seen)


@given(st.lists(st.floats(1e-12, 1e12), min_size=2, max_size=9), st.integers(1 << 16, 1 << 40), st.booleans())
@settings(max_examples=300)
def test_the_bounds_of_a_block(clips, bound, use_l1):
    shares = [int(b) for b in block_bounds(np.array(clips), bound, use_l1)]
    assert min(shares) >= 0
    assert (sum(shares) <= bound) if use_l1 else (sum(b * b for b in shares) <= bound * bound)
    size = sum(clips) if use_l1 else float(np.linalg.norm(clips))
    assert all(abs(b - bound * c / size) <= 8 + 1e-9 * bound for b, c in zip(shares, clips, strict=True))


def engines(X, y, loss, groups=None, **settings):
    data = PrivateData(X, y, bounds_for(loss, X.shape[1]), groups=groups, fit_intercept=True)
    records = admission.admit(X, data._PrivateData__targets(loss)[0], data.scaling, groups)
    return (SparseEngine if records.sparse is not None else DenseEngine)(records, **settings)


def query_for(engine, loss, w, columns, bounds, seed=0):
    grid = engine.grid
    scales = np.random.default_rng(seed).uniform(0.5, 40.0, len(columns)) * (1 << 40) / grid.one
    margin_scale = 1.0 / (weight_scale(grid) * grid.one)
    return CoordinateQuery(on_weight_grid(w, grid), loss, np.array(columns), scales, np.array(bounds), margin_scale)


@covering(("name", LOSSES), ("groups", [False, True]))
def test_engines_order_threads_and_tiles_agree(name, groups):
    loss, n = LOSSES[name], 3000
    X, y = drawn(loss, n, 6)
    X[5] = np.nan
    person = np.arange(n) // 7 if groups else None
    w = np.random.default_rng(3).normal(size=7) * 3
    columns, bounds = [6, 0, 3], [1 << 40, 12345, (1 << 39) + 7]
    order = np.random.default_rng(4).permutation(n)
    made = [
        engines(X, y, loss, person),
        engines(csr(X), y, loss, person),
        engines(X[order], y[order], loss, person[order] if groups else None),
        engines(csr(X)[order], y[order], loss, person[order] if groups else None),
        engines(X, y, loss, person, tile_rows=64),
        engines(X, y, loss, person, tile_rows=1024, threads=2),
        engines(X, y, loss, person, tile_rows=7, threads=5),
    ]
    sums = [query_for(engine, loss, w, columns, bounds).over(engine).tolist() for engine in made]
    assert all(total == sums[0] for total in sums)
    squares = [squares_within(5 * 16384**2 // 3, 7).over(engine).tolist() for engine in made]
    assert all(total == squares[0] for total in squares)


@pytest.mark.parametrize("groups", [False, True])
def test_sums_in_plain_integers(groups):
    """Squared loss, whose slope is exact in doubles: the kernel against Python's integers and fractions."""
    loss = Squared()
    X, y = drawn(loss, 60, 3)
    person = np.arange(60) // 4 if groups else None
    engine = engines(X, y, loss, person)
    w, columns, bounds = np.array([0.5, -2.0, 1.25, 3.0]), [0, 2, 3], [1 << 40, 99_999, 1 << 38]
    query = query_for(engine, loss, w, columns, bounds)
    rows, targets = engine.records.rows, engine.records.targets
    expected = []
    for j, scale, bound in zip(columns, query.scales.tolist(), bounds, strict=True):
        total = 0
        for row, target in zip(rows.tolist(), targets.tolist(), strict=True):
            margin = sum(x * int(v) for x, v in zip(row, query.w.tolist(), strict=True))
            slope = derivative(loss, margin * query.margin_scale, target) * (0.25 if groups else 1.0)
            own = bound // 4 if groups else bound
            q = round(min(max(slope * (row[j] * scale), -own), own))  # half to even, as the kernel
            assert abs(q) <= own
            total += q
        expected.append(total)
    assert query.over(engine).tolist() == expected


def squares_within(bound, p=6):
    """Squared grid values as they are, a unit's total at most ``bound``."""
    return SquareQuery(np.ones(p), np.full(p, 1 << 60), bound)


@pytest.mark.parametrize("sparse", [False, True])
def test_squares_of_one_record(sparse):
    """The vector of a record's squares sums to at most the bound, and keeps the ratios."""
    rng, loss = np.random.default_rng(0), Squared()
    junk = [rng.choice(JUNK, 5) for _ in range(30)] + [rng.uniform(-1, 1, 5) for _ in range(30)] + [np.ones(5)]
    for row in junk:
        X = csr(row[None, :]) if sparse else row[None, :]
        engine = engines(X, np.zeros(1), loss)
        for bound in (1, 2, 1000, 16384**2, 3 * 16384**2 + 1, 6 * 16384**2):
            q = [int(v) for v in squares_within(bound, 6).over(engine)]
            assert min(q) >= 0
            assert sum(q) <= bound
    assert [int(v) for v in squares_within(1 << 40, 6).over(engines(np.ones((1, 5)), np.zeros(1), loss))] == [
        16384**2
    ] * 6


@pytest.mark.parametrize("sparse", [False, True])
def test_squares_of_one_person(sparse):
    for k in (2, 3, 1000):
        X = np.ones((k, 3))
        engine = engines(csr(X) if sparse else X, np.zeros(k), Squared(), groups=np.zeros(k))
        for bound in (1, 5, 16384**2 + 1):
            assert sum(int(v) for v in squares_within(bound, 4).over(engine)) <= bound


@covering(("k", [1, 3, 1000]), ("sparse", [False, True]))
def test_shares_within_of_one_unit(sparse, k):
    """A record's sign, or its person's signs together, stay within the bound."""
    X = np.ones((k, 2))
    groups = None if k == 1 else np.zeros(k)
    release = Release("noisy_share_within", 100)
    curator = opened(csr(X) if sparse else X, np.ones(k), Squared(), release, groups=groups)
    with window() as seen:
        for w in (np.zeros(2), np.array([500.0, 0.0])):
            for clip in (1e-9, 1.0, 1e9):
                curator.noisy_share_within(w, 0, clip=clip)
    assert all(abs(int(m.exact[0])) <= m.unit.bound for m in seen)
    null = opened(np.full((1, 2), np.nan), np.ones(1), Squared(), release)
    with window() as seen:
        null.noisy_share_within(np.zeros(2), 0, clip=1.0)
    assert int(seen[0].exact[0]) == 0


@covering(
    ("sparse", [False, True]),
    ("value", [np.nan, np.inf, 1e-320, 1e-305, 1e-300, 0.0, -1.0, 1e308]),
    ("given", ["clips", "steps", "n", "w"]),
)
@pytest.mark.parametrize("other", [[np.nan] * 3, [0.0, 0.7, 0.0]], ids=["blanked", "replaced"])
def test_strange_public_numbers_are_refused_or_harmless(given, value, sparse, other):
    """Whatever a solver passes, one record moves each sum by no more than its bound, or nothing is answered."""
    X = np.array([[0.0, 0.0, 1.0], [1.0, -1.0, 0.0], [0.0, 0.5, 0.2]])
    y = np.array([0.5, 0.5, -1.0])
    blank = X.copy()
    blank[1] = other
    seen, answers = [], []
    for table in (X, blank):
        arguments = {"clips": np.ones(3), "steps": np.ones(3), "n": 3.0, "w": np.zeros(3)}
        arguments[given] = value if given == "n" else np.array([value, 1.0, value])
        w = arguments.pop("w")
        curator = opened(csr(table) if sparse else table, y, Squared(), gradients())
        with forced(answers) as measured, np.errstate(all="ignore"):
            try:
                curator.noisy_coordinate_steps(w, [0, 1, 2, 1, 0], penalty=L1(0.1), **arguments)
            except Exception as error:
                measured.append(type(error).__name__)
        seen.append(measured)
    for a, b in zip(*seen, strict=True):
        if isinstance(a, str) or isinstance(b, str):
            assert a == b
        else:
            factor = 1 if np.isnan(other[0]) else 2
            assert abs(int(a.exact[0]) - int(b.exact[0])) <= factor * a.unit.bound
