"""``SchemaEncoder``: from columns to a bounded matrix, by declarations alone; and coefficients back to columns."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.pipeline import Pipeline
from sklearn.utils import Tags

from discreet.bounds import Bounds
from discreet.curator import FrameSource, Layout
from discreet.errors import Unsupported
from discreet.inference.intervals import INTERCEPT
from discreet.models.base import DPLinearModel
from discreet.parameters import checked
from discreet.schema.columns import SchemaError
from discreet.schema.schema import Schema, check_types
from discreet.typing import Floats


class SchemaEncoder(TransformerMixin, BaseEstimator):
    """Columns of a table as bounded features, by a schema and nothing else: there is nothing to fit.

    Numbers are scaled by their declared range to [-1, 1], categories become cells with one for any other, missing
    values get their declared treatment, and knots and interactions their features. ``bounds`` says what is known of the
    result, which is what a private model needs. A row's features depend on that row and on the schema alone.

    Parameters
    ----------
    schema : Schema
        What is publicly known of the table. Columns that it does not declare are not read.

    Examples
    --------
    >>> from discreet import Schema
    >>> from discreet.models import SchemaEncoder
    >>> from discreet.schema import Category, Number
    >>> encoder = SchemaEncoder(Schema({"age": Number((0, 100)), "sex": Category(("f", "m"))}))
    >>> table = {"age": [0, 100], "sex": ["f", "m"]}
    >>> encoder.transform(table)
    array([[-1.,  1.,  0.,  0.],
           [ 1.,  0.,  1.,  0.]])
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
                "estimate it from: use TableModel, or declare the range"
            )
        return Layout(self.schema)

    @property
    def bounds(self) -> Bounds:
        """What is known of the output: the range of each feature and the norm of a row; the target's facts too."""
        return self.layout.bounds

    def fit(self, X: object, y: object = None) -> Self:
        """Check that the table has the declared columns. Nothing is learned, and no value is read.

        Parameters
        ----------
        X : data frame or dict of columns
            The table.
        y : None
            Ignored.

        Returns
        -------
        SchemaEncoder
            Itself.

        Examples
        --------
        >>> encoder.fit(table).n_features_in_
        2
        """
        self.layout  # noqa: B018  a schema that cannot be laid out fails here
        source = FrameSource(X)
        source.check(self.schema.columns)
        check_types(self.schema, source.stored, self.schema.columns)
        self.n_features_in_ = len(source.names)
        self.feature_names_in_ = np.array(source.names, dtype=object)
        return self

    def transform(self, X: object) -> Floats:
        """Return the features, one row per record; a NaN among them makes the record null in a fit.

        Parameters
        ----------
        X : data frame or dict of columns
            The table.

        Returns
        -------
        ndarray of shape (n_rows, n_features)
            Features within ``bounds``.

        Examples
        --------
        >>> encoder.transform({"age": [None], "sex": ["?"]})
        array([[0., 0., 0., 1.]])
        """
        layout, source = self.layout, FrameSource(X)
        source.check(self.schema.columns)
        check_types(self.schema, source.stored, self.schema.columns)
        blocks = [layout.encode(batch.columns, batch.rows) for batch in source.batches(list(self.schema.columns))]
        return np.concatenate(blocks) if blocks else np.empty((0, len(layout.features)))

    def get_feature_names_out(self, input_features: object = None) -> NDArray[np.object_]:
        """Return the names of the features.

        Parameters
        ----------
        input_features : None
            Ignored.

        Returns
        -------
        ndarray of str
            One name per feature.

        Examples
        --------
        >>> encoder.get_feature_names_out().tolist()
        ['age', 'sex = f', 'sex = m', 'sex (other)']
        """
        return np.array([feature.name for feature in self.layout.features], dtype=object)

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags


@checked
def make_private_pipeline(schema: Schema, estimator: DPLinearModel) -> Pipeline:
    """Make a pipeline of a ``SchemaEncoder`` and a private model with the bounds that the encoder computes.

    Parameters
    ----------
    schema : Schema
        What is publicly known of the table.
    estimator : estimator
        A private model without bounds.

    Returns
    -------
    Pipeline
        The steps ``encoder`` and ``model``.

    Raises
    ------
    Unsupported
        If the estimator has bounds, or the schema names persons, weights or offsets, which a pipeline does not see.

    Examples
    --------
    >>> from discreet import DPLogisticRegression, Schema
    >>> from discreet.models import make_private_pipeline
    >>> from discreet.schema import Number
    >>> pipeline = make_private_pipeline(Schema({"age": Number((0, 99))}), DPLogisticRegression(classes=(0, 1)))
    >>> pipeline.fit({"age": [20, 80] * 50}, [0, 1] * 50)[-1].coef_.shape
    (1, 1)
    """
    if getattr(estimator, "bounds", None) is not None:
        raise Unsupported("the schema brings the bounds: leave bounds out of the estimator")
    if schema.person is not None:
        raise Unsupported(
            "the schema names the person behind each row, which a pipeline does not see: use TableModel; or leave "
            "person out, and pass model__groups to fit"
        )
    if schema.columns_beside:
        raise Unsupported("the schema names weights or offsets, which a pipeline does not see: use TableModel")
    encoder = SchemaEncoder(schema)
    return Pipeline([("encoder", encoder), ("model", clone(estimator).set_params(bounds=encoder.bounds))])


@dataclass(frozen=True)
class Coefficient:
    """Coefficient of a fitted model, by name.

    Parameters
    ----------
    column, name : str
        The column, and the feature that was made of it.
    output : str
        The class it speaks for; empty for numbers.
    value : float
        The coefficient.
    noise : float or None
        The standard deviation of what the privacy noise did to it; None where that is not known.
    unit : str
        What a change of 1 means; in the units of the encoded features it is the feature's own range.

    Examples
    --------
    >>> from discreet.models import Coefficient
    >>> Coefficient("age", "age", "1", 0.04, 0.01, "per 1").value
    0.04
    """

    column: str
    name: str
    output: str
    value: float
    noise: float | None
    unit: str


@checked
def coefficients(pipeline: Pipeline, *, units: str = "original") -> list[Coefficient]:
    """Return the named coefficients of a fitted pipeline that ``make_private_pipeline`` made.

    Parameters
    ----------
    pipeline : Pipeline
        Fitted.
    units : {"original", "encoded"}, default="original"
        The columns' own units, or those of the encoded features.

    Returns
    -------
    list of Coefficient
        One per feature and output, and the intercepts.

    Examples
    --------
    >>> from discreet import DPRidge, Schema
    >>> from discreet.models import coefficients, make_private_pipeline
    >>> from discreet.schema import Number
    >>> pipeline = make_private_pipeline(Schema({"age": Number((0, 99))}), DPRidge(target=(0, 1)))
    >>> [one.name for one in coefficients(pipeline.fit({"age": [20, 80] * 50}, [0, 1] * 50))]
    ['age', '(intercept)']
    """
    return coefficients_of(pipeline.named_steps["encoder"].schema, pipeline.named_steps["model"], units=units)


def coefficients_of(schema: Schema, model: DPLinearModel, *, units: str = "original") -> list[Coefficient]:
    """Return a fitted model's coefficients by name: in the columns' own units, or ``units="encoded"`` of the features.

    In original units a number's coefficient is per its unit (1), a level's per level, and truth's against falsehood;
    cells, knots and products are as they are. The intercept is then that of a row with every number at 0.
    """
    if units not in ("encoded", "original"):
        raise Unsupported("units must be 'encoded' or 'original'")
    features, original = Layout(schema).features, units == "original"
    names = [(feature.column, feature.name, feature.unit if original else "encoded") for feature in features]
    scales = np.array([feature.scale if original else 1.0 for feature in features])
    origins = np.array([feature.origin * feature.scale if original else 0.0 for feature in features])
    return _named(model, names, scales, origins, "at 0" if original else "encoded")


def plain_coefficients(model: DPLinearModel) -> list[Coefficient]:
    """Return a fitted estimator's coefficients by the names of its features, or their numbers."""
    p = model.n_features_in_
    names = [str(name) for name in getattr(model, "feature_names_in_", [f"feature {j}" for j in range(p)])]
    return _named(model, [(name, name, "") for name in names], np.ones(p), np.zeros(p), "")


def _named(
    model: DPLinearModel, names: Sequence[tuple[str, str, str]], scales: Floats, origins: Floats, intercept_unit: str
) -> list[Coefficient]:
    """Return coefficients per ``scales``, and the intercept at ``origins``; names are of column, feature and unit."""
    rows, intercepts = np.atleast_2d(model.coef_), np.atleast_1d(model.intercept_)
    spreads, intercept_spreads = (getattr(model, name, None) for name in ("coef_noise_", "intercept_noise_"))
    named = []
    for k, output in enumerate(outputs_of(model)):
        noise = None if spreads is None else np.atleast_2d(spreads)[k] * scales
        for j, (column, name, unit) in enumerate(names):
            spread = None if noise is None else float(noise[j])
            named.append(Coefficient(column, name, output, float(rows[k, j] * scales[j]), spread, unit))
        intercept = float(intercepts[k] - rows[k] @ origins)
        spread = None if intercept_spreads is None else float(np.atleast_1d(intercept_spreads)[k])
        spread = None if origins.any() else spread
        named.append(Coefficient("", INTERCEPT, output, intercept, spread, intercept_unit))
    return named


def outputs_of(model: DPLinearModel) -> list[str]:
    """Return the classes that a fitted model's coefficients speak for; one empty name for numbers."""
    classes = getattr(model, "classes_", None)
    if classes is None:
        return [""]
    return [str(label) for label in classes[-len(np.atleast_2d(model.coef_)) :]]
