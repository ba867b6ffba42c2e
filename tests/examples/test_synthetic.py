import numpy as np

from discreet.experiments.sweep import accuracy_sweep, references
from discreet.experiments.synthetic import CODEBOOK, hospital


def test_the_same_seed_is_the_same_table():
    first, second, other = hospital(500), hospital(500), hospital(500, seed=1)
    assert np.array_equal(first.X, second.X)
    assert np.array_equal(first.y, second.y)
    assert not np.array_equal(first.X, other.X)


def test_the_codebook_covers_the_law_and_was_not_measured_from_it():
    table = hospital(40_000)
    assert table.X.shape == (40_000, len(CODEBOOK))
    assert table.names == tuple(CODEBOOK)
    low, high = table.bounds.ranges(len(table.names))
    assert np.array_equal(table.X, np.clip(table.X, low, high))
    continuous = [j for j, name in enumerate(table.names) if CODEBOOK[name][1] > 20]
    assert (table.X[:, continuous].max(axis=0) < high[continuous]).all()
    assert table.bounds == hospital(10, seed=7).bounds  # the same whatever the rows


def test_learning_is_worth_it_and_the_outcome_is_not_certain():
    table = hospital(8000)
    found = references(table.rows(0, 6000), table.rows(6000, 8000))
    assert found.majority + 0.08 < found.non_private < 0.9


def test_a_sweep_counts_its_fits_and_what_they_spend():
    table, done = hospital(600), []
    train, public = table.rows(0, 400), table.rows(400, 600)
    sweep = accuracy_sweep(train, public, epsilons=(0.5, 5), repeats=2, done=lambda: done.append(1))
    assert len(done) == 4
    assert sweep.spent == 11.0
    assert all(0 <= value <= 1 for row in sweep.accuracies for value in row)
