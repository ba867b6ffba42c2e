"""Refusals name solvers that serve the same problem: every remedy in every message is followed, over public facts."""

import inspect
import itertools
import re

import numpy as np
import pytest

from discreet import Budget, Neighbors
from discreet.bounds import Domain
from discreet.errors import DiscreetError, Unsupported
from discreet.models.fit import choose_solver, solver_names
from discreet.solvers import agd
from discreet.solvers.base import SOLVERS
from tests.registry import LOSSES, PENALTIES, RELATIONS

NAMES = solver_names()
SETTING = re.compile(r"(?:solver's|its) (\w+)=")
QUOTED = re.compile(r"'(" + "|".join(NAMES) + r")'")
BARE = re.compile(r"\b(?:use|or|,) (?:solver=)?(gd|sgd|svrg|agd|cd|gcd)\b")
FACTS = list(itertools.product(RELATIONS, [True, False], [True, False], [True, False], [None, 5_000], [True, False]))


def refusal(name, domain, loss, penalty, budget):
    """The text with which a solver by name refuses a problem; None where it plans one."""
    try:
        solver, _ = choose_solver(name, domain, loss, penalty, budget)
        solver.plan(domain, loss, penalty)
    except DiscreetError as error:
        return str(error)
    return None


def settings(name):
    """What an object of a solver by name can be given."""
    return {} if name == "auto" else inspect.signature(SOLVERS[name]).parameters


def problems(loss):
    """Domains and budgets: relations, pure or not, sparse or not, n declared or not, several rows per person or not."""
    for relation, pure, sparse, grouped, n, weighted in FACTS:
        n = 5_000 if n is None and relation != "add_remove" else n
        facts = {"n_outputs": loss.n_outputs, "sparse": sparse, "grouped": grouped, "weighted": weighted}
        ranges = np.array([(-1.0, 1.0)] * 3)
        domain = Domain(np.ones(4), 2.0, n, Neighbors(relation), ranges=ranges, target_range=(-1.0, 1.0), **facts)
        yield domain, Budget(1.0, 0.0 if pure else 1e-6, relation)


def wrong_remedies(loss, penalty):
    """Solvers whose refusal names a solver, in quotes or not, that refuses the same problem; and how many names."""
    wrong, count = set(), 0
    for domain, budget in problems(loss):
        refusals = {solver: refusal(solver, domain, loss, penalty, budget) for solver in NAMES}
        for solver, text in refusals.items():
            wrong |= {
                (solver, text, word, None) for word in SETTING.findall(text or "") if word not in settings(solver)
            }
            remedies = {*QUOTED.findall(text or ""), *BARE.findall(text or "")}
            wrong |= {(solver, text, remedy, refusals[remedy]) for remedy in remedies if refusals[remedy] is not None}
            count += len(remedies)
    return wrong, count


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("name", LOSSES)
def test_no_refusal_recommends_a_solver_that_refuses_the_same_problem(name, penalty):
    wrong, count = wrong_remedies(LOSSES[name], PENALTIES[penalty])
    assert not wrong
    assert count > 0


def test_a_remedy_that_refuses_too_is_found(monkeypatch):
    def advise(domain):
        if domain.weighted:
            raise Unsupported("use solver='output'")

    monkeypatch.setattr(agd, "refuse_weights", advise)
    wrong, _ = wrong_remedies(LOSSES["logistic"], PENALTIES["l2"])
    assert {(solver, remedy) for solver, _, remedy, _ in wrong} == {("agd", "output")}
