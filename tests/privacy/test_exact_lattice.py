"""The lattice's two promises, in Fractions: never less noise than calibrated, and never an integer too many."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from discreet.curator.kernels.encode import ceil_sqrt
from discreet.curator.lattice.lattice import (
    COARSE,
    FINE,
    PRIVATE_N_CAP,
    place_weights,
    unit_for,
)
from discreet.errors import Unsupported

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


@settings(max_examples=300, deadline=None)
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


@settings(max_examples=300, deadline=None)
@given(s=st.one_of(st.integers(0, 2**62 - 1), st.integers(1, 2**31 - 1).map(lambda r: r * r)), off=st.integers(-1, 1))
def test_the_ceiling_of_a_root_is_exact(s, off):
    s = min(max(s + off, 0), 2**62 - 1)
    r = int(ceil_sqrt(s))
    assert r * r >= s
    assert r == 0 or (r - 1) * (r - 1) < s
