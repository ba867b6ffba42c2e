"""Weights and offsets of rows on a cluster: the bits of memory."""

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from discreet import Bounds, DPLogisticRegression, DPPoissonRegressor, Schema, TableModel
from discreet.schema import Number, Offset, Target, Weight
from discreet.testing import seeded
from tests.curator.clusters.parted import BINARY, COUNTS, N, X, bits, in_parts

RNG = np.random.default_rng(3)
WEIGHTS, OFFSETS = RNG.uniform(-0.5, 3, N), RNG.uniform(-1, 1, N)
NAMES = RNG.integers(0, N // 3, N).astype(float)
MODELS = {
    "logistic": (DPLogisticRegression(bounds=Bounds(1.0, classes=(0, 1), weights=(0, 2), offsets=(-1, 1))), BINARY),
    "poisson": (DPPoissonRegressor(bounds=Bounds(1.0, target=(0, 10), weights=(0, 2), offsets=(-1, 1))), COUNTS),
}


def fitted(name, beside, parts=None, *, groups=None):
    model, y = MODELS[name]
    rows = {"X": X, "y": y, "groups": groups, **beside}
    if parts is not None:
        rows = {key: None if column is None else in_parts(column, parts) for key, column in rows.items()}
    with seeded(5):
        return clone(model).set_params(epsilon=3.0, delta=1e-6).fit(**rows)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("groups", [None, NAMES], ids=["records", "persons"])
@pytest.mark.parametrize(
    "beside",
    [{"sample_weight": WEIGHTS}, {"offset": OFFSETS}, {"sample_weight": WEIGHTS, "offset": OFFSETS}],
    ids=["weights", "offsets", "both"],
)
def test_weights_and_offsets_have_the_bits_of_memory(client, name, groups, beside):
    expected = bits(fitted(name, beside, groups=groups))
    assert bits(fitted(name, beside, 3, groups=groups)) == expected
    assert expected != bits(fitted(name, {}, groups=groups))


@pytest.mark.parametrize("person", [None, "who"])
def test_columns_of_a_table_have_the_bits_of_memory(client, person):
    frame = pd.DataFrame(X, columns=list("abc")).assign(visits=COUNTS, w=WEIGHTS, days=np.exp(OFFSETS), who=NAMES)
    schema = Schema(
        {name: Number((-1, 1)) for name in "abc"},
        Target("visits", range=(0, 10)),
        person=person,
        weight=Weight("w", (0, 2)),
        offset=Offset("days", (0.3, 3), log=True),
    )

    def table_model(table):
        with seeded(5):
            return bits(TableModel(schema, DPPoissonRegressor(3.0, 1e-6)).fit(table).estimator_)

    assert table_model(dd.from_pandas(frame, npartitions=3, sort=False)) == table_model(frame)
    empty = dd.concat([dd.from_pandas(part, npartitions=1) for part in (frame[:0], frame[:100], frame[100:])])
    assert table_model(empty) == table_model(frame)
