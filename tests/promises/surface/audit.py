"""Audit of the surface: does anything that a person outside can observe depend on one record?

Every way in (``entries.py``, and the commands in ``commands.py``) is tried with tables in every container
(``containers.py``, ``files.py``) that differ in one record with a hostile cell (``values.py``). The mechanisms' answers
are frozen, as in ``audit.replay``, so that noise makes no difference: then texts, exit codes, warnings, logs, errors,
charges and their order, files and results must be the same, and no value of the record may turn up in any of them.
What cannot be seen: time and memory, and whatever no case tries.
"""

import itertools
import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tests.promises.surface.containers import Container, every_container
from tests.promises.surface.entries import Entry, python_entries
from tests.promises.surface.harness import Case, Difference, Outcome, cases, count, workshop
from tests.promises.surface.values import VALUES, Hostile

__all__ = ["Case", "Difference", "Outcome", "Surface", "surface"]


@dataclass(frozen=True)
class Surface:
    """What was found in so many of the combinations that were tried. It can refute that neighbors look alike."""

    tried: int
    outcomes: tuple[Outcome, ...]
    seconds: float

    @property
    def differences(self) -> tuple[Difference, ...]:
        """Everything that tells neighbors apart."""
        return tuple(found for outcome in self.outcomes for found in outcome.differences)

    @property
    def refuted(self) -> bool:
        """Whether anything was found."""
        return bool(self.differences)

    @property
    def kinds(self) -> list[tuple[Difference, int]]:
        """One difference of each kind at each entry, in the shortest words, and how many there are of it."""
        shortest = sorted(self.differences, key=lambda found: -len(found.what))
        counts = Counter((found.case.entry.name, found.kind) for found in shortest)
        by_kind = {(found.case.entry.name, found.kind): found for found in shortest}
        return [(found, counts[key]) for key, found in by_kind.items()]

    @property
    def by_entry(self) -> list[tuple[str, int, int, int]]:
        """(entry, cases, cases in which the request was served, cases with differences)."""
        cases, served, bad = Counter[str](), Counter[str](), Counter[str]()
        for outcome in self.outcomes:
            name = outcome.case.entry.name
            cases[name] += 1
            served[name] += outcome.served
            bad[name] += bool(outcome.differences)
        return [(name, count, served[name], bad[name]) for name, count in cases.items()]


def surface(
    entries: Sequence[Entry] | None = None,
    tables: Sequence[Container] | None = None,
    values: Sequence[Hostile] = VALUES,
    *,
    n_cases: int | None = None,
    seed: int = 0,
    progress: Callable[[int], None] | None = None,
) -> Surface:
    """Try the combinations of entries, containers and hostile values, and compare neighbors.

    Parameters
    ----------
    entries, tables, values
        What to try. None: every entry from Python; every container.
    n_cases
        How many combinations, drawn by lot; more than there are: all of them, then again at other places. None: all
        of them once. A combination that cannot exist (a text in an array of numbers) takes no time.
    seed
        Of the lot, the places and the neighbors.
    progress
        Called with the number of combinations that are done.
    """
    entries = python_entries() if entries is None else entries
    tables = every_container() if tables is None else tables
    total = count(entries, tables, values)
    stream = cases(entries, tables, values, seed=seed)
    chosen = list(itertools.islice(stream, max(total, n_cases or 0)))
    if n_cases is not None and n_cases < total:
        kept = sorted(random.Random(seed).sample(range(total), n_cases))
        chosen = [chosen[index] for index in kept]
    started, outcomes = time.perf_counter(), []
    with workshop() as place:
        for case in chosen:
            outcome = place.run(case)
            outcomes += [] if outcome is None else [outcome]
            if progress is not None:
                progress(1)
    return Surface(len(chosen), tuple(outcomes), time.perf_counter() - started)
