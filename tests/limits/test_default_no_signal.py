"""Where columns say nothing of the target, the default is not worse than predicting without columns.

The objective on the training rows (mean loss and L2 penalty, as documented) is compared with that of zeros, or of the
best constant where there is an intercept and the budget is enough to find it. One private number's noise is allowed: a
mean over a declared range R has noise of R / (n mu) at best, and it may get a sixteenth of the budget's mu^2. Where
that costs more than 2 % of the zeros' objective, a number should not be moved that far. More noise than that comes from
slopes that should be (nearly) 0.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from benchmarks.measures.objectives import Coordinates, Loss, Objective
from discreet import Bounds, DPClassifier, DPPoissonRegressor, DPRegressor
from discreet.accounting.gaussian import mu_of
from discreet.testing import seeded
from tests.limits.trials import worse

SEEDS = 6
SHARE = 1 / 16
"""What one number gets of mu^2."""
MOST = 0.02
"""What its noise may cost at most, of the zeros' objective."""
CELLS = 300_000
"""Of a table, at most; wider ones have fewer rows."""


@dataclass(frozen=True)
class Case:
    """The public facts of a table without signal."""

    target: str = "labels"
    n: int = 1000
    p: int = 10
    epsilon: float = 1.0
    relation: str = "replace_one"
    intercept: bool = True
    l2: float = 0.0
    stored: str = "dense"
    width: float = 1.0

    def __str__(self) -> str:
        origin = "" if self.intercept else " origin"
        kind = f"{self.target} {self.n}x{self.p} epsilon={self.epsilon:g} {self.relation}{origin}"
        return f"{kind} L2={self.l2:g} {self.stored} width={self.width:g}"

    @property
    def loss(self) -> Loss:
        """The loss of this kind of target."""
        return {"numbers": Loss("squared"), "counts": Loss("poisson", 5.0)}.get(self.target, Loss("logistic"))

    @cached_property
    def table(self) -> tuple[Any, np.ndarray]:
        """Columns, and a target that does not depend on them."""
        rng = np.random.default_rng([self.n, self.p])
        X = rng.normal(size=(self.n, self.p))
        X = X * (rng.random(X.shape) < 0.05) if self.stored == "sparse" else X
        y = {
            "labels": lambda: (np.arange(self.n) % 2).astype(float),
            "rare labels": lambda: (np.arange(self.n) % 50 == 0).astype(float),
            "numbers": lambda: rng.normal(size=self.n),
            "counts": lambda: np.minimum(rng.poisson(2.0, self.n), 20).astype(float),
        }[self.target]()
        return np.clip(X, -4, 4), y

    @cached_property
    def bounds(self) -> Bounds:
        """Declared ranges, ``width`` times as wide as they need be."""
        facts = {"numbers": {"target": (-5.0 * self.width, 5.0 * self.width)}, "counts": {"target": (0.0, 20.0)}}
        return Bounds(4.0 * self.width, **facts.get(self.target, {"classes": (0.0, 1.0)}))

    @cached_property
    def place(self) -> Coordinates:
        """Training coordinates."""
        return Coordinates.of(self.bounds, self.p, self.loss, self.intercept)

    @cached_property
    def objective(self) -> Objective:
        """What is minimized."""
        X, y = self.table
        return Objective(self.place.rows(X), self.place.targets(y), self.loss, l2=self.l2)

    @cached_property
    def one_number(self) -> float:
        """What the noise of one private number costs."""
        mean = float(np.mean(self.table[1]))
        kinds = {"numbers": (2.0, 1.0), "counts": (20.0, 1.0 / mean)}  # range, curvature by the mean
        widest, curvature = kinds.get(self.target, (1.0, 1.0 / (mean * (1.0 - mean))))
        noise = widest / (self.n * mu_of(self.epsilon, min(1e-6, 1.0 / self.n**2)))
        return 0.5 * curvature * noise**2 / SHARE

    @cached_property
    def zeros(self) -> float:
        """The objective of zeros."""
        return self.objective.value(np.zeros(self.objective.shape))

    @cached_property
    def allowed(self) -> float:
        """The trivial predictor's objective, with the noise of one number."""
        constant = self.objective.trivial + self.one_number if self.intercept else self.zeros
        return min(self.zeros, constant) + min(self.one_number, MOST * abs(self.zeros))

    def excess(self, seed: int) -> float:
        """Return how far one fit is above what is allowed, in units of the zeros' objective."""
        X, y = self.table
        kinds = {"numbers": (DPRegressor, {"loss": "squared"}), "counts": (DPPoissonRegressor, {})}
        kind, settings = kinds.get(self.target, (DPClassifier, {}))
        settings = {**settings, "alpha": self.l2, "fit_intercept": self.intercept, "neighbors": self.relation}
        if self.relation == "add_remove":
            settings["delta"] = min(1e-6, 1.0 / self.n**2)
        model = kind(self.epsilon, bounds=self.bounds, ledger=False, **settings)
        with seeded(seed):
            model.fit(sparse.csr_array(X) if self.stored == "sparse" else X, y)
        return (self.objective.value(self.place.weights(model)) - self.allowed) / abs(self.zeros)


VALUES = {
    "target": ("labels", "rare labels", "numbers", "counts"),
    "p": (1, 3, 10, 30, 100, 300, 1000),
    "n": (100, 300, 1000, 3000, 10_000, 100_000),
    "epsilon": (0.01, 0.1, 0.3, 1.0, 4.0),
    "relation": ("replace_one", "zero_out", "add_remove"),
    "intercept": (True, False),
    "l2": (0.0, 1e-7, 1e-3, 0.1, 1.0),
    "stored": ("dense", "dense", "sparse"),
    "width": (1.0, 1.0, 10.0),
}


def cases(count: int) -> list[Case]:
    """Return cases in which every value of every fact is equally frequent, met at random."""
    rng = np.random.default_rng(0)
    columns = {
        name: [values[at % len(values)] for at in rng.permutation(count).tolist()] for name, values in VALUES.items()
    }
    made = [Case(**{name: column[at] for name, column in columns.items()}) for at in range(count)]
    return [replace(case, n=max(100, min(case.n, CELLS // case.p))) for case in made]


KNOWN = [
    Case("labels", 1000, 100, intercept=False),
    Case("numbers", 1000, 100, intercept=False),
    Case("labels", 2600, 500),
    Case("labels", 2600, 500, intercept=False),
    Case("labels", 2600, 500, l2=1.0, intercept=False),
    Case("numbers", 2600, 500, epsilon=0.1),
    Case("rare labels", 500, 20, epsilon=0.1, relation="zero_out"),
    Case("counts", 1000, 30, epsilon=0.3),
    Case("labels", 100, 3, epsilon=0.3, relation="add_remove"),
    Case("numbers", 200, 3, relation="add_remove"),
    Case("counts", 100, 10, epsilon=0.3, relation="add_remove"),
]
"""Where a default may easily take steps that are too long, or for more records than there are."""


@pytest.mark.few(4)
@pytest.mark.parametrize("case", KNOWN, ids=str)
def test_known_cases(case):
    assert worse(case.excess, SEEDS) is None


@pytest.mark.few(8)
@pytest.mark.parametrize("case", cases(120), ids=str)
def test_it_is_not_worse_than_no_columns(case):
    assert worse(case.excess, SEEDS) is None
