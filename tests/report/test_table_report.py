"""A table's report: what it says of the model follows from what the loss says of itself."""

import numpy as np
import pytest

from discreet import DPClassifier, DPLinearSVC, DPLogisticRegression, DPPoissonRegressor, DPRidge, Schema, TableModel
from discreet.losses import Logistic
from discreet.report.table_report import report_of
from discreet.schema import Number, Target

ROWS = 200
TABLE = {"age": np.linspace(0, 99, ROWS), "y": np.arange(ROWS) % 2}
CLASSES, NUMBERS = Target("y", classes=(0, 1)), Target("y", range=(0, 10))


@pytest.mark.parametrize(
    ("estimator", "target", "effect"),
    [
        (DPLogisticRegression, CLASSES, "log-odds of y = 1"),
        (lambda **settings: DPClassifier(loss=Logistic(), **settings), CLASSES, "log-odds of y = 1"),
        (DPLinearSVC, CLASSES, "the prediction of y = 1"),
        (DPRidge, NUMBERS, "the prediction per"),
        (DPPoissonRegressor, NUMBERS, "logarithm of the mean per"),
    ],
)
def test_units_are_what_the_loss_calls_its_margin(estimator, target, effect, monkeypatch):
    monkeypatch.setattr("discreet.report.table_report.cost_forecast", lambda *_, **__: None)
    made = estimator(epsilon=1.0, delta=1e-6, solver="gd", ledger=False)
    model = TableModel(Schema({"age": Number((0, 99))}, target), made).fit(TABLE)
    assert f"Change of {effect}" in report_of(model, "Ages").units
