"""What the tests of moments, recodings and whitened solvers share: opened curators, contributions, exact norms."""

import math
from fractions import Fraction
from functools import partial

import numpy as np
from scipy import sparse

from discreet import Bounds, Budget
from discreet.accounting import Plan, Release
from discreet.accounting.pricing import price_plan
from discreet.curator import PrivateData
from discreet.curator.records import admission
from discreet.losses import Logistic, Squared
from discreet.solvers import GradientDescent, Preconditioned
from tests.replaying import window

RELATIONS = ("replace_one", "zero_out", "add_remove")
MOMENTS = ("noisy_mean", "noisy_mean_squares", "noisy_second_moment")
FEATURES, LABELS = 3, (-1, 1)
FINE_CLIP = 1e-5  # outer products on the fine grid fit the lattice for short rows only


STAGES = {
    "full": partial(Preconditioned, coordinates="full"),
    "diagonal": partial(Preconditioned, coordinates="diagonal"),
    "plain": partial(Preconditioned, coordinates="declared"),
}


def descent(form="full", n_steps=12, *, momentum=0.7, step=1.0, clip=0.4, average="last", **stage):
    """Gradient steps in whitened, standardized or declared coordinates."""
    inner = GradientDescent(
        n_steps, momentum=momentum, relative_step=step, relative_clip=clip, average=average, radius=100.0
    )
    return STAGES[form](inner, **stage)


def budget_of(relation="zero_out", *, pure=False, epsilon=1.0):
    return Budget(epsilon, 0.0 if pure else 1e-6, relation)


def bounds_of(loss, *, fine=False, **facts):
    facts = {"n": None, **facts}
    known = {"classes": LABELS} if loss.task == "classification" else {"target": (-1.0, 3.0)}
    return Bounds(1.0, scale="global" if fine else "feature", **known, **facts)


def opened(
    X, y, releases, budget=None, *, loss=None, groups=None, intercept=False, fine=False, bounds=None, recoding=None
):
    """A curator for these releases (queries by name), after a recoding where one is given."""
    loss = Logistic() if loss is None else loss
    plan = [Release(one, 1) if isinstance(one, str) else one for one in releases]
    bounds = bounds_of(loss, fine=fine) if bounds is None else bounds
    data = PrivateData(X, y, bounds, groups=groups, fit_intercept=intercept)
    curator = data.open(price_plan(Plan(plan), budget_of() if budget is None else budget), loss)
    if recoding is not None:
        curator.recode(recoding)
    return curator


def answers_left(curator):
    """How many answers to each query the plan has left."""
    schedule = curator._session._schedule
    return {query: sum(entry.left for entry in entries) for query, entries in schedule.items()}


def asked(query, X, y, *, clip=0.05, center=None, **facts):
    """The measurement of one moment query."""
    curator = opened(X, y, [query], **facts)
    words = {} if query == "noisy_target_moments" else {"clip": clip}
    with window() as seen:
        getattr(curator, query)(n=10.0, **words, **({} if center is None else {"center": center}))
    return seen[0]


def contribution(query, rows, *, label=1, stored="dense", persons=False, relation="zero_out", pure=False, **facts):
    """What one unit (a record, or a person with all these rows) adds to the sum, in Python integers; the measurement.

    Sums are additive, so a unit beside null records shows it.
    """
    rows = np.atleast_2d(np.asarray(rows, dtype=np.float64))
    blank = np.full((1, rows.shape[1]), np.nan)
    X = np.vstack([blank, rows, blank])
    y = np.array([1.0, *[label] * len(rows), 1.0])
    groups = np.array([0, *[1] * len(rows), 2]) if persons else None
    if stored == "sparse":
        X = sparse.csr_array(X)
    if query == "noisy_target_moments":
        facts = {"loss": Squared(), **facts}
    measurement = asked(query, X, y, budget=budget_of(relation, pure=pure), groups=groups, **facts)
    return [int(value) for value in measurement.exact.ravel()], measurement


def norm_squared(vector, norm):
    return sum(map(abs, vector)) ** 2 if norm == "l1" else sum(v * v for v in vector)


def ratio_squared(one, other, measurement):
    """How far two sums are apart, over what the noise covers: exact, squared."""
    moved = [a - b for a, b in zip(one, other, strict=True)]
    return Fraction(norm_squared(moved, measurement.norm)) / (measurement.factor * measurement.unit.bound) ** 2


def worst_pair(contributions, relation, measurement):
    """The largest ratio over all pairs of neighbors among these contributions (against null, where that is it)."""
    null = [0] * len(contributions[0])
    others = contributions if relation == "replace_one" else [null]
    worst = max((ratio_squared(one, other, measurement), i) for i, one in enumerate(contributions) for other in others)
    return worst[0], worst[1]


def pool(p, rng, *, spread=24):
    """Rows of the nastiest kinds: opposite, orthogonal, single entries, at the clip, tiny, beyond all bounds."""
    eye, ones = np.eye(p), np.ones(p)
    signs = np.where(rng.uniform(size=(4, p)) < 0.5, -1.0, 1.0)
    random = rng.uniform(-1, 1, (spread // 3, p))
    sizes = 10.0 ** rng.uniform(-2.5, 0, (spread // 3, 1))
    return np.vstack([
        ones, -ones, eye, -eye, signs, random, random * sizes, ones * 1e300, -ones * 1e300, ones * 1e-3,
        np.zeros(p), eye[0] - eye[-1], eye[0] + eye[-1], 0.3 * ones,
    ])  # fmt: skip


def records_of(X, y, *, groups=None, intercept=True, fine=False, loss=None, bounds=None, relation="zero_out"):
    """The private copy and its public domain, without a curator."""
    loss = Logistic() if loss is None else loss
    bounds = bounds_of(loss, fine=fine) if bounds is None else bounds
    data = PrivateData(X, y, bounds, groups=groups, fit_intercept=intercept)
    records = admission.admit(admission.two_dimensional(X), np.asarray(y, dtype=np.float64), data.scaling, groups)
    return records, data.domain(budget_of(relation).neighbors, loss)


def dense_of(records):
    """The integer table, whatever the storage."""
    if records.rows is not None:
        return records.rows.astype(np.int64)
    indptr, indices, data = records.sparse
    table = np.zeros((records.n_rows, records.n_columns), dtype=np.int64)
    table[np.repeat(np.arange(records.n_rows), np.diff(indptr)), indices] = data
    return table


def ceil_norm(row):
    squares = sum(int(x) ** 2 for x in row)
    return math.isqrt(squares - 1) + 1 if squares else 0


def rows_through(recoding, X, grid_one, *, intercept=True):
    """The map by its own formula, in floating point: recoded rows (real numbers) and what shrank them."""
    X = np.rint(np.clip(X, -1, 1) * grid_one) / grid_one
    u = (X - recoding.center) / recoding.scale
    if intercept:
        u = np.hstack([u, np.full((len(X), 1), recoding.constant)])
    length = np.linalg.norm(u, axis=1)
    factor = np.where(length > recoding.row_norm, recoding.row_norm / np.maximum(length, 1e-300), 1.0)
    z = u * factor[:, None]
    if recoding.matrix is not None:
        z = z * recoding.matrix if recoding.matrix.ndim == 1 else z @ recoding.matrix
    return z, factor
