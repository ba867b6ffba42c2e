"""Tables with known effects: synthetic designs, right and wrong models, and public tables that are drawn from.

Columns are of every class that effects are asked for: numbers, a correlated pair, a rare event (2 %), cells of one
category, and the intercept. The truth of a wrong model is what the model fitted without privacy tends to: its
coefficients on a very large table, or on the whole of a public one.
"""

from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from benchmarks.problems import declared_tables
from benchmarks.problems.class_effects import CLASSES, class_coefficients, class_fit, class_targets
from discreet.bounds import Bounds

Array = NDArray[np.float64]
KINDS = ("number", "pair", "pair", "rare", "cell")
MODELS = {name: name for name in ("logistic", "softmax", "linear", "poisson", "huber")} | {"ridge": "linear"}
LARGE, BLOCK = 2_000_000, 100_000


@dataclass(frozen=True)
class Design:
    """One line of the study; ``data`` is how tables are made, or the name of a public one."""

    model: str
    n: int
    p: int
    epsilon: float
    relation: str
    data: str = "right"
    cov_type: str = "robust"
    slope: float = 0.0

    @property
    def name(self) -> str:
        """A file's name."""
        parts = (self.model, self.data, f"n{self.n}", f"p{self.p}", f"e{self.epsilon:g}", self.relation, self.cov_type)
        return "-".join(parts) + (f"-b{self.slope:g}" if self.slope else "")


@dataclass(frozen=True)
class Source:
    """Where tables come from: a draw of (X, y), what is declared of them, the classes of columns, and the truth.

    ``rows_per_person`` rows that follow one another belong to one person.
    """

    draw: object
    bounds: Bounds
    classes: tuple[str, ...]
    truth: Array
    rows_per_person: int = 1

    def groups(self, n: int) -> NDArray[np.int64] | None:
        """Return whose each of n rows is; None where each is a person's only one."""
        return None if self.rows_per_person == 1 else np.arange(n) // self.rows_per_person


def kinds_of(p: int) -> tuple[str, ...]:
    """Return the class of each of p columns, the intercept last."""
    rest = ("number", "cell") * p
    return (*(*KINDS, *rest)[: p - 1], "intercept")


def features(rng: np.random.Generator, n: int, p: int) -> Array:
    """Return p - 1 columns within their declared ranges."""
    kinds, columns = kinds_of(p)[:-1], []
    shared = rng.normal(size=n)
    category, cells = rng.integers(0, 4, n), 0
    for kind in kinds:
        if kind == "pair":
            columns.append(np.clip((0.95 * shared + 0.31 * rng.normal(size=n)) / 3.0, -1, 1))
        elif kind == "rare":
            columns.append((rng.random(n) < 0.02).astype(float))
        elif kind == "cell":
            cells += 1  # three cells of four categories, the fourth their base; then others by themselves
            columns.append((category == cells if cells < 4 else rng.random(n) < 0.3).astype(float))
        else:
            columns.append(rng.uniform(-1, 1, n))
    return np.column_stack(columns)


def coefficients(p: int) -> Array:
    """Return slopes of which every third is 0, and an intercept."""
    rng = np.random.default_rng(p)
    theta = rng.normal(0, 0.6, p)
    theta[::3] = 0.0
    theta[-1] = -0.3
    return theta


def targets(rng: np.random.Generator, X: Array, model: str, data: str) -> Array:
    """Return outcomes: of the right model, or with a curved mean, skewed or unequal errors."""
    if model == "softmax":
        return class_targets(rng, X)
    margins = X @ coefficients(X.shape[1] + 1)[:-1] - 0.3
    if data == "persons":
        margins = margins + np.repeat(rng.normal(0, 0.8, -(-len(X) // ROWS_PER_PERSON)), ROWS_PER_PERSON)[: len(X)]
    if data == "quadratic":
        margins = margins + 0.8 * (X[:, 0] ** 2 - 1 / 3)
    if model == "logistic":
        return (rng.random(len(X)) < expit(margins)).astype(float)
    if model == "poisson":
        rate = np.exp(np.clip(margins, -5, 5))
        if data == "skewed":
            rate = rate * rng.gamma(2.0, 0.5, len(X))
        return np.minimum(rng.poisson(rate), 30).astype(float)
    errors = rng.normal(size=len(X))
    if data == "skewed":
        errors = np.exp(0.8 * errors) - np.exp(0.32)
    if data == "unequal":
        errors = errors * (0.5 + 1.5 * np.abs(X[:, 0]))
    return np.clip(margins + 0.8 * errors, *TARGETS)


ROWS_PER_PERSON = 4
TARGETS = (-12.0, 12.0)
WIDTH = 2.4
"""Of Huber's loss: a tenth of the target's range, about two deviations of the errors."""


def source_of(design: Design, folder: Path | None) -> Source:
    """Return where a design's tables come from."""
    if design.data in PUBLISHED:
        return _published(design.data, design.slope)
    return _synthetic(design.model, design.p, design.data) if design.data in SYNTHETIC else _public(design, folder)


SYNTHETIC = ("right", "quadratic", "skewed", "unequal", "persons", "beta", "uniform", "slope")
CATEGORIES = {"marital": "bank_marketing"}
"""Categories with three values that are outcomes here, and the tables that they are columns of."""
WAGES = "cps_asec_2024_wages.csv.gz"
"""The Current Population Survey's wages: years of schooling and experience, experience squared, sex, log wage."""


@cache
def _synthetic(model: str, p: int, data: str) -> Source:
    def draw(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
        X = features(rng, n, p)
        if data == "persons":  # one column is the same in all rows of a person
            X[:, 0] = np.repeat(X[::ROWS_PER_PERSON, 0], ROWS_PER_PERSON)[:n]
        return X, targets(rng, X, model, data)

    ranges = [(0.0, 1.0) if kind in ("rare", "cell") else (-1.0, 1.0) for kind in kinds_of(p)[:-1]]
    exact = data == "right" or (data == "unequal" and model != "huber") or (data == "skewed" and model == "poisson")
    exact = exact or (data == "persons" and model == "linear")
    several = ROWS_PER_PERSON if data == "persons" else 1
    if model == "softmax":
        kinds = kinds_of(p) * (len(CLASSES) - 1)
        return Source(draw, Bounds(ranges, classes=CLASSES), kinds, class_coefficients(p).ravel(), several)
    known = {"classes": (0, 1)} if model == "logistic" else {"target": (0.0, 30.0) if model == "poisson" else TARGETS}
    truth = coefficients(p) if exact else _limit(draw, MODELS[model], p)
    return Source(draw, Bounds(ranges, **known), kinds_of(p), truth, several)  # type: ignore[arg-type]


def _limit(draw: object, model: str, p: int) -> Array:
    """Return the coefficients that the model has on a very large table."""
    rng = np.random.default_rng([p, 77])
    found = [plain_fit(*draw(rng, LARGE // 4), model, WIDTH)[0] for _ in range(4)]  # type: ignore[operator]
    return np.asarray(np.mean(found, axis=0))


PUBLISHED = ("beta", "uniform", "slope")


def _published(data: str, slope: float) -> Source:
    """Return designs of the literature: one column by Beta(1/2, 1/2), three uniform ones, and a Gaussian one."""
    known = {"beta": (2.0, 0.5), "uniform": (1.5, -2.0, 0.5, 0.0), "slope": (slope, 0.5)}
    theta = np.array(known[data])
    kinds = ("number",) * (len(theta) - 1) + ("intercept",)

    def draw(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
        if data == "beta":
            X = rng.beta(0.5, 0.5, (n, 1))
            return X, (rng.random(n) < expit(X @ theta[:1] + theta[1])).astype(float)
        X = rng.uniform(0, 10, (n, 3)) if data == "uniform" else np.clip(rng.normal(0.5, 1.0, (n, 1)), -4.0, 5.0)
        errors = rng.normal(0, 1.0 if data == "uniform" else 0.5, n)
        return X, np.clip(X @ theta[:-1] + theta[-1] + errors, *SPANS[data])

    if data == "beta":
        return Source(draw, Bounds([(0.0, 1.0)], classes=(0, 1)), kinds, theta)
    ranges = [(0.0, 10.0)] * 3 if data == "uniform" else [(-4.0, 5.0)]
    return Source(draw, Bounds(ranges, target=SPANS[data]), kinds, theta)


SPANS = {"uniform": (-25.0, 25.0), "slope": (-4.0, 5.0)}


def _wages(folder: Path) -> tuple[Array, Array, Bounds, tuple[str, ...]]:
    import pandas as pd

    table = pd.read_csv(folder / WAGES)
    X = table[["educ_years", "experience", "experience_sq", "female"]].to_numpy(float)
    bounds = Bounds([(0.0, 22.0), (0.0, 60.0), (0.0, 3600.0), (0.0, 1.0)], target=(0.0, 16.0))
    low, high = bounds.ranges(4)
    return np.clip(X, low, high), table["log_wage"].to_numpy(float), bounds, ("number",) * 3 + ("cell", "intercept")


def _load(name: str, folder: Path) -> declared_tables.DeclaredTable:
    """Return a public table; one in CATEGORIES has a category for its outcome, and not among its columns."""
    if name not in CATEGORIES:
        return declared_tables.load(name, folder)
    table = declared_tables.load(CATEGORIES[name], folder)
    cells = np.array([column.startswith(f"{name}=") for column in table.names])
    ranges = np.column_stack(table.bounds.ranges(len(cells)))[~cells]
    return replace(
        table,
        X=table.X[:, ~cells],
        y=np.argmax(table.X[:, cells], axis=1).astype(float),
        names=tuple(np.array(table.names)[~cells].tolist()),
        bounds=Bounds([(low, high) for low, high in ranges], classes=tuple(range(cells.sum()))),
        numeric=table.numeric[~cells],
    )


@cache
def _table(name: str, p: int, folder: Path) -> tuple[Array, Array, Bounds, tuple[str, ...]]:
    """Return a public table's first numeric columns and most even cells, clipped as declared."""
    if name == "wages":
        return _wages(folder)
    table = _load(name, folder)
    low, high = table.bounds.ranges(table.X.shape[1])
    X = np.clip(table.X, low, high)
    shares = X.mean(axis=0)
    cells = sorted((j for j in np.flatnonzero(~table.numeric) if 0.02 < shares[j] < 0.6), key=lambda j: -shares[j])
    chosen = _apart(X, [int(j) for j in np.flatnonzero(table.numeric)], p // 2)
    chosen = _apart(X, [*chosen, *(int(j) for j in cells)], p - 1)
    kinds = (*("number" if table.numeric[j] else "cell" for j in chosen), "intercept")
    bounds = Bounds([(low[j], high[j]) for j in chosen], classes=table.bounds.classes, target=table.bounds.target)
    y = table.y if table.bounds.target is None else np.clip(table.y, *table.bounds.target)
    return X[:, chosen], y, bounds, kinds


def _apart(X: Array, candidates: list[int], most: int) -> list[int]:
    """Return the first columns of which none is nearly a combination of those before it."""
    chosen: list[int] = []
    for j in candidates:
        Z = np.column_stack([X[:, chosen], np.ones(len(X))])
        left = X[:, j] - Z @ np.linalg.lstsq(Z, X[:, j], rcond=None)[0]
        if len(chosen) < most and left.var() > 0.1 * X[:, j].var() > 0:
            chosen.append(j)
    return chosen


def _public(design: Design, folder: Path | None) -> Source:
    if folder is None:
        raise declared_tables.MissingTable("public tables are in a folder of yours: name it with --data")
    X, y, bounds, kinds = _table(design.data, design.p, folder)

    def draw(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
        rows = rng.integers(0, len(y), n)
        return X[rows], y[rows]

    blocks = 1 if bounds.classes is None else len(bounds.classes) - 1
    return Source(draw, bounds, kinds * blocks, plain_fit(X, y, MODELS[design.model], WIDTH)[0])


def plain_fit(
    X: Array, y: Array, model: str, width: float, groups: NDArray[np.int64] | None = None
) -> tuple[Array, Array]:
    """Return coefficients without privacy, the intercept last, and their robust standard errors (of persons)."""
    if model == "softmax":
        return class_fit(X, y)
    Z = np.column_stack([X, np.ones(len(X))])
    if model == "linear":
        inverse = np.linalg.inv(Z.T @ Z)
        w = inverse @ (Z.T @ y)
        slopes = Z @ w - y
    else:
        w = np.zeros(Z.shape[1])
        for _ in range(25):
            margins = Z @ w
            if model == "logistic":
                mean = expit(margins)
                slopes, bends = mean - y, mean * (1 - mean)
            elif model == "poisson":
                mean = np.exp(np.clip(margins, -5, 5))
                slopes, bends = mean - y, mean
            else:
                slopes = np.clip(margins - y, -width, width)
                bends = (np.abs(margins - y) <= width).astype(float)
            inverse = np.linalg.inv((Z * bends[:, None]).T @ Z)
            step = inverse @ (Z.T @ slopes)
            w = w - step
            if np.abs(step).max() < 1e-9:
                break
    scores = Z * slopes[:, None]
    if groups is not None:
        scores = np.add.reduceat(scores, np.flatnonzero(np.diff(groups, prepend=-1)), axis=0)
    return w, np.sqrt(np.diag(inverse @ (scores.T @ scores) @ inverse))
