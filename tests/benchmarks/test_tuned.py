"""Defaults against tuned settings: the search only varies what a solver has, and finds better settings."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from benchmarks.__main__ import app
from benchmarks.comparisons.tuned import Cell, Protocol, excess, held_back, run_cell, tune
from benchmarks.methods.own_settings import axes_of, scaled
from benchmarks.pages.tuned import is_below_trivial, ratio, summary
from benchmarks.problems.twenty_columns import NAMES, twenty_columns
from discreet.solvers import CoordinateDescent, Geometry, GradientDescent, Preconditioned


@pytest.mark.parametrize("name", NAMES)
def test_the_least_loss_is_below_that_of_any_constant(name):
    table = twenty_columns(name, n=500)
    assert 0 < table.best_loss < table.trivial_loss
    assert np.abs(table.X).max() <= 1


def test_settings_are_found_inside_stages_and_geometries():
    staged = Preconditioned(GradientDescent(n_steps=10, relative_clip=0.4))
    assert axes_of(staged) == [("solver", "n_steps"), ("solver", "relative_clip"), ("solver", "relative_step")]
    assert scaled(staged, ("solver", "n_steps"), 1 / 9).solver.n_steps == 1
    coordinates = CoordinateDescent(geometry=Geometry(clip=1.0))
    assert ("geometry", "clip") in axes_of(coordinates)
    assert scaled(coordinates, ("geometry", "clip"), 3.0).geometry.clip == 3.0


def test_tuning_mends_a_poor_start_and_never_ends_worse():
    cell, protocol = Cell("labels-even", "gd", "zero_out", 4.0), Protocol(tuning_seeds=1, rounds=1)
    table = twenty_columns("labels-even", n=2000)
    poor = GradientDescent(n_steps=20, clip=1e-3, step_size=0.5)
    better = tune(table, cell, poor, protocol)
    seed = 10_000
    assert excess(table, cell, better, seed) < 0.7 * excess(table, cell, poor, seed)


def test_the_summary_counts_cells():
    cell = {"solver": "gd", "problem": "p", "relation": "zero_out", "epsilon": 1.0, "trivial": 1.0}
    ratios = ([2.0, 2.0], [1.0, 1.0]), ([9.0, 9.1], [1.0, 1.0]), ([0.5, 0.5], [0.5, 0.5])
    cells = [{**cell, "default": default, "tuned": tuned} for default, tuned in ratios]
    assert summary(cells).splitlines()[2] == "| gd | 3 | 67% | 1 | 2.0 | 2 |"
    assert not is_below_trivial({**cell, "default": [0.2, 2.0]})


def test_drawn_problems_are_compared_by_their_objectives():
    assert held_back(3) == ("generated-1", "generated-3", "generated-5")
    found = run_cell(Cell("generated-1", "gd", "zero_out", 4.0), Protocol(seeds=1, tuning_seeds=1, rounds=0))
    assert found["trivial"] >= 0
    assert found["default"] == found["tuned"]
    assert found["default"][0] >= 0


def test_the_command_writes_what_it_ran_and_goes_on_later(tmp_path):
    arguments = [
        "tuned",
        "--quick",
        "--jobs",
        "1",
        "--solver",
        "gd",
        "--problem",
        "labels-even",
        "--out",
        str(tmp_path),
    ]
    first = CliRunner().invoke(app, arguments)
    assert first.exit_code == 0, first.output
    cells = json.loads((tmp_path / "tuned.json").read_text())
    assert len(cells) == 1
    assert ratio(cells[0]) > 0
    again = CliRunner().invoke(app, arguments)
    assert again.exit_code == 0
    assert json.loads((tmp_path / "tuned.json").read_text()) == cells
