"""What DP-AGD does with its answers, seen through a curator that answers from a script."""

import math

import numpy as np
import pytest

from discreet import (
    Bounds,
    Budget,
    DPLinearSVC,
    DPLogisticRegression,
    DPPoissonRegressor,
)
from discreet.accounting import AdaptivePlan
from discreet.accounting.plan import Filter
from discreet.accounting.priced_plan import price_plan
from discreet.bounds import Domain
from discreet.budget import Neighbors
from discreet.curator import Curator, PrivateData
from discreet.errors import BudgetExceeded, Unsupported
from discreet.losses import Logistic, Poisson
from discreet.losses.base import least, value
from discreet.penalties import L2, NoPenalty
from discreet.solvers import AdaptiveDescent, agd
from tests.solvers.agd.cases import small_table

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


def test_zero_is_always_among_the_steps_and_the_direction_is_normalized():
    _, script = run(forever([300.0, -400.0, 0.0]), [5, 20])
    first, second = script.points[:2]
    assert len(first) == 21
    np.testing.assert_array_equal(first[0], np.zeros(P))
    np.testing.assert_allclose(first[-1], -2.0 * np.array([0.6, -0.8, 0.0]))
    np.testing.assert_allclose(np.linalg.norm(np.diff(first, axis=0), axis=1), 0.1)
    np.testing.assert_array_equal(second[0], first[5])
    np.testing.assert_array_equal(script.points[2][0], second[20])


def test_a_run_ends_at_its_last_point_or_at_the_mean_of_the_last_half():
    given = {"gradients": [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 1.0, 0.0]], "choices": [20, 10, 5]}
    last, script = run(**given)
    np.testing.assert_array_equal(last, script.points[2][5])
    mean, _ = run(**given, solver=paperlike(average="tail"))
    np.testing.assert_allclose(mean, (script.points[1][10] + script.points[2][5]) / 2)


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


def test_measured_holds_sums_and_not_directions(monkeypatch):
    made = []
    honest = agd.Measured

    def spy(value, rho):
        made.append(np.linalg.norm(value))
        return honest(value, rho)

    monkeypatch.setattr(agd, "Measured", spy)
    run(forever([3000.0, -4000.0, 0.0]), [0, 0, 2, 2])
    assert made
    assert min(made) == pytest.approx(5000.0)


def test_the_penalty_enters_after_the_noise_with_its_full_weight():
    strength, n, sums = 0.25, 40, np.array([3.0, 0.0, 4.0])
    _, script = run(forever(sums), [7, 7], penalty=L2(strength), n=n)
    w, points = script.points[0][7], script.points[1]
    full = sums + n * strength * w
    np.testing.assert_allclose(points[0] - points[-1], 2.0 * full / np.linalg.norm(full), rtol=1e-9)
    for points, offsets in zip(script.points, script.offsets, strict=True):
        np.testing.assert_allclose(
            offsets - offsets[0], [n * strength / 2 * (p @ p - points[0] @ points[0]) for p in points], atol=1e-9
        )


def test_gradients_are_asked_where_the_run_is():
    coefficients, script = run(forever([1.0, 0.0, 0.0]), [20, 20, 20])
    places = [w[0] for kind, w, _, _ in script.asked if kind == "gradient"]
    np.testing.assert_allclose(places, [0.0, -2.0, -4.0, -6.0])
    np.testing.assert_allclose(coefficients, [-6.0, 0.0, 0.0])


def test_the_largest_step_follows_the_steps_taken():
    """Every tau rounds: (1 + adjustment) times the largest of the last tau steps, and never above the first."""
    solver = paperlike(adjust_every=3, adjustment=0.1)
    choices = [5, 10, 5, 20, 1, 1, 20, 20, 20, 20]
    _, script = run(forever([1.0, 0.0, 0.0]), choices, solver)
    largest = [float(np.linalg.norm(points[-1] - points[0])) for points in script.points]
    second = 1.1 * 1.0
    third = min(2.0, 1.1 * second)
    fourth = min(2.0, 1.1 * third)
    np.testing.assert_allclose(largest[:10], [2.0] * 3 + [second] * 3 + [third] * 3 + [fourth])


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


def test_a_refused_choice_leaves_the_last_point():
    """The gradient was paid for, the choice is refused: the point before it is the answer."""
    script = Script(forever([1.0, 0.0, 0.0]), forever(20))
    total = script.plan.total(script.budget)
    script.filter = Filter(2.6 * total * 0.1)
    solver = paperlike(gradient_rho=0.1, choice_rho=0.1)
    np.testing.assert_allclose(solver.solve(script, NoPenalty()).coefficients, [-2.0, 0.0, 0.0])
    assert [c.answered for c in script.filter.trace] == [True, True, False]
    script = Script(forever([1.0, 0.0, 0.0]), forever(20))
    script.filter = Filter(3.5 * total * 0.1)
    np.testing.assert_allclose(solver.solve(script, NoPenalty()).coefficients, [-2.0, 0.0, 0.0])
    assert [(c.query, c.answered) for c in script.filter.trace[-2:]] == [
        ("noisy_gradient", True),
        ("select_candidate", False),
    ]


def real(X, y, epsilon, penalty, solver, relation="replace_one"):
    data = PrivateData(X, y, Bounds(1.0, classes=(-1, 1), n=len(y)), fit_intercept=False)
    budget = Budget(epsilon, 1e-6, relation)
    domain = data.domain(budget.neighbors, Logistic())
    curator = data.open(price_plan(solver.plan(domain, Logistic(), penalty), budget), Logistic())
    return curator, solver.solve(curator, penalty).coefficients


def test_without_noise_the_best_step_of_the_grid_is_taken():
    X, y = small_table(n=60, p=2)
    penalty = L2(0.1)

    def objective(w):
        return float(np.mean(np.minimum(np.logaddexp(0, -y * (X @ w)), 3.0)) + penalty.value(w))

    chosen, tried = [], []
    honest = Curator.select_candidate

    def spy(self, points, **given):
        chosen.append(honest(self, points, **given))
        tried.append(points)
        return chosen[-1]

    Curator.select_candidate = spy
    try:
        real(X, y, math.inf, penalty, AdaptiveDescent(clip=10.0))
    finally:
        Curator.select_candidate = honest
    assert len(chosen) > 5
    for index, points in zip(chosen, tried, strict=True):
        values = [objective(point) for point in points]
        assert values[index] <= min(values) + 1e-5  # records are on a grid of 2^-14


def test_the_papers_settings_are_the_papers():
    solver = AdaptiveDescent.paper(Budget(0.4, 1e-8, "add_remove"))
    assert (solver.n_step_sizes, solver.largest_step, solver.growth) == (20, 2.0, 0.1)
    assert (solver.adjust_every, solver.adjustment, solver.shrink) == (10, 0.1, 1.0)
    assert (solver.clip, solver.loss_bound, solver.selection, solver.papers_total) == (3.0, 3.0, "noisy_max", True)


def test_an_open_loss_bound_is_filled_or_refused():
    """The documentation offers None for it: it may mean 3, or be refused, but not fail in the middle of a run."""
    try:
        solver = AdaptiveDescent(loss_bound=None, n_rounds=2, clip=1.0)
    except Unsupported:
        return
    X, y = small_table(n=10)
    assert np.isfinite(real(X, y, 1.0, NoPenalty(), solver)[1]).all()


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
