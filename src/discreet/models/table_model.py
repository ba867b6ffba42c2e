"""``TableModel``: a private model of a table, from a schema and any linear model of discreet's."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from discreet.accounting.cell_counts import ESTIMATED_RANGES
from discreet.accounting.certificate import Certificate
from discreet.budget import Neighbors
from discreet.curator import Layout, TableStream, source_of
from discreet.errors import Unsupported
from discreet.models.base import DPLinearModel
from discreet.models.export.exported import Exported
from discreet.models.fitting import Quote
from discreet.models.inference.table_effects import TableEffects
from discreet.models.lazy import lazily
from discreet.models.registry import MODELS, default_model
from discreet.models.scoring.table_scores import TableScores
from discreet.models.shown import Shown
from discreet.models.table_encoder import Coefficient, coefficients_of
from discreet.models.term_effects import TermEffects
from discreet.models.terms import TERMS, with_terms
from discreet.parameters import OneOf, check_settings
from discreet.schema.schema import Schema
from discreet.typing import Floats


class TableModel(Shown, Exported, TableEffects, TermEffects, TableScores, BaseEstimator):
    """Private linear model of a table: reads files or data frames by a schema, in blocks, and keeps names.

    Parameters
    ----------
    schema : Schema
        What is publicly known of the table.
    estimator : estimator, default=None
        One of the private estimators, not fitted, without bounds: the schema brings them. None: logistic regression for
        classes, ridge regression for numbers, both with epsilon = 1.
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
        return np.array(list(self.schema_.columns), dtype=object)

    @property
    def n_features_in_(self) -> int:
        """How many columns a prediction reads."""
        return len(self.feature_names_in_)

    @property
    def indicators_(self) -> tuple[tuple[int, ...], ...]:
        """Groups of features of which at most one is on in a row."""
        return Layout(self.schema_).indicators

    def quote(self, data: Any) -> Quote:
        """Return what a fit would release and cost, before a row is read (rows are counted where n is public).

        Parameters
        ----------
        data : data frame, path or list of paths
            The table, as in ``fit``.

        Returns
        -------
        Quote
            The plan, its noise and its price.

        Examples
        --------
        >>> TableModel(schema).quote(table).price.epsilon <= 1.0
        True
        """
        stream = self.stream(data)
        quote: Quote = self._unfitted(stream).quote(stream)
        return quote

    def fit(self, data: Any, *, charge_id: str | None = None) -> Self:
        """Fit privately on a data frame, on files of CSV or Parquet, or on a stream, which are read in blocks.

        Parameters
        ----------
        data : data frame, path, list of paths, lazy frame or stream of record batches
            The table, with its target. A path may be a folder or a pattern, such as ``table/*.parquet``. A lazy frame
            of polars is run in blocks, and a ``pyarrow.RecordBatchReader``, or another library's Arrow stream, is read
            once: for that the schema declares ``rows``, every range, and no person.
        charge_id : str, default=None
            A name for this fit in the ledger: asked again, it is charged once and gives the same model.

        Returns
        -------
        TableModel
            Itself, fitted.

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
    def predict(self, data: Any) -> NDArray[Any]:
        """Return the prediction for each row; what is missing is treated as declared.

        Parameters
        ----------
        data : data frame, path or list of paths
            Rows with the declared columns; the target is not read.

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
    def predict_proba(self, data: Any) -> Floats:
        """Return the probability of each class for each row.

        Parameters
        ----------
        data : data frame, path or list of paths
            Rows with the declared columns.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            Probabilities, in the order of the declared classes.

        Examples
        --------
        >>> model.predict_proba(table).shape
        (120, 2)
        """
        return np.concatenate([*self.predictions(data, "predict_proba")] or [np.empty(0)])

    def predictions(self, data: Any, method: str = "predict") -> Iterator[NDArray[Any]]:
        """Yield predictions block by block; where a missing value would make a record null, its features are 0.

        Parameters
        ----------
        data : data frame, path or list of paths
            Rows with the declared columns.
        method : str, default="predict"
            The estimator's method that predicts.

        Yields
        ------
        ndarray
            The predictions for the next rows.

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
        yield from map(getattr(self._fitted, method), self._features(data))

    def rows(self, data: Any) -> TableStream:
        """Return rows with their targets, encoded as the model needs them: for scores.

        Parameters
        ----------
        data : data frame, path or list of paths
            The table, with its target.

        Returns
        -------
        TableStream
            The rows; they are read when they are scored.

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

        Parameters
        ----------
        folder : str or Path
            A place where there is nothing yet.

        Returns
        -------
        Path
            The folder.

        Examples
        --------
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     same = TableModel.load(model.save(f"{folder}/model"))
        >>> same.coefficients() == model.coefficients()
        True
        """
        from discreet.models.model_folder import save

        return save(self, Path(folder))

    @classmethod
    def load(cls, folder: str | Path) -> "TableModel":
        """Read a model that ``save`` wrote, and check its files against their sums.

        Parameters
        ----------
        folder : str or Path
            What was given to ``save``.

        Returns
        -------
        TableModel
            The fitted model.

        Raises
        ------
        UnreadableModel
            If files are missing, damaged, or do not belong together.

        Examples
        --------
        >>> TableModel.load("nowhere")
        Traceback (most recent call last):
        discreet.models.persistence.UnreadableModel: nowhere: this is not the folder of a model: ...
        """
        from discreet.models.model_folder import load

        return load(Path(folder))

    def stream(self, data: Any) -> TableStream:
        """Return the table as a fit reads it; only names, types and the number of rows are read yet.

        Parameters
        ----------
        data : data frame, path or list of paths
            The table, with its target.

        Returns
        -------
        TableStream
            The rows, unread.

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
        return with_terms(self.terms, stream, self._unfitted(stream))

    @property
    def _chosen(self) -> DPLinearModel:
        """The estimator as given, or the one that suits the target."""
        chosen: DPLinearModel = self.estimator or MODELS[default_model(self.schema)]()
        if chosen.bounds is not None:
            raise Unsupported("the schema brings the bounds: leave bounds out of the estimator")
        return chosen

    def _unfitted(self, stream: TableStream) -> Any:
        return clone(self._chosen).set_params(bounds=stream.bounds)

    def _features(self, data: Any) -> Iterator[Floats]:
        for block in TableStream(source_of(data, self.schema.separator), self.schema_, with_target=False).blocks():
            yield np.nan_to_num(block.features)

    @property
    def _fitted(self) -> DPLinearModel:
        check_is_fitted(self, "estimator_")
        return self.estimator_

    def __sklearn_tags__(self) -> Any:
        tags, inner = super().__sklearn_tags__(), get_tags(self.estimator or MODELS[default_model(self.schema)]())
        tags.estimator_type, tags.classifier_tags = inner.estimator_type, inner.classifier_tags
        tags.regressor_tags, tags.input_tags.two_d_array = inner.regressor_tags, False
        tags.target_tags.required, tags.non_deterministic = False, True
        return tags
