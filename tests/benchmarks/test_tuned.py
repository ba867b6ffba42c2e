"""Defaults against tuned settings: the search only varies what a solver has, and finds better settings."""

from benchmarks.comparisons.tuned import Cell, Protocol, excess, tune
from benchmarks.problems.twenty_columns import twenty_columns
from discreet.solvers import GradientDescent


def test_tuning_mends_a_poor_start_and_never_ends_worse():
    cell, protocol = Cell("labels-even", "gd", "zero_out", 4.0), Protocol(tuning_seeds=1, rounds=1)
    table = twenty_columns("labels-even", n=2000)
    poor = GradientDescent(n_steps=20, clip=1e-3, step_size=0.5)
    better = tune(table, cell, poor, protocol)
    seed = 10_000
    assert excess(table, cell, better, seed) < 0.7 * excess(table, cell, poor, seed)
