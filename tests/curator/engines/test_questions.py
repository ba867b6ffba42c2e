"""Every question that is an exact sum has the same bits on every engine: a new one cannot forget any of them."""

import inspect
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse

from discreet import Bounds
from discreet.bounds import Domain
from discreet.budget import Neighbors
from discreet.curator import PrivateData  # noqa: F401  imports every question
from discreet.curator.clusters import tasks
from discreet.curator.clusters.dask import DaskHeld
from discreet.curator.clusters.remote import RemoteEngine
from discreet.curator.clusters.spark import SparkHeld
from discreet.curator.engines import ExactSum, PartedEngine, engine_for
from discreet.curator.lattice import place_weights
from discreet.curator.queries.choices import ValueQuery
from discreet.curator.queries.counts import WeightQuery
from discreet.curator.queries.effects import (
    CurvatureQuery,
    Edges,
    ScoreQuery,
    ShellQuery,
    SlopeQuery,
    WeightedGradientQuery,
)
from discreet.curator.queries.gradients import CoordinateQuery, GradientQuery, ShareQuery
from discreet.curator.queries.moments import MagnitudeQuery, MomentQuery, SquareQuery, TargetQuery
from discreet.curator.records import admission, storage
from discreet.curator.records.recoding import Recoding, placement
from discreet.errors import Unsupported
from discreet.losses import Logistic, Softmax
from tests.curator.clusters.sparked import local_session, needs_spark

N, P = 230, 4
WIDTH = P + 1
LAYOUTS = ("dense", "weighted", "persons", "weighted persons", "sparse", "sparse persons")


def records_of(layout, kept=storage.MEMORY, n=N):
    rng = np.random.default_rng(7)
    X = rng.uniform(-1, 1, (n, P))
    X[rng.uniform(size=n) < 0.1] = np.nan
    if "sparse" in layout:
        X = sparse.csr_array(np.where(np.abs(X) < 0.5, 0.0, X))
    groups = rng.integers(0, max(1, n // 3), n) if "persons" in layout else None
    weights = rng.uniform(0.1, 1, n) if "weighted" in layout else None
    scaling = admission.scaling_for(Bounds(1.0, classes=(0, 1)), P, None, True)
    return admission.admit(X, rng.choice([-1.0, 1.0], n), scaling, groups, storage=kept, weights=weights)


def questions(records):
    """Return questions by the name of their class, at least one of each."""
    rng = np.random.default_rng(1)
    w, grid = rng.normal(size=WIDTH), records.grid
    point, other = place_weights(w, grid), place_weights(w[::-1].copy(), grid)
    many = place_weights(rng.normal(size=(WIDTH, 3)), grid)
    sample = np.flatnonzero(rng.uniform(size=records.n_units) < 0.2).astype(np.int64)
    entry = CoordinateQuery(
        np.rint(w * 2**20), Logistic(), np.array([1, 3]), np.full(2, 900.0), np.array([1 << 20, 1 << 21]), 2.0**-34
    )
    single = replace(entry, columns=entry.columns[:1], scales=entry.scales[:1], bounds=entry.bounds[:1])
    reach = 1.2 * grid.one
    shells = (s * np.array([0.3, 0.7, 1.3]) for s in (reach, 0.1 * reach**2, 0.5 * reach))
    edges = Edges(*shells, np.full(WIDTH, 0.5 * reach))
    of_one, of_many = (point, Logistic(), 1 << 34), (many, Softmax(3), 1 << 34)
    return [
        GradientQuery(*of_one, 2.0**21),
        GradientQuery(*of_one, 2.0**21, True),
        GradientQuery(*of_one, 2.0**21, units=sample),
        GradientQuery(*of_one, 2.0**21, units=sample, anchor=other),
        GradientQuery(*of_many, 2.0**21, units=sample),
        MomentQuery(1 << 36, 55.5),
        MomentQuery(1 << 36, 55.5, moment="squares"),
        MomentQuery(1 << 36, 55.5, moment="squares", center=np.arange(WIDTH) * 900),
        MomentQuery(1 << 36, 55.5, moment="outer"),
        SquareQuery(np.full(WIDTH, 3.0), np.full(WIDTH, 1 << 30), 1 << 31),
        TargetQuery(1 << 30, 0.1, 1.2),
        MagnitudeQuery(1 << 20, np.arange(P) * 1000),
        WeightQuery(1 << 30),
        entry,
        ShareQuery(single, 4000.0),
        ValueQuery((point, other), Logistic(), 1 << 30, 2.0**20),
        ValueQuery((many,), Softmax(3), 1 << 30, 2.0**20),
        WeightedGradientQuery(*of_one, 2.0**19, reach),
        WeightedGradientQuery(*of_many, 2.0**19, reach),
        CurvatureQuery(*of_one, 400.0, reach),
        CurvatureQuery(*of_many, 400.0, reach),
        ScoreQuery(*of_one, 2.0, reach),
        ScoreQuery(*of_many, 2.0, reach),
        SlopeQuery(*of_one, 1000.0),
        ShellQuery(*of_one[:2], 4, 1.0, reach, edges=edges),
    ]


def kinds_of_questions(base=ExactSum):
    for kind in base.__subclasses__():
        if kind.__module__.startswith("discreet.") and not inspect.isabstract(kind):
            yield kind
        yield from kinds_of_questions(kind)


def test_every_question_is_here():
    assert {type(question) for question in questions(records_of("dense"))} == set(kinds_of_questions())


def sealed_parts(records, parts):
    """Return the records as parts of whole units; a part may be empty."""
    edges = np.linspace(0, records.n_units, parts + 1).astype(int).tolist()
    return [tasks.sealed(k, records.part(a, b)) for k, (a, b) in enumerate(pairwise(edges))]


def elsewhere(held, sealed, records):
    return RemoteEngine(held, [part.seal for part in sealed], records.grid, records.n_columns)


def on_dask(client, records, parts):
    sealed = sealed_parts(records, parts)
    futures = [client.submit(lambda part=part: part, pure=False) for part in sealed]
    return elsewhere(DaskHeld(client, futures), sealed, records)


def in_spark(session, records, parts):
    sealed = sealed_parts(records, parts)
    return elsewhere(SparkHeld(session.sparkContext.parallelize(sealed, parts)), sealed, records)


def engines(client, layout, folder):
    memory, on_disk = records_of(layout), records_of(layout, storage.OnDisk(folder))
    yield "threads", engine_for(memory, threads=2)
    yield "parts", PartedEngine(memory, threads=2)
    yield "scratch files", PartedEngine(on_disk, threads=2)
    for parts in (1, 2, 7):
        yield f"dask, {parts}", on_dask(client, memory, parts)


def answer_or_refusal(engine, question):
    try:
        return question.over(engine)
    except Unsupported:
        return None


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_question_has_the_same_bits_on_every_engine(client, tmp_path, monkeypatch, layout):
    monkeypatch.setattr("discreet.curator.engines.rows_per_part", lambda columns: 64)
    records = records_of(layout)
    whole = engine_for(records, threads=1)
    answers = [(question, answer_or_refusal(whole, question)) for question in questions(records)]
    refused = {type(question).__name__ for question, expected in answers if expected is None}
    dense_only = {"WeightedGradientQuery", "CurvatureQuery", "ScoreQuery", "SlopeQuery", "ShellQuery", "MomentQuery"}
    dense_only |= {"MagnitudeQuery"}
    assert refused == (dense_only if "sparse" in layout else set())
    for name, engine in engines(client, layout, tmp_path):
        for question, expected in answers:
            if expected is not None:
                np.testing.assert_array_equal(engine.total(question), expected, f"{name}: {question}", strict=True)


@pytest.fixture(scope="module")
def spark():
    with local_session() as session:
        yield session


@pytest.mark.thorough
@needs_spark
@pytest.mark.parametrize(("layout", "parts"), list(zip(LAYOUTS, (1, 2, 7, 2, 7, 1), strict=True)))
def test_every_question_has_the_same_bits_in_spark(spark, layout, parts):
    records = records_of(layout)
    whole, there = engine_for(records, threads=1), in_spark(spark, records, parts)
    for question in questions(records):
        expected = answer_or_refusal(whole, question)
        if expected is not None:
            np.testing.assert_array_equal(there.total(question), expected, str(question), strict=True)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("once", [False, True])
def test_recoded_records_have_the_same_bits_on_every_engine(client, tmp_path, monkeypatch, layout, once):
    monkeypatch.setattr("discreet.curator.engines.rows_per_part", lambda columns: 64)
    records, is_sparse = records_of(layout), "sparse" in layout
    center = np.zeros(P) if is_sparse else np.array([0.125, -0.25, 0.0, 0.5])
    domain = Domain(np.ones(WIDTH), np.sqrt(WIDTH), N, Neighbors("zero_out"))
    grouped = records.shares is not None
    recoding = Recoding(center, np.array([0.5, 2.0, 1.0, 4.0]), 0.75, 1.25)
    place = placement(recoding, domain, sparse=is_sparse, grouped=grouped, numeric_target=True)
    image = place.of(records)
    assert (image.weights is None) == ("weighted" not in layout)
    whole = engine_for(image, threads=1)
    some = [GradientQuery, TargetQuery, WeightQuery, SquareQuery]
    asked = [question for question in questions(image) if type(question) in some]
    for name, engine in engines(client, layout, tmp_path):
        recoded = engine.recoded(place, once=once)
        for question in asked:
            np.testing.assert_array_equal(recoded.total(question), question.over(whole), f"{name}: {question}")
