"""Long tables of a generated part become files next to the page, with nothing lost, and short ones stay."""

import csv
import re

from benchmarks.pages.generated import rewrite
from tests.docs.pages import ROOT

PAGE = "# Title\n\n<!-- gap: generated -->\n\nold\n\n<!-- gap: end -->\n\nafter\n"
TEXT = """**Labels, `zero_out`**: the mean.

| method | 0.1 |
|---|---|
| auto | **0.2 ± 0.1** |

### Another

A sentence.

| table | note |
|---|---:|
| x | a \\| b |

**Numbers**: the mean.

| method | 0.1 |
|---|---|
| gd | 0.4 |"""


def rows(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


def test_tables_that_are_not_shown_become_files(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    (tmp_path / "gap-7.csv").write_text("of an earlier run")
    rewrite(page, TEXT, "gap", shown=[])
    assert "|" not in page.read_text()
    assert page.read_text().endswith("<!-- gap: end -->\n\nafter\n")
    assert "A sentence." in page.read_text()
    assert "[Labels, zero_out](gap.csv)" in page.read_text()
    assert "[Another](gap-2.csv)" in page.read_text()
    assert rows(tmp_path / "gap.csv") == [
        ["part", "method", "0.1"],
        ["Labels, zero_out: the mean.", "auto", "0.2 ± 0.1"],
        ["Numbers: the mean.", "gd", "0.4"],
    ]
    assert rows(tmp_path / "gap-2.csv") == [["part", "table", "note"], ["Another", "x", "a | b"]]
    assert not (tmp_path / "gap-7.csv").exists()


def test_the_documentation_has_the_files_that_its_pages_name_and_no_others():
    folder = ROOT / "docs" / "measured"
    pages = "".join(page.read_text(encoding="utf-8") for page in folder.glob("*.md"))
    named = set(re.findall(r"\]\(([\w-]+\.csv)\)", pages))
    assert named == {path.name for path in folder.glob("*.csv")}
    assert len(named) >= 9
