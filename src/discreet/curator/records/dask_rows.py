"""Dask arrays and frames of features and targets as a stream: public facts here, rows on the cluster's workers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.curator.clusters import client_for_collections
from discreet.curator.records import containers
from discreet.curator.records.part_rows import ArrayRows
from discreet.curator.records.stream import Block, RecordStream
from discreet.errors import Unsupported
from discreet.typing import Integers

if TYPE_CHECKING:
    from discreet.curator.engines.dask_parts import DaskParts

NO_PERSONS = (
    "a person's rows may be in several parts of a cluster: fit on one machine, where discreet.scale.limited keeps rows "
    "beyond memory in scratch files"
)
_UNLIKE = "y must be a Dask column that is partitioned as X is, or the name of a column of X"


class DaskRows(RecordStream):
    """Dask arrays or frames of features and targets; ``y`` may name a column of the frame."""

    def __init__(self, X: Any, y: Any, classes: Sequence[Any] | None) -> None:
        sample, pieces, sizes = _blocks(X)
        self.is_named, target = hasattr(sample, "columns"), None
        if self.is_named and isinstance(y, str):
            target = y
            if list(sample.columns).count(y) != 1:
                raise Unsupported(f"X has no column {y!r}, or has it twice")
            self.target_kinds = containers.target_kinds(sample[y])
            sample = sample.drop(columns=[y])
        else:
            self.target_kinds = [containers.kind_of(y.dtype)] if hasattr(y, "dtype") else []
            pieces = [(*piece, other) for piece, other in zip(pieces, _targets(X, y, len(pieces)), strict=True)]
        self.sample = containers.two_dimensional(sample)
        n_columns = int(self.sample.shape[1])
        self.columns = [str(name) for name in sample.columns] if self.is_named else [""] * n_columns
        self._pieces, self._sizes, self._rows = pieces, sizes, ArrayRows(n_columns, classes, target)

    @cached_property
    def elsewhere(self) -> DaskParts:  # type: ignore[override]
        """The rows on the cluster."""
        from discreet.curator.engines.dask_parts import DaskParts

        return DaskParts(client_for_collections(), self._rows, self._pieces, self._sizes)

    @property
    def shape(self) -> tuple[int, int]:  # type: ignore[override]
        """Rows, which workers count if nothing declares them, and columns."""
        return self.elsewhere.count(), len(self.columns)

    def blocks(self) -> Iterator[Block]:
        """Refuse: rows do not come here."""
        raise Unsupported(containers.ELSEWHERE)

    def persons(self) -> Integers:
        """Refuse: there are none."""
        raise Unsupported(NO_PERSONS)


def _blocks(X: Any) -> tuple[Any, list[tuple[Any, ...]], list[int] | None]:
    """Return an empty table of the same types, one delayed block per part, and the parts' sizes where declared."""
    if not hasattr(X, "chunks"):
        return empty_like(X), [(part,) for part in _parts_of(X)], None
    from dask.array.utils import meta_from_array

    if X.ndim != 2 or math.isnan(X.shape[1]):
        raise Unsupported("X must have two dimensions, one row per record, and a known number of columns")
    if not isinstance(meta_from_array(X), np.ndarray):
        raise Unsupported("blocks of a Dask array must be dense: X.map_blocks(lambda block: block.toarray())")
    whole = X if X.numblocks[1] == 1 else X.rechunk({1: -1})
    sizes = None if any(map(math.isnan, whole.chunks[0])) else [int(size) for size in whole.chunks[0]]
    return np.empty((0, X.shape[1]), dtype=X.dtype), [(part,) for part in whole.to_delayed().ravel()], sizes


def _parts_of(frame: Any) -> list[Any]:
    """Return a frame's partitions as they are: Dask's optimizer puts those of few columns together."""
    return list(frame.to_delayed(optimize_graph=False))


def _targets(X: Any, y: Any, parts: int) -> list[Any]:
    """Return one delayed block of targets per part."""
    if not containers.is_dask(y):
        raise Unsupported(_UNLIKE)
    if hasattr(y, "chunks"):
        if y.ndim == 2 and y.numblocks[1] > 1:
            raise Unsupported("y must be one column of targets: several outputs are not supported")
        known = hasattr(X, "chunks") and not any(map(math.isnan, (*X.chunks[0], *y.chunks[0])))
        if known and sum(X.chunks[0]) != sum(y.chunks[0]):
            raise Unsupported("y must hold one target for each row of X")
        found: list[Any] = (y.rechunk({0: X.chunks[0]}) if known else y).to_delayed().ravel().tolist()
    else:
        found = _parts_of(y)
    if len(found) != parts:
        raise Unsupported(_UNLIKE)
    return found


def empty_like(frame: Any) -> Any:
    """Return a pandas frame of the same columns and types as a Dask frame, without rows."""
    from dask.dataframe.dispatch import make_meta

    return make_meta(frame).iloc[:0]
