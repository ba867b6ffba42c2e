"""What private regressors share: fits of numbers, their declared facts, predictions and exact scores."""

from typing import Any, Self

from sklearn.base import RegressorMixin

from discreet.bounds import Bounds
from discreet.errors import MissingBounds
from discreet.losses import Squared
from discreet.models.base import DPLinearModel
from discreet.models.exposure import warn_of_exact_score
from discreet.models.fitting import declared
from discreet.models.lazy import lazily
from discreet.typing import Floats


class PrivateRegressor(RegressorMixin, DPLinearModel):
    """A private linear model of numbers."""

    def _loss(self, bounds: Bounds) -> Any:
        return Squared()

    def fit(self, X: Any, y: Any = None, groups: Any = None, *, charge_id: str | None = None) -> Self:
        """Fit privately; the charge comes before the first record is read.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            Records. Values outside of the declared ranges are clipped; a missing value makes a record null.
        y : array-like of shape (n_samples,)
            Targets, clipped to their declared range.
        groups : array-like of shape (n_samples,), default=None
            The person behind each row, where a person has several: the guarantee is then for persons.
        charge_id : str, default=None
            A name for this fit in the ledger: asked again, it is charged once and gives the same model.

        Returns
        -------
        estimator
            Itself, fitted.

        Raises
        ------
        MissingBounds
            If the ranges of features or target are not declared.
        BudgetExceeded
            If the data set's budget in the ledger does not suffice.

        Examples
        --------
        >>> model.fit(X, y, groups=np.arange(200) // 2).certificate_.unit
        'person'
        """
        self._fit(X, y, groups, *self._declared(), charge_id)
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
        """Return the exact R^2 on *public* rows; of private rows it releases without noise: ``private_score``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Public records.
        y : array-like of shape (n_samples,)
            Their targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the records.

        Returns
        -------
        float
            R^2.

        Examples
        --------
        >>> import warnings
        >>> with warnings.catch_warnings(action="ignore"):
        ...     model.score(X, y) <= 1
        True
        """
        warn_of_exact_score()
        return self._exact_score(X, y, sample_weight)

    def _exact_score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        return float(super().score(X, y, sample_weight))

    @lazily
    def predict(self, X: Any) -> Floats:
        """Return the predicted target of each row, features clipped to their declared ranges.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            Records that the caller may see.

        Returns
        -------
        ndarray of shape (n_samples,)
            Targets.

        Examples
        --------
        >>> model.predict(X[:3]).shape
        (3,)
        """
        return self._mean(self._margins(X)[:, 0])

    def _mean(self, margins: Floats) -> Floats:
        """Return the mean target at these linear predictors."""
        return margins
