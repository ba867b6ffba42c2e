"""What a release says of itself agrees: version, changelog, citation."""

import re
import tomllib
from pathlib import Path

import yaml

import discreet

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_the_changelog_and_the_citation_have_the_version():
    headings = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert headings[0] == discreet.__version__
    assert len(set(headings)) == len(headings)
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert str(citation["version"]) == discreet.__version__
    assert citation["license"] == PROJECT["license"]


def test_every_version_of_the_changelog_speaks_of_privacy():
    blocks = re.split(r"^## ", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    for block in blocks:
        said = block.split("### Privacy\n", 1)[1].split("### ")[0]
        assert said.strip(), f"{block.split()[0]}: nothing under Privacy"


def test_extras_are_named_in_messages():
    """An extra that a message recommends exists."""
    sources = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))
    named = {extra for group in re.findall(r"discreet\[([a-z,]+)\]", sources) for extra in group.split(",")}
    assert named <= set(PROJECT["optional-dependencies"])
