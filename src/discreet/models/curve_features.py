"""``CurveFeatures``: numbers as lines and bends within known bounds, by declared ranges alone."""

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin

from discreet.bounds import Bounds
from discreet.curator import Layout, two_dimensional
from discreet.errors import Unsupported
from discreet.models.fitting import declared
from discreet.models.table_encoder import SchemaEncoder
from discreet.parameters import check_settings
from discreet.schema.columns import KNOTS, Number, Target
from discreet.schema.schema import Schema
from discreet.typing import Floats


def columns_of(X: Any) -> dict[str, Any]:
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

    def __init__(self, bounds: Any, *, knots: int = KNOTS) -> None:
        self.bounds = bounds
        self.knots = knots

    def fit(self, X: Any, y: Any = None) -> Self:
        """Note the names of the columns. Nothing is learned, and no value is read.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Records.
        y : None
            Ignored.

        Returns
        -------
        CurveFeatures
            Itself.

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

    def transform(self, X: Any) -> Floats:
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
        made = self._layout().bounds
        return made.with_facts(target=bounds.target, classes=bounds.classes, n=bounds.n)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return the names of the features.

        Parameters
        ----------
        input_features : None
            Ignored.

        Returns
        -------
        ndarray of str
            The column for a line, ``column bend j`` for bends.

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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.input_tags.allow_nan = True
        return tags
