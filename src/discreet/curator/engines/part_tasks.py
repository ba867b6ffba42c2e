"""What workers of a cluster run: they encode parts of the records, and answer exact sums over them.

This file, and what it imports, knows no noise, no entropy and no ledger: a test runs these tasks in a new process and
looks. A task returns its failure instead of raising it: an exception would be logged with its arguments, and travel
with a text that may quote a cell.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.curator.engines import engine_for
from discreet.curator.engines.base import ExactSum, LocalEngine
from discreet.curator.engines.parts import answered
from discreet.curator.engines.tally import Answer, Seal
from discreet.curator.records.row_sketches import RowSketch
from discreet.errors import DiscreetError
from discreet.typing import Integers

if TYPE_CHECKING:
    from discreet.curator.records.admission import Records
    from discreet.curator.records.recoding import Placement
    from discreet.losses.base import Loss

_NAMED = (MemoryError, ImportError, FileNotFoundError, PermissionError)
_RUN = ("curator/kernels", "curator/engines", "curator/queries", "curator/records", "curator/tables", "losses")
"""Folders whose code decides what a worker answers."""


@dataclass(frozen=True)
class Failed:
    """A task that failed: our own words, which name no value, or the kind of a few errors; nothing else of it."""

    reason: str


@dataclass(frozen=True, repr=False)
class Seen:
    """What was seen of a part's rows while they were encoded: hashes for a fingerprint, counts of cells."""

    sketch: RowSketch | None = None
    cells: Integers | None = None


UNSEEN = Seen()


class Part:
    """Some of the records, encoded, on a worker; the layout that passes read is kept next to them."""

    def __init__(self, number: int, records: Records, seal: Seal, seen: Seen = UNSEEN) -> None:
        self.number, self.records, self.seal, self.seen = number, records, seal, seen
        self._engine: LocalEngine | None = None

    @property
    def engine(self) -> LocalEngine:
        """The records on one thread: a worker runs as many tasks as it has threads."""
        if self._engine is None:  # no cached_property: its lock is one for all parts
            self._engine = engine_for(self.records, threads=1)
        return self._engine

    def __reduce__(self) -> Any:
        return Part, (self.number, self.records, self.seal, self.seen)

    def __sizeof__(self) -> int:
        """Return the bytes of the records: by them a worker decides when to spill."""
        return object.__sizeof__(self) + sum(int(array.nbytes) for array in _arrays(self.records))


def sealed(number: int, records: Records, seen: Seen = UNSEEN) -> Part:
    """Return records as a part, with the checksum of their bytes."""
    checksum = hashlib.blake2b(digest_size=16)
    for array in _arrays(records):
        checksum.update(f"{array.dtype.str}{array.shape}".encode())
        checksum.update(np.ascontiguousarray(array).data)
    return Part(number, records, Seal(records.n_rows, checksum.digest()), seen)


def _arrays(records: Records) -> list[Any]:
    rows = [records.rows] if records.sparse is None else list(records.sparse)
    return [array for array in (*rows, records.targets, records.norms, records.sums) if array is not None]


def guarded(task: Callable[..., Any]) -> Callable[..., Any]:
    """Return a task that hands on a failure that it is given, and returns its own instead of raising it."""

    @wraps(task)
    def run(*given: Any, **words: Any) -> Any:
        for one in given:
            if isinstance(one, Failed):
                return one
        try:
            return task(*given, **words)
        except DiscreetError as error:  # its words name no value
            return Failed(str(error))
        except _NAMED as error:
            return Failed(f"a worker could not do its part ({type(error).__name__})")
        except Exception:
            return Failed("a worker could not do its part")

    return run


@guarded
def answer(part: Part, question: ExactSum, *, placement: Placement | None) -> Answer[Integers]:
    """Return a question's exact sum over one part; recoded on the way by a placement."""
    check_question(question, recodes=placement is not None)
    told = question.over(part.engine) if placement is None else answered(part.records, placement, question)
    return Answer(part.number, part.seal, software(), told)


@guarded
def recode(part: Part, *, placement: Placement) -> Part:
    """Return a part through a map; its seal stays that of the records as they were admitted."""
    check_recoding()
    return Part(part.number, placement.of(part.records, threads=1), part.seal)


@guarded
def seen_of(part: Part) -> Answer[tuple[Seal, Seen]]:
    """Return what a part is, and what was seen of its rows."""
    return Answer(part.number, part.seal, software(), (part.seal, part.seen))


@guarded
def probe(loss: Loss, sampled: bool) -> tuple[str, ...]:
    """Check the kernels that a fit of this loss runs, and return what this process runs."""
    from discreet.curator.known_answers.gradients import check_kernels, known_sum

    for some in {False, sampled}:
        check_kernels(loss, sparse=False, sampled=some)
    return *software(), str(known_sum(loss))


@cache
def software() -> tuple[str, ...]:
    """Return versions, and a checksum of the code that decides what a worker answers."""
    import numba

    import discreet

    root = Path(__file__).parents[2]
    code = hashlib.blake2b(digest_size=16)
    for folder in _RUN:
        for file in sorted((root / folder).glob("*.py")):
            code.update(f"{folder}/{file.name}".encode())
            code.update(file.read_bytes())
    return discreet.__version__, numba.__version__, np.__version__, code.hexdigest()


def check_recoding() -> None:
    """Raise ``StaleKernels`` unless maps of records give their known answers."""
    from discreet.curator.known_answers.moments import check_moment_kernels

    check_moment_kernels(sparse=False)


def check_question(question: ExactSum, *, recodes: bool) -> None:
    """Raise ``StaleKernels`` unless the kernels of a question give their known answers here: once per process."""
    from discreet.curator.known_answers import class_effects, coordinates, effects, gradients
    from discreet.curator.queries.coordinates import CoordinateQuery
    from discreet.curator.queries.effects import EffectQuery
    from discreet.curator.queries.gradients import GradientQuery
    from discreet.curator.queries.moments import MomentQuery, SquareQuery
    from discreet.curator.queries.values import ValueQuery

    if recodes or isinstance(question, MomentQuery):
        check_recoding()
    if isinstance(question, GradientQuery) and question.anchor is not None:
        gradients.check_change_kernels(question.loss, sparse=False)
    elif isinstance(question, GradientQuery):
        gradients.check_kernels(question.loss, sparse=False, sampled=question.units is not None)
    elif isinstance(question, CoordinateQuery):
        coordinates.check_coordinate_sums(question.loss, sparse=False)
    elif isinstance(question, ValueQuery):
        gradients.check_value_kernels(question.loss, sparse=False)
    elif isinstance(question, SquareQuery):
        coordinates.check_square_sums(sparse=False)
    elif isinstance(question, EffectQuery) and question.loss.n_outputs == 1:
        effects.check_effect_kernels(question.loss)
    elif isinstance(question, EffectQuery):
        class_effects.check_class_kernels(question.loss)
