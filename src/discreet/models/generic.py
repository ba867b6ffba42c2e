"""Private linear models of any loss and penalty, a user's own among them."""

from typing import Any

from discreet.bounds import Bounds, refuse_negative_counts, target_place
from discreet.errors import Unsupported
from discreet.losses.base import Loss, loss_of
from discreet.models.classification import _DPClassifier
from discreet.models.private_regressor import PrivateRegressor
from discreet.models.registry import register_model
from discreet.models.solver_choice import Covariance, Inference
from discreet.parameters import NonNegative
from discreet.penalties.base import Penalty
from discreet.typing import Floats


@register_model("classifier")
class DPClassifier(_DPClassifier):
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

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float | None = None,
        *,
        bounds: Any = None,
        classes: Any = None,
        loss: Loss | str = "logistic",
        penalty: Penalty | str | None = "l2",
        alpha: NonNegative = 1e-7,
        solver: Any = "auto",
        neighbors: str = "replace_one",
        allow_large_delta: bool = False,
        fit_intercept: bool = True,
        start: tuple[Any, Any] | None = None,
        public_moments: tuple[Any, Any] | None = None,
        inference: Inference = None,
        cov_type: Covariance = "robust",
        ledger: Any = None,
        dataset: str | None = None,
        verbose: bool = False,
    ) -> None:
        self._keep(locals())

    def _loss(self, n_classes: int) -> Loss:
        loss = loss_of(self.loss)
        if loss.task != "classification":
            raise Unsupported("this loss is for numbers: use DPRegressor")
        if loss.n_outputs != (1 if n_classes == 2 else n_classes):
            raise Unsupported("Only binary classification is supported by a loss of one margin: use Softmax(n_classes)")
        return loss

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False  # a loss is made for its number of classes
        return tags


@register_model("regressor")
class DPRegressor(PrivateRegressor):
    """Linear regression with differential privacy, by any loss of margins and numbers.

    Minimizes (1/n) sum of losses + penalty in training coordinates (features and target divided by their declared
    bounds).

    Parameters
    ----------
    loss : Loss or str, default="squared"
        A loss for numbers, as an object or by its registered name. A loss of residuals (``movable_target``) is in the
        target's own units, as ``Huber(5.0)`` for 5 dollars; others are in training coordinates.

    See Also
    --------
    discreet.losses.register_loss : Declare a loss of your own.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet.losses import Huber
    >>> from discreet.models import DPRegressor
    >>> X = np.linspace(-1, 1, 400).reshape(200, 2)
    >>> y = X[:, 0]
    >>> model = DPRegressor(epsilon=1.0, bounds=1.0, target=(-1, 1), loss=Huber(0.5)).fit(X, y)
    >>> model.loss
    Huber(width=0.5)
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float | None = None,
        *,
        bounds: Any = None,
        target: Any = None,
        loss: Loss | str = "squared",
        penalty: Penalty | str | None = "l2",
        alpha: NonNegative = 1e-3,
        solver: Any = "auto",
        neighbors: str = "replace_one",
        allow_large_delta: bool = False,
        fit_intercept: bool = True,
        start: tuple[Any, Any] | None = None,
        public_moments: tuple[Any, Any] | None = None,
        inference: Inference = None,
        cov_type: Covariance = "robust",
        ledger: Any = None,
        dataset: str | None = None,
        verbose: bool = False,
    ) -> None:
        self._keep(locals())

    def _loss(self, bounds: Bounds) -> Loss:
        loss = loss_of(self.loss)
        if loss.task != "regression" or loss.n_outputs != 1:
            raise Unsupported("this loss is for classes: use DPClassifier")
        assert bounds.target is not None
        if loss.log_link:
            refuse_negative_counts(bounds.target)
        _, scale = target_place(bounds.target, moves=self.fit_intercept)
        return loss.with_target_scale(scale) if loss.movable_target else loss

    def _mean(self, margins: Floats) -> Floats:
        """Return the margins, or what the loss's link makes of them."""
        return loss_of(self.loss).prediction(margins)
