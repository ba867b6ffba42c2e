"""What intervals need of the records: exact sums, bounded contributions, true noise, and bugs that must be noticed."""

from dataclasses import replace
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from scipy import sparse, stats

from discreet.accounting.plan import Plan, Release
from discreet.curator import PrivateData
from discreet.curator.engines import engine_for
from discreet.curator.kernels import effects as kernels
from discreet.curator.lattice.lattice import place_weights
from discreet.curator.queries import effects
from discreet.curator.records import recoding as recoding_module
from discreet.errors import PlanViolation, Unsupported
from discreet.losses import Huber, Logistic, Poisson, Squared
from tests.curator.queries import effect_cases
from tests.curator.queries.effect_cases import QUERIES, SHEAR, STRETCH, P, words_of
from tests.priced import at_noise
from tests.solvers.whitened.cases import (
    RELATIONS,
    bounds_of,
    budget_of,
    dense_of,
    opened,
    ratio_squared,
    records_of,
)

POINT = np.array([0.4, -0.2, 0.1])
LOSSES = {"logistic": Logistic(), "squared": Squared(), "huber": Huber(0.5), "poisson": Poisson(3.0)}
asked, contribution = partial(effect_cases.asked, w=POINT), partial(effect_cases.contribution, w=POINT)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("layout", ["dense", "recoded", "persons", "recoded persons", "recoded slack"])
def test_neighbors_move_a_sum_up_to_the_bound_and_not_beyond(query, relation, layout):
    facts = {"recoding": SHEAR if "recoded" in layout else None, "persons": "persons" in layout}
    facts["slack"] = 1.5 if "slack" in layout else 1.0
    facts["clip"] = 1e-4 if facts["persons"] else 0.05  # so that each of a person's rows would reach the bound
    rows = effect_cases.rows_for(facts["persons"])
    effect_cases.assert_neighbors_reach_the_bound(query, relation, rows, (-1, 1), w=POINT, **facts)


def assert_long_rows_stay_within_the_bound(query, relation, persons=False):
    """Whitened rows up to 60 lengths that count, and up to 400 that do not: hostile rows, alone and of one person."""
    rows = [[0.14, 0.4, 1.0], [-0.14, 0.4, -1.0], [0.1, -1.0, 1.0], [0.0, 1.0, 0.0], *effect_cases.rows_for(persons)]
    facts = {"recoding": STRETCH, "persons": persons, "clip": 1e-6, "slack": 1.5}
    effect_cases.assert_neighbors_reach_the_bound(query, relation, rows, (-1, 1), w=POINT, **facts)


@pytest.mark.parametrize("persons", [False, True])
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("query", QUERIES)
def test_whole_rows_far_beyond_the_reach_stay_within_the_bound(query, relation, persons):
    assert_long_rows_stay_within_the_bound(query, relation, persons)


@pytest.mark.parametrize("query", QUERIES)
def test_rows_beyond_the_lattice_add_nothing(query):
    for row in (np.ones(P), [0.2, 0.0, 0.0], [-1.0, 0.0, 1.0]):
        assert not any(contribution(query, row, recoding=STRETCH)[0])


@pytest.mark.parametrize("query", ["noisy_weighted_gradient", "noisy_curvature"])
def test_a_dropped_row_that_still_adds_up_is_caught(monkeypatch, query):
    """A planted bug: it keeps large entries, with the norm of a short row."""
    honest = recoding_module.recode_rows

    def recode_rows(*arguments):
        honest(*arguments)
        dropped = (arguments[-3] == 0) & (arguments[1] > 0)
        arguments[-4][dropped] = 32767
        arguments[-3][dropped] = 1

    monkeypatch.setattr(recoding_module, "recode_rows", recode_rows)
    with pytest.raises(AssertionError):
        assert_long_rows_stay_within_the_bound(query, "zero_out")
    with pytest.raises(AssertionError):
        test_rows_beyond_the_lattice_add_nothing("noisy_weighted_gradient")


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("query", QUERIES)
def test_the_factor_is_that_of_the_docstring(query, relation):
    factor = asked(query, np.ones((2, P)), np.ones(2), budget=budget_of(relation)).factor
    pairs = {"noisy_weighted_gradient": 2.0, "noisy_squared_slopes": 1.0}
    expected = pairs.get(query, 2.0**0.5) if relation == "replace_one" else 1.0
    assert expected <= factor <= expected * (1 + 1e-9)


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("cell", [np.nan, np.inf, -np.inf])
def test_null_records_add_nothing(query, cell):
    for row in (np.full(P, cell), np.array([1.0, cell, 1.0])):
        assert not any(contribution(query, row)[0])
    assert not any(contribution(query, np.ones(P), label=7)[0])


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("query", QUERIES)
def test_no_loss_and_no_point_breaks_the_bound(query, name):
    """Points far out, where slopes are huge or overflow; targets at their ends."""
    loss = LOSSES[name]
    labels = (-1, 1) if loss.task == "classification" else (-1.0, 3.0, 1e308)
    known = replace(bounds_of(loss), target=(0.0, 3.0)) if name == "poisson" else bounds_of(loss)
    for w in (POINT, 1e6 * POINT, -1e12 * POINT, np.zeros(P)):
        for row in (np.ones(P), -np.ones(P), np.array([1e300, -1e300, 0.5])):
            for label in labels:
                vector, found = contribution(query, row, label=label, w=w, loss=loss, bounds=known)
                assert ratio_squared(vector, [0] * len(vector), found) * found.factor**2 <= 1


@pytest.mark.parametrize("clip", [1e-280, 1e-12, 1e-3, 1.0, 50.0])
@pytest.mark.parametrize("query", QUERIES)
def test_no_clip_breaks_the_bound(query, clip):
    for row in (np.ones(P), np.array([0.3, -0.7, 0.1])):
        vector, found = contribution(query, row, clip=clip)
        assert ratio_squared(vector, [0] * len(vector), found) <= 1


def made(n=300, seed=0, groups=None, loss=None):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, P))
    X[rng.random(n) < 0.1] = np.nan
    return records_of(X, rng.choice([-1.0, 1.0], n), groups=groups, intercept=False, loss=loss)[0]


def by_hand(records, loss, w, reach, slack):
    """Each row's integers, length, weight and share, and its slope and curvature at the point."""
    rows = dense_of(records).astype(float)
    shares = np.ones(len(rows)) if records.shares is None else records.shares.astype(float)
    r = np.maximum(records.norms, 1)
    weights = np.minimum(np.minimum(1.0, reach / r), slack * (reach / r) ** 2) / shares
    margins = rows @ w / records.grid.one
    t = records.targets
    s = 1 / (1 + np.exp(t * margins))
    return rows, weights, shares, -t * s, s * (1 - s)


@pytest.mark.parametrize("slack", [1.0, 1.5])
@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("threads", [1, 3])
def test_sums_are_what_they_say(grouped, threads, slack):
    """Against plain arithmetic, up to half a lattice step per row."""
    groups = np.random.default_rng(1).integers(0, 60, 300) if grouped else None
    records, loss, reach, bound = made(groups=groups), Logistic(), 15000.0, 1 << 40
    point = place_weights(POINT, records.grid)
    engine = engine_for(records, threads=threads)
    rows, weights, _, slopes, bends = by_hand(records, loss, POINT, reach, slack)
    one = float(records.grid.one)
    gradient = effects.WeightedGradientQuery(point, loss, bound, 2.0**20, reach, slack).over(engine)
    np.testing.assert_allclose(gradient / 2**20, (slopes * weights) @ rows, rtol=1e-4, atol=1.0)
    hessian = effects.CurvatureQuery(point, loss, bound, 1000.0, reach, slack).over(engine)
    np.testing.assert_allclose(hessian / 1000.0, (rows.T * (bends * weights)) @ rows, rtol=0.02, atol=one**2 / 20)
    units = records.starts if records.starts is not None else np.arange(len(rows) + 1)
    scores = np.add.reduceat(rows * (slopes * weights)[:, None], units[:-1], axis=0)
    scale = (1 << 19) / (2 * one)
    covariance = effects.ScoreQuery(point, loss, bound, scale, reach, slack).over(engine)
    np.testing.assert_allclose(covariance / scale**2, scores.T @ scores, rtol=1e-3, atol=one)
    size = effects.SlopeQuery(point, loss, bound, 1e6).over(engine)
    alive = records.norms > 0
    shares = 1.0 if records.shares is None else 1.0 / records.shares
    np.testing.assert_allclose(size[0] / 1e6, (slopes**2 * shares * alive).sum(), rtol=1e-4)


def test_sums_over_parts_add_up():
    """So that parts of a table may be summed where they lie."""
    records, loss = made(400), Logistic()
    halves = [made(400), made(400)]
    for kind in (effects.WeightedGradientQuery, effects.CurvatureQuery, effects.ScoreQuery, effects.SlopeQuery):
        query = kind(place_weights(POINT, records.grid), loss, 1 << 38, 100.0, 15000.0)
        parts = [query.over(engine_for(part)) for part in halves]
        np.testing.assert_array_equal(parts[0] + parts[1], 2 * query.over(engine_for(records)))


@pytest.mark.few(2)
@pytest.mark.parametrize("query", QUERIES)
def test_noise_is_gaussian_of_the_planned_size(query):
    """4,000 answers about nobody, at a noise multiplier of 1; a third more must be noticed."""
    runs, clip, X = 4_000, 0.5, np.full((1, P), np.nan)
    data = PrivateData(X, [1.0], bounds_of(Logistic()), fit_intercept=False)
    curator = data.open(at_noise(Plan([Release(query, runs)]), budget_of("zero_out"), 1.0), Logistic())
    found = [np.ravel(getattr(curator, query)(POINT, **words_of(query, clip)))[0] for _ in range(runs)]
    assert stats.kstest(np.array(found) / clip, "norm").pvalue > 1e-6
    assert stats.kstest(np.array(found) / (1.3 * clip), "norm").pvalue < 1e-6


WORST = {
    "noisy_weighted_gradient": (([1.0, 0.0, 0.0], 1), ([1.0, 0.0, 0.0], -1)),
    "noisy_curvature": (([1.0, 0.0, 0.0], 1), ([0.0, 1.0, 0.0], 1)),
    "noisy_score_covariance": (([1.0, 0.0, 0.0], 1), ([0.0, 1.0, 0.0], 1)),
    "noisy_squared_slopes": (([1.0, 0.0, 0.0], 1), ([np.nan, 0.0, 0.0], 1)),
}


def lower_bound_on_mu(query, runs=20_000):
    """Clopper-Pearson bound on mu for ``replace_one``, from the projection onto the line between two sides' means."""
    sides = []
    for row, label in WORST[query]:
        data = PrivateData(np.array([row]), [label], bounds_of(Logistic()), fit_intercept=False)
        curator = data.open(at_noise(Plan([Release(query, runs)]), budget_of("replace_one"), 1.0), Logistic())
        words = words_of(query, 0.01, 1.0)
        answers = [np.ravel(getattr(curator, query)(np.zeros(P), **words)) for _ in range(runs)]
        sides.append(np.array(answers))
    one, other = sides
    line = other[::2].mean(axis=0) - one[::2].mean(axis=0)
    middle = (other[::2].mean(axis=0) + one[::2].mean(axis=0)) @ line / 2
    alarms, misses = int((one[1::2] @ line >= middle).sum()), int((other[1::2] @ line < middle).sum())
    rates = [stats.beta.ppf(1 - 1e-6, errors + 1, runs // 2 - errors) for errors in (alarms, misses)]
    return float(stats.norm.isf(rates[0]) - stats.norm.ppf(rates[1]))


@pytest.mark.few(1)
@pytest.mark.parametrize("query", QUERIES)
def test_an_audit_finds_what_is_claimed_and_no_more(query):
    assert 0.75 <= lower_bound_on_mu(query) <= 1.0


@pytest.mark.thorough
def test_an_audit_refutes_a_forgotten_root_of_two(monkeypatch):
    monkeypatch.setattr(effects, "ROOT_TWO", Fraction(1))
    assert lower_bound_on_mu("noisy_curvature") > 1.0


def test_what_cannot_be_answered_is_refused():
    X, y = np.ones((4, P)), np.ones(4)
    curator = opened(sparse.csr_array(X), y, ["noisy_curvature"])
    with pytest.raises(Unsupported):
        curator.noisy_curvature(POINT, clip=1.0, reach=1.0)
    with pytest.raises(Unsupported, match="needs a delta"):  # before anything is charged
        opened(X, y, ["noisy_curvature"], budget=budget_of(pure=True))
    curator = opened(X, y, ["noisy_curvature"])
    with pytest.raises(PlanViolation):
        curator.noisy_curvature(POINT[:2], clip=1.0, reach=1.0)
    with pytest.raises(PlanViolation):
        curator.noisy_curvature(POINT, clip=1.0, reach=0.0)
    curator.noisy_curvature(POINT, clip=1.0, reach=1.0)
    with pytest.raises(PlanViolation):
        curator.noisy_curvature(POINT, clip=1.0, reach=1.0)


def loose(kernel, *changes):
    """A kernel without one of its limits, in plain Python."""
    import inspect

    source = inspect.getsource(kernel.py_func).replace("@njit(cache=True, nogil=True)\n", "")
    for old, new in changes:
        assert old in source, "the kernel has changed: so must this bug"
        source = source.replace(old, new)
    space = dict(vars(kernels))
    space["_margin"] = kernels._margin.py_func if hasattr(kernels._margin, "py_func") else kernels._margin
    exec(source, space)
    return space[kernel.py_func.__name__]


BUGS = {
    "curvature_coefficients": ("noisy_curvature", (("facts[i, 2]))", "1e300))"),)),
    "squared_slope_sum": ("noisy_squared_slopes", (("facts[i, 2]))", "1e300))"),)),
    "unit_scores": ("noisy_score_covariance", (("bound_vector(score, limit, False, whole)", "whole[:] = score"),)),
}


@pytest.mark.parametrize("bug", BUGS)
def test_a_limit_that_is_left_out_is_noticed(monkeypatch, bug):
    query, changes = BUGS[bug]
    contribution(query, np.ones(P))  # the known answers have been checked
    monkeypatch.setattr(kernels, bug, loose(getattr(kernels, bug), *changes))
    vector, found = contribution(query, np.ones(P), clip=1e-4)
    assert ratio_squared(vector, [0] * len(vector), found) > 1
