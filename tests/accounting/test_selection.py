"""The number of runs: its law, and that what is drawn has it.

The price of "repeat and select": published numbers, exact small cases, attacks, planted mistakes.
"""

import itertools
import math
from fractions import Fraction
from itertools import islice

import mpmath
import numpy as np
import pytest
from scipy.stats import chi2

from discreet.accounting import gaussian, rdp, selection
from discreet.accounting.events import Gaussian, Laplace, PureDP, RepeatedSelection, pure_epsilon
from discreet.accounting.pricing import epsilon_of
from discreet.accounting.selection import Stopping
from discreet.budget import Neighbors
from discreet.curator.noise import SeededEntropy
from discreet.errors import Unsupported
from tests.covering import covering

STOPPING_LAWS = [Stopping(mean, shape) for shape in (None, 1.0, 0.5, 0.0, -0.5) for mean in (1.3, 6.0)]
STOPPING_LAWS += [Stopping(0.3, None), Stopping(2.0, 7.0), Stopping(25.0, 0.0)]
DRAWS = 2000


def name(law):
    return f"{law.name}, {law.mean:g}"


def words(seed):
    entropy = SeededEntropy(seed)
    stream = iter(entropy.words(1 << 16).tolist())
    return lambda: next(stream)


def drawn(law, count=DRAWS, seed=1):
    word = words(seed)
    return np.array([law.draw(word) for _ in range(count)])


def law_of(law, most):
    return {k: float(p) for k, p in islice(law.probabilities(40), most)}


def misfit(law, found, most=4000):
    """Chi-square of draws against a law, over cells of at least ten expected draws, and its critical value at 1e-6."""
    expected, cells, total, kept = law_of(law, most), [], 0.0, 0
    chance, seen = 0.0, 0
    for k, probability in expected.items():
        chance, seen = chance + probability, seen + int((found == k).sum())
        if chance * len(found) >= 10 and (1 - total - chance) * len(found) >= 10:
            cells.append((chance * len(found), seen))
            total, kept, chance, seen = total + chance, kept + seen, 0.0, 0
    cells.append(((1 - total) * len(found), len(found) - kept))
    return sum((seen - mean) ** 2 / mean for mean, seen in cells), chi2.isf(1e-6, len(cells) - 1)


@pytest.mark.parametrize("law", STOPPING_LAWS, ids=name)
def test_probabilities_are_a_law_with_the_declared_mean(law):
    listed = law_of(law, 4000)
    assert math.fsum(listed.values()) == pytest.approx(1, abs=1e-9)
    mean = math.fsum(k * p for k, p in listed.items())
    assert mean == pytest.approx(law.mean, rel=1e-6)
    assert math.exp(law.log_mean) >= mean * (1 - 1e-9)
    assert math.exp(law.log_mean) <= law.mean * (1 + 1e-9)
    assert min(listed) == (0 if law.shape is None else 1)


@pytest.mark.few(3)
@pytest.mark.parametrize("law", STOPPING_LAWS, ids=name)
def test_draws_have_the_law(law):
    statistic, critical = misfit(law, drawn(law))
    assert statistic < critical


@pytest.mark.parametrize(
    "other", [Stopping(4.0, 1.0), Stopping(4.0, None), Stopping(6.0, 0.0)], ids=["shape", "Poisson", "mean"]
)
def test_draws_of_another_law_are_told_apart(other):
    statistic, critical = misfit(Stopping(4.0, 0.0), drawn(other))
    assert statistic > critical


def test_geometric_draws_are_exact_quantiles():
    """In fractions: K = k where 1 - (1 - gamma)^(k-1) <= U < 1 - (1 - gamma)^k."""
    law, word = Stopping(3.0, 1.0), words(7)
    rest = 1 - Fraction(law.gamma)
    for _ in range(200):
        taken = []

        def tap(taken=taken):
            taken.append(word())
            return taken[-1]

        k = law.draw(tap)
        low = Fraction(taken[0] << 64 | taken[1], 1 << 128)
        assert 1 - rest ** (k - 1) <= low
        assert low + Fraction(1, 1 << 128) <= 1 - rest**k
        assert len(taken) == 2


def test_a_tie_is_decided_by_more_bits():
    """The distribution function of the geometric law with gamma = 1/2 is dyadic: U = 1/2 - tiny, or 1/2 and above."""
    law = Stopping(2.0, 1.0)
    half = 1 << 63
    stream = iter([half - 1, (1 << 64) - 1, (1 << 64) - 1, 5])
    assert law.draw(lambda: next(stream)) == 1
    stream = iter([half, 0, 0, 5])
    assert law.draw(lambda: next(stream)) == 2
    assert law._quantile((half << 64), 128) is None


BASE = (Gaussian(10.0, 20),)
DELTA = 1e-6
LAWS = [None, 1.0, 0.5, 0.0, -0.5]
ZERO_OUT = Neighbors.ZERO_OUT


def selected(run=BASE, mean=10.0, shape=0.0):
    return RepeatedSelection((tuple(run),), mean, shape)


def price(event, delta=DELTA):
    return epsilon_of((event,), delta, ZERO_OUT).epsilon


# ---------------------------------------------------------------------------------- published numbers


def at_orders(event, orders):
    """The price from these orders alone."""
    curve = event.log_moments(ZERO_OUT, orders) / (orders - 1)
    return min(rdp.epsilon_of_order(d, a, DELTA) for d, a in zip(curve.tolist(), orders.tolist(), strict=True))


@pytest.fixture(scope="module")
def published_orders():
    from dp_accounting.rdp import rdp_privacy_accountant

    return np.array([float(order) for order in rdp_privacy_accountant.DEFAULT_RDP_ORDERS])


@pytest.mark.parametrize(("shape", "published"), [(1.0, 4.0688), (0.0, 3.4519), (0.5, 3.7791)])
def test_truncated_negative_binomial(shape, published, published_orders, monkeypatch):
    ours = price(selected(shape=shape))
    assert published - 1.5e-3 < ours <= published  # more orders, hence no dearer
    monkeypatch.setattr(selection, "ORDERS", published_orders)  # b, too, from these
    assert at_orders(selected(shape=shape), published_orders) == pytest.approx(published, abs=5e-5)


def test_poisson_with_the_exact_profile():
    assert price(selected(shape=None)) == pytest.approx(3.7755, abs=5e-5)


@covering((("mean", "z", "delta"), [(2.0, 1.0, 1e-5), (5.0, 3.0, 1e-9), (40.0, 8.0, 1e-6)]), ("shape", LAWS[:-1]))
def test_another_library(shape, mean, z, delta):
    """Their orders are fewer, and their Poisson profile comes from Renyi DP: they are never cheaper."""
    from dp_accounting import dp_event
    from dp_accounting.rdp import rdp_privacy_accountant

    accountant = rdp_privacy_accountant.RdpAccountant()
    law = math.inf if shape is None else shape
    accountant.compose(dp_event.RepeatAndSelectDpEvent(dp_event.GaussianDpEvent(z), mean, law))
    theirs = accountant.get_epsilon(delta)
    ours = price(selected((Gaussian(z),), mean, shape), delta)
    assert ours <= theirs * (1 + 1e-6)
    assert ours >= theirs * (0.98 if shape is not None else 0.5)


# --------------------------------------------------------------------------------- exact small cases


def generating(law, x):
    """E[x^K], in fifty digits."""
    if law.shape is None:
        return mpmath.exp(law.mean * (x - 1))
    gamma, eta = mpmath.mpf(law.gamma), mpmath.mpf(law.shape)
    if eta == 0:
        return mpmath.log(1 - (1 - gamma) * x) / mpmath.log(gamma)
    return ((1 - (1 - gamma) * x) ** -eta - 1) / (gamma**-eta - 1)


def best_of(law, probabilities):
    """The exact law of the best of K outcomes, in their order from worst to best; and of no run where that can be."""
    with mpmath.workdps(50):
        reached, answer = mpmath.mpf(0), []
        total = mpmath.fsum(probabilities.tolist())
        below = generating(law, mpmath.mpf(0))
        no_run = below
        for probability in probabilities.tolist():
            reached += probability / total
            at = generating(law, reached)
            answer.append(at - below)
            below = at
        return [*answer, no_run]


def hockey_stick(p, q, epsilon):
    with mpmath.workdps(50):
        return float(mpmath.fsum(max(a - mpmath.exp(epsilon) * b, 0) for a, b in zip(p, q, strict=True)))


def largest_ratio(p, q):
    with mpmath.workdps(50):
        return max(float(abs(mpmath.log(a / b))) for a, b in zip(p, q, strict=True) if a > 0)


def pure_pairs(epsilon):
    """Pairs of laws on few outcomes whose ratios are within e^epsilon, in every order of the outcomes."""
    e = math.exp(epsilon)
    response = np.array([e, 1.0]) / (1 + e)
    tilted = np.array([e, 1.0, 1.0]) / (2 + e)
    rare = np.array([0.03 * e, 0.03, 1 - 0.03 * (1 + e)])
    first = np.array([1 - 1e-5 * e - 0.03, 1e-5 * e, 0.03])  # which loses to an outcome that the neighbor favors
    second = np.array([1 - 1e-5 - 0.03 * e, 1e-5, 0.03 * e])
    for p, q in ((response, response[::-1]), (tilted, tilted[[1, 0, 2]]), (rare, rare[[1, 0, 2]]), (first, second)):
        for order in itertools.permutations(range(len(p))):
            yield p[list(order)], q[list(order)]


@covering(("epsilon", [0.1, 0.7, 2.0]), ("mean", [1.5, 4.0, 10.0, 60.0]), ("shape", LAWS))
def test_never_cheaper_than_it_is(shape, mean, epsilon):
    law = Stopping(mean, shape)
    pairs = [(best_of(law, p), best_of(law, q)) for p, q in pure_pairs(epsilon)]
    for delta in (1e-2, 1e-4, 1e-7):
        claimed = price(selected((PureDP(epsilon),), mean, shape), delta)
        assert max(hockey_stick(p, q, claimed) for p, q in pairs) <= delta * (1 + 1e-9)
    if shape is not None:
        claimed = price(selected((PureDP(epsilon),), mean, shape), 0.0)
        assert claimed == pytest.approx((2 + shape) * epsilon)
        assert max(largest_ratio(p, q) for p, q in pairs) <= claimed


@pytest.mark.few(2)
@pytest.mark.parametrize("shape", LAWS)
def test_gaussian_runs_with_every_kind_of_order(shape):
    """A fine histogram of N(0, 1) and N(mu, 1), with scores that are malicious, honest, or at random."""
    mu, mean, delta = 0.4, 10.0, 1e-5
    edges = np.linspace(-7, 7.4, 300)
    p, q = (np.diff(0.5 * np.array([math.erfc(-(x - m) / math.sqrt(2)) for x in edges])) for m in (0.0, mu))
    p, q = np.append(p, 1 - p.sum()).clip(1e-300), np.append(q, 1 - q.sum()).clip(1e-300)
    law, worst = Stopping(mean, shape), 0.0
    claimed = price(selected((Gaussian(1 / mu),), mean, shape), delta)
    ranks = np.arange(p.size)
    orders = [ranks, ranks[::-1], np.random.default_rng(0).permutation(p.size)]
    for cut in (150, 180, 205, 220):  # those above the cut are best, then the smallest
        orders.append(np.concatenate([ranks[:cut][::-1], ranks[cut:]]))
    for order in orders:
        for a, b in ((p, q), (q, p)):
            worst = max(worst, hockey_stick(best_of(law, a[order]), best_of(law, b[order]), claimed))
    assert 0 < worst <= delta


# ---------------------------------------------------------------------------------- shape of the price


@pytest.mark.parametrize("shape", LAWS)
def test_several_kinds_of_runs_cost_the_dearest_at_each_order(shape):
    one, other = (Gaussian(5.0),), (PureDP(0.5),)
    both = price(RepeatedSelection((one, other), 10.0, shape))
    assert both >= max(price(selected(one, shape=shape)), price(selected(other, shape=shape)))
    assert price(RepeatedSelection((one, one), 10.0, shape)) == price(selected(one, shape=shape))
    assert price(RepeatedSelection((one, (Gaussian(50.0),)), 10.0, shape)) == price(selected(one, shape=shape))


def test_pure_budgets():
    event = selected((Laplace(4.0, 2),), shape=0.0)
    assert price(event, 0.0) == pytest.approx(1.0)
    assert price(event, 0.0) >= 2 * pure_epsilon(event.runs[0])
    assert epsilon_of((event, PureDP(0.25)), 0.0).epsilon == pytest.approx(1.25)
    with pytest.raises(Unsupported, match="Poisson"):
        price(selected((Laplace(4.0),), shape=None), 0.0)
    with pytest.raises(Unsupported, match="pure"):
        price(selected(shape=0.0), 0.0)


@covering(("epsilon", [0.05, 1.0, 8.0]), ("shape", LAWS))
def test_what_a_run_may_spend(shape, epsilon):
    mu = selection.run_mu(Stopping(5.0, shape), epsilon, DELTA)
    assert 0.99 * epsilon < price(selected((Gaussian(1 / mu),), 5.0, shape)) <= epsilon
    assert mu < gaussian.mu_of(epsilon, DELTA)
