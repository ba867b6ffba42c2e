"""The number of runs: its law, and that what is drawn has it."""

import math
from decimal import Decimal
from fractions import Fraction
from itertools import islice

import numpy as np
import pytest
from scipy.stats import chi2

from discreet.accounting.number_of_runs import SHAPES, Stopping
from discreet.curator.lattice.entropy import SeededEntropy
from discreet.errors import AccountingError

LAWS = [Stopping(mean, shape) for shape in (None, 1.0, 0.5, 0.0, -0.5) for mean in (1.3, 6.0)]
LAWS += [Stopping(0.3, None), Stopping(2.0, 7.0), Stopping(25.0, 0.0)]
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


@pytest.mark.parametrize("law", LAWS, ids=name)
def test_probabilities_are_a_law_with_the_declared_mean(law):
    listed = law_of(law, 4000)
    assert math.fsum(listed.values()) == pytest.approx(1, abs=1e-9)
    mean = math.fsum(k * p for k, p in listed.items())
    assert mean == pytest.approx(law.mean, rel=1e-6)
    assert math.exp(law.log_mean) >= mean * (1 - 1e-9)
    assert math.exp(law.log_mean) <= law.mean * (1 + 1e-9)
    assert min(listed) == (0 if law.shape is None else 1)


def test_known_parameters():
    assert Stopping(10.0, 1.0).gamma == 0.1
    assert Stopping(10.0, 0.5).gamma == pytest.approx(0.0625)
    assert Stopping(10.0, 0.0).gamma == pytest.approx(0.0269182596, rel=1e-8)
    assert {shape: Stopping(10.0, shape).name for shape in SHAPES.values()} == {v: k for k, v in SHAPES.items()}
    first = dict(islice(Stopping(10.0, 1.0).probabilities(40), 3))
    gamma = Decimal(Stopping(10.0, 1.0).gamma)
    assert [float(first[k]) for k in (1, 2, 3)] == [float(gamma * (1 - gamma) ** k) for k in range(3)]


@pytest.mark.parametrize("law", LAWS, ids=name)
def test_the_best_share_is_reached_as_the_law_says(law):
    listed = law_of(law, 4000)
    for share in (1e-6, 0.1, 0.7, 1.0):
        missed = {k: k * math.log1p(-share) if share < 1 else -math.inf * (k > 0) for k in listed if k or share < 1}
        by_hand = math.fsum(p * -math.expm1(missed[k]) for k, p in listed.items() if k in missed)
        assert float(law.best_beyond(np.array([share]))[0]) == pytest.approx(by_hand, rel=1e-7)


@pytest.mark.few(3)
@pytest.mark.parametrize("law", LAWS, ids=name)
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


def test_the_far_tail_ends():
    stream = iter([(1 << 64) - 1] * 4 + [3] * 10)
    assert Stopping(2.0, 1.0).draw(lambda: next(stream)) > 200
    assert Stopping(3.0, None).draw(iter([0] * 3 + [1] * 10).__next__) == 0


@pytest.mark.parametrize(
    ("mean", "shape"),
    [(1.0, 0.0), (0.5, 1.0), (0.0, None), (-1.0, None), (math.inf, None), (math.nan, 0.0), (5000.0, 1.0), (5.0, -1.0)],
)
def test_laws_that_do_not_exist(mean, shape):
    with pytest.raises(AccountingError):
        Stopping(mean, shape)


@pytest.mark.parametrize(("mean", "shape"), [("10", 0.0), (True, None), (5.0, "1"), (5.0, True), (5.0, math.nan)])
def test_laws_of_other_types(mean, shape):
    with pytest.raises(AccountingError):
        Stopping(mean, shape)
