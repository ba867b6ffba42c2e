"""What intervals need of the records, for one output and for several: bounded contributions, true noise, and bugs.

That sums are those of the formula is shown in ``tests/curator/kernels/test_integers.py``.
"""

import inspect
import math
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import NamedTuple

import numpy as np
import pytest
from scipy import sparse, stats

from discreet import Bounds
from discreet.accounting.plan import Plan, Release
from discreet.curator import PrivateData, known_answers
from discreet.curator.engines.local import engine_for
from discreet.curator.kernels import effects as kernels
from discreet.curator.lattice.lattice import place_weights
from discreet.curator.queries import effects
from discreet.curator.records import recoding as recoding_module
from discreet.errors import PlanViolation, Unsupported
from discreet.losses import Huber, Logistic, Poisson, Softmax, Squared
from discreet.losses.base import couplings
from tests.covering import covering
from tests.curator.queries import effect_cases
from tests.curator.queries.effect_cases import QUERIES, SHEAR, STRETCH, P, words_of
from tests.priced import at_noise
from tests.solvers.whitened.cases import RELATIONS, bounds_of, budget_of, opened, ratio_squared, records_of


class Model(NamedTuple):
    """A loss with what is declared for it, and a point."""

    loss: object
    labels: tuple
    w: np.ndarray
    bounds: Bounds

    def words(self):
        return {"loss": self.loss, "w": self.w, "bounds": self.bounds}


POINT = np.array([0.4, -0.2, 0.1])
CLASSES = np.array([[0.4, -0.2, 0.1], [-0.3, 0.5, 0.0], [0.2, 0.2, -0.6]])
MODELS = {
    "one": Model(Logistic(), (-1, 1), POINT, bounds_of(Logistic())),
    "several": Model(Softmax(3), (0, 1, 2), CLASSES, Bounds(1.0, classes=(0, 1, 2), n=None)),
}
LOSSES = {"logistic": Logistic(), "squared": Squared(), "huber": Huber(0.5), "poisson": Poisson(3.0)}
asked, contribution = partial(effect_cases.asked, w=POINT), partial(effect_cases.contribution, w=POINT)
each_model = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
each_query = pytest.mark.parametrize("query", QUERIES)


@pytest.mark.parametrize("relation", RELATIONS)
@each_query
@pytest.mark.parametrize("layout", ["dense", "recoded", "persons", "recoded persons", "recoded slack"])
@each_model
def test_neighbors_move_a_sum_up_to_the_bound_and_not_beyond(model, query, relation, layout):
    facts = {"recoding": SHEAR if "recoded" in layout else None, "persons": "persons" in layout}
    facts["slack"] = 1.5 if "slack" in layout else 1.0
    facts["clip"] = 1e-4 if facts["persons"] else 0.05  # so that each of a person's rows would reach the bound
    rows = effect_cases.rows_for(facts["persons"])
    effect_cases.assert_neighbors_reach_the_bound(query, relation, rows, model.labels, **model.words(), **facts)


def assert_long_rows_stay_within_the_bound(query, relation, persons=False):
    """Whitened rows up to 60 lengths that count, and up to 400 that do not: hostile rows, alone and of one person."""
    rows = [[0.14, 0.4, 1.0], [-0.14, 0.4, -1.0], [0.1, -1.0, 1.0], [0.0, 1.0, 0.0], *effect_cases.rows_for(persons)]
    facts = {"recoding": STRETCH, "persons": persons, "clip": 1e-6, "slack": 1.5}
    effect_cases.assert_neighbors_reach_the_bound(query, relation, rows, (-1, 1), w=POINT, **facts)


@covering(("query", QUERIES), ("relation", RELATIONS), ("persons", [False, True]))
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
@each_query
@each_model
def test_the_factor_is_that_of_the_docstring(model, query, relation):
    words = model.words() | {"budget": budget_of(relation)}
    factor = effect_cases.asked(query, np.ones((2, P)), np.ones(2), **words).factor
    pairs = {"noisy_weighted_gradient": 2.0, "noisy_squared_slopes": 1.0}
    expected = pairs.get(query, 2.0**0.5) if relation == "replace_one" else 1.0
    assert expected <= factor <= expected * (1 + 1e-9)


@each_query
@each_model
def test_null_records_add_nothing(model, query):
    for cell in (np.nan, np.inf, -np.inf):
        for row in (np.full(P, cell), np.array([1.0, cell, 1.0])):
            assert not any(effect_cases.contribution(query, row, **model.words())[0])
    assert not any(effect_cases.contribution(query, np.ones(P), label=7, **model.words())[0])


@covering(("query", QUERIES), ("name", LOSSES))
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


@each_query
@each_model
def test_no_point_and_no_clip_breaks_the_bound(model, query):
    """Points far out, where margins differ by more than exponentials bear; clips from tiny to wide."""
    for w in (model.w, 1e6 * model.w, -1e12 * model.w, 0 * model.w):
        for row in (np.ones(P), -np.ones(P), np.array([1e300, -1e300, 0.5]), np.array([0.3, -0.7, 0.1])):
            for label in model.labels:
                for clip in (1e-280, 1e-3, 1.0, 50.0):
                    words = model.words() | {"w": w, "clip": clip, "label": label}
                    vector, found = effect_cases.contribution(query, row, **words)
                    assert ratio_squared(vector, [0] * len(vector), found) <= 1


def test_wide_clips_cut_nothing():
    """Slopes are at most the root of 2 and couplings 1/4 long, so a row's weight alone bounds what it adds."""
    several = partial(effect_cases.asked, **MODELS["several"].words())
    reach, one = 0.5, np.array([0.9, -0.9, 0.4])
    chances, weight = np.exp(one @ CLASSES) / np.exp(one @ CLASSES).sum(), (reach / np.linalg.norm(one)) ** 2
    slopes = chances - np.eye(3)[2]
    found = several("noisy_weighted_gradient", one[None], [2.0], clip=math.sqrt(2) * reach, reach=reach)
    np.testing.assert_allclose(found.exact * found.unit.step, np.outer(slopes, one) * weight, rtol=1e-3)
    found = several("noisy_curvature", one[None], [2.0], clip=reach**2 / 4, reach=reach)
    pairs = [chances[0] * chances[1], chances[0] * chances[2], chances[1] * chances[2]]
    expected = np.multiply.outer(pairs, np.outer(one, one)) * weight
    np.testing.assert_allclose(found.exact * found.unit.step, expected, rtol=1e-2)
    found = several("noisy_score_covariance", one[None], [2.0], clip=2 * reach**2, reach=reach)
    score = np.outer(slopes, one).ravel() * weight
    np.testing.assert_allclose(found.exact * found.unit.step, np.outer(score, score), rtol=1e-2, atol=1e-6)
    found = several("noisy_squared_slopes", one[None], [2.0], clip=2.0)
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


@each_model
def test_sums_over_parts_add_up(model):
    """So that parts of a table may be summed where they lie, and threads may share it."""
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-1, 1, (400, P)), rng.choice(model.labels, 400)
    records, halves = (
        [records_of(X[s], y[s], intercept=False, loss=model.loss, bounds=model.bounds)[0] for s in cuts]
        for cuts in ([slice(None)], [slice(0, 150), slice(150, 400)])
    )
    for kind in (effects.WeightedGradientQuery, effects.CurvatureQuery, effects.ScoreQuery, effects.SlopeQuery):
        query = kind(place_weights(model.w, records[0].grid), model.loss, 1 << 38, 100.0, 15000.0)
        whole = query.over(engine_for(records[0], threads=3))
        np.testing.assert_array_equal(sum(query.over(engine_for(part)) for part in halves), whole)


@each_model
def test_parts_of_a_cluster_check_their_kernels(monkeypatch, model):
    """A worker's stale kernel would answer wrongly in silence."""
    checked = []
    monkeypatch.setattr(known_answers, "check_effect_kernels", checked.append)
    grid = records_of(np.ones((1, P)), [1], intercept=False, loss=model.loss, bounds=model.bounds)[0].grid
    query = effects.CurvatureQuery(place_weights(model.w, grid), model.loss, 1 << 38, 100.0, 15000.0)
    known_answers.check_question(query, sparse=False, recodes=False)
    assert checked == [model.loss]


@pytest.mark.few(2)
@each_query
@each_model
def test_noise_is_gaussian_of_the_planned_size(model, query):
    """4,000 answers about nobody, at a noise multiplier of 1; a third more must be noticed."""
    runs, clip = 4_000, 0.5
    data = PrivateData(np.full((1, P), np.nan), [1.0], model.bounds, fit_intercept=False)
    curator = data.open(at_noise(Plan([Release(query, runs)]), budget_of("zero_out"), 1.0), model.loss)
    found = [np.ravel(getattr(curator, query)(model.w, **words_of(query, clip)))[-1] for _ in range(runs)]
    assert stats.kstest(np.array(found) / clip, "norm").pvalue > 1e-6
    assert stats.kstest(np.array(found) / (1.3 * clip), "norm").pvalue < 1e-6


def worst_records(model, query):
    """Two rows with labels whose contributions are as far apart as neighbors' may be."""
    if query == "noisy_weighted_gradient":
        return ([1.0, 0.0, 0.0], model.labels[-1]), ([1.0, 0.0, 0.0], model.labels[0])
    if query == "noisy_squared_slopes":
        return ([1.0, 0.0, 0.0], 1), ([np.nan, 0.0, 0.0], 1)
    return ([1.0, 0.0, 0.0], 1), ([0.0, 1.0, 0.0], 1)


WORST = ([1.0, 0.0, 0.0], 0), ([-1.0, 0.0, 0.0], 0)
"""Of gradients of several outputs."""


def lower_bound_on_mu(model, query, runs=10_000):
    """Clopper-Pearson bound on mu for ``replace_one``, from the projection onto the line between two sides' means."""
    several = query == "noisy_weighted_gradient" and model.w.ndim == 2
    sides = []
    for row, label in WORST if several else worst_records(model, query):
        data = PrivateData(np.array([row]), [label], model.bounds, fit_intercept=False)
        curator = data.open(at_noise(Plan([Release(query, runs)]), budget_of("replace_one"), 1.0), model.loss)
        words = words_of(query, 0.01, 1.0)
        sides.append(np.array([np.ravel(getattr(curator, query)(0 * model.w, **words)) for _ in range(runs)]))
    one, other = sides
    line = other[::2].mean(axis=0) - one[::2].mean(axis=0)
    middle = (other[::2].mean(axis=0) + one[::2].mean(axis=0)) @ line / 2
    alarms, misses = int((one[1::2] @ line >= middle).sum()), int((other[1::2] @ line < middle).sum())
    rates = [stats.beta.ppf(1 - 1e-6, errors + 1, runs // 2 - errors) for errors in (alarms, misses)]
    return float(stats.norm.isf(rates[0]) - stats.norm.ppf(rates[1]))


@pytest.mark.few(1)
@each_query
@each_model
def test_an_audit_finds_what_is_claimed_and_no_more(model, query):
    assert 0.7 <= lower_bound_on_mu(model, query) <= 1.0


@pytest.mark.thorough
@each_model
def test_an_audit_refutes_a_forgotten_root_of_two(monkeypatch, model):
    monkeypatch.setattr(effects, "ROOT_TWO", Fraction(1))
    assert lower_bound_on_mu(model, "noisy_curvature") > 1.0


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


@each_query
def test_a_point_of_another_shape_is_refused(query):
    model = MODELS["several"]
    curator = opened(np.ones((4, P)), np.ones(4), [query], loss=model.loss, bounds=model.bounds)
    with pytest.raises(PlanViolation):
        getattr(curator, query)(POINT, **words_of(query))


def loose(kernel, old, new):
    """A kernel without one of its limits, in plain Python."""
    source = inspect.getsource(kernel.py_func).replace("@kernel()\n", "")
    assert old in source, "the kernel has changed: so must this bug"
    space = dict(vars(kernels))
    for name in ("_margin", "_margins"):
        space[name] = getattr(space[name], "py_func", space[name])
    exec(source.replace(old, new), space)
    return space[kernel.py_func.__name__]


BUGS = {
    "curvature_coefficients": ("one", "noisy_curvature", "facts[i, 2]))", "1e300))"),
    "squared_slope_sum": ("one", "noisy_squared_slopes", "facts[i, 2]))", "1e300))"),
    "unit_scores": ("one", "noisy_score_covariance", "bound_vector(score, limit, False, whole)", "whole[:] = score"),
    "coupling_coefficients": (
        "several",
        "noisy_curvature",
        "bound_vector(found, int64(facts[i, 2]), False, whole)",
        "whole[:] = found",
    ),
    "squared_slopes_sum": ("several", "noisy_squared_slopes", "facts[i, 2]))", "1e300))"),
    "class_scores": (
        "several",
        "noisy_score_covariance",
        "bound_vector(score, limit, False, whole)",
        "whole[:] = score",
    ),
}


@pytest.mark.parametrize("bug", BUGS)
def test_a_limit_that_is_left_out_is_noticed(monkeypatch, bug):
    model, query, old, new = BUGS[bug]
    words = MODELS[model].words()
    effect_cases.contribution(query, np.ones(P), **words)  # the known answers have been checked
    monkeypatch.setattr(kernels, bug, loose(getattr(kernels, bug), old, new))
    vector, found = effect_cases.contribution(query, np.ones(P), clip=1e-4, **words)
    assert ratio_squared(vector, [0] * len(vector), found) > 1
