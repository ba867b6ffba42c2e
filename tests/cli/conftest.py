import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from discreet import Ledger
from discreet.cli.app import app
from tests.cli.tables import LEDGER, MARK, SCHEMA, write_table


@pytest.fixture
def run() -> Callable[..., Any]:
    """Run a command as a user would; its exit code, stdout and stderr."""

    def invoke(*arguments: object) -> Any:
        return CliRunner().invoke(app, [str(argument) for argument in arguments], prog_name="discreet")

    return invoke


@pytest.fixture
def ok(run: Callable[..., Any]) -> Callable[..., Any]:
    """Run a command that succeeds, and shows no cell of any table."""

    def invoke(*arguments: object) -> Any:
        result = run(*arguments)
        assert result.exit_code == 0, result.output
        assert MARK not in result.output
        if "--json" in arguments:
            json.loads(result.stdout, parse_constant=pytest.fail)  # other languages know no NaN
        return result

    return invoke


@pytest.fixture
def refused(run: Callable[..., Any]) -> Callable[..., str]:
    """Run a command that is refused (exit code 2): in one line on stderr, which shows no cell of any table."""

    def invoke(*arguments: object, code: int = 2) -> str:
        result = run(*arguments)
        assert result.exit_code == code, result.output
        assert isinstance(result.exception, SystemExit)  # and nothing that Python would show a traceback of
        assert result.stdout == ""
        assert len(result.stderr.strip().splitlines()) == 1
        assert MARK not in result.stderr
        return str(result.stderr)

    return invoke


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a table, its schema, a ledger, and a model that was charged there."""
    place = tmp_path_factory.mktemp("made")
    write_table(place / "table.csv")
    (place / "schema.toml").write_text(SCHEMA)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        patch.setattr("discreet.report.model_report.cost_forecast", lambda *_, **__: None)
        for command in (
            ["budget", "init", "budget.db"],
            ["budget", "grant", "people", "--epsilon", "5", "--delta", "1e-3", "--ledger", "budget.db"],
            ["fit", "table.csv", "--schema", "schema.toml", *LEDGER],
        ):
            done = CliRunner().invoke(app, command, prog_name="discreet")
            assert done.exit_code == 0, done.output
    return place


@pytest.fixture
def place(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_forecast: None) -> Path:
    """A copy of ``made``, as the working directory."""
    copy = tmp_path / "place"
    shutil.copytree(made, copy)
    Ledger(copy / "budget.db").bind()
    monkeypatch.chdir(copy)
    return copy


@pytest.fixture(scope="session")
def model() -> Any:
    from discreet import DPLogisticRegression
    from discreet.datasets import hospital

    table = hospital(n=400)
    return DPLogisticRegression(epsilon=1.0, bounds=table.bounds, solver="gd").fit(table.X, table.y)


@pytest.fixture
def model_file(model: Any, tmp_path: Path) -> Path:
    return model.save(tmp_path / "model.discreet")


@pytest.fixture
def certificate_file(model: Any, tmp_path: Path) -> Path:
    path = tmp_path / "certificate.json"
    path.write_text(model.certificate_.to_json())
    return path
