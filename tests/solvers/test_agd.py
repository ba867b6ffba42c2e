"""What DP-AGD does with its answers, seen through a curator that answers from a script."""

import json
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from discreet import Bounds, Budget, Certificate, DPLinearSVC, DPLogisticRegression, DPPoissonRegressor
from discreet.accounting import AdaptivePlan
from discreet.accounting.plan import Charge, Filter
from discreet.bounds import Domain
from discreet.budget import Neighbors
from discreet.curator.noise import use_entropy
from discreet.errors import AccountingError, BudgetExceeded, DiscreetError
from discreet.losses import Logistic, Poisson
from discreet.losses.base import least, value
from discreet.penalties import L2, NoPenalty
from discreet.solvers import AdaptiveDescent, GradientDescent
from discreet.testing import neighbor_pairs, seeded
from tests.entropy import Buffered
from tests.replaying import window
from tests.solvers.agd.cases import (
    CHOICE,
    NOISY_MAX,
    RELATIONS,
    ask_gradient,
    large_budget,
    log_softmax,
    opened,
    realized_rho,
    small_table,
)

P = 3


class Script:
    """A curator whose gradients and choices are written beforehand; it charges a real filter."""

    def __init__(self, gradients, choices, total=1.0, n=100, private=True):
        self.domain = Domain(np.ones(P), math.sqrt(P), n, Neighbors("zero_out"))
        self.loss, self.budget = Logistic(), Budget(1.0 if private else math.inf, 1e-6)
        self.filter = Filter(total)
        self.plan = AdaptivePlan(())
        self.gradients, self.choices = gradients, choices
        self.asked, self.points, self.offsets, self.rounds = [], [], [], 0

    @property
    def noise_multiplier(self):
        return 1.0

    def next_round(self):
        self.rounds += 1
        self.filter.round += 1

    def noisy_gradient(self, w, *, clip, rho):
        self.filter.charge("noisy_gradient", rho)
        self.asked.append(("gradient", w.copy(), clip, rho))
        return np.asarray(next(self.gradients), dtype=float)

    def select_candidate(self, points, *, loss_bound, offsets=None, rho=None):
        self.filter.charge("select_candidate", rho)
        self.points.append(np.array(points))
        self.offsets.append(np.array(offsets))
        self.asked.append(("choice", None, loss_bound, rho))
        return next(self.choices)


def run(gradients, choices, solver=None, penalty=None, **settings):
    """A scripted run; it ends with the filter, or when the script has no more choices."""
    script = Script(iter(gradients), iter(choices), **settings)

    def out_of_script(*_, **__):
        raise BudgetExceeded("the script is over")

    ask = script.select_candidate

    def select(points, **given):
        try:
            return ask(points, **given)
        except StopIteration:
            return out_of_script()

    script.select_candidate = select
    solver = solver or paperlike()
    return solver.solve(script, penalty or NoPenalty()).coefficients, script


def paperlike(**settings):
    """Twenty equally spaced steps and a largest one that only its adjustment changes: the paper's."""
    given = {"n_step_sizes": 20, "shrink": 1.0, "clip": 1.0, "gradient_rho": 1e-3, "choice_rho": 1e-3, **settings}
    return AdaptiveDescent(**given)


def forever(vector):
    while True:
        yield vector


def test_penalties_of_points_far_out_are_at_most_what_losses_can_never_make_up_for():
    _, script = run(forever([0.0, 1e6, 0.0]), [5], paperlike(largest_step=1e30, loss_bound=3.0), L2(1e-3))
    offsets = script.offsets[0]
    assert offsets[0] == 0
    np.testing.assert_array_equal(offsets[1:], 4 * 3 * 100)


def test_zero_is_always_among_the_steps_and_the_direction_is_normalized():
    _, script = run(forever([300.0, -400.0, 0.0]), [5, 20])
    first, second = script.points[:2]
    assert len(first) == 21
    np.testing.assert_array_equal(first[0], np.zeros(P))
    np.testing.assert_allclose(first[-1], -2.0 * np.array([0.6, -0.8, 0.0]))
    np.testing.assert_allclose(np.linalg.norm(np.diff(first, axis=0), axis=1), 0.1)
    np.testing.assert_array_equal(second[0], first[5])
    np.testing.assert_array_equal(script.points[2][0], second[20])


def test_no_step_goes_farther_than_the_curvature_bears():
    """Near an optimum a gradient is small, and a choice between steps far beyond it is noise."""
    _, script = run(iter([[3.0, -4.0, 0.0], [3e4, 0.0, 0.0], [0.0] * P]), [20, 20], paperlike(relative_step=3.0))
    near, far = (np.linalg.norm(points[-1] - points[0]) for points in script.points[:2])
    smoothness = 0.25 * P  # of the declared rows
    assert near == pytest.approx(3.0 / smoothness * 5.0 / 100)
    assert far == pytest.approx(2.0)


def test_the_measured_gradient_keeps_its_length():
    """When 0 wins, the second sum is averaged with the first as it was, in proportion to precision."""
    first, second, third = [1000.0, 0.0, 0.0], [0.0, 5500.0, 0.0], [0.0, 0.0, 77.0]
    solver = paperlike(gradient_rho=0.01, growth=0.5)
    _, script = run(iter([first, second, third, first]), [0, 0, 3], solver, total=10.0)
    rhos = [rho for kind, _, _, rho in script.asked if kind == "gradient"]
    total = rhos[0]
    assert rhos[1] == pytest.approx(0.5 * total)
    assert rhos[2] == pytest.approx(0.5 * 1.5 * total)
    assert rhos[3] == pytest.approx(1.5 * 1.5 * total)  # the next round starts at the precision reached
    expected = np.zeros(P)
    for precision, measured in zip(rhos[:3], (first, second, third), strict=True):
        expected += precision * np.array(measured) / sum(rhos[:3])
    direction = script.points[0][0] - script.points[2][-1]
    np.testing.assert_allclose(direction / np.linalg.norm(direction), expected / np.linalg.norm(expected), rtol=1e-9)


def test_the_run_ends_with_the_first_refusal():
    coefficients, script = run(
        forever([1.0, 0.0, 0.0]), forever(20), paperlike(gradient_rho=0.15, choice_rho=0.15), total=1.0
    )
    total = script.plan.total(script.budget)
    charged = [charge.rho for charge in script.filter.trace]
    np.testing.assert_allclose(charged, 0.15 * total)
    assert script.filter.trace[-1].answered is False or len(charged) * 0.15 * total > 1.0
    assert [charge.answered for charge in script.filter.trace[:-1]] == [True] * (len(charged) - 1)
    assert coefficients[0] == pytest.approx(-2.0 * sum(kind == "choice" for kind, *_ in script.asked))


def fitted(kind, **settings):
    X, _ = small_table(n=30)
    facts = {"classes": (0, 1)} if kind in (DPLogisticRegression, DPLinearSVC) else {"target": (0.0, 4.0)}
    y = (X[:, 0] > 0).astype(float)
    return kind(1.0, **({"delta": 1e-6, "bounds": 1.0, "solver": "agd", **facts} | settings)).fit(X, y)


def test_losses_that_can_be_negative_are_compared_above_their_least():
    """Clipped to [0, bound], the Poisson loss itself is another function: its part above the least is clipped."""
    loss, margins = Poisson(2.0), np.linspace(-2, 2, 41)
    for target in (0.0, 0.5, 3.0):
        above = np.array([value(loss, margin, target) for margin in margins]) - least(loss, target)
        assert above.min() >= -1e-12
    fitted(DPPoissonRegressor)


# --- the budget trace in a certificate


def fit(solver="agd", epsilon=1.0):
    X, y = small_table(n=30)
    return DPLogisticRegression(epsilon, 1e-6, bounds=1.0, classes=(-1, 1), solver=solver).fit(X, y)


@pytest.fixture(scope="module")
def certificate():
    return fit(AdaptiveDescent(n_rounds=4, clip=0.5)).certificate_


def test_it_says_what_was_spent_on_what_and_when(certificate):
    assert {charge.query for charge in certificate.trace} == {"noisy_gradient", "select_candidate"}
    assert not certificate.trace[-1].answered
    assert all(charge.answered for charge in certificate.trace[:-1])
    spent = sum(Fraction(charge.rho) for charge in certificate.trace if charge.answered)
    assert 0 < spent <= Fraction(certificate.events[0].rho)
    assert certificate.is_private
    assert certificate.verify().is_private


def overspent(certificate):
    rho = 2 * certificate.events[0].rho
    return replace(certificate, trace=(*certificate.trace, Charge("noisy_gradient", rho, 9)))


def test_a_trace_that_spends_more_than_its_events_is_refused(certificate):
    with pytest.raises(AccountingError, match="trace"):
        overspent(certificate).verify()
    whole = certificate.events[0].rho
    exact = replace(certificate, trace=(Charge("noisy_gradient", whole, 1),))
    exact.verify()
    just_above = (Charge("noisy_gradient", whole, 1), Charge("noisy_gradient", 5e-324, 1))
    with pytest.raises(AccountingError, match="trace"):
        replace(certificate, trace=just_above).verify()
    refused = replace(certificate, trace=(Charge("noisy_gradient", 10 * whole, 1, answered=False),))
    refused.verify()


def test_a_trace_without_an_event_that_pays_is_refused(certificate):
    plain = fit(GradientDescent(n_steps=3)).certificate_
    with pytest.raises(AccountingError, match="trace"):
        replace(plain, trace=certificate.trace).verify()


def edited(certificate, **changes):
    stored = json.loads(certificate.to_json())
    stored["trace"].append({"query": "noisy_gradient", "rho": 1e-9, "round": 1, "answered": True, **changes})
    return json.dumps(stored)


@pytest.mark.parametrize(
    "changes",
    [{"rho": -5.0}, {"rho": 0.0}, {"rho": "0.1"}, {"rho": None}, {"rho": "inf"}, {"rho": True}, {"round": "two"},
     {"round": -1}, {"answered": "no"}, {"query": 7}, {"extra": 1}],
    ids=str,
)  # fmt: skip
def test_a_line_that_no_filter_wrote_is_refused(certificate, changes):
    with pytest.raises(DiscreetError):
        Certificate.from_json(edited(certificate, **changes)).verify()


def test_a_negative_charge_does_not_hide_an_overspent_budget(certificate):
    rho = overspent(certificate).trace[-1].rho
    with pytest.raises(AccountingError):
        Charge("noisy_gradient", -rho, 9)


# --- the noise that a rho buys

SIGNIFICANCE = 1e-9


def deviation_p(values, sigma):
    """How well N(0, sigma^2) explains the spread, from both sides."""
    statistic = float(np.sum(np.square(values / sigma)))
    return 2 * min(stats.chi2.cdf(statistic, values.size), stats.chi2.sf(statistic, values.size))


def gradient_errors(relation, rho, clip, repeats=40, p=100):
    """Released minus exact sums, in real units."""
    rng = np.random.default_rng(0)
    with seeded(11), window() as seen:
        curator = opened(large_budget(relation), X=rng.uniform(-1, 1, (6, p)), y=rng.choice([-1, 1], 6))
        answers = [ask_gradient(curator, rho, clip) for _ in range(repeats)]
    exact = [m.exact.ravel() * m.unit.step for m in seen]
    return np.concatenate([a - e for a, e in zip(answers, exact, strict=True)]), seen


@pytest.mark.statistical
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize(("rho", "clip"), [(1e-9, 3.0), (0.02, 0.4), (11.0, 1e-3)])
def test_a_gradient_has_the_noise_of_its_rho(relation, rho, clip):
    errors, seen = gradient_errors(relation, rho, clip)
    a = 2 if relation == "replace_one" else 1
    sigma = a * clip / math.sqrt(2 * rho)
    assert deviation_p(errors, sigma) > SIGNIFICANCE
    assert deviation_p(errors, 1.3 * sigma) < SIGNIFICANCE
    assert deviation_p(errors, sigma / 1.3) < SIGNIFICANCE
    assert all(realized_rho(m) <= Fraction(rho) for m in seen)


# --- the law of a private choice among 21 points

K = 21
BOUND = 1.0
NODES, WEIGHTS = np.polynomial.legendre.leggauss(24)


def laplace_cdf(x):
    return np.where(x < 0, 0.5 * np.exp(np.minimum(x, 0)), 1 - 0.5 * np.exp(-np.maximum(x, 0)))


def noisy_max_law(scores, density=lambda x: 0.5 * np.exp(-np.abs(x)), cdf=laplace_cdf, reach=50.0):
    """P(i wins) when each score gets unit noise: the integral of f(x) prod_j F(x + s_i - s_j), between its kinks."""
    answer = np.empty(len(scores))
    for i, score in enumerate(scores):
        others = np.delete(scores, i)
        edges = np.unique(np.concatenate([np.linspace(-reach, reach, 101), np.clip(others - score, -reach, reach)]))
        middles, halves = (edges[1:] + edges[:-1]) / 2, np.diff(edges) / 2
        x = middles[:, None] + halves[:, None] * NODES
        inner = density(x) * np.prod(cdf(x[..., None] + (score - others)), axis=-1)
        answer[i] = float(np.sum(inner * WEIGHTS * halves[:, None]))
    return answer


def scaled(measurement):
    """Exact scores over the noise's scale: what the law depends on."""
    return np.array([math.ldexp(int(s) - int(measurement.exact.max()), -measurement.unit.m) for s in measurement.exact])


def law_of(measurement, mechanism):
    scores = scaled(measurement)
    return np.exp(log_softmax(scores)) if mechanism == "exponential" else noisy_max_law(scores)


def line(shape, largest=2.0):
    """21 points on a line from zero, as in a search for a step."""
    direction = np.linspace(1.0, -1.0, int(np.prod(shape))).reshape(shape)
    return np.multiply.outer(np.linspace(0.0, largest, K), direction)


def spread_points(shape):
    return 4.0 * np.random.default_rng(6).normal(size=(K, *shape))


def seen_choice(X, y, relation, choice, rho, points=line, groups=None):
    with seeded(0), window() as seen:
        curator = opened(large_budget(relation), (choice,), X=X, y=y, groups=groups, intercept=True)
        curator.select_candidate(points(curator.domain.shape), loss_bound=BOUND, rho=rho)
    return seen[0]


def table(n=9):
    rng = np.random.default_rng(4)
    return rng.uniform(-1, 1, (n, 2)), rng.choice([-1.0, 1.0], n)


def worst_ratios(first, second):
    """The largest |log-ratio| of two laws, and the range of their log-ratios."""
    ratios = np.log(first) - np.log(second)
    return float(np.abs(ratios).max()), float(ratios.max() - ratios.min())


def claimed(mechanism, rho):
    return math.sqrt((8 if mechanism == "exponential" else 2) * rho)


@pytest.mark.few(1)
@pytest.mark.parametrize("choice", [CHOICE, NOISY_MAX], ids=lambda c: c.mechanism)
@pytest.mark.parametrize("relation", RELATIONS)
def test_likelihood_ratios_of_neighbors_are_within_the_claim(relation, choice):
    rho, tight = 0.03, 0.0
    epsilon = claimed(choice.mechanism, rho)
    X, y = table()
    bounds = Bounds(1.0, classes=(-1, 1))
    pairs = list(neighbor_pairs(X, y, relation=relation, bounds=bounds))
    for index, pair in enumerate(pairs[:: 2 if choice is CHOICE else 7]):
        points = line if index % 2 else spread_points
        both = [seen_choice(*data[:2], relation, choice, rho, points) for data in (pair.data, pair.neighbor)]
        largest, spread = worst_ratios(*(law_of(m, choice.mechanism) for m in both))
        assert largest <= epsilon * (1 + 1e-9), pair.name
        if choice is CHOICE:
            assert spread <= epsilon * (1 + 1e-9), pair.name
        tight = max(tight, spread)
    assert tight > 0.3 * epsilon  # some pair comes near: the claim is about what happens


def frequencies(curator, points, rho, runs):
    counts = np.zeros(len(points), dtype=int)
    for _ in range(runs):
        counts[curator.select_candidate(points, loss_bound=BOUND, rho=rho)] += 1
    return counts


def law_p(counts, law):
    """The chi-square p of these counts; rare outcomes are put together."""
    order = np.argsort(law)
    expected, seen, pooled = [], [], [0.0, 0]
    for i in order:
        pooled = [pooled[0] + law[i] * counts.sum(), pooled[1] + counts[i]]
        if pooled[0] >= 10:
            expected.append(pooled[0])
            seen.append(pooled[1])
            pooled = [0.0, 0]
    expected[-1] += pooled[0]
    seen[-1] += pooled[1]
    expected = np.array(expected)
    return float(stats.chisquare(seen, expected * sum(seen) / expected.sum()).pvalue)


def choice_p(choice, rho=0.05, runs=1200, relation="replace_one", law=None):
    X, y = table()
    with use_entropy(Buffered(21)), window() as seen:
        curator = opened(large_budget(relation), (choice,), X=X, y=y, intercept=True)
        counts = frequencies(curator, spread_points(curator.domain.shape), rho, runs)
    law = law_of(seen[0], choice.mechanism) if law is None else law(scaled(seen[0]))
    return law_p(counts, law)


@pytest.mark.few(1)
@pytest.mark.statistical
@pytest.mark.parametrize("choice", [CHOICE, NOISY_MAX], ids=lambda c: c.mechanism)
def test_frequencies_are_those_of_the_law(choice):
    assert choice_p(choice) > SIGNIFICANCE


@pytest.mark.few(1)
@pytest.mark.statistical
@pytest.mark.parametrize("choice", [CHOICE, NOISY_MAX], ids=lambda c: c.mechanism)
def test_the_test_knows_another_scale_and_the_other_mechanism(choice):
    """Negative controls: another scale, another law, the opposite sign."""
    law = {"exponential": lambda s: np.exp(log_softmax(s)), "noisy_max": noisy_max_law}[choice.mechanism]
    assert choice_p(choice, rho=2.0, runs=800, law=lambda s: law(s / 4)) < SIGNIFICANCE
    assert choice_p(choice, rho=2.0, runs=800, law=lambda s: law(-s)) < SIGNIFICANCE
