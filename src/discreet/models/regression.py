"""Private regression: least squares, ridge, lasso, elastic net, Huber, Poisson."""

from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin

from discreet.bounds import Bounds
from discreet.errors import MissingBounds
from discreet.losses import Huber, Poisson, Squared
from discreet.models.base import DPLinearModel
from discreet.models.exposure import warn_of_exact_score
from discreet.models.fitting import declared
from discreet.models.registry import register_model
from discreet.penalties import ElasticNet


class _DPRegressor(RegressorMixin, DPLinearModel, ABC):
    @abstractmethod
    def _loss(self, bounds: Bounds) -> Any: ...

    def fit(self, X: Any, y: Any = None, groups: Any = None, *, charge_id: str | None = None) -> Self:
        """Fit privately; ``groups`` names the person behind each row, where a person has several.

        ``charge_id`` is a name for this fit in the ledger: asked again, it is charged once and gives the same model.
        """
        self._fit(X, y, groups, *self._facts(), charge_id)
        self.coef_, self.intercept_ = self.coef_[0], self.intercept_[0]
        if self.coef_noise_ is not None and self.intercept_noise_ is not None:
            self.coef_noise_, self.intercept_noise_ = self.coef_noise_[0], self.intercept_noise_[0]
        return self

    def _facts(self) -> tuple[Bounds, Any]:
        bounds = declared(self.bounds, target=self.target)
        if bounds.target is None:
            raise MissingBounds(
                "the target's range is not declared: pass target=(low, high), "
                "from what is publicly known, not from the data"
            )
        return bounds, self._loss(bounds)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the exact R^2 on *public* rows; of private rows it releases without noise: ``private_score``."""
        warn_of_exact_score()
        return self._exact_score(X, y, sample_weight)

    def _exact_score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        return float(super().score(X, y, sample_weight))

    def predict(self, X: Any) -> NDArray[np.float64]:
        """The predicted target."""
        return self._margins(X)[:, 0]


@register_model("linear")
class DPLinearRegression(_DPRegressor):
    """Least squares with differential privacy.

    Minimizes (1/n) sum (x.w - y)^2 / 2 in training coordinates (features and target divided by their
    declared bounds). Per-record gradients are clipped, so residuals beyond the clip count as Huber's.
    Parameters as in ``DPRidge``, without a penalty.
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
        ledger: Any = None,
        dataset: str | None = None,
        verbose: bool = False,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.target = target
        self.solver = solver
        self.neighbors = neighbors
        self.allow_large_delta = allow_large_delta
        self.fit_intercept = fit_intercept
        self.ledger = ledger
        self.dataset = dataset
        self.verbose = verbose

    def _loss(self, bounds: Bounds) -> Any:
        return Squared()


@register_model("ridge")
class DPRidge(_DPRegressor):
    """Ridge regression with differential privacy.

    Minimizes (1/n) sum (x.w - y)^2 / 2 + (alpha/2) ||w||^2 in training coordinates.

    Parameters
    ----------
    epsilon, delta, bounds, solver, neighbors, allow_large_delta, verbose
        As in ``DPLogisticRegression``.
    target
        The range (low, high) of the target, where ``bounds`` does not name it.
    alpha
        Strength of the L2 penalty. The intercept is penalized too.
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float | None = None,
        *,
        bounds: Any = None,
        target: Any = None,
        alpha: float = 1e-3,
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
        self.target = target
        self.alpha = alpha
        self.solver = solver
        self.neighbors = neighbors
        self.allow_large_delta = allow_large_delta
        self.fit_intercept = fit_intercept
        self.ledger = ledger
        self.dataset = dataset
        self.verbose = verbose

    penalty = "l2"

    def _loss(self, bounds: Bounds) -> Any:
        return Squared()


@register_model("lasso")
class DPLasso(_DPRegressor):
    """Lasso with differential privacy: coefficients that are not needed come back exactly zero.

    Minimizes (1/n) sum (x.w - y)^2 / 2 + alpha ||w||_1 in training coordinates. ``solver="gcd"`` (greedy) is
    made for wide problems with few relevant features, ``"cd"`` for features of different scale. Other
    parameters as in ``DPRidge``.
    """

    penalty = "l1"

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float | None = None,
        *,
        bounds: Any = None,
        target: Any = None,
        alpha: float = 1e-2,
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
        self.target = target
        self.alpha = alpha
        self.solver = solver
        self.neighbors = neighbors
        self.allow_large_delta = allow_large_delta
        self.fit_intercept = fit_intercept
        self.ledger = ledger
        self.dataset = dataset
        self.verbose = verbose

    def _loss(self, bounds: Bounds) -> Any:
        return Squared()


@register_model("elasticnet")
class DPElasticNet(_DPRegressor):
    """Elastic net with differential privacy: alpha (l1_ratio ||w||_1 + (1 - l1_ratio) ||w||^2 / 2) on least squares.

    Other parameters as in ``DPLasso``.
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float | None = None,
        *,
        bounds: Any = None,
        target: Any = None,
        alpha: float = 1e-2,
        l1_ratio: float = 0.5,
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
        self.target = target
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.solver = solver
        self.neighbors = neighbors
        self.allow_large_delta = allow_large_delta
        self.fit_intercept = fit_intercept
        self.ledger = ledger
        self.dataset = dataset
        self.verbose = verbose

    @property
    def penalty(self) -> ElasticNet:
        """The penalty that alpha and l1_ratio make."""
        return ElasticNet(self.alpha * self.l1_ratio, self.alpha * (1 - self.l1_ratio))

    def _loss(self, bounds: Bounds) -> Any:
        return Squared()


@register_model("huber")
class DPHuberRegressor(_DPRegressor):
    """Huber regression with differential privacy: squared for residuals within ``width``, linear beyond.

    ``width`` is in units of the target; None: a tenth of the declared target range. Other parameters as
    in ``DPRidge``.
    """

    penalty = "l2"

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float | None = None,
        *,
        bounds: Any = None,
        target: Any = None,
        width: float | None = None,
        alpha: float = 1e-3,
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
        self.target = target
        self.width = width
        self.alpha = alpha
        self.solver = solver
        self.neighbors = neighbors
        self.allow_large_delta = allow_large_delta
        self.fit_intercept = fit_intercept
        self.ledger = ledger
        self.dataset = dataset
        self.verbose = verbose

    def _loss(self, bounds: Bounds) -> Any:
        assert bounds.target is not None
        low, high = bounds.target
        width = (high - low) / 10 if self.width is None else self.width
        return Huber(width / (max(abs(low), abs(high)) or 1.0))


@register_model("poisson")
class DPPoissonRegressor(_DPRegressor):
    """Poisson regression (log link) with differential privacy, for counts within a declared range.

    Minimizes (1/n) sum (exp(m) - y m) + (alpha/2) ||w||^2, m = x.w, with the loss continued linearly
    beyond |m| = ``limit``. Other parameters as in ``DPRidge``.
    """

    penalty = "l2"

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float | None = None,
        *,
        bounds: Any = None,
        target: Any = None,
        limit: float = 5.0,
        alpha: float = 1e-3,
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
        self.target = target
        self.limit = limit
        self.alpha = alpha
        self.solver = solver
        self.neighbors = neighbors
        self.allow_large_delta = allow_large_delta
        self.fit_intercept = fit_intercept
        self.ledger = ledger
        self.dataset = dataset
        self.verbose = verbose

    def _loss(self, bounds: Bounds) -> Any:
        assert bounds.target is not None
        if bounds.target[0] < 0:
            raise MissingBounds("counts are not negative: declare a target range such as target=(0, 100)")
        return Poisson(self.limit)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags

    def predict(self, X: Any) -> NDArray[np.float64]:
        """The predicted mean, exp of the linear predictor within its limit."""
        return np.asarray(np.exp(np.clip(self._margins(X)[:, 0], -self.limit, self.limit)))
