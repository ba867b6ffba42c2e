"""Bounds contain what is encoded, whatever is declared and whatever stands in the cells."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from discreet import DPLogisticRegression
from discreet.curator.noise import SeededEntropy, use_entropy
from discreet.curator.records import admission
from discreet.curator.tables.encode import Layout
from discreet.curator.tables.frames import FrameSource
from discreet.models.table_model import SchemaEncoder, TableModel, coefficients, make_private_pipeline
from discreet.schema.columns import Boolean, Category, Number, SchemaError, Target
from discreet.schema.schema import Schema
from discreet.solvers import GradientDescent
from tests.curator.tables.declarations import LARGEST, RANGES, kinds, schemas
from tests.curator.tables.test_cells import anything, boxed

SOLVER = GradientDescent(n_steps=2, clip=1.0)


def edge_cells(kind):
    """Cells at and just beyond what is declared."""
    if isinstance(kind, Number):
        low, high = kind.limits
        places = () if isinstance(kind.knots, int) else kind.knots
        ends = [low, high, *places, *(math.nextafter(x, s * math.inf) for x in (low, high) for s in (-1, 1))]
        return [*ends, *map(repr, ends), -LARGEST, LARGEST, low / 2 + high / 2, 5e-324, -0.0]
    if isinstance(kind, Boolean):
        return ["YES", "no", True, False, 1, 0, "2"]
    return [*(kind.categories if isinstance(kind, Category) else kind.levels), "unheard of"]


@st.composite
def tables(draw):
    schema = draw(schemas())
    rows = draw(st.integers(1, 5))
    columns = {}
    for name, kind in schema.columns.items():
        cell = st.sampled_from(edge_cells(kind)) | anything
        columns[name] = boxed(draw(st.lists(cell, min_size=rows, max_size=rows)))
    return schema, pd.DataFrame({name: pd.Series(cells, dtype=object) for name, cells in columns.items()})


def laid_out(schema):
    try:
        return Layout(schema)
    except SchemaError:  # names that clash
        assume(False)


@settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(tables())
def test_bounds_contain_the_output(drawn):
    schema, frame = drawn
    layout = laid_out(schema)
    bounds = layout.bounds
    found = SchemaEncoder(schema).transform(frame)
    assert found.shape == (len(frame), len(layout.features)) == (len(frame), len(bounds.features))
    null = np.isnan(found).any(axis=1)
    assert not np.isinf(found).any()
    low, high = np.array(bounds.features).T
    there = found[~null]
    assert ((low <= there) & (there <= high)).all()
    assert all(math.sqrt(math.fsum(x * x for x in row)) <= bounds.row_norm for row in there.tolist())
    if null.any():
        recorded = {name for name, kind in schema.columns.items() if kind.missing == "record"}
        missing = {layout.features[j].column for j in np.flatnonzero(np.isnan(found).any(axis=0))}
        assert all(any(part in recorded for part in column.split(" x ")) for column in missing)


@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(tables(), st.integers(1, 4))
def test_a_row_is_encoded_for_itself(drawn, rows):
    """Alone, in small batches, or beside others: the same bits."""
    schema, frame = drawn
    layout = laid_out(schema)
    whole = SchemaEncoder(schema).transform(frame)
    names = list(schema.columns)
    parts = [layout.encode(batch.columns, batch.rows) for batch in FrameSource(frame).batches(names, rows)]
    assert np.concatenate(parts).tobytes() == np.ascontiguousarray(whole).tobytes()
    for i in range(len(frame)):
        assert SchemaEncoder(schema).transform(frame.iloc[i : i + 1]).tobytes() == whole[i].tobytes()


@settings(max_examples=25)
@given(kinds, st.lists(anything, min_size=1, max_size=4))
def test_the_bits_are_the_same_as_text(kind, listed):
    """What can be said in a CSV file is encoded as in a frame of cells."""
    texts = [str(cell) if isinstance(cell, (int, float, str)) and not isinstance(cell, bool) else "" for cell in listed]
    texts = [text.encode("utf-8", "replace").decode() for text in texts]
    encoder = SchemaEncoder(Schema({"c": kind}))
    laid_out(encoder.schema)
    one, other = (
        encoder.transform(pd.DataFrame({"c": pd.Series(texts, dtype=dtype)})) for dtype in (object, "category")
    )
    assert one.tobytes() == other.tobytes()


@pytest.mark.parametrize("kind", [Number((0, 10), missing="record"), Category(("a",), missing="record")])
def test_a_missing_value_that_nulls_the_record(kind):
    """NaN comes in by that treatment alone, and the door makes the whole record null."""
    schema = Schema({"a": kind, "b": Number((0, 1))}, interactions=(("a", "b"),))
    layout = Layout(schema)
    features = SchemaEncoder(schema).transform(pd.DataFrame({"a": [None, "7"], "b": [1.0, 1.0]}))
    assert np.isnan(features).any(axis=1).tolist() == [True, False]
    scaling = admission.scaling_for(layout.bounds, len(layout.features), None, True)
    records = admission.admit(features, np.zeros(2), scaling)
    assert not records.rows[0].any()
    assert records.rows[1].any()


@pytest.mark.parametrize("ends", RANGES, ids=str)
@pytest.mark.parametrize("missing", ["middle", "flag", "record", "low"])
def test_extreme_ranges(ends, missing):
    low, high = ends
    schema = Schema({"a": Number(ends, missing=low if missing == "low" else missing)})
    cells = [low, high, None, math.inf, -math.inf, math.nan, -LARGEST, LARGEST, low / 2 + high / 2]
    found = SchemaEncoder(schema).transform(pd.DataFrame({"a": pd.Series(cells, dtype=object)}))
    there = found[~np.isnan(found).any(axis=1)]
    assert (np.abs(there) <= 1).all()
    assert found[0, 0] < found[1, 0]
    assert {-1.0, 1.0} & {found[0, 0], found[1, 0]}
    assert np.isnan(found).any() == (missing == "record")


# ------------------------------------------------------------------------------------------------- original units


def test_a_pipeline_and_a_table_model_are_one():
    rng = np.random.default_rng(2)
    frame = pd.DataFrame({"x": rng.uniform(0, 9, 50), "c": rng.choice(list("abz"), 50), "y": rng.choice([0, 1], 50)})
    schema = Schema({"x": Number((0, 9)), "c": Category(("a", "b"))}, Target("y", classes=(0, 1)))
    made = []
    for way in ("table", "pipeline"):
        with use_entropy(SeededEntropy(3)):
            if way == "table":
                unchecked = TableModel(schema, DPLogisticRegression(1.0, 1e-5, solver=SOLVER), checks=False)
                made.append(unchecked.fit(frame))
            else:
                pipeline = make_private_pipeline(schema, DPLogisticRegression(1.0, 1e-5, solver=SOLVER))
                made.append(pipeline.fit(frame[["x", "c"]], frame["y"]))
    table, pipeline = made
    assert table.estimator_.coef_.tobytes() == pipeline["model"].coef_.tobytes()
    assert table.coefficients(units="original") == coefficients(pipeline, units="original")
    assert (table.predict(frame) == pipeline.predict(frame)).all()
