"""Private classifiers: logistic regression (binary and softmax), the linear SVM, and any loss of classes."""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import field
from typing import Any

import numpy as np
from scipy.optimize import isotonic_regression
from scipy.special import expit
from sklearn.base import ClassifierMixin
from sklearn.utils import Tags

from discreet import curator
from discreet.bounds import Bounds
from discreet.errors import Unsupported
from discreet.losses import Logistic, SmoothedHinge, Softmax
from discreet.losses.base import Loss, loss_of
from discreet.models.base import DPLinearModel, ExactScore, WithInference, lazily
from discreet.models.fit import RowExtras, declared
from discreet.parameters import NonNegative, Positive
from discreet.penalties.base import Penalty
from discreet.typing import Array, Floats


def label_array(classes: tuple[object, ...]) -> Array:
    """Return the labels as they were declared: numpy must not turn a 3 among strings into a string."""
    labels = np.array(classes)
    if labels.tolist() != list(classes):
        labels = np.empty(len(classes), dtype=object)
        labels[:] = classes
    return labels


class PrivateClassifier(ExactScore, ClassifierMixin, DPLinearModel, ABC):
    """A private linear model of classes."""

    classes: object = None
    class_weight: object = None

    classes_: Array = field(init=False)

    @abstractmethod
    def _loss(self, n_classes: int) -> Loss: ...

    @staticmethod
    def _n_margins(n_classes: int) -> int:
        """Return how many linear predictors tell so many classes apart."""
        return 1 if n_classes == 2 else n_classes

    def _finish(self, bounds: Bounds) -> None:
        assert bounds.classes is not None
        self.classes_ = label_array(bounds.classes)

    def _facts(self) -> tuple[Bounds, Loss]:
        bounds = declared(self.bounds, classes=self.classes)
        assert bounds.classes is not None
        return bounds, self._loss(len(bounds.classes))

    def _class_weights(self, bounds: Bounds) -> tuple[float, ...] | None:
        if self.class_weight is None or bounds.classes is None:
            return None
        if isinstance(self.class_weight, str) and self.class_weight == "balanced":
            raise Unsupported("balanced weights are read from the labels: declare them, class_weight={0: 1, 1: 5}")
        if not isinstance(self.class_weight, Mapping) or set(self.class_weight) - set(bounds.classes):
            raise Unsupported("class_weight names declared classes with a weight each, such as {0: 1, 1: 5}")
        return tuple(self.class_weight.get(label, 1.0) for label in bounds.classes)

    @lazily
    def decision_function(self, X: object, *, offset: object = None) -> Floats:
        """Return the signed distance for two classes, one score per class for more, of rows as in ``predict``.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            Scores.

        Examples
        --------
        >>> model.decision_function(X[:3]).shape
        (3,)
        """
        margins = self._margins(X, offset)
        return margins[:, 0] if margins.shape[1] == 1 else margins

    @lazily
    def predict(self, X: object, *, offset: object = None) -> Array:
        """Return the likeliest declared class of each row, features clipped to their declared ranges.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            Records that the caller may see.
        offset : array-like of shape (n_samples,), default=None
            Known parts of the linear predictor, as in ``fit``.

        Examples
        --------
        >>> model.predict(X[:3]).shape
        (3,)
        """
        places = self._likeliest(X, offset)  # an error where nothing is fitted
        return np.asarray(self.classes_[places])

    def _likeliest(self, X: object, offset: object) -> Array:
        """Return the place of each row's likeliest class."""
        scores = self.decision_function(X, offset=offset)
        return (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)


class DPLogisticRegression(WithInference, PrivateClassifier):
    """Logistic regression with differential privacy; softmax for more than two classes.

    Minimizes (1/n) sum log-loss + penalty in training coordinates (each feature divided by its
    declared bound; the intercept is a constant feature, penalized like any other).

    Attributes
    ----------
    classes_ : ndarray
        The declared labels, in their order.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet import DPLogisticRegression
    >>> X = np.linspace(-1, 1, 400).reshape(200, 2)
    >>> y = (X[:, 0] > 0).astype(int)
    >>> model = DPLogisticRegression(epsilon=1.0, bounds=1.0, classes=(0, 1)).fit(X, y)
    >>> model.coef_.shape, model.certificate_.epsilon
    ((1, 2), 1.0)
    """

    penalty: object = "l2"
    alpha: NonNegative = 1e-8

    def _loss(self, n_classes: int) -> Loss:
        return Logistic() if n_classes == 2 else Softmax(n_classes)

    @lazily
    def predict_proba(self, X: object, *, offset: object = None) -> Floats:
        """Return the probability of each declared class, for rows as in ``predict``.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Probabilities, in the order of ``classes_``.

        Examples
        --------
        >>> model.predict_proba(X[:3]).shape
        (3, 2)
        """
        odds = np.exp(self._two_sided(X, offset))
        return np.asarray(odds / odds.sum(axis=1, keepdims=True))

    def _two_sided(self, X: object, offset: object) -> Floats:
        """Return one margin per class, the largest 0."""
        margins = self._margins(X, offset)
        if margins.shape[1] == 1:
            margins = np.hstack([np.zeros_like(margins), margins])
        return np.asarray(margins - margins.max(axis=1, keepdims=True))

    @lazily
    def predict_log_proba(self, X: object, *, offset: object = None) -> Floats:
        """Return the logarithm of ``predict_proba``, exact where that underflows.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Logarithms of probabilities.

        Examples
        --------
        >>> bool((model.predict_log_proba(X[:3]) <= 0).all())
        True
        """
        margins = self._two_sided(X, offset)
        return np.asarray(margins - np.log(np.exp(margins).sum(axis=1, keepdims=True)))


class DPLinearSVC(PrivateClassifier):
    """Linear support vector machine with differential privacy (smoothed hinge, two classes).

    Minimizes (1/n) sum of Huber-SVM losses + penalty in training coordinates.

    Parameters
    ----------
    width : float, default=0.5
        The margin's width over which the hinge's corner is rounded.

    Attributes
    ----------
    classes_ : ndarray
        The two declared labels, in their order.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet import DPLinearSVC
    >>> X = np.linspace(-1, 1, 400).reshape(200, 2)
    >>> y = (X[:, 0] > 0).astype(int)
    >>> model = DPLinearSVC(epsilon=1.0, bounds=1.0, classes=(0, 1)).fit(X, y)
    >>> model.predict([[-1.0, -1.0]]).shape
    (1,)
    """

    width: Positive = 0.5
    penalty: object = "l2"
    alpha: NonNegative = 1e-8

    def _loss(self, n_classes: int) -> Loss:
        if n_classes != 2:
            raise Unsupported("Only binary classification is supported here: use DPLogisticRegression for more classes")
        return SmoothedHinge(self.width)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


class DPClassifier(WithInference, PrivateClassifier):
    """Linear classification with differential privacy, by any loss of margins and classes.

    Minimizes (1/n) sum of losses + penalty in training coordinates (each feature divided by its declared bound).

    Parameters
    ----------
    loss : Loss or str, default="logistic"
        A loss for classes, as an object or by its registered name. One margin serves two classes; for K > 2 classes the
        loss must have K margins, such as ``Softmax(3)``.

    See Also
    --------
    discreet.losses.register_loss : Declare a loss of your own.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet.losses import SmoothedHinge
    >>> from discreet.models import DPClassifier
    >>> X = np.linspace(-1, 1, 400).reshape(200, 2)
    >>> y = (X[:, 0] > 0).astype(int)
    >>> model = DPClassifier(epsilon=1.0, bounds=1.0, classes=(0, 1), loss=SmoothedHinge(0.3)).fit(X, y)
    >>> model.loss
    SmoothedHinge(width=0.3)
    """

    loss: Loss | str = "logistic"
    penalty: Penalty | str | None = "l2"
    alpha: NonNegative = 1e-8

    def _loss(self, n_classes: int) -> Loss:
        loss = loss_of(self.loss)
        if loss.task != "classification":
            raise Unsupported("this loss is for numbers: use DPRegressor")
        if loss.n_outputs != (1 if n_classes == 2 else n_classes):
            raise Unsupported("Only binary classification is supported by a loss of one margin: use Softmax(n_classes)")
        return loss

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False  # a loss is made for its number of classes
        return tags


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
    alpha: NonNegative = 1e-8

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
    ) -> "tuple[curator.ThresholdRows, None, RowExtras, Bounds]":
        """Return one row per record and threshold, and what is known of these rows."""
        X, y, extras, _ = super()._records(X, y, extras, bounds, loss)
        assert bounds.classes is not None
        if y is None and not curator.is_stream(X):
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        stands = extras.groups, extras.weights, extras.offsets
        records = X if curator.is_stream(X) else curator.ArrayRows(X, y, *stands, classes=bounds.classes)
        names = records.columns if records.is_named else None
        low, high = bounds.ranges(len(records.columns), names)
        cells = [(0.0, 1.0)] * (len(bounds.classes) - 2)
        longest = None if bounds.row_norm is None else math.hypot(bounds.row_norm, 1.0)
        ranges = [*zip(low.tolist(), high.tolist(), strict=True), *cells]
        facts = {**bounds.to_dict(), "classes": list(bounds.classes)}
        facts = {name: facts[name] for name in ("features", "classes")}
        rows = curator.ThresholdRows(records, len(bounds.classes), facts)
        return rows, None, RowExtras(), bounds.with_facts(features=ranges, row_norm=longest, classes=(0, 1))

    def _finish(self, bounds: Bounds) -> None:
        super()._finish(bounds)
        thresholds, features = len(self.classes_) - 1, self.n_features_in_
        constants = self.intercept_ + np.append(0.0, self.coef_[0, features:])
        self.coef_ = np.tile(self.coef_[:, :features], (thresholds, 1))
        self.intercept_ = np.asarray(isotonic_regression(constants, increasing=False).x)
        # constants share noise that is not known one by one
        self.coef_noise_ = self.intercept_noise_ = self.coef_correlation_ = None

    @lazily
    def predict_proba(self, X: object, *, offset: object = None) -> Floats:
        """Return the probability of each declared class, for rows as in ``predict``.

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
