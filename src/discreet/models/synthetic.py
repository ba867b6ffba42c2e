"""Public synthetic tables to rehearse a fit on: rows from a law that is written down here, and nothing of anyone.

The law stands for a usual table of people, of any shape:

- A third of the columns (from four columns on) are 0/1 indicators of categories, four of them a group, the first the
  commonest. The others are numbers that fill a part of their declared range, as numbers do: middles within +-0.4 of
  the half-range, standard deviations of 0.15 to 0.35 of it. Every third is skewed to the right, as incomes are.
- All depend on three hidden factors, so columns are correlated, by 0 to 0.5.
- Z = a weighted sum of the standardized columns; the weights fall as 1/sqrt(rank), with random ranks and signs: a few
  columns matter much, none not at all.
- Targets: classes with softmax(s Z_k + b_k), the k-th with a share in proportion to 0.7^k; numbers with
  s Z + Gaussian noise, with a standard deviation of a quarter of the half-range; counts that are Poisson(exp(s Z + b))
  with a mean of about a fifth of the largest. The strength s is such that the law's own score is the asked ceiling, or
  as near as it gets.

Since the law is known, so is a model's expected score on the held-out rows: no labels have to be drawn for it.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy.special import pdtrik, softmax

from discreet.errors import Unsupported
from discreet.inference.forecast import Stream
from discreet.parameters import Count, CountOrZero, checked
from discreet.schema.cell_meaning import Label
from discreet.schema.columns import Boolean, Category, ColumnKind, Number, Ordinal
from discreet.schema.columns import Target as DeclaredTarget
from discreet.schema.schema import Schema
from discreet.typing import Array, Floats

Groups = tuple[tuple[int, ...], ...]
"""Columns that are indicators, group by group: in a row at most one of a group is on."""

HIDDEN, GROUP = 3, 4
SPREADS, LOADS = (0.15, 0.25, 0.35), (0.3, 0.5, 0.7)
SHARE_RATIO = 0.7
TARGET_MIDDLE, TARGET_SPREAD = -0.2, 0.25  # of the half-range of a numeric target
COUNT_MEAN, COUNT_LIMIT = 0.2, 0.9  # of the largest count
COUNT_STRENGTH = 0.6  # at most: beyond, the largest count would cut the law off
HELD_OUT_CELLS, HELD_OUT_ROWS = 400_000, (2_000, 10_000)


def indicator_groups(p: int) -> Groups:
    """The columns that are indicators of one category each, group by group: the last third, from four columns on."""
    columns = range(p - p // 3, p) if p >= 4 else range(0)
    groups = [tuple(columns[first : first + GROUP]) for first in range(0, len(columns), GROUP)]
    return tuple(group for group in groups if group)


def _draw_columns(n: int, p: int, stream: Stream, groups: Groups) -> Floats:
    """n rows of columns within [-1, 1]; an indicator is 1 or -1."""
    hidden = [stream.normals(n) for _ in range(HIDDEN)]
    rows = np.full((n, p), -1.0)
    taken = {j for group in groups for j in group}
    for j, column in enumerate(column for column in range(p) if column not in taken):
        load, spread, middle = LOADS[j % 3], SPREADS[(j // 3) % 3], 0.4 * math.cos(2.4 * j)
        z = load * hidden[j % HIDDEN] + math.sqrt(1 - load**2) * stream.normals(n)
        if j % 3 == 2:  # log-normal, from near the lower end
            rows[:, column] = -0.9 + spread * np.exp(0.7 * z)
        else:
            rows[:, column] = middle + spread * z
    for number, group in enumerate(groups):
        # as where a reference level is left out: in some rows all indicators of a group are off
        scores = -np.log(-np.log(stream.uniforms((len(group) + 1) * n))).reshape(-1, n)
        for k in range(len(group)):
            scores[k] += 0.35 * (len(group) - k) + 0.5 * math.sin(k + number) * hidden[number % HIDDEN]
        chosen = scores.argmax(axis=0)
        for k, j in enumerate(group):
            rows[chosen == k, j] = 1.0
    return np.clip(rows, -1.0, 1.0, out=rows)


class Target(Protocol):
    """What is predicted: how it follows from Z (rows, outputs), and what predictions of it are worth."""

    @property
    def outputs(self) -> int:
        """How many Z there are."""

    @property
    def score_name(self) -> str:
        """What scores are called."""

    def strength_for(self, z: Floats, ceiling: float) -> tuple[Floats, float]:
        """(offsets b, strength s) with which the law's own score is the ceiling, or as near as it gets."""

    def expected(self, margins: Floats) -> Floats:
        """Return what is expected of each row: probabilities, or a mean."""

    def draw(self, expected: Floats, stream: Stream) -> Array:
        """Draw a target for each row."""

    def score(self, expected: Floats, predicted: Array) -> float:
        """Return the expected score of predictions."""

    def trivial(self, expected: Floats) -> float:
        """Return the score of the best prediction that looks at no column."""

    def best(self, expected: Floats) -> float:
        """Return the score of the law itself, which no model passes."""


def _bisected(score: Callable[[float], float], ceiling: float, largest: float) -> float:
    low, high = 0.0, largest
    for _ in range(20):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if score(middle) < ceiling else (low, middle)
    return high


@dataclass(frozen=True)
class Classes:
    """Labels; the score is accuracy."""

    labels: tuple[Label, ...]
    score_name = "accuracy"

    @property
    def outputs(self) -> int:
        return 1 if len(self.labels) == 2 else len(self.labels)

    @property
    def shares(self) -> Floats:
        """What part of the rows has each label."""
        weights = SHARE_RATIO ** np.arange(len(self.labels))
        return np.asarray(weights / weights.sum())

    def expected(self, margins: Floats) -> Floats:
        both = np.hstack([np.zeros_like(margins), margins]) if self.outputs == 1 else margins
        return np.asarray(softmax(both, axis=1))

    def strength_for(self, z: Floats, ceiling: float) -> tuple[Floats, float]:
        least = float(self.shares.max())
        if not least + 0.005 <= ceiling < 1:
            raise Unsupported(
                f"the ceiling must lie above {least + 0.005:.3f} and below 1: always the commonest class is right in "
                f"{least:.3f} of the synthetic rows"
            )
        offsets = np.zeros(self.outputs)

        def accuracy(strength: float) -> float:
            nonlocal offsets
            offsets = self._offsets(z, strength, offsets)
            return float(self.expected(strength * z + offsets).max(axis=1).mean())

        strength = _bisected(accuracy, ceiling, 60.0)
        return self._offsets(z, strength, offsets), strength

    def _offsets(self, z: Floats, strength: float, offsets: Floats) -> Floats:
        """Return the offsets that give each class its share at this strength, from those at a strength near it."""
        for _ in range(40):
            shares = self.expected(strength * z + offsets).mean(axis=0)
            change = np.log(self.shares / np.maximum(shares, 1e-9))
            if float(np.abs(change).max()) < 1e-3:
                break
            change = change[1:] - change[0] if self.outputs == 1 else change
            offsets = offsets + change * max(1.0, 0.4 * strength)  # margins spread as s does: so must the offsets
        return offsets

    def draw(self, expected: Floats, stream: Stream) -> Array:
        chosen = (expected.cumsum(axis=1)[:, :-1] < stream.uniforms(len(expected))[:, None]).sum(axis=1)
        labels = np.empty(len(self.labels), dtype=object)
        labels[:] = self.labels
        plain = np.array(self.labels)
        return np.asarray((plain if plain.tolist() == list(self.labels) else labels)[chosen])

    def score(self, expected: Floats, predicted: Array) -> float:
        place = {label: k for k, label in enumerate(self.labels)}
        chosen = np.array([place[label] for label in predicted.tolist()])
        return float(expected[np.arange(len(chosen)), chosen].mean())

    def trivial(self, expected: Floats) -> float:
        return float(expected.mean(axis=0).max())

    def best(self, expected: Floats) -> float:
        return float(expected.max(axis=1).mean())


@dataclass(frozen=True)
class Numbers:
    """Numbers within a range, with Gaussian noise; the score is R2."""

    low: float
    high: float
    score_name = "R2"
    outputs = 1

    @property
    def _half(self) -> float:
        return 0.5 * (self.high - self.low)

    def strength_for(self, z: Floats, ceiling: float) -> tuple[Floats, float]:
        _check_share(ceiling)
        middle = 0.5 * (self.low + self.high) + TARGET_MIDDLE * self._half
        return np.array([middle]), TARGET_SPREAD * self._half * math.sqrt(ceiling)

    def expected(self, margins: Floats) -> Floats:
        return margins[:, 0]

    def _noise(self, expected: Floats) -> float:
        """Return the variance that no model explains: what is left of the spread."""
        return max((TARGET_SPREAD * self._half) ** 2 - float(expected.var()), 0.0)

    def draw(self, expected: Floats, stream: Stream) -> Array:
        noise = math.sqrt(self._noise(expected)) * stream.normals(len(expected))
        return np.clip(expected + noise, self.low, self.high)

    def score(self, expected: Floats, predicted: Array) -> float:
        noise = self._noise(expected)
        return 1.0 - (float(np.mean((predicted - expected) ** 2)) + noise) / (float(expected.var()) + noise)

    def trivial(self, expected: Floats) -> float:
        return 0.0

    def best(self, expected: Floats) -> float:
        return self.score(expected, expected)


@dataclass(frozen=True)
class Counts:
    """Poisson counts up to a largest; the score is R2."""

    high: float
    score_name = "R2"
    outputs = 1

    def strength_for(self, z: Floats, ceiling: float) -> tuple[Floats, float]:
        _check_share(ceiling)

        def share(strength: float) -> float:
            rates = self.expected(math.log(COUNT_MEAN * self.high) + strength * z)
            return float(rates.var() / (rates.var() + rates.mean()))

        return np.array([math.log(COUNT_MEAN * self.high)]), _bisected(share, ceiling, COUNT_STRENGTH)

    def expected(self, margins: Floats) -> Floats:
        return np.asarray(np.minimum(np.exp(margins[:, 0]), COUNT_LIMIT * self.high))

    def draw(self, expected: Floats, stream: Stream) -> Array:
        drawn = np.ceil(pdtrik(stream.uniforms(len(expected)), expected))
        return np.asarray(np.clip(np.nan_to_num(drawn), 0.0, math.floor(self.high)))

    def score(self, expected: Floats, predicted: Array) -> float:
        noise = float(expected.mean())
        return 1.0 - (float(np.mean((predicted - expected) ** 2)) + noise) / (float(expected.var()) + noise)

    def trivial(self, expected: Floats) -> float:
        return 0.0

    def best(self, expected: Floats) -> float:
        return self.score(expected, expected)


def _check_share(ceiling: float) -> None:
    if not 0 < ceiling < 1:
        raise Unsupported("the ceiling of R2 must lie between 0 and 1, such as 0.6")


@dataclass(frozen=True)
class Rehearsal:
    """A table to train on, and held-out rows with what is expected of them. All of it is public."""

    X: Floats
    y: Array
    held_out: Floats
    expected: Floats
    target: Target
    slopes: Floats
    """(p, outputs): the truth, for columns in their own units."""
    offsets: Floats

    def score(self, predicted: Array) -> float:
        """Return the expected score of predictions for the held-out rows."""
        return self.target.score(self.expected, predicted)

    @property
    def trivial(self) -> float:
        """The score of the best prediction that looks at no column."""
        return self.target.trivial(self.expected)

    @property
    def best(self) -> float:
        """The law's own score."""
        return self.target.best(self.expected)


def rehearsal(
    n: int,
    ranges: tuple[Floats, Floats],
    target: Target,
    *,
    ceiling: float,
    seed: int,
    indicators: Groups | None = None,
) -> Rehearsal:
    """n rows within the ranges (low, high) of the columns, with targets, from the law of this seed.

    Another seed is another table of another law: other columns matter. ``indicators``: None is the last third.
    """
    low, high = ranges
    p = len(low)
    groups = indicator_groups(p) if indicators is None else indicators
    fewest, most = HELD_OUT_ROWS
    seen = _draw_columns(max(fewest, min(most, HELD_OUT_CELLS // p)), p, Stream(seed, 1), groups)
    middle, spread = seen.mean(axis=0), seen.std(axis=0)
    weights = _weights(p, target.outputs, Stream(seed, 2)) / np.where(spread > 0, spread, 1.0)[:, None]
    z = (seen - middle) @ weights
    weights, z = weights / z.std(axis=0), z / z.std(axis=0)
    offsets, strength = target.strength_for(z, ceiling)
    drawn = _draw_columns(n, p, Stream(seed, 3), groups)
    expected = target.expected(strength * ((drawn - middle) @ weights) + offsets)
    y = target.draw(expected, Stream(seed, 4))
    half = np.where(high > low, 0.5 * (high - low), 1.0)
    slopes = strength * weights / half[:, None]
    return Rehearsal(
        X=low + (drawn + 1.0) * 0.5 * (high - low),
        y=y,
        held_out=low + (seen + 1.0) * 0.5 * (high - low),
        expected=target.expected(strength * z + offsets),
        target=target,
        slopes=slopes,
        offsets=offsets - strength * (middle @ weights) - (low + half) @ slopes,
    )


def _weights(p: int, outputs: int, stream: Stream) -> Floats:
    """Weights of standardized columns: sizes 1/sqrt(rank), in random order, with random signs."""
    order = stream.uniforms(p * outputs).reshape(outputs, p).argsort(axis=1).T
    signs = np.where(stream.uniforms(p * outputs).reshape(p, outputs) < 0.5, -1.0, 1.0)
    return np.asarray(signs / np.sqrt(order + 1.0))


@checked
def sample_rows(schema: Schema, n: Count = 1000, *, seed: CountOrZero = 0) -> dict[str, Array]:
    """Return columns of ``n`` made-up rows, target and persons among them, for developing code.

    Numbers are uniform in their declared range, categories and classes equally likely, and no column depends on
    another: the rows say nothing of anybody, and a model of them is worth nothing.
    """
    columns = {name: _cells(kind, Stream(seed, j).uniforms(n)) for j, (name, kind) in enumerate(schema.columns.items())}
    for role in (schema.weight, schema.offset):
        if role is not None:
            low, high = role.range
            columns[role.column] = low + Stream(seed, len(columns)).uniforms(n) * (high - low)
    if schema.person is not None:
        columns[schema.person] = np.arange(n).astype(str)
    if schema.target is not None:
        columns[schema.target.column] = _cells(schema.target, Stream(seed, len(columns)).uniforms(n))
    return columns


def _cells(kind: ColumnKind | DeclaredTarget, uniforms: Any) -> Any:
    if isinstance(kind, Number):
        low, high = kind.limits
        return low + uniforms * (high - low)
    if isinstance(kind, DeclaredTarget) and kind.range is not None:
        return kind.range[0] + uniforms * (kind.range[1] - kind.range[0])
    labels = np.array(_labels(kind))
    return labels[(uniforms * len(labels)).astype(int)]


def _labels(kind: ColumnKind | DeclaredTarget) -> Sequence[Label]:
    if isinstance(kind, Category):
        return kind.categories
    if isinstance(kind, Ordinal):
        return kind.levels
    if isinstance(kind, Boolean):
        return kind.false[0], kind.true[0]
    assert isinstance(kind, DeclaredTarget)
    return kind.classes or ()
