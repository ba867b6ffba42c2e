"""Recoding: each record's image is its own, null stays null, and what is declared of the images is true."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from discreet import Bounds
from discreet.curator.records.recoding import Recoding, recoded
from discreet.errors import Unsupported
from discreet.losses import Logistic, Squared
from tests.solvers.whitened.cases import LABELS, ceil_norm, dense_of, opened, records_of, rows_through

P = 5


def a_table(n, p=P, seed=0, nulls=True):
    rng = np.random.default_rng(seed)
    X, y = rng.uniform(-1, 1, (n, p)), rng.choice(LABELS, n).astype(float)
    if nulls:
        X[n // 2] = np.nan
        X[n // 3, 0] = np.inf
        y[n // 4] = np.nan
    return X, y


def a_map(p=P, seed=1, matrix="full", center=True, **facts):
    rng = np.random.default_rng(seed)
    made = {
        "full": rng.normal(size=(p + 1, p + 1)),
        "narrow": rng.normal(size=(p + 1, 2)),
        "diagonal": rng.uniform(0.1, 3, p + 1),
        "none": None,
    }[matrix]
    middle = rng.uniform(-1, 1, p) if center else np.zeros(p)
    return Recoding(middle, rng.uniform(0.05, 2, p), 0.5, **{"row_norm": 1.5, **facts}, matrix=made)


def through(X, y, recoding, *, stored="dense", numeric=False, **facts):
    table = sparse.csr_array(np.asarray(X)) if stored == "sparse" else X
    loss = Squared() if numeric else Logistic()
    records, domain = records_of(table, y, loss=loss, **facts)
    return recoded(records, recoding, domain, numeric_target=numeric), domain


def parts(records):
    return dense_of(records).tolist(), records.norms.tolist(), records.sums.tolist(), records.targets.tolist()


MAPS = [("dense", a_map(matrix=kind)) for kind in ("full", "narrow", "diagonal", "none")] + [
    ("sparse", a_map(matrix=kind, center=False)) for kind in ("diagonal", "none")
]
EACH_MAP = pytest.mark.parametrize(("stored", "recoding"), MAPS)
DROPPING = ("dense", a_map(row_norm=math.inf, reach=20.0, drop_longer=True))
EACH_WAY = pytest.mark.parametrize(("stored", "recoding"), [*MAPS, DROPPING])


@EACH_WAY
def test_a_record_alone_has_the_same_image(stored, recoding):
    X, y = a_table(23)
    rows, norms, sums, _ = parts(through(X, y, recoding, stored=stored)[0])
    for i in range(len(X)):
        alone = through(X[i : i + 1], y[i : i + 1], recoding, stored=stored)[0]
        assert parts(alone)[:3] == ([rows[i]], [norms[i]], [sums[i]])


@EACH_WAY
def test_order_and_neighbors_do_not_matter(stored, recoding):
    X, y = a_table(40)
    rows = np.array(parts(through(X, y, recoding, stored=stored)[0])[0])
    order = np.random.default_rng(4).permutation(len(X))
    np.testing.assert_array_equal(parts(through(X[order], y[order], recoding, stored=stored)[0])[0], rows[order])
    X[7], X[8] = 1e300, np.nan
    y[9] = np.nan
    changed = np.array(parts(through(X, y, recoding, stored=stored)[0])[0])
    kept = [i for i in range(len(X)) if i not in (7, 8, 9)]
    np.testing.assert_array_equal(changed[kept], rows[kept])
    assert not changed[8:10].any()


@EACH_MAP
def test_null_records_stay_null(stored, recoding):
    X, y = a_table(24)
    for numeric in (False, True):
        new, _ = through(X, y, recoding, stored=stored, numeric=numeric)
        for i in (6, 8, 12):
            assert not dense_of(new)[i].any()
            assert new.norms[i] == new.sums[i] == 0
            assert not numeric or new.targets[i] == 0
        assert (new.norms > 0).sum() == 21


def test_each_recoding_starts_from_the_admitted_records():
    X, y = a_table(30)
    once, twice = (opened(X, y, ["noisy_mean"], intercept=True) for _ in range(2))
    last = a_map(seed=9)
    once.recode(last)
    for other in (a_map(seed=3, matrix="narrow", row_norm=1e-3), a_map(seed=2), last):
        twice.recode(other)
    assert parts(once._session.engine.records) == parts(twice._session.engine.records)
    np.testing.assert_array_equal(once.domain.feature_bounds, twice.domain.feature_bounds)
    assert once.domain.row_norm == twice.domain.row_norm


def test_persons_keep_their_rows():
    X, y = a_table(30)
    groups = np.random.default_rng(0).integers(0, 6, 30)
    records, domain = records_of(X, y, groups=groups)
    new = recoded(records, a_map(), domain, numeric_target=False)
    assert new.shares is records.shares
    assert new.starts is records.starts
    order = np.argsort(groups, kind="stable")
    alone, _ = through(X, y, a_map())
    steps = np.abs(new.rows / new.grid.one - alone.rows[order] / alone.grid.one) * new.grid.one
    assert steps.max() <= 2  # persons have a coarser grid
    for person in range(6):
        own = groups == person
        image, _ = through(X[own], y[own], a_map(), groups=np.zeros(own.sum()))
        np.testing.assert_array_equal(image.rows, new.rows[groups[order] == person])


@pytest.mark.parametrize(
    ("facts", "most"),
    [({}, 14), ({"relation": "replace_one"}, 14), ({"groups": True}, 11), ({"relation": "add_remove"}, 11)],
)
def test_grids_leave_room_for_second_moments(facts, most):
    """However short the images, the grid does not get finer than coefficients of outer products can bear."""
    X, y = a_table(30)
    facts = {**facts, **({"groups": np.arange(30) // 5} if facts.get("groups") else {})}
    for size in (1e-6, 1e-2, 1.0):
        recoding = Recoding(np.zeros(P), np.full(P, 1 / size), size)
        records, domain = records_of(X, y, **facts)
        assert recoded(records, recoding, domain, numeric_target=False).grid.bits == most
    long = recoded(records, Recoding(np.zeros(P), np.full(P, 1e-3), 1.0), domain, numeric_target=False)
    assert long.grid.bits == 5  # 2^15 / 1000


@pytest.mark.parametrize("stored", ["dense", "sparse"])
def test_numeric_targets_shrink_with_their_rows(stored):
    rng = np.random.default_rng(2)
    X, y = rng.uniform(-1, 1, (40, P)), rng.uniform(-1 / 3, 1, 40)
    facts = {"target_center": 0.2, "target_scale": 0.3}
    recoding = a_map(matrix="none", center=False, row_norm=1.0, **facts)
    new, domain = through(X, y, recoding, stored=stored, numeric=True)
    _, factor = rows_through(recoding, X, 2**14)
    np.testing.assert_allclose(new.targets, factor * (y - 0.2) / 0.3, rtol=1e-12)
    assert factor.min() < 0.9 < factor.max() + 0.5
    assert np.abs(new.targets).max() <= recoding.domain(domain).target_bound


def test_the_reach_shrinks_rows_and_keeps_their_direction():
    """ "Rows longer than this after the matrix are shrunk": all of the row, not its large entries alone."""
    recoding = Recoding(np.zeros(2), np.ones(2), 0.0, reach=0.1)
    new, _ = through(np.array([[1.0, 0.1], [0.8, -0.4]]), np.ones(2), recoding)
    rows = new.rows[:, :2] / new.grid.one
    np.testing.assert_allclose(rows[:, 1] / rows[:, 0], [0.1, -0.5], atol=0.01)


# ------------------------------------------------------------------------------- what is declared of the images

sizes = st.floats(-6, 3).map(lambda e: 10.0**e)
signed = st.tuples(st.sampled_from([-1.0, 1.0]), sizes).map(math.prod)


@st.composite
def maps(draw):
    p, intercept = draw(st.integers(1, 4)), draw(st.booleans())
    columns = p + intercept
    center = draw(st.lists(st.floats(-2, 2), min_size=p, max_size=p)) if intercept else [0.0] * p
    scale = draw(st.lists(sizes, min_size=p, max_size=p))
    kind = draw(st.sampled_from(["none", "diagonal", "full"]))
    matrix = None
    if kind != "none":
        count = columns if kind == "diagonal" else columns * draw(st.integers(1, 3))
        matrix = np.array(draw(st.lists(st.one_of(st.just(0.0), signed), min_size=count, max_size=count)))
        matrix = matrix if kind == "diagonal" else matrix.reshape(columns, -1)
    made = Recoding(
        np.array(center), np.array(scale), draw(st.sampled_from([0.0, 0.5, 1.0, -2.0, 1e-5, 1e3])),
        draw(st.sampled_from([math.inf, 1e-9, 1e-3, 0.37, 1.0, 55.5])), matrix,
        draw(st.sampled_from([None, 1e-7, 1e-3, 0.9, 12.3, 1e3])),
    )  # fmt: skip
    return made, intercept, draw(st.booleans())


@pytest.mark.thorough
@settings(max_examples=150)
@given(maps())
def test_declared_bounds_hold_for_any_map(case):
    recoding, intercept, fine = case
    p = len(recoding.center)
    rng = np.random.default_rng(5)
    X = np.vstack([np.ones(p), -np.ones(p), np.zeros(p), np.eye(p), rng.uniform(-1, 1, (6, p)), np.full(p, np.nan)])
    records, domain = records_of(X, np.ones(len(X)), intercept=intercept, fine=fine)
    seen = recoding.domain(domain)
    if not seen.feature_bounds.max() <= 32767:
        with pytest.raises(Unsupported, match="too large for the lattice"):
            recoded(records, recoding, domain, numeric_target=False)
        return
    new = recoded(records, recoding, domain, numeric_target=False)
    one, rows = new.grid.one, dense_of(new)
    assert new.rows.dtype == np.int16
    assert np.abs(rows).max() <= 32767
    assert seen.n_features == rows.shape[1]
    assert not seen.intercept
    assert new.norms.tolist() == [ceil_norm(row) for row in rows]
    assert new.norms.max() <= math.ceil(seen.row_norm * one)  # what spares clipping relies on
    assert (np.abs(rows) <= np.ceil(seen.feature_bounds * one + 0.5)).all()
    assert not rows[-1].any()
    real, _ = rows_through(recoding, X[:-1], records.grid.one, intercept=intercept)
    room = 1 + 1e-9
    lengths = np.linalg.norm(real, axis=1)
    if recoding.reach is None:
        present = records.norms[:-1] > 0
        assert (np.abs(real[present]) <= seen.feature_bounds * room + 1e-300).all()
        assert lengths[present].max(initial=0.0) <= seen.row_norm * room + 1e-300
        # and the integers are the images: rounding and shrinking onto the lattice move an entry by few steps
        steps = np.abs(rows[:-1] - real * one)[present]
        assert steps.max(initial=0.0) <= 3 + 1e-6 * 32767


RANGES = [(1990.0, 2020.0), (-12.0, -10.0), (0.0, 3.0), (-1.0, 5.0), (7.0, 7.0), (1e6, 1e6 + 1)]


@pytest.mark.parametrize("row_norm", [None, 0.9])  # a declared row norm shrinks rows toward 0, out of their ranges
def test_declared_ranges_bound_the_images(row_norm):
    """Centered in its range a feature is within +-1 and a step of the grid, however far away it is."""
    rng = np.random.default_rng(0)
    low, high = np.array(RANGES).T
    X = np.vstack([low, high, rng.uniform(low, high, (20, len(low))), low - 1e9, high + 1e9])
    bounds = Bounds(RANGES, row_norm=row_norm, classes=LABELS)
    records, domain = records_of(X, np.ones(len(X)), bounds=bounds)
    ends = domain.ranges
    half = np.where(ends[:, 1] > ends[:, 0], np.ptp(ends, axis=1) / 2, 1.0)
    recoding = Recoding(ends.mean(axis=1), half, 1.0)
    seen = recoding.domain(domain)
    assert row_norm or (seen.feature_bounds[:-1] <= (1 + 2.0**-14 / half) * (1 + 1e-9)).all()
    rows = dense_of(records) / records.grid.one
    real, _ = rows_through(recoding, rows[:, :-1], records.grid.one)
    assert (np.abs(real) <= seen.feature_bounds * (1 + 1e-9)).all()
    assert np.linalg.norm(real, axis=1).max() <= seen.row_norm * (1 + 1e-9)
    if row_norm is None:
        new = recoded(records, recoding, domain, numeric_target=False)
        assert np.abs(dense_of(new) / new.grid.one - real).max() <= 2 / new.grid.one


@given(st.integers(0, 10_000))
@settings(max_examples=30)
def test_16_bits_never_wrap(seed):
    """Entries right at the largest integer, from maps that put them there."""
    rng = np.random.default_rng(seed)
    largest = float(2.0 ** rng.integers(-3, 15) * (1 + rng.choice([-1, 1]) * 2.0 ** -rng.integers(10, 53)))
    recoding = Recoding(np.zeros(2), np.array([1 / largest, 2 / largest]), 0.0)
    X = np.array([[1, 1], [-1, -1], [1, -1], [-1, 0.0]])
    records, domain = records_of(X, np.ones(4))
    try:
        rows = recoded(records, recoding, domain, numeric_target=False).rows
    except Unsupported:
        return
    assert (np.sign(rows[:, :2]) == np.sign(X)).all()
    assert np.abs(rows.astype(np.int64)).max() <= 32767


def test_longer_rows_are_dropped_and_no_row_is_shrunk():
    """Those within reach are the images of the map; the others are null records, not shorter rows."""
    X, y = a_table(400, nulls=False)
    plain = a_map(row_norm=math.inf, center=False)
    full, _ = through(X, y, plain)
    lengths = np.linalg.norm(dense_of(full), axis=1) / full.grid.one
    reach = float(np.median(lengths))
    kept, domain = through(X, y, replace(plain, reach=reach, drop_longer=True))
    rows, alive = dense_of(kept) / kept.grid.one, kept.norms > 0
    np.testing.assert_array_equal(alive, lengths < reach)
    assert not rows[~alive].any()
    np.testing.assert_allclose(rows[alive], (dense_of(full) / full.grid.one)[alive], atol=1e-2)
    assert replace(plain, reach=reach, drop_longer=True).domain(domain).row_norm == reach
    with pytest.raises(Unsupported):
        through(X, y, a_map(matrix="none", center=False, reach=1.0, drop_longer=True), stored="sparse")
