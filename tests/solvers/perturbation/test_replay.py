"""Every one-shot mechanism on worst-case neighbors with frozen answers: what still differs is a leak."""

import math

import numpy as np
from scipy import sparse

from discreet import Budget
from discreet.accounting import Release
from discreet.curator import Problem
from discreet.losses import Squared
from tests.solvers.perturbation.cases import opened


def test_a_sparse_record_cannot_make_a_sampler_refuse():
    """Whether a Hessian is affordable may depend on public facts only: here one record with many entries decides."""
    full = np.zeros((4, 500))
    full[:, 0] = 1.0
    neighbor = full.copy()
    neighbor[0] = 1.0
    outcomes = []
    for X in (full, neighbor):
        curator = opened(
            sparse.csr_array(X), np.ones(4), Squared(), [Release("sample_minimizer", 1)], Budget(math.inf, 1e-6)
        )
        try:
            curator.sample_minimizer(Problem(1.0, 4, radius=5.0), sampler="gaussian")
            outcomes.append("a draw")
        except Exception as error:  # what it says is compared, whatever it is
            outcomes.append(f"{type(error).__name__}: {error}")
    assert outcomes[0] == outcomes[1]
