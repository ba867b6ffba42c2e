"""Times against peers: every group has a file, and an error in one names the benchmark's own line."""

from importlib.util import find_spec

from benchmarks.commands.speed import NAMES


def test_every_group_has_a_file():
    assert [name for name in NAMES if find_spec(f"benchmarks.speed.{name}") is None] == []
