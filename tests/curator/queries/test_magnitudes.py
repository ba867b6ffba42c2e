"""Noisy counts by magnitude: exact counts, bounded contributions, true noise, and bugs that must be noticed."""

import numpy as np
import pytest

from discreet import Bounds, DPLinearRegression, DPLogisticRegression
from discreet.curator import Magnitudes, Recoding
from discreet.curator.queries.moments import DIGITS
from discreet.errors import PlanViolation
from discreet.solvers.coordinates import narrowed
from discreet.testing import seeded
from tests.covering import covering
from tests.curator.queries.effect_cases import P, rows_for
from tests.replaying import window
from tests.solvers.whitened.cases import RELATIONS, budget_of, opened, ratio_squared, worst_pair

CENTER = np.array([0.3, -0.2, 0.0])


def contribution(rows, *, persons=False, relation="zero_out", center=CENTER):
    """Return what one unit adds to the counts, next to null records, and the measurement."""
    rows = np.atleast_2d(np.asarray(rows, dtype=float))
    blank = np.full((1, rows.shape[1]), np.nan)
    X, y = np.vstack([blank, rows, blank]), np.ones(len(rows) + 2)
    groups = np.array([0, *[1] * len(rows), 2]) if persons else None
    curator = opened(X, y, ["noisy_magnitudes"], budget=budget_of(relation), groups=groups)
    with window() as seen:
        curator.noisy_magnitudes(center)
    return [int(value) for value in seen[0].exact.ravel()], seen[0]


def assert_neighbors_stay_within_the_bound(relation, persons=False):
    vectors = []
    for row in rows_for(persons):
        vector, measured = contribution(row, relation=relation, persons=persons)
        assert ratio_squared(vector, [0] * len(vector), measured) * measured.factor**2 <= 1
        vectors.append(vector)
    worst, _ = worst_pair(vectors, relation, measured)
    assert 0.9 <= worst <= 1


@covering(("relation", RELATIONS), ("persons", [False, True]))
def test_neighbors_move_counts_up_to_the_bound_and_not_beyond(relation, persons):
    assert_neighbors_stay_within_the_bound(relation, persons)


@pytest.mark.parametrize("center", [np.zeros(P), np.full(P, 1e300), np.full(P, -1e6)])
def test_no_center_breaks_the_bound(center):
    for row in (np.ones(P), -np.ones(P), np.array([1e300, -1e300, 0.5])):
        vector, measured = contribution(row, center=center)
        assert sum(value > 0 for value in vector) == P
        assert ratio_squared(vector, [0] * len(vector), measured) * measured.factor**2 <= 1


@pytest.mark.parametrize("relation", RELATIONS)
def test_the_factor_is_that_of_the_docstring(relation):
    expected = 2.0**0.5 if relation == "replace_one" else 1.0
    assert expected <= contribution(np.ones(P), relation=relation)[1].factor <= expected * (1 + 1e-9)


def test_a_row_counts_at_its_distance_from_the_center():
    vector, _ = contribution(np.array([0.3, 0.05, 1.0]))
    counts = np.reshape(vector, (P, DIGITS + 1))
    assert [np.flatnonzero(row).tolist() for row in counts] == [[0], [13], [15]]  # nothing, 2^12 and 2^14 grid steps


@pytest.mark.parametrize("center", [np.zeros(P + 1), np.array([0.0, np.nan, 0.0])])
def test_a_center_that_does_not_fit_is_refused(center):
    with pytest.raises(PlanViolation, match="center"):
        contribution(np.ones(P), center=center)


# --- what the counts are for ---------------------------------------------------------------------------

EDGES = 2.0 ** np.arange(-14.0, 3.0)


def magnitudes(column, noise=0.0):
    """Return the counts of one column about 0."""
    sizes = np.searchsorted(EDGES, np.abs(column), side="right")
    return Magnitudes(np.bincount(sizes, minlength=len(EDGES))[None].astype(float), EDGES, noise)


@pytest.mark.parametrize("width", [1.0, 0.1, 0.01])
def test_a_range_is_narrowed_to_where_rows_are(width):
    rows = width * np.random.default_rng(0).uniform(-1.0, 1.0, 10_000)
    scale = narrowed(Recoding(np.zeros(1), np.ones(1)), magnitudes(rows), 10_000.0, np.zeros(1)).scale[0]
    assert width <= scale <= min(1.0, 2.0 * width)


@pytest.mark.parametrize("noise", [0.0, 100.0, 1000.0])
@pytest.mark.parametrize("share", [0.003, 0.05, 0.5])
def test_a_rare_category_is_never_blown_up(share, noise):
    rows = (np.arange(10_000) < share * 10_000).astype(float)
    for center in (0.0, share):
        kept = narrowed(Recoding(np.zeros(1), np.ones(1)), magnitudes(rows - center, noise), 1e4, np.full(1, center))
        assert kept.scale[0] == 1.0


@pytest.mark.parametrize("center", [0.0, 0.03])
def test_ranges_too_wide_alike_are_found_together_and_rare_categories_next_to_them_stay(center):
    """Alone a column's end is taken to be farther out, as noise hides it; now and then noise looks like rows there."""
    rng, noise = np.random.default_rng(0), 120.0
    numbers = [0.01 * rng.normal(size=10_000) + center for _ in range(8)]
    categories = [(np.arange(10_000) < share * 10_000).astype(float) for share in (0.003, 0.02, 0.05)]
    middle = np.array([center] * 8 + [0.003, 0.02, 0.05]) if center else np.zeros(11)
    seen = [magnitudes(column - at).counts for column, at in zip([*numbers, *categories], middle, strict=True)]
    counts = np.concatenate(seen) + noise * rng.normal(size=(11, len(EDGES)))
    scale = narrowed(Recoding(np.zeros(11), np.ones(11)), Magnitudes(counts, EDGES, noise), 1e4, middle).scale
    alone = narrowed(Recoding(np.zeros(1), np.ones(1)), Magnitudes(counts[:1], EDGES, noise), 1e4, middle[:1]).scale
    assert np.count_nonzero(scale[:8] < 0.7 * alone[0]) >= 7
    assert (scale[:8] >= 0.03).all()
    assert (scale[8:] == 1.0).all()


@pytest.mark.parametrize("noise", [0.0, 100.0])
def test_rows_that_are_null_without_an_intercept_are_rows_at_0(noise):
    """A row of zeros is counted nowhere: those that are counted are not all there are."""
    rows = np.where(np.arange(10_000) < 500, np.linspace(-1e-3, 1e-3, 10_000), 0.0)
    seen = magnitudes(rows, noise)
    seen.counts[0, 0] = 0.0
    assert narrowed(Recoding(np.zeros(1), np.ones(1)), seen, 1e4, np.zeros(1)).scale[0] == 1.0


@pytest.mark.thorough
@pytest.mark.parametrize("kind", [DPLogisticRegression, DPLinearRegression])
def test_ranges_a_hundred_times_too_wide_hardly_matter(kind):
    """At 20,000 rows and epsilon 1; without the counts the loss is many times as far above the fitting ranges'."""
    rng = np.random.default_rng(1)
    X, losses = rng.normal(size=(20_000, 6)), {}
    score = X @ np.array([1.0, -1.0, 0.5, 0.5, 0.0, 0.0])
    is_classes = kind is DPLogisticRegression
    y = (score + rng.logistic(size=len(X)) > 0).astype(float) if is_classes else score + rng.normal(size=len(X))
    outcome = {"classes": (0, 1)} if is_classes else {"target": (-10.0, 10.0)}
    for width in (4.0, 400.0):
        bounds = Bounds(features=[(-width, width)] * 6, **outcome)
        with seeded(2):
            model = kind(epsilon=1.0, bounds=bounds, ledger=False).fit(X, y)
        fitted = X @ np.ravel(model.coef_) + np.ravel(model.intercept_)[0]
        signs = 2.0 * y - 1.0
        losses[width] = np.mean(np.logaddexp(0.0, -signs * fitted) if is_classes else (y - fitted) ** 2)
    assert losses[400.0] < 1.03 * losses[4.0]
