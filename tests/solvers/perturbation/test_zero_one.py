"""The exponential mechanism over candidates by their numbers of errors: what is counted, its law, its neighbors."""

import math

import numpy as np
import pytest

from discreet import Bounds, Budget
from discreet.accounting import Release
from discreet.curator import session
from discreet.losses import Logistic, Softmax
from discreet.testing import neighbor_pairs, seeded
from tests.covering import covering
from tests.replaying import window
from tests.solvers.perturbation.cases import RELATIONS, bounds_of, candidates_of, fit_of, opened, stream, table

EPSILON = 0.5
LINE = np.array([[1.0], [-1.0]])  # on records with x = 1 the first predicts class 1, the second class -1


def chosen(X, y, relation="zero_out", points=LINE, times=1, loss=None):
    """The choices among these points with a pure budget for each, and what they were drawn from."""
    release = Release("select_candidate", times, clip=1.0, mechanism="exponential")
    bounds = Bounds(1.0, classes=(0, 1, 2) if loss else (-1, 1))
    curator = opened(X, y, loss or Logistic(), [release], Budget(times * EPSILON, 0.0, relation), bounds=bounds)
    with stream(4), window() as seen:
        curator._session.entropy = session.current_entropy()
        picks = [curator.select_candidate(points, loss_bound=1.0, score="zero_one") for _ in range(times)]
    return np.array(picks), seen[0]


def errors(measurement):
    return -measurement.exact / measurement.unit.bound


def log_law(measurement):
    scores = np.ldexp((measurement.exact - measurement.exact.max()).astype(float), -measurement.unit.m)
    return scores - np.log(np.exp(scores).sum())


@covering(("engine", ["dense", "sparse"]), ("outputs", [1, 3]))
def test_a_score_is_the_number_of_errors(engine, outputs):
    from scipy import sparse

    rng = np.random.default_rng(3)
    X = np.rint(rng.uniform(-1, 1, (40, 2)) * 2**14) / 2**14
    y = rng.integers(0, 3, 40).astype(float) if outputs == 3 else rng.choice([-1.0, 1.0], 40)
    points = np.rint(rng.normal(size=(5, 2, outputs) if outputs == 3 else (5, 2)) * 2**10) / 2**10
    points[0] = 0.0  # margins of 0, for which predict() says the first class
    margins = np.einsum("np,cp...->cn...", X, points)
    predicted = margins.argmax(axis=2) if outputs == 3 else np.where(margins > 0, 1.0, -1.0)
    by_hand = np.sum(predicted != y, axis=1)
    X, y = np.vstack([X, [[math.nan, 0.0], [0.5, 0.5]]]), np.append(y, [1.0, 7.0])  # null records are no errors
    X = sparse.csr_array(X) if engine == "sparse" else X
    _, seen = chosen(X, y, points=points, loss=Softmax(3) if outputs == 3 else None)
    assert errors(seen).tolist() == by_hand.tolist()


def test_a_person_counts_once():
    """A person's rows share one vote, in whole lattice steps: 1/3 is rounded down."""
    release = Release("select_candidate", 1, clip=1.0, mechanism="exponential")
    curator = opened(np.ones((3, 1)), -np.ones(3), Logistic(), [release], Budget(1.0, 0.0), groups=np.zeros(3))
    with seeded(0), window() as seen:
        curator.select_candidate(LINE, loss_bound=1.0, score="zero_one")
    assert errors(seen[0])[0] == pytest.approx(1.0, abs=1e-6)
    assert errors(seen[0])[0] <= 1.0


def ratios(relation, here, there):
    laws = [log_law(chosen(np.ones((len(y), 1)), np.array(y), relation)[1]) for y in (here, there)]
    return laws[0] - laws[1]


@pytest.mark.parametrize("relation", RELATIONS)
def test_the_worst_record_reaches_the_claim_and_not_more(relation):
    """One record, right by one candidate and wrong by the other: exchanged, nulled (no such class), or left out."""
    others = [1.0, 1.0, -1.0]
    neighbor = {"replace_one": [*others, -1.0], "zero_out": [*others, 7.0], "add_remove": others}[relation]
    found = ratios(relation, [*others, 1.0], neighbor)
    assert np.abs(found).max() <= EPSILON * (1 + 1e-9)
    assert found.max() - found.min() <= EPSILON * (1 + 1e-9)
    assert found.max() - found.min() == pytest.approx(EPSILON, rel=1e-3)


@covering(("relation", RELATIONS), ("name", ["logistic", "svc", "softmax"]))
def test_likelihood_ratios_of_neighbors_are_within_the_claim(relation, name):
    """Through the estimator, on hostile neighbors: the choice is all that is released, the count is not needed."""
    fit = fit_of(name, candidates_of(name, score="zero_one"), relation, 0.0, EPSILON)
    largest = 0.0
    for pair in list(neighbor_pairs(*table(name), relation=relation, bounds=bounds_of(name)))[::6]:
        laws = []
        for data in (pair.data, pair.neighbor):
            with seeded(0), window() as seen:
                fit(*data)
            assert [measurement.query for measurement in seen] == ["select_candidate"]
            laws.append(log_law(seen[0]))
        found = laws[0] - laws[1]
        assert found.max() - found.min() <= EPSILON * (1 + 1e-9), pair.name
        largest = max(largest, found.max() - found.min())
    assert largest > 0.3 * EPSILON


@pytest.mark.parametrize("relation", ["zero_out", "replace_one"])
def test_where_a_classifier_makes_no_error_enough_records_keep_those_of_the_chosen_one_few(relation):
    """The realizable case: more than alpha n / 2 errors with a probability of at most beta / 2, from the law itself."""
    alpha, beta, rng = 0.2, 0.1, np.random.default_rng(2)
    angles = np.linspace(0.0, math.pi, 50, endpoint=False)
    points = np.column_stack([np.cos(angles), np.sin(angles)])
    factor = 2 if relation == "replace_one" else 1
    n = math.ceil(2 * factor * math.log(2 * len(points) / beta) / (alpha * EPSILON))
    X = rng.uniform(-0.7, 0.7, (n, 2))
    _, seen = chosen(X, np.where(X @ points[17] > 0, 1.0, -1.0), relation, points)
    few = errors(seen) <= alpha * n / 2
    assert errors(seen).min() == 0
    assert 0 < few.sum() < len(points)
    assert np.exp(log_law(seen))[~few].sum() <= beta / 2
