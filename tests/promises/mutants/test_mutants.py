"""Each mutant is killed, by a test that passes on the package as it is."""

import pytest

from tests.promises.mutants import accounts, clusters, counts, inputs, noise, prices, sensitivity
from tests.promises.mutants.catalog import MUTANTS
from tests.promises.mutants.mutant import ROOT, Edit, Mutant, Stale, edited, killers_of
from tests.promises.mutants.planting import planted
from tests.promises.mutants.workers import Workers

CLUMSY = ("NameError", "TypeError", "AttributeError", "ImportError", "ModuleNotFoundError", "SyntaxError", "KeyError")
"""What fails so is broken code, not a bug that was noticed."""
HALVES = 2
EVERYDAY = (
    "no cap in the database",
    "late answers counted",
    "noise of counts drawn after the records were read",
    "n from the data",
    "intercept without noise",
    "filter rounds down",
    "no clip",
)
"""One of each family, killed by ``make test`` too; the others by ``make test-all``."""


def with_level(mutant):
    marks = () if mutant.name in EVERYDAY else pytest.mark.thorough
    return pytest.param(mutant, marks=marks, id=mutant.name.replace(" ", "-"))


@pytest.fixture(scope="session")
def workers():
    with Workers() as made:
        yield made


@pytest.mark.thorough
@pytest.mark.parametrize("half", range(HALVES))
def test_the_package_as_it_is_passes_all_killers(workers, tmp_path, half):
    (tmp_path / "report").mkdir()
    killers = killers_of(MUTANTS)
    found = workers.run(planted(None, tmp_path / "package"), killers[half::HALVES], tmp_path / "report")
    assert found.code == 0, found.output


@pytest.mark.whole
@pytest.mark.parametrize("mutant", [with_level(mutant) for mutant in MUTANTS])
def test_it_is_killed(workers, tmp_path, mutant):
    (tmp_path / "report").mkdir()
    found = workers.run(planted(mutant, tmp_path / "package"), list(mutant.killers), tmp_path / "report")
    assert found.code == 1, found.output  # 0: it survived; others: nothing was tested
    assert found.errors == ()
    assert len(found.failures) == 1
    (failure,) = found.failures
    assert not failure.message.startswith(CLUMSY), failure.message
    assert mutant.says in failure.message + failure.text


def test_one_of_each_family_is_killed_every_day():
    families = (accounts, clusters, counts, inputs, noise, prices, sensitivity)
    assert [sum(mutant.name in EVERYDAY for mutant in family.MUTANTS) for family in families] == [1] * len(families)


def test_names_and_edits_differ():
    assert len({mutant.name for mutant in MUTANTS}) == len({mutant.edits for mutant in MUTANTS}) == len(MUTANTS)
    assert len(MUTANTS) >= 30


def test_each_changes_the_source_and_can_be_compiled():
    for mutant in MUTANTS:
        for path, text in edited(mutant).items():
            compile(text, path, "exec")
        assert mutant.says
        assert all((ROOT / killer.partition("::")[0]).is_file() for killer in mutant.killers), mutant.name


@pytest.mark.parametrize("old", ["no such text in this file", "import"])
def test_a_text_that_is_not_there_once_is_stale(old):
    with pytest.raises(Stale, match="not once"):
        edited(Mutant("stale", "", (Edit("budget.py", old, ""),), (), ""))


def test_a_mutant_that_changes_nothing_survives(workers, tmp_path):
    """Control: the judge is able to acquit."""
    (tmp_path / "report").mkdir()
    harmless = Mutant(
        "harmless", "", (Edit("budget.py", '"replace_one", True, 2', '"replace_one", True, 1 + 1'),), (), ""
    )
    killers = ["tests/test_budget.py::test_what_a_relation_means"]
    found = workers.run(planted(harmless, tmp_path / "package"), killers, tmp_path / "report")
    assert (found.code, found.failures) == (0, ())
