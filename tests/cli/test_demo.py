import re

import pytest
from typer.testing import CliRunner

from discreet.accounting.certificate import Certificate
from discreet.cli.app import app
from discreet.report import model_report


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("deep") / "er" / "demo"


@pytest.fixture(scope="module")
def shown(folder):
    """What the demo shows, run a second time in the same folder."""
    for rows in (400, 800):
        words = ["demo", "--rows", str(rows), "--out", str(folder)]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(model_report, "cost_forecast", lambda *_, **__: None)
            result = CliRunner().invoke(app, words, prog_name="discreet")
        assert result.exit_code == 0, result.output
    return result


def test_shows_the_commands_that_one_would_type(shown, folder, run):
    commands = re.findall(r"^\$ discreet (\w+)", shown.stdout, re.MULTILINE)
    assert commands == ["schema", "budget", "budget", "fit", "verify", "score", "budget"]
    assert "Privacy certificate: PRIVATE" in shown.stdout
    assert "Verified: the listed releases cost epsilon = 1, as claimed" in shown.stdout
    assert "without privacy (scikit-learn)" in shown.stdout
    certificate = Certificate.from_json((folder / "model" / "certificate.json").read_text())
    assert certificate.epsilon == 1.0
    assert certificate.assumed_public["n"] == 600
    assert run("verify", folder / "model", "--ledger", folder / "budget.db").exit_code == 0
    assert run("predict", folder / "model", folder / "held-out.csv").stdout.count("\n") == 201


@pytest.mark.usefixtures("no_forecast")
def test_shows_effects_where_rows_and_epsilon_suffice(shown, run, tmp_path):
    """The noise is not seeded: rows and epsilon are such that it hides none."""
    result = run("demo", "--rows", 6000, "--epsilon", 100, "--out", tmp_path)
    assert result.exit_code == 0, result.output
    assert "--inference sandwich" in result.stdout
    assert re.search(r"^feature +coef +se +se privacy .* odds ratio$", result.stdout, re.MULTILINE)
    assert "Too few rows" not in result.stdout
    assert "Effects for a population" in (tmp_path / "model" / "report.html").read_text()
    assert "$ discreet fit" in shown.stdout
    assert "odds ratio" not in shown.stdout
    assert "Too few rows for effects with standard errors" in shown.stdout
