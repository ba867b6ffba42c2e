"""Several outputs: what refined steps and intervals need of the records, in exact, bounded sums with true noise."""

import inspect
import math
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from scipy import stats

from discreet import Bounds
from discreet.accounting.plan import Plan, Release
from discreet.curator import PrivateData
from discreet.curator.engines import engine_for, part_tasks
from discreet.curator.kernels import class_effects as kernels
from discreet.curator.known_answers import class_effects as several
from discreet.curator.known_answers import effects as one_output
from discreet.curator.lattice.lattice import place_weights
from discreet.curator.queries import effects
from discreet.errors import PlanViolation, Unsupported
from discreet.losses import Logistic, Softmax
from discreet.losses.base import couplings
from tests.curator.queries import effect_cases
from tests.curator.queries.effect_cases import QUERIES, SHEAR, P, words_of
from tests.priced import at_noise
from tests.solvers.whitened.cases import (
    RELATIONS,
    budget_of,
    dense_of,
    opened,
    ratio_squared,
    records_of,
)

LABELS = (0, 1, 2)
LOSS = Softmax(len(LABELS))
POINT = np.array([[0.4, -0.2, 0.1], [-0.3, 0.5, 0.0], [0.2, 0.2, -0.6]])
KNOWN = Bounds(1.0, classes=LABELS, n=None)
asked, contribution = (
    partial(one, w=POINT, loss=LOSS, bounds=KNOWN) for one in (effect_cases.asked, effect_cases.contribution)
)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("layout", ["dense", "recoded", "persons", "recoded persons"])
def test_neighbors_move_a_sum_up_to_the_bound_and_not_beyond(query, relation, layout):
    facts = {"recoding": SHEAR if "recoded" in layout else None, "persons": "persons" in layout}
    facts["clip"] = 1e-4 if facts["persons"] else 0.05  # so that each of a person's rows would reach the bound
    rows = effect_cases.rows_for(facts["persons"])
    effect_cases.assert_neighbors_reach_the_bound(
        query, relation, rows, LABELS, w=POINT, loss=LOSS, bounds=KNOWN, **facts
    )


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


@pytest.mark.parametrize("query", QUERIES)
def test_no_point_and_no_clip_breaks_the_bound(query):
    """Points far out, where margins differ by more than exponentials bear; clips from tiny to wide."""
    for w in (POINT, 1e6 * POINT, -1e12 * POINT, np.zeros((P, 3))):
        for row in (np.ones(P), -np.ones(P), np.array([1e300, -1e300, 0.5]), np.array([0.3, -0.7, 0.1])):
            for label, clip in zip(LABELS, (1e-280, 1e-3, 1.0), strict=True):
                vector, found = contribution(query, row, label=label, w=w, clip=clip)
                assert ratio_squared(vector, [0] * len(vector), found) <= 1


def test_wide_clips_cut_nothing():
    """Slopes are at most the root of 2 and couplings 1/4 long, so a row's weight alone bounds what it adds."""
    reach, one = 0.5, np.array([0.9, -0.9, 0.4])
    chances, weight = np.exp(one @ POINT) / np.exp(one @ POINT).sum(), (reach / np.linalg.norm(one)) ** 2
    slopes = chances - np.eye(3)[2]
    found = asked("noisy_weighted_gradient", one[None], [2.0], clip=math.sqrt(2) * reach, reach=reach)
    np.testing.assert_allclose(found.exact * found.unit.step, np.outer(slopes, one) * weight, rtol=1e-3)
    found = asked("noisy_curvature", one[None], [2.0], clip=reach**2 / 4, reach=reach)
    pairs = [chances[0] * chances[1], chances[0] * chances[2], chances[1] * chances[2]]
    expected = np.multiply.outer(pairs, np.outer(one, one)) * weight
    np.testing.assert_allclose(found.exact * found.unit.step, expected, rtol=1e-2)
    found = asked("noisy_score_covariance", one[None], [2.0], clip=2 * reach**2, reach=reach)
    score = np.outer(slopes, one).ravel() * weight
    np.testing.assert_allclose(found.exact * found.unit.step, np.outer(score, score), rtol=1e-2, atol=1e-6)
    found = asked("noisy_squared_slopes", one[None], [2.0], clip=2.0)
    np.testing.assert_allclose(found.exact * found.unit.step, [slopes @ slopes], rtol=1e-3)


def test_couplings_are_the_hessian_and_at_most_a_quarter_long():
    rng = np.random.default_rng(0)
    for outputs in (2, 3, 7):
        for scale in (0.0, 1.0, 30.0):
            margins = rng.normal(0, scale, outputs)
            found, room = np.empty(math.comb(outputs, 2)), np.empty(outputs)
            couplings(Softmax(outputs), margins, 0.0, room, found)
            chances = np.exp(margins - margins.max()) / np.exp(margins - margins.max()).sum()
            ends = [np.eye(outputs)[k] - np.eye(outputs)[o] for k in range(outputs) for o in range(k + 1, outputs)]
            hessian = sum(one * np.outer(end, end) for one, end in zip(found, ends, strict=True))
            np.testing.assert_allclose(hessian, np.diag(chances) - np.outer(chances, chances), atol=1e-12)
            assert np.linalg.norm(found) <= 0.25 + 1e-12


def made(n=300, seed=0, groups=None):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, P))
    X[rng.random(n) < 0.1] = np.nan
    return records_of(X, rng.choice(LABELS, n), groups=groups, intercept=False, loss=LOSS, bounds=KNOWN)[0]


def by_hand(records, w, reach):
    """Each row's integers, its weight, its probabilities and slopes at the point."""
    rows = dense_of(records).astype(float)
    shares = np.ones(len(rows)) if records.shares is None else records.shares.astype(float)
    weights = np.minimum(1.0, reach / np.maximum(records.norms, 1)) ** 2 / shares
    chances = np.exp(rows @ w / records.grid.one)
    chances /= chances.sum(axis=1, keepdims=True)
    return rows, weights, chances, chances - np.eye(3)[records.targets.astype(int)]


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("threads", [1, 3])
def test_sums_are_what_they_say(grouped, threads):
    """Against plain arithmetic, up to a lattice step per row."""
    groups = np.random.default_rng(1).integers(0, 60, 300) if grouped else None
    records, reach, bound = made(groups=groups), 15000.0, 1 << 40
    point, engine = place_weights(POINT, records.grid), engine_for(records, threads=threads)
    rows, weights, chances, slopes = by_hand(records, POINT, reach)
    one = float(records.grid.one)
    gradient = effects.WeightedGradientQuery(point, LOSS, bound, 2.0**20, reach).over(engine)
    np.testing.assert_allclose(gradient / 2**20, (slopes * weights[:, None]).T @ rows, rtol=1e-4, atol=1.0)
    pairs = chances[:, [0, 0, 1]] * chances[:, [1, 2, 2]] * weights[:, None]
    hessian = effects.CurvatureQuery(point, LOSS, bound, 4000.0, reach).over(engine)
    expected = np.einsum("ie,ij,ik->ejk", pairs, rows, rows)
    np.testing.assert_allclose(hessian / 4000.0, expected, rtol=0.02, atol=one**2 / 20)
    units = records.starts if records.starts is not None else np.arange(len(rows) + 1)
    whole = (slopes[:, :, None] * rows[:, None, :] * weights[:, None, None]).reshape(len(rows), -1)
    scores, scale = np.add.reduceat(whole, units[:-1], axis=0), (1 << 19) / (2 * one)
    covariance = effects.ScoreQuery(point, LOSS, bound, scale, reach).over(engine)
    np.testing.assert_allclose(covariance / scale**2, scores.T @ scores, rtol=1e-3, atol=one)
    size = effects.SlopeQuery(point, LOSS, bound, 1e6).over(engine)
    shares = 1.0 if records.shares is None else 1.0 / records.shares
    np.testing.assert_allclose(size[0] / 1e6, ((slopes**2).sum(axis=1) * shares * (records.norms > 0)).sum(), rtol=1e-4)


def test_sums_over_parts_add_up():
    """So that parts of a table may be summed where they lie."""
    records = made(400)
    for kind in (effects.WeightedGradientQuery, effects.CurvatureQuery, effects.ScoreQuery, effects.SlopeQuery):
        query = kind(place_weights(POINT, records.grid), LOSS, 1 << 38, 100.0, 15000.0)
        parts = [query.over(engine_for(made(400))) for _ in range(2)]
        np.testing.assert_array_equal(parts[0] + parts[1], 2 * query.over(engine_for(records)))


def test_parts_of_a_cluster_check_their_kernels(monkeypatch):
    """A worker's stale kernel would answer wrongly in silence."""
    records, checked = made(50), []
    for name, module in (("check_effect_kernels", one_output), ("check_class_kernels", several)):
        monkeypatch.setattr(module, name, lambda loss: checked.append(type(loss).__name__))
    point = place_weights(POINT, records.grid)
    part_tasks.check_question(effects.CurvatureQuery(point, LOSS, 1 << 38, 100.0, 15000.0), recodes=False)
    alone = place_weights(POINT[:, 0], records.grid)
    part_tasks.check_question(effects.ScoreQuery(alone, Logistic(), 1 << 38, 100.0, 15000.0), recodes=False)
    assert checked == ["Softmax", "Logistic"]


@pytest.mark.few(1)
@pytest.mark.parametrize("query", QUERIES)
def test_noise_is_gaussian_of_the_planned_size(query):
    """4,000 answers about nobody, at a noise multiplier of 1; a third more must be noticed."""
    runs, clip = 4_000, 0.5
    data = PrivateData(np.full((1, P), np.nan), [1.0], KNOWN, fit_intercept=False)
    curator = data.open(at_noise(Plan([Release(query, runs)]), budget_of("zero_out"), 1.0), LOSS)
    found = [np.ravel(getattr(curator, query)(POINT, **words_of(query, clip)))[-1] for _ in range(runs)]
    assert stats.kstest(np.array(found) / clip, "norm").pvalue > 1e-6
    assert stats.kstest(np.array(found) / (1.3 * clip), "norm").pvalue < 1e-6


def test_what_cannot_be_answered_is_refused():
    curator = opened(np.ones((4, P)), np.ones(4), [*QUERIES], loss=LOSS, bounds=KNOWN)
    for query in QUERIES:
        with pytest.raises(PlanViolation):
            getattr(curator, query)(POINT[:, 0], **words_of(query))
    with pytest.raises(Unsupported, match="needs a delta"):  # before anything is charged
        opened(np.ones((4, P)), np.ones(4), [*QUERIES], budget_of(pure=True), loss=LOSS, bounds=KNOWN)


WORST = {
    "noisy_weighted_gradient": (([1.0, 0.0, 0.0], 0), ([-1.0, 0.0, 0.0], 0)),
    "noisy_curvature": (([1.0, 0.0, 0.0], 1), ([0.0, 1.0, 0.0], 1)),
    "noisy_score_covariance": (([1.0, 0.0, 0.0], 1), ([0.0, 1.0, 0.0], 1)),
    "noisy_squared_slopes": (([1.0, 0.0, 0.0], 1), ([np.nan, 0.0, 0.0], 1)),
}


def lower_bound_on_mu(query, runs=10_000):
    """Clopper-Pearson bound on mu for ``replace_one``, from the projection onto the line between two sides' means."""
    sides = []
    for row, label in WORST[query]:
        data = PrivateData(np.array([row]), [label], KNOWN, fit_intercept=False)
        curator = data.open(at_noise(Plan([Release(query, runs)]), budget_of("replace_one"), 1.0), LOSS)
        words = words_of(query, 0.01, 1.0)
        sides.append(np.array([np.ravel(getattr(curator, query)(np.zeros((P, 3)), **words)) for _ in range(runs)]))
    one, other = sides
    line = other[::2].mean(axis=0) - one[::2].mean(axis=0)
    middle = (other[::2].mean(axis=0) + one[::2].mean(axis=0)) @ line / 2
    alarms, misses = int((one[1::2] @ line >= middle).sum()), int((other[1::2] @ line < middle).sum())
    rates = [stats.beta.ppf(1 - 1e-6, errors + 1, runs // 2 - errors) for errors in (alarms, misses)]
    return float(stats.norm.isf(rates[0]) - stats.norm.ppf(rates[1]))


@pytest.mark.few(1)
@pytest.mark.parametrize("query", QUERIES)
def test_an_audit_finds_what_is_claimed_and_no_more(query):
    assert 0.7 <= lower_bound_on_mu(query) <= 1.0


@pytest.mark.thorough
def test_an_audit_refutes_a_forgotten_root_of_two(monkeypatch):
    monkeypatch.setattr(effects, "ROOT_TWO", Fraction(1))
    assert lower_bound_on_mu("noisy_curvature") > 1.0


def loose(kernel, *changes):
    """A kernel without one of its limits, in plain Python."""
    source = inspect.getsource(kernel.py_func).replace("@njit(cache=True, nogil=True)\n", "")
    for old, new in changes:
        assert old in source, "the kernel has changed: so must this bug"
        source = source.replace(old, new)
    space = dict(vars(kernels))
    space["_margins"] = kernels._margins.py_func if hasattr(kernels._margins, "py_func") else kernels._margins
    exec(source, space)
    return space[kernel.py_func.__name__]


BUGS = {
    "coupling_coefficients": (
        "noisy_curvature",
        (("bound_vector(found, int64(facts[i, 2]), False, whole)", "whole[:] = found"),),
    ),
    "squared_slopes_sum": ("noisy_squared_slopes", (("facts[i, 2]))", "1e300))"),)),
    "class_scores": ("noisy_score_covariance", (("bound_vector(score, limit, False, whole)", "whole[:] = score"),)),
}


@pytest.mark.parametrize("bug", BUGS)
def test_a_limit_that_is_left_out_is_noticed(monkeypatch, bug):
    query, changes = BUGS[bug]
    contribution(query, np.ones(P))  # the known answers have been checked
    monkeypatch.setattr(kernels, bug, loose(getattr(kernels, bug), *changes))
    vector, found = contribution(query, np.ones(P), clip=1e-4)
    assert ratio_squared(vector, [0] * len(vector), found) > 1
