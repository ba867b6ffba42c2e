"""What a curator asks of its records, wherever they are, and what a question needs of those that are at hand."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

from discreet.curator.engines.threads import Workers
from discreet.curator.lattice.lattice import COEFFICIENT_LIMIT, Grid
from discreet.curator.records.admission import Records, rows_of_units
from discreet.typing import Floats, Integers

if TYPE_CHECKING:
    from discreet.curator.certified.float_passes import Smooth
    from discreet.curator.records.recoding import Placement


class ExactSum(ABC):
    """A question whose exact answer is a sum of integers over records.

    Such a sum is the sum of its parts: however records are cut into parts, and in whatever order their answers come,
    the total is the same in every bit. A question holds public and released values only, and can be sent anywhere.
    """

    @abstractmethod
    def over(self, engine: LocalEngine) -> Integers:
        """Return the exact sum over the records of one engine."""

    def of_units(self, first: int, last: int) -> Self:
        """Return the question to ask of units ``first`` to ``last - 1`` alone, which are numbered from 0 there."""
        return self

    def with_units_at(self, places: Integers) -> Self:
        """Return the question with unit k at ``places[k]``."""
        return self

    @property
    def is_sampled(self) -> bool:
        """Whether it is asked of some units only."""
        return False


class Engine(ABC):
    """Private records, at hand or in parts elsewhere, and exact sums over all of them.

    ``n_units`` counts records or persons. It is as private as n: a session, a sample and a noisy count use it.
    """

    grid: Grid
    n_columns: int
    n_units: int
    is_sparse: bool
    is_grouped: bool
    """Whether a person may have several rows."""
    runs_programs: bool = True
    """Whether ``whole`` gives the records at hand, so that many steps can run in one compiled call."""

    @abstractmethod
    def total(self, question: ExactSum) -> Integers:
        """Return the exact sum over all records, each counted once."""

    @abstractmethod
    def recoded(self, placement: Placement, *, once: bool = False) -> Engine:
        """Return an engine of the same records through a map; ``once`` says that one question will be asked of it."""

    @abstractmethod
    def whole(self) -> LocalEngine:
        """Return all records as one engine at hand: for minimizers, samplers and fused programs of steps."""


class LocalEngine(Engine):
    """Private records at hand, and the threads that sum over them."""

    def __init__(self, records: Records, *, threads: int | None = None) -> None:
        self.records, self.grid = records, records.grid
        self.n_units, self.n_columns = records.n_units, records.n_columns
        self.is_sparse, self.is_grouped = records.sparse is not None, records.shares is not None
        self.workers = Workers(threads)
        self.parts = parts_of_units(records.n_rows, records.shares)
        self.weights = self.parts if records.weights is None else self.parts * records.weights
        self._within: tuple[tuple[float, float], Floats] | None = None
        self.facts = RowFacts(records.targets, self.weights, Limits(records.norms, records.sums, records.shares))

    def total(self, question: ExactSum) -> Integers:
        return question.over(self)

    def weights_within(self, reach: float, slack: float) -> Floats:
        """Return each row's weight times min(1, reach / r) min(1, slack reach / r), r its norm; kept until others are.

        A row counts in full up to ``reach``, in units of the grid.
        """
        last = self._within  # read and replaced as one
        if last is None or last[0] != (reach, slack):
            part = np.minimum(1.0, reach / np.maximum(self.records.norms, 1).astype(np.float64))
            last = (reach, slack), np.asarray(self.weights * part * np.minimum(1.0, slack * part))
            self._within = last
        return last[1]

    def recoded(self, placement: Placement, *, once: bool = False) -> Engine:
        from discreet.curator.engines.local import PartedEngine

        if once:
            return PartedEngine(self.records, threads=self.workers.threads, placement=placement)
        return type(self)(placement.of(self.records), threads=self.workers.threads)

    def whole(self) -> LocalEngine:
        return self

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
    """The rows' coefficient limits, kept for the bound last asked (a clip rarely changes); ``cut`` lays them out."""

    def __init__(
        self,
        norms: Integers,
        sums: Integers,
        shares: Integers | None,
        cut: Callable[[NDArray[np.int32]], NDArray[np.int32]] = lambda rows: rows,
    ) -> None:
        self._reach = {False: norms, True: sums}
        self._shares, self._cut = shares, cut
        self._last: tuple[tuple[int, bool], NDArray[np.int32]] | None = None

    def of(self, bound: int, use_l1: bool) -> NDArray[np.int32]:
        last = self._last  # read and replaced as one, so that threads cannot mix a key with another's limits
        if last is None or last[0] != (bound, use_l1):
            last = (bound, use_l1), self._cut(coefficient_limits(self._reach[use_l1], self._shares, bound))
            self._last = last
        return last[1]


class RowFacts:
    """Each row's target, weight and coefficient limit side by side, kept for the bound last asked."""

    def __init__(self, targets: Floats, weights: Floats, limits: Limits) -> None:
        self._targets, self._weights, self._limits = targets, weights, limits
        self._last: tuple[NDArray[np.int32], Floats] | None = None

    def of(self, bound: int, use_l1: bool) -> Floats:
        limits, last = self._limits.of(bound, use_l1), self._last
        if last is None or last[0] is not limits:
            last = limits, np.column_stack([self._targets, self._weights, limits])
            self._last = last
        return last[1]


def parts_of_units(n: int, shares: Integers | None) -> Floats:
    """Return each row's part of its unit: a person's loss is the mean over that person's rows."""
    return np.ones(n) if shares is None else np.reciprocal(shares.astype(np.float64))


def unit_bounds(bound: int, records: Records) -> Integers:
    """Return each row's share of its unit's bound: B for a record, B // k for one of a person's k rows."""
    return np.full(records.n_rows, bound) if records.shares is None else bound // records.shares
