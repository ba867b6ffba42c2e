"""No record moves an answer by more than its noise was scaled to, and nothing else depends on a record.

Replay: a fit runs on two neighbors with the mechanisms' outputs frozen. Then all that it shows must be the same, and
each exact sum may move by its sensitivity at most. The table below has every registered solver, loss, penalty, metric
and container with each relation, for records and for persons.
"""

from itertools import cycle
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse

from discreet import Bounds, private_score
from discreet.curator.records import storage
from discreet.testing import Data, Pair, assert_fresh_noise, assert_replay, neighbor_pairs, replay
from tests.covering import covering
from tests.models.scored import Stream, model_of
from tests.models.scored import table as scored_table
from tests.registry import (
    CONTAINERS,
    LOSSES,
    METRICS,
    PENALTIES,
    RELATIONS,
    SOLVERS,
    Case,
    bounds_of,
    cases,
    fit_of,
    table,
)
from tests.replaying import worst_ratio

GD = SOLVERS["gd"]["steps"]
LOOSE = ("gamma", "tweedie")
"""Losses whose slopes few neighbors bring near their bound; that some do is asked of all neighbors below."""
EACH_RELATION = pytest.mark.parametrize("relation", RELATIONS)


def pairs_of(loss, relation, case=GD, has_persons=False, most=6, start=0):
    """Some of the worst neighbors, evenly spread over all kinds."""
    data = table(loss, has_persons=has_persons)
    pairs = list(neighbor_pairs(*data, relation=relation, bounds=bounds_of(loss), sampled=case.is_sampled))
    step = max(1, len(pairs) // most)
    return pairs[start % step :: step]


def check(loss, case, relation, container="array", has_persons=False, near=None, most=6, start=0, **settings):
    fit = fit_of(loss, case, relation, container, **settings)
    pairs = pairs_of(loss, relation, case, has_persons, most, start)
    if not case.has_sums:  # a draw has no exact answer: its noise cannot be replayed, all the rest must be the same
        findings = [found for pair in pairs for found in replay(fit, pair.data, pair.neighbor, relation).findings]
        assert {found.kind for found in findings} <= {"price"}, findings
        return
    assert (case.near if near is None else near) <= worst_ratio(fit, pairs, relation) <= 1.0


def table_of_solvers():
    """Every variant with every relation and with every loss, though not each pair; persons and sparse rows in turn.

    In ``make test`` each variant has one relation, and the variants of a solver have all of them in turn.
    """
    persons, containers, table = cycle((False, True, False)), cycle(("array", "csr")), []
    for at, (name, case) in enumerate(cases().items()):
        losses, relations = case.losses, case.relations
        for i in range(max(len(losses), len(relations))):
            loss, relation = losses[(at + i) % len(losses)], relations[i % len(relations)]
            has_persons = next(persons) and not case.declares_n
            container = "array" if case.is_dense else next(containers)
            values = (case, loss, relation, has_persons, container, at)
            marks = () if i == at % len(relations) else pytest.mark.thorough
            table.append(pytest.param(*values, marks=marks, id=f"{name}-{loss}-{relation}"))
    return table


@pytest.mark.whole
@pytest.mark.parametrize(("case", "loss", "relation", "has_persons", "container", "start"), table_of_solvers())
def test_every_solver_and_loss(case, loss, relation, has_persons, container, start):
    near = 0.0 if has_persons or loss in LOOSE else None
    check(loss, case, relation, container, has_persons, most=4, start=start, near=near)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "loss", "relation"),
    [
        ("recipe: clipped", "logistic", "replace_one"),
        ("recipe: weighted", "logistic", "add_remove"),
        ("recipe: weighted", "squared", "add_remove"),
    ],
)
def test_recipes(name, loss, relation):
    """Pairs that planted bugs are found by, whatever else is registered."""
    check(loss, cases()[name], relation, near=0.0)


@pytest.mark.parametrize("name", [name for name, case in cases().items() if case.has_sums])
def test_noise_is_never_used_twice(name):
    case = cases()[name]
    runs = 1 if name.startswith(("agd", "gcd")) else 2  # a choice shows no noise of its own
    for loss in {case.losses[0], "softmax"} & set(case.losses):
        assert_fresh_noise(fit_of(loss, case, "zero_out"), table(loss), runs=runs)


@EACH_RELATION
@pytest.mark.parametrize("name", LOSSES)
def test_every_pair_of_neighbors(name, relation):
    """The worst of all must come near the sensitivity, or the neighbors are too tame."""
    check(name, GD, relation, most=1000, near=0.85)


@EACH_RELATION
def test_every_pair_of_persons(relation):
    """All rows of a person together move a sum no further than a record may."""
    check("logistic", GD, relation, has_persons=True, most=1000, near=0.85)


@covering(("penalty", PENALTIES), ("kind", ["clipped", "weighted", "auto"]))
def test_every_penalty(penalty, kind):
    for loss, relation in zip(("logistic", "squared", "poisson"), RELATIONS, strict=True):
        if (penalty, loss) != ("l2_ball", "poisson"):
            case = SOLVERS["recipe"][kind]
            check(loss, Case(case.solver, penalty=PENALTIES[penalty], epsilon=case.epsilon), relation, most=3, near=0.0)


@EACH_RELATION
@pytest.mark.parametrize("has_persons", [False, True], ids=["records", "persons"])
@pytest.mark.parametrize("container", CONTAINERS)
def test_every_container(container, has_persons, relation):
    check("logistic", GD, relation, container, has_persons, near=0.5)


@pytest.mark.parametrize("kind", ["steps", "default", "whitened"])
@EACH_RELATION
def test_rows_in_parts_on_disk_and_recoded_on_the_way(kind, relation, monkeypatch, tmp_path):
    """In parts of three rows: the removal of one record moves all parts after it."""
    for place in (storage.OnDisk(tmp_path), storage.TIGHT_MEMORY):
        for user in ("private_data", "records.admission", "records.stream"):
            monkeypatch.setattr(f"discreet.curator.{user}.storage_for", lambda *room, place=place: place)
        for user in ("private_data", "engines"):
            monkeypatch.setattr(f"discreet.curator.{user}.rows_per_part", lambda columns: 3)
        check("logistic", SOLVERS["gd"][kind], relation, has_persons=relation == "zero_out", near=0.0)


@covering(("loss", ["logistic", "squared"]), ("kind", ["clipped", "weighted", "auto"]))
def test_without_an_intercept_and_with_other_scales(loss, kind):
    case = SOLVERS["recipe"][kind]
    check(loss, case, "replace_one", fit_intercept=False, near=0.0)
    for row_norm, scale in ((0.5, "global"), (2.0, "feature")):
        bounds = bounds_of(loss).with_facts(row_norm=row_norm, scale=scale)
        check(loss, case, "zero_out", bounds=bounds, near=0.0, most=3)


@pytest.mark.parametrize("name", ["gd: steps", "sgd: steps", "recipe: auto", "recipe: diagonal"])
def test_the_only_record_removed(name):
    data = table("logistic", n=1)
    for container in ("array",) if cases()[name].is_dense else ("array", "csr"):
        fit = fit_of("logistic", cases()[name], "add_remove", container)
        assert_replay(fit, data, Data(data.X[:0], data.y[:0]), "add_remove")


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["gd: whitened", "recipe: clipped", "recipe: weighted", "recipe: diagonal"])
def test_ranges_far_from_zero(name):
    """The fine grid, and centers that the declared ranges give."""
    rng = np.random.default_rng(0)
    X, y = rng.uniform(1990, 2020, (9, 3)), rng.choice([0.0, 1.0], 9)
    bounds = Bounds([(1990.0, 2020.0)] * 3, classes=(0, 1))
    for relation in RELATIONS:
        fit = fit_of("logistic", cases()[name], relation, bounds=bounds)
        pairs = list(neighbor_pairs(X, y, relation=relation, bounds=bounds))[::6]
        assert worst_ratio(fit, pairs, relation) <= 1.0


def test_the_sensitivity_is_attained():
    """A clipped record against its mirror image moves the sum by twice the bound, up to rounding."""
    X, y, _ = table("logistic")
    X[0], y[0] = [1.0, 10.0, -5.0], 0.0
    other = y.copy()
    other[0] = 1.0
    assert replay(fit_of("logistic", GD, "replace_one"), (X, y), (X, other)).ratio > 0.999


# --- scores -------------------------------------------------------------------------------------------


def score_of(metric, relation, *, delta=1e-5, container="array", by=None):
    """A fit for replay that does nothing but score."""

    def fit(X, y, groups=None):
        X = sparse.csr_array(X) if container == "csr" else X
        if container == "stream":
            X, y, groups = Stream(X, np.asarray(y, dtype=float), groups, 7), None, None
        paid = {"metric": metric, "epsilon": 2.0, "delta": delta, "neighbors": relation, "ledger": False, "by": by}
        score = private_score(model_of(METRICS[metric]), X, y, groups, **paid)
        return SimpleNamespace(score=score, certificate_=score.certificate)

    return fit


def scored_pairs(metric, relation, has_persons=False, every=4):
    X, y = scored_table(METRICS[metric], 24, missing=False)
    persons = np.arange(24) // 3 if has_persons else None
    bounds = model_of(METRICS[metric]).bounds
    return list(neighbor_pairs(X, y, persons, relation=relation, bounds=bounds))[::every]


@EACH_RELATION
@pytest.mark.parametrize("metric", METRICS)
def test_every_score(metric, relation):
    near = {"brier": 0.4, "log_loss": 0.4, "mae": 0.4, "r2": 0.6, "rmse": 0.4}.get(metric, 0.99)
    assert near < worst_ratio(score_of(metric, relation), scored_pairs(metric, relation, every=2), relation) <= 1.0
    pure = worst_ratio(score_of(metric, relation, delta=0.0), scored_pairs(metric, relation, every=6), relation)
    persons = worst_ratio(score_of(metric, relation), scored_pairs(metric, relation, True, every=6), relation)
    assert max(pure, persons) <= 1.0


@pytest.mark.parametrize("container", ["stream", "csr"])
@pytest.mark.parametrize("metric", METRICS)
def test_every_score_in_other_containers_and_by_group(metric, container):
    for relation in ("replace_one", "add_remove"):
        by = 0 if metric in ("accuracy", "brier", "log_loss") and container == "csr" else None
        fit = score_of(metric, relation, container=container, by=by)
        assert 0.2 < worst_ratio(fit, scored_pairs(metric, relation, every=6), relation) <= 1.0


@pytest.mark.parametrize("metric", METRICS)
def test_noise_of_scores_is_fresh(metric):
    assert_fresh_noise(score_of(metric, "zero_out"), scored_table(METRICS[metric], 24), runs=2)


def test_one_row_from_right_to_wrong_moves_the_counts_by_all_that_is_paid_for():
    X, y = scored_table("logistic", 24, missing=False)
    changed = y.copy()
    changed[0] = 1 - changed[0]
    pair = Pair("one label turned", (X, y), (X, changed))
    assert 0.999 < worst_ratio(score_of("accuracy", "replace_one"), [pair], "replace_one") <= 1.0
