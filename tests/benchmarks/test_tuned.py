"""Defaults against tuned settings: the search only varies what a solver has, and finds better settings."""

from benchmarks.comparisons.tuned import Cell, Protocol, excess, tune
from benchmarks.methods.own_settings import axes_of, scaled
from benchmarks.problems.twenty_columns import twenty_columns
from discreet.solvers import CoordinateDescent, Geometry, GradientDescent, Preconditioned


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
