"""The table of settings: functions of public facts alone, which widen with the signal and never leave their limits."""

import ast
import math
from pathlib import Path

import numpy as np

import discreet.default
from discreet import Budget
from discreet.bounds import Domain
from discreet.default.table import FORMS, SETTINGS, SHARES, Facts, choose, recipe_for
from discreet.losses import Huber, Logistic, Poisson, SmoothedHinge, Softmax, Squared
from discreet.penalties import NoPenalty
from discreet.solvers.signal import PRIVATE_N, Signal
from tests.covering import covering

LOSSES = {
    "logistic": Logistic(),
    "hinge": SmoothedHinge(0.5),
    "softmax": Softmax(3),
    "squared": Squared(),
    "huber": Huber(0.3),
    "poisson": Poisson(3.0),
}
SIZES = (10, 100, 10**3, 10**4, 10**5, 10**6, 10**8, 10**11)


def facts(n=10_000, p=10, loss=None, budget=None, penalty=None, relation="zero_out", **known):
    loss = loss or Logistic()
    budget = budget or Budget(1.0, 1e-9, relation)
    domain = Domain(np.ones(p), math.sqrt(p), n, budget.neighbors, n_outputs=loss.n_outputs, **known)
    return Facts(domain, loss, penalty or NoPenalty(), budget)


@covering(
    ("relation", ["zero_out", "replace_one", "add_remove"]),
    ("epsilon", [1e-6, 0.01, 1.0, 1e3]),
    ("p", [1, 2, 60, 2048]),
    ("loss", LOSSES),
)
def test_every_recipe_can_be_planned(loss, p, epsilon, relation):
    """Shares leave something to the steps, and every setting is allowed, from one record to 10^11."""
    for n in (None,) if relation == "add_remove" else (1, *SIZES):
        for delta in (1e-9, 0.0):
            known = facts(n, p, LOSSES[loss], Budget(epsilon, delta, relation))
            recipe = recipe_for(known)
            plan = recipe.plan(known.domain, known.loss, known.penalty)
            assert all(math.isfinite(r.relative_noise) and r.relative_noise > 0 for r in plan.releases)


@covering(("p", [1, 60]), ("loss", LOSSES))
def test_without_noise_a_recipe_can_be_planned_too(loss, p):
    known = facts(1000, p, LOSSES[loss], Budget(math.inf))
    plan = recipe_for(known).plan(known.domain, known.loss, known.penalty)
    assert all(math.isfinite(r.relative_noise) and r.relative_noise > 0 for r in plan.releases)


def test_nothing_but_public_facts_is_asked_for():
    """Equal facts, equal choice; a private n stands for itself by a constant."""
    assert choose(facts()) == choose(facts())
    assert Signal.of(facts(None).domain, Budget(1.0, 1e-9)).n == PRIVATE_N


def test_every_setting_is_a_field_with_a_reason():
    recipe = recipe_for(facts())
    for row in SETTINGS:
        assert hasattr(recipe, row.name)
        assert row.reason
    for row in SHARES:
        assert hasattr(recipe.shares, row.name)
        assert row.reason
    assert all(form.reason for form in FORMS)


def test_few_numbers_make_the_default():
    """Literals in the folder's code other than 0, 1, 2 and 1/2, of either sign: each is a line with its reason."""
    folder = Path(discreet.default.__file__).parent
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.py"))]
    literals = [node.value for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    numbers = [value for value in literals if type(value) in (int, float) and value not in (0, 1, 2, 0.5)]
    assert len(numbers) <= 80
