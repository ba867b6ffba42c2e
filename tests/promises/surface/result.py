"""What an audit of the surface found: cases run, differences, and the smallest case of each kind."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from discreet.audit.result import NOT_REFUTED, REFUTED
from discreet.budget import Neighbors
from tests.promises.surface.harness import Difference, Outcome
from tests.promises.surface.observing import BROKE

_WIDTH = 400


@dataclass(frozen=True)
class Kind:
    """All differences of one kind at one entry, by the smallest case that shows it."""

    smallest: Difference
    count: int
    containers: tuple[str, ...]
    values: tuple[str, ...]


@dataclass(frozen=True)
class Surface:
    """The result of an audit of the surface. It can refute that neighbors look alike; it never proves it.

    Parameters
    ----------
    seed
        Of the places and neighbors.
    tried
        Combinations of entry, container and value; not all of them exist.
    outcomes
        The cases that were run.
    seconds
        How long it took.
    plain
        Plainer cases that show the same, looked for afterwards.
    """

    seed: int
    tried: int
    outcomes: tuple[Outcome, ...]
    seconds: float
    plain: tuple[Difference, ...] = ()

    @property
    def differences(self) -> tuple[Difference, ...]:
        """Everything that tells neighbors apart."""
        return tuple(found for outcome in self.outcomes for found in outcome.differences)

    @property
    def refuted(self) -> bool:
        """Whether anything was found."""
        return bool(self.differences)

    @property
    def verdict(self) -> str:
        """``REFUTED`` or ``NOT REFUTED``; never more."""
        return REFUTED if self.refuted else NOT_REFUTED

    @property
    def kinds(self) -> list[Kind]:
        """Differences by entry and kind, each with its smallest case."""
        found: dict[tuple[str, str], list[Difference]] = {}
        for one in self.differences:
            found.setdefault((one.case.entry.name, one.kind), []).append(one)
        return [
            Kind(
                min((*group, *self._plainer(key)), key=_size),
                len({id(one.case) for one in group}),
                tuple(dict.fromkeys(one.case.container.name for one in group)),
                tuple(dict.fromkeys(one.case.value.name for one in group)),
            )
            for key, group in found.items()
        ]

    def _plainer(self, key: tuple[str, str]) -> list[Difference]:
        return [one for one in self.plain if (one.case.entry.name, one.kind) == key]

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

    def to_json(self) -> str:
        """All of it but the cases that showed nothing."""
        found = {
            "level": "surface",
            "verdict": self.verdict,
            "seed": self.seed,
            "tried": self.tried,
            "cases": len(self.outcomes),
            "served": sum(outcome.served for outcome in self.outcomes),
            "entries": len({outcome.case.entry.name for outcome in self.outcomes}),
            "containers": len({outcome.case.container.name for outcome in self.outcomes}),
            "values": len({outcome.case.value.name for outcome in self.outcomes}),
            "seconds": round(self.seconds, 1),
            "differences": [_described(kind) for kind in self.kinds],
        }
        return json.dumps(found, indent=2)


def _size(found: Difference) -> tuple[Any, ...]:
    """Smaller is plainer: a budget that is not spent, one record for another, the first row, a short value."""
    place = found.case.place
    plain: Sequence[Neighbors] = tuple(Neighbors)
    return found.case.purse == BROKE, plain.index(place.relation), place.row, len(repr(found.what))


def _described(kind: Kind) -> dict[str, Any]:
    case = kind.smallest.case
    return {
        "entry": case.entry.name,
        "kind": kind.smallest.kind,
        "cases": kind.count,
        "containers": list(kind.containers),
        "values": list(kind.values),
        "smallest": {
            "container": case.container.name,
            "value": case.value.name,
            "row": case.place.row,
            "column": case.place.column,
            "neighbors": str(case.place.relation),
            "budget": case.purse,
        },
        "what": kind.smallest.what[:_WIDTH],
    }
