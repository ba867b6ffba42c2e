"""Private regression of ordered classes: the proportional odds model."""

import math
from typing import Any

import numpy as np
from scipy.optimize import isotonic_regression
from scipy.special import expit

from discreet.bounds import Bounds
from discreet.curator import ArrayRows, ThresholdRows, is_stream
from discreet.errors import Unsupported
from discreet.losses import Logistic
from discreet.losses.base import Loss
from discreet.models.base import lazily
from discreet.models.classification import PrivateClassifier
from discreet.models.fit import RowExtras
from discreet.parameters import NonNegative
from discreet.typing import Array, Floats

FEWEST = 3


class DPOrdinalRegression(PrivateClassifier):
    """Regression of ordered classes (proportional odds) with differential privacy.

    log odds(class is k or above) = x.w + b_k: one slope per feature, and a constant per threshold between classes.
    Minimizes the mean over records and thresholds of the logistic loss + penalty: for k = 1, ..., K - 1, whether a
    record's class is k or above. Constants that noise put out of order are moved together.

    Standard errors are not proven for it: it has no ``inference``. A record's K - 1 terms are one contribution to every
    answer, so privacy is that of one record, whatever K is.

    Attributes
    ----------
    classes_ : ndarray
        The declared labels, from the lowest to the highest.
    coef_ : ndarray of shape (n_classes - 1, n_features)
        The slopes, the same in every row: a row speaks for its class or above.
    intercept_ : ndarray of shape (n_classes - 1,)
        b_k, falling.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet.models import DPOrdinalRegression
    >>> X = np.linspace(-1, 1, 600).reshape(300, 2)
    >>> y = np.digitize(X[:, 0], [-0.3, 0.3])
    >>> model = DPOrdinalRegression(epsilon=1.0, bounds=1.0, classes=(0, 1, 2)).fit(X, y)
    >>> model.predict_proba(X[:3]).shape, model.certificate_.unit
    ((3, 3), 'record')
    """

    penalty: object = "l2"
    alpha: NonNegative = 1e-7

    @staticmethod
    def _n_margins(n_classes: int) -> int:
        """Return how many thresholds are between so many classes."""
        return n_classes - 1

    def _loss(self, n_classes: int) -> Loss:
        if n_classes < FEWEST:
            raise Unsupported("ordered classes are three or more: use DPLogisticRegression for two")
        if not self.fit_intercept:
            raise Unsupported("thresholds are constants: leave fit_intercept at True")
        if self.start is not None or self.public_moments is not None:
            raise Unsupported("an ordinal regression takes neither start nor public_moments: leave them out")
        return Logistic()

    def _class_weights(self, bounds: Bounds) -> None:
        if self.class_weight is not None:
            raise Unsupported("ordered classes have no class_weight: pass sample_weight, whose range is declared")

    def _records(
        self, X: Any, y: Any, extras: RowExtras, bounds: Bounds, loss: Loss
    ) -> tuple[ThresholdRows, None, RowExtras, Bounds]:
        """Return one row per record and threshold, and what is known of these rows."""
        X, y, extras, _ = super()._records(X, y, extras, bounds, loss)
        assert bounds.classes is not None
        if y is None and not is_stream(X):
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        stands = extras.groups, extras.weights, extras.offsets
        records = X if is_stream(X) else ArrayRows(X, y, bounds.classes, *stands)
        names = records.columns if records.is_named else None
        low, high = bounds.ranges(len(records.columns), names)
        cells = [(0.0, 1.0)] * (len(bounds.classes) - 2)
        longest = None if bounds.row_norm is None else math.hypot(bounds.row_norm, 1.0)
        ranges = [*zip(low.tolist(), high.tolist(), strict=True), *cells]
        facts = {**bounds.to_dict(), "classes": list(bounds.classes)}
        rows = ThresholdRows(records, len(bounds.classes), {name: facts[name] for name in ("features", "classes")})
        return rows, None, RowExtras(), bounds.with_facts(features=ranges, row_norm=longest, classes=(0, 1))

    def _finish(self, bounds: Bounds) -> None:
        super()._finish(bounds)
        thresholds, features = len(self.classes_) - 1, self.n_features_in_
        constants = self.intercept_ + np.append(0.0, self.coef_[0, features:])
        self.coef_ = np.tile(self.coef_[:, :features], (thresholds, 1))
        self.intercept_ = np.asarray(isotonic_regression(constants, increasing=False).x)
        self.coef_noise_ = self.intercept_noise_ = None  # constants share noise that is not known one by one

    @lazily
    def predict_proba(self, X: object, *, offset: object = None) -> Floats:
        """Return the probability of each declared class.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Records that the caller may see.
        offset : array-like of shape (n_samples,), default=None
            Known parts of the linear predictor, as in ``fit``.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Probabilities, in the order of ``classes_``.

        Examples
        --------
        >>> bool((model.predict_proba(X) >= 0).all())
        True
        """
        beyond = expit(self._margins(X, offset))
        ends = np.ones((len(beyond), 1)), np.zeros((len(beyond), 1))
        return np.asarray(-np.diff(np.hstack([ends[0], beyond, ends[1]]), axis=1))

    def _likeliest(self, X: object, offset: object) -> Array:
        return np.asarray(self.predict_proba(X, offset=offset).argmax(axis=1))
