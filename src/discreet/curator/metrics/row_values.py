"""What a metric needs of each row, and the cells that a row is counted in: each row's for itself.

Workers of a cluster import this file: it knows no noise, no entropy and no ledger. What a row becomes depends on that
row and on released or declared values only, in every bit, so that it is the same wherever the row is, and neighboring
tables become neighboring tables. So products are added column after column, each an operation on single numbers: in a
matrix product the last bits of a row's result can depend on its neighbors in the block.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from discreet.bounds import Bounds
from discreet.curator.records.admission import Table
from discreet.curator.records.stream import RecordStream, Watch, in_place
from discreet.losses.base import LEAST_LOG, Loss
from discreet.typing import Floats, Integers


@dataclass(frozen=True)
class Released:
    """A fitted model as plain numbers, with the facts that were declared for it."""

    name: str
    bounds: Bounds
    loss: Loss
    coef: Floats
    intercept: Floats
    low: Floats
    high: Floats

    @property
    def is_classifier(self) -> bool:
        """Whether targets are classes."""
        return bool(self.loss.task == "classification")

    def margins(self, features: Floats, offsets: Floats | None = None) -> Floats:
        """The linear predictor, one column an output; NaN where a feature or an offset is not finite."""
        n, outputs = len(features), len(self.coef)
        out = np.broadcast_to(self.intercept, (n, outputs)).copy()
        finite = np.isfinite(features).all(axis=1)
        for j in range(features.shape[1]):
            x = np.clip(np.where(finite, features[:, j], 0.0), self.low[j], self.high[j])
            for k in range(outputs):
                out[:, k] += x * self.coef[k, j]
        out[~finite] = np.nan
        if offsets is not None and self.bounds.offsets is not None:
            out += np.clip(offsets, *self.bounds.offsets)[:, None]
        return out

    def sparse_margins(self, csr: Table) -> Floats:
        """The same of compressed rows in canonical form, whose absent entries are 0 and within every range."""
        n, outputs = csr.shape[0], len(self.coef)
        row = np.repeat(np.arange(n), np.diff(csr.indptr))
        finite = np.isfinite(csr.data)
        x = np.clip(np.where(finite, csr.data, 0.0), self.low[csr.indices], self.high[csr.indices])
        cells = np.concatenate([np.arange(n), row])
        out = np.empty((n, outputs))
        for k in range(outputs):  # a row's entries are added in their order, the intercept first
            terms = np.concatenate([np.full(n, self.intercept[k]), x * self.coef[k, csr.indices]])
            out[:, k] = np.bincount(cells, terms, minlength=n)
        out[row[~finite]] = np.nan
        return out

    def valid_targets(self, targets: Floats) -> Floats:
        """The targets, NaN in place of what is no class: a stream's labels are whatever its maker wrote."""
        if not self.is_classifier:
            return targets
        count = len(self.class_names)
        return np.where((targets >= 0) & (targets < count) & (targets == np.floor(targets)), targets, np.nan)

    @property
    def class_names(self) -> tuple[str, ...]:
        """The declared classes, in their order."""
        return tuple(str(name) for name in self.bounds.classes or ())

    @property
    def is_ordered(self) -> bool:
        """Whether margins are log odds of each class or above but the lowest, of three classes or more."""
        return self.is_classifier and 1 < len(self.coef) < len(self.class_names)

    def classes(self, margins: Floats) -> Floats:
        """The predicted class, by its place among the declared ones."""
        if self.is_ordered:
            return np.asarray(np.nan_to_num(self.probabilities(margins)).argmax(axis=1), dtype=np.float64)
        chosen = (margins[:, 0] > 0) if margins.shape[1] == 1 else margins.argmax(axis=1)
        return np.asarray(chosen, dtype=np.float64)

    def probabilities(self, margins: Floats) -> Floats:
        """The probability of each class, one row at a time: the vector form of exp need not be row-pure."""
        if margins.shape[1] == 1:
            second = np.array([_sigmoid(m) for m in margins[:, 0].tolist()], dtype=np.float64)
            return np.column_stack([1.0 - second, second])
        if self.is_ordered:
            beyond = np.array([[_sigmoid(m) for m in row] for row in margins.tolist()], dtype=np.float64)
            beyond = beyond.reshape(margins.shape)
            return np.asarray(-np.diff(beyond, axis=1, prepend=1.0, append=0.0))
        return np.array([_softmax(row) for row in margins.tolist()], dtype=np.float64).reshape(margins.shape)

    def predictions(self, margins: Floats) -> Floats:
        """The predicted number; one at a time where there is an exponential, whose vector form need not be row-pure."""
        margin = margins[:, 0]
        if not self.loss.log_link:
            return margin
        held = np.clip(margin, LEAST_LOG, self.loss.prediction_limit)
        return np.array([math.exp(m) for m in held.tolist()], dtype=np.float64)


def _sigmoid(margin: float) -> float:
    if margin != margin:
        return math.nan
    tail = math.exp(-min(abs(margin), 700.0))
    return 1.0 / (1.0 + tail) if margin >= 0 else tail / (1.0 + tail)


def _softmax(margins: list[float]) -> list[float]:
    if any(margin != margin for margin in margins):
        return [math.nan] * len(margins)
    most = max(margins)
    weights = [math.exp(margin - most) for margin in margins]
    total = math.fsum(weights)
    return [weight / total for weight in weights]


@dataclass(frozen=True)
class Groups:
    """Declared groups of rows: by columns of indicators, one per group, or by one column, cut at ``middle``.

    A row belongs to the first of several columns that is above its middle, and to none where no column is. Of one
    column it belongs to the first group below the middle, to the second above it, and to none at it: so a yes/no
    column is encoded where it is missing.
    """

    names: tuple[str, ...]
    columns: tuple[int, ...]
    middle: float

    def of(self, features: Table) -> Floats:
        """The group of each row; NaN where it belongs to none."""
        chosen = features[:, list(self.columns)]
        values = np.asarray(chosen.toarray() if hasattr(chosen, "toarray") else chosen)
        above = values > self.middle
        if len(self.columns) > 1:
            return np.where(above.any(axis=1), above.argmax(axis=1), np.nan)
        return np.where(above[:, 0], 1.0, np.where(values[:, 0] < self.middle, 0.0, np.nan))


LEAST_PROBABILITY = 0.01
MOST_LOG_LOSS = -math.log(LEAST_PROBABILITY)
TENTHS = 10
MOMENTS = 0.4
"""The moments' weight next to the error's: within a tenth of the best for R2 between 0.1 and 0.9."""


def accuracy_values(model: Released, margins: Floats, targets: Floats) -> Floats:
    """1 for a right row, 0 for a wrong one, NaN for one that cannot be scored."""
    right: Floats = np.equal(model.classes(margins), targets).astype(np.float64)
    right[np.isnan(targets) | np.isnan(margins).any(axis=1)] = np.nan
    return right[:, None]


def balanced_accuracy_values(model: Released, margins: Floats, targets: Floats) -> Floats:
    """Whether a row is right, and its class."""
    return np.column_stack([accuracy_values(model, margins, targets), targets])


def brier_values(model: Released, margins: Floats, targets: Floats) -> Floats:
    """A row's score; NaN where it cannot be scored."""
    away = model.probabilities(margins)
    finite = np.isfinite(targets)
    away[finite, targets[finite].astype(np.int64)] -= 1.0
    total = np.zeros(len(away))
    for k in range(away.shape[1]):  # one class after the other: no bit of a row depends on its neighbors
        total += away[:, k] * away[:, k]
    return np.where(finite, np.minimum(total / 2.0, 1.0), np.nan)[:, None]


def log_loss_values(model: Released, margins: Floats, targets: Floats) -> Floats:
    """A row's loss as a part of the most it can be; NaN where it cannot be scored."""
    finite = np.isfinite(targets) & np.isfinite(margins).all(axis=1)
    chances = model.probabilities(margins)
    happened = chances[np.arange(len(targets)), np.where(finite, targets, 0.0).astype(np.int64)]
    parts = [-math.log(max(p, LEAST_PROBABILITY)) / MOST_LOG_LOSS if p == p else math.nan for p in happened.tolist()]
    return np.where(finite, np.clip(np.array(parts, dtype=np.float64), 0.0, 1.0), np.nan)[:, None]


def calibration_values(model: Released, margins: Floats, targets: Floats) -> Floats:
    """The tenth that a row's probability lies in, and its class."""
    chances = model.probabilities(margins)[:, 1]
    pair = np.column_stack([np.minimum(np.floor(TENTHS * chances), TENTHS - 1), targets])
    pair[~np.isfinite(pair).all(axis=1)] = np.nan
    return pair


def confusion_values(model: Released, margins: Floats, targets: Floats) -> Floats:
    """A row's class and the predicted one."""
    pair = np.column_stack([targets, model.classes(margins)])
    pair[np.isnan(targets) | np.isnan(margins).any(axis=1)] = np.nan
    return pair


def r_squared_values(model: Released, margins: Floats, targets: Floats) -> Floats:
    """u and v of each row; NaN for one that cannot be scored."""
    low, high = model.bounds.target or (0.0, 1.0)
    middle, half = (low + high) / 2, (high - low) / 2 or 1.0
    pair = np.column_stack([targets, model.predictions(margins)])
    pair[~np.isfinite(pair).all(axis=1)] = np.nan
    return np.asarray(np.clip((np.clip(pair, low, high) - middle) / half, -1.0, 1.0))


def row_errors(model: Released, margins: Floats, targets: Floats) -> Floats:
    """The absolute error over the range's width; NaN for a row that cannot be scored."""
    u, v = r_squared_values(model, margins, targets).T
    return np.asarray(np.abs(u - v) / 2.0)[:, None]


def row_squares(model: Released, margins: Floats, targets: Floats) -> Floats:
    """The square of that."""
    return row_errors(model, margins, targets) ** 2


def area_values(model: Released, margins: Floats, targets: Floats) -> Floats:
    """Margin and class (0 or 1) of each row; NaN for one that cannot be scored."""
    pair = np.column_stack([margins[:, 0], targets])
    pair[~np.isfinite(pair).all(axis=1)] = np.nan
    return pair


ROW_VALUES: dict[str, Callable[[Released, Floats, Floats], Floats]] = {
    "accuracy": accuracy_values,
    "auc": area_values,
    "balanced_accuracy": balanced_accuracy_values,
    "brier": brier_values,
    "calibration": calibration_values,
    "confusion": confusion_values,
    "log_loss": log_loss_values,
    "mae": row_errors,
    "r2": r_squared_values,
    "rmse": row_squares,
}
"""Maps the model, margins (n, K) and targets (n,) to what a metric needs of each row (n, m); NaN: it is not scored."""


@dataclass(frozen=True)
class Scoring:
    """What is kept of each row: the values of a metric and, last, the row's group where there are any."""

    metric: str
    model: Released
    groups: Groups | None = None

    def values(self, margins: Floats, targets: Floats, features: object) -> Floats:
        """Return what is kept of some rows."""
        values = ROW_VALUES[self.metric](self.model, margins, self.model.valid_targets(targets))
        return values if self.groups is None else np.column_stack([values, self.groups.of(features)])

    @property
    def nothing(self) -> Floats:
        """What is kept of no rows."""
        return self.values(np.empty((0, len(self.model.coef))), np.empty(0), np.empty((0, self.model.coef.shape[1])))

    def over(self, stream: RecordStream, watch: Watch | None = None) -> tuple[Floats, Integers | None]:
        """Return what is kept of a stream's rows, in one pass over its blocks, and the persons behind them."""
        parts, persons = [self.nothing], []
        for part, block in in_place(stream):
            margins = self.model.margins(block.features, block.offsets)
            parts.append(self.values(margins, block.targets, block.features))
            if block.persons is not None:
                persons.append(block.persons)
            if watch is not None:
                watch(part.start, part.stop, block.features)
        return np.concatenate(parts), np.concatenate(persons) if persons else None


class Cells(Protocol):
    """Maps the values of rows to a table of numbers between 0 and 1 with ``size`` columns, whose squares are summed."""

    @property
    def size(self) -> int:
        """The number of columns."""
        ...

    def __call__(self, values: Floats) -> Table:
        """Return the table, dense or compressed by rows."""
        ...


@dataclass(frozen=True)
class ShareCells:
    """1 - v and v, as squares, of the first value of a row, in the two cells of the group that the second one names."""

    groups: int

    @property
    def size(self) -> int:
        """Two cells per group."""
        return 2 * self.groups

    def __call__(self, values: Floats) -> Table:
        shares = values[:, 0]
        groups = values[:, 1] if values.shape[1] > 1 else np.zeros(len(values))
        scored = np.isfinite(shares) & np.isfinite(groups)
        place = np.where(scored, groups, -1.0).astype(np.int64)
        return two_parts(np.where(scored, shares, 0.0), place, self.groups)


@dataclass(frozen=True)
class PairCells:
    """A 1 in the cell that two whole numbers name, the second below ``width``."""

    width: int
    size: int

    def __call__(self, values: Floats) -> Table:
        scored = np.isfinite(values).all(axis=1)
        cells = np.where(scored, self.width * values[:, 0] + values[:, 1], -1.0).astype(np.int64)
        return one_hot(cells, self.size)


@dataclass(frozen=True)
class MomentCells:
    """Roots of the moments of u, and of the squared error, of the two values u and v of a row."""

    size: int = 4

    def __call__(self, values: Floats) -> Table:
        u, v = values[:, 0], values[:, 1]
        roots = [(1 + u) / 2, (1 - u) / 2, np.sqrt((1 - u * u) / 2)]
        return np.column_stack([math.sqrt(MOMENTS) * np.column_stack(roots), np.abs(u - v) / 2])


@dataclass(frozen=True)
class MarginCells:
    """A 1 in the bin of a row's margin; classes together, or each in cells of its own."""

    edges: Floats
    by_class: bool

    @property
    def bins(self) -> int:
        """The number of bins."""
        return len(self.edges) + 1

    @property
    def size(self) -> int:
        """The cells of one class, or of both."""
        return self.bins * (2 if self.by_class else 1)

    def __call__(self, values: Floats) -> Table:
        scored = np.isfinite(values[:, 0])
        bins = np.searchsorted(self.edges, np.where(scored, values[:, 0], 0.0), side="right")
        above = self.bins * (values[:, 1] > 0) if self.by_class else 0
        return one_hot(np.where(scored, bins + above, -1), self.size)


@dataclass(frozen=True)
class RankCells:
    """Each row's number between the least and the largest, as two parts of 1: cells of its own for each class.

    The number of a row of the positive class is that of its bin in ``below``, of the negative class in ``above``.
    """

    edges: Floats
    below: Floats
    above: Floats
    size: int = 4

    def __call__(self, values: Floats) -> Table:
        scored = np.isfinite(values[:, 0])
        bins = np.searchsorted(self.edges, np.where(scored, values[:, 0], 0.0), side="right")
        positive = values[:, 1] > 0
        out = np.zeros((len(bins), 4))
        for at, ranks, mine in ((0, self.below, positive), (2, self.above, ~positive)):
            low, high = ends(ranks)
            part = np.clip((ranks - low) / (high - low), 0.0, 1.0)[bins]
            out[:, at] = np.where(mine & scored, np.sqrt(part), 0.0)
            out[:, at + 1] = np.where(mine & scored, np.sqrt(1 - part), 0.0)
        return out


def ends(values: Floats) -> tuple[float, float]:
    """The least and the largest, never equal."""
    low, high = float(values.min()), float(values.max())
    return low, high if high > low else low + 1.0


def one_hot(cells: Integers, size: int) -> Table:
    """Rows with a 1 in their cell, as compressed rows; a negative cell is the null row."""
    from scipy.sparse import csr_array

    inside = cells >= 0
    ends = np.concatenate([[0], np.cumsum(inside)])
    return csr_array((np.ones(int(ends[-1])), cells[inside], ends), shape=(len(cells), size))


def two_parts(values: Floats, place: Integers, size: int) -> Table:
    """Rows with 1 - v and v, as squares, in the two cells of their place; a negative place is the null row."""
    from scipy.sparse import csr_array

    inside = place >= 0
    ends = 2 * np.concatenate([[0], np.cumsum(inside)])
    squares = np.column_stack([1.0 - values[inside], values[inside]])
    cells = 2 * place[inside, None] + np.arange(2)
    return csr_array((np.sqrt(squares).ravel(), cells.ravel(), ends), shape=(len(values), 2 * size))
