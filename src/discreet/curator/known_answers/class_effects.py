"""Known answers of effects' sums for several outputs: weighted gradients, couplings, scores and squared slopes."""

import math

import numpy as np

from discreet.curator.engines import engine_for
from discreet.curator.engines.base import LocalEngine
from discreet.curator.known_answers import ROWS, SIZE, known_records, once_for_classes, require
from discreet.curator.lattice.lattice import COARSE, Weights
from discreet.losses.base import Loss, derivatives
from discreet.typing import Floats

_BOUND, _REACH, _SCALE = 1 << 34, 20000.0, 2.0**19
_STARTS, _SHARES = np.array([0, 2, 3, 5]), np.array([2, 2, 1, 2, 2])
_EDGES = tuple(size * np.array([0.3, 0.7, 1.3]) for size in (_REACH, 0.5, 0.1 * _REACH**2, 0.5 * _REACH))


@once_for_classes
def check_class_kernels(loss: Loss) -> None:
    """Raise ``StaleKernels`` unless sums for this loss agree with plain Python, for persons of several rows."""
    from discreet.curator.queries import effects

    point = Weights(np.outer(1 - 2 * (np.arange(loss.n_outputs) % 2), [9, -5, 3, 2, 7]).astype(np.int32), 5)
    engine = engine_for(known_records(False, shares=_SHARES, starts=_STARTS), threads=1)
    found = effects.WeightedGradientQuery(point, loss, _BOUND, _SCALE, _REACH).over(engine)
    by_hand = np.zeros((loss.n_outputs, SIZE))
    for x, length, weight, share, slopes in _rows(loss, point, engine.records.targets):
        by_hand += np.outer(_clipped(slopes * (weight * _SCALE), _BOUND // share // max(length, 1)), x)
    require(bool((np.abs(found - by_hand) <= 2 * np.abs(ROWS).sum(axis=0)).all()))
    if loss.softmax_link:
        _check_curvature(loss, point, engine)
        _check_scores(loss, point, engine)


def _check_curvature(loss: Loss, point: Weights, engine: LocalEngine) -> None:
    from discreet.curator.queries import effects

    found = effects.CurvatureQuery(point, loss, _BOUND, 400.0, _REACH).over(engine)
    by_hand, off = np.zeros(found.shape), np.zeros((SIZE, SIZE))
    for x, length, weight, share, slopes in _rows(loss, point, np.full(len(ROWS), -1.0)):  # probabilities alone
        pairs = np.array([slopes[k] * slopes[o] for k in range(len(slopes)) for o in range(k + 1, len(slopes))])
        most = _BOUND // share // max(length, 1) ** 2
        by_hand += np.multiply.outer(_clipped(pairs * (weight * 400.0), most), np.outer(x, x))
        off += np.abs(np.outer(x, x))
    require(bool((np.abs(found - by_hand) <= 2 * off).all()))


def _check_scores(loss: Loss, point: Weights, engine: LocalEngine) -> None:
    from discreet.curator.queries import effects
    from discreet.curator.queries.shells import Edges, ShellQuery

    rows = _rows(loss, point, engine.records.targets)
    found = effects.ScoreQuery(point, loss, _BOUND, 2.0, _REACH).over(engine)
    by_hand = np.zeros(found.shape)
    for first, last in zip(_STARTS[:-1].tolist(), _STARTS[1:].tolist(), strict=True):
        s = sum(np.outer(slopes * (weight * 2.0), x).ravel() for x, _, weight, _, slopes in rows[first:last])
        s = _clipped(np.asarray(s), math.isqrt(_BOUND))
        by_hand += np.outer(s, s)
    require(bool(np.abs(found - by_hand).max() <= 4 * math.isqrt(_BOUND)))
    total = effects.SlopeQuery(point, loss, _BOUND, 1000.0).over(engine)[0]
    parts = (min(float(s @ s) * (1 / k * 1000.0), _BOUND // k) if r else 0.0 for _, r, _, k, s in rows)
    require(abs(int(total) - sum(parts)) <= len(rows))
    shells = np.split(ShellQuery(point, loss, 4, 1.0, _REACH, edges=Edges(*_EDGES)).over(engine), len(_EDGES))
    pairs = _rows(loss, point, np.full(len(ROWS), -1.0))  # probabilities alone
    for j, cells in enumerate(shells):
        counts = np.zeros(len(_EDGES[j]) + 1, dtype=np.int64)
        for (_, r, weight, k, slopes), (*_, chances) in zip(rows, pairs, strict=True):
            products = [chances[a] * chances[b] for a in range(len(chances)) for b in range(a + 1, len(chances))]
            slope, bend = float(np.linalg.norm(slopes)), float(np.linalg.norm(products))
            size = (r, slope, k * weight * bend * r**2, k * weight * slope * r)[j]
            counts[np.searchsorted(_EDGES[j], size)] += 4 // k if r else 0
        require(bool((cells == counts).all()))


def _rows(loss: Loss, point: Weights, targets: Floats) -> list[tuple[Floats, int, float, int, Floats]]:
    """Return each row with its length, weight, share and slopes at the point."""
    made = []
    for row, target, share in zip(ROWS.tolist(), targets.tolist(), _SHARES.tolist(), strict=True):
        length = math.isqrt(sum(x * x for x in row) - 1) + 1 if any(row) else 0
        weight = 1 / share * min(1.0, _REACH / max(length, 1)) ** 2
        margins = np.array(row, dtype=np.float64) @ point.integers.T.astype(np.float64) * point.margin_scale(COARSE)
        slopes = np.empty(loss.n_outputs)
        derivatives(loss, margins, target, slopes)
        made.append((np.array(row, dtype=np.float64), length, weight, share, slopes))
    return made


def _clipped(values: Floats, limit: int) -> Floats:
    """Return values of a norm of at most ``limit``, toward zero."""
    length = float(np.linalg.norm(values))
    return np.trunc(values * min(1.0, limit / length)) if length > 0 else values
