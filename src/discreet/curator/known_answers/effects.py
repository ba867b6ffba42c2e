"""Known answers of what intervals for effects need: curvatures, scores and squared slopes at a point."""

import math
from dataclasses import replace

import numpy as np

from discreet.curator.engines import engine_for
from discreet.curator.known_answers import ROWS, SIZE, known_records, once_for_classes, require
from discreet.curator.lattice.lattice import COARSE, Weights
from discreet.losses.base import Loss, curvature, derivative

_BOUND, _REACH = 1 << 34, 20000.0
_TARGETS = np.array([1.0, -1.0, 1.0, 1.0, -1.0])
"""As two classes have them: a target of 0 has no logistic slope, and would show nothing of persons."""
_STARTS = np.array([0, 2, 3, 5])
_SHARES = np.array([2, 2, 1, 2, 2])
_EDGES = tuple(size * np.array([0.3, 0.7, 1.3]) for size in (_REACH, 0.5, 0.1 * _REACH**2, 0.5 * _REACH))


@once_for_classes
def check_effect_kernels(loss: Loss) -> None:
    """Raise ``StaleKernels`` unless sums for this loss agree with plain Python, for persons of several rows."""
    from discreet.curator.queries import effects
    from discreet.curator.queries.shells import Edges, ShellQuery

    point = Weights(np.array([[9, -5, 3, 2, 7]], dtype=np.int32), 5)
    records = replace(known_records(False, shares=_SHARES, starts=_STARTS), targets=_TARGETS)
    engine = engine_for(records, threads=1)
    rows, margin = [], point.margin_scale(COARSE)
    for row, target, share in zip(ROWS.tolist(), _TARGETS.tolist(), _SHARES.tolist(), strict=True):
        length = math.isqrt(sum(x * x for x in row) - 1) + 1 if any(row) else 0
        weight = 1 / share * min(1.0, _REACH / max(length, 1)) ** 2
        at = sum(x * w for x, w in zip(row, point.integers[0].tolist(), strict=True)) * margin
        slope, bend = derivative(loss, at, target), curvature(loss, at, target)
        rows.append((np.array(row, dtype=object), length, weight, share, slope, bend))
    found = effects.CurvatureQuery(point, loss, _BOUND, 40.0, _REACH).over(engine)
    by_hand = np.zeros((SIZE, SIZE), dtype=object)
    for x, length, weight, share, _, bend in rows:
        most = _BOUND // share // length**2 if length else 0
        by_hand += max(0, min(round(bend * (weight * 40.0)), most)) * np.outer(x, x)
    require(bool((found == by_hand).all()))
    scores = effects.ScoreQuery(point, loss, _BOUND, 2.0, _REACH).over(engine)
    require(bool(np.abs(scores - _scores_by_hand(rows)).max() <= 4 * math.isqrt(_BOUND)))
    slopes = effects.SlopeQuery(point, loss, _BOUND, 1000.0).over(engine)[0]
    parts = (min(round(s * s * (1 / k * 1000.0)), _BOUND // k) if r else 0 for _, r, _, k, s, _ in rows)
    require(int(slopes) == sum(parts))
    shells = ShellQuery(point, loss, 4, 1.0, _REACH, edges=Edges(*_EDGES)).over(engine)
    sizes = [(r, abs(s), k * x * b * r**2, k * x * abs(s) * r) for _, r, x, k, s, b in rows]
    for j, edges in enumerate(_EDGES):
        units = [4 // row[3] if row[1] else 0 for row in rows]
        cells = [(sum(edge < size[j] for edge in edges), unit) for size, unit in zip(sizes, units, strict=True)]
        counts = [sum(one for at, one in cells if at == cell) for cell in range(len(edges) + 1)]
        require(shells[j * 4 : j * 4 + 4].tolist() == counts)


def _scores_by_hand(rows: list[tuple]) -> np.ndarray:  # type: ignore[type-arg]
    """Return the sum of s s^T, each s within the root of the bound and toward zero, up to a step per entry."""
    total = np.zeros((SIZE, SIZE))
    for first, last in zip(_STARTS[:-1].tolist(), _STARTS[1:].tolist(), strict=True):
        s = sum((slope * (weight * 2.0)) * x.astype(np.float64) for x, _, weight, _, slope, _ in rows[first:last])
        length = float(np.linalg.norm(s))
        s = np.trunc(s * min(1.0, math.isqrt(_BOUND) / length)) if length > 0 else np.zeros(SIZE)
        total += np.outer(s, s)
    return total
