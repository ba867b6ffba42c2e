"""Private additive models of arrays and data frames: what ``TableModel`` is of a table whose columns are numbers."""

from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from discreet.accounting.certificate import Certificate
from discreet.bounds import Bounds
from discreet.curator import Layout, one_dimensional, two_dimensional
from discreet.errors import Unsupported
from discreet.json_schemas import Json
from discreet.models.base import Charged, DPLinearModel, ExactScore, Shown
from discreet.models.classification import DPLogisticRegression
from discreet.models.fit import Quote, declared
from discreet.models.regression import DPRidge
from discreet.models.table_model import TERMS, SchemaEncoder, TableModel
from discreet.models.term_effects import Explanation, TermEffect
from discreet.models.words import NamedParameters
from discreet.parameters import OneOf, Share, check_settings
from discreet.schema.columns import KNOTS, Number, Target
from discreet.schema.schema import Schema
from discreet.typing import Array, Floats

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def columns_of(X: Any) -> Json:
    """Return the columns of an array or a data frame by name, ``x0``, ``x1`` and so on where they have none."""
    X = two_dimensional(X)
    if hasattr(X, "tocsr"):
        raise Unsupported("curves are of dense columns: use X.toarray(), or a linear model for sparse records")
    if X.shape[1] == 0:
        raise Unsupported(f"X has 0 feature(s) (shape={X.shape}) while a minimum of 1 is required.")
    if hasattr(X, "iloc"):
        return {str(name): X.iloc[:, j] for j, name in enumerate(X.columns)}
    return {f"x{j}": X[:, j] for j in range(X.shape[1])}


def schema_of(bounds: Bounds, names: list[str], knots: int | None, *, target: Target | None = None) -> Schema:
    """Return a schema that declares the range of each column; ``knots`` of None leaves its term open."""
    low, high = bounds.ranges(len(names), names)
    given = {} if knots is None else {"knots": knots}
    columns = {name: Number((float(a), float(b)), **given) for name, a, b in zip(names, low, high, strict=True)}  # type: ignore[arg-type]
    return Schema(columns, target, rows=bounds.n)


class CurveFeatures(TransformerMixin, BaseEstimator):
    """Numbers as curves: one feature for the line of each column and one per knot for its bends. Nothing is fitted.

    A linear model of these features is an additive model of smooth curves. A row's features depend on that row and on
    the declared ranges alone, so the transformer may stand before a private model in a pipeline.

    Parameters
    ----------
    bounds : Bounds, or ranges
        The declared range of each column; values outside are clipped, missing ones stand in the middle.
    knots : int, default=8
        Evenly spaced knots of each curve, the ends of the range counted.

    Examples
    --------
    >>> from discreet.models import CurveFeatures
    >>> curves = CurveFeatures([(0, 100), (0, 1)], knots=4)
    >>> curves.transform([[50, 0.5], [100, 1.0]]).shape
    (2, 10)
    """

    def __init__(self, bounds: object, *, knots: int = KNOTS) -> None:
        self.bounds = bounds
        self.knots = knots

    def fit(self, X: object, y: object = None) -> Self:
        """Note the names of the columns. Nothing is learned, and no value is read.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Records.
        y : None
            Ignored.

        Examples
        --------
        >>> curves.fit([[50, 0.5]]).n_features_in_
        2
        """
        check_settings(self)
        names = list(columns_of(X))
        schema_of(declared(self.bounds), names, self.knots)  # ranges that do not fit the columns fail here
        self.n_features_in_ = len(names)
        if hasattr(X, "columns"):
            self.feature_names_in_ = np.array(names, dtype=object)
        return self

    def transform(self, X: object) -> Floats:
        """Return the line and the bends of each column.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Records.

        Returns
        -------
        ndarray of shape (n_samples, n_features * (1 + knots))
            Features within ``output_bounds``.

        Examples
        --------
        >>> curves.transform([[0, 0.0]])[0, [0, 5]].tolist()
        [-1.0, -1.0]
        """
        columns = columns_of(X)
        return SchemaEncoder(schema_of(declared(self.bounds), list(columns), self.knots)).transform(columns)

    @property
    def output_bounds(self) -> Bounds:
        """What is known of the features, with the classes, the target and n of ``bounds``: for a private model."""
        bounds = declared(self.bounds)
        features = self._layout().bounds
        return features.with_facts(target=bounds.target, classes=bounds.classes, n=bounds.n)

    def get_feature_names_out(self, input_features: object = None) -> NDArray[np.object_]:
        """Return the names of the features.

        A line has its column's name, bends are ``column bend j``; ``input_features`` is ignored.

        Examples
        --------
        >>> curves.get_feature_names_out()[:3].tolist()
        ['x0', 'x0 bend 1', 'x0 bend 2']
        """
        return np.array([feature.name for feature in self._layout().features], dtype=object)

    def _layout(self) -> Layout:
        features = declared(self.bounds).features
        if isinstance(features, float) and not hasattr(self, "n_features_in_"):
            raise Unsupported("one bound for all columns does not tell their number: fit first, or list the ranges")
        names = [f"x{j}" for j in range(self.n_features_in_ if isinstance(features, float) else len(features))]
        names = list(features) if isinstance(features, Mapping) else names
        names = [str(name) for name in getattr(self, "feature_names_in_", names)]
        return Layout(schema_of(declared(self.bounds), names, self.knots))

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.input_tags.allow_nan = True
        return tags


TARGET, PERSON = "(target)", "(person)"
"""Columns next to those of X: no feature may have these names."""
_PASSED_ON = ("epsilon", "delta", "solver", "neighbors", "fit_intercept", "ledger", "dataset", "verbose")


class _Additive(Shown, NamedParameters, Charged):
    """A table model of the columns of an array."""

    epsilon: float = field(default=1.0, kw_only=False)
    delta: float | None = field(default=None, kw_only=False)
    bounds: object = None
    terms: Annotated[str, OneOf(*TERMS)] = "auto"
    solver: object = "auto"
    neighbors: str = "replace_one"
    fit_intercept: bool = True
    ledger: object = None
    dataset: str | None = None
    verbose: bool = False

    model_: TableModel = field(init=False)

    def _schema(self, names: list[str], groups: object) -> Schema:
        raise NotImplementedError

    def _estimator(self) -> DPLinearModel:
        raise NotImplementedError

    @property
    def certificate_(self) -> Certificate:
        """What may be claimed of the model."""
        check_is_fitted(self, "model_")
        return self.model_.certificate_

    def quote(self, X: object, y: object = None, groups: object = None) -> Quote:
        """Return what a fit of these records, as in ``fit``, would release and cost. Only containers are looked at.

        Examples
        --------
        >>> model.quote(X, y).price.epsilon <= 1.0
        True
        """
        unfitted, table = self._table(X, y, groups)
        return unfitted.quote(table)

    def fit(self, X: object, y: object = None, groups: object = None, *, charge_id: str | None = None) -> Self:
        """Fit privately; the charge comes before the first record is read.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Records. Values outside of the declared ranges are clipped; missing ones stand in the middle.
        y : array-like of shape (n_samples,)
            Targets. A record whose target is not among what is declared counts as null.
        groups : array-like of shape (n_samples,), default=None
            The person behind each row, where a person has several: the guarantee is then for persons.
        charge_id : str, default=None
            A name for this fit in the ledger: asked again, it is charged once and gives the same model.

        Raises
        ------
        MissingBounds
            If ranges, classes or the target's range are not declared.
        BudgetExceeded
            If the data set's budget in the ledger does not suffice.

        Examples
        --------
        >>> model.fit(X, y, groups=np.arange(200) // 2).certificate_.unit
        'person'
        """
        unfitted, table = self._table(X, y, groups)
        self.model_ = unfitted.fit(table, charge_id=charge_id)
        names = list(self.model_.schema_.columns)
        self.n_features_in_ = len(names)
        if hasattr(X, "columns"):
            self.feature_names_in_ = np.array(names, dtype=object)
        return self

    def predict(self, X: object) -> Array:
        """Return the prediction for each record.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Records that the caller may see.

        Returns
        -------
        ndarray of shape (n_samples,)
            Classes, or numbers in the target's units.

        Examples
        --------
        >>> model.predict(X[:3]).shape
        (3,)
        """
        check_is_fitted(self, "model_")
        return self.model_.predict(self._columns(X))

    def save(self, folder: str | Path) -> Path:
        """Write the model to a new folder, as ``TableModel.save`` does; ``TableModel.load`` reads it.

        Examples
        --------
        >>> import tempfile
        >>> from discreet import TableModel
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     same = TableModel.load(model.save(f"{folder}/model"))
        >>> same.certificate_ == model.certificate_
        True
        """
        check_is_fitted(self, "model_")
        return self.model_.save(folder)

    def term_effects(self) -> list[TermEffect]:
        """Return the effect of each column over its declared range, as ``TableModel.term_effects`` does.

        Examples
        --------
        >>> [effect.column for effect in model.fit(X, y).term_effects()]
        ['x0', 'x1', 'x2']
        """
        check_is_fitted(self, "model_")
        return self.model_.term_effects()

    def plot_effects(self, columns: Sequence[str] | None = None, *, level: Share = 0.95) -> "Figure":
        """Draw the effect of each column with a band for the privacy noise, as ``TableModel.plot_effects`` does.

        Examples
        --------
        >>> len(model.plot_effects().axes)
        3
        """
        check_is_fitted(self, "model_")
        return self.model_.plot_effects(columns, level=level)

    def explain(self, X: object) -> Explanation:
        """Return the prediction for one record, of shape (1, n_features), as ``TableModel.explain`` does.

        Examples
        --------
        >>> model.explain(X[:1]).terms
        ('x0', 'x1', 'x2')
        """
        check_is_fitted(self, "model_")
        return self.model_.explain(self._columns(X))

    def _columns(self, X: object) -> Json:
        columns, names = columns_of(X), list(self.model_.schema_.columns)
        if len(columns) != len(names):
            expects = f"{type(self).__name__} is expecting {len(names)} features as input"  # scikit-learn's words
            raise Unsupported(f"X has {len(columns)} features, but {expects}")
        return columns if hasattr(X, "columns") else dict(zip(names, columns.values(), strict=True))

    def _table(self, X: object, y: object, groups: object) -> tuple[TableModel, Json]:
        """Return the unfitted model of the table that these make, and the table."""
        check_settings(self)
        if y is None:
            raise Unsupported("requires y to be passed, but the target y is None")
        columns = columns_of(X)
        schema = self._schema(list(columns), groups)
        given = {TARGET: y} if groups is None else {TARGET: y, PERSON: groups}
        extra = {name: one_dimensional(values) for name, values in given.items()}
        if any(len(values) != len(next(iter(columns.values()))) for values in extra.values()):
            raise Unsupported("y and groups must have one entry per row of X")
        model = TableModel(schema, self._estimator(), terms=self.terms, checks=False)
        return model, {**columns, **extra}

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan, tags.non_deterministic = True, True
        return tags

    def _account(self) -> Json:
        return {name: getattr(self, name) for name in _PASSED_ON}

    def _declared(self, names: list[str], groups: object, target: Target, bounds: Bounds) -> Schema:
        if {TARGET, PERSON} & set(names):
            raise Unsupported(f"no column of X may be called {TARGET} or {PERSON}: rename it")
        schema = schema_of(bounds, names, None, target=target)
        return schema if groups is None else Schema(schema.columns, target, person=PERSON, rows=schema.rows)


class DPAdditiveClassifier(ExactScore, ClassifierMixin, _Additive):
    """Private additive model of classes: a smooth curve of each column, on the scale of log odds.

    Curves are cubic splines of the declared ranges, as in a table: they need no look at the data and no budget. Where
    the signal does not suffice for them, effects are linear.

    Parameters
    ----------
    terms : {"auto", "linear", "curves"}, default="auto"
        As in ``TableModel``.

    Attributes
    ----------
    model_ : TableModel
        The fitted model: exports, files and private scores are its methods.
    classes_ : ndarray
        The labels.
    certificate_ : Certificate
        What may be claimed of the model.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet.models import DPAdditiveClassifier
    >>> X, y = np.linspace(-1, 1, 600).reshape(200, 3), np.arange(200) // 100
    >>> model = DPAdditiveClassifier(bounds=1.0, classes=(0, 1)).fit(X, y)
    >>> model.certificate_.epsilon
    1.0
    """

    classes: object = None

    def _schema(self, names: list[str], groups: object) -> Schema:
        bounds = declared(self.bounds, classes=self.classes)
        return self._declared(names, groups, Target(TARGET, classes=bounds.classes), bounds)

    def _estimator(self) -> DPLogisticRegression:
        return DPLogisticRegression(**self._account())

    @property
    def classes_(self) -> Array:
        """The labels."""
        check_is_fitted(self, "model_")
        classes: Array = self.model_.estimator_.classes_
        return classes

    def predict_proba(self, X: object) -> Floats:
        """Return the probability of each class for records as in ``predict``.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Probabilities, in the order of ``classes_``.

        Examples
        --------
        >>> model.predict_proba(X[:3]).shape
        (3, 2)
        """
        check_is_fitted(self, "model_")
        return self.model_.predict_proba(self._columns(X))

    def decision_function(self, X: object) -> Floats:
        """Return the score for two classes, one score per class for more, of records as in ``predict``.

        Examples
        --------
        >>> model.decision_function(X[:3]).shape
        (3,)
        """
        check_is_fitted(self, "model_")
        return np.concatenate([*self.model_.predictions(self._columns(X), "decision_function")] or [np.empty(0)])


class DPAdditiveRegressor(ExactScore, RegressorMixin, _Additive):
    """Private additive model of numbers: a smooth curve of each column, in the target's unit.

    Curves are cubic splines of the declared ranges, as in a table: they need no look at the data and no budget. Where
    the signal does not suffice for them, effects are linear.

    Parameters
    ----------
    terms : {"auto", "linear", "curves"}, default="auto"
        As in ``TableModel``.

    Attributes
    ----------
    model_ : TableModel
        The fitted model: exports, files and private scores are its methods.
    certificate_ : Certificate
        What may be claimed of the model.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet.models import DPAdditiveRegressor
    >>> X, y = np.linspace(-1, 1, 600).reshape(200, 3), np.linspace(0, 1, 200) ** 2
    >>> model = DPAdditiveRegressor(bounds=1.0, target=(0, 1)).fit(X, y)
    >>> model.predict(X).shape
    (200,)
    """

    target: object = None

    def _schema(self, names: list[str], groups: object) -> Schema:
        bounds = declared(self.bounds, target=self.target)
        return self._declared(names, groups, Target(TARGET, range=bounds.target), bounds)

    def _estimator(self) -> DPRidge:
        return DPRidge(**self._account())
