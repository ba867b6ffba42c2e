"""Clips, smoothness and probabilities that a user knows: they are what runs, and wrong ones are refused."""

import numpy as np
import pytest

from discreet import DPLogisticRegression
from discreet.errors import Unsupported
from discreet.solvers import CoordinateDescent, Geometry, GreedyCoordinateDescent
from discreet.testing import seeded
from tests.replaying import window

CLIPS, SMOOTH = [0.1, 0.2, 0.3, 0.4], [0.25, 0.5, 0.1, 0.25]
GEOMETRY = Geometry(coordinate_clips=CLIPS, coordinate_smoothness=SMOOTH)


def fitted(solver, p=3):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (200, p))
    model = DPLogisticRegression(2.0, 1e-5, bounds=1.0, classes=(0, 1), penalty=None, solver=solver)
    with seeded(1), window() as seen:
        model.fit(X, (X[:, 0] > 0).astype(int))
    return model, seen


def test_given_clips_and_smoothness_are_what_runs():
    """The lattice's step is C_j / B, for the C_j that were given."""
    _, seen = fitted(GreedyCoordinateDescent(5, GEOMETRY))
    sizes = {round(m.unit.step * m.unit.bound, 3) for m in seen if m.query == "noisy_coordinate_gradient"}
    assert sizes
    assert all(min(abs(size - clip) for clip in CLIPS) < 2e-3 for size in sizes)


@pytest.mark.parametrize(
    "solver",
    [
        CoordinateDescent(n_inner=4, geometry=Geometry(coordinate_clips=[1.0, 1.0])),
        GreedyCoordinateDescent(3, Geometry(coordinate_smoothness=[1.0, 1.0])),
        CoordinateDescent(n_inner=4, probabilities=[1.0]),
    ],
)
def test_a_vector_of_another_length_is_refused_before_anything_is_released(solver):
    with pytest.raises(Unsupported, match="4 columns"):
        fitted(solver)
