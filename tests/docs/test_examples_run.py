"""Every Python block and every command of the README and of the documentation runs, and prints what the page shows.

The blocks of a page share one folder and one namespace, in their order: see ``pages.py``.
"""

import re

import pytest

from tests.docs.pages import PAGES, ROOT, matches, run, steps
from tests.public_names import public

ALL = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))


LONG = ("docs/audits.md", "docs/extend.md", "docs/forecast.md", "docs/tutorials/service.md")
"""Pages of many simulations, a service or kernels of their own."""


def with_level(path):
    name = path.relative_to(ROOT).as_posix()
    return pytest.param(path, marks=pytest.mark.thorough if name in LONG else (), id=name)


@pytest.mark.whole
@pytest.mark.parametrize("path", [with_level(path) for path in PAGES])
def test_blocks_run(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run(path)


def test_every_block_is_found():
    """A fence that is indented or spelled otherwise would be skipped silently."""
    for path in ALL:
        text = path.read_text(encoding="utf-8")
        fences = re.findall(r"^\s*(?:```|~~~)\s*(?:python|py|pycon|console)\b", text, re.MULTILINE)
        assert len(fences) == len([step for step in steps(path) if step.kind != "toml"]), path.name


def test_there_are_examples():
    assert {"README.md", "first-model.md", "python.md", "cd.md", "gcd.md"} <= {path.name for path in PAGES}


def test_every_public_name_is_in_the_reference():
    pages = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "docs" / "reference" / "api").glob("*.md"))
    assert [name for name in public() if not re.search(rf"discreet\S*\.{name}\b", pages)] == []


@pytest.mark.parametrize(
    ("expected", "printed", "same"),
    [
        (["a 1.5 b"], ["a  -2,000.25e-7 b"], True),
        (["a 1.5 b"], ["a b"], False),
        (["a", "...", "c"], ["a", "b", "b", "c"], True),
        (["a", "..."], ["a"], True),
        (["a"], ["a", "b"], False),
        (["head 0123456789abcdef"], ["head fedcba9876543210"], True),
    ],
)
def test_commands_are_compared_up_to_numbers(expected, printed, same):
    assert matches(expected, printed) is same
