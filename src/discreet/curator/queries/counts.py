"""Noisy counts: of records, and of the cells that records are in, for private ranges and for checks of a table.

The records whose cells are counted are not those of an engine: they pass by once, before there is a lattice to put
them on, or while they are put there.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from discreet.accounting.certificate import CHECKS, QUERY
from discreet.accounting.plan import AdaptivePlan, Plan
from discreet.accounting.pricing import PricedPlan
from discreet.bounds import Domain
from discreet.curator.engines import Engine, ExactSum, LocalEngine, unit_bounds
from discreet.curator.kernels.moments import add_counts
from discreet.curator.known_answers import check_count_kernel
from discreet.curator.lattice import ROOT_TWO
from discreet.curator.records.recoding import Placement
from discreet.curator.records.stream import RecordStream, rows_of_each
from discreet.curator.session import Session
from discreet.errors import PlanViolation, Unsupported
from discreet.typing import Floats, Integers


def noisy_count(session: Session) -> float:
    """Return the number of records (persons), plus noise: for ``add_remove``, where n is private.

    Privacy
    -------
    Sensitivity: every record adds B lattice steps, so one more or less moves the sum by B.
    Mechanism: sum + round(2^m N(0, 1)), or discrete Laplace of scale 2^m for pure budgets. Sum and noise are added in
    Python's integers, which hold any n.
    Event: ``Gaussian`` (``Laplace``) at 2^m / B >= the planned multiplier.
    Conditions: none. Under the other relations n is public and need not be estimated.
    """
    if session.budget.neighbors.n_is_public:
        raise Unsupported("n is public under this relation: use the declared n")
    release = session.spend("noisy_count", 1.0)
    unit = session.unit(release, 1.0)
    drawn = session.noise(release, unit, 1)
    exact = np.array([unit.bound * session.engine.n_units], dtype=object)
    count = session.release(release, unit, exact, exact + drawn)[0] * unit.step
    return session.remember_count(count)


@dataclass(frozen=True)
class WeightQuery(ExactSum):
    """The sum of weights, ``bound`` lattice steps for a weight of 1; a person's is the mean over that person's rows."""

    bound: int

    def over(self, engine: LocalEngine) -> Integers:
        """Return the exact sum, an array of one number."""
        records = engine.records
        entries = unit_bounds(self.bound, records) * (records.norms > 0)
        weights = np.ones(records.n_rows) if records.weights is None else records.weights
        return np.array([np.floor(weights * entries).astype(np.int64).sum()])


def noisy_weight(session: Session) -> float:
    """Return the sum of the records' weights, in units of the largest declared one, plus noise.

    Privacy
    -------
    Sensitivity: a record adds an integer from 0 to B, since its weight was clipped to at most 1; each of a person's k
    rows adds one from 0 to B // k; a null record adds 0. Two such numbers are at most B apart: B under every relation.
    Mechanism: sum + round(2^m N(0, 1)), or discrete Laplace of scale 2^m for pure budgets.
    Event: ``Gaussian`` (``Laplace``) at 2^m / B >= the planned multiplier.
    Conditions: none.
    """
    release = session.spend("noisy_weight", 1.0)
    unit = session.unit(release, 1.0, 1)
    drawn = session.noise(release, unit, 1)
    exact = session.admitted.total(WeightQuery(unit.bound))
    total = session.release(release, unit, exact, exact + drawn, factor=1)[0] * unit.step
    return session.remember_count(total)


@dataclass(frozen=True)
class NoisyCounts:
    """How many records (or persons, each the mean of that person's rows) are in each cell, with noise.

    ``noise_std`` is the standard deviation of each count's noise, independent of the others': a public number.
    """

    counts: Floats
    noise_std: float


class CellCounts:
    """How many records are in each of ``size`` cells, with noise, counted while the records pass by.

    It is made before a row is read: the answer is taken off the plan and the noise is drawn at once. Blocks of cells
    are then added as rows are read, and ``released`` gives the noisy counts.

    ``per_record`` is the most cells that a row can be in, ``query`` that of ranges or of checks.

    Privacy
    -------
    Sensitivity: a row contributes b times the 0/1 vector of its cells. It has at most m = ``per_record`` ones, however
    often a cell is named and whatever else stands there, so its norm is at most b sqrt(m); with b = isqrt(B^2 // m),
    b^2 m <= B^2. For pure budgets the L1 norm b m, b = B // m. Each of a person's k rows counts b // k, so that the
    sum of the k vectors is no longer than one of b. So B under ``add_remove``; under ``replace_one`` no entry is
    negative, so ||q - q'||^2 <= ||q||^2 + ||q'||^2 <= 2 B^2: sqrt(2) B (2 B in L1). Under ``zero_out`` a record is
    exchanged for the null record. For ranges, missing values and null records are in no cell and contribute 0: B.
    Checks count null records, too, so that blanking one moves the counts as any exchange does: sqrt(2) B (2 B in L1).
    Mechanism: sum + round(2^m N(0, I)), or discrete Laplace of scale 2^m. The sum is exact; beyond the n for which the
    lattice was made it wraps around, for both neighbors alike.
    Event: ``Gaussian`` (``Laplace``) at 2^m / sensitivity >= the planned multiplier.
    Conditions: ``size`` and ``per_record`` are public; a row's cells depend on that row and on public or released facts
    alone (those of checks on estimated ranges, too); a row's share depends on that person's rows alone.
    """

    def __init__(self, session: Session, size: int, per_record: int, *, query: str = QUERY) -> None:
        if size < 1 or per_record < 1:
            raise Unsupported("counts need at least one cell, and one cell per record")
        check_count_kernel()
        with session.lock:
            release = session.spend(query)
            use_l1 = session.uses_l1(release)
            exchanged = 2 if query == CHECKS and session.budget.neighbors.n_is_public else session.factor
            factor = ROOT_TWO if exchanged == 2 and not use_l1 else exchanged
            unit = session.unit(release, float(per_record) if use_l1 else math.sqrt(per_record), factor)
            weight = unit.bound // per_record if use_l1 else math.isqrt(unit.bound**2 // per_record)
            if weight == 0:
                raise Unsupported("a record is in too many cells for the lattice: count fewer columns at once")
            self._noise = session.noise(release, unit, size)
        self._session, self._release, self._unit, self._factor = session, release, unit, factor
        self._weight, self._per_record = weight, per_record
        self._is_open = True
        self._exact, self._seen, self._rows = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64), 0

    def add(self, cells: Integers, shares: Integers | None = None) -> None:
        """Add a block (rows, ``per_record``): the cells that each row is in, below ``size``, anything else for none.

        ``shares`` are for persons with several rows: how many rows the person behind each row has in all. A row's
        weight is 0 where that makes no sense. Whatever is refused is refused for the arrays' types and shapes.
        """
        self._check_open()
        if cells.dtype != np.int64 or cells.ndim != 2 or cells.shape[1] != self._per_record:
            raise Unsupported("blocks of cells are 64-bit integers, one row per record and per_record columns")
        if shares is None:
            weights = np.full(len(cells), self._weight, dtype=np.int64)
        elif shares.dtype != np.int64 or shares.shape != (len(cells),):
            raise Unsupported("shares are 64-bit integers, one for each row of a block")
        else:
            weights = np.where(shares > 0, self._weight // np.maximum(shares, 1), 0)
        add_counts(np.ascontiguousarray(cells), weights, self._rows, self._seen, self._exact)
        self._rows += len(cells)

    def add_counts(self, counts: Mapping[int, Integers]) -> None:
        """Add how many rows are in each cell, counted where the rows are, by how many rows their persons have."""
        self._check_open()
        for share, rows in counts.items():
            self._exact += self._weight // share * rows

    def released(self) -> NoisyCounts:
        """Return the noisy counts of what was added: once, and nothing is added afterwards."""
        self._check_open()
        self._is_open = False
        session, unit, exact = self._session, self._unit, self._exact
        with session.lock:
            noisy = session.release(self._release, unit, exact, exact + self._noise, factor=self._factor)
        deviation = 0.0 if unit.m is None else 2.0**unit.m * (math.sqrt(2.0) if session.uses_l1(self._release) else 1.0)
        return NoisyCounts(noisy / self._weight, deviation / self._weight)

    def _check_open(self) -> None:
        """Refuse a second answer, which would tell the difference of two sums without noise."""
        if not self._is_open:
            raise PlanViolation("these counts have been released")


class _Unread(Engine):
    """Stands where a session has its records: here they pass by instead."""

    n_columns = 1

    def total(self, question: ExactSum) -> Integers:
        raise PlanViolation("records that pass by are counted, and asked nothing else")

    def recoded(self, placement: Placement, *, once: bool = False) -> Engine:
        raise PlanViolation("records that pass by are not recoded")

    def whole(self) -> LocalEngine:
        raise PlanViolation("records that pass by are not at hand")


def planned_counts(priced: PricedPlan, n: int | None, size: int, per_record: int, *, query: str = QUERY) -> CellCounts:
    """Return ``CellCounts`` in a session of their own, which can answer nothing else.

    The plan is that of the whole fit, so that the counts are priced with it; ``n`` is the number of records (persons),
    None where it is private. Charge the plan before.
    """
    plan, budget = priced.plan, priced.budget
    if isinstance(plan, AdaptivePlan):
        raise Unsupported("private ranges are estimated within a fixed plan: declare the ranges, or use another solver")
    counted = Plan([release for release in plan.releases if release.query == query])
    domain = Domain(np.ones(1), 1.0, n, budget.neighbors)
    session = Session(_Unread(), domain, counted, budget, priced.noise_multiplier)
    return CellCounts(session, size, per_record, query=query)


def with_ranges(stream: RecordStream, priced: PricedPlan, n: int | None) -> RecordStream:
    """Return the stream with what it asks for before its blocks can be made: ranges from noisy counts of cells."""
    estimates = stream.estimates
    if estimates is None:
        return stream
    counts = planned_counts(priced, n, estimates.size, estimates.per_row)
    if stream.elsewhere is not None:
        counts.add_counts(stream.elsewhere.cells())
    else:
        shares, rows = rows_of_each(stream.persons()) if stream.has_persons else None, 0
        for cells in estimates.cells():
            counts.add(cells, None if shares is None else shares[rows : rows + len(cells)])
            rows += len(cells)
    noisy = counts.released()
    return estimates.settled(noisy.counts, noisy.noise_std, n)


def checks_of(stream: RecordStream, priced: PricedPlan, n: int | None) -> CellCounts | None:
    """Return counts of cells that do not hold what was declared; an adaptive plan has no room for them."""
    if stream.checks is None or isinstance(priced.plan, AdaptivePlan):
        return None
    return planned_counts(priced, n, stream.checks.size, stream.checks.per_row, query=CHECKS)
