"""Pages that map papers, ways and changes to code name code that is there, with the place where it begins."""

import inspect
import re

import pytest

from tests.docs.pages import ROOT

code_places = pytest.importorskip("docs.extensions.code_places")

PAPERS = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
PAGES = sorted((ROOT / "docs").rglob("*.md"))
NAMES = sorted({name for page in PAGES for name in re.findall(code_places.NAME, page.read_text(encoding="utf-8"))})
SOURCES = ("CAp slides", "ICML 2022", "AISTATS 2023", "KDD 2018", "USC lecture", "CSC2412 lecture")


def test_every_source_has_its_part():
    headings = "\n".join(re.findall(r"^## .*", PAPERS, re.MULTILINE))
    assert [source for source in SOURCES if source not in headings] == []
    assert len(re.findall(code_places.NAME, PAPERS)) > 50


def test_named_code_exists():
    for name in NAMES:
        file, line = code_places.place(name).split(":")
        assert (ROOT / "src" / "discreet" / file).exists(), name
        assert int(line) >= 1, name


ROWS = [line.strip("| ").split(" | ") for line in PAPERS.splitlines() if re.match(r"\| (?!---)", line)]
CELLS = [cells[-1] for cells in ROWS if cells[-1] != "code"]


def parameters(name):
    """Return the parameters of a class, or of the class or function that a name is in."""
    owners = [code_places.resolve(name), code_places.resolve(name.rpartition(".")[0])]
    return {word for owner in owners if callable(owner) for word in inspect.signature(owner).parameters}


def test_every_line_of_a_source_has_its_code():
    assert len(CELLS) > 70
    assert [cell for cell in CELLS if not re.search(rf"{code_places.NAME}|`\w|\]\(", cell)] == []


def test_parameters_next_to_code_are_its_parameters():
    named = [(set(re.findall(r"`(\w+)=", cell)), re.findall(code_places.NAME, cell)) for cell in CELLS]
    checked = [(words, names) for words, names in named if words and names]
    assert len(checked) > 8
    for words, names in checked:
        assert words <= set().union(*map(parameters, names)), names


def test_a_name_that_is_gone_is_noticed():
    with pytest.raises((AttributeError, ModuleNotFoundError)):
        code_places.resolve("discreet.solvers.GradientDescent.descend")
