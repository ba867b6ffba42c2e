"""Noisy counts of cells that do not hold what was declared: what is counted, what it costs, what is said."""

import math

import numpy as np
import pandas as pd
import pytest

from discreet import DPLogisticRegression
from discreet.accounting.certificate import CHECKED, Checked
from discreet.curator.tables.frames import FrameSource
from discreet.curator.tables.stream import TableStream
from discreet.models.table_model import TableModel
from discreet.schema.columns import Boolean, Category, Number, Ordinal, Target
from discreet.schema.schema import Schema
from discreet.solvers import GradientDescent
from tests.covering import covering

COLUMNS = {
    "age": Number((0, 100), missing="record"),
    "bent": Number((0, 100), knots=(50,)),
    "curve": Number((0, 100), knots=3),
    "sex": Category(("f", "m")),
    "grade": Ordinal(("low", "high"), missing="record"),
    "smoker": Boolean(),
}
SCHEMA = Schema(COLUMNS, Target("ill", classes=("no", "yes")))
FINE = {"age": 50, "bent": 20, "curve": 20, "sex": "f", "grade": "low", "smoker": "yes", "ill": "no"}
WRONG = {
    "age": {"no_number": (None, "old", math.nan), "outside": (-1, 101, "1e9")},
    "bent": {"no_number": ("", "x"), "outside": (1e300,)},
    "curve": {"no_number": ("", "x"), "outside": (1e300,)},
    "sex": {"empty": (None, " "), "unknown": ("F", "male", 7)},
    "grade": {"empty": (None,), "unknown": ("middling",)},
    "smoker": {"empty": (None, "NA"), "unknown": ("sometimes", 2)},
    "ill": {"empty": (None,), "unknown": ("maybe", 0)},
}
NULL = {("age", "no_number"), ("grade", "empty"), ("grade", "unknown"), ("ill", "empty"), ("ill", "unknown")}


def frame(rows):
    return pd.DataFrame(rows, columns=list(FINE), dtype=object)


def counted(table, schema=SCHEMA, **settings):
    """The exact counts: those of a fit without noise."""
    model = TableModel(schema, DPLogisticRegression(math.inf, 1e-5, solver=GradientDescent(1), **settings))
    return model.fit(table).certificate_.assumed_public[CHECKED]


@pytest.mark.parametrize(("column", "what"), [(column, what) for column, kinds in WRONG.items() for what in kinds])
def test_each_kind_of_wrong_cell_is_counted_in_its_place(column, what):
    cells = WRONG[column][what]
    found = counted(frame([FINE] * 3 + [{**FINE, column: cell} for cell in cells]))
    expected = {name: dict.fromkeys(kinds, 0) for name, kinds in WRONG.items()}
    expected[column][what] = len(cells)
    assert found["columns"] == expected
    assert found["null_records"] == (len(cells) if (column, what) in NULL else 0)
    assert found["noise"] == 0


def test_null_records_are_those_that_contribute_nothing():
    """Counted as null, by every column's rule: exactly the rows whose features or target are not finite."""
    rng = np.random.default_rng(0)
    cells = {name: [FINE[name], *(cell for cells in kinds.values() for cell in cells)] for name, kinds in WRONG.items()}
    rows = [{name: cells[name][rng.integers(len(cells[name]))] for name in cells} for _ in range(300)]
    table = frame(rows)
    blocks = list(TableStream(FrameSource(table), SCHEMA).blocks())
    null = sum(int((~np.isfinite(b.features).all(axis=1) | ~np.isfinite(b.targets)).sum()) for b in blocks)
    assert 0 < null < 300
    assert counted(table)["null_records"] == null


def test_persons_count_as_the_mean_of_their_rows():
    schema = Schema({"x": Category(("a",))}, Target("y", classes=(0, 1)), person="who")
    table = pd.DataFrame({"x": list("azzzza"), "y": [0, 1] * 3, "who": [1, 1, 2, 2, 3, 3]}, dtype=object)
    assert counted(table, schema)["columns"]["x"] == {"empty": 0, "unknown": 2}  # a half, one, a half


def table_of(n, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": rng.uniform(0, 100, n),
            "bent": rng.uniform(0, 100, n),
            "curve": rng.uniform(0, 100, n),
            "sex": rng.choice(["f", "m"], n),
            "grade": rng.choice(["low", "high"], n),
            "smoker": rng.choice(["yes", "no"], n),
            "ill": rng.choice(["no", "yes"], n),
        }
    )


@covering(("relation", ["replace_one", "zero_out", "add_remove"]), ("delta", [1e-6, 0.0]))
def test_they_cost_a_fiftieth_and_can_be_switched_off(relation, delta):
    table, settings = table_of(200), {"delta": delta, "neighbors": relation, "solver": "gd"}
    schema = Schema(COLUMNS, SCHEMA.target, rows=200)
    on = TableModel(schema, DPLogisticRegression(1.0, **settings)).quote(table).priced
    off = TableModel(schema, DPLogisticRegression(1.0, **settings), checks=False).quote(table).priced
    assert [r.query for r in on.plan.releases] == [*(r.query for r in off.plan.releases), "noisy_checks"]
    assert on.price.epsilon <= 1.0
    power = 2 if delta else 1
    assert (off.noise_multiplier / on.noise_multiplier) ** power == pytest.approx(0.98, abs=1e-6)
    assert (
        CHECKED
        not in TableModel(schema, DPLogisticRegression(**settings), checks=False).fit(table).certificate_.assumed_public
    )


def test_they_go_with_private_ranges():
    schema = Schema({**COLUMNS, "age": Number("private", within=(0, 1e4))}, SCHEMA.target)
    model = TableModel(schema, DPLogisticRegression(5.0, 1e-5, solver="gd")).fit(table_of(400))
    public = model.certificate_.assumed_public
    assert {"estimated_ranges", CHECKED} <= set(public)
    assert model.certificate_.verify().is_private


# ---------------------------------------------------------------------------------------------- what is said


def lines(**facts):
    return Checked(**{"noise": 10.0, "null": 0.0, "columns": {}, "n": 1000, **facts}).lines()


def test_a_private_number_of_records_is_not_shown():
    assert lines(n=None, null=600.0)[0] == "about 600 records count as null: they taught the model nothing."


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({}, "about 90% of the cells of age are empty or no number"),
        ({"n": 3000}, ""),
        ({"n": None}, ""),
        ({"noise": 400.0}, ""),
        ({"columns": {"sex": {"empty": 900.0}}}, ""),
    ],
    ids=["most", "few", "private n", "noise", "another column"],
)
def test_a_column_that_most_rows_do_not_fit_is_named(facts, expected):
    counts = {"age": {"no_number": 900.0, "outside": 1.0}}
    assert Checked(**{"noise": 10.0, "null": 0.0, "columns": counts, "n": 1000, **facts}).mismatch("age") == expected


CASES = [("false", "true"), ("FALSE", "TRUE"), ("False", "True"), ("TRUE", "False")]


@pytest.mark.parametrize("classes", CASES, ids=str)
@pytest.mark.parametrize("stored", [bool, "bool[pyarrow]", "upper", "title", "category"])
def test_a_target_of_true_and_false_is_read_in_any_case(classes, stored):
    """pandas reads TRUE and FALSE from a file and writes True and False: all rows would be null."""
    cells = pd.Series([True, False, True, None], dtype=object)
    if stored in ("upper", "title"):
        cells = cells.map({True: "TRUE", False: "FALSE"} if stored == "upper" else {True: " True ", False: "False"})
    else:
        cells = cells.astype("category") if stored == "category" else cells[:3].astype(stored)
    table = pd.DataFrame({**{name: [value] * len(cells) for name, value in FINE.items()}, "ill": cells})
    schema = Schema(COLUMNS, Target("ill", classes=classes))
    block = next(iter(TableStream(FrameSource(table), schema).blocks()))
    first = [float(classes[1].lower() == word) for word in ("true", "false", "true")]
    np.testing.assert_array_equal(block.targets, [*first, math.nan][: len(cells)])
    found = counted(table, schema)["columns"]["ill"]
    assert found == {"empty": float(len(cells) == 4), "unknown": 0}


def test_true_and_false_next_to_other_labels_are_texts_like_others():
    schema = Schema(COLUMNS, Target("ill", classes=("true", "false", "unsure")))
    table = frame([FINE] + [{**FINE, "ill": label} for label in ("true", "TRUE", "unsure")])
    assert counted(table, schema)["columns"]["ill"]["unknown"] == 2
