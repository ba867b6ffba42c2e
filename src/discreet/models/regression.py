"""Private regression: least squares, ridge, lasso, elastic net, Huber, Poisson."""

from typing import Any

import numpy as np

from discreet.bounds import Bounds, refuse_negative_counts, target_place
from discreet.losses import Huber, Poisson
from discreet.models.private_regressor import PrivateRegressor
from discreet.models.registry import register_model
from discreet.models.solver_choice import Covariance, Inference
from discreet.parameters import Fraction, NonNegative, Positive
from discreet.penalties import ElasticNet
from discreet.typing import Floats


@register_model("linear")
class DPLinearRegression(PrivateRegressor):
    """Least squares with differential privacy.

    Minimizes (1/n) sum (x.w - y)^2 / 2 in training coordinates (features and target divided by their
    declared bounds). Per-record gradients are clipped, so residuals beyond the clip count as Huber's.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet import DPLinearRegression
    >>> X = np.linspace(-1, 1, 400).reshape(200, 2)
    >>> y = X.sum(axis=1)
    >>> model = DPLinearRegression(epsilon=1.0, bounds=1.0, target=(-2, 2)).fit(X, y)
    >>> model.coef_.shape, model.certificate_.epsilon
    ((2,), 1.0)
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float | None = None,
        *,
        bounds: Any = None,
        target: Any = None,
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


@register_model("ridge")
class DPRidge(PrivateRegressor):
    """Ridge regression with differential privacy.

    Minimizes (1/n) sum (x.w - y)^2 / 2 + (alpha/2) ||w||^2 in training coordinates.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet import DPRidge
    >>> X = np.linspace(-1, 1, 400).reshape(200, 2)
    >>> y = X.sum(axis=1)
    >>> model = DPRidge(epsilon=1.0, bounds=1.0, target=(-2, 2)).fit(X, y)
    >>> model.coef_.shape, model.certificate_.epsilon
    ((2,), 1.0)
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float | None = None,
        *,
        bounds: Any = None,
        target: Any = None,
        alpha: NonNegative = 1e-5,
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

    penalty = "l2"


@register_model("lasso")
class DPLasso(PrivateRegressor):
    """Lasso with differential privacy: coefficients that are not needed come back exactly zero.

    Minimizes (1/n) sum (x.w - y)^2 / 2 + alpha ||w||_1 in training coordinates. ``solver="gcd"`` (greedy) is
    made for wide problems with few relevant features, ``"cd"`` for features of different scale.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet import DPLasso
    >>> X = np.linspace(-1, 1, 400).reshape(200, 2)
    >>> y = X.sum(axis=1)
    >>> model = DPLasso(epsilon=1.0, bounds=1.0, target=(-2, 2)).fit(X, y)
    >>> model.coef_.shape, model.certificate_.epsilon
    ((2,), 1.0)
    """

    penalty = "l1"

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float | None = None,
        *,
        bounds: Any = None,
        target: Any = None,
        alpha: NonNegative = 1e-3,
        solver: Any = "auto",
        neighbors: str = "replace_one",
        allow_large_delta: bool = False,
        fit_intercept: bool = True,
        start: tuple[Any, Any] | None = None,
        public_moments: tuple[Any, Any] | None = None,
        ledger: Any = None,
        dataset: str | None = None,
        verbose: bool = False,
    ) -> None:
        self._keep(locals())


@register_model("elasticnet")
class DPElasticNet(PrivateRegressor):
    """Elastic net with differential privacy.

    Minimizes (1/n) sum (x.w - y)^2 / 2 + alpha (l1_ratio ||w||_1 + (1 - l1_ratio) ||w||^2 / 2) in training coordinates.

    Parameters
    ----------
    l1_ratio : float, default=0.5
        The share of the L1 norm in the penalty.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet import DPElasticNet
    >>> X = np.linspace(-1, 1, 400).reshape(200, 2)
    >>> y = X.sum(axis=1)
    >>> model = DPElasticNet(epsilon=1.0, bounds=1.0, target=(-2, 2)).fit(X, y)
    >>> model.coef_.shape, model.certificate_.epsilon
    ((2,), 1.0)
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float | None = None,
        *,
        bounds: Any = None,
        target: Any = None,
        alpha: NonNegative = 1e-3,
        l1_ratio: Fraction = 0.5,
        solver: Any = "auto",
        neighbors: str = "replace_one",
        allow_large_delta: bool = False,
        fit_intercept: bool = True,
        start: tuple[Any, Any] | None = None,
        public_moments: tuple[Any, Any] | None = None,
        ledger: Any = None,
        dataset: str | None = None,
        verbose: bool = False,
    ) -> None:
        self._keep(locals())

    @property
    def penalty(self) -> ElasticNet:
        """The penalty that alpha and l1_ratio make."""
        return ElasticNet(self.alpha * self.l1_ratio, self.alpha * (1 - self.l1_ratio))


@register_model("huber")
class DPHuberRegressor(PrivateRegressor):
    """Huber regression with differential privacy: squared for residuals within ``width``, linear beyond.

    Parameters
    ----------
    width : float, default=None
        In units of the target; None: three tenths of the declared target range. Narrower ones cost on
        skewed targets (RAND health: a gap of .69 at a tenth, .07 at three tenths, without privacy).

    Examples
    --------
    >>> import numpy as np
    >>> from discreet import DPHuberRegressor
    >>> X = np.linspace(-1, 1, 400).reshape(200, 2)
    >>> y = X.sum(axis=1)
    >>> model = DPHuberRegressor(epsilon=1.0, bounds=1.0, target=(-2, 2)).fit(X, y)
    >>> model.coef_.shape, model.certificate_.epsilon
    ((2,), 1.0)
    """

    penalty = "l2"

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float | None = None,
        *,
        bounds: Any = None,
        target: Any = None,
        width: Positive | None = None,
        alpha: NonNegative = 1e-5,
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

    def _loss(self, bounds: Bounds) -> Any:
        assert bounds.target is not None
        low, high = bounds.target
        width = 0.3 * (high - low) if self.width is None else self.width
        return Huber(width / target_place(bounds.target, moves=self.fit_intercept)[1])


@register_model("poisson")
class DPPoissonRegressor(PrivateRegressor):
    """Poisson regression (log link) with differential privacy, for counts within a declared range.

    Minimizes (1/n) sum (exp(m) - y m) + (alpha/2) ||w||^2, m = x.w, with the loss continued linearly
    beyond |m| = ``limit``.

    Parameters
    ----------
    limit : float, default=5.0
        The bound on the logarithm of the mean.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet import DPPoissonRegressor
    >>> X = np.linspace(-1, 1, 400).reshape(200, 2)
    >>> y = np.arange(200) % 9
    >>> model = DPPoissonRegressor(epsilon=1.0, bounds=1.0, target=(0, 9)).fit(X, y)
    >>> model.coef_.shape, model.certificate_.epsilon
    ((2,), 1.0)
    """

    penalty = "l2"

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float | None = None,
        *,
        bounds: Any = None,
        target: Any = None,
        limit: Positive = 5.0,
        alpha: NonNegative = 1e-5,
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

    def _loss(self, bounds: Bounds) -> Any:
        assert bounds.target is not None
        refuse_negative_counts(bounds.target)
        return Poisson(self.limit)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags

    def _mean(self, margins: Floats) -> Floats:
        return np.asarray(np.exp(np.clip(margins, -self.limit, self.limit)))
