"""A generator of ugly tables: what real ones have, and textbook designs leave out.

A seed decides the number of columns (1 to 30), what each is (``KINDS``), how large its effect is, how rare, steep,
skewed, dispersed or contaminated the outcome is, whether there is an intercept, and whether persons have several rows.
Seeds from ``NEWER`` on have further columns and outcomes.
The truth is what the model tends to without privacy: its coefficients on a very large table of the same law.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from benchmarks.problems.class_effects import class_fit
from discreet.bounds import Bounds

Array = NDArray[np.float64]
Draw = Callable[[np.random.Generator, int, list[Array]], Array]
MODELS = ("logistic", "softmax", "linear", "ridge", "huber", "poisson")
COUNTS = (1, 2, 3, 5, 8, 12, 20, 30)
LARGE, PARTS = 250_000, 4
WIDTH = 2.4
"""Of Huber's loss: about two deviations of the errors."""
ROWS_PER_PERSON = 4
MOST_COUNT = 60.0
OFF_CENTER = 2010.0
NEWER = 100
TAIL_END = 60.0


@dataclass(frozen=True)
class Column:
    """A column: its kind, how it is drawn given those before it, its declared range, and its coefficient."""

    kind: str
    draw: Draw
    low: float
    high: float
    effect: float

    @property
    def middle(self) -> float:
        """Where a column far from 0 is; 0 for others."""
        return OFF_CENTER if self.kind == "off center" else 0.0


@dataclass(frozen=True)
class Ugly:
    """One law of tables."""

    model: str
    seed: int
    columns: tuple[Column, ...]
    intercept: float
    fit_intercept: bool
    persons: bool
    outcome: str

    @property
    def name(self) -> str:
        """Name the law by what is ugly in it."""
        parts = [self.model, str(self.seed), self.outcome, f"p{len(self.columns)}"]
        return " ".join([*parts, *["no intercept"] * (not self.fit_intercept), *["persons"] * self.persons])

    @property
    def bounds(self) -> Bounds:
        """Return what is declared: ranges, and classes or the range of the outcome."""
        ranges = [(column.low, column.high) for column in self.columns]
        if self.model in ("logistic", "softmax"):
            return Bounds(ranges, classes=(0, 1) if self.model == "logistic" else (0, 1, 2))
        return Bounds(ranges, target=(0.0, MOST_COUNT) if self.model == "poisson" else self._span)

    @property
    def _span(self) -> tuple[float, float]:
        return {"lognormal": (-20.0, 60.0), "zeros": (0.0, 60.0)}.get(self.outcome, (-20.0, 20.0))

    @property
    def classes(self) -> tuple[str, ...]:
        """Return the kind of each coefficient."""
        kinds = tuple(column.kind for column in self.columns) + ("intercept",) * self.fit_intercept
        return kinds * (2 if self.model == "softmax" else 1)

    @property
    def effects(self) -> Array:
        """Return the coefficients of the law."""
        return np.array([column.effect for column in self.columns])

    def groups(self, n: int) -> NDArray[np.int64] | None:
        """Return whose each row is; None where each is a person's only one."""
        return np.arange(n) // ROWS_PER_PERSON if self.persons else None

    def draw(self, rng: np.random.Generator, n: int) -> tuple[Array, Array]:
        """Draw a table."""
        X = self._features(rng, n)
        return X, self._targets(rng, X)

    def _features(self, rng: np.random.Generator, n: int) -> Array:
        values: list[Array] = []
        for column in self.columns:
            values.append(np.clip(column.draw(rng, n, values), column.low, column.high))
        return np.column_stack(values)

    def _targets(self, rng: np.random.Generator, X: Array) -> Array:
        m = X @ self.effects + self.intercept
        m = m - sum(column.middle * column.effect for column in self.columns)
        if self.outcome == "bent":
            m = m + 0.3 * np.minimum(np.square(m - self.intercept), 9.0)
        if self.persons:
            m = m + np.repeat(rng.normal(0, 0.5, -(-len(X) // ROWS_PER_PERSON)), ROWS_PER_PERSON)[: len(X)]
        if self.model == "logistic":
            return (rng.random(len(m)) < expit(m)).astype(float)
        if self.model == "softmax":
            margins = np.column_stack([np.zeros(len(m)), m, -1.0 - 0.5 * m])
            return np.argmax(margins + rng.gumbel(size=margins.shape), axis=1).astype(float)
        if self.model == "poisson":
            rate = np.exp(np.minimum(m, 5.0))
            mixed = rate * rng.gamma(0.4, 2.5, len(m)) if self.outcome == "dispersed" else rate
            mixed = mixed * (rng.random(len(m)) < 0.3) if self.outcome == "inflated" else mixed
            return np.minimum(rng.poisson(mixed), MOST_COUNT).astype(float)
        return np.clip(self._numbers(rng, m), *self._span)

    def _numbers(self, rng: np.random.Generator, m: Array) -> Array:
        e = rng.normal(size=len(m))
        if self.outcome == "unequal":
            return np.asarray(m + e * (0.3 + np.abs(m)))
        if self.outcome == "lognormal":
            return np.asarray(np.exp(np.minimum(0.5 * m, 4.0) + e))
        if self.outcome == "zeros":
            return np.asarray((rng.random(len(m)) < 0.2) * np.exp(np.minimum(0.5 * m, 3.0) + 0.7 * e))
        if self.outcome == "heavy":
            return np.asarray(m + rng.standard_t(3, len(m)))
        if self.outcome == "rounded":
            return np.asarray(np.rint(m + e))
        if self.outcome == "contaminated":
            return np.asarray(m + e + (rng.random(len(m)) < 0.02) * rng.normal(0, 8, len(m)))
        return np.asarray(m + e)

    @property
    def zero(self) -> NDArray[np.bool_]:
        """Say which coefficients are 0 for sure: those of columns without effect, where the model is right."""
        right = self.outcome not in ("bent", "lognormal") and (self.outcome != "zeros" or self.model == "poisson")
        right &= self.fit_intercept or self.intercept == 0
        right &= not (self.persons and self.model == "logistic")
        none = np.append(self.effects == 0, np.zeros(int(self.fit_intercept), dtype=bool)) & right
        return np.tile(none, 2 if self.model == "softmax" else 1)

    @cached_property
    def truth(self) -> Array:
        """Return the coefficients on a very large table."""
        rng = np.random.default_rng([self.seed, 1])
        tables = PARTS * max(1, 12 // len(self.columns))  # an error far below those of tables that are fitted
        parts = [plain_fit(*self.draw(rng, LARGE), self.model, self.fit_intercept)[0] for _ in range(tables)]
        return np.asarray(np.mean(parts, axis=0))


# --- columns --------------------------------------------------------------------------------------------


def _twin(rng: np.random.Generator, n: int, before: list[Array]) -> Array:
    other = before[0]
    return np.asarray(0.99 * other + 0.141 * other.std() * rng.normal(size=n))


def _product(rng: np.random.Generator, n: int, before: list[Array]) -> Array:
    return np.asarray(before[-1] * before[-2])


def _knot(rng: np.random.Generator, n: int, before: list[Array]) -> Array:
    return np.asarray(np.maximum(before[0] - 0.2, 0.0))


KINDS: dict[str, tuple[Draw, float, float, float]] = {
    # how it is drawn, the declared range, and about its deviation
    "number": (lambda rng, n, _: rng.uniform(-1, 1, n), -1.0, 1.0, 0.58),
    "normal": (lambda rng, n, _: rng.normal(0, 0.33, n), -1.0, 1.0, 0.33),
    "cell": (lambda rng, n, _: (rng.random(n) < 0.3).astype(float), 0.0, 1.0, 0.46),
    "rare 2 %": (lambda rng, n, _: (rng.random(n) < 0.02).astype(float), 0.0, 1.0, 0.14),
    "rare 0.7 %": (lambda rng, n, _: (rng.random(n) < 0.007).astype(float), 0.0, 1.0, 0.083),
    "rare 0.3 %": (lambda rng, n, _: (rng.random(n) < 0.003).astype(float), 0.0, 1.0, 0.055),
    "tail": (lambda rng, n, _: rng.lognormal(0, 1, n), 0.0, TAIL_END, 2.1),
    "zeros": (lambda rng, n, _: (rng.random(n) < 0.08) * rng.lognormal(0, 1, n), 0.0, TAIL_END, 0.75),
    "narrow": (lambda rng, n, _: rng.normal(0, 1, n), -80.0, 80.0, 1.0),
    "twin": (_twin, -1.0, 1.0, 0.58),
    "product": (_product, -1.0, 1.0, 0.2),
    "knot": (_knot, 0.0, 1.0, 0.25),
}
MORE_KINDS: dict[str, tuple[Draw, float, float, float]] = {
    "exponential": (lambda rng, n, _: rng.exponential(1.0, n), 0.0, 20.0, 1.0),
    "heavy": (lambda rng, n, _: rng.standard_t(3, n), -40.0, 40.0, 1.7),
    "count": (lambda rng, n, _: rng.poisson(2.0, n).astype(float), 0.0, 30.0, 1.4),
    "grade": (lambda rng, n, _: rng.choice(5, n, p=[0.6, 0.2, 0.1, 0.07, 0.03]).astype(float), 0.0, 4.0, 1.1),
    "block": (lambda rng, n, before: 0.9 * before[0] + 0.2 * rng.normal(size=n), -2.0, 2.0, 0.5),
    "off center": (lambda rng, n, _: rng.uniform(OFF_CENTER - 10, OFF_CENTER + 10, n), 1950.0, 2050.0, 5.8),
}
"""What newer seeds draw from, too."""
FIRST = ("number", "normal")
"""What twins, products and knots are made of."""
MADE = ("twin", "product", "knot")
OUTCOMES = {
    "logistic": ("common", "steep", "5 %", "1 %", "0.3 %"),
    "softmax": ("common", "steep"),
    "linear": ("normal", "unequal", "lognormal", "zeros", "contaminated"),
    "ridge": ("normal", "unequal", "lognormal", "zeros", "contaminated"),
    "huber": ("normal", "unequal", "contaminated"),
    "poisson": ("common", "rare", "dispersed"),
}
MORE_OUTCOMES = {
    "logistic": ("90 %", "bent"),
    "linear": ("heavy", "rounded", "bent"),
    "ridge": ("heavy", "bent"),
    "huber": ("heavy", "rounded"),
    "poisson": ("inflated", "bent"),
}
START = {
    "90 %": 2.2,
    "5 %": -3.2,
    "1 %": -4.9,
    "0.3 %": -6.1,
    "rare": -3.0,
    "steep": 0.5,
    "zeros": 1.0,
    "lognormal": 0.5,
}
RARE_OUTCOMES = ("1 %", "0.3 %", "rare")


def ugly(model: str, seed: int) -> Ugly:
    """Return the law of a model and a seed."""
    rng = np.random.default_rng([seed, MODELS.index(model), 29])
    newer = seed >= NEWER
    outcome = str(rng.choice(MORE_OUTCOMES.get(model, OUTCOMES[model]) if newer else OUTCOMES[model]))
    most = 5 if outcome in RARE_OUTCOMES else 12 if model == "softmax" else 30
    count = int(rng.choice([c for c in COUNTS if c <= most]))
    kinds = _kinds(rng, count, rare=outcome not in RARE_OUTCOMES and model != "softmax", newer=newer)
    steep = {"steep": 2.5}.get(outcome, 0.5)
    sizes = rng.uniform(0.3, 1.0, count) * rng.choice([-1.0, 1.0], count) * (rng.random(count) < 0.7)
    sizes *= steep / max(1.0, np.sqrt(np.square(sizes).sum()))
    columns = []
    for kind, size in zip(kinds, sizes, strict=True):
        draw, low, high, deviation = (KINDS | MORE_KINDS)[kind]
        rare = kind.startswith("rare")
        effect = float(np.sign(size) if rare else size / deviation)
        columns.append(Column(kind, draw, low, high, effect))
    fit_intercept = model in ("softmax", "poisson") or bool(rng.random() > 0.15)
    intercept = START.get(outcome, -0.3) if fit_intercept or outcome in RARE_OUTCOMES else 0.0
    persons = model in ("logistic", "linear", "poisson") and bool(rng.random() < 0.15)
    return Ugly(model, seed, tuple(columns), intercept, fit_intercept, persons, outcome)


def _kinds(rng: np.random.Generator, count: int, *, rare: bool, newer: bool = False) -> list[str]:
    choices = [kind for kind in KINDS if kind not in MADE and (rare or not kind.startswith("rare"))]
    choices += [kind for kind in MORE_KINDS if count > 1 or kind != "block"] * newer
    if count == 1:
        return [str(rng.choice(choices))]
    kinds = [str(rng.choice(FIRST)), str(rng.choice(FIRST))][:count]
    made = [kind for kind in MADE if rng.random() < 0.4] if count > 4 else []
    kinds += made
    return kinds + [str(rng.choice(choices)) for _ in range(count - len(kinds))]


# --- without privacy --------------------------------------------------------------------------------------


def plain_fit(
    X: Array, y: Array, model: str, fit_intercept: bool = True, groups: NDArray[np.int64] | None = None
) -> tuple[Array, Array]:
    """Return coefficients without privacy, the intercept last, and their robust standard errors (of persons)."""
    if model == "softmax":
        return class_fit(X, y)
    Z = np.column_stack([X, np.ones(len(X))]) if fit_intercept else X
    w, value = np.zeros(Z.shape[1]), np.inf
    for _ in range(100):
        value, slopes, bends = _parts(Z @ w, y, model)
        inverse = np.linalg.inv((Z * bends[:, None]).T @ Z)
        step = inverse @ (Z.T @ slopes)
        length = 1.0
        while _parts(Z @ (w - length * step), y, model)[0] > value + 1e-12 * abs(value) and length > 1e-6:
            length /= 2.0
        w = w - length * step
        if np.abs(step).max() < 1e-10 * (1.0 + np.abs(w).max()):
            break
    scores = Z * slopes[:, None]
    if groups is not None:
        scores = np.add.reduceat(scores, np.flatnonzero(np.diff(groups, prepend=-1)), axis=0)
    return w, np.sqrt(np.diag(inverse @ (scores.T @ scores) @ inverse))


def _parts(m: Array, y: Array, model: str) -> tuple[float, Array, Array]:
    """Return the loss, and slopes and curvatures at margins m."""
    if model == "logistic":
        mean = expit(m)
        return float((np.logaddexp(0.0, m) - y * m).sum()), mean - y, mean * (1 - mean)
    if model == "poisson":
        mean = np.exp(np.minimum(m, 30.0))
        return float((mean - y * m).sum()), mean - y, mean
    if model == "huber":
        r = m - y
        inside = np.abs(r) <= WIDTH
        value = np.where(inside, r**2 / 2, WIDTH * (np.abs(r) - WIDTH / 2))
        return float(value.sum()), np.clip(r, -WIDTH, WIDTH), inside.astype(float)
    return float(((m - y) ** 2).sum() / 2), m - y, np.ones(len(m))
