"""A table as the curator reads it, block by block: its private ranges, and the memory and disk that a fit takes.

**Private ranges** are quantiles from noisy counts on a dyadic tree, in one release.

``within``, the wide public limits of a column, is cut into 2^depth leaves. Halves, quarters and so on down to the
leaves are the nodes of a tree; each is counted, with noise. The tree that fits all noisy counts best (least squares,
Hay et al. 2010) knows the number of records beyond any edge with the noise of one to two nodes, however many leaves lie
beyond.

Why best: with z the estimate of a node from what is counted at and below it, the differences z_right - z_left and the
root are uncorrelated, so a number of records beyond an edge is a sum of independent noises with known weights
(``tail_noise``). Counts are not forced to be positive: that would make many empty leaves look like some records.

**Files** are read in blocks, and their encoded rows are kept in memory as long as it holds them, else in scratch files.
A process takes about 350 MB before it has a row; the rest is counted in ``records/storage.py``.

*Privacy.* The estimate is a function of declared facts, of the number of features, and of the number of rows only where
neighbors agree on it: it is not made where persons have several rows, nor under ``add_remove`` unless ``rows`` is
declared.

Which cells do not hold what the schema declares is counted with noise while the table is read (``TableChecks``).
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from discreet.accounting.certificate import CHECKS, ESTIMATED_RANGES, NULL, QUERY
from discreet.accounting.plan import Plan, Release
from discreet.budget import Neighbors
from discreet.curator.records.admission import scaling_for
from discreet.curator.records.storage import (
    ON_DISK,
    available_memory,
    bytes_in_memory,
    bytes_of_rows,
    bytes_on_disk,
    current_limits,
    free_disk,
    storage_for,
)
from discreet.curator.records.stream import Block, Elsewhere, RecordStream
from discreet.curator.tables import cells
from discreet.curator.tables.cells import NOT_ASKED, States
from discreet.curator.tables.encode import Layout, mark_rows, number_cells
from discreet.curator.tables.frames import BATCH_ROWS, TWICE, Batch, Source
from discreet.errors import MissingBounds, Unsupported
from discreet.json_schemas import Json
from discreet.schema.columns import Number, are_apart
from discreet.schema.schema import Schema, check_types
from discreet.typing import Booleans, Floats, Integers

Range = tuple[float, float]

DEPTH = 12
"""4096 leaves: two levels more cost a tenth more noise and make leaves four times finer."""
LEVEL = 1000.0
"""Limits that reach further than this from 0 (from their nearer end, if 0 is outside) are cut on a log-like scale."""
QUANTILES = (0.005, 0.995)
RANGE_SHARE = 0.1
"""Of the budget (of mu^2): a range ten times too wide costs a model far more than a twentieth more noise."""
SURE, LEAST_SURE = 3.0, 2.0
"""Noises that a number of records beyond an edge must stand out to count as records; fewer where records are few."""
SAFE = 2.0
"""Noises by which a quantile is moved outward where there is enough of a tail to see it."""
HOPELESS = 0.25
"""Where a tail must hold this part of all records to be seen, nothing is known of the range."""


@dataclass(frozen=True)
class Tree:
    """The public limits of a column, cut into cells.

    Leaves are equally wide where the limits lie within 1000 of 0 (ages, percentages) or, if 0 is outside, of their
    nearer end (years). Else they are equally wide in asinh(x - origin), the origin being that same point: like a
    logarithm on either side, and linear between -1 and 1. That is a function of the limits alone.

    There are 2^``depth`` leaves between the limits ``low`` and ``high``.
    """

    low: float
    high: float
    depth: int = DEPTH

    def __post_init__(self) -> None:
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high):
            raise MissingBounds("a private range needs finite limits: within = [low, high] with low below high")
        if isinstance(self.depth, bool) or int(self.depth) != self.depth or not 1 <= self.depth <= 20:
            raise Unsupported("a tree's depth is a whole number from 1 to 20")

    @property
    def size(self) -> int:
        """The number of nodes that are counted: all but the root, level by level."""
        return (2 << self.depth) - 2

    @cached_property
    def edges(self) -> Floats:
        """The leaves' 2^depth + 1 ends."""
        origin = min(max(0.0, self.low), self.high)
        low, high, count = self.low - origin, self.high - origin, (1 << self.depth) + 1
        if max(high, -low) <= LEVEL:
            edges = np.linspace(self.low, self.high, count)
        else:
            with np.errstate(over="ignore"):  # the last one may be the largest number there is
                edges = origin + np.sinh(np.linspace(math.asinh(low), math.asinh(high), count))
        edges = np.maximum.accumulate(np.clip(edges, self.low, self.high))
        edges[0], edges[-1] = self.low, self.high
        edges.flags.writeable = False
        return edges

    def cells(self, values: Floats) -> Integers:
        """The node that each value is in, on each level: (rows, depth), -1 for what is not finite.

        Values beyond the limits are in the outermost nodes. Each row is the outcome of comparisons of its own value
        with the edges, and of integer shifts: other rows have no part in it.
        """
        out = np.empty((len(values), self.depth), dtype=np.int64)
        self.fill(out, values, 0)
        return out

    def fill(self, out: Integers, values: Floats, start: int) -> None:
        """Write the cells of values into ``out``, numbered from ``start`` on."""
        values = np.asarray(values, dtype=np.float64)
        leaves = np.searchsorted(self.edges[1:-1], values, side="right").astype(np.int64)
        for level in range(1, self.depth + 1):  # column by column: six times as fast as all at once
            out[:, level - 1] = (leaves >> (self.depth - level)) + (start + (1 << level) - 2)
        out[~np.isfinite(values)] = -1

    def levels(self, counts: Floats) -> list[Floats]:
        """The counts of each level, from the halves down to the leaves."""
        return [counts[(1 << level) - 2 : (2 << level) - 2] for level in range(1, self.depth + 1)]


def size_of(trees: Sequence[Tree]) -> int:
    """The number of cells of all columns together."""
    return sum(tree.size for tree in trees)


def cells_per_record(trees: Sequence[Tree]) -> int:
    """The most cells that one row is in."""
    return sum(tree.depth for tree in trees)


def joint_cells(trees: Sequence[Tree], columns: Floats) -> Integers:
    """The cells of rows of several columns (rows, columns), each column's numbered behind those of the one before."""
    out, first, start = np.empty((len(columns), cells_per_record(trees)), dtype=np.int64), 0, 0
    for j, tree in enumerate(trees):
        tree.fill(out[:, first : first + tree.depth], columns[:, j], start)
        first, start = first + tree.depth, start + tree.size
    return out


def split_counts(trees: Sequence[Tree], counts: Floats) -> list[Floats]:
    """Each column's counts."""
    return np.split(counts, np.cumsum([tree.size for tree in trees])[:-1])


def release_for(plan: Plan, *, pure: bool, share: float = RANGE_SHARE, query: str = QUERY) -> Release:
    """Return the counts' release next to a fit's plan, so that it gets this share of the budget.

    Answers of relative noise r cost 1 / r^2 each of mu^2 (and 1 / r of a pure epsilon; a sample of records, about the
    square of its probability): roughly, and calibration of both together is what is exact.
    """
    if not 0 < share < 1:
        raise Unsupported("the share of the budget for private ranges or checks must lie between 0 and 1")
    power = 1 if pure else 2
    cost = sum(
        release.count * (float(release.sampling_probability) / release.relative_noise) ** power
        for release in plan.releases
    )
    return Release(query, 1, relative_noise=(cost * share / (1.0 - share)) ** (-1.0 / power) if cost else 1.0)


def consistent_leaves(tree: Tree, counts: Floats) -> Floats:
    """The leaves of the tree that fits the counts of all nodes best."""
    levels, variances = tree.levels(counts), node_variances(tree.depth)
    upward = [levels[-1]]
    for level, below in zip(levels[-2::-1], variances[:0:-1], strict=True):
        weight = 1.0 / (1.0 + 0.5 / below)
        upward.append(weight * level + (1.0 - weight) * _pairs(upward[-1]))
    estimate = _pairs(upward[-1])
    for level in reversed(upward):
        estimate = level + np.repeat((estimate - _pairs(level)) / 2.0, 2)
    return estimate


def node_variances(depth: int) -> list[float]:
    """Of a node's estimate from what is at and below it, from the halves down to the leaves, in units of a count's."""
    variances = [1.0]
    for _ in range(depth - 1):
        variances.append(1.0 / (1.0 + 0.5 / variances[-1]))
    return variances[::-1]


def _pairs(level: Floats) -> Floats:
    return np.asarray(level[0::2] + level[1::2])


def tail_noise(depth: int) -> Floats:
    """The standard deviation of the number of records below each edge, in units of a count's.

    With R leaves below the edge in a node of S leaves (0 < R < S), the node's difference has the weight min(R, S - R) /
    S, and the root the weight R / S.
    """
    variances, edges = node_variances(depth), np.arange((1 << depth) + 1)
    total = (edges / (1 << depth)) ** 2 * 2.0 * variances[0]
    for level, variance in enumerate(variances):
        width = 1 << (depth - level)
        inside = edges % width
        total += (np.minimum(inside, width - inside) / width) ** 2 * 2.0 * variance
    return np.sqrt(total)


def quantile_range(
    tree: Tree, counts: Floats, noise_std: float, n: int | None = None, quantiles: tuple[float, float] = QUANTILES
) -> Range:
    """A range that leaves out about as many records as the quantiles say, or as few as the noise allows to see.

    ``n`` is the number of records where it is public: the tree's own estimate, which knows of missing values, is not
    taken to be above it. Of the quantiles one is below the median, and one above.

    Notes
    -----
    An end is an edge beyond which there seem to be at most max(q n - 2 s, 3 s) records, s being the noise at that edge:
    too wide rather than too narrow, since what is clipped is lost. Where the noise hides the tail, 3 s > q n, the end
    is moved out as if the tail were a normal one on the tree's scale: by the ratio of the quantiles of q and of what
    could be seen, measured from the median. Where 2 s is a quarter of all records, the range is all of the limits. The
    range has at least one leaf, and grows with the quantiles.
    """
    lowest, highest = quantiles
    if not 0.0 <= lowest < 0.5 < highest <= 1.0:
        raise Unsupported("the quantiles of a private range lie on either side of the median, such as (0.005, 0.995)")
    leaves = consistent_leaves(tree, counts)
    below = np.concatenate([[0.0], np.cumsum(leaves)])
    above = np.concatenate([np.cumsum(leaves[::-1])[::-1], [0.0]])
    total = float(below[-1]) if n is None else min(float(below[-1]), float(n))
    noise = noise_std * tail_noise(tree.depth)
    largest = float(noise.max())
    if not total > 0.0 or LEAST_SURE * largest > HOPELESS * total:
        return tree.low, tree.high
    sure = min(SURE, HOPELESS * total / largest) if largest > 0.0 else SURE
    middle = int(np.argmax(below >= total / 2.0)) - 1
    last = len(leaves)
    right = _outermost(above, noise[::-1], (1.0 - highest) * total, sure)
    left = last - _outermost(below[::-1], noise[::-1], lowest * total, sure)
    seen = sure * largest / total
    high = _stretched(max(right, middle + 1), middle, last, _stretch(1.0 - highest, seen))
    low = last - _stretched(last - min(left, middle), last - 1 - middle, last, _stretch(lowest, seen))
    ends = float(tree.edges[low]), float(tree.edges[high])
    return ends if ends[0] < ends[1] else (tree.low, tree.high)


def _outermost(beyond: Floats, noise: Floats, tail: float, sure: float) -> int:
    """The edge beyond which there are few enough.

    By bisection: of thousands of edges some always seem to have records beyond, of a dozen seldom one.
    """
    enough = np.maximum(tail - SAFE * noise, sure * noise)
    low, high = 0, len(beyond) - 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if beyond[middle] > enough[middle] else (low, middle)
    return high


def _stretch(tail: float, seen: float) -> float:
    """How much further than a tail of ``seen`` a normal tail of this part reaches."""
    if tail >= seen:
        return 1.0
    return math.inf if tail == 0.0 else NormalDist().inv_cdf(tail) / NormalDist().inv_cdf(seen)


def _stretched(edge: int, middle: int, last: int, ratio: float) -> int:
    """The edge moved away from the middle of a leaf, to the last one at most."""
    return math.ceil(min(float(last), middle + 0.5 + (edge - middle - 0.5) * ratio))


_BLOCK_CELLS = 1 << 20


class RangeEstimates:
    """Counts on a dyadic tree over each private column's limits, and the ranges that they allow.

    A row's cells depend on that row and on the schema; the counts are released by ``queries/counts.py``, which has the
    proof, under the charge of the fit that they are for; ranges are post-processing.
    """

    def __init__(self, stream: "TableStream") -> None:
        self._stream, self.names = stream, stream.schema.private_columns
        kinds = [stream.schema.columns[name] for name in self.names]
        self._trees = [Tree(*kind.limits) for kind in kinds if isinstance(kind, Number)]
        self.size, self.per_row = size_of(self._trees), cells_per_record(self._trees)

    def release(self, plan: Plan, *, pure: bool) -> Release:
        """The counts next to a fit's plan, with their share of the budget."""
        return release_for(plan, pure=pure)

    def cells(self) -> Iterator[Integers]:
        """Each row's cells, in the order of the rows."""
        missing = frozenset(self._stream.schema.missing_texts)
        for batch in self._stream.source.read_ahead(self.names, max(256, _BLOCK_CELLS // self.per_row)):
            values = [cells.numbers(batch.columns[name], missing) for name in self.names]
            yield joint_cells(self._trees, np.column_stack(values))

    def settled(self, counts: Floats, noise: float, n: int | None) -> "TableStream":
        """The table with the ranges that the counts tell."""
        parts = zip(self.names, self._trees, split_counts(self._trees, counts), strict=True)
        return self._stream.settled({name: _range(tree, part, noise, n) for name, tree, part in parts})


def _range(tree: Tree, counts: Floats, noise: float, n: int | None) -> tuple[float, float]:
    """The quantiles, or all of the limits where these are too close to divide by: never an error."""
    ends = quantile_range(tree, counts, noise, n)
    return ends if are_apart(*ends) else (tree.low, tree.high)


SHARE = 0.02
"""Of the budget (of mu^2): a hundredth more noise in the model."""


class TableChecks:
    """The cells that are counted: 0 for a null record, then two for each column (nothing there; something else).

    A row is in at most one cell per column, of the features, the target, the weight and the offset, and in cell 0 if it
    counts as null. Which ones follows from that row, the schema, and ranges that were released before, so that the
    counts have the sensitivity that ``curator/queries/counts.py`` proves for ``per_row`` cells.
    """

    def __init__(self, schema: Schema) -> None:
        assert schema.target is not None
        kinds = dict(schema.columns)
        self._words = {name: _words(isinstance(kind, Number)) for name, kind in kinds.items()}
        self._words[schema.target.column] = _words(schema.target.classes is None)
        self._words |= dict.fromkeys(schema.columns_beside, _words(True))
        self.names = tuple(self._words)
        self.size, self.per_row = 1 + 2 * len(self._words), 1 + len(self._words)

    def release(self, plan: Plan, *, pure: bool) -> Release:
        """Return the counts' release next to a fit's plan."""
        return release_for(plan, pure=pure, share=SHARE, query=CHECKS)

    def cells(self, states: States, is_null: Booleans, *, all_rows: bool) -> Integers:
        """Return the cells of rows: ``states`` has a column per column in ``names``.

        Rows that are in no cell add nothing to any count, and most are: they are left out unless ``all_rows``.
        """
        wanted = np.full(len(states), True) if all_rows else is_null.copy()
        count = len(states) if all_rows else mark_rows(states, wanted)
        out = np.empty((count, self.per_row), dtype=np.int64)
        number_cells(states, is_null, wanted, out)
        return out

    def described(self, counts: Floats, noise: float) -> Json:
        """Return the counts by column, whole numbers, as a certificate keeps them."""
        pairs = np.rint(counts[1:]).astype(int).reshape(-1, 2).tolist()
        columns = {
            name: dict(zip(words, pair, strict=True))
            for (name, words), pair in zip(self._words.items(), pairs, strict=True)
        }
        return {NULL: round(float(counts[0])), "columns": columns, "noise": float(f"{noise:.4g}")}


def _words(is_number: bool) -> tuple[str, str]:
    return ("no_number", "outside") if is_number else ("empty", "unknown")


_BLOCK_VALUES = 1 << 21
FEATURES = "feature_names"
"""Among the public facts: the encoded features, in their order."""


class TableStream(RecordStream):
    """The rows of a source as encoded features, targets and persons.

    Without ``with_target`` targets are 0, and persons and weights are not read. ``checks``: cells that do not hold what
    is declared are counted, with noise, when a model is fitted.
    """

    def __init__(self, source: Source, schema: Schema, *, with_target: bool = True, checks: bool = False) -> None:
        schema.check()
        self._source, self._schema, self._with_target = source, schema, with_target
        self._needed = schema.needed if with_target else schema.predicted_from
        source.check(self._needed)
        check_types(schema, source.stored, self._needed)
        if source.once and with_target and (schema.private_columns or schema.person is not None):
            raise Unsupported(TWICE)
        self._layout, self._declared = Layout(schema), schema
        self._estimated: Json | None = None
        self._person = schema.person if with_target else None
        self._persons: Integers | None = None
        self._names: dict[str | None, int] = {}
        self._count: int | None = None
        self.columns = [feature.name for feature in self._layout.features]
        self.once, self.has_persons = source.once, self._person is not None
        self.bounds, self.cones = self._layout.bounds, self._layout.cones
        self.indicators, self.together = self._layout.indicators, self._layout.together
        self._weight = schema.weight if with_target else None
        beside = {"weights": self._weight, "offsets": schema.offset}
        self.columns_beside = tuple(name for name, role in beside.items() if role is not None)
        self.estimates = RangeEstimates(self) if schema.private_columns else None
        self.checks = self._checks = TableChecks(schema) if checks and with_target else None
        self.notes: tuple[str, ...] = ()

    @property
    def shape(self) -> tuple[int, int]:  # type: ignore[override]
        """Rows, counted when they are first asked for, and features."""
        if self._count is None:  # no cached_property: it would lock while workers count, which may be threads here
            away = self.elsewhere
            self._count = self._source.count() if away is None else away.count()
        return self._count, len(self.columns)

    @cached_property
    def elsewhere(self) -> Elsewhere | None:  # type: ignore[override]
        """The rows on a cluster, where this process does not read them."""
        parts = getattr(self._source, "parts", None)
        return None if parts is None else parts(self._schema, checks=self._checks is not None)

    @property
    def schema(self) -> Schema:
        """What is declared, with estimated ranges where there are any."""
        return self._schema

    @property
    def source(self) -> Source:
        """The table."""
        return self._source

    @property
    def facts(self) -> Json:  # type: ignore[override]
        """The declarations that the guarantee rests on, for the certificate."""
        facts: Json = {"schema": self._declared.to_dict(), FEATURES: self.columns}
        return facts if self._estimated is None else {**facts, ESTIMATED_RANGES: self._estimated}

    def declared_by(self, schema: Schema, note: str) -> "TableStream":
        """The same rows by another schema of the same columns, with a note for the certificate on why."""
        stream = TableStream(self._source, schema, checks=self._checks is not None)
        stream._persons, stream._count, stream.notes = self._persons, self._count, (*self.notes, note)
        return stream

    def settled(self, ranges: dict[str, tuple[float, float]]) -> "TableStream":
        """The same rows with estimated ranges."""
        stream = TableStream(self._source, self._schema.with_ranges(ranges), checks=self._checks is not None)
        stream._estimated, stream._declared = {name: list(ends) for name, ends in ranges.items()}, self._schema
        stream._persons, stream._count, stream.reading = self._persons, self._count, self.reading
        return stream

    def blocks(self) -> Iterator[Block]:
        rows = min(BATCH_ROWS, max(256, _BLOCK_VALUES // len(self.columns)))
        done = 0
        for batch in self._source.read_ahead(self._needed, rows):
            states = None
            if self._checks is not None:
                states = np.empty((batch.rows, len(self._checks.names)), dtype=np.int8, order="F")
            features = self._layout.encode(batch.columns, batch.rows, states)
            targets = np.zeros(batch.rows)
            if self._with_target and self._schema.target is not None:
                target_states = NOT_ASKED if states is None else states[:, len(self._schema.columns)]
                targets = self._layout.targets(batch.columns[self._schema.target.column], target_states)
            weights, offsets = self._beside(batch, states)
            persons = self.persons()[done : done + batch.rows] if self.has_persons else None
            done += batch.rows
            checks = None
            if self._checks is not None and states is not None:
                firsts = [place.start for place in self._layout.places.values() if place.start < place.stop]
                beside = (column for column in (targets, weights, offsets) if column is not None)
                is_null = _are_null(*features.T[firsts], *beside)
                checks = self._checks.cells(states, is_null, all_rows=self.has_persons)
            yield Block(features, targets, persons, checks, weights, offsets)

    def _beside(self, batch: Batch, states: States | None) -> tuple[Floats | None, Floats | None]:
        """Return the weights and the offsets of a batch; ``states`` has their columns after the target's."""
        place, weights, offsets = len(self._schema.columns) + 1, None, None
        if self._weight is not None:
            cell_states = NOT_ASKED if states is None else states[:, place]
            weights, place = self._layout.weights(batch.columns[self._weight.column], cell_states), place + 1
        if self._schema.offset is not None:
            cell_states = NOT_ASKED if states is None else states[:, place]
            offsets = self._layout.offsets(batch.columns[self._schema.offset.column], cell_states)
        return weights, offsets

    def persons(self) -> Integers:
        """The person behind each row, as numbers; rows that name nobody belong to one person."""
        if self._persons is None:
            assert self._person is not None
            missing, seen = frozenset(self._schema.missing_texts), self._names
            parts = [np.empty(0, dtype=np.int64)]
            for batch in self._source.read_ahead([self._person]):
                names, codes = cells.coded_names(batch.columns[self._person], missing)
                number_of_code = np.empty(len(names), dtype=np.int64)
                used, first = np.unique(codes, return_index=True)
                for code in used[np.argsort(first)].tolist():  # numbers in the order of rows, however names are stored
                    number_of_code[code] = seen.setdefault(names[code], len(seen))
                parts.append(number_of_code[codes])
            self._persons = np.concatenate(parts)
        return self._persons

    def names(self) -> NDArray[np.object_]:
        """The name of the person behind each row, a text; None of those that name nobody."""
        persons, names = self.persons(), np.empty(len(self._names), dtype=object)
        names[:] = list(self._names)
        return names[persons]


def _are_null(*columns: Floats) -> Booleans:
    """Return which rows count as null, each for itself: of each column's first feature, targets, weights and offsets.

    A cell that makes a row null makes all features of its column NaN.
    """
    is_null = ~np.isfinite(columns[0])
    for column in columns[1:]:
        is_null |= ~np.isfinite(column)
    return is_null


BASE = 350 << 20


@dataclass(frozen=True)
class Needs:
    """What a fit will take at most, and what this machine has left, in bytes.

    ``memory`` and ``disk`` are None where the number of rows is private.
    """

    memory: int | None
    disk: int | None
    available: int | None
    free: int | None
    folder: Path

    @property
    def fits(self) -> bool:
        """Whether there is room, as far as anything is known."""
        enough = [(self.memory, self.available)] if not self.disk else [(self.disk, self.free)]
        return all(needed is None or left is None or needed <= left for needed, left in enough)


def needs_of(schema: Schema, source: Source, neighbors: Neighbors) -> Needs:
    """Return about what a fit will take at most."""
    folder = current_limits().folder
    left = available_memory(), free_disk(folder)
    rows = source.count() if neighbors.n_is_public else schema.rows
    if rows is None or schema.person is not None:
        return Needs(None, None, *left, folder)
    layout = Layout(schema)
    grid = scaling_for(layout.bounds, len(layout.features), None, True).grid
    room = rows, len(layout.features) + 1, grid
    storage = storage_for(*room)
    if storage.on_disk:
        return Needs(BASE + ON_DISK, bytes_on_disk(*room), *left, folder)
    rows = bytes_in_memory(*room) if storage.holds_copies else bytes_of_rows(*room)
    return Needs(BASE + rows, 0, *left, folder)
