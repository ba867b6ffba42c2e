"""Problems drawn at random, so that no rule can be made for one of them: even seeds to choose by, odd ones to report.

``problem(seed)`` draws the number of rows and columns, the kinds of columns and how they are correlated, how well their
declared ranges fit, a target and how much of it columns say, an estimator and its penalty. Ranges are those of the
law that a column is drawn from, never of the rows.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from benchmarks.measures.objectives import Coordinates, Loss, Objective
from discreet.bounds import Bounds
from discreet.models import DPClassifier, DPPoissonRegressor, DPRegressor
from discreet.penalties import L1, L2, NoPenalty

Array = NDArray[np.float64]
Range = tuple[float, float]
TEST_ROWS = 5000
CELLS = 1_000_000
"""Of a training table, at most."""
KINDS = ("normal", "lognormal", "heavy", "rare", "one-hot", "constant", "collinear", "uniform")
RANGES = {"normal": (-4.0, 4.0), "lognormal": (0.0, 20.0), "heavy": (-10.0, 10.0), "collinear": (-4.0, 4.0)}
"""Of each kind's law; other kinds lie in (0, 1)."""
CLASSES = {"logistic": (0, 1), "hinge": (0, 1), "softmax": (0, 1, 2)}
STRENGTHS = {"none": 0.0, "weak": 0.3, "medium": 1.0, "strong": 3.0}
"""Standard deviation of the margins of labels; numbers have R^2 = s^2 / (1 + s^2), counts a third of it in the log."""


@dataclass(frozen=True, eq=False)
class Problem:
    """A table with its public facts, an estimator, and what can be reached."""

    seed: int
    facts: dict[str, Any]
    X: Array
    y: Array
    test_X: Array
    test_y: Array
    bounds: Bounds
    loss: Loss
    l1: float
    l2: float
    intercept: bool

    def model(self, epsilon: float, solver: Any = "auto", **settings: Any) -> Any:
        """Return the estimator, not yet fitted."""
        penalty = L1(self.l1) if self.l1 else L2(self.l2) if self.l2 else NoPenalty()
        facts = {"bounds": self.bounds, "fit_intercept": self.intercept, "ledger": False, "solver": solver, **settings}
        if self.loss.name == "poisson":
            return DPPoissonRegressor(epsilon, alpha=self.l2, limit=self.loss.width, **facts)
        kind = DPClassifier if self.loss.name in CLASSES else DPRegressor
        return kind(epsilon, loss=self._named_loss(), penalty=penalty, **facts)

    def _named_loss(self) -> Any:
        from discreet import losses

        width = self.loss.width * self.coordinates.target_scale  # Huber's is in units of the target
        made = {"softmax": lambda: losses.Softmax(3), "hinge": lambda: losses.SmoothedHinge(self.loss.width)}
        return {**made, "huber": lambda: losses.Huber(width)}.get(self.loss.name, lambda: self.loss.name)()

    @cached_property
    def coordinates(self) -> Coordinates:
        """Training coordinates, from declared facts."""
        return Coordinates.of(self.bounds, self.X.shape[1], self.loss, self.intercept)

    @cached_property
    def objective(self) -> Objective:
        """What is minimized, on training rows; its ``minimizer``, ``least`` and ``trivial`` need no privacy."""
        place, classes = self.coordinates, 3 if self.loss.name == "softmax" else 1
        return Objective(place.rows(self.X), place.targets(self.y), self.loss, self.l1, self.l2, classes)

    @cached_property
    def test(self) -> Objective:
        """The mean loss on test rows."""
        place = self.coordinates
        return replace(self.objective, rows=place.rows(self.test_X), targets=place.targets(self.test_y), l1=0.0, l2=0.0)

    @cached_property
    def nothing(self) -> Array:
        """The trivial predictor: the best constant on training rows, or zeros without an intercept."""
        zeros = np.zeros(self.objective.shape)
        if self.intercept:
            zeros[-1] = replace(self.objective, rows=self.objective.rows[:, -1:]).minimizer[0]
        return zeros

    def scores(self, w: Array) -> dict[str, float]:
        """Return the objective and the test loss of coefficients in training coordinates."""
        return {"objective": self.objective.value(w), "loss": self.test.value(w)}

    def fitted(self, model: Any) -> dict[str, float]:
        """Return those of a fitted model."""
        return self.scores(self.coordinates.weights(model))


def problem(seed: int) -> Problem:
    """Draw a problem."""
    rng = np.random.default_rng([seed, 7])
    n = round(math.exp(rng.uniform(math.log(200), math.log(30_000))))
    p = min(round(math.exp(rng.uniform(0.0, math.log(200)))), CELLS // n)
    drawn = _Columns(rng, p)
    G = drawn.normals(n + TEST_ROWS)
    X, ranges = drawn.columns(G)
    intercept = bool(rng.random() < 0.75)
    facts: dict[str, Any] = {"rows": n, "columns": p, "intercept": intercept, **drawn.facts}
    X, ranges, facts["ranges"] = _declared(rng, X, ranges)
    share, facts["strength"] = _pick(rng, (1.0, 0.1)), _pick(rng, tuple(STRENGTHS))
    margins = _margins(rng, X, share) * STRENGTHS[facts["strength"]]
    loss, y, known, about = _target(rng, margins, intercept)
    l1, l2 = _penalty(rng, loss)
    facts |= {"loss": loss.name, "relevant": "all" if share == 1.0 else "few", "L1": l1, "L2": l2, **about}
    bounds = Bounds([(float(low), float(high)) for low, high in ranges], **known)
    return Problem(seed, facts, X[:n], y[:n], X[n:], y[n:], bounds, loss, l1, l2, intercept)


def _pick(rng: np.random.Generator, values: Sequence[Any], chances: Sequence[float] | None = None) -> Any:
    return values[int(rng.choice(len(values), p=chances))]


class _Columns:
    """Columns of one or several kinds, made of correlated normal numbers."""

    def __init__(self, rng: np.random.Generator, p: int) -> None:
        self.rng, self.p = rng, p
        self.law = _pick(rng, ("independent", "one factor", "decaying"))
        main = _pick(rng, ("normal", "lognormal", "heavy", "rare", "one-hot", "uniform"))
        self.kinds = [main if rng.random() < 0.6 else _pick(rng, KINDS) for _ in range(p)]
        self.facts = {"correlation": self.law, "columns are": main}

    def normals(self, n: int) -> Array:
        """Return standard normal columns with the law's correlation."""
        G = self.rng.normal(size=(n, self.p))
        if self.law == "one factor":
            return np.asarray(math.sqrt(0.4) * G + math.sqrt(0.6) * self.rng.normal(size=(n, 1)))
        if self.law == "decaying":
            axes = np.linalg.qr(self.rng.normal(size=(self.p, self.p)))[0]
            mixed = G @ (axes * (np.arange(self.p) + 1.0) ** -1.0).T
            return np.asarray(mixed / mixed.std(axis=0))
        return G

    def columns(self, G: Array) -> tuple[Array, Array]:
        """Return columns of each kind, and the ranges of their laws."""
        X, rng = G.copy(), self.rng
        for j, kind in enumerate(self.kinds):
            g = G[:, j]
            if kind == "lognormal":
                X[:, j] = np.exp(g)
            elif kind == "heavy":
                X[:, j] = g / np.sqrt(rng.chisquare(3, len(g)) / 3.0)
            elif kind == "rare":
                X[:, j] = g > ndtri(1.0 - rng.uniform(0.003, 0.02))
            elif kind == "one-hot":  # levels of one factor: one of five thresholds of a common column
                level = j % 5
                X[:, j] = np.floor(5.0 * ndtr(G[:, j - level])) == level
            elif kind == "constant":
                X[:, j] = 0.5
            elif kind == "collinear":
                X[:, j] = 0.9 * G[:, 0] + (0.0 if j % 2 else 0.05) * g
            elif kind == "uniform":
                X[:, j] = ndtr(g)
        ranges = np.array([RANGES.get(kind, (0.0, 1.0)) for kind in self.kinds])
        return X, ranges


def _declared(rng: np.random.Generator, X: Array, ranges: Array) -> tuple[Array, Array, str]:
    """Return columns and ranges that fit, are too wide, or lie far from 0."""
    how = _pick(rng, ("fitting", "3 x", "10 x", "100 x", "mixed", "far"), (0.35, 0.15, 0.15, 0.1, 0.1, 0.15))
    if how == "far":
        away = 10.0 * (ranges[:, 1] - ranges[:, 0])
        return X + away, ranges + away[:, None], how
    if how == "mixed":
        return X, ranges * rng.choice([1.0, 3.0, 10.0, 100.0], size=(len(ranges), 1)), how
    return X, ranges * (1.0 if how == "fitting" else float(how.split()[0])), how


def _margins(rng: np.random.Generator, X: Array, share: float) -> Array:
    """Return the target's linear part, with a standard deviation of 1 where any column varies."""
    w = rng.normal(size=X.shape[1]) * (rng.permutation(X.shape[1]) < max(1.0, share * X.shape[1]))
    spread = X.std(axis=0)
    margins = ((X - X.mean(axis=0)) / np.where(spread > 1e-9, spread, 1.0)) @ w
    return np.asarray(margins / max(float(margins.std()), 1e-9))


def _target(
    rng: np.random.Generator, margins: Array, intercept: bool
) -> tuple[Loss, Array, dict[str, Any], dict[str, Any]]:
    """Return a loss, targets that follow the margins, what is declared of them, and in words."""
    n, name = len(margins), _pick(rng, ("logistic", "hinge", "softmax", "squared", "huber", "poisson"),
                                  (0.35, 0.05, 0.1, 0.3, 0.05, 0.15))  # fmt: skip
    if name in ("logistic", "hinge"):
        share = _pick(rng, (0.5, 0.3, 0.1, 0.02))
        y = (margins + math.log(share / (1.0 - share)) + rng.logistic(size=n) > 0).astype(int)
        return Loss(name, 0.5), y, {"classes": CLASSES[name]}, {"share": share}
    if name == "softmax":
        scores = np.column_stack([margins, np.zeros(n), np.abs(margins) - 0.5]) + rng.gumbel(size=(n, 3))
        return Loss(name), scores.argmax(axis=1), {"classes": CLASSES[name]}, {}
    if name == "poisson":
        rate = _pick(rng, (0.5, 3.0))
        counts = np.minimum(rng.poisson(rate * np.exp(np.clip(margins / 3.0, -3, 3))), 20.0 * rate)
        return Loss(name, 5.0), counts, {"target": (0.0, 20.0 * rate)}, {"rate": rate}
    errors = _pick(rng, ("normal", "heavy", "skewed"))
    noise = {"normal": lambda: rng.normal(size=n), "heavy": lambda: rng.standard_t(3, n) / math.sqrt(3.0),
             "skewed": lambda: (np.exp(rng.normal(size=n)) - 1.65) / 2.16}[errors]()  # fmt: skip
    unit = math.hypot(1.0, float(margins.std()))
    width, away = _pick(rng, (1.0, 10.0), (0.7, 0.3)), _pick(rng, (0.0, 100.0)) if intercept else 0.0
    reach = 4.0 * width
    about = {"errors": errors, "target range": f"{width:g} x" + (", far" if away else "")}
    return Loss(name, 0.3), (margins + noise) / unit + away, {"target": (away - reach, away + reach)}, about


def _penalty(rng: np.random.Generator, loss: Loss) -> tuple[float, float]:
    """Return strengths of L1 and L2; classes always have a little L2, so that a minimum exists."""
    if loss.name != "poisson" and rng.random() < 0.15:
        return float(_pick(rng, (1e-3, 1e-2))), 0.0
    least = 1e-7 if loss.name in CLASSES else 0.0
    return 0.0, float(_pick(rng, (least, 1e-5, 1e-3, 0.1, 1.0), (0.5, 0.15, 0.15, 0.1, 0.1)))
