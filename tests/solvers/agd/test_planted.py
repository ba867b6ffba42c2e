"""Bugs planted in adaptive runs: each must be caught by a check that honest code passes."""

import math
from dataclasses import replace

import numpy as np
import pytest

from discreet import Bounds, Budget
from discreet.accounting.plan import Charge, Filter
from discreet.accounting.priced_plan import price_plan
from discreet.budget import Neighbors
from discreet.curator import PrivateData
from discreet.curator.lattice import noise
from discreet.curator.queries import choices
from discreet.curator.session import Session
from discreet.errors import BudgetExceeded
from discreet.losses import Logistic
from discreet.penalties import NoPenalty
from discreet.solvers import AdaptiveDescent
from discreet.solvers.agd import Measured
from discreet.testing import neighbor_pairs, replay, seeded
from tests.covering import covering
from tests.replaying import window
from tests.solvers.agd import test_agd
from tests.solvers.agd.cases import CHOICE, audit, small_table
from tests.solvers.agd.test_choice import choice_p
from tests.solvers.agd.test_gradavg import SIGNIFICANCE, law_of_merged
from tests.solvers.perturbation.cases import bounds_of, fit_of, table

SOLVER = AdaptiveDescent(n_rounds=4, n_step_sizes=4, clip=0.2, loss_bound=1.0)


def audited(relation="replace_one", solver=SOLVER):
    """A run, then its books against what its lattices say."""
    X, y = small_table(n=20)
    budget = Budget(1.0, 1e-6, relation)
    data = PrivateData(X, y, Bounds(1.0, classes=(-1, 1), n=20))
    domain = data.domain(budget.neighbors, Logistic())
    with seeded(3), window() as seen:
        curator = data.open(price_plan(solver.plan(domain, Logistic(), NoPenalty()), budget), Logistic())
        solver.solve(curator, NoPenalty())
    audit(curator, seen, solver.selection)
    return curator


def replays(relation="replace_one"):
    """Whether every pair of neighbors replays."""
    declared = 12 if relation == "add_remove" else None
    fit = fit_of("logistic", SOLVER, relation, declared_n=declared)
    pairs = list(neighbor_pairs(*table("logistic"), relation=relation, bounds=bounds_of("logistic")))
    return all(replay(fit, pair.data, pair.neighbor, relation).ok for pair in pairs if "high" in pair.name)


@covering(("relation", ["replace_one", "zero_out", "add_remove"]), ("selection", ["exponential", "noisy_max"]))
def test_honest_code_passes(relation, selection):
    audited(relation, replace(SOLVER, selection=selection))


def test_honest_code_replays():
    assert replays()


def test_choices_that_are_not_charged(monkeypatch):
    honest = Filter.charge
    monkeypatch.setattr(
        Filter, "charge", lambda self, query, rho: query != "noisy_gradient" or honest(self, query, rho)
    )
    with pytest.raises(AssertionError, match="not charged"):
        audited()


def test_choices_that_are_written_down_and_not_counted(monkeypatch):
    honest = Filter.charge

    def charge(self, query, rho):
        if query == "noisy_gradient":
            honest(self, query, rho)
        else:
            self._trace.append(Charge(query, rho, self.round))

    monkeypatch.setattr(Filter, "charge", charge)
    with pytest.raises(AssertionError, match="more than its total"):
        audited()


def test_charges_after_the_answer(monkeypatch):
    """The last answer is given before the filter says no."""
    pending = {}

    def late(self, query, clip=None, count=1, rho=None):
        if query in pending:
            self.filter.charge(*pending.pop(query))
        pending[query] = query, rho
        return self._noisier(self._next(query).release, rho)

    monkeypatch.setattr(Session, "spend", late)
    with pytest.raises(AssertionError, match=r"not charged|more than its total"):
        audited()


def test_a_refusal_that_answers_all_the_same(monkeypatch):
    honest, left = Filter.charge, [3]

    def lenient(self, query, rho):
        try:
            honest(self, query, rho)
        except BudgetExceeded:
            left[0] -= 1
            if left[0] < 0:
                raise

    monkeypatch.setattr(Filter, "charge", lenient)
    with pytest.raises(AssertionError):
        audited()


@pytest.mark.parametrize("factor", [0.5, 0.9])
def test_less_noise_than_the_rho_says(monkeypatch, factor):
    honest = Session._noisier
    monkeypatch.setattr(Session, "_noisier", lambda self, release, rho: honest(self, release, rho / factor**2))
    with pytest.raises(AssertionError, match="too little noise"):
        audited()


def test_pure_choices_at_the_price_of_bounded_range(monkeypatch):
    """epsilon^2 / 8 belongs to the exponential mechanism; noisy max costs four times as much."""
    honest = Session._noisier

    def cheap(self, release, rho):
        return honest(self, replace(release, mechanism="exponential"), rho)

    monkeypatch.setattr(Session, "_noisier", lambda s, r, rho: replace(cheap(s, r, rho), mechanism=r.mechanism))
    with pytest.raises(AssertionError, match="too little noise"):
        audited(solver=replace(SOLVER, selection="noisy_max"))


def test_a_lattice_kept_for_another_rho(monkeypatch):
    honest = Session.unit

    def unit(self, release, clip, factor=None):
        key = release.query, clip
        memory = self.__dict__.setdefault("memory", {})
        return memory.setdefault(key, honest(self, release, clip, factor))

    monkeypatch.setattr(Session, "unit", unit)
    with pytest.raises(AssertionError, match="too little noise"):
        audited(solver=replace(SOLVER, n_rounds=12, growth=0.5, gradient_rho=0.05, choice_rho=0.002, loss_bound=0.01))


def test_the_range_halved_under_replace_one(monkeypatch):
    """An exchange moves differences of scores by 2 B, not by B: in the choice's lattice alone."""
    honest = choices.unit_for
    monkeypatch.setattr(choices, "unit_for", lambda z, factor, clip, n: honest(z, 1, clip, n))
    with pytest.raises(AssertionError, match="select_candidate has too little noise"):
        audited()


def test_the_factor_two_forgotten_everywhere(monkeypatch):
    """The books then agree with each other; neighbors do not."""
    monkeypatch.setattr(Neighbors, "sum_factor", property(lambda self: 1))
    audited()
    assert not replays()


@pytest.mark.statistical
def test_a_wrong_precision_after_merging(monkeypatch):
    def merged(self, other):
        total = self.rho + other.rho
        return Measured((self.value + other.value) / 2, total)

    monkeypatch.setattr(Measured, "merged", merged)
    center, spread, _ = law_of_merged(Measured.merged)
    assert min(center, spread) < SIGNIFICANCE


def test_a_direction_in_place_of_the_sum(monkeypatch):
    """The slides' order: the sum is normalized before a second one is averaged with it."""
    honest = Measured.merged
    monkeypatch.setattr(
        Measured,
        "merged",
        lambda self, other: honest(Measured(self.value / np.linalg.norm(self.value), self.rho), other),
    )
    with pytest.raises(AssertionError):
        test_agd.test_the_measured_gradient_keeps_its_length()


def test_a_step_size_read_from_the_data(monkeypatch):
    """The best step in the clear instead of the private choice."""
    monkeypatch.setattr(noise, "exponential_choice", lambda scores, m, entropy: int(np.argmax(scores)))
    assert choice_p(CHOICE, runs=200) < SIGNIFICANCE


def test_an_infinite_filter_for_a_private_budget(monkeypatch):
    honest = Filter.__init__
    monkeypatch.setattr(Filter, "__init__", lambda self, total: honest(self, math.inf))
    monkeypatch.setattr("discreet.solvers.agd.MOST_ROUNDS", 30)
    with pytest.raises(AssertionError, match="not charged"):
        audited()
