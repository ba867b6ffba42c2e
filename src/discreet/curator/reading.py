"""What is released while rows are read: counts of cells, each answered once under the plan that was charged."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

from discreet.accounting.cell_counts import CHECKS
from discreet.accounting.plan import AdaptivePlan
from discreet.accounting.priced_plan import PricedPlan
from discreet.curator.engines.base import Engine
from discreet.curator.queries.counts import Blocks, Elsewhere, NoisyCounts, count_once
from discreet.curator.records.admission import Scaling, TargetScaling
from discreet.curator.records.row_sketches import EMPTY, RowSketch, row_secrets
from discreet.curator.records.stream import CHANGED, Block, RecordStream, in_step, rows_of_each
from discreet.errors import Unsupported
from discreet.typing import Integers


@dataclass(frozen=True)
class OpenedPlan:
    """A plan that was priced and charged; its counts are answered while a stream is read, each once."""

    priced: PricedPlan
    n: int | None

    @property
    def is_adaptive(self) -> bool:
        """Whether answers are priced on the way: there is no room for counts then."""
        return isinstance(self.priced.plan, AdaptivePlan)

    def count(self, cells: Blocks | Elsewhere, size: int, per_row: int, **words: Any) -> NoisyCounts:
        """Count cells, with noise."""
        plan, budget, noise = self.priced.plan, self.priced.budget, self.priced.noise_multiplier
        return count_once(plan, budget, noise, cells, size, per_row, n=self.n, **words)

    def settled(self, stream: RecordStream) -> RecordStream:
        """Answer what a stream asks for before its blocks can be made, and return the stream that it allows."""
        estimates = stream.estimates
        if estimates is None:
            return stream
        cells: Blocks | Elsewhere
        cells, shares = estimates.cells(), None
        if stream.elsewhere is not None:
            cells = stream.elsewhere.cells
        elif stream.has_persons:
            cells, shares = in_step(estimates.cells(), rows_of_each(stream.persons()))
        found = self.count(cells, estimates.size, estimates.per_row, shares=shares)
        return estimates.settled(found.counts, found.noise_std, self.n)


@dataclass
class Reader:
    """Reads a stream once under an opened plan; ``checked`` is what was counted on the way, for the certificate."""

    stream: RecordStream
    opened: OpenedPlan
    checked: dict[str, Any] | None = None

    @property
    def counts(self) -> bool:
        """Whether cells that do not hold what was declared are counted."""
        return self.stream.checks is not None and not self.opened.is_adaptive

    def drive(self, blocks: Iterator[Block]) -> None:
        """Count, with noise, which cells do not hold what was declared, while blocks are admitted."""
        cells: Iterator[Integers] = (block.checks for block in blocks if block.checks is not None)
        shares = None
        if self.stream.has_persons:
            cells, shares = in_step(cells, rows_of_each(self.stream.persons()))
        self._count(cells, shares)

    def _count(self, cells: Blocks | Elsewhere, shares: Blocks | None) -> None:
        checks = self.stream.checks
        assert checks is not None
        found = self.opened.count(cells, checks.size, checks.per_row, shares=shares, query=CHECKS)
        self.checked = checks.described(found.counts, found.noise_std)

    def read_elsewhere(
        self, targets: TargetScaling, scaling: Scaling, key: bytes | None, n: int | None
    ) -> tuple[Engine, RowSketch | None]:
        """Have the rows encoded where they are; return an engine of the parts, and the hashes of all rows under a key.

        ``n`` is the number of rows where that is public: other rows than were counted are refused. Noise is drawn
        before the rows are read, as everywhere.
        """
        from discreet.curator.records.part_rows import Encoding

        away = self.stream.elsewhere
        assert away is not None
        how = Encoding(scaling, targets, None if key is None else row_secrets(key), self.counts)
        read = _Once(lambda: away.encoded(how))
        if self.counts:
            self._count(lambda: reduce(add, (seen.cells for seen in read().seen)), None)
        opened = read()
        engine: Engine = opened.engine
        if n is not None and engine.n_units != n:
            raise Unsupported(CHANGED)
        sketch = None if key is None else reduce(add, (seen.sketch for seen in opened.seen), EMPTY)
        return engine, sketch


class _Once:
    """A call that is made when it is first asked for, and not again."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self._call, self._found = call, list[Any]()

    def __call__(self) -> Any:
        if not self._found:
            self._found.append(self._call())
        return self._found[0]
