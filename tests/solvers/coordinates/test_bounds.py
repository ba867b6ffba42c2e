"""Bounds of coordinate methods for the run as configured: formulas by hand, refusals, and runs that stay below."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import norm

from discreet import Bounds, Budget, DPLogisticRegression
from discreet.accounting.gaussian import mu_of
from discreet.accounting.priced_plan import price_plan
from discreet.bounds import Domain
from discreet.errors import Unsupported
from discreet.losses import Logistic, Squared
from discreet.penalties import L1, L2, NoPenalty
from discreet.solvers import (
    AdaptiveClip,
    CoordinateDescent,
    Geometry,
    GreedyCoordinateDescent,
)
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


def noise_of(steps, budget=BUDGET, n=N):
    """sum_j s_j^2 for L_j = 1, with s_j = 2 sqrt(steps) / (n mu)."""
    return P * 4 * steps / (n * mu_of(budget.epsilon, budget.delta)) ** 2


def test_convex_by_hand():
    """p V / K + sum_j s_j^2 / M_j, where V = R^2 sum_j M_j / 2 + F(0) - F*, and M_j = 1/4."""
    V = 1.2**2 * P / 4 / 2 + LOG2
    for steps in (40, 400, 4000):
        found = bound(CoordinateDescent(1, steps, GEOMETRY))
        assert found.upper == pytest.approx(P * V / steps + 4 * noise_of(steps), rel=1e-6)
        assert found.trivial == LOG2
    rounds = bound(CoordinateDescent(3, 400, GEOMETRY)).upper
    S = 4 * noise_of(1200)
    assert rounds == pytest.approx(P * (V + 2 * 401 / 2 * S / P) / 400 + S, rel=1e-6)


def test_the_best_number_of_steps_gives_the_papers_line():
    """2 a ||L||_{M^-1} sqrt(p V) / (n mu)."""
    mu, V = mu_of(4.0, 1e-6), 1.2**2 * P / 4 / 2 + LOG2
    steps = round(N * mu * math.sqrt(P * V) / (2 * math.sqrt(P / 0.25)))
    found = bound(CoordinateDescent(1, steps, GEOMETRY)).upper
    assert found == pytest.approx(4 * math.sqrt(P / 0.25) * math.sqrt(P * V) / (N * mu), rel=1e-3)


def test_strongly_convex_by_hand():
    """Rounds of K = 2 p (1 + 1/kappa) halve the gap; the last iterate's V falls by 1 - kappa/p in each step."""
    smooth = 0.25 + LAMBDA
    kappa, V = LAMBDA / smooth, 1.2**2 * P * smooth / 2 + LOG2
    steps = round(2 * P * (1 + 1 / kappa))
    S = noise_of(3 * steps) / smooth
    first = P * V / steps + S
    averaged = bound(CoordinateDescent(3, steps, GEOMETRY), penalty=L2(LAMBDA)).upper
    second = min(first / 2, (V + (steps + 1) * S / (2 * P)) * P / steps) + S
    assert averaged == pytest.approx(second / 2 + S, rel=1e-6)
    last = bound(CoordinateDescent(3, steps, GEOMETRY, average="last"), penalty=L2(LAMBDA)).upper
    left = (1 - kappa / P) ** (3 * steps)
    assert last == pytest.approx(left * V + (1 - left) * S / kappa, rel=1e-6)


def test_chances_by_hand():
    """Equal M_j: importance draws alike. Unequal chances: c = the least one, N = sum_j (c + pi_j) s_j^2 / (2 M_j)."""
    even = bound(CoordinateDescent(1, 400, GEOMETRY)).upper
    assert bound(CoordinateDescent(1, 400, GEOMETRY, schedule="importance")).upper == pytest.approx(even)
    chances = np.array([1, 2, 3, 4]) / 10
    V = 1.2**2 * np.sum(0.1 * 0.25 / chances) / 2 + LOG2
    error = np.sum((0.1 + chances) / 2 * noise_of(400) / P / 0.25)
    found = bound(CoordinateDescent(1, 400, GEOMETRY, probabilities=(1, 2, 3, 4))).upper
    assert found == pytest.approx(V / (0.1 * 400) + error / 0.1, rel=1e-6)


def errors_by_hand(steps, smooth, confidence=1 - ZETA):
    """(e^2 + v^2) / 2: the choice's scale is 2 max_j a C_j / (n sqrt(M_j)) / eps_s, the step's noise a z C_j / n."""
    solver = GreedyCoordinateDescent(steps, GEOMETRY)
    plan = solver.plan(domain_of(), Logistic(), NoPenalty())
    z = price_plan(plan, BUDGET).noise_multiplier
    choice, update = plan.events(z, pure=False)
    scale, noise = 2 * (2 / N / 0.5) / choice.epsilon, (2 * update.noise_multiplier / N) ** 2 / smooth
    if confidence is None:
        return 0.5 * (scale**2 * (math.log(P) ** 2 + 2 * math.log(P) + 2) + noise)
    fails = (1 - confidence) / (2 * steps)
    return 0.5 * ((scale * math.log(P / fails)) ** 2 + noise * norm.isf(fails / 2) ** 2)


def test_greedy_convex_by_hand():
    for steps in (5, 60, 500):
        B, reach = errors_by_hand(steps, 0.25), 2.5 * 0.5
        found = bound(GreedyCoordinateDescent(steps, GEOMETRY), radius=2.5, confidence=1 - ZETA)
        assert found.upper == pytest.approx(max(8 * reach**2 / steps, math.sqrt(8 * B) * reach + B), rel=1e-6)
        assert found.confidence == 1 - ZETA


def test_the_best_number_of_greedy_steps_gives_the_posters_rate():
    """(n epsilon)^(-2/3), but for the logarithm of T: noise grows as sqrt(T) / (n epsilon)."""

    def least(reach):
        def at(t):
            B = GreedyErrors(math.sqrt(t) / reach, t / reach**2, t, 1000).per_step(1 - ZETA)
            return greedy_convex_bound(B, t, 1.0)

        return min(at(t) for t in np.geomspace(1, 1e7, 300).astype(int).tolist())

    slope = math.log(least(1e8) / least(1e5)) / math.log(1e3)
    assert -2 / 3 <= slope < -0.6


def test_greedy_strongly_convex_by_hand():
    """(1 - kappa_1/2)^T (F(0) - F*) + 2 B / kappa_1, nearly: the sum of the series."""
    smooth = 0.25 + LAMBDA
    rate = LAMBDA / (P * smooth) / 2
    for confidence in (1 - ZETA, None):
        B = errors_by_hand(60, smooth, confidence)
        left = (1 - rate) ** 60
        found = bound(GreedyCoordinateDescent(60, GEOMETRY), penalty=L2(LAMBDA), radius=2.5, confidence=confidence)
        assert found.upper == pytest.approx(left * LOG2 + (1 - left) * B / rate, rel=1e-6)


def test_quasi_sparse_by_hand():
    """Two steps: k = tau, then tau + 1 large entries."""
    smooth, kappa = 0.25 + LAMBDA, LAMBDA / (0.25 + LAMBDA)
    solver, B, words = GreedyCoordinateDescent(2, GEOMETRY), errors_by_hand(2, smooth), {"penalty": L2(LAMBDA)}
    exact = LOG2 * (1 - kappa / 2) + B
    exact = exact * (1 - kappa / 4) + B
    assert bound(solver, radius=2.5, quasi_sparse=(0.0, 1), **words).upper == pytest.approx(exact, rel=1e-6)
    h, A = LOG2, 0.01 * P * math.sqrt(smooth)
    for k in (1, 2):
        h = min(h - kappa / (4 * k) * (h - kappa * A**2 / (2 * k)) + B, h * (1 - kappa / (2 * P)) + B)
    assert bound(solver, radius=2.5, quasi_sparse=(0.01, 1), **words).upper == pytest.approx(h, rel=1e-6)
    found = [bound(solver, radius=2.5, quasi_sparse=few, **words).upper for few in ((0, 1), (0, 2), (0.1, 2), None)]
    assert found == sorted(found)


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


def from_start(solver, at=0.5, **words):
    moved = Domain(np.ones(P), 2.0, N, BUDGET.neighbors, intercept=False, start=np.full(P, at))
    return solver.bound(moved, Logistic(), BUDGET, **words)


def test_a_start_counts_by_its_distance():
    """V = R^2 sum_j M_j / 2 + F(w0) - F*, where the latter is at most R sum_j L_j, and the penalty of w0."""
    solver, steps, radius = CoordinateDescent(1, 400, GEOMETRY), 400, 0.3
    noise = noise_of(steps) / 0.25
    assert from_start(solver, radius=radius).upper == pytest.approx(
        P * (0.5 * radius**2 * P / 4 + radius * P) / steps + noise
    )
    assert from_start(solver, at=1e-9, radius=0.01).upper < bound(solver, radius=1.2).upper
    far, near = (from_start(solver, at=at, radius=0.3, penalty=L2(LAMBDA)).upper for at in (3.0, 0.5))
    assert far > near
    greedy = GreedyCoordinateDescent(60, GEOMETRY)
    far, near = (from_start(greedy, at=at, radius=0.3, penalty=L2(LAMBDA)).upper for at in (3.0, 0.5))
    assert far > near


def test_own_moduli_take_the_place_of_a_penalty():
    last = CoordinateDescent(2, 400, GEOMETRY, average="last")
    kappa, steps = 0.4, 800
    V, left = 0.5 * 1.2**2 * P / 4 + LOG2, (1 - kappa / P) ** steps
    N_step = noise_of(steps) / 0.25 / P
    assert bound(last, modulus=kappa).upper == pytest.approx(left * V + (1 - left) * N_step * P / kappa)
    for solver, words in (
        (CoordinateDescent(3, 400, GEOMETRY), ({}, {"modulus": 0.4})),
        (GreedyCoordinateDescent(60, GEOMETRY), ({}, {"moduli": (0.1, 0.4)})),
    ):
        convex, strong = (bound(solver, radius=2.5, **given).upper for given in words)
        assert strong < convex


def test_a_modulus_by_the_penalty_is_no_less_than_one_given_for_it():
    """lambda / max_j M_j is a modulus in the norm of M; the penalty's own, in that of M', is the larger."""
    given = {"modulus": LAMBDA / 0.25 * 0.5}
    solver = CoordinateDescent(3, 400, GEOMETRY)
    assert bound(solver, penalty=L2(LAMBDA), **given).upper == bound(solver, penalty=L2(LAMBDA)).upper


@pytest.mark.parametrize("moduli", [(0.5, 0.4), (0.01, 0.4), (1.0, 1.2)])
def test_moduli_that_contradict_each_other_are_refused(moduli):
    with pytest.raises(Unsupported, match="mu_"):
        bound(GreedyCoordinateDescent(60, GEOMETRY), radius=2.5, moduli=moduli)


def test_measured_excess_from_a_start_stays_below_the_bound():
    X, y = table()
    solver, start = CoordinateDescent(1, 400, GEOMETRY), np.array([0.8, -0.8, 0.5, -0.2])

    def objective(w):
        return np.logaddexp(0.0, -(2 * y - 1) * (X @ w)).mean()

    best = minimize(objective, np.zeros(P))
    radius = float(np.abs(best.x - start).max())
    facts = {"bounds": Bounds(features=1.0, classes=(0, 1), scale="global"), "fit_intercept": False, "ledger": False}
    model, found = DPLogisticRegression(4.0, 1e-6, alpha=0.0, solver=solver, start=(start, 0.0), **facts), []
    for seed in range(5):
        with seeded(seed):
            found.append(objective(model.fit(X, y).coef_[0]) - best.fun)
    moved = Domain(np.ones(P), 2.0, N, BUDGET.neighbors, intercept=False, start=start)
    assert np.mean(found) <= solver.bound(moved, Logistic(), BUDGET, radius=radius).upper < 0.2


def table():
    rng = np.random.default_rng(0)
    X = rng.choice([-1.0, 1.0], (N, P))
    return X, (rng.random(N) < 1 / (1 + np.exp(-X @ [1.0, -0.6, 0.3, 0.0]))).astype(int)


@pytest.mark.few(3)
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
