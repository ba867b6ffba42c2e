"""Cases of the surface audit by their names."""

from discreet.budget import Neighbors
from tests.promises.surface.audit import Case, Difference
from tests.promises.surface.commands import command_entries
from tests.promises.surface.containers import every_container
from tests.promises.surface.entries import python_entries
from tests.promises.surface.harness import Workshop
from tests.promises.surface.observing import RICH
from tests.promises.surface.rows import Place
from tests.promises.surface.services import service_entries
from tests.promises.surface.values import VALUES

ENTRIES = {entry.name: entry for entry in (*python_entries(), *command_entries(), *service_entries())}
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
