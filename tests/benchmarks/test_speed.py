"""Times against peers: every group has a file, and an error in one names the benchmark's own line."""

from importlib.util import find_spec

from typer.testing import CliRunner

from benchmarks.__main__ import app
from benchmarks.commands.speed import NAMES
from benchmarks.speed import noise


def test_every_group_has_a_file():
    assert [name for name in NAMES if find_spec(f"benchmarks.speed.{name}") is None] == []


def test_an_error_names_the_line_of_the_benchmark(monkeypatch):
    monkeypatch.setattr(noise, "interleaved", None)
    done = CliRunner().invoke(app, ["speed", "noise", "--rounds", "1"])
    assert done.exit_code == 3
    assert "unexpected TypeError in benchmarks.speed.noise, line" in done.stderr


def test_an_unknown_group_is_refused():
    assert CliRunner().invoke(app, ["speed", "nothing"]).exit_code == 2
