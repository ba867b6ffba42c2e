"""Floating-point passes over the private copy for the minimizer: gradients, Hessians, sums of losses.

In real units: integer features are divided by ``grid.one``, a power of two, so that the division is exact.
Weights and gradients have one row per output, (K, p). Nothing computed here is released as it stands.
"""

from __future__ import annotations  # nested functions would build their annotations on every call

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from discreet.curator.kernels import float_sums
from discreet.curator.records.admission import Records
from discreet.losses.base import Loss
from discreet.typing import Array, Floats, Integers

if TYPE_CHECKING:
    from discreet.curator.kernels.kernel import Workers


_CHUNK_VALUES = 1 << 20
"""Entries of the block whose square is one matrix product of a Hessian."""

_MOST_COLUMNS = 4096
_MOST_COLUMNS_SPARSE = 2000
_MOST_ENTRIES = 400  # a row, where Hessians of sparse records are formed
_MOST_STRIDE = 8


@dataclass(frozen=True)
class Slopes:
    """A pass: the losses' gradient (K, p), the sum of the norms of each record's part in it, and all margins."""

    gradient: Floats
    size: float
    margins: Floats


@dataclass(frozen=True)
class View:
    """The records as an objective sees them: shrunk to a norm, their slopes within limits.

    ``shrinks`` s_i, ``pulls`` weight_i s_i and ``curvature_weights`` weight_i s_i^2 belong to the margin, the gradient
    and the Hessian; ``norms`` are those after shrinking. The two sums are of weight_i times norm, and norm squared.
    """

    shrinks: Floats
    pulls: Floats
    curvature_weights: Floats
    limits: Floats
    norms: Floats
    sum_of_norms: float
    sum_of_squares: float


def view_of(norms: Floats, weights: Floats, clip: float, row_norm: float) -> View:
    """The view of records with these norms; quotients are made smaller by more than their rounding.

    So the promises (norms at most ``row_norm``, |slope| times norm at most ``clip``) are exact.
    """
    shrinks, limits = np.ones(norms.shape), np.full(norms.shape, np.inf)
    np.divide(row_norm * (1 - 2.0**-50), norms, out=shrinks, where=norms > row_norm)
    shorter = np.minimum(norms, row_norm)
    np.divide(clip * (1 - 2.0**-50), shorter, out=limits, where=shorter > 0)
    pulls, sizes = weights * shrinks, weights * shorter
    return View(
        shrinks, pulls, pulls * shrinks, limits, shorter, float(sizes.sum()), float((sizes * shorter).sum())
    )  # fmt: skip


class Smooth(Protocol):
    """What the minimizer and the samplers ask of an engine's records.

    ``depth`` bounds the roundings in a margin, ``terms`` those in a sum beyond what compensation leaves.
    ``can_form_hessian`` says whether a Hessian is affordable, ``stride`` which part of the records is a fair sample.
    """

    n_columns: int
    n_rows: int
    depth: int
    terms: int
    can_form_hessian: bool
    stride: int

    def view(self, clip: float = ..., row_norm: float = ...) -> View:
        """The records with gradients bounded by ``clip``, shrunk to ``row_norm``; kept for the next time."""
        ...

    def slopes(self, w: Floats, loss: Loss, view: View) -> Slopes:
        """The gradient of the sum of losses at ``w``."""
        ...

    def states(self, margins: Floats, loss: Loss, view: View) -> Floats:
        """What Hessians need of each record: its weighted curvature, or its class probabilities."""
        ...

    def product(self, states: Floats, v: Floats, view: View) -> Floats:
        """The Hessian of the sum of losses times ``v``."""
        ...

    def hessian(self, states: Floats, stride: int = ..., dtype: type[np.floating[Any]] = ...) -> Floats:
        """The Hessian of one output; from every ``stride``-th part of the records, scaled up."""
        ...

    def value(self, w: Floats, loss: Loss, row_norm: float = ...) -> float:
        """The sum of losses at ``w``, (p,) or (p, K), without clips; null records count nothing."""
        ...

    def value_at(self, margins: Floats, loss: Loss) -> float:
        """The same from margins that a pass gave."""
        ...

    def gradient(self, w: Floats, loss: Loss, *, row_norm: float = ...) -> Floats:
        """The gradient of ``value``, in the shape of ``w``; to rounding, which is not bounded here."""
        ...


def by_outputs(w: Floats) -> Floats:
    """(p,) or (p, K) with one row per output."""
    return np.ascontiguousarray(np.atleast_2d(w.T), dtype=np.float64)


class _Passes(ABC):
    """What dense and sparse share: facts of the rows, laid out as the kernels number them."""

    def __init__(self, records: Records, workers: Workers, targets: Floats, weights: Floats, norms: Any) -> None:
        self._workers, self._one = workers, records.grid.one
        self._targets, self._weights = targets, weights
        self._norms = norms / records.grid.one
        self._kept: tuple[tuple[float, float], View] | None = None
        self.n_columns, self.n_rows = records.n_columns, records.n_rows

    def view(self, clip: float = math.inf, row_norm: float = math.inf) -> View:
        cached = self._kept  # read and replaced as one, so that threads cannot mix a key with another's view
        if cached is None or cached[0] != (clip, row_norm):
            cached = (clip, row_norm), view_of(self._norms, self._weights, clip, row_norm)
            self._kept = cached
        return cached[1]

    @abstractmethod
    def slopes(self, w: Floats, loss: Loss, view: View) -> Slopes: ...

    @abstractmethod
    def margins(self, w: Floats, view: View) -> Floats:
        """All margins at ``w`` (K, p)."""

    def gradient(self, w: Floats, loss: Loss, *, row_norm: float = math.inf) -> Floats:
        gradient = self.slopes(by_outputs(w), loss, self.view(row_norm=row_norm)).gradient
        return gradient.T if w.ndim == 2 else gradient[0]

    def value(self, w: Floats, loss: Loss, row_norm: float = math.inf) -> float:
        return self.value_at(self.margins(by_outputs(w), self.view(row_norm=row_norm)), loss)

    def value_at(self, margins: Floats, loss: Loss) -> float:
        facts = (self._targets.ravel(), self._value_weights, loss)
        if margins.shape[1] == 1:
            return float(float_sums.sum_of_values(margins[:, 0], *facts))
        return float(float_sums.sum_of_values_of_many(margins, *facts))

    @cached_property
    def _value_weights(self) -> Floats:
        return np.where(self._norms > 0, self._weights, 0.0).ravel()

    def states(self, margins: Floats, loss: Loss, view: View) -> Floats:
        out, targets = np.empty(margins.shape), self._targets.ravel()
        weights, limits = view.curvature_weights.ravel(), view.limits.ravel()

        def part(first: int, last: int) -> Floats:
            cut = slice(first, last)
            if margins.shape[1] == 1:
                float_sums.curvatures(margins[cut, 0], targets[cut], weights[cut], limits[cut], loss, out[cut, 0])
            else:
                float_sums.probabilities(margins[cut], targets[cut], loss, out[cut])
            return np.zeros(1)

        self._workers.sum(part, len(margins), 16 * margins.size)
        return out

    def _unpacked(self, packed: Floats, margins: Floats) -> Slopes:
        gradient = packed[:-1].reshape(margins.shape[1], self.n_columns) / self._one
        return Slopes(gradient, float(packed[-1]), margins)


class DenseSmooth(_Passes):
    """Passes over the tiles of a dense engine; ``targets``, ``weights`` and ``norms`` are cut like them."""

    def __init__(
        self, records: Records, workers: Workers, tiles: Array, targets: Floats, weights: Floats, norms: object
    ) -> None:
        super().__init__(records, workers, targets, weights, norms)
        self._tiles = tiles
        at_once = min(self.n_columns, float_sums.COLUMNS)
        self.depth = -(-at_once // 4) - (-self.n_columns // float_sums.COLUMNS) + 8
        self.terms = min(float_sums.BLOCK, tiles.shape[2]) + workers.threads + 4
        self.can_form_hessian = self.n_columns <= _MOST_COLUMNS
        self.stride = max(1, min(_MOST_STRIDE, len(tiles) // 8, self.n_rows // (64 * self.n_columns)))

    def _margins_for(self, w: Floats) -> Floats:
        return np.empty((self._tiles.shape[0] * self._tiles.shape[2], len(w)))

    def _records_of(self, first: int, last: int) -> slice:
        """The records of some tiles."""
        return slice(first * self._tiles.shape[2], last * self._tiles.shape[2])

    def slopes(self, w: Floats, loss: Loss, view: View) -> Slopes:
        tiles, scaled, margins = self._tiles, w / self._one, self._margins_for(w)

        def part(first: int, last: int) -> Floats:
            out, cut = np.zeros(w.size + 1), slice(first, last)
            facts = (tiles[cut], self._targets[cut], view.shrinks[cut], view.pulls[cut])
            rest = (self._norms[cut], scaled, loss, margins[self._records_of(first, last)], out)
            if len(w) == 1:
                float_sums.slopes_over_tiles(*facts, view.limits[cut], *rest)
            else:
                float_sums.slopes_of_many_over_tiles(*facts, *rest)
            return out

        return self._unpacked(self._workers.sum(part, len(tiles), tiles.size * len(w)), margins)

    def margins(self, w: Floats, view: View) -> Floats:
        tiles, scaled, margins = self._tiles, w / self._one, self._margins_for(w)

        def part(first: int, last: int) -> Floats:
            rows = margins[self._records_of(first, last)]
            float_sums.margins_over_tiles(tiles[first:last], view.shrinks[first:last], scaled, rows)
            return np.zeros(1)

        self._workers.sum(part, len(tiles), tiles.size * len(w))
        return margins

    def product(self, states: Floats, v: Floats, view: View) -> Floats:
        tiles, scaled = self._tiles, v / self._one

        def part(first: int, last: int) -> Floats:
            out, rows = np.zeros(v.shape), states[self._records_of(first, last)]
            float_sums.product_over_tiles(tiles[first:last], view.curvature_weights[first:last], rows, scaled, out)
            return out

        return self._workers.sum(part, len(tiles), tiles.size * len(v)) / self._one

    def hessian(self, states: Floats, stride: int = 1, dtype: type[np.floating[Any]] = np.float64) -> Floats:
        chosen = np.arange(0, len(self._tiles), stride)
        rows, p = self._tiles.shape[2], self.n_columns
        if len(chosen) == 0:  # no records: under add_remove a data set like any other
            return np.zeros((p, p))
        roots = (np.sqrt(states[:, 0]) / self._one).reshape(-1, rows).astype(dtype)
        at_once = max(1, min(len(chosen), _CHUNK_VALUES // (rows * p)))
        block, total = np.empty((p, at_once * rows), dtype=dtype), np.zeros((p, p))
        for first in range(0, len(chosen), at_once):
            some = chosen[first : first + at_once]

            def fill(start: int, stop: int, some: Integers = some) -> Floats:
                for k in range(start, stop):
                    float_sums.scale_tile(self._tiles[some[k]], roots[some[k]], k * rows, block)
                return np.zeros(1)

            self._workers.sum(fill, len(some), len(some) * rows * p)
            filled = block[:, : len(some) * rows]
            total += filled @ filled.T
        return total * (len(self._tiles) / len(chosen))


class SparseSmooth(_Passes):
    """Passes over compressed rows."""

    def __init__(self, records: Records, workers: Workers, weights: Floats) -> None:
        assert records.sparse is not None
        super().__init__(records, workers, records.targets, weights, records.norms.astype(np.float64))
        self._csr = records.sparse
        counts = np.diff(records.sparse[0])
        self.depth = int(counts.max(initial=0)) + 3
        self.terms = workers.threads + 8
        # a Hessian costs a record's stored entries squared, a product with it only the entries
        pairs, entries = float(np.square(counts.astype(np.float64)).sum()), float(counts.sum())
        self.can_form_hessian = self.n_columns <= _MOST_COLUMNS_SPARSE and pairs <= _MOST_ENTRIES * entries
        self.stride = 1

    def slopes(self, w: Floats, loss: Loss, view: View) -> Slopes:
        margins, scaled = np.empty((self.n_rows, len(w))), w / self._one
        facts = (*self._csr, self._targets, view.shrinks, view.pulls, view.limits, self._norms)

        def part(first: int, last: int) -> Floats:
            out = np.zeros(w.size + 1)
            float_sums.slopes_over_sparse(*facts, first, last, scaled, loss, margins, out)
            return out

        return self._unpacked(self._workers.sum(part, self.n_rows, self._csr[2].size * len(w)), margins)

    def margins(self, w: Floats, view: View) -> Floats:
        margins = np.empty((self.n_rows, len(w)))
        float_sums.margins_over_sparse(*self._csr, view.shrinks, w / self._one, margins)
        return margins

    def product(self, states: Floats, v: Floats, view: View) -> Floats:
        scaled = v / self._one

        def part(first: int, last: int) -> Floats:
            out = np.zeros(v.shape)
            float_sums.product_over_sparse(*self._csr, view.curvature_weights, states, first, last, scaled, out)
            return out

        return self._workers.sum(part, self.n_rows, self._csr[2].size * len(v)) / self._one

    def hessian(self, states: Floats, stride: int = 1, dtype: type[np.floating[Any]] = np.float64) -> Floats:
        scaled, p = states / self._one**2, self.n_columns

        def part(first: int, last: int) -> Floats:
            out = np.zeros((p, p))
            float_sums.add_pairs(*self._csr, scaled, first, last, out)
            return out

        return self._workers.sum(part, self.n_rows, self._csr[2].size)
