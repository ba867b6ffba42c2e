"""What one record, or one person, can add to a coordinate sum: integers within the bound, for any bits."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.losses import Squared
from discreet.penalties import NoPenalty
from tests.covering import covering
from tests.replaying import window
from tests.solvers.coordinates.tables import LOSSES, csr, gradients, opened


def within(measurement):
    q, bound = [int(v) for v in measurement.exact], measurement.unit.bound
    total = sum(abs(v) for v in q) if measurement.norm == "l1" else sum(v * v for v in q)
    return total <= (bound if measurement.norm == "l1" else bound * bound)


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
