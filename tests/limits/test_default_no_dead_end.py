"""Whatever is declared, the default serves it; and where a solver by name refuses, the one it advises does not."""

import itertools
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from discreet import Bounds, DPClassifier, DPRegressor
from discreet.errors import Unsupported
from discreet.losses import Huber, Logistic, Poisson, SmoothedHinge, Softmax, Squared
from discreet.penalties import L1, L2, Box, ElasticNet, GroupL2, L2Ball
from discreet.testing import seeded

LOSSES = (Logistic(), SmoothedHinge(0.5), Softmax(3), Squared(), Huber(0.3), Poisson(3.0))
PENALTIES = (None, L2(0.1), L1(0.1), ElasticNet(0.1, 0.1), Box(-1.0, 1.0), L2Ball(1.0), GroupL2(0.1, ((0, 1),)))
NAMES = ("whitened", "gd", "sgd", "svrg", "cd", "gcd", "agd", "output", "objective", "exponential")
CONTAINERS = ("dense", "sparse", "persons")
RELATIONS = ("replace_one", "zero_out", "add_remove")
DELTAS = (1e-6, 0.0)
SIZES = ((12, 2), (300, 5), (300, 60), (5000, 5), (100, 2500))
BUDGETS = (0.01, 1.0, 100.0, math.inf)


@dataclass(frozen=True)
class Facts:
    """What is declared of a table and of a fit of it."""

    loss: Any
    penalty: Any
    container: str = "dense"
    relation: str = "replace_one"
    delta: float = 1e-6
    intercept: bool = True
    size: tuple[int, int] = (300, 5)
    epsilon: float = 1.0
    extra: str = ""

    def records(self) -> tuple[Any, np.ndarray, Any]:
        """Return rows, targets and persons; plans look at their containers alone."""
        rng, (n, p) = np.random.default_rng(0), self.size
        X: Any = rng.uniform(-1, 1, (n, p)) if n * p < 10_000 else np.zeros((n, p))
        y = rng.integers(0, max(2, self.loss.n_outputs), n)
        persons = np.arange(n) // 2 if self.container == "persons" else None
        return sparse.csr_array(X) if self.container == "sparse" else X, y, persons

    def model(self, solver: str = "auto") -> Any:
        """Return the estimator."""
        classes = self.loss.task == "classification"
        facts: dict[str, Any] = (
            {"classes": tuple(range(max(2, self.loss.n_outputs)))} if classes else {"target": (0, 2)}
        )
        p, given = self.size[1], dict[str, Any]()
        if self.extra == "row norm":
            facts["row_norm"] = 0.5
        elif self.extra == "global":
            facts["scale"] = "global"
        elif self.extra == "start":
            outputs = self.loss.n_outputs
            given["start"] = (np.zeros(p), 0.0) if outputs == 1 else (np.zeros((outputs, p)), np.zeros(outputs))
        elif self.extra == "moments":
            given["public_moments"] = (np.zeros(p), 0.5 * np.ones(p))
        ends = [(1.0, 3.0)] * p if self.extra == "far" else 1.0
        return (DPClassifier if classes else DPRegressor)(
            self.epsilon, self.delta, bounds=Bounds(ends, **facts), loss=self.loss, penalty=self.penalty, solver=solver,
            neighbors=self.relation, fit_intercept=self.intercept, allow_large_delta=True, ledger=False, **given,
        )  # fmt: skip

    def refusal(self, solver: str = "auto") -> str | None:
        """Return what a solver says against it, before anything is charged."""
        try:
            self.model(solver).quote(*self.records())
        except Unsupported as refused:
            return str(refused)
        return None


def name_of(one: Any) -> str:
    return type(one).__name__


@pytest.mark.whole
@pytest.mark.parametrize("penalty", PENALTIES, ids=name_of)
@pytest.mark.parametrize("loss", LOSSES, ids=name_of)
def test_every_combination_is_served(loss, penalty):
    found = {}
    for container, relation, delta, size in itertools.product(CONTAINERS, RELATIONS, DELTAS, SIZES[:4]):
        facts = Facts(loss, penalty, container, relation, delta, size=size, intercept=size[0] % 8 == 4)
        found[facts] = facts.refusal()
    assert {facts: said for facts, said in found.items() if said} == {}


@pytest.mark.thorough
@pytest.mark.parametrize("penalty", PENALTIES, ids=name_of)
@pytest.mark.parametrize("loss", LOSSES, ids=name_of)
def test_every_combination_is_served_at_every_budget(loss, penalty):
    found = {}
    for container, relation, delta, size, epsilon, intercept in itertools.product(
        CONTAINERS, RELATIONS, DELTAS, SIZES, BUDGETS, (True, False)
    ):
        facts = Facts(loss, penalty, container, relation, delta, intercept, size, epsilon)
        found[facts] = facts.refusal()
    assert {facts: said for facts, said in found.items() if said} == {}


@pytest.mark.few(4)
@pytest.mark.parametrize("extra", ["row norm", "global", "start", "far"])
@pytest.mark.parametrize("penalty", PENALTIES, ids=name_of)
@pytest.mark.parametrize("loss", LOSSES, ids=name_of)
def test_every_other_fact_is_served(loss, penalty, extra):
    """Sparse records have ranges with 0 in them."""
    stored = [one for one in CONTAINERS if (one, extra) != ("sparse", "far")]
    assert refusals(loss, penalty, stored, extra) == {}


def refusals(loss: Any, penalty: Any, stored: Sequence[str], extra: str) -> dict[Facts, str]:
    """Return what the default refuses, under all relations, pure budgets or not, with an intercept or not."""
    cases = itertools.product(stored, RELATIONS, DELTAS, (True, False))
    found = [Facts(loss, penalty, *case, extra=extra) for case in cases]
    return {facts: said for facts in found if (said := facts.refusal())}


@pytest.mark.few(8)
@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("penalty", PENALTIES, ids=name_of)
@pytest.mark.parametrize("loss", LOSSES, ids=name_of)
def test_what_is_planned_is_also_fitted(loss, penalty, container):
    facts = Facts(loss, penalty, container, intercept=container != "persons")
    with seeded(0):
        model = facts.model().fit(*facts.records())
    assert np.isfinite(model.coef_).all()
    assert np.isfinite(model.intercept_).all()


@pytest.mark.parametrize("facts", [{"scale": "global"}, {"row_norm": 1.0}], ids=str)
@pytest.mark.parametrize("solver", ["auto", "gd", "cd"])
def test_ranges_that_are_narrow_for_the_lattice_are_fitted(solver, facts):
    """A column away from 0 that hardly varies, next to a wide one or shrunk toward 0."""
    rng = np.random.default_rng(0)
    X, y = np.column_stack([rng.uniform(30, 30 + 1e-6, 60), rng.uniform(0, 1e5, 60)]), rng.uniform(0, 1, 60)
    bounds = Bounds([(30, 30 + 1e-6), (0, 1e5)], target=(0, 1), **facts)
    with seeded(0):
        model = DPRegressor(bounds=bounds, solver=solver, ledger=False).fit(X, y)
    assert np.isfinite(model.coef_).all()


def advised(message: str) -> set[str]:
    """Return the solvers that a refusal says to use."""
    _, _, advice = message.partition("use ")
    return {name for name in re.findall(r"\w+", advice) if name in NAMES and _is_solver(name, advice)}


def _is_solver(name: str, advice: str) -> bool:
    """Return whether a word is quoted, or is no word but a solver's name."""
    return name not in ("whitened", "output", "objective", "exponential") or f"'{name}'" in advice


@pytest.mark.few(2)
@pytest.mark.parametrize("penalty", PENALTIES, ids=name_of)
@pytest.mark.parametrize("loss", LOSSES, ids=name_of)
def test_a_refusal_names_no_solver_that_refuses_too(loss, penalty):
    wrong = {}
    for container, relation, delta in itertools.product(CONTAINERS, RELATIONS, DELTAS):
        facts, said = Facts(loss, penalty, container, relation, delta), {}
        for name in NAMES:
            said[name] = facts.refusal(name)
        for name, message in said.items():
            bad = [other for other in advised(message or "") if said[other] is not None]
            if bad:
                wrong[name, container, relation, delta] = (message, bad)
    assert wrong == {}
