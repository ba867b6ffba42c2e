"""How columns are stored against what is declared: refused by types alone, before anything is charged or read."""

import pandas as pd
import pyarrow as pa
import pytest

from discreet import Ledger, TableModel
from discreet.models import DPLogisticRegression
from discreet.models.table_model import SchemaEncoder
from discreet.schema.columns import Boolean, Category, Number, Ordinal, SchemaError, Target
from discreet.schema.schema import Schema

WHOLE, REAL, TRUTH, TEXT = pa.int64(), pa.float32(), pa.bool_(), pa.string()
FITS = [
    (Category(("no", "yes")), [TEXT, pa.null()], [WHOLE, REAL, TRUTH, pa.decimal128(5, 2)]),
    (Category(("0", "1", "unknown")), [TEXT, WHOLE, REAL], [TRUTH]),
    (Category(("true", "false")), [TEXT, TRUTH], [WHOLE]),
    (Category((0, 1)), [TEXT, WHOLE, REAL, TRUTH], []),
    (Category((5, 7)), [TEXT, WHOLE], [TRUTH]),
    (Ordinal(("low", "high")), [TEXT], [WHOLE, TRUTH]),
    (Ordinal((1, 2, 3)), [WHOLE, TEXT], []),
    (Boolean(), [TEXT, WHOLE, TRUTH, REAL], []),
    (Boolean(true=("yes",), false=("no",)), [TEXT], [WHOLE, TRUTH]),
    (Number((0, 1)), [TEXT, WHOLE, REAL, TRUTH], []),
]


def table(stored):
    return pa.table({"x": pa.nulls(40, stored), "y": pa.array([0, 1] * 20)})


CASES = [
    *((kind, stored, False) for kind, fitting, _ in FITS for stored in fitting),
    *((kind, stored, True) for kind, _, wrong in FITS for stored in wrong),
]


@pytest.mark.parametrize(("kind", "stored", "is_refused"), CASES, ids=str)
@pytest.mark.parametrize("encoded", [False, True], ids=["stored", "dictionary"])
def test_a_type_that_holds_no_label_is_refused_before_the_charge(kind, stored, is_refused, encoded, tmp_path):
    schema = Schema({"x": kind}, Target("y", classes=(0, 1)))
    given = table(pa.dictionary(pa.int8(), stored) if encoded and not pa.types.is_null(stored) else stored)
    ledger = Ledger.create(tmp_path / "budget.db")
    ledger.grant("people", 5.0, 1e-4)
    model = TableModel(schema, DPLogisticRegression(delta=1e-5, solver="gd", ledger=ledger, dataset="people"))
    if not is_refused:
        model.fit(given)
        SchemaEncoder(schema).fit(given)
        return
    with pytest.raises(SchemaError, match=r"x: it is stored as .*, which holds none of"):
        model.fit(given)
    with pytest.raises(SchemaError, match="x: it is stored as"):
        SchemaEncoder(schema).fit(given)
    assert ledger.spent("people").fits == 0


@pytest.mark.parametrize("y", [[0, 1] * 20, [True, False] * 20, [0.0, 1.0] * 20], ids=["whole", "truth", "real"])
def test_classes_that_the_target_s_type_cannot_hold_are_refused(y):
    schema = Schema({"x": Number((0, 1))}, Target("y", classes=("no", "yes")))
    with pytest.raises(SchemaError, match=r"y: it is stored as .*none of 'no', 'yes'"):
        TableModel(schema).fit(pd.DataFrame({"x": [0.5] * 40, "y": y}))


def test_truth_holds_classes_that_are_true_and_false_in_any_case():
    table = pd.DataFrame({"x": [0.5] * 40, "y": [True, False] * 20})
    model = TableModel(Schema({"x": Number((0, 1))}, Target("y", classes=("FALSE", "TRUE")))).fit(table)
    assert model.classes_.tolist() == ["FALSE", "TRUE"]
    assert set(model.predict(table)) <= {"FALSE", "TRUE"}


def test_every_column_that_does_not_fit_is_named():
    schema = Schema({"x": Category(("a",)), "z": Category(("b",))}, Target("y", classes=(0, 1)))
    with pytest.raises(SchemaError, match=r"x: it is .*z: it is"):
        TableModel(schema).fit(pd.DataFrame({"x": [1], "z": [2], "y": [0]}))
