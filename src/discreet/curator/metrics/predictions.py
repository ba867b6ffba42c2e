"""From rows to what a score needs of each: the released model's prediction next to the target.

What a row becomes depends on that row and on released values only, in every bit: products are added column after
column, each an operation on single numbers. A matrix product would not do: the last bits of a row's result can depend
on its neighbors in the block.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.bounds import Bounds
from discreet.losses.base import Loss
from discreet.typing import Floats


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

    def sparse_margins(self, csr: Any) -> Floats:
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

    def known(self, targets: Floats) -> Floats:
        """The targets, NaN in place of what is no class: a stream's labels are whatever its maker wrote."""
        if not self.is_classifier:
            return targets
        count = len(self.class_names)
        return np.where((targets >= 0) & (targets < count) & (targets == np.floor(targets)), targets, np.nan)

    @property
    def class_names(self) -> tuple[str, ...]:
        """The declared classes, in their order."""
        return tuple(str(name) for name in self.bounds.classes or ())

    def classes(self, margins: Floats) -> Floats:
        """The predicted class, by its place among the declared ones."""
        chosen = (margins[:, 0] > 0) if margins.shape[1] == 1 else margins.argmax(axis=1)
        return np.asarray(chosen, dtype=np.float64)

    def probabilities(self, margins: Floats) -> Floats:
        """The probability of each class, one row at a time: the vector form of exp need not be row-pure."""
        if margins.shape[1] == 1:
            second = np.array([_sigmoid(m) for m in margins[:, 0].tolist()], dtype=np.float64)
            return np.column_stack([1.0 - second, second])
        return np.array([_softmax(row) for row in margins.tolist()], dtype=np.float64).reshape(margins.shape)

    def predictions(self, margins: Floats) -> Floats:
        """The predicted number; one at a time where there is an exponential, whose vector form need not be row-pure."""
        one = margins[:, 0]
        if not self.loss.log_link:
            return one
        limit = self.loss.prediction_limit
        return np.array([math.exp(m) for m in np.clip(one, -limit, limit).tolist()], dtype=np.float64)


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

    def of(self, features: Any) -> Floats:
        """The group of each row; NaN where it belongs to none."""
        chosen = features[:, list(self.columns)]
        values = np.asarray(chosen.toarray() if hasattr(chosen, "toarray") else chosen)
        above = values > self.middle
        if len(self.columns) > 1:
            return np.where(above.any(axis=1), above.argmax(axis=1), np.nan)
        return np.where(above[:, 0], 1.0, np.where(values[:, 0] < self.middle, 0.0, np.nan))
