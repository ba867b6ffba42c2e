"""Categories against a base: the same predictions can be said, and a coefficient is a difference."""

import numpy as np
import pandas as pd
import pytest

from discreet import DPLogisticRegression, Schema, TableModel
from discreet.models import SchemaEncoder
from discreet.schema import Category, Target
from discreet.testing import seeded


def encoded(kind, cells):
    encoder = SchemaEncoder(Schema({"c": kind}))
    return list(encoder.get_feature_names_out()), encoder.transform(pd.DataFrame({"c": cells})).tolist()


CELLS = ["a", "b", "strange", None]


@pytest.mark.parametrize(
    ("kind", "names", "rows"),
    [
        (Category(("a", "b"), base="a"), ["c = b", "c (other)"], [[0, 0], [1, 0], [0, 1], [0, 1]]),
        (Category(("a", "b"), base="a", missing="a"), ["c = b", "c (other)"], [[0, 0], [1, 0], [0, 1], [0, 0]]),
        (Category(("a", "b"), base="b", missing="a", other=False), ["c = a"], [[1], [0], [0], [1]]),
        (
            Category(("a", "b"), base="a", missing="flag"),
            ["c = b", "c (other)", "c (missing)"],
            [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]],
        ),
    ],
)
def test_the_base_has_no_cell(kind, names, rows):
    assert encoded(kind, CELLS) == (names, rows)


def test_a_coefficient_is_a_difference_from_the_base():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"c": rng.choice(["a", "b"], 30_000)})
    table["t"] = (rng.random(30_000) < np.where(table["c"] == "a", 0.3, 0.6)).astype(int)
    schema = Schema({"c": Category(("a", "b"), base="a", other=False)}, Target("t", classes=(0, 1)))
    with seeded(0):  # the noise's deviation is .015, the table's own .03
        model = TableModel(schema, DPLogisticRegression(epsilon=4.0, ledger=False)).fit(table)
    difference, level = (one.value for one in model.coefficients())
    assert difference == pytest.approx(np.log(0.6 / 0.4 / (0.3 / 0.7)), abs=0.1)
    assert level == pytest.approx(np.log(0.3 / 0.7), abs=0.1)
    assert model.coefficients(units="original")[0].unit == "against a"
