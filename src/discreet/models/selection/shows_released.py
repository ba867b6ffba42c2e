"""What a search does after it has released a model: whatever that model does, unchanged."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from discreet.models.exposure import warn_of_exact_score
from discreet.typing import Floats


def _has(name: str) -> Any:
    return available_if(lambda self: hasattr(self._shown, name))


class ShowsReleased:
    """Predictions, scores and files of ``best_estimator_``, of which the class has ``estimator`` and ``candidates``."""

    estimator: Any
    candidates: Any
    best_estimator_: Any

    @property
    def _shown(self) -> Any:
        """The released model, or what will be like it."""
        if hasattr(self, "best_estimator_"):
            return self.best_estimator_
        if self.estimator is not None:
            return self.estimator
        return self.candidates[0] if isinstance(self.candidates, (list, tuple)) and self.candidates else None

    def _fitted(self) -> Any:
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the released model's predictions.

        Parameters
        ----------
        X : array-like
            Records that the caller may see.

        Returns
        -------
        ndarray
            Classes or numbers.

        Examples
        --------
        >>> search.predict(X[:3]).shape
        (3,)
        """
        return np.asarray(self._fitted().predict(X))

    @_has("decision_function")
    def decision_function(self, X: Any) -> Floats:
        """Return the released model's scores of classes.

        Parameters
        ----------
        X : array-like
            Records that the caller may see.

        Returns
        -------
        ndarray
            Scores.

        Examples
        --------
        >>> search.decision_function(X[:3]).shape
        (3,)
        """
        return np.asarray(self._fitted().decision_function(X))

    @_has("predict_proba")
    def predict_proba(self, X: Any) -> Floats:
        """Return the released model's probabilities.

        Parameters
        ----------
        X : array-like
            Records that the caller may see.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Probabilities.

        Examples
        --------
        >>> search.predict_proba(X[:3]).shape
        (3, 2)
        """
        return np.asarray(self._fitted().predict_proba(X))

    @_has("predict_log_proba")
    def predict_log_proba(self, X: Any) -> Floats:
        """Return the logarithms of the released model's probabilities.

        Parameters
        ----------
        X : array-like
            Records that the caller may see.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Logarithms.

        Examples
        --------
        >>> search.predict_log_proba(X[:3]).shape
        (3, 2)
        """
        return np.asarray(self._fitted().predict_log_proba(X))

    def score(self, X: Any, y: Any) -> float:
        """Return the released model's exact accuracy or R^2 on *public* records: see the estimators' ``score``.

        Parameters
        ----------
        X, y : array-like
            Public records and their targets.

        Returns
        -------
        float
            The score.

        Examples
        --------
        >>> import warnings
        >>> with warnings.catch_warnings(action="ignore"):
        ...     0 <= search.score(X, y) <= 1
        True
        """
        warn_of_exact_score()
        return float(self._fitted()._exact_score(X, y))

    def save(self, path: str | Path) -> Path:
        """Write the released model with the search's certificate to a file; ``discreet.load`` reads it.

        Parameters
        ----------
        path : str or Path
            The file.

        Returns
        -------
        Path
            The file.

        Examples
        --------
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     search.save(f"{folder}/model.discreet").name
        'model.discreet'
        """
        saved: Path = self._fitted().save(path)
        return saved

    @property
    def classes_(self) -> NDArray[Any]:
        """The declared classes."""
        return np.asarray(self._fitted().classes_)

    @property
    def n_features_in_(self) -> int:
        """The number of features seen."""
        return int(self._fitted().n_features_in_)
