from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from discreet.cli.app import app


@pytest.fixture
def run() -> Callable[..., Any]:
    """Run a command as a user would; its exit code, stdout and stderr."""

    def invoke(*arguments: object) -> Any:
        return CliRunner().invoke(app, [str(argument) for argument in arguments], prog_name="discreet")

    return invoke


@pytest.fixture(scope="session")
def model() -> Any:
    from discreet import DPLogisticRegression
    from discreet.experiments.synthetic import hospital

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
