"""Cases of the surface audit by their names, and what is known to tell neighbors apart."""

from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase

from discreet.audit.surface import Case, Difference
from discreet.audit.surface.containers import every_container
from discreet.audit.surface.entries import python_entries
from discreet.audit.surface.harness import Workshop
from discreet.audit.surface.observing import RICH
from discreet.audit.surface.rows import Place
from discreet.audit.surface.values import VALUES
from discreet.budget import Neighbors
from discreet.cli.surface_entries import command_entries

ENTRIES = {entry.name: entry for entry in (*python_entries(), *command_entries())}
CONTAINERS = {container.name: container for container in every_container()}
HOSTILE = {value.name: value for value in VALUES}


def case_of(
    entry: str, container: str, value: str, column: str, row: int = 0, relation: str = "replace_one", purse: str = RICH
) -> Case:
    place = Place(row, column, Neighbors(relation))
    return Case(ENTRIES[entry], CONTAINERS[container], HOSTILE[value], place, purse)


def differences(place: Workshop, case: Case) -> tuple[Difference, ...]:
    outcome = place.run(case)
    assert outcome is not None, "the container cannot hold the value"
    return outcome.differences


@dataclass(frozen=True)
class Known:
    """A leak that is known and not mended yet: a case that shows it, and patterns of all cases that may.

    Delete the row with its leak: its own test is a strict xfail, and fails once the case shows nothing.
    """

    symptom: str
    example: tuple[str, ...]
    entries: str = "*"
    containers: str = "*"
    values: str = "*"

    def covers(self, found: Difference) -> bool:
        pairs = (
            (found.case.entry.name, self.entries),
            (found.case.container.name, self.containers),
            (found.case.value.name, self.values),
        )
        return all(any(fnmatchcase(name, one) for one in patterns.split("|")) for name, patterns in pairs)


def unknown(found: tuple[Difference, ...], known: tuple[Known, ...]) -> Iterator[str]:
    for one in found:
        if not any(row.covers(one) for row in known):
            yield str(one)
