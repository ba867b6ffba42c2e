"""Every one-shot mechanism on worst-case neighbors with frozen answers: what still differs is a leak."""

import math

import numpy as np
from scipy import sparse

from discreet import Bounds, Budget
from discreet.accounting import Release
from discreet.curator import Problem
from discreet.losses import Squared
from discreet.solvers import ExponentialMechanism
from discreet.testing import neighbor_pairs, replay
from tests.covering import covering
from tests.solvers.perturbation.cases import RELATIONS, bounds_of, fit_of, opened, table

DRAWS = {
    "rejection": ("logistic", ExponentialMechanism(regularization=2.0, sampler="rejection"), {}),
    "chain": ("svc", ExponentialMechanism(regularization=0.5, sampler="chain", total_variation=1e-13), {}),
    "gaussian": ("ridge", ExponentialMechanism(regularization=0.5, radius=2.0, sampler="gaussian"), {}),
    "interval": ("logistic", ExponentialMechanism(radius=2.0), {"delta": 0.0, "penalty": None}),
}


@covering(("kind", DRAWS), ("relation", RELATIONS))
def test_with_the_draw_frozen_nothing_of_a_sampler_shows(kind, relation, monkeypatch):
    """A draw has no exact answer beside it: its noise cannot be replayed, all the rest must be the same."""
    monkeypatch.setattr("discreet.curator.queries.sampling.CHAIN_STEPS", 3)
    name, solver, settings = DRAWS[kind]
    data = table(name)
    bounds = bounds_of(name)
    if kind == "interval":
        data = data._replace(X=data.X[:, :1])
        bounds = Bounds([(-1.0, 1.0)], classes=(0, 1))
        settings = {**settings, "fit_intercept": False}
    fit = fit_of(name, solver, relation, bounds=bounds, **settings)
    for pair in list(neighbor_pairs(*data, relation=relation, bounds=bounds))[::9]:
        findings = replay(fit, pair.data, pair.neighbor, relation).findings
        assert {finding.kind for finding in findings} <= {"price"}, (pair.name, findings)


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
