"""Synthetic logistic problems, straight to the private integer copy: made in blocks, never wholly in floats."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from discreet.bounds import Bounds
from discreet.curator.lattice import COARSE, place_weights, unit_for
from discreet.curator.queries.gradients import GradientQuery
from discreet.curator.records.admission import Records, admit, scaling_for
from discreet.losses import Logistic

CLIP_SHARE = 0.5
"""The clip in units of a typical row's norm: |loss'| is about 1/2, so about half the rows are clipped."""

_BLOCK_ROWS = 100_000


def blocks(n: int, p: int, seed: int = 0) -> Iterator[tuple[slice, NDArray[np.float64], NDArray[np.float64]]]:
    """(where, features in [-1, 1], targets in {-1, +1}) for up to 100 000 records at a time."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=p) / np.sqrt(p)
    for first in range(0, n, _BLOCK_ROWS):
        where = slice(first, min(n, first + _BLOCK_ROWS))
        X = rng.uniform(-1, 1, size=(where.stop - first, p))
        y = np.where(rng.uniform(size=len(X)) < 1 / (1 + np.exp(-5 * (X @ truth))), 1.0, -1.0)
        yield where, X, y


def features_and_targets(n: int, p: int, seed: int = 0) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The whole problem in float64, C-order."""
    parts = list(blocks(n, p, seed))
    return np.concatenate([X for _, X, _ in parts]), np.concatenate([y for _, _, y in parts])


def records(n: int, p: int, seed: int = 0) -> Records:
    """The private copy of ``blocks(n, p, seed)``, without an intercept."""
    scaling = scaling_for(Bounds(features=1.0), p, None, intercept=False)
    rows = np.empty((n, p), dtype=COARSE.dtype)
    targets, norms, sums = np.empty(n), np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    for where, X, y in blocks(n, p, seed):
        part = admit(X, y, scaling)
        rows[where], targets[where], norms[where], sums[where] = part.rows, part.targets, part.norms, part.sums
    return Records(rows, None, targets, norms, sums, None, None, p, COARSE)


def clip_for(p: int) -> float:
    return CLIP_SHARE * float(np.sqrt(p / 3))


def query(w: NDArray[np.float64], n: int, clip: float) -> GradientQuery:
    """A clipped logistic gradient at ``w`` on the lattice that a noise multiplier of 1 would use."""
    unit = unit_for(1.0, 2, clip, n)
    return GradientQuery(place_weights(w, COARSE), Logistic(), unit.bound, unit.coefficient_scale(COARSE))
