"""Budgets and noise scales of the authors' settings, and the totals behind them, to the digits given."""

import math
from unittest import mock

import numpy as np
import pytest

from discreet import Bounds, Budget
from discreet.accounting import AdaptivePlan, rdp
from discreet.accounting.priced_plan import price_plan
from discreet.curator import PrivateData
from discreet.errors import Unsupported
from discreet.losses import Logistic
from discreet.penalties import NoPenalty
from discreet.solvers import AdaptiveDescent, agd
from discreet.testing import seeded
from tests.accounting import published
from tests.covering import covering
from tests.replaying import window
from tests.solvers.agd.cases import filter_of, realized_rho

TOTALS = [
    (1.0, 1e-5, 0.020819938340, 0.030556595198),
    (0.1, 1e-8, 0.000135349889, 0.000208816381),
    (1.6, 1e-8, 0.033311901343, 0.041975776304),
    (1.0, 1e-6, 0.017468904769, 0.024355970360),
]
PAPER = [
    (0.1, 1.35350e-4, 3.4722e-7, 9.31199e-9, 21982.90, 3600.0),
    (1.6, 0.0333119, 8.8889e-5, 2.38387e-6, 1373.93, 225.0),
]


@pytest.mark.parametrize(("epsilon", "delta", "loose", "tight"), TOTALS)
def test_totals(epsilon, delta, loose, tight):
    assert rdp.loose_zcdp_of_budget(epsilon, delta) == pytest.approx(loose, rel=1e-6)
    assert rdp.zcdp_of_budget(epsilon, delta) == pytest.approx(tight, rel=1e-6)
    assert published.loose_epsilon_of_zcdp(loose, delta) == pytest.approx(epsilon, rel=1e-6)
    budget = Budget(epsilon, delta)
    assert AdaptivePlan(()).total(budget) == rdp.zcdp_of_budget(epsilon, delta)
    assert AdaptivePlan((), papers_total=True).total(budget) == rdp.loose_zcdp_of_budget(epsilon, delta)


@pytest.mark.parametrize(
    ("rho", "delta", "loose", "tight"),
    [(0.5, 1e-6, 5.75652177, 5.22153444), (1.0, 1e-5, 7.78614042, 7.07719670), (0.1, 1e-6, 2.45078800, 2.14193893)],
)
def test_conversions_back(rho, delta, loose, tight):
    assert published.loose_epsilon_of_zcdp(rho, delta) == pytest.approx(loose, rel=1e-6)
    assert rdp.epsilon_of_zcdp(rho, delta) == pytest.approx(tight, rel=1e-6)


@covering(("epsilon", [0.01, 0.1, 1.0, 3.0, 20.0]), ("delta", [1e-12, 1e-8, 1e-5, 0.01]))
def test_a_total_costs_its_budget_and_no_more(epsilon, delta):
    rho = rdp.zcdp_of_budget(epsilon, delta)
    assert epsilon * (1 - 1e-9) <= rdp.epsilon_of_zcdp(rho, delta) <= epsilon
    assert rdp.loose_zcdp_of_budget(epsilon, delta) <= rho


def paper_run(epsilon):
    """The first round of the authors' solver, on a table of nulls: its charges, and its real noise scales."""
    budget = Budget(epsilon, 1e-8, "add_remove")
    solver = AdaptiveDescent.paper(budget)
    data = PrivateData(np.full((5, 2), np.nan), np.ones(5), Bounds(1.0, classes=(-1, 1), n=5))
    domain = data.domain(budget.neighbors, Logistic())
    with seeded(1), window() as seen, mock.patch.object(agd, "MOST_ROUNDS", 1):
        curator = data.open(price_plan(solver.plan(domain, Logistic(), NoPenalty()), budget), Logistic())
        solver.solve(curator, NoPenalty())
    gradient, choice = filter_of(curator).trace[:2]
    assert (gradient.query, choice.query) == ("noisy_gradient", "select_candidate")
    return curator, gradient.rho, choice.rho, [math.ldexp(m.unit.step, m.unit.m) for m in seen[:2]], seen[:2]


@pytest.mark.parametrize(("epsilon", "total", "rho_nmax", "rho_ng", "sigma", "laplace"), PAPER)
def test_the_authors_budgets_and_noise(epsilon, total, rho_nmax, rho_ng, sigma, laplace):
    curator, rho, choice_rho, scales, seen = paper_run(epsilon)
    assert curator.plan.total(curator.budget) == pytest.approx(total, rel=5e-6)
    assert choice_rho == pytest.approx(rho_nmax, rel=2e-5)
    assert choice_rho == pytest.approx((epsilon / 120) ** 2 / 2, rel=1e-12)
    assert rho == pytest.approx(rho_ng, rel=5e-6)
    assert scales[0] == pytest.approx(sigma, abs=0.006)
    assert scales[1] == pytest.approx(laplace, rel=1e-6)
    assert scales[0] >= 3.0 / math.sqrt(2 * rho)
    assert scales[1] >= 3.0 / math.sqrt(2 * choice_rho)
    assert [float(realized_rho(m, "noisy_max")) for m in seen] == pytest.approx([rho, choice_rho], rel=1e-6)


def test_the_authors_spend_nearly_all_on_choices():
    _, rho, choice_rho, _, _ = paper_run(0.4)
    assert choice_rho / (rho + choice_rho) == pytest.approx(0.97, abs=0.005)


@pytest.mark.parametrize("budget", [Budget(1.0, 0.0), Budget(math.inf, 1e-8)])
def test_the_authors_budgets_need_both_parts(budget):
    with pytest.raises(Unsupported, match="delta"):
        AdaptiveDescent.paper(budget)
