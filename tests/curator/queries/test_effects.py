"""What intervals need of the records, for one output and for several: bounded contributions, true noise, and bugs.

That sums are those of the formula is shown in ``tests/curator/kernels/test_integers.py``.
"""

import math
from functools import partial
from typing import NamedTuple

import numpy as np
import pytest

from discreet import Bounds
from discreet.curator import known_answers
from discreet.curator.lattice import place_weights
from discreet.curator.queries import effects
from discreet.curator.records.recoding import Recoding
from discreet.losses import Logistic, Softmax
from discreet.losses.base import couplings
from tests.covering import covering
from tests.curator.queries import effect_cases
from tests.curator.queries.effect_cases import QUERIES, SHEAR, STRETCH, P
from tests.solvers.whitened.cases import RELATIONS, bounds_of, budget_of, ratio_squared, records_of


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


@each_model
def test_coarse_rows_leave_slopes_within_the_clip_whole(model):
    """Rows up to 250 long are on a coarse grid, where coefficients of 32 bits must still hold what the clip leaves."""
    wide = Recoding(np.zeros(P), np.ones(P), 1.0, math.inf, np.diag([250.0, 1.0, 1.0]), reach=250.0, drop_longer=True)
    words, gradients = model.words() | {"recoding": wide, "label": model.labels[0]}, []
    for clip in (3.0, 1e3):
        exact, found = contribution("noisy_weighted_gradient", [0.0, 0.0, 1.0], clip=clip, reach=3.0, **words)
        gradients.append(np.array(exact, dtype=float) * found.unit.step)
    assert np.abs(gradients[0]).max() > 0.45
    np.testing.assert_allclose(gradients[0], gradients[1], atol=1e-4)


@pytest.mark.parametrize("query", QUERIES)
def test_rows_beyond_the_lattice_add_nothing(query):
    for row in (np.ones(P), [0.2, 0.0, 0.0], [-1.0, 0.0, 1.0]):
        assert not any(contribution(query, row, recoding=STRETCH)[0])


@pytest.mark.parametrize("relation", RELATIONS)
@each_query
@each_model
def test_the_factor_is_that_of_the_docstring(model, query, relation):
    words = model.words() | {"budget": budget_of(relation)}
    factor = effect_cases.asked(query, np.ones((2, P)), np.ones(2), **words).factor
    pairs = {"noisy_weighted_gradient": 2.0, "noisy_squared_slopes": 1.0}
    expected = pairs.get(query, 2.0**0.5) if relation == "replace_one" else 1.0
    assert expected <= factor <= expected * (1 + 1e-9)


@pytest.mark.few(1)
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
def test_parts_of_a_cluster_check_their_kernels(monkeypatch, model):
    """A worker's stale kernel would answer wrongly in silence."""
    checked = []
    monkeypatch.setattr(known_answers, "check_effect_kernels", checked.append)
    grid = records_of(np.ones((1, P)), [1], intercept=False, loss=model.loss, bounds=model.bounds)[0].grid
    query = effects.CurvatureQuery(place_weights(model.w, grid), model.loss, 1 << 38, 100.0, 15000.0)
    known_answers.check_question(query, sparse=False)
    assert checked == [model.loss]
