"""Two random parts of the records: what is fitted on, and what is held out to score with.

Where n is public, a set of records (persons) of a fixed size is drawn at random for the second part; where it is
private, every record falls into it with probability numerator / 2^16, by a coin of its own. No data touch the draw. A
neighbor differs in one record, hence, whatever the draw, in one part only: mechanisms that see different parts cost as
much as the more expensive of the two, not their sum. *Proof.* Give the records that both neighbors share the same
places. Then the other part is the same in both, and the law of everything computed from the two parts differs by the
one part's mechanism alone; divergences are quasi-convex in the law of the draw, which is the same for both. This holds
for ``replace_one`` and ``zero_out``, where the record keeps its place in any draw; and for ``add_remove``: coins are
independent, so that those of the records that stay have the same law whether or not one more is there, and answers do
not depend on the order of records.
"""

from dataclasses import dataclass

import numpy as np

from discreet.curator.lattice.entropy import current_entropy
from discreet.curator.lattice.noise import poisson_sample
from discreet.curator.records import admission, containers
from discreet.curator.records.stream import RecordStream, RowsElsewhere
from discreet.errors import Unsupported
from discreet.typing import Array, Integers


@dataclass(frozen=True, repr=False)
class Part:
    """Some of the rows, as a fit takes them."""

    X: containers.Table
    y: containers.Table
    groups: containers.Table

    @property
    def n_rows(self) -> int:
        """How many rows there are: public where n is."""
        return len(self.y)


def split(
    X: containers.Table, y: containers.Table, groups: containers.Table, numerator: int, held_units: int | None = None
) -> tuple[Part, Part]:
    """The records not drawn, and those drawn: ``held_units`` of them, or each with probability numerator / 2^16.

    Persons stay together.
    """
    table, targets = containers.two_dimensional(X), containers.one_dimensional(y)
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
    if containers.is_sparse(table):
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


def _part(table: containers.Table, targets: Array, names: containers.Table, rows: Integers) -> Part:
    return Part(admission.taken(table, rows), targets[rows], None if names is None else names[rows])
