"""Tables with many columns: sparse public ones from a folder that the user has, and generated ones.

Ranges are declared from what a table's publishers say of it: words and fragments are there or not (0 to 1), pixels and
ground measurements go from 0 to 999, standard normal columns from -4 to 4. ``penalty`` is what the user asks for, in
units of these ranges: nothing ("": the estimator's own), or an L1 penalty.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import expit
from sklearn.model_selection import train_test_split

from discreet.bounds import Bounds
from discreet.models import DPLasso, DPLinearRegression, DPLogisticRegression

Vector = NDArray[np.float64]
HELD_BACK = ("rcv1_vw1500",)
"""No rule was chosen on these."""


@dataclass(frozen=True, eq=False)
class WideTable:
    """Features, a target, the declared range of every column, and the penalty's strength."""

    X: Any
    y: Vector
    high: float
    low: float = 0.0
    target: tuple[float, float] | None = None
    strength: float | None = None

    def model(self, **settings: Any) -> Any:
        """Return the estimator that a user of this table takes."""
        bounds = Bounds([(self.low, self.high)] * self.X.shape[1], target=self.target, classes=self._classes)
        if self.target is None:
            l1 = {} if self.strength is None else {"penalty": "l1", "alpha": self.strength}
            return DPLogisticRegression(bounds=bounds, ledger=False, **l1, **settings)
        if self.strength is None:
            return DPLinearRegression(bounds=bounds, ledger=False, **settings)
        return DPLasso(bounds=bounds, alpha=self.strength, ledger=False, **settings)

    @property
    def _classes(self) -> tuple[int, int] | None:
        return (0, 1) if self.target is None else None

    def split(self, seed: int) -> tuple["WideTable", "WideTable"]:
        """Return four fifths of the rows, and the rest."""
        places = np.arange(len(self.y))
        some, rest = train_test_split(
            places, test_size=0.2, random_state=seed, stratify=self.y if self.target is None else None
        )
        return self._rows(some), self._rows(rest)

    def _rows(self, places: NDArray[np.int64]) -> "WideTable":
        return WideTable(self.X[places], self.y[places], self.high, self.low, self.target, self.strength)


def _packed(name: str, high: float) -> Callable[[Path], WideTable]:
    def read(folder: Path) -> WideTable:
        with np.load(folder / f"{name}.npz") as kept:
            X = sparse.csr_matrix((kept["data"], kept["indices"], kept["indptr"]), shape=tuple(kept["shape"]))
            return WideTable(X.astype(np.float64), kept["target"].astype(np.float64), high)

    return read


def _csv(name: str, low: float, high: float, target: tuple[float, float] | None) -> Callable[[Path], WideTable]:
    def read(folder: Path) -> WideTable:
        cells = np.loadtxt(folder / f"{name}.csv.gz", delimiter=",", skiprows=1)
        return WideTable(cells[:, :-1], cells[:, -1], high, low, target, strength=1e-3)

    return read


def _generated(n: int, p: int, relevant: int, *, labels: bool, l1: bool) -> Callable[[Path], WideTable]:
    def draw(folder: Path) -> WideTable:
        rng = np.random.default_rng([n, p, relevant])
        X = rng.normal(size=(n, p))
        w = np.zeros(p)
        w[rng.choice(p, relevant, replace=False)] = rng.choice([-1.0, 1.0], relevant) * rng.uniform(0.5, 1.5, relevant)
        margins = X @ w
        strength = 1e-3 if l1 else None
        if labels:
            return WideTable(X, (rng.random(n) < expit(margins)).astype(np.float64), 4.0, -4.0, None, strength)
        y = margins + rng.normal(size=n)
        return WideTable(X, y, 4.0, -4.0, (-4.0 * np.sqrt(relevant), 4.0 * np.sqrt(relevant)), strength)

    return draw


def _words(n: int, p: int, *, relevant: int) -> Callable[[Path], WideTable]:
    """Numbers that depend on words: column j is in a row with a chance that falls as 1 / j."""

    def draw(folder: Path) -> WideTable:
        rng = np.random.default_rng([n, p, relevant])
        chances = np.minimum(0.5, 12.0 / np.arange(1, p + 1))
        X = sparse.csr_matrix(rng.random((n, p)) < chances, dtype=np.float64)
        w = np.zeros(p)
        w[rng.choice(p // 4, relevant, replace=False)] = rng.normal(size=relevant)
        y = X @ w
        y = (y - y.mean()) / y.std() + 0.5 * rng.normal(size=n)
        return WideTable(X, y, 1.0, 0.0, (-5.0, 5.0))

    return draw


TABLES: dict[str, Callable[[Path], WideTable]] = {
    "basehock": _packed("basehock", 1.0),
    "gisette_valid": _packed("gisette_valid", 999.0),
    "dorothea": _packed("dorothea", 1.0),
    "rcv1_vw1500": _packed("rcv1_vw1500", 1.0),
    "a9a": _packed("a9a", 1.0),
    "sylva": _packed("sylva", 999.0),
}
SPARSE_TRUTH: dict[str, Callable[[Path], WideTable]] = {
    "synth_log_sparse": _csv("synth_log_sparse", -4.0, 4.0, None),
    "synth_square_sparse": _csv("synth_square_sparse", -4.0, 4.0, (-10.0, 10.0)),
    "madelon": _csv("madelon", 0.0, 999.0, None),
}
GENERATED: dict[str, Callable[[Path], WideTable]] = {
    "labels 15,000 x 1,000, L1": _generated(15_000, 1_000, 20, labels=True, l1=True),
    "labels 15,000 x 1,000": _generated(15_000, 1_000, 20, labels=True, l1=False),
    "labels 6,000 x 300, L1": _generated(6_000, 300, 15, labels=True, l1=True),
    "labels 6,000 x 300": _generated(6_000, 300, 15, labels=True, l1=False),
    "numbers 6,000 x 300, L1": _generated(6_000, 300, 15, labels=False, l1=True),
    "numbers 6,000 x 300": _generated(6_000, 300, 15, labels=False, l1=False),
    "labels 1,000 x 100": _generated(1_000, 100, 10, labels=True, l1=False),
    "numbers 1,000 x 100, L1": _generated(1_000, 100, 10, labels=False, l1=True),
    "numbers of words 4,000 x 4,000": _words(4_000, 4_000, relevant=200),
}
ALL = {**TABLES, **SPARSE_TRUTH, **GENERATED}
