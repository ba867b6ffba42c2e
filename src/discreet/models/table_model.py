"""``TableModel``: a private model of a table, from a schema and any linear model; ``SchemaEncoder`` for pipelines."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.pipeline import Pipeline
from sklearn.utils import Tags, get_tags
from sklearn.utils.validation import check_is_fitted

from discreet.accounting.certificate import ESTIMATED_RANGES, Certificate
from discreet.bounds import Bounds
from discreet.budget import Neighbors
from discreet.curator import FrameSource, Groups, Layout, TableStream, source_of
from discreet.errors import Unsupported
from discreet.json_schemas import Json
from discreet.models.base import MODELS, DPLinearModel, Exported, Shown, default_model, lazily
from discreet.models.curves import refuse_monotone
from discreet.models.fit import Quote, RowExtras
from discreet.models.scores import PrivateScore, private_score, public_score
from discreet.models.term_effects import Coefficient, TermEffects, coefficients_of
from discreet.parameters import OneOf, check_settings, checked
from discreet.schema.columns import KNOTS, Boolean, Category, Number, SchemaError
from discreet.schema.schema import Schema, check_types
from discreet.typing import Array, Floats

if TYPE_CHECKING:
    from discreet.report.model_report import ModelReport

AUTO, CURVES = "auto", "curves"
TERMS = (AUTO, "linear", CURVES)


def with_terms(terms: str, stream: TableStream, estimator: DPLinearModel) -> TableStream:
    """Return the rows of a table with the curves that ``terms`` stand for, and a note on why."""
    schema = stream.schema
    if terms == CURVES:
        return stream.declared_by(schema.with_curves(KNOTS), f"numbers have curves with {KNOTS} knots, as asked for")
    if terms != AUTO or schema.with_curves(KNOTS) == schema:
        return stream
    if getattr(estimator, "inference", None) or estimator.solver != "auto":
        return stream
    knots, reason = _chosen(stream, estimator)
    if knots is None:
        return stream.declared_by(schema, reason)
    stream = stream.declared_by(schema.with_curves(knots), reason)
    places = Layout(stream.schema).curves
    stream.curves = [places[name] for name in places if stream.schema.columns[name] != schema.columns[name]]
    return stream


def _chosen(stream: TableStream, estimator: DPLinearModel) -> tuple[int | None, str]:
    """Return the knots that the default's table says, by the public facts of the table with lines."""
    from discreet.default.table import Facts, knots_for  # here: a fit imports no solver but its own

    bounds, loss = estimator._declared()
    rows, targets, extras, row_bounds = estimator._records(stream, None, RowExtras(), bounds, loss)
    fit = estimator._fit_settings(row_bounds, loss)
    _, domain, budget = fit.declare(rows, targets, extras)
    facts = Facts(domain, fit.loss, fit.penalty, budget)
    return knots_for(facts, lambda knots: len(Layout(stream.schema.with_curves(knots)).features))


class TableModel(Shown, Exported, TermEffects, BaseEstimator):
    """Private linear model of a table: reads files or data frames by a schema, in blocks, and keeps names.

    Parameters
    ----------
    schema : Schema
        What is publicly known of the table.
    estimator : estimator, default=None
        One of the private estimators, not fitted, without bounds: the schema brings them. None: logistic regression for
        classes, ridge regression for numbers, Poisson regression for numbers with an exposure, with epsilon = 1.
    terms : {"auto", "linear", "curves"}, default="auto"
        The effects of numbers of which the schema says no more than their range. ``"auto"``: curves where they are
        expected to predict better, by public facts alone, and lines with ``inference``; ``"curves"``: on 8 knots each.
    checks : bool, default=True
        Whether a fiftieth of a fit's budget counts, with noise, the records that count as null and the cells that do
        not hold what the schema declares. The certificate shows what stands out.

    Attributes
    ----------
    estimator_ : estimator
        The fitted model of the encoded features.
    schema_ : Schema
        The schema of the fit: with the curves that ``terms`` stand for, and estimated ranges in the place of private
        ones.
    certificate_ : Certificate
        What may be claimed of the model.

    Examples
    --------
    >>> from discreet import DPLogisticRegression, Schema, TableModel
    >>> from discreet.schema import Category, Number, Target
    >>> schema = Schema({"age": Number((18, 110)), "ward": Category(("a", "b"))}, Target("back", classes=(0, 1)))
    >>> table = {"age": [30, 60, 80] * 40, "ward": ["a", "b", "a"] * 40, "back": [0, 1, 1] * 40}
    >>> model = TableModel(schema, DPLogisticRegression(epsilon=2.0)).fit(table)
    >>> model.certificate_.epsilon
    2.0
    """

    estimator_: DPLinearModel

    def __init__(
        self,
        schema: Schema,
        estimator: DPLinearModel | None = None,
        *,
        terms: Annotated[str, OneOf(*TERMS)] = "auto",
        checks: bool = True,
    ) -> None:
        self.schema = schema
        self.estimator: Any = estimator
        self.terms = terms
        self.checks = checks

    @property
    def certificate_(self) -> Certificate:
        """What may be claimed of the model."""
        return self._fitted.certificate_

    @property
    def feature_names_in_(self) -> NDArray[np.object_]:
        """The columns that a prediction reads."""
        check_is_fitted(self, "estimator_")
        return np.array(self.schema_.predicted_from, dtype=object)

    @property
    def classes_(self) -> NDArray[Any]:
        """The declared classes, in the order of ``predict_proba``; there are none for numbers."""
        return np.asarray(self._fitted.classes_)

    @property
    def n_features_in_(self) -> int:
        """How many columns a prediction reads."""
        return len(self.feature_names_in_)

    @property
    def indicators_(self) -> tuple[tuple[int, ...], ...]:
        """Groups of features of which at most one is on in a row."""
        return Layout(self.schema_).indicators

    def quote(self, data: object) -> Quote:
        """Return what a fit of this table would release and cost, before a row is read (counted where n is public).

        Examples
        --------
        >>> TableModel(schema).quote(table).price.epsilon <= 1.0
        True
        """
        stream = self.stream(data)
        quote: Quote = self._unfitted(stream).quote(stream)
        return quote

    def fit(self, data: object, *, charge_id: str | None = None) -> Self:
        """Fit privately on a data frame, on files of CSV or Parquet, or on a stream, which are read in blocks.

        Parameters
        ----------
        data : data frame, path, list of paths, lazy frame or stream of record batches
            The table, with its target. A path may be a folder or a pattern, such as ``table/*.parquet``. A lazy frame
            of polars is run in blocks, and a ``pyarrow.RecordBatchReader``, or another library's Arrow stream, is read
            once: for that the schema declares ``rows``, every range, and no person.
        charge_id : str, default=None
            A name for this fit in the ledger: asked again, it is charged once and gives the same model.

        Raises
        ------
        BudgetExceeded
            If the data set's budget in the ledger does not suffice.

        Examples
        --------
        >>> TableModel(schema).fit(table).certificate_.epsilon
        1.0
        """
        stream = self.stream(data)
        self.estimator_ = self._unfitted(stream).fit(stream, charge_id=charge_id)
        estimated = self.certificate_.assumed_public.get(ESTIMATED_RANGES, {})
        self.schema_ = stream.schema.with_ranges({name: (low, high) for name, (low, high) in estimated.items()})
        return self

    @lazily
    def predict(self, data: object) -> Array:
        """Return the prediction for each row; what is missing is treated as declared.

        Parameters
        ----------
        data : data frame, path or list of paths
            Rows with the declared columns, the offset's among them; target and weight are not read.

        Returns
        -------
        ndarray of shape (n_rows,)
            Classes, or numbers in the target's units.

        Examples
        --------
        >>> model.predict({"age": [40, None], "ward": ["a", "c"]}).shape
        (2,)
        """
        return np.concatenate([*self.predictions(data)] or [np.empty(0)])

    @lazily
    def predict_proba(self, data: object) -> Floats:
        """Return the probability of each class for each row, as in ``predict``.

        Examples
        --------
        >>> model.predict_proba(table).shape
        (120, 2)
        """
        return np.concatenate([*self.predictions(data, "predict_proba")] or [np.empty(0)])

    def predictions(self, data: object, method: str = "predict") -> Iterator[Array]:
        """Yield predictions block by block; what is missing and would make a record null, features or offset, is 0.

        Parameters
        ----------
        data : data frame, path or list of paths
            Rows with the declared columns.
        method : str, default="predict"
            The estimator's method that predicts.

        Raises
        ------
        Unsupported
            If the estimator does not have the method.

        Examples
        --------
        >>> [len(block) for block in model.predictions(table)]
        [120]
        """
        if not hasattr(self._fitted, method):
            raise Unsupported(f"{type(self._fitted).__name__} has no {method}")
        predicted = getattr(self._fitted, method)
        for features, offsets in self._rows(data):
            yield predicted(features) if offsets is None else predicted(features, offset=offsets)

    def rows(self, data: object) -> TableStream:
        """Return the rows of a table with their targets, encoded as the model needs them: for scores.

        Examples
        --------
        >>> model.rows(table).shape
        (120, 4)
        """
        return TableStream(source_of(data, self.schema.separator), self.schema_)

    def coefficients(self, *, units: str = "original") -> list[Coefficient]:
        """Return the coefficients by name.

        Parameters
        ----------
        units : {"original", "encoded"}, default="original"
            The columns' own units, or those of the encoded features.

        Returns
        -------
        list of Coefficient
            One per feature and output, and the intercepts.

        Examples
        --------
        >>> [(one.name, one.unit) for one in model.coefficients()]
        [('age', 'per 1'), ('ward = a', 'cell'), ..., ('(intercept)', 'at 0')]
        """
        return coefficients_of(self.schema_, self._fitted, units=units)

    def save(self, folder: str | Path) -> Path:
        """Write the model to a new folder, whole or not at all; ``TableModel.load`` reads it.

        Examples
        --------
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     same = TableModel.load(model.save(f"{folder}/model"))
        >>> same.coefficients() == model.coefficients()
        True
        """
        from discreet.models.persist import save_folder

        return save_folder(self, Path(folder))

    @classmethod
    def load(cls, folder: str | Path) -> "TableModel":
        """Read a model that ``save`` wrote, and check its files against their sums.

        Raises
        ------
        UnreadableModel
            If files are missing, damaged, or do not belong together.

        Examples
        --------
        >>> TableModel.load("nowhere")
        Traceback (most recent call last):
        discreet.models.persist.UnreadableModel: nowhere: this is not the folder of a model: ...
        """
        from discreet.models.persist import load_folder

        return load_folder(Path(folder))

    def private_score(self, data: object, **settings: object) -> PrivateScore:
        """Score the model on private rows that it was not fitted on, with noise, for a budget of its own.

        Parameters
        ----------
        data : data frame, path or list of paths
            The table, with its target.
        **settings : dict
            Those of ``discreet.private_score``: ``epsilon``, ``metric``, ``delta``, ``ledger``, ... ``by`` names a
            category or a yes/no column.

        Examples
        --------
        >>> model.private_score(table, epsilon=1.0).metric
        'accuracy'
        """
        return private_score(self._fitted, self.rows(data), **self._grouped(settings))

    def public_score(self, data: object, **settings: object) -> PrivateScore:
        """Score the model exactly, on rows that everybody may see.

        Parameters
        ----------
        data : data frame, path or list of paths
            The table, with its target.
        **settings : dict
            Those of ``discreet.public_score``: ``metric``, ``level``, ``by``.

        Examples
        --------
        >>> 0 <= model.public_score(table).value <= 1
        True
        """
        return public_score(self._fitted, self.rows(data), **self._grouped(settings))

    def _grouped(self, settings: Json) -> Json:
        """Return the settings with the groups of the column that ``by`` names in its place."""
        name = settings.get("by")
        if name is None:
            return settings
        kind = self.schema_.columns.get(name)
        if not isinstance(kind, Boolean | Category):
            raise Unsupported("by must name a category or a yes/no column of the schema")
        features = [
            (j, feature.name) for j, feature in enumerate(Layout(self.schema_).features) if feature.column == name
        ]
        if isinstance(kind, Boolean):  # encoded as -1 and 1
            return {**settings, "by": Groups((f"{name} = false", f"{name} = true"), (features[0][0],), 0.0)}
        columns, names = zip(*features, strict=True)
        return {**settings, "by": Groups(names, columns, 0.5)}

    def report(self, *, title: str | None = None, scores: Sequence[PrivateScore] = ()) -> "ModelReport":
        """Return the report of the model for people: the promise, scores, effects, plan and public facts.

        Parameters
        ----------
        title : str, default=None
            The page's title; None: what is predicted.
        scores : sequence of PrivateScore, default=()
            Scores to show, as ``private_score`` returned them.

        Returns
        -------
        ModelReport
            ``html()`` is one page that fetches nothing.

        Examples
        --------
        >>> page = model.report(title="Readmission").html()
        >>> "What is promised" in page
        True
        """
        from discreet.report.model_report import report_of

        assert self._fitted is not None
        assert self.schema_.target is not None
        return report_of(self, title or f"A private model of {self.schema_.target.column}", scores=scores)

    def stream(self, data: object) -> TableStream:
        """Return the table as a fit reads it; only names, types and the number of rows are read yet.

        Raises
        ------
        Unsupported
            If the table has no rows where their number is public, or the estimator has bounds of its own.

        Examples
        --------
        >>> model.stream(table).shape
        (120, 4)
        """
        check_settings(self)
        source = source_of(data, self.schema.separator, self.schema.rows)
        stream = TableStream(source, self.schema, checks=self.checks)
        if Neighbors(self._chosen.neighbors).n_is_public and stream.shape[0] == 0:
            raise Unsupported("the table has no rows")
        estimator = self._unfitted(stream)
        refuse_monotone(self.schema, estimator)
        _refuse_origin(self.schema, estimator)
        return with_terms(self.terms, stream, estimator)

    @property
    def _chosen(self) -> DPLinearModel:
        """The estimator as given, or the one that suits the target."""
        chosen: DPLinearModel = self.estimator or MODELS[default_model(self.schema)]()
        if chosen.bounds is not None:
            raise Unsupported("the schema brings the bounds: leave bounds out of the estimator")
        target, classifies = self.schema.target, hasattr(chosen, "classes")
        if target is not None and classifies != (target.classes is not None):
            predicted, declared = ("classes", "a range") if classifies else ("numbers", "classes")
            raise Unsupported(
                f"{type(chosen).__name__} predicts {predicted}, and the schema declares {declared} for "
                f"{target.column!r}: take another estimator, such as {MODELS[default_model(self.schema)].__name__}, or "
                "declare another target"
            )
        return chosen

    def _unfitted(self, stream: TableStream) -> DPLinearModel:
        unfitted: DPLinearModel = clone(self._chosen).set_params(bounds=stream.bounds)
        return unfitted

    def _rows(self, data: object) -> Iterator[tuple[Floats, Floats | None]]:
        """Yield the features of rows to predict, and their offsets where the model has some."""
        for block in TableStream(source_of(data, self.schema.separator), self.schema_, with_target=False).blocks():
            yield np.nan_to_num(block.features), None if block.offsets is None else np.nan_to_num(block.offsets)

    @property
    def _fitted(self) -> DPLinearModel:
        check_is_fitted(self, "estimator_")
        return self.estimator_

    def __sklearn_tags__(self) -> Tags:
        tags, inner = super().__sklearn_tags__(), get_tags(self.estimator or MODELS[default_model(self.schema)]())
        tags.estimator_type, tags.classifier_tags = inner.estimator_type, inner.classifier_tags
        tags.regressor_tags, tags.input_tags.two_d_array = inner.regressor_tags, False
        tags.target_tags.required, tags.non_deterministic = False, True
        return tags


def _refuse_origin(schema: Schema, estimator: object) -> None:
    """Refuse a model without an intercept whose numbers are 0 elsewhere than in the middle of their declared ranges."""
    if getattr(estimator, "fit_intercept", True):
        return
    lines = {name: kind for name, kind in schema.columns.items() if isinstance(kind, Number) and not kind.is_bent}
    far = [name for name, kind in lines.items() if kind.is_private or sum(kind.limits) != 0]
    if far:
        raise Unsupported(
            f"without an intercept, the effect of {far[0]} would be 0 in the middle of its declared range, not at 0: "
            "keep the intercept, or declare ranges that are symmetric about 0"
        )


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


@checked
def coefficients(pipeline: Pipeline, *, units: str = "original") -> list[Coefficient]:
    """Return the named coefficients of a fitted pipeline that ``make_private_pipeline`` made.

    ``units`` and what is returned are as in ``TableModel.coefficients``.

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
