"""Weights and offsets of rows on a cluster: the bits of memory."""

import numpy as np
import pytest
from sklearn.base import clone

from discreet import Bounds, DPLogisticRegression, DPPoissonRegressor
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
