"""Records in parts give the same bits as in memory, each record counted once."""

import gc
import weakref
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from discreet import Bounds, DPHuberRegressor, DPLinearRegression, DPLinearSVC, DPLogisticRegression, DPPoissonRegressor
from discreet.curator import private_data
from discreet.curator.engines import ExactSum, PartedEngine, engine_for
from discreet.curator.lattice import place_weights
from discreet.curator.queries.choices import ValueQuery
from discreet.curator.queries.gradients import CoordinateQuery, GradientQuery, ShareQuery
from discreet.curator.queries.moments import MomentQuery, SquareQuery, TargetQuery
from discreet.curator.records import admission, storage
from discreet.errors import Unsupported
from discreet.losses import Logistic, Softmax
from discreet.scale import limited
from discreet.testing import seeded
from tests.covering import covering

N, P = 2500, 5


@pytest.fixture
def small_parts(monkeypatch):
    """Cut records into parts of few rows."""
    return lambda rows: monkeypatch.setattr("discreet.curator.engines.rows_per_part", lambda columns: rows)


def records_of(layout="dense", n=N, kept=storage.MEMORY):
    rng = np.random.default_rng(n)
    X = rng.uniform(-1, 1, (n, P))
    X[rng.uniform(size=n) < 0.1] = np.nan
    groups = rng.integers(0, max(1, n // 3), n) if layout == "persons" else None
    if layout == "sparse":
        X = sparse.csr_array(np.where(np.abs(X) < 0.5, 0.0, X))
    scaling = admission.scaling_for(Bounds(1.0, classes=(0, 1)), P, None, True)
    return admission.admit(X, rng.choice([-1.0, 1.0], n), scaling, groups, storage=kept)


def questions(records):
    rng = np.random.default_rng(1)
    w, grid, width = rng.normal(size=P + 1), records.grid, records.n_columns
    point, other = place_weights(w, grid), place_weights(w[::-1].copy(), grid)
    many = place_weights(rng.normal(size=(P + 1, 3)), grid)
    sample = np.flatnonzero(rng.uniform(size=records.n_units) < 0.2).astype(np.int64)
    entry = CoordinateQuery(
        np.rint(w * 2**20), Logistic(), np.array([1, 3]), np.full(2, 900.0), np.array([1 << 20, 1 << 21]), 2.0**-34
    )
    return {
        "gradient": GradientQuery(point, Logistic(), 1 << 34, 2.0**21),
        "gradient, L1": GradientQuery(point, Logistic(), 1 << 34, 2.0**21, True),
        "sample": GradientQuery(point, Logistic(), 1 << 34, 2.0**21, units=sample),
        "change": GradientQuery(point, Logistic(), 1 << 34, 2.0**21, units=sample, anchor=other),
        "several outputs": GradientQuery(many, Softmax(3), 1 << 34, 2.0**21),
        "mean": MomentQuery(1 << 36, 55.5),
        "squares": MomentQuery(1 << 36, 55.5, moment="squares"),
        "squares about a center": MomentQuery(1 << 36, 55.5, moment="squares", center=np.arange(width) * 900),
        "outer": MomentQuery(1 << 36, 55.5, moment="outer"),
        "square norms": SquareQuery(np.full(width, 3.0), np.full(width, 1 << 30), 1 << 31),
        "targets": TargetQuery(1 << 30, 0.1, 1.2),
        "entries": entry,
        "share": ShareQuery(replace(entry, columns=entry.columns[:1], bounds=entry.bounds[:1]), 4000.0),
        "losses": ValueQuery((point, other), Logistic(), 1 << 30, 2.0**20),
    }


@pytest.mark.parametrize("rows", [1, 700, 2500])
@pytest.mark.parametrize("layout", ["dense", "persons", "sparse"])
@pytest.mark.parametrize("on_disk", [False, True])
@pytest.mark.few(6)
def test_a_total_is_the_sum_over_all_records(small_parts, tmp_path, rows, layout, on_disk):
    small_parts(rows)
    n = 40 if rows == 1 else N
    records = records_of(layout, n, storage.OnDisk(tmp_path) if on_disk else storage.MEMORY)
    parted, whole = PartedEngine(records, threads=2), engine_for(records_of(layout, n), threads=1)
    for name, question in questions(records).items():
        if layout == "sparse" and name in ("outer", "squares about a center"):
            continue
        for _ in range(2):  # the second time from tiles that were kept
            np.testing.assert_array_equal(parted.total(question), question.over(whole), err_msg=name)


def test_no_records_are_one_empty_part(small_parts, tmp_path):
    for kept in (storage.MEMORY, storage.OnDisk(tmp_path)):
        records = records_of(n=0, kept=kept)
        found = PartedEngine(records).total(questions(records)["gradient"])
        assert not found.any()


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
    records = records_of(layout, 100)
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
@pytest.mark.few(12)
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
    records = records_of(layout, 100)
    gc.disable()
    try:
        for name, question in questions(records).items():
            if layout == "sparse" and name in ("outer", "squares about a center"):
                continue
            engine = engine_for(records, threads=1)
            question.over(engine)
            made = weakref.ref(engine)
            del engine
            assert made() is None, name
    finally:
        gc.enable()
