"""The lattice a second time, in unbounded Python integers, and ways to see the exact sums of the real path."""

import math
from fractions import Fraction

import numpy as np

from discreet.accounting.plan import Plan, Release
from discreet.accounting.pricing import price_plan
from discreet.bounds import Bounds
from discreet.budget import Budget
from discreet.curator.engines import DenseEngine, SparseEngine
from discreet.curator.lattice import COEFFICIENT_LIMIT, place_weights, unit_for
from discreet.curator.private_data import PrivateData
from discreet.curator.queries.gradients import GradientQuery
from discreet.curator.records import admission
from discreet.curator.session import observe
from discreet.losses import Gamma, Huber, Logistic, Poisson, SmoothedHinge, Softmax, Squared
from discreet.losses.base import derivatives

LOSSES = (Logistic(), Squared(), Huber(0.7), SmoothedHinge(0.5), Poisson(3.0), Softmax(3), Gamma(3.0))
ZERO_OUT = Budget(1.0, 1e-6, "zero_out")
PURE = Budget(1.0, 0.0, "zero_out")


def bounds_for(loss, features=1.0, **facts):
    """Declared facts that suit a loss."""
    return Bounds(features, classes=tuple(range(max(2, loss.n_outputs))), target=(0.0, 3.0), **facts)


def measure(X, y, bounds, loss, *, w=None, clip=0.3, budget=ZERO_OUT, groups=None, fit_intercept=True):
    """What the curator's own path is about to release for this table: the Measurement of one noisy_gradient."""
    data = PrivateData(X, y, bounds, groups=groups, fit_intercept=fit_intercept)
    seen = []
    with observe(lambda measurement: seen.append(measurement) or measurement.noisy):
        curator = data.open(price_plan(Plan([Release("noisy_gradient", 1, clip=clip)]), budget), loss)
        weights = np.zeros(curator.domain.shape) if w is None else np.resize(w, curator.domain.shape)
        curator.noisy_gradient(weights, clip=clip)
    return seen[0]


def size(measurement):
    """The squared L2 norm (or the L1 norm, squared) of the exact sum over B squared: at most 1 for one unit."""
    values = [int(v) for v in measurement.exact.ravel()]
    bound = measurement.unit.bound
    if measurement.norm == "l1":
        return Fraction(sum(abs(v) for v in values), bound) ** 2
    return Fraction(sum(v * v for v in values), bound**2)


def records_of(X, targets, bounds, groups=None, intercept=True):
    """The private copy, without a curator."""
    X = admission.two_dimensional(X)
    scaling = admission.scaling_for(bounds, X.shape[1], None, intercept)
    return admission.admit(X, np.asarray(targets, dtype=np.float64), scaling, groups)


def query_for(records, loss, w, *, clip=0.3, z=2.0, n=1000, use_l1=False, units=None):
    """A query on the lattice that a curator would choose."""
    unit = unit_for(z, 1, clip, n)
    shape = (records.n_columns,) if loss.n_outputs == 1 else (records.n_columns, loss.n_outputs)
    weights = place_weights(np.resize(np.asarray(w, dtype=np.float64), shape), records.grid)
    return GradientQuery(weights, loss, unit.bound, unit.coefficient_scale(records.grid), use_l1, units)


def engine_for(records, **options):
    return DenseEngine(records, **options) if records.sparse is None else SparseEngine(records, **options)


# ------------------------------------------------------------------------------- Python integers


def encode_row(values, valid, scaling):
    """One record on the grid, as Python integers."""
    one, width = scaling.grid.one, len(values) + scaling.intercept
    if not valid or not all(math.isfinite(v) for v in values):
        return [0] * width
    row = []
    for v, low, high, scale in zip(values, scaling.low, scaling.high, scaling.scale, strict=True):
        x = min(max(float(v), float(low)), float(high)) * (one / float(scale) if scale > 0 else 0.0)
        row.append(int(min(max(float(round(x)), -one), one)))
    if scaling.row_norm is not None:
        row = _shrink(row, int(Fraction(scaling.row_norm) * one))
    return [*row, one] if scaling.intercept else row


def _shrink(row, longest):
    squares = sum(x * x for x in row)
    factor = longest / math.sqrt(squares) if squares else 1.0
    while sum(x * x for x in row) > longest * longest:
        row = [int(x * factor) for x in row]
        factor = 1.0 - 2.0**-20
    return row


def contribution(row, target, share, query, grid):
    """One row's vector in lattice steps, output by output, in Python integers."""
    if not any(row):
        return [[0] * len(row) for _ in query.weights.integers]
    squares = sum(x * x for x in row)
    reach = sum(map(abs, row)) if query.use_l1 else math.isqrt(squares - 1) + 1
    limit = min(query.bound // share // reach, COEFFICIENT_LIMIT)
    scale = query.weights.margin_scale(grid)
    totals = [sum(x * int(v) for x, v in zip(row, wk, strict=True)) for wk in query.weights.integers]
    slopes = np.empty(len(totals))
    derivatives(query.loss, np.array([float(t) * scale for t in totals]), target, slopes)
    steps = [float(s) * (1.0 / share * query.scale) for s in slopes]
    return [[c * x for x in row] for c in _clip(steps, limit, query.use_l1)]


def _clip(values, limit, use_l1):
    if len(values) == 1:
        return [0 if math.isnan(values[0]) else round(min(max(values[0], -limit), limit))]
    length = 0.0
    for v in values:
        length += abs(v) if use_l1 else v * v
    length = length if use_l1 else math.sqrt(length)
    factor = 1.0 if length <= limit else limit / length
    out = [0 if math.isnan(v * factor) else int(min(max(v * factor, -limit), limit)) for v in values]
    while sum(map(abs, out)) > limit if use_l1 else sum(c * c for c in out) > limit * limit:
        out = [c - (c > 0) + (c < 0) for c in out]
    return out
