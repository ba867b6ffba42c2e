"""The page of the default shows every form and every setting of its table, as they are in the source."""

import re

import pytest

from discreet.default.table import FORMS, SETTINGS, SHARES
from tests.docs.pages import ROOT

pytest.importorskip("markdown")

program = pytest.importorskip("docs.extensions.program")


def cells(text):
    """Return the rows of Markdown's tables, without heads."""
    rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in text.splitlines() if "|" in line]
    return [row for row in rows if not set("".join(row)) <= set("-|")]


def test_forms_are_in_their_order_with_their_reasons():
    rows = [row for row in cells(program.forms()) if len(row) == 3][1:]
    assert [(name, reason) for _, name, reason in rows] == [(f"`{one.name}`", one.reason) for one in FORMS]
    assert rows[-1][0] == "otherwise"
    assert all(re.fullmatch("`[^`]+`", holds) for holds, _, _ in rows[:-1])


def test_settings_and_shares_have_their_rules_and_reasons():
    rows = [row for row in cells(program.settings()) if len(row) == 4][1:]
    expected = [("field", one) for one in SETTINGS] + [("share", one) for one in SHARES]
    assert [(row[0], row[3]) for row in rows] == [(f"{kind} `{one.name}`", one.reason) for kind, one in expected]
    for row, (_, one) in zip(rows, expected, strict=True):
        for shown, rule in zip(row[1:3], (one.rule, one.rule if one.numbers is None else one.numbers), strict=True):
            assert callable(rule) or shown == f"`{rule}`"
            assert "lambda" not in shown
            assert not re.search(r"\bs\b", shown)


def test_pages_get_whole_tables():
    """A line break within a cell would end its table."""
    names = ("choosing-a-solver.md", "solvers/recipe.md")
    lines = [line for name in names for line in (ROOT / "docs" / name).read_text(encoding="utf-8").splitlines()]
    for name in ("forms", "signal", "names", "settings"):
        assert lines.count(f"<!-- {name} -->") == 1
        table = getattr(program, name)().splitlines()
        assert all(line.startswith("|") and line.endswith("|") for line in table if line)
