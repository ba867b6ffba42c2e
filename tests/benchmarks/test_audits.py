"""What ``discreet audit table`` finds goes into its part of a page, and nowhere else."""

import pytest
from typer.testing import CliRunner

from benchmarks.__main__ import app
from discreet.cli.app import app as discreet

MARKED = "# Audits\n\n<!-- audits: generated -->\nold\n<!-- audits: end -->\n\nafter\n"


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    words = ["audit", "table", "--runs", "50", "-s", "gd", "--neighbors", "zero_out"]
    shown = CliRunner().invoke(discreet, words)
    assert shown.exit_code == 0, shown.output
    assert "Synthetic data" in shown.stdout
    assert "0 of 1 claims refuted" in shown.stdout
    path = tmp_path_factory.mktemp("audits") / "audits.json"
    path.write_text(CliRunner().invoke(discreet, [*words, "--json"]).stdout)
    return path


def test_the_table_rewrites_its_part_of_a_page(found, tmp_path):
    page = tmp_path / "page.md"
    page.write_text(MARKED)
    result = CliRunner().invoke(app, ["audits", str(found), "--page", str(page)])
    assert result.exit_code == 0, result.output
    text = page.read_text()
    assert text.startswith("# Audits\n\n<!-- audits: generated -->")
    assert text.endswith("<!-- audits: end -->\n\nafter\n")
    assert "old" not in text
    assert "gd,zero_out,transcript,2," in (tmp_path / "audits.csv").read_text()
    assert "0 of 1 claims refuted" in text
