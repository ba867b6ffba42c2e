"""The sums behind moments on the worst neighbors that a search finds: never above the bound, and up to it."""

import itertools

import numpy as np
import pytest

from discreet.curator.records.recoding import Recoding
from discreet.errors import PlanViolation, Unsupported
from tests.covering import covering
from tests.solvers.whitened.cases import (
    FINE_CLIP,
    MOMENTS,
    RELATIONS,
    asked,
    budget_of,
    contribution,
    opened,
    pool,
    ratio_squared,
    worst_pair,
)

P = 3
ATTAINED = 0.98**2
SHEAR = Recoding(
    np.zeros(P), np.array([0.5, 1.0, 2.0]), row_norm=1.0, matrix=np.array([[1.0, 0.5, 0], [0, 1.0, -0.5], [0, 0, 1.0]])
)
SCALES = Recoding(np.zeros(P), np.array([0.5, 1.0, 2.0]), row_norm=1.5, matrix=np.array([1.0, 3.0, 0.25]))
CENTERED = Recoding(np.array([0.3, -0.9, 0.0]), np.array([0.1, 1.0, 3.0]), 0.5, 1.0)
LAYOUTS = {
    "dense": {},
    "persons": {"persons": True},
    "fine": {"fine": True, "clip": FINE_CLIP},
    "sparse": {"stored": "sparse"},
    "sparse persons": {"stored": "sparse", "persons": True},
    "recoded": {"recoding": SHEAR},
    "recoded sparse": {"recoding": SCALES, "stored": "sparse"},
    "recoded persons": {"recoding": SHEAR, "persons": True},
    "centered": {"recoding": CENTERED, "intercept": True},
    "about a center": {"center": np.array([0.3, -0.9, 0.0])},
    "about a center, persons": {"center": np.array([0.3, -0.9, 0.0]), "persons": True},
    "about a center, fine": {"center": np.array([0.3, -0.9, 0.0]), "fine": True},
    "about the end of the grid": {"center": np.array([1e300, -1e300, 2.0]), "recoding": SHEAR},
}


def layouts_of(query):
    about = [name for name in LAYOUTS if query == "noisy_mean_squares" or "about" not in name]
    return [name for name in about if query != "noisy_second_moment" or "sparse" not in name]


CASES = [(query, layout) for query in MOMENTS for layout in layouts_of(query)]


def searched(query, layout, relation, pure, rounds=2):
    """The largest squared ratio over a pool of rows and over random changes of the best one found."""
    rng = np.random.default_rng(7)
    facts = {"relation": relation, "pure": pure, **LAYOUTS[layout]}
    rows = [*pool(P, rng, spread=12)]
    if "persons" in layout:
        rows += [np.tile(row, (k, 1)) for k, row in zip((2, 3, 7, 50), rows, strict=False)]
        rows += [rng.uniform(-1, 1, (4, P)), np.vstack([rows[0], rows[1]])]
    if layout == "fine":
        rows += [row * size for row in rows[:4] for size in (0.001, 0.002, 0.003, 0.004)]
    found = []
    for row in rows:
        vector, measurement = contribution(query, row, **facts)
        found.append(vector)
        assert ratio_squared(vector, [0] * len(vector), measurement) * measurement.factor**2 <= 1
    best, at = worst_pair(found, relation, measurement)
    for _ in range(rounds):
        near = rows[at] * rng.uniform(0.8, 1.2, np.shape(rows[at]))
        found.append(contribution(query, near, **facts)[0])
        rows.append(near)
        best, at = worst_pair(found, relation, measurement)
    return best


@covering((("query", "layout"), CASES), ("relation", RELATIONS), ("pure", [False, True]))
def test_neighbors_move_a_sum_up_to_the_bound_and_not_beyond(query, layout, relation, pure):
    worst = searched(query, layout, relation, pure)
    assert worst <= 1
    # the constant is in every centered record, and a distance: no two of them are opposite or have disjoint squares
    shared = ("about" in layout or layout == "centered") and relation == "replace_one"
    assert worst >= (0.25 if shared else ATTAINED)


@covering(("pure", [False, True]), ("persons", [False, True]), ("relation", RELATIONS))
def test_targets_move_their_moments_up_to_the_bound(relation, persons, pure):
    """Exchanging one moves them by less than is paid for, as the docstring says: sqrt(2) B of 2 B, 9/8 B in L1."""
    found = []
    for target, count in itertools.product((-1.0, 3.0, 1.0, 0.0, 2.9, 1e308, -1e308, 2.0, -0.7), (1, 3, 40)):
        rows = np.tile([0.1, 0.2, 0.3], (count if persons else 1, 1))
        vector, measurement = contribution(
            "noisy_target_moments", rows, label=target, relation=relation, persons=persons, pure=pure
        )
        found.append(vector)
    worst, _ = worst_pair(found, relation, measurement)
    expected = {"l2": 0.5, "l1": 0.5625**2}[measurement.norm] if relation == "replace_one" else 1.0
    assert expected * 0.98 <= worst <= expected * (1 + 1e-9)


@covering(("clip", [1e-280, 1e-18, 1e-14, 1e-12, 1e-10, 1e-6, 1e-2, 1.0, 10.0]), ("query", MOMENTS))
def test_no_clip_is_too_small_for_the_bound(query, clip):
    """Coefficients are integers of 64 bits: a scale beyond them must not turn into another coefficient."""
    for row in (np.ones(P), -np.ones(P), np.array([0.3, -0.7, 0.1])):
        vector, measurement = contribution(query, row, clip=clip)
        assert ratio_squared(vector, [0] * len(vector), measurement) <= 1
        assert any(vector), "a short clip is no reason to count nobody"


@pytest.mark.parametrize("query", MOMENTS)
def test_persons_with_many_rows_stay_within_the_bound(query):
    rng = np.random.default_rng(1)
    for k in (2, 63, 500):
        for rows in (np.ones((k, P)), rng.uniform(-1, 1, (k, P)), np.tile(np.eye(P), (k // 2, 1))):
            vector, measurement = contribution(query, rows, persons=True)
            assert ratio_squared(vector, [0] * len(vector), measurement) <= 1


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("query", MOMENTS)
def test_the_factor_is_that_of_the_docstring(query, relation):
    factor = asked(query, np.ones((2, P)), np.ones(2), budget=budget_of(relation)).factor
    expected = 1.0 if relation != "replace_one" else 2.0 if query == "noisy_mean" else 2.0**0.5
    assert expected <= factor <= expected * (1 + 1e-9)


def test_wide_rows_and_many_columns():
    """Orthogonal rows of many entries, as a Hadamard matrix has them: the outer products' worst case at any p."""
    H = np.array([[1.0]])
    for _ in range(5):
        H = np.block([[H, H], [H, -H]])
    for query in ("noisy_mean", "noisy_second_moment"):
        found = [contribution(query, row, relation="replace_one") for row in (H[0], H[5], -H[5], -H[0])]
        worst, _ = worst_pair([vector for vector, _ in found], "replace_one", found[0][1])
        assert ATTAINED <= worst <= 1


@covering(("query", ["noisy_mean_squares", "noisy_second_moment"]), ("clip", [100.5, 1500.0, 2700.0, 4000.0]))
def test_whole_coefficients_do_not_bias_a_moment(query, clip):
    """A scale of 1.5 steps a unit is rounded down to 1 and put right afterwards."""
    rng = np.random.default_rng(0)
    X = np.rint(rng.uniform(-1, 1, (300, P)) * 2**14) / 2**14
    curator = opened(X, np.ones(300), [query], budget_of(epsilon=np.inf))
    found = getattr(curator, query)(clip=clip, n=300.0)
    exact = X.T @ X / 300
    np.testing.assert_allclose(found, exact if found.ndim == 2 else np.diag(exact), rtol=2e-3, atol=1e-6)


def test_squares_about_a_center_are_those_of_centered_records():
    rng, center = np.random.default_rng(0), np.array([0.25, -1.0, 0.125, 1.0])
    X = rng.uniform(-1, 1, (300, P))
    curator = opened(X, np.ones(300), ["noisy_mean_squares"], budget_of(epsilon=np.inf), intercept=True)
    found = curator.noisy_mean_squares(clip=1500.0, n=300.0, center=center)
    exact = np.square(X - center[:P]).mean(axis=0)
    np.testing.assert_allclose(found, [*exact, 0.0], rtol=2e-3, atol=1e-4)


@pytest.mark.parametrize("center", [np.zeros(P + 1), np.array([0.0, np.nan, 0.0])])
def test_a_center_that_does_not_fit_is_refused(center):
    with pytest.raises(PlanViolation, match="center"):
        asked("noisy_mean_squares", np.ones((2, P)), np.ones(2), center=center)


def test_a_center_would_fill_sparse_records():
    with pytest.raises(Unsupported, match="about 0"):
        contribution("noisy_mean_squares", np.ones(P), stored="sparse", center=np.zeros(P))
