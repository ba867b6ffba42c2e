"""A newcomer's questions: each has a page, one click from the landing page, whose first paragraph answers it."""

import re
from types import SimpleNamespace

import pytest

from discreet.report.privacy_sections import LEAST_CHANCE, odds_factor, posterior
from tests.covering import covering
from tests.docs.pages import ROOT

DOCS = ROOT / "docs"


def first_paragraph(page):
    """The text below the title, up to the first blank line."""
    return re.search(r"^# .*?\n\n(.*?)\n\n", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)[1]


STARRED = re.compile(r"(?<![\w*\\])[A-Za-z]\*(?![\w*])")
CODE = re.compile(r"^( *)```.*?^\1```|``.*?``|`[^`\n]*`|\$[^$\n]+\$", re.DOTALL | re.MULTILINE)


def test_the_chances_of_the_ethics_page_follow_from_epsilon_and_delta():
    text = (DOCS / "how-to" / "ethics-board.md").read_text(encoding="utf-8")
    assert "(ε, δ) = (1, 10⁻⁶)" in text
    stated = SimpleNamespace(epsilon=1.0, delta=1e-6, is_private=True)
    assert LEAST_CHANCE == 0.001
    assert "a chance of 10 % beforehand can reach at most 23 % from any feature" in text
    assert "at least a 0.1 % chance" in text
    assert round(100 * posterior(0.1, odds_factor(stated))[1]) == 23


def test_stars_of_formulas_are_typeset():
    """A star after a letter is emphasis to Markdown, and eaten: ``$w^\\star$`` is a formula."""
    pages = sorted((ROOT / "docs").rglob("*.md"))
    found = {page.name: STARRED.findall(CODE.sub("", page.read_text(encoding="utf-8"))) for page in pages}
    assert {name: stars for name, stars in found.items() if stars} == {}
    assert STARRED.search(CODE.sub("", "`w*` and ‖w*‖"))  # the control


MEASURED = (DOCS / "measured" / "accuracy.md").read_text(encoding="utf-8")
COMPARED = (DOCS / "compared.md").read_text(encoding="utf-8")


def generated(page):
    """What the benchmarks wrote into a page."""
    return re.search(r"<!-- accuracy: generated -->\n\n(.*?)\n\n<!-- accuracy: end -->", page, re.DOTALL)[1]


def mean_gaps(task, relation):
    """The four gaps of each method, and their mean, from a table of the benchmarks."""
    table = re.search(rf"\*\*{task}, `{relation}`\*\*.*?\n\n(.*?)\n\n", generated(MEASURED), re.DOTALL)[1]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines()[2:]]
    return {method: [re.search(r"-?\d+\.\d+", cell)[0] for cell in cells[:5]] for method, *cells in rows}


def test_the_comparison_has_the_figures_of_the_benchmarks():
    weak, strong = mean_gaps("Labels", "zero_out"), mean_gaps("Labels", "replace_one")
    columns = [strong["auto"][:4], weak["auto"][:4], weak["opacus"][:4], weak["diffprivlib"][:4]]
    shown = re.findall(r"^\| [\d.]+ \| (\S+) \| (\S+) \| (\S+) \| (\S+) \|$", generated(COMPARED), re.MULTILINE)
    assert shown == list(zip(*columns, strict=True))


def test_the_comparison_says_the_percentages_of_its_table():
    said = re.search(
        r"at epsilon = 1 it loses (\d+) % .*?, Opacus with its usual settings (\d+) %, diffprivlib (\d+) %",
        first_paragraph(DOCS / "compared.md"),
    )
    strong, _, opacus, diffprivlib = re.search(r"^\| 1 \| (.*) \|$", generated(COMPARED), re.MULTILINE)[1].split(" | ")
    for percent, gap in zip(said.groups(), (strong, opacus, diffprivlib), strict=True):
        assert int(percent) == pytest.approx(100 * float(gap), abs=0.51)


@covering(("relation", ["zero_out", "replace_one"]), ("task", ["Labels", "Numbers"]))
def test_the_default_loses_less_than_other_libraries_at_every_epsilon(task, relation):
    gaps = mean_gaps(task, relation)  # the first paragraph of the page says so
    for name in {"opacus", "diffprivlib", "adassp", "ihm"} & set(gaps):
        for ours, theirs in zip(gaps["auto"], gaps[name], strict=True):
            assert float(ours) < float(theirs), name


def test_the_documentation_has_the_files_that_its_pages_name_and_no_others():
    folder = DOCS / "measured"
    pages = "".join(page.read_text(encoding="utf-8") for page in folder.glob("*.md"))
    named = set(re.findall(r"\]\(([\w-]+\.csv)\)", pages))
    assert named == {path.name for path in folder.glob("*.csv")}
    assert len(named) >= 9
