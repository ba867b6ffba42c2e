"""Records in Spark give the bits of records in memory, also when partitions are made again, and are charged once."""

import gc
import sys
import traceback

import numpy as np
import pandas as pd
import pytest

from discreet import DPLogisticRegression, DPRandomizedSearch, Schema, TableModel
from discreet.curator.clusters import spark as spark_parts
from discreet.curator.clusters.remote import RemoteEngine
from discreet.errors import ClusterFailed, Unsupported
from discreet.models import TableSearch
from discreet.schema import Category, Number, Target
from discreet.solvers import GradientDescent, StochasticGradientDescent
from discreet.testing import seeded
from tests.curator.clusters.sparked import frame_in_parts, local_session, needs_spark

pytestmark = [pytest.mark.thorough, needs_spark]

N = 240
SENTINEL = "sentinel-4711"
TYPES = "`the age` double, ward string, pay double, back bigint"
GD = GradientDescent(n_steps=4)
SGD = StochasticGradientDescent(n_steps=4, sampling_probability=0.25)
SOLVERS = {"gd": GD, "whitened": "auto", "sgd": SGD}


def _table():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"the age": rng.uniform(10, 110, N), "ward": rng.choice(["a", "b", "z"], N)})
    frame["pay"], frame["back"] = rng.normal(0, 300, N), (frame["the age"] > 60).astype(int)
    frame.loc[3, "the age"], frame.loc[4, "ward"] = np.nan, None
    return frame


FRAME = _table()
PAY = Number((-1000, 1000))


def schema(pay=PAY, **words):
    columns = {"the age": Number((18, 100)), "ward": Category(("a", "b")), "pay": pay}
    return Schema(columns, Target("back", classes=(0, 1)), **words)


@pytest.fixture(scope="module")
def spark():
    with local_session() as session:
        yield session


def in_parts(spark, parts, frame=FRAME, types=TYPES):
    return frame_in_parts(spark, frame, types, parts)


def fitted(data, declared=None, **settings):
    with seeded(3):
        model = TableModel(declared or schema(), DPLogisticRegression(2.0, **{"delta": 1e-6, **settings}))
        return model.fit(data)


def released(model):
    """What leaves a fit, but for the place where rows were kept."""
    facts = {k: v for k, v in model.certificate_.assumed_public.items() if k not in ("kept", "parts")}
    return [one.value for one in model.coefficients()], facts


def before_pass(monkeypatch, at, then):
    """Do something before one of the passes over the records, given their engine."""
    honest, passes = RemoteEngine.total, iter(range(1, 1000))

    def total(engine, question):
        if next(passes) == at:
            then(engine)
        return honest(engine, question)

    monkeypatch.setattr(RemoteEngine, "total", total)


def forget(engine):
    engine._held.parts.unpersist(blocking=True)


@pytest.mark.parametrize(
    ("pay", "neighbors"),
    [
        (PAY, "add_remove"),
        (Number("private", within=(-5000, 5000)), "replace_one"),
        (Number("private", within=(-5000, 5000)), "add_remove"),
    ],
)
def test_private_ranges_and_numbers_of_rows(spark, monkeypatch, pay, neighbors):
    if neighbors == "add_remove":
        monkeypatch.setattr(spark_parts.SparkParts, "count", lambda parts: pytest.fail("rows were counted"))
    found = fitted(in_parts(spark, 3), schema(pay), neighbors=neighbors)
    assert released(found) == released(fitted(FRAME, schema(pay), neighbors=neighbors))
    assert ("kept" in found.certificate_.assumed_public) == (neighbors == "replace_one")


@pytest.mark.parametrize("rows", [0, 2])
def test_partitions_without_rows_and_frames_without_partitions(spark, rows):
    some = FRAME[:rows]
    expected = released(fitted(some, neighbors="add_remove"))
    assert released(fitted(in_parts(spark, 5, some), neighbors="add_remove")) == expected
    if rows == 0:
        nothing = spark.createDataFrame(spark.sparkContext.emptyRDD(), TYPES)
        assert nothing.rdd.getNumPartitions() == 0
        assert released(fitted(nothing, neighbors="add_remove")) == expected


@pytest.mark.parametrize("solver", ["gd", "whitened"])
def test_partitions_that_are_made_again_cost_no_bit_and_no_charge(spark, monkeypatch, ledger, solver):
    expected = released(fitted(FRAME, solver=SOLVERS[solver]))
    data, forgotten = in_parts(spark, 3), []
    before_pass(monkeypatch, 3, lambda engine: (forget(engine), forgotten.append(engine._held.parts.is_cached)))
    found = fitted(data, solver=SOLVERS[solver], ledger=ledger, dataset="records")
    assert forgotten == [False]
    assert released(found)[0] == expected[0]
    assert ledger.spent("records").fits == 1


def test_a_source_that_changes_between_passes_fails_closed(spark, monkeypatch, ledger, tmp_path):
    path = tmp_path / "shift"
    path.write_text("0")

    def shifted(frames):
        for frame in frames:
            yield frame.assign(pay=frame["pay"] + float(path.read_text()))

    data = in_parts(spark, 3).mapInPandas(shifted, TYPES)
    before_pass(monkeypatch, 3, lambda engine: (path.write_text("1"), forget(engine)))
    with pytest.raises(ClusterFailed, match="not what it was"):
        fitted(data, solver=GD, ledger=ledger, dataset="records")
    assert ledger.spent("records").fits == 1


def test_errors_on_executors_carry_no_value(spark, ledger):
    def broken(frames):
        for frame in frames:
            if len(frame):
                raise ValueError(f"could not convert {SENTINEL}")
            yield frame

    data = in_parts(spark, 2).mapInPandas(broken, TYPES)
    with pytest.raises(ClusterFailed) as caught:
        fitted(data, solver=GD, ledger=ledger, dataset="records", neighbors="replace_one")
    assert SENTINEL not in "".join(traceback.format_exception(caught.value))
    assert (caught.value.__cause__, caught.value.__context__) == (None, None)


def test_executors_import_neither_noise_nor_entropy_nor_ledger(spark):
    from tests.curator.clusters.test_tasks import HIDDEN

    fitted(in_parts(spark, 3), schema(Number("private", within=(-5000, 5000))))

    def imported(_):
        return [name for name in sys.modules if name.startswith("discreet")]

    for found in spark.sparkContext.parallelize(range(4), 4).map(imported).collect():
        assert "discreet.curator.clusters.tasks" in found
        assert not [name for name in found if name.startswith("discreet.ledger") or name in HIDDEN]


def test_executors_keep_nothing_after_a_fit(spark, monkeypatch):
    kept, honest = [], spark_parts.SparkHeld.__init__

    def made(self, parts):
        honest(self, parts)
        kept.append(parts)

    monkeypatch.setattr(spark_parts.SparkHeld, "__init__", made)
    seen = []
    before_pass(monkeypatch, 2, lambda engine: seen.append(kept[0].is_cached))
    fitted(in_parts(spark, 3))
    gc.collect()
    assert seen == [True]
    assert len(kept) == 2  # as encoded, and as recoded
    assert not any(parts.is_cached for parts in kept)


@pytest.mark.parametrize("solver", ["output", "objective", "exponential"])
def test_one_shot_methods_are_refused_before_the_charge(spark, ledger, solver):
    with pytest.raises(Unsupported, match="iterative one"):
        fitted(in_parts(spark, 2), solver=solver, ledger=ledger, dataset="records")
    assert ledger.spent("records").fits == 0


def test_other_code_on_executors_is_refused_before_the_charge(spark, monkeypatch, ledger):
    monkeypatch.setattr(spark_parts.calls, "look", lambda _, message: ("here:7", message))  # no answer of a probe
    with pytest.raises(ClusterFailed, match=r"worker here:7 runs other code .* Nothing was charged"):
        fitted(in_parts(spark, 2), ledger=ledger, dataset="records")
    assert ledger.spent("records").fits == 0


WHO = FRAME.assign(who=np.random.default_rng(4).integers(0, N // 3, N), w=np.random.default_rng(5).uniform(0, 2, N))
WHO_TYPES = f"{TYPES}, who bigint, w double"


@pytest.mark.parametrize("metric", ["accuracy", "auc", "calibration"])
@pytest.mark.parametrize("person", [None, "who"])
def test_scores_have_the_bits_of_memory(spark, metric, person):
    model = fitted(WHO, schema(person=person), solver=GD)

    def scored(table):
        with seeded(4):
            return model.private_score(table, epsilon=2.0, delta=1e-6, metric=metric).to_text()

    assert scored(in_parts(spark, 3, WHO, WHO_TYPES)) == scored(WHO)


@pytest.mark.parametrize("person", [None, "who"])
def test_searches_have_the_bits_of_memory(spark, person):
    def searched(table):
        candidates = {"solver": [GradientDescent(n_steps=2), SGD]}
        search = DPRandomizedSearch(DPLogisticRegression(), candidates, epsilon=4.0, delta=1e-6, mean_runs=2)
        with seeded(5):
            found = TableSearch(schema(person=person), search).fit(table)
        return [one.value for one in found.best_estimator_.coefficients()], found.best_score_

    assert searched(in_parts(spark, 3, WHO, WHO_TYPES)) == searched(WHO)


def test_wrong_types_and_columns_are_refused_before_a_row_is_read(spark):
    from pyspark.sql.functions import current_date

    data = in_parts(spark, 2)
    with pytest.raises(Unsupported, match="no column 'back'"):
        fitted(data.drop("back"))
    with pytest.raises(Unsupported, match="stored as date"):
        fitted(data.withColumn("pay", current_date()))
    with pytest.raises(Unsupported, match="rows are in Spark"):
        fitted(FRAME).predict(data)
    small = data.selectExpr("`the age`", "ward", "cast(pay as decimal(12, 3)) pay", "cast(back as tinyint) back")
    assert len(fitted(small).coefficients()) == len(fitted(FRAME).coefficients())
