"""What one record, or one person, can add to a coordinate sum: integers within the bound, for any bits."""

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.accounting import Release
from discreet.curator import PrivateData
from discreet.curator.engines import DenseEngine, SparseEngine
from discreet.curator.queries.moments import SquareQuery
from discreet.curator.records import admission
from discreet.losses import Squared
from discreet.losses.base import Loss, one_output
from discreet.penalties import NoPenalty
from tests.covering import covering
from tests.replaying import window
from tests.solvers.coordinates.tables import LOSSES, bounds_for, csr, gradients, opened

JUNK = (np.nan, np.inf, -np.inf, 1e308, -1e308, 0.0, 5e-324, 1.0, -1.0, 0.3)


def within(measurement):
    q, bound = [int(v) for v in measurement.exact], measurement.unit.bound
    total = sum(abs(v) for v in q) if measurement.norm == "l1" else sum(v * v for v in q)
    return total <= (bound if measurement.norm == "l1" else bound * bound)


class _Fields(NamedTuple):
    size: float = 1.0


class JunkSlope(_Fields, Loss):
    """A loss of somebody's own, whose slope is NaN for one class and infinite for the other where the margin is 0."""

    __slots__ = ()
    task = "classification"
    smoothness = 1.0


one_output(JunkSlope)


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


def engines(X, y, loss, groups=None, **settings):
    data = PrivateData(X, y, bounds_for(loss, X.shape[1]), groups=groups, fit_intercept=True)
    records = admission.admit(X, data._PrivateData__targets(loss)[0], data.scaling, groups)
    return (SparseEngine if records.sparse is not None else DenseEngine)(records, **settings)


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
