"""A data frame with named bounds, inside a scikit-learn pipeline.

A step before the private model may do what does not look at the data: pick columns, rename, convert units,
apply a fixed function. A step that *learns* from the rows (StandardScaler, PCA, an imputer) would give away what
it learned, unpaid; discreet scales by the declared ranges itself.
"""

import pandas as pd
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from discreet import Bounds, DPLogisticRegression, public_score
from discreet.datasets import CLASSES, CODEBOOK, OUTCOME, hospital

COLUMNS = ["age", "earlier_visits", "medications", "smoker", "lives_alone", "emergency"]


def pick(frame: pd.DataFrame) -> pd.DataFrame:
    """The columns of the model: the same for every data set."""
    return frame[COLUMNS]


def main() -> None:
    table = hospital(n=20_000)
    frame = pd.DataFrame(table.X, columns=list(table.names)).assign(**{OUTCOME: table.y})
    private, public = frame.iloc[:15_000], frame.iloc[15_000:]  # the last rows are declared public

    ranges = {name: CODEBOOK[name][:2] for name in COLUMNS}  # a range for each column, by its name
    model = make_pipeline(
        FunctionTransformer(pick),
        DPLogisticRegression(epsilon=1.0, bounds=Bounds(features=ranges, classes=CLASSES)),
    )
    model.fit(private, private[OUTCOME])

    fitted = model[-1]
    for name, coefficient in zip(fitted.feature_names_in_, fitted.coef_[0], strict=True):
        print(f"{name:<16}{coefficient:+.3f}")
    score = public_score(fitted, model[:-1].transform(public), public[OUTCOME])
    print(f"accuracy on public rows: {score.value:.3f}")
    print(fitted.certificate_)


if __name__ == "__main__":
    main()
