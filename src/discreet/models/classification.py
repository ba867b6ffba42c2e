"""Private classifiers: logistic regression (binary and softmax) and the linear SVM."""

from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin

from discreet.bounds import Bounds
from discreet.errors import MissingBounds, Unsupported
from discreet.losses import Logistic, SmoothedHinge, Softmax
from discreet.models.base import DPLinearModel
from discreet.models.exposure import warn_of_exact_score
from discreet.models.fitting import declared
from discreet.models.registry import register_model


def _label_array(classes: tuple[Any, ...]) -> NDArray[Any]:
    """The labels as they were declared: numpy must not turn a 3 among strings into a string."""
    labels = np.array(classes)
    if labels.tolist() != list(classes):
        labels = np.empty(len(classes), dtype=object)
        labels[:] = classes
    return labels


class _DPClassifier(ClassifierMixin, DPLinearModel, ABC):
    classes_: NDArray[Any]

    @abstractmethod
    def _loss(self, n_classes: int) -> Any: ...

    def fit(self, X: Any, y: Any = None, groups: Any = None, *, charge_id: str | None = None) -> Self:
        """Fit privately; ``groups`` names the person behind each row, where a person has several.

        ``charge_id`` is a name for this fit in the ledger: asked again, it is charged once and gives the same model.
        """
        bounds, loss = self._facts()
        self._fit(X, y, groups, bounds, loss, charge_id)
        assert bounds.classes is not None
        self.classes_ = _label_array(bounds.classes)
        return self

    def _facts(self) -> tuple[Bounds, Any]:
        bounds = declared(self.bounds, classes=self.classes)
        if bounds.classes is None:
            raise MissingBounds(
                "the classes are not declared: pass classes=(0, 1), from what is publicly known, not from the data"
            )
        return bounds, self._loss(len(bounds.classes))

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Signed distance for two classes, one score a class for more."""
        margins = self._margins(X)
        return margins[:, 0] if margins.shape[1] == 1 else margins

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the exact accuracy on *public* rows; of private rows it releases without noise: ``private_score``."""
        warn_of_exact_score()
        return self._exact_score(X, y, sample_weight)

    def _exact_score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        return float(super().score(X, y, sample_weight))

    def predict(self, X: Any) -> NDArray[Any]:
        """The likeliest declared class."""
        scores = self.decision_function(X)
        chosen = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[chosen])


@register_model("logistic")
class DPLogisticRegression(_DPClassifier):
    """Logistic regression with differential privacy; softmax for more than two classes.

    Minimizes (1/n) sum log-loss + penalty in training coordinates (each feature divided by its
    declared bound; the intercept is a constant feature, penalized like any other).

    Parameters
    ----------
    epsilon, delta
        The guarantee. ``delta=None``: 1/n^2 where n is public, and never more than 1e-6. ``delta=0``: pure epsilon-DP.
        ``epsilon=inf``: no privacy, marked so in the certificate.
    bounds
        ``Bounds``, or a bare range (1.0, a list of (low, high), a dictionary by column).
    classes
        The labels, where ``bounds`` does not name them.
    penalty, alpha
        ``"l2"`` (alpha/2 ||w||^2), ``"l1"``, ``"elasticnet"``, None, or a penalty object.
    solver
        ``"auto"``, ``"gd"``, ``"sgd"``, ``"svrg"``, ``"cd"``, ``"gcd"``, ``"agd"``, ``"output"``, ``"objective"``,
        ``"exponential"``, or a solver object: ``GradientDescent(n_steps=50)``.
    neighbors
        ``"replace_one"``, ``"zero_out"`` or ``"add_remove"``.
    allow_large_delta
        Permit delta >= 1/n. Such a delta allows a mechanism that publishes a random record, so it is refused otherwise.
    ledger, dataset
        The ledger (a path, a URL or a ``Ledger``) and the registered name of the data: every fit is charged there
        before it reads a record, and refused where the budget is spent. None: the configured ledger; False: none.
    verbose
        Show a progress bar.

    Attributes
    ----------
    coef_, intercept_, classes_
        In the user's own units. Private outputs: they may be published.
    coef_noise_, intercept_noise_
        The standard deviation of what the privacy noise alone did to each coefficient, of the same shapes; None where
        it is unknown. May be published too. ``intervals`` makes intervals of them.
    certificate_
        What may be claimed of the model.
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float | None = None,
        *,
        bounds: Any = None,
        classes: Any = None,
        penalty: Any = "l2",
        alpha: float = 1e-7,
        solver: Any = "auto",
        neighbors: str = "replace_one",
        allow_large_delta: bool = False,
        fit_intercept: bool = True,
        ledger: Any = None,
        dataset: str | None = None,
        verbose: bool = False,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.classes = classes
        self.penalty = penalty
        self.alpha = alpha
        self.solver = solver
        self.neighbors = neighbors
        self.allow_large_delta = allow_large_delta
        self.fit_intercept = fit_intercept
        self.ledger = ledger
        self.dataset = dataset
        self.verbose = verbose

    def _loss(self, n_classes: int) -> Any:
        return Logistic() if n_classes == 2 else Softmax(n_classes)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Probability of each declared class."""
        odds = np.exp(self._two_sided(X))
        return np.asarray(odds / odds.sum(axis=1, keepdims=True))

    def _two_sided(self, X: Any) -> NDArray[np.float64]:
        """One margin a class, the largest 0."""
        margins = self._margins(X)
        if margins.shape[1] == 1:
            margins = np.hstack([np.zeros_like(margins), margins])
        return np.asarray(margins - margins.max(axis=1, keepdims=True))

    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """Logarithm of ``predict_proba``, exact where that underflows."""
        margins = self._two_sided(X)
        return np.asarray(margins - np.log(np.exp(margins).sum(axis=1, keepdims=True)))


@register_model("svm")
class DPLinearSVC(_DPClassifier):
    """Linear support vector machine with differential privacy (smoothed hinge, two classes).

    Minimizes (1/n) sum of Huber-SVM losses of width ``width`` + penalty in training coordinates.
    Parameters as in ``DPLogisticRegression``.
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float | None = None,
        *,
        bounds: Any = None,
        classes: Any = None,
        width: float = 0.5,
        penalty: Any = "l2",
        alpha: float = 1e-7,
        solver: Any = "auto",
        neighbors: str = "replace_one",
        allow_large_delta: bool = False,
        fit_intercept: bool = True,
        ledger: Any = None,
        dataset: str | None = None,
        verbose: bool = False,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.classes = classes
        self.width = width
        self.penalty = penalty
        self.alpha = alpha
        self.solver = solver
        self.neighbors = neighbors
        self.allow_large_delta = allow_large_delta
        self.fit_intercept = fit_intercept
        self.ledger = ledger
        self.dataset = dataset
        self.verbose = verbose

    def _loss(self, n_classes: int) -> Any:
        if n_classes != 2:
            raise Unsupported("Only binary classification is supported here: use DPLogisticRegression for more classes")
        return SmoothedHinge(self.width)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags
