"""Cases of the surface audit by their names."""

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
