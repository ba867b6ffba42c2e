"""Bounds of coordinate methods for the run as configured: formulas by hand, refusals, and runs that stay below."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize

from discreet import Bounds, Budget, DPLogisticRegression
from discreet.accounting.gaussian import mu_of
from discreet.bounds import Domain
from discreet.errors import Unsupported
from discreet.losses import Logistic, Squared
from discreet.penalties import L1, L2, NoPenalty
from discreet.solvers import AdaptiveClip, CoordinateDescent, Geometry, GreedyCoordinateDescent
from discreet.solvers.coordinate_geometry import GreedyErrors, greedy_convex_bound
from discreet.testing import seeded

P, N, LAMBDA = 4, 4000, 0.1
BUDGET = Budget(4.0, 1e-6, "replace_one")
GEOMETRY = Geometry(coordinate_clips=(1.0,) * P)
LOG2, ZETA = math.log(2.0), 0.05


def domain_of(n=N, p=P):
    return Domain(np.ones(p), math.sqrt(p), n, BUDGET.neighbors, intercept=False)


def bound(solver, budget=BUDGET, n=N, **words):
    return solver.bound(domain_of(n), Logistic(), budget, **({"radius": 1.2} | words))


def test_the_best_number_of_steps_gives_the_papers_line():
    """2 a ||L||_{M^-1} sqrt(p V) / (n mu)."""
    mu, V = mu_of(4.0, 1e-6), 1.2**2 * P / 4 / 2 + LOG2
    steps = round(N * mu * math.sqrt(P * V) / (2 * math.sqrt(P / 0.25)))
    found = bound(CoordinateDescent(1, steps, GEOMETRY)).upper
    assert found == pytest.approx(4 * math.sqrt(P / 0.25) * math.sqrt(P * V) / (N * mu), rel=1e-3)


def test_the_best_number_of_greedy_steps_gives_the_posters_rate():
    """(n epsilon)^(-2/3), but for the logarithm of T: noise grows as sqrt(T) / (n epsilon)."""

    def least(reach):
        def at(t):
            B = GreedyErrors(math.sqrt(t) / reach, t / reach**2, t, 1000).per_step(1 - ZETA)
            return greedy_convex_bound(B, t, 1.0)

        return min(at(t) for t in np.geomspace(1, 1e7, 300).astype(int).tolist())

    slope = math.log(least(1e8) / least(1e5)) / math.log(1e3)
    assert -2 / 3 <= slope < -0.6


@pytest.mark.parametrize(
    ("solver", "words"),
    [
        (CoordinateDescent(geometry=GEOMETRY, schedule="cyclic"), {}),
        (CoordinateDescent(geometry=GEOMETRY, block_size=2), {}),
        (CoordinateDescent(geometry=GEOMETRY, adaptive=AdaptiveClip()), {}),
        (CoordinateDescent(geometry=GEOMETRY, relative_step=1.5), {}),
        (CoordinateDescent(geometry=GEOMETRY, average="last"), {}),
        (CoordinateDescent(geometry=GEOMETRY), {"penalty": L1(0.1)}),
        (CoordinateDescent(geometry=Geometry(clip=0.1)), {}),
        (CoordinateDescent(geometry=Geometry(smoothness="private")), {}),
        (CoordinateDescent(geometry=GEOMETRY), {"budget": Budget(1.0, 0.0)}),
        (GreedyCoordinateDescent(geometry=GEOMETRY), {"confidence": None}),
        (GreedyCoordinateDescent(geometry=GEOMETRY), {"quasi_sparse": (0.0, 2)}),
        (GreedyCoordinateDescent(geometry=GEOMETRY, rule="gs-s"), {}),
        (GreedyCoordinateDescent(geometry=GEOMETRY, rule="gs"), {"penalty": L2(0.1)}),
        (GreedyCoordinateDescent(geometry=GEOMETRY, block_size=2), {}),
        (GreedyCoordinateDescent(geometry=GEOMETRY, backtrack=True), {}),
        (GreedyCoordinateDescent(geometry=GEOMETRY, selection="permute_and_flip"), {}),
    ],
    ids=str,
)
def test_runs_that_no_proof_covers_are_refused(solver, words):
    with pytest.raises(Unsupported, match="bound"):
        bound(solver, **words)


def test_unbounded_gradients_are_refused():
    with pytest.raises(Unsupported, match="unbounded"):
        CoordinateDescent(geometry=GEOMETRY).bound(domain_of(), Squared(), BUDGET, radius=1.0)


@pytest.mark.parametrize("moduli", [(0.5, 0.4), (0.01, 0.4), (1.0, 1.2)])
def test_moduli_that_contradict_each_other_are_refused(moduli):
    with pytest.raises(Unsupported, match="mu_"):
        bound(GreedyCoordinateDescent(60, GEOMETRY), radius=2.5, moduli=moduli)


def table():
    rng = np.random.default_rng(0)
    X = rng.choice([-1.0, 1.0], (N, P))
    return X, (rng.random(N) < 1 / (1 + np.exp(-X @ [1.0, -0.6, 0.3, 0.0]))).astype(int)


@pytest.mark.few(2)
@pytest.mark.statistical
@pytest.mark.parametrize("strength", [0.0, LAMBDA])
@pytest.mark.parametrize(
    "solver",
    [
        CoordinateDescent(1, 4, GEOMETRY),
        CoordinateDescent(3, 200, GEOMETRY),
        CoordinateDescent(1, 20_000, GEOMETRY),  # far too many steps: noise alone
        CoordinateDescent(1, 400, GEOMETRY, 0.5, probabilities=(1, 2, 3, 4)),
        CoordinateDescent(2, 400, GEOMETRY, average="last"),
        GreedyCoordinateDescent(2, GEOMETRY),
        GreedyCoordinateDescent(60, GEOMETRY),
    ],
    ids=str,
)
def test_measured_excess_stays_below_the_bound(solver, strength):
    X, y = table()
    penalty = L2(strength) if strength else NoPenalty()

    def objective(w):
        return np.logaddexp(0.0, -(2 * y - 1) * (X @ w)).mean() + strength / 2 * w @ w

    best = minimize(objective, np.zeros(P))
    if solver == CoordinateDescent(2, 400, GEOMETRY, average="last") and not strength:
        pytest.skip("no bound without strong convexity")
    greedy = isinstance(solver, GreedyCoordinateDescent)
    reach = {"radius": 4.0, "quasi_sparse": (0.0, P) if strength else None} if greedy else {"radius": 1.2}
    facts = {"bounds": Bounds(features=1.0, classes=(0, 1), scale="global"), "fit_intercept": False, "ledger": False}
    model, found = DPLogisticRegression(4.0, 1e-6, penalty=penalty, solver=solver, **facts), []
    for seed in range(5):
        with seeded(seed):
            found.append(objective(model.fit(X, y).coef_[0]) - best.fun)
    upper = bound(solver, penalty=penalty, **reach).upper
    assert (max(found) if greedy else np.mean(found)) <= upper
