"""More budget or more rows never hurt: a change of the default's form along the way must not cost.

Losses are on fresh rows of the same law, in units of what the model without privacy gains on the trivial one. A mean
must not be above the least mean at a smaller budget (fewer rows) by more than ``SLACK`` and two standard errors.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from benchmarks.measures.objectives import Coordinates, Objective
from discreet import Bounds
from discreet.testing import seeded
from tests.limits.cells import ESTIMATORS, responses
from tests.limits.trials import ERRORS, mean_and_error

SEEDS, SLACK = 5, 0.02
FRESH = 4000
EPSILONS = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 1000.0, 1e5)
ROWS = (100, 200, 500, 1000, 2000, 5000, 10_000, 20_000)


@dataclass(frozen=True)
class Law:
    """A kind of table: an estimator, its columns and their public facts."""

    name: str
    p: int = 5
    width: float = 1.0
    intercept: bool = True
    relation: str = "replace_one"
    stored: str = "dense"

    def __str__(self) -> str:
        origin = "" if self.intercept else " origin"
        return f"{self.name} p={self.p} width={self.width:g} {self.relation} {self.stored}{origin}"

    def draw(self, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """Return n rows and their targets; the coefficients are those of the law, whatever the seed."""
        rng = np.random.default_rng([seed, n])
        X = np.clip(rng.normal(size=(n, self.p)) / 4.0, -1, 1)
        X = X * (rng.random(X.shape) < 0.1) if self.stored == "sparse" else X
        return X, responses(ESTIMATORS[self.name].target, X, rng, np.random.default_rng(self.p))

    @property
    def bounds(self) -> Bounds:
        """Declared ranges, ``width`` times as wide as they need be."""
        target = ESTIMATORS[self.name].target
        facts: dict[str, Any] = {"labels": {"classes": (0, 1)}, "classes": {"classes": (0, 1, 2)}}.get(target, {})
        if target == "numbers":
            facts = {"target": (-self.width, self.width)}
        return Bounds(self.width, **(facts or {"target": (0.0, 20.0)}))

    def objective(self, n: int, seed: int) -> tuple[Coordinates, Objective]:
        """Return the objective on drawn rows."""
        made, (X, y) = ESTIMATORS[self.name], self.draw(n, seed)
        place = Coordinates.of(self.bounds, self.p, made.loss, self.intercept)
        classes = 3 if made.target == "classes" else 1
        return place, Objective(place.rows(X), place.targets(y), made.loss, made.l1, made.l2, classes)


@lru_cache(maxsize=4)
def fresh(law: Law) -> tuple[Objective, float, float]:
    """Return the mean loss on fresh rows, that of the best model and that of the trivial one."""
    _, known = law.objective(20_000, 10**6)
    _, test = law.objective(FRESH, 10**6 + 1)
    nothing = np.zeros(known.shape)
    if law.intercept:
        nothing[-1] = Objective(np.ones((20_000, 1)), known.targets, known.loss, classes=known.classes).minimizer[0]
    return test.mean_loss, test.mean_loss.value(known.minimizer), test.mean_loss.value(nothing)


def lost(law: Law, n: int, epsilon: float, seed: int) -> float:
    """Return the loss of one fit on fresh rows above the best model's, in units of what there is to gain."""
    (X, y), made = law.draw(n, seed), ESTIMATORS[law.name]
    facts = {"bounds": law.bounds, "fit_intercept": law.intercept, "neighbors": law.relation, "ledger": False}
    with seeded(seed):
        model = made.kind(epsilon, **facts, **made.settings)
        model.fit(sparse.csr_array(X) if law.stored == "sparse" else X, y)
    place = Coordinates.of(law.bounds, law.p, made.loss, law.intercept)
    test, best, trivial = fresh(law)
    return (test.value(place.weights(model)) - best) / (trivial - best)


def rows(law: Law) -> list[int]:
    """Return numbers of rows from ten per coefficient on: with fewer, more rows can hurt without privacy too."""
    coefficients = (law.p + law.intercept) * (3 if ESTIMATORS[law.name].target == "classes" else 1)
    return [n for n in ROWS if n >= 10 * coefficients]


def rises(law: Law, points: list[tuple[int, float]]) -> list[tuple[str, float, float]]:
    """Return the points of (n, epsilon) at which a mean is above an earlier one, after a second look."""
    means = [mean_and_error(lost(law, n, epsilon, seed) for seed in range(SEEDS)) for n, epsilon in points]
    found, least = [], 0
    for at in range(1, len(points)):
        if _higher(means[at], means[least]):
            again = [
                mean_and_error(lost(law, *points[which], seed) for seed in range(SEEDS, 4 * SEEDS))
                for which in (at, least)
            ]
            if _higher(*again):
                n, epsilon = points[at]
                found.append((f"{n} rows, epsilon {epsilon:g}", again[0][0], again[1][0]))
        least = at if means[at][0] < means[least][0] else least
    return found


def _higher(later: tuple[float, float], before: tuple[float, float]) -> bool:
    slack = SLACK * max(1.0, before[0])
    return not later[0] - before[0] <= slack + ERRORS * float(np.hypot(later[1], before[1]))


LAWS = [
    Law("logistic", p=20, intercept=False),
    Law("logistic"),
    Law("logistic", p=40, relation="zero_out"),
    Law("logistic", p=10, width=10.0, relation="zero_out"),
    Law("logistic", p=60, stored="sparse"),
    Law("logistic, L1", p=21, relation="zero_out"),
    Law("softmax", p=8),
    Law("svm", p=15, intercept=False),
    Law("least squares"),
    Law("least squares", p=40, relation="zero_out"),
    Law("least squares", p=20, intercept=False),
    Law("least squares", p=10, width=10.0),
    Law("ridge", p=60, stored="sparse"),
    Law("lasso", p=21),
    Law("huber", p=10, intercept=False),
    Law("poisson", p=8),
    Law("poisson", p=20, intercept=False),
]


@pytest.mark.few(2)
@pytest.mark.parametrize("law", LAWS, ids=str)
def test_a_larger_budget_does_not_hurt(law):
    assert rises(law, [(2000, epsilon) for epsilon in EPSILONS]) == []


@pytest.mark.few(2)
@pytest.mark.parametrize("law", LAWS, ids=str)
def test_more_rows_do_not_hurt(law):
    assert rises(law, [(n, 1.0) for n in rows(law)]) == []


@pytest.mark.thorough
@pytest.mark.parametrize("law", LAWS[::2], ids=str)
def test_more_rows_do_not_hurt_where_the_budget_is_large(law):
    assert rises(law, [(n, 10.0) for n in rows(law)]) == []
