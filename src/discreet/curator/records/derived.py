"""Rows that are made of a user's rows: two random parts of the records, and one row per threshold of ordered classes.

**Parts**: what is fitted on, and what is held out to score with. Where n is public, a set of records (persons) of a
fixed size is drawn at random for the second part; where it is private, every record falls into it with probability
numerator / 2^16, by a coin of its own. No data touch the draw. A neighbor differs in one record, hence, whatever the
draw, in one part only: mechanisms that see different parts cost as much as the more expensive of the two, not their
sum. *Proof.* Give the records that both neighbors share the same places. Then the other part is the same in both, and
the law of everything computed from the two parts differs by the one part's mechanism alone; divergences are
quasi-convex in the law of the draw, which is the same for both. This holds for ``replace_one`` and ``zero_out``, where
the record keeps its place in any draw; and for ``add_remove``: coins are independent, so that those of the records that
stay have the same law whether or not one more is there, and answers do not depend on the order of records.

**Thresholds**: each record becomes one row per threshold, and all of its rows are one unit. With K classes in their
order, the row of threshold k = 1, ..., K - 1 has the record's features, cells that say which threshold it is (none for
the first one), and the target 1 where the class is beyond the threshold, else 0. A logistic model of these rows has one
slope per feature and a constant per threshold,

    log odds(class beyond k) = x.w + b_k,

the proportional odds model; its loss is the mean over thresholds of the logistic losses (Li and Lin 2007, *Ordinal
regression by extended binary classification*). The minimizer is consistent where the model holds, and its constants
fall from threshold to threshold.

Privacy
-------
Relation and sensitivity: those of rows with persons. The K - 1 rows of a record depend on that record and on the number
of declared classes alone, so tables that differ in one record become tables that differ in the rows of one unit; a null
record has null rows only. What a unit adds to any answer is bounded as a person's rows are (``Records.starts``,
``Records.shares``: each row's part is divided by how many they are), whatever K is.
Mechanism, event: the queries' own.
Conditions: the rows of a record name one unit, which is the record's number or, where persons are declared, the person:
then all rows of all of a person's records are one unit.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from discreet.accounting.certificate import check_declarations
from discreet.curator.noise import current_entropy, poisson_sample
from discreet.curator.records import admission
from discreet.curator.records.stream import Block, RecordStream, RowsElsewhere
from discreet.errors import Unsupported
from discreet.typing import Array, Floats, Integers


@dataclass(frozen=True, repr=False)
class Part:
    """Some of the rows, as a fit takes them."""

    X: admission.Table
    y: admission.Table
    groups: admission.Table

    @property
    def n_rows(self) -> int:
        """How many rows there are: public where n is."""
        return len(self.y)


def split(
    X: admission.Table, y: admission.Table, groups: admission.Table, numerator: int, held_units: int | None = None
) -> tuple[Part, Part]:
    """The records not drawn, and those drawn: ``held_units`` of them, or each with probability numerator / 2^16.

    Persons stay together.
    """
    table, targets = admission.two_dimensional(X), admission.one_dimensional(y)
    n = int(table.shape[0])
    if len(targets) != n:
        raise Unsupported("y must hold one target for each row of X")
    names = None if groups is None else admission.names_of(groups)
    order, starts = np.arange(n), None
    if names is not None:
        order, starts, _ = admission.grouping(names, n)
    held = np.zeros(n, dtype=bool)
    drawn = _drawn(n if starts is None else len(starts) - 1, numerator, held_units)
    held[order[admission.rows_of_units(drawn, starts)]] = True
    if admission.is_sparse(table):
        table = admission.compressed(table)
    return _part(table, targets, names, np.flatnonzero(~held)), _part(table, targets, names, np.flatnonzero(held))


def split_elsewhere(
    stream: RecordStream, rows: RowsElsewhere, numerator: int, held_units: int | None = None
) -> tuple[Part, Part]:
    """The same of the rows of a stream on a cluster, which stay there."""
    held = np.zeros(rows.n_units, dtype=bool)
    held[_drawn(rows.n_units, numerator, held_units)] = True
    return Part(rows.chosen(~held, stream), None, None), Part(rows.chosen(held, stream), None, None)


def _drawn(n_units: int, numerator: int, held_units: int | None) -> Integers:
    """Draw units by lots that no data touch."""
    entropy = current_entropy()
    if held_units is None:
        return poisson_sample(n_units, numerator, entropy)
    return np.sort(np.argsort(entropy.words(n_units), kind="stable")[:held_units])


def _part(table: admission.Table, targets: Array, names: admission.Table, rows: Integers) -> Part:
    return Part(admission.taken(table, rows), targets[rows], None if names is None else names[rows])


class ThresholdRows(RecordStream):
    """One row per record and threshold. ``facts`` are declarations of the records, for the certificate."""

    is_named, is_checked = False, True

    def __init__(self, records: RecordStream, n_classes: int, facts: Mapping[str, object]) -> None:
        if records.elsewhere is not None:
            raise Unsupported("ordered classes of a table on a cluster are not served: read it into a file or a frame")
        if records.is_sparse:
            raise Unsupported("thresholds of ordered classes are added to dense records: pass X.toarray()")
        if records.estimates is not None:
            raise Unsupported("ordered classes need declared ranges: declare those that are private")
        self._records, self._thresholds = records, n_classes - 1
        self.rows_per_record = self._thresholds
        self.columns = [*records.columns, *(f"threshold {k}" for k in range(2, n_classes))]
        check_declarations(records.facts)  # those of the thresholds are made here
        self.facts = {**records.facts, **facts}
        self.has_persons, self.once = True, records.once
        self.columns_beside, self.cones = records.columns_beside, ()
        self.sample = np.empty((0, len(records.columns))) if records.sample is None else records.sample
        self.notes = getattr(records, "notes", ())

    @property
    def shape(self) -> tuple[int, int]:  # type: ignore[override]
        """Rows of all thresholds, and features with the thresholds' cells."""
        return self._thresholds * self._records.shape[0], len(self.columns)

    @property
    def unit(self) -> str:
        """Whom the rows of one unit are of: a record, or a person where persons are declared."""
        return self._records.unit

    def blocks(self) -> Iterator[Block]:
        """All rows, a record's next to each other."""
        count, done = self._thresholds, 0
        for block in self._records.blocks():
            rows = len(block.targets)
            features = np.zeros((rows, count, len(self.columns)))
            features[:, :, : block.features.shape[1]] = block.features[:, np.newaxis]
            for k in range(1, count):
                features[:, k, block.features.shape[1] + k - 1] = 1.0
            is_class = (block.targets >= 0) & (block.targets <= count) & (block.targets == np.floor(block.targets))
            beyond = np.greater.outer(block.targets, np.arange(count)).astype(np.float64)
            beyond[~is_class] = np.nan  # a stream's positions are whatever its maker wrote
            persons = np.arange(done, done + rows) if block.persons is None else block.persons
            done += rows
            beside = (_repeated(column, count) for column in (block.weights, block.offsets))
            flat = features.reshape(rows * count, -1), beyond.ravel()
            yield Block(*flat, np.repeat(persons, count), None, *beside)

    def persons(self) -> Integers:
        """The unit behind each row."""
        records = self._records
        units = records.persons() if records.has_persons else np.arange(records.shape[0])
        return np.repeat(units, self._thresholds)


def _repeated(column: Floats | None, count: int) -> Floats | None:
    return None if column is None else np.repeat(column, count)
