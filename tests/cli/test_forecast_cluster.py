"""The predicted time of a fit on a cluster follows its plan and sizes, and is found on the command line."""

import json

import pytest
from typer.testing import CliRunner

from discreet import DPLogisticRegression
from discreet.cli.app import app
from discreet.cli.forecast import LATENCY, PER_PART, cluster_time
from discreet.solvers import GradientDescent

MODEL = DPLogisticRegression(1.0, 1e-9, classes=(0, 1), solver=GradientDescent(n_steps=10))


def test_work_is_shared_and_overhead_is_not():
    one, many = (cluster_time(MODEL, 10**8, 100, workers) for workers in (1, 100))
    assert one.passes == many.passes == 10
    assert one.read == pytest.approx(100 * many.read)
    assert one.work == pytest.approx(100 * many.work)
    assert one.overhead == many.overhead == pytest.approx(10 * (LATENCY + PER_PART * one.parts))
    assert many.seconds == pytest.approx(many.read + many.work + many.overhead)


def test_it_is_found_on_the_command_line():
    words = ["forecast", "-n", "3000", "-p", "3", "--seeds", "2", "--solver", "gd", "--cluster-workers", "2"]
    done = CliRunner().invoke(app, [*words, "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)["cluster"]
    assert (found["workers"], found["parts"]) == (2, 1)
    assert found["seconds"] == pytest.approx(found["read"] + found["work"] + found["overhead"])
    refused = CliRunner().invoke(app, [*words, "--effects"])
    assert refused.exit_code == 2
