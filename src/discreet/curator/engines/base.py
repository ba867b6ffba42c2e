"""What a question needs of the records' layout: each row's weight, limit and share of its unit's bound."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

from discreet.curator.certified.float_passes import Smooth
from discreet.curator.engines.threads import Workers
from discreet.curator.lattice.lattice import COEFFICIENT_LIMIT
from discreet.curator.records.admission import Records, rows_of_units
from discreet.typing import Floats, Integers


class Engine(ABC):
    """Private records, and the threads that sum over them."""

    def __init__(self, records: Records, *, threads: int | None = None) -> None:
        self.records, self.grid = records, records.grid
        self.n_units = records.n_units
        self.workers = Workers(threads)
        self.weights = row_weights(records.n_rows, records.shares)
        self.facts = RowFacts(records.targets, self.weights, Limits(records.norms, records.sums, records.shares))

    @property
    def is_sparse(self) -> bool:
        """Whether records are compressed rows."""
        return self.records.sparse is not None

    @property
    def is_grouped(self) -> bool:
        """Whether a person may have several rows."""
        return self.records.shares is not None

    @abstractmethod
    def smooth(self) -> Smooth:
        """Return floating-point passes over the same records, always the same object: for minimizers and samplers."""

    def chosen_rows(self, units: Integers | None) -> Integers:
        """Return the rows of the sampled records or persons; all rows for None."""
        chosen = np.arange(self.n_units, dtype=np.int64) if units is None else units
        return rows_of_units(chosen, self.records.starts)


def coefficient_limits(reach: Integers, shares: Integers | None, bound: int) -> NDArray[np.int32]:
    """Return the largest |c| for each row: (B // k) // r for one of a person's k rows of norm at most r.

    A person's contribution is the sum of at most k vectors of norm at most B // k: at most B. A null
    row (r = 0) gets 0.
    """
    per_row = bound if shares is None else bound // shares
    limits = np.where(reach > 0, per_row // np.maximum(reach, 1), 0)
    return np.minimum(limits, COEFFICIENT_LIMIT).astype(np.int32)


class Limits:
    """The rows' coefficient limits, kept for the bound last asked (a clip rarely changes)."""

    def __init__(self, norms: Integers, sums: Integers, shares: Integers | None) -> None:
        self._reach = {False: norms, True: sums}
        self._shares = shares
        self._kept: tuple[tuple[int, bool], NDArray[np.int32]] | None = None

    def of(self, bound: int, use_l1: bool) -> NDArray[np.int32]:
        kept = self._kept  # read and replaced as one, so that threads cannot mix a key with another's limits
        if kept is None or kept[0] != (bound, use_l1):
            kept = (bound, use_l1), coefficient_limits(self._reach[use_l1], self._shares, bound)
            self._kept = kept
        return kept[1]


class RowFacts:
    """Each row's target, weight and coefficient limit side by side, kept for the bound last asked."""

    def __init__(self, targets: Floats, weights: Floats, limits: Limits) -> None:
        self._targets, self._weights, self._limits = targets, weights, limits
        self._kept: tuple[NDArray[np.int32], Floats] | None = None

    def of(self, bound: int, use_l1: bool) -> Floats:
        limits, kept = self._limits.of(bound, use_l1), self._kept
        if kept is None or kept[0] is not limits:
            kept = limits, np.column_stack([self._targets, self._weights, limits])
            self._kept = kept
        return kept[1]


def row_weights(n: int, shares: Integers | None) -> Floats:
    """Return each row's weight: a person's loss is the mean over that person's rows."""
    return np.ones(n) if shares is None else np.reciprocal(shares.astype(np.float64))


def unit_bounds(bound: int, records: Records) -> Integers:
    """Return each row's share of its unit's bound: B for a record, B // k for one of a person's k rows."""
    return np.full(records.n_rows, bound) if records.shares is None else bound // records.shares
