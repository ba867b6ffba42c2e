"""The predicted time of a fit on a cluster follows its plan and sizes, and is found on the command line."""

import json

import pytest
from typer.testing import CliRunner

from discreet import DPLogisticRegression
from discreet.cli.app import app
from discreet.cli.forecast import LATENCY, PER_PART, cluster_time
from discreet.errors import Unsupported
from discreet.solvers import GradientDescent

MODEL = DPLogisticRegression(1.0, 1e-9, classes=(0, 1), solver=GradientDescent(n_steps=10))


def test_work_is_shared_and_overhead_is_not():
    one, many = (cluster_time(MODEL, 10**8, 100, workers) for workers in (1, 100))
    assert one.passes == many.passes == 10
    assert one.read == pytest.approx(100 * many.read)
    assert one.work == pytest.approx(100 * many.work)
    assert one.overhead == many.overhead == pytest.approx(10 * (LATENCY + PER_PART * one.parts))
    assert many.seconds == pytest.approx(many.read + many.work + many.overhead)


def test_more_workers_than_parts_do_not_help():
    few, many = (cluster_time(MODEL, 10**6, 10, workers) for workers in (4, 400))
    assert few.parts == 4
    assert few.seconds == many.seconds


def test_passes_that_return_matrices_cost_more_per_column():
    default = DPLogisticRegression(1.0, 1e-9, classes=(0, 1))
    narrow, wide = (cluster_time(default, 10**7, p, 2) for p in (20, 200))
    assert wide.work / wide.passes > 10 * narrow.work / narrow.passes


@pytest.mark.parametrize("given", [{"workers": 0}, {"solver": "agd"}])
def test_what_cannot_be_predicted_is_refused(given):
    model = DPLogisticRegression(1.0, 1e-9, classes=(0, 1), solver=given.get("solver", "gd"))
    with pytest.raises(Unsupported):
        cluster_time(model, 10**6, 10, given.get("workers", 2))


def test_it_is_found_on_the_command_line():
    words = ["forecast", "-n", "3000", "-p", "3", "--seeds", "2", "--solver", "gd", "--cluster-workers", "2"]
    done = CliRunner().invoke(app, [*words, "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)["cluster"]
    assert (found["workers"], found["parts"]) == (2, 1)
    assert found["seconds"] == pytest.approx(found["read"] + found["work"] + found["overhead"])
    refused = CliRunner().invoke(app, [*words, "--effects"])
    assert refused.exit_code == 2
