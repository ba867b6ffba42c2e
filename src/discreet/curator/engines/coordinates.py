"""Coordinate sums and coordinate programs: what a curator asks, and how each engine's arrays answer.

Margins live as exact integers in doubles, on the fixed weight grid of ``lattice.WEIGHT_SHIFT``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.curator.records.admission import Records

Doubles = NDArray[np.float64]


@dataclass(frozen=True)
class CoordinateQuery:
    """Sums of single gradient entries at integer weights ``w`` (grid units, as doubles).

    Column ``columns[c]`` is scaled by ``scales[c]`` (lattice steps per unit of slope times grid value) and
    each record's entry clipped at the integer ``bounds[c]``.
    """

    w: Doubles
    loss: Any
    columns: NDArray[np.int64]
    scales: Doubles
    bounds: NDArray[np.int64]
    margin_scale: float


@dataclass(frozen=True)
class CoordinateProgram:
    """A fused run of proximal steps on ``coordinates``, one noise each; per-coordinate arrays are full length.

    ``units`` and ``n`` turn a noisy lattice sum into a mean gradient; ``room`` bounds the integer weights' L1 norm.
    """

    w: Doubles
    loss: Any
    penalty: Any
    coordinates: NDArray[np.int64]
    noise: NDArray[np.int64]
    scales: Doubles
    bound: int
    units: Doubles
    n: float
    steps: Doubles
    margin_scale: float
    to_grid: float
    room: float


def person_bounds(bounds: NDArray[np.int64], shares: NDArray[np.int64] | None, *, dimensions: int) -> Doubles:
    """Each row's own bound B // k, one table for each bound, of the rows' dimensions; empty where rows are records."""
    if shares is None:
        return np.empty((0,) + (1,) * dimensions)
    return np.stack([(int(bound) // shares).astype(np.float64) for bound in bounds])


@dataclass(frozen=True)
class SquareQuery:
    """Sums of squared grid values times ``scales``, truncated: entry j at most ``caps[j]``, all at most ``bound``."""

    scales: Doubles
    caps: NDArray[np.int64]
    bound: int


def unit_bounds(bound: int, records: Records) -> NDArray[np.int64]:
    """Each row's share of its unit's bound: B for a record, B // k for one of a person's k rows."""
    return np.full(records.n_rows, bound) if records.shares is None else bound // records.shares


def row_shares(records: Records) -> NDArray[np.int64]:
    """How many rows a row's unit has."""
    return np.ones(records.n_rows, dtype=np.int64) if records.shares is None else records.shares
