"""An estimator's public facts, as a fit would see them, without a table."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from discreet.bounds import Bounds
from discreet.curator import PrivateData
from discreet.errors import Unsupported
from discreet.losses.base import Loss
from discreet.models.fitting import penalty_of
from discreet.models.forecast.synthetic import (
    Classes,
    Counts,
    Groups,
    Numbers,
    Rehearsal,
    Target,
    indicator_groups,
    rehearsal,
)
from discreet.penalties.base import Penalty
from discreet.typing import Floats

DEFAULT_TARGET, DEFAULT_COUNTS = (-1.0, 1.0), (0.0, 20.0)
ACCURACY_CEILING, R2_CEILING, COUNT_CEILING = 0.85, 0.6, 0.4


@dataclass(frozen=True)
class Setting:
    """What is fitted: declared bounds (the usual ones where nothing is declared), loss, penalty, target.

    ``ranges`` is what the synthetic columns lie within: as declared, but an indicator is 0 or 1. ``indicators`` are the
    columns of which at most one is on, group by group.
    """

    estimator: Any
    bounds: Bounds
    ranges: tuple[Floats, Floats]
    loss: Loss
    penalty: Penalty
    target: Target
    indicators: Groups

    @property
    def n_columns(self) -> int:
        """p, without the intercept."""
        return len(self.ranges[0])

    @property
    def usual_ceiling(self) -> float:
        """What a good linear model reaches on such targets."""
        if isinstance(self.target, Classes):
            return ACCURACY_CEILING
        return COUNT_CEILING if isinstance(self.target, Counts) else R2_CEILING

    def table(self, rows: int, *, ceiling: float, seed: int) -> Rehearsal:
        """Return a synthetic table of this shape."""
        return rehearsal(rows, self.ranges, self.target, ceiling=ceiling, seed=seed, indicators=self.indicators)

    def model(self, rows: int, **changes: Any) -> Any:
        """The estimator with declared bounds, and some settings changed."""
        bounds = self.bounds if self.bounds.n is None else self.bounds.with_facts(n=rows)
        facts: dict[str, Any] = {"classes": None} if isinstance(self.target, Classes) else {"target": None}
        facts |= {"ledger": False, "verbose": False, "allow_large_delta": True, "start": None}  # public rows
        facts["public_moments"] = None
        return clone(self.estimator).set_params(bounds=bounds, **facts, **changes)

    def facts(self) -> PrivateData:
        """Two public rows, through which declared bounds are read as a fit reads them."""
        low, _ = self.ranges
        ends = self.bounds.classes or self.bounds.target
        assert ends is not None
        two = np.array(ends[:2], dtype=object)
        bounds = self.bounds.with_facts(n=None)
        return PrivateData(np.stack([low, low]), two, bounds, fit_intercept=self.estimator.fit_intercept, ledger=False)

    def truth(self, table: Rehearsal) -> Floats:
        """The law's coefficients in training coordinates, (p + 1, K); of a softmax the shortest that say the same."""
        facts = self.facts()
        scaling, (center, scale) = facts.scaling, facts.target_place(self.loss)
        offsets = table.offsets + scaling.center @ table.slopes - center
        w = np.vstack([table.slopes * scaling.scale[:, None], offsets]) / scale
        return np.asarray(w - w.mean(axis=1, keepdims=True) if self.loss.n_outputs > 1 else w)


def setting_of(estimator: Any, p: int | None, indicators: Groups | None = None) -> Setting:
    """The facts of an estimator, fitted or not, for a table of p columns."""
    if getattr(estimator, "inference", None):  # what standard errors cost is not forecast
        estimator = clone(estimator).set_params(inference=None)
    bounds, ranges = _columns(estimator.bounds, p)
    groups = indicator_groups(len(ranges[0])) if indicators is None else indicators
    penalty = penalty_of(getattr(estimator, "penalty", None), getattr(estimator, "alpha", 0.0))
    if hasattr(estimator, "classes"):
        labels = estimator.classes if estimator.classes is not None else bounds.classes
        bounds = bounds.with_facts(classes=(0, 1) if labels is None else labels)
        assert bounds.classes is not None
        loss = estimator._loss(len(bounds.classes))
        return Setting(estimator, bounds, ranges, loss, penalty, Classes(bounds.classes), groups)
    target = estimator.target if estimator.target is not None else bounds.target
    counts = estimator._loss(bounds.with_facts(target=target or DEFAULT_COUNTS)).log_link
    bounds = bounds.with_facts(target=target or (DEFAULT_COUNTS if counts else DEFAULT_TARGET))
    assert bounds.target is not None
    low, high = bounds.target
    loss = estimator._loss(bounds)
    if not high > max(low, 0.0 if counts else -math.inf):
        raise Unsupported("the declared range of the target is one point: there is nothing to predict")
    made: Target = Counts(high) if counts else Numbers(low, high)
    return Setting(estimator, bounds, ranges, loss, penalty, made, groups)


def _columns(given: Any, p: int | None) -> tuple[Bounds, tuple[Floats, Floats]]:
    """Bounds with one range per column, and what the synthetic columns lie within."""
    bounds = given if isinstance(given, Bounds) or given is None else Bounds(features=given)
    declared = None if bounds is None or isinstance(bounds.features, float) else len(bounds.features)
    p = declared if p is None else p
    if isinstance(p, bool) or not (isinstance(p, (int, np.integer)) and p >= 1):
        raise Unsupported("p, the number of columns to forecast for, must be a whole number of at least 1")
    if declared not in (None, p):
        raise Unsupported(f"bounds declare {declared} columns: leave p out, or make it {declared}")
    indicators = [j for group in indicator_groups(p) for j in group]
    if bounds is None:
        bounds = Bounds(features=[(0.0, 1.0) if j in indicators else (-1.0, 1.0) for j in range(p)])
    names = list(bounds.features) if isinstance(bounds.features, dict) else None
    low, high = bounds.ranges(p, names)
    bounds = bounds.with_facts(features=list(zip(low.tolist(), high.tolist(), strict=True)))
    if declared is None:
        low[indicators] = np.maximum(low[indicators], 0.0)
    return bounds, (low, high)
