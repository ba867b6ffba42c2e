"""Every command that a file for users or contributors names runs, at a tiny size, in a copy of the repository."""

import os
import shutil
import subprocess
import sys

import pytest

from discreet.datasets import hospital, schema_text, write_csv
from tests.docs.commands import ROOT, SECTIONS, TARGETS_NOT_RUN, all_commands, targets

NOT_COPIED = (".venv", ".git", "build", "dist", "site", "data", "__pycache__", ".*_cache", ".hypothesis")
TABLE = {command: tiny for section in SECTIONS.values() for command, tiny in section.items()}


def test_every_command_has_an_entry_and_every_entry_a_command():
    commands = all_commands()
    assert len(commands) > 50
    assert commands - set(TABLE) == set(), "add an entry to tests/docs/commands.py"
    assert set(TABLE) - commands == set(), "no file names it any more"
    assert set(TARGETS_NOT_RUN) <= set(targets())


@pytest.fixture
def copy(tmp_path):
    """The files of the repository, the environment of these tests, and a table with its schema."""
    folder = tmp_path / "discreet"
    shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(*NOT_COPIED))
    (folder / ".venv").symlink_to(sys.prefix)
    write_csv(hospital(600), folder / "patients.csv")
    return folder


@pytest.mark.thorough
@pytest.mark.whole
@pytest.mark.parametrize("section", SECTIONS)
def test_commands_run(copy, section):
    path = f"{copy / '.venv' / 'bin'}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "BENCHMARKS_QUICK": "1", "PATH": path, "DISCREET_LEDGER": ""}
    for command, tiny in SECTIONS[section].items():
        if tiny.reason:
            continue
        asked = tiny.instead or f"{command} {tiny.words}"
        done = subprocess.run(
            ["bash", "-c", asked], cwd=copy, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{asked}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
        if command.startswith("discreet schema new"):  # what the user fills in
            (copy / "schema.toml").write_text(schema_text(), encoding="utf-8")
