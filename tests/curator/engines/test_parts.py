"""Records in parts give the same bits as in memory, each record counted once."""

import gc
import weakref

import numpy as np
import pytest

from discreet import Bounds, DPHuberRegressor, DPLinearRegression, DPLinearSVC, DPLogisticRegression, DPPoissonRegressor
from discreet.curator import private_data
from discreet.curator.engines import ExactSum, PartedEngine, engine_for
from discreet.curator.records import admission, storage
from discreet.errors import Unsupported
from discreet.scale import limited
from discreet.testing import seeded
from tests.covering import covering
from tests.curator.engines.test_questions import answer_or_refusal, questions, records_of

N, P = 2500, 5


@pytest.fixture
def small_parts(monkeypatch):
    """Cut records into parts of few rows."""
    return lambda rows: monkeypatch.setattr("discreet.curator.engines.rows_per_part", lambda columns: rows)


@pytest.mark.parametrize("rows", [1, 700, 2500])
@pytest.mark.parametrize("layout", ["dense", "persons", "sparse"])
@pytest.mark.parametrize("on_disk", [False, True])
@pytest.mark.few(6)
def test_a_total_is_the_sum_over_all_records(small_parts, tmp_path, rows, layout, on_disk):
    small_parts(rows)
    n = 16 if rows == 1 else N
    records = records_of(layout, storage.OnDisk(tmp_path) if on_disk else storage.MEMORY, n)
    parted, whole = PartedEngine(records, threads=2), engine_for(records_of(layout, n=n), threads=1)
    for question in questions(records):
        expected = answer_or_refusal(whole, question)
        for _ in range(0 if expected is None else 2):  # the second time from tiles that were kept
            np.testing.assert_array_equal(parted.total(question), expected, err_msg=str(question))


def test_no_records_are_one_empty_part(small_parts, tmp_path):
    for kept in (storage.MEMORY, storage.OnDisk(tmp_path)):
        records = records_of("dense", kept, n=0)
        assert not PartedEngine(records).total(questions(records)[0]).any()


class Counting(ExactSum):
    """How often each record is counted: the sum of 4^unit, whose digits tell."""

    def __init__(self, first=0):
        self.first = first

    def of_units(self, first, last):
        return Counting(first)

    def over(self, engine):
        return np.array([sum(4 ** (self.first + unit) for unit in range(engine.n_units))], dtype=object)


def counted(records, edges=None):
    engine = PartedEngine(records, threads=1)
    engine._edges = edges or engine._edges
    return engine.total(Counting())[0]


@pytest.mark.parametrize("layout", ["dense", "persons"])
def test_every_record_is_counted_once(small_parts, layout):
    small_parts(7)
    records = records_of(layout, n=100)
    once = sum(4**unit for unit in range(records.n_units))
    assert counted(records) == once
    assert counted(records, [0, 5, 5, records.n_units]) == once  # an empty part is nobody's
    assert counted(records, [0, 5, records.n_units - 1]) != once  # planted: one left out
    assert counted(records, [0, 5, 3, records.n_units]) != once  # planted: some counted twice


MODELS = {
    "logistic": (DPLogisticRegression, {"bounds": Bounds(1.0, classes=(0, 1))}),
    "softmax": (DPLogisticRegression, {"bounds": Bounds(1.0, classes=(0, 1, 2))}),
    "hinge": (DPLinearSVC, {"bounds": Bounds(1.0, classes=(0, 1))}),
    "squared": (DPLinearRegression, {"bounds": Bounds(1.0, target=(-2, 2))}),
    "huber": (DPHuberRegressor, {"bounds": Bounds(1.0, target=(-2, 2))}),
    "poisson": (DPPoissonRegressor, {"bounds": Bounds(1.0, target=(0, 5))}),
}


def fitted(name, solver, groups):
    rng = np.random.default_rng(5)
    X = rng.uniform(-1, 1, (N, P))
    estimator, words = MODELS[name]
    classes = words["bounds"].classes
    y = rng.integers(0, 4, N).astype(float) if classes is None else rng.choice(classes, N)
    persons = rng.integers(0, N // 2, N) if groups else None
    with seeded(3):
        model = estimator(epsilon=1.0, delta=1e-6, solver=solver, **words).fit(X, y, groups=persons)
    return model


@covering(
    ("groups", [False, True]),
    ("solver", ["auto", "gd", "sgd", "svrg", "cd", "gcd", "agd", "output", "objective"]),
    ("name", MODELS),
)
@pytest.mark.few(5)
def test_fits_in_parts_have_the_bits_of_fits_in_memory(small_parts, tmp_path, monkeypatch, name, solver, groups):
    try:
        expected = fitted(name, solver, groups)
    except Unsupported:
        with limited(memory=0), pytest.raises(Unsupported):
            fitted(name, solver, groups)
        return
    small_parts(700)
    for kept in (storage.OnDisk(tmp_path), storage.TIGHT_MEMORY):
        monkeypatch.setattr(private_data, "storage_for", lambda *room, kept=kept: kept)
        monkeypatch.setattr(admission, "storage_for", lambda *room, kept=kept: kept)
        found = fitted(name, solver, groups)
        np.testing.assert_array_equal(found.coef_, expected.coef_)
        np.testing.assert_array_equal(found.intercept_, expected.intercept_)


@pytest.mark.parametrize("relation", ["replace_one", "add_remove"])
def test_a_certificate_says_where_rows_were_kept_unless_that_tells_a_private_number(relation):
    X, y = np.zeros((N, P)), np.zeros(N)
    bounds = Bounds(1.0, classes=(0, 1))
    with limited(memory=0):
        model = DPLogisticRegression(delta=1e-6, neighbors=relation, bounds=bounds).fit(X, y)
    kept = {key: model.certificate_.assumed_public.get(key) for key in ("kept", "parts")}
    if relation == "add_remove":
        assert kept == {"kept": None, "parts": None}
    else:
        assert kept == {"kept": "scratch files", "parts": 1}


@pytest.mark.parametrize("layout", ["dense", "persons", "sparse"])
def test_what_a_pass_makes_of_a_part_goes_with_it(layout):
    """No cycle of references keeps a part's engine until the collector comes by: memory would grow with every part."""
    records = records_of(layout, n=100)
    gc.disable()
    try:
        for question in questions(records):
            engine = engine_for(records, threads=1)
            answer_or_refusal(engine, question)
            made = weakref.ref(engine)
            del engine
            assert made() is None, question
    finally:
        gc.enable()
