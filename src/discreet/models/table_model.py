"""``TableModel``: a private model of a table, from a schema and any linear model of discreet's."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from discreet.accounting.cell_counts import BOUGHT
from discreet.accounting.certificate import Certificate
from discreet.budget import Neighbors
from discreet.curator import FrameSource, Layout, Source, TableStream, open_table
from discreet.errors import Unsupported
from discreet.models.base import DPLinearModel
from discreet.models.fitting import Quote
from discreet.models.registry import MODELS
from discreet.models.scoring import PrivateScore, private_score, public_score
from discreet.models.table_encoder import Coefficient, coefficients_of
from discreet.schema.schema import Schema


class TableModel:
    """A private linear model of a table: reads files or data frames by a schema, streamed, and keeps names.

    Parameters
    ----------
    schema
        What is publicly known of the table.
    estimator
        One of discreet's models, not fitted, without bounds: the schema brings them. None: logistic regression for
        classes, ridge regression for numbers, both with epsilon = 1.
    checks
        Whether a fiftieth of a fit's budget counts, with noise, the records that count as null and the cells that do
        not hold what the schema declares. The certificate shows what stands out.

    Attributes
    ----------
    estimator_, certificate_
        The fitted model of the encoded features, and what may be claimed of it.
    schema_
        The schema that it was fitted by: with bought ranges in the place of private ones.
    """

    estimator_: DPLinearModel
    schema_: Schema

    def __init__(self, schema: Schema, estimator: DPLinearModel | None = None, *, checks: bool = True) -> None:
        self.schema, self.checks = schema, checks
        if estimator is None:
            schema.check()
            estimator = MODELS[default_model(schema)]()
        self.estimator = estimator
        if estimator.bounds is not None:
            raise Unsupported("the schema brings the bounds: leave bounds out of the estimator")

    @property
    def certificate_(self) -> Certificate:
        """What may be claimed of the model."""
        return self._fitted.certificate_

    def quote(self, data: Any) -> Quote:
        """What a fit would release and cost, before a row is read (rows are counted where neighbors agree on n)."""
        stream = self.stream(data)
        quote: Quote = self._unfitted(stream).quote(stream)
        return quote

    def fit(self, data: Any, *, request: str | None = None) -> Self:
        """Fit privately on a data frame, or on files of CSV or Parquet, which are read in blocks.

        ``request`` names the fit in a ledger: asked again, it is charged once and gives the same model.
        """
        stream = self.stream(data)
        self.estimator_ = self._unfitted(stream).fit(stream, request=request)
        bought = self.certificate_.assumed_public.get(BOUGHT, {})
        self.schema_ = self.schema.with_ranges({name: (low, high) for name, (low, high) in bought.items()})
        return self

    def predict(self, data: Any) -> NDArray[Any]:
        """The prediction for each row; what is missing is treated as declared."""
        return _joined(self.predictions(data))

    def predict_proba(self, data: Any) -> NDArray[np.float64]:
        """The probability of each class for each row."""
        return _joined(self.predictions(data, "predict_proba"))

    def predictions(self, data: Any, method: str = "predict") -> Iterator[NDArray[Any]]:
        """Predictions block by block; where a missing value would make a record null, its features are 0."""
        if not hasattr(self._fitted, method):
            raise Unsupported(f"{type(self._fitted).__name__} has no {method}")
        for block in TableStream(_source(data, self.schema), self.schema_, with_target=False).blocks():
            yield getattr(self._fitted, method)(np.nan_to_num(block.features))

    def rows(self, data: Any) -> TableStream:
        """Rows with their targets, encoded as the model needs them: for scores."""
        return TableStream(_source(data, self.schema), self.schema_)

    @property
    def indicators_(self) -> tuple[tuple[int, ...], ...]:
        """Groups of features of which at most one is on in a row."""
        return Layout(self.schema_).indicators

    def coefficients(self, *, units: str = "original") -> list[Coefficient]:
        """Coefficients by name, in the columns' own units or ``units="encoded"`` of the features."""
        return coefficients_of(self.schema_, self._fitted, units=units)

    def save(self, folder: str | Path) -> Path:
        """Write the model to a new folder, whole or not at all; ``TableModel.load`` reads it."""
        from discreet.models.model_folder import save

        return save(self, Path(folder))

    @classmethod
    def load(cls, folder: str | Path) -> "TableModel":
        """Read a model that ``save`` wrote."""
        from discreet.models.model_folder import load

        return load(Path(folder))

    @property
    def _fitted(self) -> DPLinearModel:
        if not hasattr(self, "estimator_"):
            raise Unsupported("the model is not fitted yet: call fit first")
        return self.estimator_

    def private_score(self, data: Any, **settings: Any) -> PrivateScore:
        """How well the model predicts rows that it was not fitted on, for a budget of its own: ``private_score``."""
        return private_score(self._fitted, self.rows(data), **settings)

    def public_score(self, data: Any, **settings: Any) -> PrivateScore:
        """The same, exactly, of rows that everybody may see: ``public_score``."""
        return public_score(self._fitted, self.rows(data), **settings)

    def stream(self, data: Any) -> TableStream:
        """Return the table as a fit reads it. Nothing is read yet but names, types and the number of rows."""
        stream = TableStream(_source(data, self.schema), self.schema, checks=self.checks)
        if stream.shape[0] == 0 and Neighbors(self.estimator.neighbors).n_is_public:
            raise Unsupported("the table has no rows")
        return stream

    def _unfitted(self, stream: TableStream) -> Any:
        return clone(self.estimator).set_params(bounds=stream.bounds)


def _joined(blocks: Iterator[NDArray[Any]]) -> NDArray[Any]:
    found = list(blocks)
    return np.concatenate(found) if found else np.empty(0)


def default_model(schema: Schema) -> str:
    """The model that suits the target: its short name."""
    return "logistic" if schema.target is not None and schema.target.classes is not None else "ridge"


def _source(data: Any, schema: Schema) -> Source:
    if isinstance(data, Source):
        return data
    if isinstance(data, (str, Path)) or (isinstance(data, (list, tuple)) and data):
        return open_table(data, schema.separator)
    return FrameSource(data)
