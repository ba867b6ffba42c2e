"""What the estimators share: the fit, the linear predictor, saving."""

import warnings
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from discreet.accounting.certificate import Certificate
from discreet.bounds import Bounds
from discreet.models.fitting import fit_model, penalty_of
from discreet.models.progress import progress_bar


class DPLinearModel(BaseEstimator):
    """A linear model whose fit is differentially private. Subclasses name the loss and the facts it needs."""

    certificate_: Certificate
    coef_: NDArray[np.float64]
    intercept_: NDArray[np.float64]

    def _fit(self, X: Any, y: Any, groups: Any, bounds: Bounds, loss: Any) -> Self:
        validate_data(self, X, skip_check_array=True)
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        if getattr(y, "ndim", 1) == 2 and y.shape[1] == 1:  # a fact of the container
            warnings.warn(
                "A column-vector y was passed when a 1d array was expected", DataConversionWarning, stacklevel=3
            )
        with progress_bar(type(self).__name__, self.epsilon, self.verbose) as progress:
            fitted = fit_model(
                X,
                y,
                groups,
                model=type(self).__name__,
                bounds=bounds,
                loss=loss,
                penalty=penalty_of(getattr(self, "penalty", None), getattr(self, "alpha", 0.0)),
                solver=self.solver,
                epsilon=self.epsilon,
                delta=self.delta,
                neighbors=self.neighbors,
                fit_intercept=self.fit_intercept,
                progress=progress,
            )
        self.coef_, self.intercept_, self.certificate_ = fitted.coef, fitted.intercept, fitted.certificate
        return self

    def _margins(self, X: Any) -> NDArray[np.float64]:
        """The linear predictor of new records, one column an output."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, accept_sparse="csr", dtype=np.float64)
        return np.asarray(X @ np.atleast_2d(self.coef_).T + np.atleast_1d(self.intercept_))

    def save(self, path: str | Path) -> Path:
        """Write the model and its certificate to ``path``: JSON and arrays, no pickle. ``discreet.load`` reads it."""
        from discreet.models.persistence import save

        return save(self, path)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True  # at fit, where a record with a missing value counts as null
        tags.target_tags.required = True
        tags.non_deterministic = True
        return tags
