"""Private ranges on worst-case neighbors with frozen answers: nothing but the counts may differ, and they by little."""

import numpy as np
import pytest

from discreet import Bounds
from discreet.accounting.cell_counts import QUERY
from discreet.accounting.plan import Plan, Release
from discreet.budget import Budget
from discreet.curator.queries import counts
from discreet.curator.queries.counts import count_once
from discreet.curator.records.admission import grouping
from discreet.curator.tables.quantiles import Tree, cells_per_record, joint_cells, quantile_range, size_of, split_counts
from discreet.testing import Data, Pair, assert_fresh_noise, assert_replay, neighbor_pairs
from tests.replaying import worst_ratio

RELATIONS = ("replace_one", "zero_out", "add_remove")
TREES = (Tree(-1.0, 1.0, 4), Tree(0.0, 1e7, 5), Tree(1900.0, 2100.0, 3))
BOUNDS = Bounds([(tree.low, tree.high) for tree in TREES], classes=(0, 1))


def table(persons, n=12):
    rng = np.random.default_rng(3)
    X = np.column_stack([rng.uniform(tree.low, tree.high, n) for tree in TREES])
    return X, rng.integers(0, 2, n), np.arange(n) // 2 if persons else None


def opposite_persons():
    """A person whose five rows are low, and one whose two rows are high: they share no cell."""
    X, y, groups = table(True)
    low, high = BOUNDS.ranges(len(TREES))
    sides = []
    for row, count in ((low, 5), (high, 2)):
        rest = groups != groups[-1]
        rows, persons = np.tile(row, (count, 1)), np.full(count, groups[-1])
        sides.append(
            Data(np.vstack([X[rest], rows]), np.append(y[rest], [0] * count), np.append(groups[rest], persons))
        )
    return Pair("low for high", *sides)


def ranges_of(relation="replace_one", *, pure=False, step=5, noise_multiplier=0.01):
    """What a fit does with private ranges: rows become cells as they are read."""
    budget = Budget(1.0, 0.0 if pure else 1e-6, relation)

    def fit(X, y, groups=None):
        share, n = np.ones(len(X), dtype=np.int64), len(X)
        if groups is not None:
            order, starts, share = grouping(groups, len(X))
            X, n = X[order], len(starts) - 1
        pieces = [slice(first, first + step) for first in range(0, len(X), step)]
        found = count_once(
            Plan([Release(QUERY, 1)]),
            budget,
            noise_multiplier,
            (joint_cells(TREES, X[piece]) for piece in pieces),
            size_of(TREES),
            cells_per_record(TREES),
            n=n if budget.neighbors.n_is_public else None,
            shares=(share[piece] for piece in pieces),
        )
        public = n if budget.neighbors.n_is_public else None
        parts = zip(TREES, split_counts(TREES, found.counts), strict=True)
        return [quantile_range(tree, part, found.noise_std, public) for tree, part in parts]

    return fit


@pytest.mark.parametrize("persons", [False, True], ids=["records", "persons"])
@pytest.mark.parametrize("pure", [False, True], ids=["gaussian", "laplace"])
@pytest.mark.parametrize("relation", RELATIONS)
def test_private_ranges_replay(relation, pure, persons):
    pairs = list(neighbor_pairs(*table(persons), relation=relation, bounds=BOUNDS))
    assert len(pairs) >= 17
    if persons and relation == "replace_one":
        pairs.append(opposite_persons())
    assert 0.999 < worst_ratio(ranges_of(relation, pure=pure), pairs, relation) <= 1.0


@pytest.mark.parametrize("pure", [False, True], ids=["gaussian", "laplace"])
def test_the_only_record_removed(pure):
    X, y, _ = table(False, n=1)
    assert_replay(ranges_of("add_remove", pure=pure), (X, y), (X[:0], y[:0]), "add_remove")


@pytest.mark.parametrize("pure", [False, True], ids=["gaussian", "laplace"])
def test_noise_is_never_used_twice(pure):
    """With so much of it that no two of its integers are equal by chance."""
    fit = ranges_of(pure=pure, noise_multiplier=1e4)
    assert assert_fresh_noise(fit, table(False), runs=3).releases == 3


def test_a_bug_is_found(monkeypatch):
    """Control: a record that is counted in full in each of its cells."""
    monkeypatch.setattr(counts.math, "isqrt", lambda squares: round((squares * cells_per_record(TREES)) ** 0.5))
    pairs = neighbor_pairs(*table(False), relation="zero_out", bounds=BOUNDS)
    with pytest.raises(AssertionError, match="of its sensitivity"):
        worst_ratio(ranges_of("zero_out"), pairs, "zero_out")
