"""How far rows, slopes and curvatures count in full where effects are estimated: chosen from noisy counts.

A limit adds noise in proportion to itself, and cuts what lies beyond it. With T(u) the number of records beyond u:

    cut gradients     their sum loses at most the integral of T over norms of gradients beyond B
    down-weighted     it loses at most (1 - weight) r slopes of rows beyond R (``lost_by_weights``)
    limits            argmin (limit noise)^2 + lost^2

so that the bias is below the noise, and both fall as records or budget grow: with much signal, nothing is cut. Counts
that do not stand out of their noise are taken for none; what they may hide is no more than noise.
"""

import math
from dataclasses import dataclass

import numpy as np

from discreet.curator import Edges, Shells
from discreet.typing import Floats

FINE, MOST_EDGES = 1.25, 48
"""Edges of shells grow by this factor, over four orders of magnitude."""
CLEAR, LEAST_ROWS = 3.5, 0.5
"""A count is believed from so many deviations of its noise on: dozens of shells are looked at."""
FALL, SLOWEST = 2, 2.0
"""Over how many shells the fall of a tail is taken, and its least power: a mean has to exist."""
MISFIT = 0.25
"""By how many deviations the mean outcome of far-out rows may be off the model's, if it is wrong."""


@dataclass(frozen=True)
class Influence:
    """What limits a record's influence, and what the limits change.

    ``reach`` is the length up to which rows count in full; ``score``, ``hessian`` and ``square`` are the largest norms
    of a record's weighted gradient, Hessian and squared score, ``slope`` is about the largest slope. ``far`` and
    ``cut`` are noisy numbers of rows beyond the first two, ``lost`` is what the sum of gradients may lose by weights.
    """

    reach: float
    score: float
    slope: float
    hessian: float
    square: float = 0.0
    far: float = 0.0
    cut: float = 0.0
    lost: float = 0.0


def grid(start: float, end: float) -> Floats:
    """Return edges from ``start`` on, up to the first that is not below ``end``."""
    count = math.ceil(math.log(max(end / start, 1.0)) / math.log(FINE)) if math.isfinite(end) else MOST_EDGES
    return np.asarray(start * FINE ** np.arange(min(count, MOST_EDGES) + 1))


def beyond(counts: Floats, noise: float, edges: Floats) -> Floats:
    """Return how many records are beyond each edge, never increasing.

    Where that does not stand out of noise any more, the tail is continued as it bent last, a parabola in logarithms (a
    lognormal law's tail is one), but never above what noise may hide.
    """
    tail = np.cumsum(counts[::-1])[::-1][1:]
    hidden = CLEAR * noise * np.sqrt(np.arange(len(tail), 0, -1))
    clear = np.flatnonzero(tail > np.maximum(hidden, LEAST_ROWS))
    last = int(clear[-1]) if len(clear) else -1
    hidden = np.where(hidden < LEAST_ROWS, 0.0, hidden)  # there is no part of a row
    believed = np.minimum(np.maximum(tail, 0.0), hidden)
    if last >= 0:
        believed[: last + 1] = np.maximum.accumulate(tail[last::-1])[::-1]
        falls = -np.diff(np.log(believed[: last + 1]))[-2 * FALL :] / math.log(FINE)
        fall = float(falls[-FALL:].mean()) if len(falls) else 0.0
        bend = max(0.0, fall - float(falls[:FALL].mean())) / FALL if len(falls) == 2 * FALL else 0.0
        later = np.arange(1, len(tail) - last)
        powers = np.cumsum(np.maximum(fall, SLOWEST) + bend * (later + (FALL - 1) / 2))
        believed[last + 1 :] = np.minimum(believed[last] * FINE**-powers, hidden[last + 1 :])
    return np.asarray(believed)


def excess(tail: Floats, edges: Floats) -> Floats:
    """Return what is beyond each edge, the integral of the tail from there on."""
    widths = np.append(np.diff(edges), edges[-1] - edges[-2] if len(edges) > 1 else 0.0)
    return np.asarray(np.cumsum((tail * widths)[::-1])[::-1])


def lost_by_weights(tail: Floats, edges: Floats, reach: float, slack: float, slope: float) -> float:
    """Return what rows beyond the reach may lose of the sum of gradients, a shell's rows at its outer edge.

    In deviations of slopes: all of m rows are off by ``MISFIT``, or each by up to ``slope`` in either direction.
    """
    rows, outer = tail - np.append(tail[1:], 0.0), FINE * edges
    part = np.minimum(1.0, reach / outer)
    less = np.where(edges >= reach * (1 - 1e-9), (1.0 - part * np.minimum(1.0, slack * part)) * outer, 0.0)
    return math.hypot(MISFIT * float(rows @ less), slope * math.sqrt(float(rows @ np.square(less))))


def edges_of(
    *, length: float, longest: float, deviation: float, steepest: float, bend: float, sharpest: float
) -> Edges:
    """Return shells from typical sizes to the largest that declared ranges and the loss allow.

    ``length`` and ``deviation`` are typical ones of rows and slopes, ``bend`` is a mean curvature.
    """
    length, deviation, bend = min(length, longest), min(deviation, steepest), min(bend, sharpest)
    return Edges(
        lengths=grid(length, longest),
        slopes=grid(deviation, steepest),
        hessians=grid(bend * length**2, sharpest * longest**2),
        scores=grid(deviation * length, steepest * longest),
    )


def chosen_reach(
    shells: Shells, edges: Edges, *, noise: float, deviation: float, widest: float, slack: float
) -> tuple[float, float]:
    """Return the reach and the slope with the least noise and bias together, the reach at most ``widest``."""
    far = beyond(shells.lengths, shells.noise, edges.lengths)
    cut = excess(beyond(shells.slopes, shells.noise, edges.slopes), edges.slopes)
    reaches = np.unique(np.minimum(edges.lengths, widest))
    choices: list[tuple[float, float, float]] = []
    for reach in reaches.tolist():
        steep = edges.slopes[np.argmin(np.square(reach * edges.slopes * noise) + np.square(cut))]
        lost = deviation * lost_by_weights(far, edges.lengths, reach, slack, steep / deviation)
        choices.append(((reach * steep * noise) ** 2 + lost**2, reach, float(steep)))
    return min(choices)[1:]


def chosen_norm(counts: Floats, norms: Floats, *, noise: float, hidden: float) -> float:
    """Return the limit on summands of such norms with the least noise and loss together, if all is in one direction.

    ``noise`` is that of a direction per unit of the limit, ``hidden`` that of the counts.
    """
    cut = excess(beyond(counts, hidden, norms), norms)
    return float(norms[np.argmin(np.square(norms * noise) + np.square(cut))])


def number_beyond(counts: Floats, edges: Floats, limit: float, noise: float) -> float:
    """Return how many records are beyond a limit; 0 where that does not stand out of noise."""
    first = int(np.searchsorted(edges, limit * (1 - 1e-9))) + 1
    shells = counts[first:]
    number = float(shells.sum())
    return number if number > max(CLEAR * noise * math.sqrt(len(shells)), LEAST_ROWS) else 0.0
