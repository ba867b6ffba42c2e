"""Noisy counts: of records, and of the cells that records are in, for private ranges and for checks of a table.

The records whose cells are counted are not those of an engine: they pass by once, before there is a lattice to put
them on, or while they are put there.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import repeat
from typing import Any, cast

import numpy as np

from discreet.accounting.cell_counts import CHECKS, QUERY
from discreet.accounting.plan import AdaptivePlan, Plan
from discreet.bounds import Domain
from discreet.budget import Budget
from discreet.curator.engines.base import Engine
from discreet.curator.kernels.moments import add_counts
from discreet.curator.known_answers.moments import check_count_kernel
from discreet.curator.lattice.lattice import ROOT_TWO
from discreet.curator.session import Session
from discreet.errors import Unsupported
from discreet.typing import Floats, Integers

Blocks = Iterable[Integers]
Elsewhere = Callable[[], Integers]
"""Returns how many rows are in each cell, where rows are read elsewhere: called once, after the noise was drawn."""


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
    return float(session.release(release, unit, exact, exact + drawn)[0] * unit.step)


@dataclass(frozen=True)
class NoisyCounts:
    """How many records (or persons, each the mean of that person's rows) are in each cell, with noise.

    ``noise_std`` is the standard deviation of each count's noise, independent of the others': a public number.
    """

    counts: Floats
    noise_std: float


def noisy_counts(
    session: Session,
    cells: Blocks | Elsewhere,
    size: int,
    per_record: int,
    *,
    shares: Blocks | None = None,
    query: str = QUERY,
) -> NoisyCounts:
    """How many records are in each of ``size`` cells.

    Parameters
    ----------
    session
        An open plan with one ``query`` left.
    cells
        Blocks (rows, ``per_record``): the cells that each row is in, numbers below ``size``, anything else for none.
        They are read once, and only after the noise was drawn: pass an iterator that reads as it goes. Or a function
        that returns how many rows are in each cell, counted where the rows are.
    size
        The number of cells: public.
    per_record
        The most cells that a row can be in: public.
    shares
        For persons with several rows: next to each block, how many rows the person behind each row has in all.

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
    if size < 1 or per_record < 1:
        raise Unsupported("counts need at least one cell, and one cell per record")
    check_count_kernel()
    with session.lock:
        release = session.spend(query)
        use_l1 = session.uses_l1(release)
        exchanged = 2 if query == CHECKS and session.budget.neighbors.n_is_public else session.factor
        factor = ROOT_TWO if exchanged == 2 and not use_l1 else exchanged
        unit = session.unit(release, float(per_record) if use_l1 else math.sqrt(per_record), factor)
        one = unit.bound // per_record if use_l1 else math.isqrt(unit.bound**2 // per_record)
        if one == 0:
            raise Unsupported("a record is in too many cells for the lattice: count fewer columns at once")
        drawn = session.noise(release, unit, size)
        exact = _summed(cells, shares, size, per_record, one)
        released = session.release(release, unit, exact, exact + drawn, factor=factor)
    spread = 0.0 if unit.m is None else 2.0**unit.m * (math.sqrt(2.0) if use_l1 else 1.0)
    return NoisyCounts(released / one, spread / one)


def count_once(
    plan: Plan,
    budget: Budget,
    noise_multiplier: float,
    cells: Blocks | Elsewhere,
    size: int,
    per_record: int,
    *,
    n: int | None,
    shares: Blocks | None = None,
    query: str = QUERY,
) -> NoisyCounts:
    """``noisy_counts`` in a session of its own, which can answer nothing else.

    ``plan`` is that of the whole fit and ``noise_multiplier`` its calibrated one, so that the counts are priced with
    it; ``n`` is the number of records (persons), None where it is private. Charge the plan before.
    """
    if isinstance(plan, AdaptivePlan):
        raise Unsupported("private ranges are estimated within a fixed plan: declare the ranges, or use another solver")
    asked = Plan([release for release in plan.releases if release.query == query])
    domain = Domain(np.ones(1), 1.0, n, budget.neighbors)
    session = Session(cast(Engine, _NoEngine()), domain, asked, budget, noise_multiplier)
    return noisy_counts(session, cells, size, per_record, shares=shares, query=query)


class _NoEngine:
    """Stands where a session has its records: here they pass by instead."""

    records: Any = None
    n_columns = 1


def _summed(cells: Blocks | Elsewhere, shares: Blocks | None, size: int, per_record: int, one: int) -> Integers:
    """The exact sum of contributions."""
    if callable(cells):
        return one * cells()
    total, seen, rows = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64), 0
    for block, weights in _weighted(cells, shares, per_record, one):
        add_counts(block, weights, rows, seen, total)
        rows += len(block)
    return total


def _weighted(cells: Blocks, shares: Blocks | None, per_record: int, one: int) -> Iterator[tuple[Integers, Integers]]:
    """Each block with its rows' weights: ``one``, over the number of a person's rows; 0 where that makes no sense.

    Whatever is refused is refused for the arrays' types and shapes.
    """
    beside: Iterable[Integers | None] = repeat(None) if shares is None else shares
    for block, share in zip(cells, beside, strict=shares is not None):
        if block.dtype != np.int64 or block.ndim != 2 or block.shape[1] != per_record:
            raise Unsupported("blocks of cells are 64-bit integers, one row per record and per_record columns")
        if share is None:
            weights = np.full(len(block), one, dtype=np.int64)
        elif share.dtype != np.int64 or share.shape != (len(block),):
            raise Unsupported("shares are 64-bit integers, one for each row of a block")
        else:
            weights = np.where(share > 0, one // np.maximum(share, 1), 0)
        yield np.ascontiguousarray(block), weights
