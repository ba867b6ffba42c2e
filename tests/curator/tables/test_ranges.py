"""Trees of cells, and ranges from their noisy counts."""

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from discreet.accounting.gaussian import mu_of
from discreet.accounting.plan import Plan, Release
from discreet.accounting.pricing import calibrate
from discreet.budget import Budget
from discreet.curator.tables.stream import (
    Tree,
    cells_per_record,
    consistent_leaves,
    joint_cells,
    quantile_range,
    release_for,
    size_of,
    split_counts,
    tail_noise,
)
from discreet.testing import seeded
from tests.covering import covering
from tests.curator.queries.counting import count_once

LIMITS = [(0, 120), (0, 1e7), (-1e9, 1e9), (1900, 2100), (-5, -4), (0, 1e-9), (-1e308, 1.7e308), (5e7, 5e8), (-1, 1e5)]


def counted(tree, values):
    """Counts without noise."""
    cells = tree.cells(np.asarray(values, dtype=float))
    return np.bincount(cells[cells >= 0], minlength=tree.size).astype(float)


# --- cells ------------------------------------------------------------------------------------------


@given(st.sampled_from(LIMITS), st.lists(st.floats(), max_size=20), st.integers(1, 8))
def test_a_value_is_in_its_nodes_whatever_stands_beside_it(limits, values, depth):
    tree, values = Tree(*limits, depth), np.array(values, dtype=float)
    cells = tree.cells(values)
    assert cells.dtype == np.int64
    assert cells.shape == (len(values), depth)
    for value, row in zip(values, cells, strict=True):
        np.testing.assert_array_equal(tree.cells(np.array([value]))[0], row)
        if not math.isfinite(value):
            assert (row == -1).all()
            continue
        clipped = min(max(value, tree.low), tree.high)
        for level, node in enumerate(row, start=1):
            index, width = node - (2**level - 2), 2 ** (depth - level)
            low, high = tree.edges[index * width], tree.edges[(index + 1) * width]
            assert low <= clipped <= high
            assert clipped < high or high == tree.high


# --- the tree that fits best ------------------------------------------------------------------------


@pytest.mark.parametrize("depth", [1, 2, 3, 5])
def test_the_tree_is_that_of_least_squares(depth):
    """Against the normal equations, and the noise beyond each edge against the covariance that they imply."""
    leaves = 2**depth
    design = np.vstack([np.kron(np.eye(2**level), np.ones(leaves // 2**level)) for level in range(1, depth + 1)])
    counts = np.random.default_rng(depth).normal(size=len(design))
    expected = np.linalg.lstsq(design, counts, rcond=None)[0]
    np.testing.assert_allclose(consistent_leaves(Tree(0, 1, depth), counts), expected, atol=1e-12)
    covariance = np.linalg.inv(design.T @ design)
    below = np.tri(leaves + 1, leaves, -1)
    variances = np.einsum("ij,jk,ik->i", below, covariance, below)
    np.testing.assert_allclose(tail_noise(depth), np.sqrt(variances), atol=1e-12)


# --- ranges -----------------------------------------------------------------------------------------


noisy_tree = st.tuples(st.sampled_from(LIMITS), st.integers(1, 5)).flatmap(
    lambda given: st.tuples(
        st.just(Tree(*given[0], given[1])),
        st.lists(st.floats(-1e4, 1e4), min_size=(2 << given[1]) - 2, max_size=(2 << given[1]) - 2),
    )
)
tails = st.tuples(st.floats(0, 0.499), st.floats(0.501, 1))


@given(noisy_tree, st.floats(0, 300), st.none() | st.integers(1, 10_000), tails, tails)
def test_ranges_lie_within_the_limits_and_grow_with_the_quantiles(given_tree, noise, n, one, other):
    tree, counts = given_tree
    inner = max(one[0], other[0]), min(one[1], other[1])
    outer = min(one[0], other[0]), max(one[1], other[1])
    ranges = [quantile_range(tree, np.array(counts), noise, n, quantiles) for quantiles in (outer, inner)]
    for low, high in ranges:
        assert tree.low <= low < high <= tree.high
    assert ranges[0][0] <= ranges[1][0]
    assert ranges[1][1] <= ranges[0][1]


@given(st.lists(st.floats(-20, 20), min_size=1, max_size=50), tails)
@example([0.0], (0.0, 1.0))
def test_without_noise_they_are_quantiles_up_to_a_leaf(values, quantiles):
    tree = Tree(-20, 20, 8)
    low, high = quantile_range(tree, counted(tree, values), 0.0, None, quantiles)
    exact = np.quantile(values, quantiles, method="inverted_cdf")
    above, below = np.sum(np.array(values) > high), np.sum(np.array(values) < low)
    assert above <= (1 - quantiles[1]) * len(values) + 1e-6
    assert below <= quantiles[0] * len(values) + 1e-6
    leaf = 40 / 256
    assert low >= exact[0] - 2 * leaf
    assert high <= max(exact[1], np.quantile(values, min(1.0, quantiles[1] + 1 / len(values)))) + 2 * leaf


def test_missing_values_are_not_records_of_the_column():
    """Nine of ten values missing: quantiles are those of the rest, although n counts all."""
    rng, tree = np.random.default_rng(0), Tree(-1000, 1000)
    values = np.where(rng.random(200_000) < 0.1, rng.normal(size=200_000), np.nan)
    low, high = quantile_range(tree, counted(tree, values), 1.0, len(values))
    assert -3.5 < low < -2.4
    assert 2.4 < high < 3.5


@covering(("noise", [0.0, 1.0]), ("counts", [np.zeros(2**13 - 2), np.full(2**13 - 2, -5.0)]))
def test_nothing_to_see_is_all_of_the_limits(counts, noise):
    assert quantile_range(Tree(0, 1e7), counts, noise) == (0, 1e7)


SHAPES = {
    "normal": (lambda rng, n: rng.normal(50, 10, n), 100.0),
    "lognormal": (lambda rng, n: np.exp(rng.normal(10, 1, n)), 1e6),
    "uniform": (lambda rng, n: rng.uniform(0, 1, n), 1.0),
}


@pytest.mark.statistical
@covering(
    (("n", "epsilon"), [(10_000, 0.1), (10_000, 0.3), (100_000, 0.3)]), ("wide", [1, 10, 1000]), ("shape", SHAPES)
)
def test_few_records_are_clipped_and_ranges_are_not_much_too_wide(n, epsilon, wide, shape):
    """The median of 15 ranges, each bought for this epsilon alone."""
    rng = np.random.default_rng(n + wide)
    draw, high = SHAPES[shape]
    tree, values = Tree(0.0, high * wide), draw(rng, n)
    counts, noise = counted(tree, values), math.sqrt(2 * tree.depth) / mu_of(epsilon, 1e-6)
    ranges = [quantile_range(tree, counts + noise * rng.standard_normal(tree.size), noise, n) for _ in range(15)]
    clipped = [np.mean((values < low) | (values > high)) for low, high in ranges]
    widths = [high - low for low, high in ranges] / np.subtract(*np.quantile(values, [0.995, 0.005]))
    assert np.median(clipped) <= 0.013
    assert max(clipped) <= 0.04
    assert np.median(widths) <= (3.5 if shape == "lognormal" else 1.6)


# --- the price, and all of it together --------------------------------------------------------------


@pytest.mark.parametrize("relation", ["replace_one", "add_remove"])
def test_from_rows_to_ranges(relation):
    rng = np.random.default_rng(2)
    X = np.column_stack([rng.normal(40, 12, 40_000), np.exp(rng.normal(10, 0.7, 40_000)), rng.uniform(-1, 1, 40_000)])
    trees, budget = [Tree(0, 150), Tree(0, 1e8), Tree(-1e3, 1e3)], Budget(1.0, 1e-6, relation)
    plan = Plan([release := release_for(Plan([Release("noisy_gradient", 10)]), pure=False)])
    blocks = (joint_cells(trees, run) for run in np.array_split(X, 7))
    with seeded(0):  # about one fit in 200 finds a range that is far too wide (docs/reference/schema-file.md)
        found = count_once(
            plan,
            budget,
            calibrate(Plan([Release("noisy_gradient", 10), release]), budget),
            blocks,
            size_of(trees),
            cells_per_record(trees),
            n=len(X) if relation == "replace_one" else None,
        )
    for j, (tree, part) in enumerate(zip(trees, split_counts(trees, found.counts), strict=True)):
        low, high = quantile_range(tree, part, found.noise_std, len(X) if relation == "replace_one" else None)
        assert np.mean((X[:, j] < low) | (X[:, j] > high)) < 0.02
        assert high - low < 2.5 * np.ptp(np.quantile(X[:, j], [0.005, 0.995]))
