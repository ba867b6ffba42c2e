"""What the tests of variance reduction share: opened curators, and changes of gradients in plain Python integers."""

import math

import numpy as np

from discreet import Bounds, Budget
from discreet.accounting import Plan, Release
from discreet.accounting.priced_plan import price_plan
from discreet.curator import PrivateData
from discreet.curator.lattice.lattice import COEFFICIENT_LIMIT, place_weights
from discreet.curator.records import admission
from discreet.losses import Logistic
from discreet.losses.base import derivatives
from tests.replaying import window

RELATIONS = ("replace_one", "zero_out", "add_remove")
ZERO_OUT = Budget(1.0, 1e-6, "zero_out")


def bounds_for(loss):
    return Bounds(1.0, classes=tuple(range(max(2, loss.n_outputs))), target=(0.0, 3.0))


def opened(X, y, loss=None, *, budget=ZERO_OUT, count=1, groups=None, intercept=True, **release):
    """A curator that answers ``count`` changes of gradients."""
    loss = Logistic() if loss is None else loss
    data = PrivateData(X, y, bounds_for(loss), groups=groups, fit_intercept=intercept)
    return data.open(price_plan(Plan([Release("noisy_gradient_change", count, **release)]), budget), loss)


def shaped(curator, values):
    return np.resize(np.asarray(values, dtype=np.float64), curator.domain.shape)


def change(X, y, loss=None, w=1.0, anchor=0.0, clip=0.3, **settings):
    """The Measurement of one answer."""
    curator = opened(X, y, loss, **settings)
    with window() as seen:
        curator.noisy_gradient_change(shaped(curator, w), shaped(curator, anchor), clip=clip)
    return seen[0], curator


def _coefficients(steps, limit, use_l1):
    """The nearest integer within the limit for one output; a shortened vector, rounded toward zero, for several."""
    if len(steps) == 1:
        return [0 if math.isnan(steps[0]) else round(min(max(steps[0], -limit), limit))]
    length = 0.0
    for step in steps:
        length += abs(step) if use_l1 else step * step
    length = length if use_l1 else math.sqrt(length)
    factor = 1.0 if length <= limit else limit / length
    out = [int(min(max(step * factor, -limit), limit)) for step in steps]
    while (sum(map(abs, out)) > limit) if use_l1 else (sum(c * c for c in out) > limit * limit):
        out = [c - (c > 0) + (c < 0) for c in out]
    return out


def by_hand(curator, X, y, w, anchor, unit, *, groups=None, units=None):
    """The exact sum in unbounded Python integers, record by record: nothing of the kernels is in it."""
    loss, use_l1 = curator.loss, curator.budget.is_pure
    scaling = admission.scaling_for(bounds_for(loss), np.shape(X)[1], None, curator.domain.intercept)
    one = scaling.grid.one
    points = [place_weights(point, scaling.grid) for point in (w, anchor)]
    labels = np.arange(len(y)) if groups is None else np.asarray(groups)
    total = [[0] * (np.shape(X)[1] + scaling.intercept) for _ in range(loss.n_outputs)]
    for i, person in enumerate(labels):
        if units is not None and list(np.unique(labels)).index(person) not in units:
            continue
        share = int(np.sum(labels == person))
        row = [round(min(max(float(v), -1.0), 1.0) * one) for v in X[i]] if np.isfinite(X[i]).all() else None
        if row is None or not np.isfinite(y[i]):
            continue
        row = [*row, one] if scaling.intercept else row
        squares = sum(x * x for x in row)
        reach = sum(map(abs, row)) if use_l1 else math.isqrt(squares - 1) + 1 if squares else 0
        limit = min(unit.bound // share // reach, COEFFICIENT_LIMIT) if reach else 0
        slopes = []
        for point in points:
            scale = 2.0 ** -(point.shift + scaling.grid.bits)
            margins = [float(sum(x * int(v) for x, v in zip(row, wk, strict=True))) * scale for wk in point.integers]
            out = np.empty(len(margins))
            derivatives(loss, np.array(margins), float(target_of(loss, y[i])), out)
            slopes.append(out.tolist())
        scale = 1.0 / share * (1.0 / (unit.step * one))
        steps = [(here - there) * scale for here, there in zip(*slopes, strict=True)]
        for k, c in enumerate(_coefficients(steps, limit, use_l1)):
            total[k] = [t + c * x for t, x in zip(total[k], row, strict=True)]
    return total


def target_of(loss, label):
    if loss.task == "classification":
        return 2 * label - 1 if loss.n_outputs == 1 else label
    return min(max(label, 0.0), 3.0) / (1.0 if getattr(loss, "log_link", False) else 3.0)


def ratio_of(measurement):
    """The squared norm of the exact sum over B squared, in integers: (numerator, denominator)."""
    values = [int(v) for v in measurement.exact.ravel()]
    norm = sum(map(abs, values)) ** 2 if measurement.norm == "l1" else sum(v * v for v in values)
    return norm, measurement.unit.bound**2
