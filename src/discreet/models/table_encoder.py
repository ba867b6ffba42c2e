"""``SchemaEncoder``: from columns to a bounded matrix, by declarations alone; and coefficients back to columns."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.pipeline import Pipeline

from discreet.bounds import Bounds
from discreet.curator import FrameSource, Layout
from discreet.errors import Unsupported
from discreet.schema.columns import SchemaError
from discreet.schema.schema import Schema

INTERCEPT = "(intercept)"


class SchemaEncoder(TransformerMixin, BaseEstimator):
    """Columns of a table as bounded features, by a schema and nothing else: there is nothing to fit.

    Numbers are scaled by their declared range to [-1, 1], categories become cells with one for any other, missing
    values get their declared treatment, and knots and interactions their features. ``bounds`` says what is known of the
    result, which is what a private model needs. A row's features depend on that row and on the schema alone.

    Parameters
    ----------
    schema
        A ``Schema``. Columns of the table that it does not declare are not read.
    """

    def __init__(self, schema: Schema) -> None:
        self.schema = schema

    @property
    def layout(self) -> Layout:
        """The features and how they are made."""
        if not isinstance(self.schema, Schema):
            raise SchemaError("SchemaEncoder takes a Schema: Schema.load('schema.toml') reads one")
        if self.schema.private_columns:
            raise Unsupported(
                f"the range of {', '.join(self.schema.private_columns)} is private, and a transformer has no budget to "
                "buy it from: use TableModel, or declare the range"
            )
        return Layout(self.schema)

    @property
    def bounds(self) -> Bounds:
        """What is known of the output: the range of each feature and the norm of a row; the target's facts too."""
        return self.layout.bounds

    def fit(self, X: Any, y: Any = None) -> Self:
        """Check that the table has the declared columns. Nothing is learned, and no value is read."""
        self.layout  # noqa: B018  a schema that cannot be laid out fails here
        source = FrameSource(X)
        source.check(self.schema.columns)
        self.schema.check_types(source, self.schema.columns)
        self.n_features_in_ = len(source.names)
        self.feature_names_in_ = np.array(source.names, dtype=object)
        return self

    def transform(self, X: Any) -> NDArray[np.float64]:
        """The features, one row a record; a NaN among them makes the record null in a fit."""
        layout, source = self.layout, FrameSource(X)
        source.check(self.schema.columns)
        self.schema.check_types(source, self.schema.columns)
        blocks = [layout.encode(batch.columns, batch.rows) for batch in source.batches(list(self.schema.columns))]
        return np.concatenate(blocks) if blocks else np.empty((0, len(layout.features)))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """The names of the features."""
        return np.array([feature.name for feature in self.layout.features], dtype=object)

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags


def make_private_pipeline(schema: Schema, estimator: Any) -> Pipeline:
    """A scikit-learn pipeline of a ``SchemaEncoder`` and a private model with the bounds that the encoder computes."""
    if getattr(estimator, "bounds", None) is not None:
        raise Unsupported("the schema brings the bounds: leave bounds out of the estimator")
    if schema.person is not None:
        raise Unsupported(
            "the schema names the person behind each row, which a pipeline does not see: use TableModel; or leave "
            "person out, and pass model__groups to fit"
        )
    encoder = SchemaEncoder(schema)
    return Pipeline([("encoder", encoder), ("model", clone(estimator).set_params(bounds=encoder.bounds))])


@dataclass(frozen=True)
class Coefficient:
    """One coefficient of a fitted model, by name.

    ``noise`` is the standard deviation of what the privacy noise did to it; None where that is not known. ``unit`` says
    what a change of 1 means; in the units of the encoded features it is the feature's own range.
    """

    column: str
    name: str
    output: str
    value: float
    noise: float | None
    unit: str


def coefficients(pipeline: Pipeline, *, units: str = "original") -> list[Coefficient]:
    """The named coefficients of a fitted pipeline that ``make_private_pipeline`` made: see ``coefficients_of``."""
    return coefficients_of(pipeline.named_steps["encoder"].schema, pipeline.named_steps["model"], units=units)


def coefficients_of(schema: Schema, model: Any, *, units: str = "original") -> list[Coefficient]:
    """A fitted model's coefficients by name: in the columns' own units, or ``units="encoded"`` of the features.

    In original units a number's coefficient is per 1 of the column, a level's per level, and truth's against falsehood;
    cells, knots and products are as they are. The intercept is then that of a row with every number at 0.
    """
    if units not in ("encoded", "original"):
        raise Unsupported("units must be 'encoded' or 'original'")
    features = Layout(schema).features
    rows, intercepts = np.atleast_2d(model.coef_), np.atleast_1d(model.intercept_)
    spreads, own_spreads = (getattr(model, name, None) for name in ("coef_noise_", "intercept_noise_"))
    original = units == "original"
    scales = np.array([feature.scale if original else 1.0 for feature in features])
    origins = np.array([feature.origin * feature.scale if original else 0.0 for feature in features])
    found = []
    for k, output in enumerate(_outputs(model, len(rows))):
        noise = None if spreads is None else np.atleast_2d(spreads)[k] * scales
        for j, feature in enumerate(features):
            spread = None if noise is None else float(noise[j])
            unit = feature.unit if original else "encoded"
            found.append(Coefficient(feature.column, feature.name, output, float(rows[k, j] * scales[j]), spread, unit))
        moved = float(intercepts[k] - rows[k] @ origins)
        own = None if own_spreads is None or (original and origins.any()) else float(np.atleast_1d(own_spreads)[k])
        found.append(Coefficient("", INTERCEPT, output, moved, own, "at 0" if original else "encoded"))
    return found


def _outputs(model: Any, count: int) -> list[str]:
    classes = getattr(model, "classes_", None)
    if classes is None:
        return [""]
    return [str(label) for label in (classes if count > 1 else classes[1:])]
