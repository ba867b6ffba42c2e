"""Deploy a private model without discreet: a plain scikit-learn pipeline that predicts the same numbers."""

import numpy as np
import pandas as pd

from discreet import DPLogisticRegression, Schema, TableModel
from discreet.datasets import hospital
from discreet.schema import Boolean, Number, Target

table = hospital(2000)  # synthetic
frame = pd.DataFrame(table.X, columns=list(table.names)).assign(returned=table.y)
schema = Schema({"age": Number((18, 110)), "smoker": Boolean()}, Target("returned", classes=(0, 1)))
model = TableModel(schema, DPLogisticRegression(epsilon=1.0)).fit(frame)

pipeline = model.to_sklearn()  # joblib.dump(pipeline, "model.joblib") writes it to a file
new = pd.DataFrame({"age": [40, 400, None], "smoker": ["yes", "no", "perhaps"]})  # in range, out of range, missing
assert np.allclose(pipeline.predict_proba(new), model.predict_proba(new), rtol=0, atol=1e-12)

print(pipeline)
print(model.certificate_)
