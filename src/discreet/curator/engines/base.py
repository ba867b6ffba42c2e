"""What a curator asks of an engine."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from discreet.curator.certified.float_passes import Smooth
from discreet.curator.engines.coordinates import CoordinateProgram, CoordinateQuery, SquareQuery
from discreet.curator.lattice.lattice import COEFFICIENT_LIMIT, Grid, Weights

if TYPE_CHECKING:
    from discreet.curator.records.admission import Records


@dataclass(frozen=True)
class GradientQuery:
    """A sum of clipped gradients: at which weights, of which loss, on which lattice.

    ``bound`` is B; ``use_l1`` bounds contributions in the L1 norm (Laplace) instead of L2 (Gaussian);
    ``scale`` is ``Unit.coefficient_scale``; ``units`` are the sampled records or persons, None for all. With an
    ``anchor`` it is the change of the gradient from there to ``weights`` that is clipped and summed.
    """

    weights: Weights
    loss: Any
    bound: int
    scale: float
    use_l1: bool = False
    units: NDArray[np.int64] | None = None
    anchor: Weights | None = None

    def points(self, grid: Grid) -> tuple[NDArray[np.int32], NDArray[np.int32], float, float]:
        """Both points and their margin scales, where there is an anchor."""
        assert self.anchor is not None
        return (
            self.weights.integers,
            self.anchor.integers,
            self.weights.margin_scale(grid),
            self.anchor.margin_scale(grid),
        )


@dataclass(frozen=True)
class ValueQuery:
    """Sums of losses clipped to [0, bound] lattice steps, at each point; ``scale`` is steps per unit of loss."""

    points: tuple[Weights, ...]
    loss: Any
    bound: int
    scale: float

    def stacked(self, grid: Grid) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """The points as (candidates, outputs, p), and each one's margin scale."""
        return np.stack([w.integers for w in self.points]), np.array([w.margin_scale(grid) for w in self.points])


@dataclass(frozen=True)
class MomentQuery:
    """A sum of vectors clipped at ``bound`` lattice steps; ``scale`` is steps per unit of the grid (squared)."""

    bound: int
    scale: float
    use_l1: bool = False


def value_facts(records: "Records", query: ValueQuery) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Each row's steps per unit of loss and its limit: B // k for one of a person's k rows, 0 for a null row."""
    weights = row_weights(records.n_rows, records.shares)
    limits = query.bound if records.shares is None else query.bound // records.shares
    return weights * query.scale, np.where(records.norms > 0, limits, 0).astype(np.int64)


class Engine(Protocol):
    """Exact integer sums over private records."""

    grid: Grid
    records: "Records"

    @property
    def n_units(self) -> int:
        """Records, or persons where rows are grouped."""
        ...

    @property
    def is_grouped(self) -> bool:
        """Whether a person may have several rows."""
        ...

    def smooth(self) -> Smooth:
        """Floating-point passes over the same records, for the minimizer and the samplers."""
        ...

    def gradient_sum(self, query: GradientQuery) -> NDArray[np.int64]:
        """The sum of clipped gradients in lattice steps, one row an output."""
        ...

    def value_sums(self, query: ValueQuery) -> NDArray[np.int64]:
        """The sum of clipped losses at each point, in lattice steps."""
        ...

    def coordinate_sums(self, query: CoordinateQuery) -> NDArray[np.int64]:
        """Sums of single clipped gradient entries, one a column asked."""
        ...

    def coordinate_steps(self, program: CoordinateProgram) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The integer weights after a program of steps, and the sum of the iterates after each."""
        ...

    def square_sums(self, query: SquareQuery) -> NDArray[np.int64]:
        """Each column's sum of scaled squares."""
        ...

    def mean_sum(self, query: MomentQuery) -> NDArray[np.int64]:
        """The sum of clipped rows."""
        ...

    def diagonal_sum(self, query: MomentQuery) -> NDArray[np.int64]:
        """The sum of clipped squared rows."""
        ...

    def outer_sum(self, query: MomentQuery) -> NDArray[np.int64]:
        """The sum of clipped outer products: dense records only."""
        ...

    def within_sum(self, query: CoordinateQuery, threshold: float) -> NDArray[np.int64]:
        """The sum of +B where |slope x| <= threshold (in grid values), -B where not, 0 for null records."""
        ...


def coefficient_limits(reach: NDArray[np.int64], shares: NDArray[np.int64] | None, bound: int) -> NDArray[np.int32]:
    """The largest |c| for each row: (B // k) // r for one of a person's k rows of norm at most r.

    A person's contribution is the sum of at most k vectors of norm at most B // k: at most B. A null
    row (r = 0) gets 0.
    """
    per_row = bound if shares is None else bound // shares
    limits = np.where(reach > 0, per_row // np.maximum(reach, 1), 0)
    return np.minimum(limits, COEFFICIENT_LIMIT).astype(np.int32)


class Limits:
    """The rows' coefficient limits and weights, kept for the bound last asked (a clip rarely changes)."""

    def __init__(self, norms: NDArray[np.int64], sums: NDArray[np.int64], shares: NDArray[np.int64] | None) -> None:
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

    def __init__(self, targets: NDArray[np.float64], weights: NDArray[np.float64], limits: Limits) -> None:
        self._targets, self._weights, self._limits = targets, weights, limits
        self._kept: tuple[NDArray[np.int32], NDArray[np.float64]] | None = None

    def of(self, bound: int, use_l1: bool) -> NDArray[np.float64]:
        limits, kept = self._limits.of(bound, use_l1), self._kept
        if kept is None or kept[0] is not limits:
            kept = limits, np.column_stack([self._targets, self._weights, limits])
            self._kept = kept
        return kept[1]


def row_weights(n: int, shares: NDArray[np.int64] | None) -> NDArray[np.float64]:
    """A person's loss is the mean over that person's rows."""
    return np.ones(n) if shares is None else np.reciprocal(shares.astype(np.float64))


def rows_of_units(units: NDArray[np.int64], starts: NDArray[np.int64] | None) -> NDArray[np.int64]:
    """The rows that belong to the chosen records or persons."""
    if starts is None:
        return units
    counts = starts[units + 1] - starts[units]
    offsets = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    rows: NDArray[np.int64] = np.repeat(starts[units], counts) + offsets
    return rows
