"""Private regression: least squares and its penalties, Huber, quantiles, counts and amounts, any loss of numbers."""

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils import Tags

from discreet.bounds import Bounds, refuse_negative_counts, target_place
from discreet.errors import Unsupported
from discreet.losses import Gamma, Huber, NegativeBinomial, Poisson, Quantile, Squared, Tweedie
from discreet.losses.base import Loss, loss_of
from discreet.losses.log_link import count_limit
from discreet.models.base import DPLinearModel, ExactScore, WithInference, lazily
from discreet.models.fit import declared
from discreet.parameters import Fraction, NonNegative, Positive, Share
from discreet.penalties import ElasticNet
from discreet.penalties.base import Penalty
from discreet.typing import Floats

SMOOTHED = 50.0
"""A check loss is smoothed over +- the target's declared range over this, unless declared."""


class PrivateRegressor(ExactScore, RegressorMixin, DPLinearModel):
    """A private linear model of numbers."""

    target: object = None

    _example = """
    Examples
    --------
    >>> import numpy as np
    >>> from discreet.models import {name}
    >>> X = np.linspace(-1, 1, 400).reshape(200, 2)
    >>> y = 1.0 + np.arange(200) % 9
    >>> model = {name}(epsilon=1.0, bounds=1.0, target=(0, 9)).fit(X, y)
    >>> model.coef_.shape, model.certificate_.epsilon
    ((2,), 1.0)
    """

    def _loss(self, bounds: Bounds) -> Loss:
        return Squared()

    def _finish(self, bounds: Bounds) -> None:
        self.coef_, self.intercept_ = self.coef_[0], self.intercept_[0]
        if self.coef_noise_ is not None and self.intercept_noise_ is not None:
            self.coef_noise_, self.intercept_noise_ = self.coef_noise_[0], self.intercept_noise_[0]

    def _facts(self) -> tuple[Bounds, Loss]:
        bounds = declared(self.bounds, target=self.target)
        return bounds, self._loss(bounds)

    @lazily
    def predict(self, X: object, *, offset: object = None) -> Floats:
        """Return the predicted target of each row; features and predictions are clipped to their declared ranges.

        The target lies in its range, so the nearer end of it is never a worse prediction than a value beyond. It
        matters for rows far out in a range that is much wider than most rows need: few of them enter a private fit.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            Records that the caller may see.
        offset : array-like of shape (n_samples,), default=None
            Known parts of the linear predictor, as in ``fit``.

        Returns
        -------
        ndarray of shape (n_samples,)
            Targets.

        Examples
        --------
        >>> model.predict(X[:3]).shape
        (3,)
        """
        return np.asarray(np.clip(self._mean(self._margins(X, offset)[:, 0]), *self._facts()[0].target))  # type: ignore[misc]

    def _mean(self, margins: Floats) -> Floats:
        """Return the mean target at these linear predictors."""
        mean: Floats = self._facts()[1].prediction(margins)
        return mean


class DPLinearRegression(WithInference, PrivateRegressor):
    """Least squares with differential privacy.

    Minimizes (1/n) sum (x.w - y)^2 / 2 in training coordinates (features and target divided by their
    declared bounds). Per-record gradients are clipped, so residuals beyond the clip count as Huber's.
    """


class DPRidge(WithInference, PrivateRegressor):
    """Ridge regression with differential privacy.

    Minimizes (1/n) sum (x.w - y)^2 / 2 + (alpha/2) ||w||^2 in training coordinates.
    """

    alpha: NonNegative = 1e-5
    penalty = "l2"


class DPLasso(PrivateRegressor):
    """Lasso with differential privacy: coefficients that are not needed come back exactly zero.

    Minimizes (1/n) sum (x.w - y)^2 / 2 + alpha ||w||_1 in training coordinates. ``solver="gcd"`` (greedy) is
    made for wide problems with few relevant features, ``"cd"`` for features of different scale.
    """

    penalty = "l1"
    alpha: NonNegative = 1e-3


class DPElasticNet(PrivateRegressor):
    """Elastic net with differential privacy.

    Minimizes (1/n) sum (x.w - y)^2 / 2 + alpha (l1_ratio ||w||_1 + (1 - l1_ratio) ||w||^2 / 2) in training coordinates.

    Parameters
    ----------
    l1_ratio : float, default=0.5
        The share of the L1 norm in the penalty.
    """

    alpha: NonNegative = 1e-3
    l1_ratio: Fraction = 0.5

    @property
    def penalty(self) -> ElasticNet:
        """The penalty that alpha and l1_ratio make."""
        return ElasticNet(self.alpha * self.l1_ratio, self.alpha * (1 - self.l1_ratio))


class DPHuberRegressor(WithInference, PrivateRegressor):
    """Huber regression with differential privacy: squared for residuals within ``width``, linear beyond.

    Parameters
    ----------
    width : float, default=None
        In units of the target; None: three tenths of the declared target range. A narrow one predicts near the median
        where the target is skewed.
    """

    penalty = "l2"
    width: Positive | None = None
    alpha: NonNegative = 1e-5

    def _loss(self, bounds: Bounds) -> Loss:
        assert bounds.target is not None
        low, high = bounds.target
        width = 0.3 * (high - low) if self.width is None else self.width
        return Huber(width / target_place(bounds.target, moves=self.fit_intercept)[1])


class LogLinkRegressor(PrivateRegressor):
    """A private model of counts or amounts, whose mean is exp(x.w)."""

    penalty = "l2"
    limit: Positive | None = None

    def _limit(self, bounds: Bounds) -> float:
        """Return the largest logarithm of a mean for counts in a declared range."""
        assert bounds.target is not None
        return count_limit(bounds.target[1]) if self.limit is None else self.limit

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags


class DPPoissonRegressor(WithInference, LogLinkRegressor):
    """Poisson regression (log link) with differential privacy, for counts within a declared range.

    Minimizes (1/n) sum (exp(m) - y m) + (alpha/2) ||w||^2, m = x.w, with the loss continued linearly
    above m = ``limit``.

    Parameters
    ----------
    limit : float or None, default=None
        The largest logarithm of a mean; None: that of twice the largest declared count, or 5 if it is less.
    """

    alpha: NonNegative = 1e-6

    def _loss(self, bounds: Bounds) -> Loss:
        return in_training_coordinates(Poisson(self._limit(bounds)), bounds, self.fit_intercept)


class DPNegativeBinomialRegressor(LogLinkRegressor):
    """Negative binomial regression (log link) with differential privacy, for counts that vary more than Poisson's.

    Minimizes (1/n) sum ((y + 1/a) log(1 + a exp(m)) - y m) + (alpha/2) ||w||^2, m = x.w, with the loss continued
    linearly above m = ``limit``: statsmodels' ``NegativeBinomial(alpha=a)``. Offsets are not defined for it.

    Standard errors are not proven for it: it has no ``inference``.

    Parameters
    ----------
    dispersion : float, default=1.0
        a, declared: counts of mean e vary by e + a e^2.
    limit : float or None, default=None
        The largest logarithm of a mean; None: that of twice the largest declared count, or 5 if it is less.
    """

    dispersion: Positive = 1.0
    alpha: NonNegative = 0.0

    def _loss(self, bounds: Bounds) -> Loss:
        loss = NegativeBinomial(self.dispersion, self._limit(bounds))
        return in_training_coordinates(loss, bounds, self.fit_intercept)


class DPGammaRegressor(LogLinkRegressor):
    """Gamma regression (log link) with differential privacy, for positive amounts such as costs and durations.

    Minimizes (1/n) sum (m + y exp(-m)) + (alpha/2) ||w||^2, m = x.w, with the loss continued linearly beyond
    |m| = ``limit``, where y is the target over a tenth of the end of its range, which moves the intercept alone.

    Standard errors are not proven for it: it has no ``inference``.

    Parameters
    ----------
    limit : float, default=10.0
        The bound on the logarithm of the mean, from that of a tenth of the end of the range.
    """

    limit: Positive = 10.0
    alpha: NonNegative = 0.0

    def _loss(self, bounds: Bounds) -> Loss:
        return in_training_coordinates(Gamma(self.limit), bounds, self.fit_intercept)


class DPTweedieRegressor(LogLinkRegressor):
    """Tweedie regression (log link) with differential privacy, for amounts that are often 0, such as claims.

    Minimizes (1/n) sum (e^(2 - p) / (2 - p) + y e^(1 - p) / (p - 1)) + (alpha/2) ||w||^2, e = exp(x.w), with the loss
    continued linearly beyond |x.w| = ``limit``, where y is the target over a tenth of the end of its range, which
    moves the intercept alone.

    Standard errors are not proven for it: it has no ``inference``.

    Parameters
    ----------
    power : float, default=1.5
        p, between 1 and 2, declared: amounts of mean e vary by a factor times e^p.
    limit : float, default=10.0
        The bound on the logarithm of the mean, from that of a tenth of the end of the range.
    """

    power: Positive = 1.5
    limit: Positive = 10.0
    alpha: NonNegative = 0.0

    def _loss(self, bounds: Bounds) -> Loss:
        return in_training_coordinates(Tweedie(self.power, self.limit), bounds, self.fit_intercept)


class DPQuantileRegressor(PrivateRegressor):
    """Quantile regression with differential privacy: the median, or the value that a share of targets lie below.

    Minimizes (1/n) sum of check losses, smoothed over +- ``width``, + (alpha/2) ||w||^2, in training coordinates.

    Standard errors are not proven for it: it has no ``inference``.

    Parameters
    ----------
    quantile : float, default=0.5
        The share of targets below the prediction, between 0 and 1.
    width : float, default=None
        The residuals below which the loss is smoothed, in the target's units: small against their spread. None: a
        fiftieth of the target's declared range.
    """

    penalty = "l2"
    quantile: Share = 0.5
    width: Positive | None = None
    alpha: NonNegative = 1e-7

    def _loss(self, bounds: Bounds) -> Loss:
        assert bounds.target is not None
        low, high = bounds.target
        width = (high - low) / SMOOTHED or 1.0 if self.width is None else self.width
        return in_training_coordinates(Quantile(self.quantile, width), bounds, self.fit_intercept)


class DPRegressor(WithInference, PrivateRegressor):
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

    loss: Loss | str = "squared"
    penalty: Penalty | str | None = "l2"
    alpha: NonNegative = 1e-3

    def _loss(self, bounds: Bounds) -> Loss:
        loss = loss_of(self.loss)
        if loss.task != "regression" or loss.n_outputs != 1:
            raise Unsupported("this loss is for classes: use DPClassifier")
        return in_training_coordinates(loss, bounds, self.fit_intercept)


def in_training_coordinates(loss: Loss, bounds: Bounds, intercept: bool) -> Loss:
    """Return a loss of targets in the user's units as one of targets in training coordinates."""
    assert bounds.target is not None
    low, high = bounds.target
    if loss.log_link:
        refuse_negative_counts(bounds.target)
        if bounds.offsets is not None:
            high = max(high, loss.offset_target_range(bounds.target, bounds.offsets)[1])
    return loss.for_targets((low, high), intercept=intercept)
