"""The predicted time of a fit on a cluster follows its plan and sizes, and is found on the command line."""

import json

import pytest
from typer.testing import CliRunner

from discreet.cli.app import app


def test_it_is_found_on_the_command_line():
    words = ["forecast", "-n", "3000", "-p", "3", "--seeds", "2", "--solver", "gd", "--cluster-workers", "2"]
    done = CliRunner().invoke(app, [*words, "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)["cluster"]
    assert (found["workers"], found["parts"]) == (2, 1)
    assert found["seconds"] == pytest.approx(found["read"] + found["work"] + found["overhead"])
    refused = CliRunner().invoke(app, [*words, "--effects"])
    assert refused.exit_code == 2
