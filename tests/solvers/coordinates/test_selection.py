"""The private argmax: its law, its range, and where it must refuse."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chi2, ks_2samp

from discreet import Budget
from discreet.accounting import Release
from discreet.accounting.pricing import price_plan
from discreet.curator import PrivateData
from discreet.curator.noise import discrete_laplace, use_entropy
from discreet.curator.queries.choices import RULES, _largest_offset, score_lattice, scores
from discreet.errors import PlanViolation, Unsupported
from discreet.losses import Squared
from discreet.penalties import L1, L2, ElasticNet, NoPenalty
from discreet.solvers import CoordinateDescent, Geometry
from tests.covering import covering
from tests.replaying import window
from tests.solvers.coordinates.tables import RELATIONS, bounds_for, csr, gradients, opened

CLIP, LOSS = 0.1, Squared()
SIZES = (2, 5, 21)
PENALTIES = (NoPenalty(), L1(0.3), L2(0.7), ElasticNet(0.2, 0.5))


class Words:
    """Fast repeatable words, for statistics."""

    name, is_private = "a test generator", False

    def __init__(self, seed):
        self._rng = np.random.default_rng(seed)

    def words(self, count):
        words = self._rng.integers(0, 2**64, count, dtype=np.uint64)
        words.flags.writeable = False
        return words


def softmax(z):
    weights = np.exp(np.asarray(z, dtype=float) - np.max(z))
    return weights / weights.sum()


def permute_and_flip(z):
    """Exact probabilities by the integral: p_i = q_i int_0^1 prod_{j != i} (1 - q_j u) du."""
    q = np.exp(np.asarray(z) - np.max(z))
    nodes, weights = np.polynomial.legendre.leggauss(40)
    u, du = (nodes + 1) / 2, weights / 2
    return np.array([q[i] * (du * np.prod([1 - r * u for r in np.delete(q, i)], axis=0)).sum() for i in range(len(q))])


def likelihood_ratio(counts, expected):
    seen = counts > 0
    statistic = 2 * float((counts[seen] * np.log(counts[seen] / (counts.sum() * expected[seen]))).sum())
    assert statistic < chi2.isf(1e-6, len(counts) - 1)


def table(k, n=40, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, k))
    return X, np.clip(X[:, 0] + 0.3 * rng.normal(size=n), -1, 1)


def selecting(count, mechanism="exponential", **settings):
    return Release("select_coordinate", count, mechanism=mechanism, **settings)


@pytest.mark.few(1)
@covering(("mechanism", ["exponential", "permute_and_flip", "noisy_max"]), ("k", SIZES))
def test_selected_coordinates_have_their_law(k, mechanism):
    """Through the curator: the law that the observed integers and lattice imply."""
    X, y = table(k)
    draws = 1500
    budget = Budget(6.0 * draws, 0.0, "zero_out")  # pure: each choice gets 6
    M, clips = np.ones(k), np.full(k, 0.5)
    with use_entropy(Words(k)):
        curator = opened(X, y, Squared(), selecting(draws, mechanism), budget=budget)
        with window() as seen:
            curator.select_coordinate(np.zeros(k), clips=clips, smoothness=M, n=40)
        chosen = [
            int(curator.select_coordinate(np.zeros(k), clips=clips, smoothness=M, n=40)[0]) for _ in range(draws - 1)
        ]
    exact, m = seen[0].exact, seen[0].unit.m
    z = exact / 2.0**m
    if mechanism == "noisy_max":
        claimed = 2 * seen[0].factor * seen[0].unit.bound / 2**m
        noise = discrete_laplace(60_000 * k, m, Words(99)).reshape(-1, k)
        expected = np.bincount(np.abs(exact + noise).argmax(axis=1), minlength=k) / len(noise)
        expected = np.maximum(expected, 1e-5) / np.maximum(expected, 1e-5).sum()
    else:
        claimed = 2 * seen[0].unit.bound / 2**m
        expected = softmax(z) if mechanism == "exponential" else permute_and_flip(z)
    assert claimed <= 6.0 * (1 + 1e-12)
    if mechanism != "noisy_max":
        assert claimed > 5.99
    likelihood_ratio(np.bincount(chosen, minlength=k), expected)


def test_a_batch_is_drawn_without_replacement():
    X, y = table(4)
    curator = opened(X, y, Squared(), selecting(100 * 4), budget=Budget(400.0, 0.0))
    for _ in range(100):
        chosen = curator.select_coordinate(np.zeros(4), clips=np.ones(4), smoothness=np.ones(4), n=40, count=4)
        assert sorted(chosen.tolist()) == [0, 1, 2, 3]
    with pytest.raises(PlanViolation):
        curator.select_coordinate(np.zeros(4), clips=np.ones(4), smoothness=np.ones(4), n=40)


def test_a_batch_is_paid_for_one_by_one():
    X, y = table(4)
    curator = opened(X, y, Squared(), selecting(5), budget=Budget(1.0, 1e-6))
    curator.select_coordinate(np.zeros(4), clips=np.ones(4), smoothness=np.ones(4), n=40, count=3)
    with pytest.raises(PlanViolation):
        curator.select_coordinate(np.zeros(4), clips=np.ones(4), smoothness=np.ones(4), n=40, count=3)


@covering(("n", [1, 50, 10**6]), ("penalty", [*PENALTIES, L1(1e4), L2(1e4)]), ("rule", RULES))
def test_integer_scores_move_by_no_more_than_claimed(rule, penalty, n):
    """Random and extreme sums: a record moves a coordinate's integer sum by 2 B, its score by at most S + 2."""
    rng = np.random.default_rng(n)
    bound = min(1 << 40, (1 << 61) // n)
    p = 1500
    for scale in (1e-6, 1e-2, 1.0, 100.0):
        M = 10.0 ** rng.uniform(-6, 3, p)
        clips = scale * np.sqrt(M) * rng.choice([1.0, 1e-3, 0.3], p)
        w = rng.choice([0.0, 1.0], p) * rng.normal(size=p) * 10.0 ** rng.uniform(-3, 3, p)
        room = (n - 1) * bound
        base = np.array([int(v * room) for v in rng.choice([-1.0, 1.0, 0.0, 0.5, 1e-9, -0.3], p)], dtype=np.int64)
        steps, sensitivity = clips / bound, 2 * float(np.max(clips / np.sqrt(M))) / n
        largest = n + _largest_offset(w, M, penalty) / sensitivity
        try:
            step, _ = score_lattice(0.1, largest)
        except Unsupported:
            continue
        integers = [
            np.floor(scores(rule, (base + sign * bound) * steps / n, w, M, penalty) * (step / sensitivity))
            for sign in (-1, 1)
        ]
        assert np.abs(integers).max() < 2**49
        moved = np.abs(integers[0] - integers[1]).astype(np.int64)
        assert moved.max() <= step + 2


@pytest.mark.parametrize("epsilon", [1e-6, 0.01, 0.5, 1.0, 7.3, 300.0])
@pytest.mark.parametrize("n", [1, 10**4, 1 << 26])
def test_the_lattice_of_scores(epsilon, n):
    step, m = score_lattice(epsilon, n)
    assert Fraction(2 * (step + 2), 1 << m) <= Fraction(epsilon)
    assert Fraction(2 * (step + 2), 1 << m) > Fraction(epsilon) * Fraction(98, 100)
    assert step * n <= 1 << 48


@pytest.mark.parametrize("n", [1, 1 << 34])
def test_more_than_the_lattice_can_spend_is_no_dead_end(n):
    """At the finest noise there is a choice costs less than it may."""
    step, m = score_lattice(1e9, n)
    assert m == 1
    assert step * n <= 1 << 48
    assert Fraction(2 * (step + 2), 1 << m) <= Fraction(1e9)


@covering(("sparse", [False, True]), ("rule", RULES), ("relation", RELATIONS))
def test_unequal_sensitivities_stay_within_the_claim(rule, relation, sparse):
    """One tiny scaled sensitivity among many large ones: every outcome's likelihood ratio, from exact probabilities."""
    k, n, epsilon = 100, 40, 0.5
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (n, k))
    y = rng.uniform(-1, 1, n)
    X[0], y[0] = 1.0, -1.0
    neighbors = {"replace_one": -np.ones(k), "zero_out": np.full(k, np.nan), "add_remove": None}[relation]
    other, other_y = X.copy(), y
    if neighbors is None:
        other, other_y = X[1:], y[1:]
    else:
        other[0] = neighbors
    clips, M = np.ones(k), np.ones(k)
    clips[0] = 1e-4
    budget = Budget(epsilon, 0.0, relation)
    logs, claims = [], []
    for features, targets in ((X, y), (other, other_y)):
        curator = opened(csr(features) if sparse else features, targets, Squared(), selecting(1), budget=budget)
        with window() as seen:
            curator.select_coordinate(np.zeros(k), clips=clips, smoothness=M, n=n, rule=rule)
        z = seen[0].exact / 2.0 ** seen[0].unit.m
        logs.append(z - np.log(np.exp(z - z.max()).sum()) - z.max())
        claims.append(1 / curator.noise_multiplier)
    assert claims[0] == claims[1] <= epsilon * (1 + 1e-9)
    assert np.abs(logs[0] - logs[1]).max() <= epsilon


@pytest.mark.parametrize(("clips", "smoothness"), [([1.0, 1.0, 0.1], np.ones(3)), (np.ones(3), [1.0, 1.0, 4.0])])
def test_noisy_max_is_refused_where_it_is_unsound(clips, smoothness):
    X, y = table(3)
    curator = opened(X, y, Squared(), selecting(5, "noisy_max"), budget=Budget(1.0, 1e-6))
    with pytest.raises(Unsupported):
        curator.select_coordinate(np.zeros(3), clips=np.array(clips), smoothness=np.array(smoothness), n=40)


@covering(("penalty", [L2(10.0), ElasticNet(10.0, 0.5)]), ("relation", RELATIONS))
def test_an_l2_penalty_shifts_the_sums_of_noisy_max_alike(relation, penalty):
    """The shift is n l2 w_j in the sums' steps, the same for neighbors, however large; then the sums alone move."""
    X, y = table(3)
    w, M, clips = np.array([0.0, -3.0, 30.0]), np.array([1.0, 4.0, 0.25]), np.array([0.5, 1.0, 0.25])
    other = (
        X[1:]
        if relation == "add_remove"
        else np.vstack([np.full(3, np.nan if relation == "zero_out" else -1.0), X[1:]])
    )
    exact = []
    for features, asked in ((X, penalty), (other, penalty), (X, NoPenalty())):
        curator = opened(
            features, y[-len(features) :], LOSS, selecting(1, "noisy_max"), budget=Budget(1.0, 1e-6, relation)
        )
        with window() as seen:
            curator.select_coordinate(w, clips=clips, smoothness=M, n=40, penalty=asked)
        exact.append(seen[0].exact)
    steps = clips / seen[0].unit.bound
    assert exact[0] - exact[2] == pytest.approx(40 * penalty.l1_l2[1] * w / steps, abs=1.0)
    assert np.abs(exact[0] - exact[1]).max() <= seen[0].factor * seen[0].unit.bound


def test_a_choice_leaves_without_noise_only_where_nothing_is_private():
    X, y = table(5)
    curator = opened(X, y, Squared(), selecting(2), gradients(1))
    assert curator.select_coordinate(np.zeros(5), clips=np.ones(5), smoothness=np.ones(5), n=40).tolist() == [0]
    assert curator.certificate(model="m", solver={}).not_private or not curator.budget.is_private


def papers_losses(X, y, n_outer, n_inner, scale, l1, draws):
    """Final objectives of DP-CD (ICML 2022) in plain numpy: uniform draws, M_j = 1, the mean of an inner loop."""
    rng, (n, p), out = np.random.default_rng(8), X.shape, []
    for _ in range(draws):
        w = np.zeros(p)
        for _ in range(n_outer):
            theta, total = w.copy(), np.zeros(p)
            for _ in range(n_inner):
                j = int(rng.integers(p))
                g = np.clip(X[:, j] * (X @ theta - y), -CLIP, CLIP).sum() / n
                moved = theta[j] - g - rng.normal(0, scale / n)
                theta[j] = np.sign(moved) * max(abs(moved) - l1, 0.0)
                total += theta
            w = total / n_inner
        out.append(np.mean((X @ w - y) ** 2) / 2 + l1 * np.abs(w).sum())
    return np.array(out)


def test_the_papers_coordinate_descent_has_the_law_of_plain_numpy():
    """The same noise, the same law of final objectives; with half the noise the laws differ."""
    (X, y), l1, draws, loops = table(6, n=60), 0.01, 300, (2, 8)
    solver = CoordinateDescent(*loops, Geometry(clip=CLIP * math.sqrt(6)), schedule="uniform", calibration="paper")
    budget = Budget(0.1, 1e-3, "zero_out")
    data = PrivateData(X, y, bounds_for(LOSS, 6), fit_intercept=False)
    priced = price_plan(solver.plan(data.domain(budget.neighbors, LOSS), LOSS, L1(l1)), budget)
    final = []
    with use_entropy(Words(3)):
        for _ in range(draws):
            w = solver.solve(data.open(priced, LOSS), L1(l1)).coefficients
            final.append(np.mean((X @ w - y) ** 2) / 2 + l1 * np.abs(w).sum())
    scale = CLIP * priced.noise_multiplier
    assert ks_2samp(final, papers_losses(X, y, *loops, scale, l1, 1000)).pvalue > 1e-3
    assert ks_2samp(final, papers_losses(X, y, *loops, 0.5 * scale, l1, 1000)).pvalue < 1e-6
