"""Scores that are a mean of numbers between 0 and 1: of all rows, and of the rows of each declared group.

A row brings v in [0, 1] and becomes two cells in its group's place, 1 - v and v. At the true mean a of a group,
(1 - a) sum v - a sum (1 - v) = 0, so what was released of it is noise with the weights 1 - a and a.

Privacy
-------
Relation and sensitivity: a row's two cells are not negative and add up to 1, so their length is at most 1, as for one
count; they stand in the place of one group, so that groups cost nothing. Mechanism and event: those of
``noisy_sums``. Conditions: a row's number and its group follow from that row and from released or declared values.
"""

import math
from collections.abc import Sequence

import numpy as np

from discreet.curator.metrics.inverted_tests import kept
from discreet.curator.metrics.measurement import Measured, Part, half_width
from discreet.curator.metrics.noise_bounds import Noise
from discreet.curator.metrics.noisy_sums import ROUNDING, NoisySums, two_parts
from discreet.typing import Floats

SAMPLING = "at most that of a share"


def measure_shares(
    rows: Floats, names: Sequence[str], noisy: NoisySums, level: float, *, scale: float = 1.0, counted: bool = False
) -> Measured:
    """Return ``scale`` times the mean of the first column, also by the group that a second one names.

    ``counted`` says that the numbers are 0 or 1, which lose nothing on the lattice.
    """
    values = rows[:, 0]
    groups = rows[:, 1] if rows.shape[1] > 1 else np.zeros(len(rows))
    scored = np.isfinite(values) & np.isfinite(groups)
    place = np.where(scored, groups, -1.0).astype(np.int64)
    sums, noise = noisy.release(two_parts(np.where(scored, values, 0.0), place, max(1, len(names))))
    rounding = 0.0 if counted else ROUNDING
    found = [_mean(sums[at : at + 2], noise, level, rounding) for at in range(0, len(sums), 2)]
    whole = _mean(sums, noise, level, rounding) if len(found) > 1 else found[0]
    parts = [Part(name, *_scaled(part, scale)) for name, part in zip(names, found, strict=False)]
    return Measured(*_scaled(whole, scale), parts=tuple(parts))


def _mean(sums: Floats, noise: Noise, level: float, rounding: float) -> tuple[float, float, float, float]:
    """The mean of v over these groups, its interval, and the half width that sampling adds."""
    rest, whole = float(sums[0::2].sum()), float(sums[1::2].sum())
    lost = rounding * (abs(rest) + abs(whole) + 8 * noise.deviation)
    value, low, high = share(whole, rest, noise, 1 - level, count=len(sums) // 2, lost=lost)
    spread = 0.5 if math.isnan(value) else math.sqrt(value * (1 - value))
    return value, low, high, half_width(level) * spread / math.sqrt(max(rest + whole, 1.0))


def _scaled(found: tuple[float, float, float, float], scale: float) -> tuple[float, float, float, float]:
    value, low, high, sampling = (scale * number for number in found)
    return value, low, high, sampling


def share(
    whole: float, rest: float, noise: Noise, alpha: float, *, count: int = 1, lost: float = 0.0
) -> tuple[float, float, float]:
    """The share of ``whole``, and all shares that the noise in ``count`` cells of either kind does not refute."""
    if not whole + rest > 0:
        return math.nan, 0.0, 1.0
    value = min(max(whole / (whole + rest), 0.0), 1.0)

    def refuted(a: float) -> bool:
        return abs((1 - a) * whole - a * rest) > noise.combined([1 - a] * count + [a] * count, alpha) + lost

    if refuted(value) and noise.scale > 0:  # a count far below 0
        return value, 0.0, 1.0
    return value, kept(refuted, value, 0.0), kept(refuted, value, 1.0)
