"""A newcomer's questions: each has a page, one click from the landing page, whose first paragraph answers it."""

import re

import pytest

from tests.docs.pages import ROOT

DOCS = ROOT / "docs"
TABLE = re.search(r"## Questions\n\n(.*?)\n\n##", (DOCS / "index.md").read_text(encoding="utf-8"), re.DOTALL)[1]
QUESTIONS = [
    (cells[0], re.findall(r"\]\(([^)#]+)", cells[1]))
    for line in TABLE.splitlines()[2:]
    if (cells := line.strip("| ").split(" | "))
]


def first_paragraph(page):
    """The text below the title, up to the first blank line."""
    return re.search(r"^# .*?\n\n(.*?)\n\n", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)[1]


def test_there_are_twelve():
    assert len(QUESTIONS) == 12


@pytest.mark.whole
@pytest.mark.parametrize(("question", "pages"), QUESTIONS, ids=[question for question, _ in QUESTIONS])
def test_the_first_paragraph_answers(question, pages):
    for page in pages:
        answer = first_paragraph(DOCS / page)
        assert len(answer.split()) >= 25, f"{page}: {answer}"
        assert not answer.startswith(("|", "```", "#")), page


def row(text, name):
    """The four gaps of a method, in the first table of the text that has it."""
    cells = re.search(rf"^\| {name} \|(.*)$", text, re.MULTILINE)[1].split("|")
    return [re.search(r"-?\d\.\d+", cell)[0] for cell in cells[:4]]


def test_the_comparison_has_the_figures_of_the_benchmarks():
    measured = (DOCS / "experiments.md").read_text(encoding="utf-8")
    labels = {one: measured[measured.index(f"**Labels, `{one}`**") :] for one in ("replace_one", "zero_out")}
    columns = [
        row(labels["replace_one"], "auto"),
        row(labels["zero_out"], "auto"),
        row(labels["zero_out"], "opacus"),
        row(labels["zero_out"], "diffprivlib"),
    ]
    page = (DOCS / "compared.md").read_text(encoding="utf-8")
    shown = re.findall(r"^\| [\d.]+ \| (\S+) \| (\S+) \| (\S+) \| (\S+) \|$", page, re.MULTILINE)
    assert shown == list(zip(*columns, strict=True))
