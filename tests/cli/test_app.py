import json
import os
import subprocess
import sys
import types
from pathlib import Path

import pytest

import discreet
from discreet.cli.errors import INTERNAL, UNSERVED, OneLineErrors

COMMANDS = ("demo", "price", "forecast", "tune", "verify", "inspect", "experiment", "selftest", "version")


def test_help_lists_every_command(run):
    result = run("--help")
    assert result.exit_code == 0
    assert all(command in result.stdout for command in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_explains_itself(run, command):
    result = run(command, "--help")
    assert result.exit_code == 0
    assert len(result.stdout.split()) > 25
    assert "[bold]" not in result.stdout


def test_help_imports_nothing_heavy():
    heavy = ("numpy", "scipy", "numba", "sklearn", "matplotlib", "dp_accounting", "pandas")
    code = (
        "import sys\nfrom discreet.cli import main\nsys.argv = ['discreet', '--help']\n"
        f"try:\n    main()\nexcept SystemExit:\n    pass\nprint([name for name in {heavy} if name in sys.modules])"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(discreet.__file__).parents[1])}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.strip().splitlines()[-1] == "[]"


def test_version(run):
    assert run("--version").stdout.strip() == f"discreet {discreet.__version__}"
    plain, as_json = run("version"), run("version", "--json")
    assert plain.exit_code == as_json.exit_code == 0
    assert json.loads(as_json.stdout)["discreet"] == discreet.__version__
    assert "numba" in plain.stdout


def test_a_foreign_error_shows_neither_traceback_nor_message(run, monkeypatch, certificate_file):
    def explode(path):
        raise ValueError("could not convert 'Jane Doe' to float")

    monkeypatch.setattr("discreet.cli.files.read", explode)
    result = run("inspect", certificate_file)
    assert result.exit_code == INTERNAL
    assert "unexpected ValueError in discreet.cli.inspect" in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
    assert "Jane" not in result.output
    assert "Traceback" not in result.output


def test_the_traceback_can_be_asked_for(run, monkeypatch, certificate_file):
    def explode(path):
        raise ValueError("for a developer")

    monkeypatch.setattr("discreet.cli.files.read", explode)
    monkeypatch.setenv("DISCREET_TRACEBACK", "1")
    assert isinstance(run("inspect", certificate_file).exception, ValueError)


def test_a_closed_pipe_is_left_to_typer(monkeypatch):
    def closed(self, ctx):
        raise BrokenPipeError

    monkeypatch.setattr("typer.core.TyperGroup.invoke", closed)
    with pytest.raises(BrokenPipeError):
        OneLineErrors(name="discreet").invoke(types.SimpleNamespace())


@pytest.mark.parametrize("command", ["verify", "inspect"])
def test_a_missing_file_is_one_line(run, command, tmp_path):
    result = run(command, tmp_path / "nothing.json")
    assert result.exit_code == UNSERVED
    assert result.stderr.strip().endswith("no such file or directory")
    assert len(result.stderr.strip().splitlines()) == 1


def test_an_unknown_command_is_a_usage_error(run):
    assert run("explain").exit_code == 2
