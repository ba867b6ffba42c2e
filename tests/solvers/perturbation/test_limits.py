"""epsilon=inf: the one-shot mechanisms return the solution that other solvers find, to 1e-8."""

import numpy as np
import pytest

from discreet.accounting import Release
from discreet.curator import Problem
from discreet.losses import Squared
from tests.solvers.perturbation.cases import opened


def with_ones(table, intercept):
    """The intercept is a constant column, penalized like any other."""
    return np.asarray(table.with_ones if intercept else table.X)


@pytest.mark.parametrize("sampler", ["gaussian", "rejection"])
def test_shrunk_rows_are_shrunk_in_every_sampler(sampler):
    """Rows of norm 1 shrunk to 0.1: the minimizer of sum (0.1 w - 1)^2 / 2 + (lambda/2) w^2 with lambda = 0.2."""
    curator = opened(np.ones((20, 1)), np.ones(20), Squared(), [Release("sample_minimizer", 1)])
    point = curator.sample_minimizer(Problem(0.01, 20, row_norm=0.1, radius=50.0), sampler=sampler)
    assert point[0] == pytest.approx(20 * 0.1 / (20 * 0.01 + 0.2), abs=1e-6)
