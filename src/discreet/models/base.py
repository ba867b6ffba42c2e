"""What the estimators share: the fit, the linear predictor, saving."""

import warnings
from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from discreet.accounting.certificate import Certificate
from discreet.bounds import Bounds
from discreet.budget import Neighbors
from discreet.curator import NO_PERSONS, DaskRows, container_of, is_dask, is_stream
from discreet.errors import Unsupported
from discreet.losses.base import Loss
from discreet.models.charged import Charged
from discreet.models.export.exported import Exported
from discreet.models.exposure import warn_of_autolog, warn_of_lost_groups, warn_of_repeated_fits
from discreet.models.fitting import FitSettings, Quote, declared, fit_model, penalty_of
from discreet.models.intervals import Intervals, intervals
from discreet.models.parameters import NamedParameters
from discreet.models.progress import progress_bar
from discreet.models.shown import Shown
from discreet.parameters import Count, Finite, Positive, Rows, Share, check_settings, checked
from discreet.solvers.base import Effects
from discreet.typing import Floats

if TYPE_CHECKING:
    from discreet.models.forecast.effects import EffectsForecast
    from discreet.models.forecast.forecast_result import Forecast
    from discreet.models.inference.summarize import MeanInterval
    from discreet.models.inference.summary import Summary


_SETTINGS = (
    *("solver", "epsilon", "delta", "neighbors", "allow_large_delta", "fit_intercept", "start"),
    *("public_moments", "ledger", "dataset"),
)
_INFERENCE = ("inference", "cov_type")


class DPLinearModel(Shown, Exported, NamedParameters, Charged):
    """A linear model whose fit is differentially private. Subclasses name the loss and the facts it needs."""

    certificate_: Certificate
    coef_: Floats
    intercept_: Floats
    coef_noise_: Floats | None
    intercept_noise_: Floats | None
    effects_: Effects | None

    def _fit(self, X: Any, y: Any, groups: Any, bounds: Bounds, loss: Loss, charge_id: str | None) -> Self:
        warn_of_autolog()
        warn_of_repeated_fits(self.ledger, self.dataset)
        warn_of_lost_groups(self.ledger, groups)
        X, y = _taken(X, y, groups, bounds, loss)
        if not is_stream(X):
            self._check(X, y)
        elif isinstance(X, DaskRows):
            validate_data(self, X.sample, skip_check_array=True)
        else:
            self.n_features_in_ = len(X.columns)
        with progress_bar(type(self).__name__, self.epsilon, self.verbose) as progress:
            if is_stream(X) and progress is not None:
                public = Neighbors(self.neighbors).n_is_public and not X.has_persons  # else persons are, rows are not
                X.reading = progress.rows if public else None
            told = self._told(bounds, loss)
            fitted = fit_model(told, X, y, groups, charge_id=charge_id, progress=progress)
            if is_stream(X):
                X.reading = None
        self.coef_, self.intercept_, self.certificate_ = fitted.coef, fitted.intercept, fitted.certificate
        self.coef_noise_, self.intercept_noise_ = fitted.coef_noise, fitted.intercept_noise
        self.effects_ = fitted.effects
        return self

    def _check(self, X: Any, y: Any) -> None:
        validate_data(self, X, skip_check_array=True)
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        warn_of_a_column(y)

    def _told(self, bounds: Bounds, loss: Loss) -> FitSettings:
        """Return the settings of a fit, in addition to its records."""
        penalty = penalty_of(getattr(self, "penalty", None), getattr(self, "alpha", 0.0))
        told = {name: getattr(self, name) for name in _SETTINGS}
        told |= {name: getattr(self, name) for name in _INFERENCE if hasattr(self, name)}
        return FitSettings(type(self).__name__, bounds, loss, penalty, **told)

    @abstractmethod
    def _facts(self) -> tuple[Bounds, Any]:
        """Return the declared facts, complete, and the loss."""

    def _declared(self) -> tuple[Bounds, Any]:
        """Return the declared facts and the loss, once every parameter is as its type says."""
        check_settings(self)
        return self._facts()

    def quote(self, X: Any, y: Any = None, groups: Any = None) -> Quote:
        """Return what a fit of these records would release and cost. Only their containers are looked at.

        The number of records (of persons, with ``groups``) is counted where neighbors agree on it.

        Parameters
        ----------
        X, y, groups : array-like
            As in ``fit``.

        Returns
        -------
        Quote
            ``budget``, ``plan``, ``noise_multiplier``, ``events``, ``solver``, ``reason`` and ``price``.

        Examples
        --------
        >>> model.quote(X, y).price.epsilon <= model.epsilon
        True
        """
        bounds, loss = self._declared()
        X, y = _taken(X, y, groups, bounds, loss)
        return self._told(bounds, loss).prepare(X, y, groups).quote

    def _margins(self, X: Any) -> Floats:
        """Return the linear predictor of new records, clipped to the declared ranges, one column per output."""
        check_is_fitted(self)
        X = validate_data(self, container_of(X), reset=False, accept_sparse="csr", dtype=np.float64)
        X, coef, intercept = self._within(X), np.atleast_2d(self.coef_), np.atleast_1d(self.intercept_)
        return np.asarray(X @ coef.T + intercept) if hasattr(X, "tocsr") else _row_by_row(X, coef) + intercept

    def _within(self, X: Any) -> Any:
        """Clip features to their declared ranges, as in training: beyond them nothing was learned."""
        low, high = declared(self.bounds).ranges(X.shape[1], getattr(self, "feature_names_in_", None))
        if hasattr(X, "tocsr") and ((low > 0) | (high < 0)).any():
            X = X.toarray()  # absent entries are 0, which is outside these ranges
        if not hasattr(X, "tocsr"):
            return np.clip(X, low, high)
        inside = X.copy()
        inside.data = np.clip(X.data, low[X.indices], high[X.indices])
        return inside

    @checked
    def intervals(self, level: Share = 0.95) -> Intervals:
        """Return intervals for what each coefficient would have been without the privacy noise.

        The interval covers the coefficient that the same steps, with the same clips and in the same coordinates, would
        have found on the same records without noise. It does not contain the sampling error of the records, nor what
        clipping, shrinkage and early stopping did: it is no confidence interval for a population. Free: computed from
        released and public values. Some solvers know bounds only, and are wide; ``docs/intervals.md`` has figures.

        Parameters
        ----------
        level : float, default=0.95
            About how often an interval covers its coefficient, one by one.

        Returns
        -------
        Intervals
            Lower and upper ends of ``coef`` and ``intercept``.

        Examples
        --------
        >>> model.set_params(solver="gd").fit(X, y).intervals(0.9).coef.low.shape == model.coef_.shape
        True
        """
        check_is_fitted(self)
        return intervals(self, level)

    @checked
    def summary(self, level: Share = 0.95) -> "Summary":
        """Return the effects for a population: coefficients, standard errors, tests, confidence intervals.

        For fits with ``inference="sandwich"``. Standard errors count sampling and every privacy noise. Free: computed
        from released values. ``docs/inference.md`` says what is estimated, and when intervals fail to cover it.

        Parameters
        ----------
        level : float, default=0.95
            About how often an interval covers its effect, one by one.

        Returns
        -------
        Summary
            Prints as a table; ``frame`` is a data frame.

        Raises
        ------
        Unsupported
            Where there is none; the message says why, and what would help.

        Examples
        --------
        >>> model.summary()
        Traceback (most recent call last):
        discreet.errors.Unsupported: nothing was reserved for standard errors: fit again with inference='sandwich' ...
        """
        from discreet.models.inference.summarize import summary_of

        check_is_fitted(self)
        return summary_of(self, level)

    @checked
    def predict_interval(self, X: Any, level: Share = 0.95) -> "MeanInterval":
        """Return predicted means with confidence intervals; for two classes the probability of the second.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Records that the caller may see.
        level : float, default=0.95
            About how often an interval covers the mean of all records with these features.

        Returns
        -------
        MeanInterval
            ``mean``, ``low`` and ``high``.

        Raises
        ------
        Unsupported
            Where there is no summary.

        Examples
        --------
        >>> model.predict_interval(X[:3])
        Traceback (most recent call last):
        discreet.errors.Unsupported: nothing was reserved for standard errors: fit again with inference='sandwich' ...
        """
        from discreet.models.inference.summarize import mean_interval

        check_is_fitted(self)
        X = validate_data(self, container_of(X), reset=False, dtype=np.float64)
        return mean_interval(self, self._within(X), level)

    @checked
    def forecast(
        self,
        n: Rows,
        p: Count | None = None,
        *,
        epsilons: Sequence[Positive] | None = None,
        n_grid: Sequence[Rows] | None = None,
        seeds: Count = 5,
        ceiling: Share | None = None,
        diameter: Positive | None = None,
        max_cells: Positive = 1e6,
    ) -> "Forecast":
        """Forecast what privacy will cost on a table of n rows and p columns, by simulation and by theory.

        No data is read and no budget spent: this estimator, as it is configured, is fitted on public synthetic tables.

        Parameters
        ----------
        n : int
            Rows of the table that is planned.
        p : int, default=None
            Its columns; may be left out where ``bounds`` list them.
        epsilons : sequence of float, default=None
            Other budgets to compare, at this n. None: the usual ones.
        n_grid : sequence of int, default=None
            Other numbers of rows to compare, at this epsilon. None: the usual ones.
        seeds : int, default=5
            How many synthetic tables, each with its own noise.
        ceiling : float, default=None
            The accuracy or R2 of the best model there is on the synthetic tables. None: 0.85, 0.6, for counts 0.4.
        diameter : float, default=None
            For the theory: how long the best coefficients are assumed to be. None: as long as the synthetic law's.
        max_cells : float, default=1e6
            Larger tables are simulated with fewer rows at the same signal-to-noise.

        Returns
        -------
        Forecast
            Scores with and without privacy, over epsilon and over n.

        Examples
        --------
        >>> found = model.forecast(n=300, p=2, epsilons=[1.0], n_grid=[300], seeds=2)
        >>> found.asked.epsilon == model.epsilon
        True
        """
        from discreet.models.forecast.forecast import forecast

        with progress_bar(f"{type(self).__name__}, forecast", self.epsilon, self.verbose) as progress:
            return forecast(
                self,
                n,
                p,
                epsilons=epsilons,
                n_grid=n_grid,
                seeds=seeds,
                ceiling=ceiling,
                diameter=diameter,
                max_cells=max_cells,
                progress=progress,
            )

    @checked
    def forecast_effects(
        self, n: Rows, p: Count | None = None, *, standard_error: Positive | None = None, mean: Finite | None = None
    ) -> "EffectsForecast":
        """Forecast the standard errors of ``inference="sandwich"``, and the rows that a given one needs.

        Power analysis: computed from public facts, no data is read and no budget spent.

        Parameters
        ----------
        n : int
            Rows of the table that is planned; persons, where these are the unit of privacy.
        p : int, default=None
            Its columns; may be left out where ``bounds`` list them.
        standard_error : float, default=None
            The standard error that is wished for, for a column of variance 1.
        mean : float, default=None
            The share of the second class, or the mean count. None: 0.5 and 1.

        Returns
        -------
        EffectsForecast
            Standard errors and their inflation over epsilon and n, and the rows needed.

        Examples
        --------
        >>> found = model.forecast_effects(n=20_000, p=10)
        >>> found.asked.refused is not None or found.asked.inflation > 1
        True
        """
        from discreet.models.forecast.effects import forecast_effects

        return forecast_effects(self, n, p, standard_error=standard_error, mean=mean)

    @checked
    def save(self, path: str | Path) -> Path:
        """Write the model and its certificate to a file: JSON and arrays, no pickle. ``discreet.load`` reads it.

        Parameters
        ----------
        path : str or Path
            The file; it is written whole or not at all.

        Returns
        -------
        Path
            The file.

        Examples
        --------
        >>> import tempfile, discreet
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     same = discreet.load(model.save(f"{folder}/model.discreet"))
        >>> same.certificate_ == model.certificate_
        True
        """
        from discreet.models.persistence import save

        return save(self, path)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True  # at fit, where a record with a missing value counts as null
        tags.target_tags.required = True
        tags.non_deterministic = True
        return tags


def _taken(X: Any, y: Any, groups: Any, bounds: Bounds, loss: Loss) -> tuple[Any, Any]:
    """Return records and targets as a fit takes them; Dask collections as a stream of both, which workers read."""
    if is_stream(X):
        return X, y
    if not is_dask(X):
        return container_of(X), y
    if groups is not None:
        raise Unsupported(NO_PERSONS)
    return DaskRows(X, y, bounds.classes if loss.task == "classification" else None), None


def warn_of_a_column(y: Any) -> None:
    """Warn where the target is a matrix of one column: a fact of its container."""
    if getattr(y, "ndim", 1) == 2 and y.shape[1] == 1:
        warnings.warn("A column-vector y was passed when a 1d array was expected", DataConversionWarning, stacklevel=5)


_ROWS = 2048
"""Rows whose products are added at a time: a block of them stays in the cache."""


def _row_by_row(X: Floats, coef: Floats) -> Floats:
    """Return ``X @ coef.T``, each row for itself: a matrix product's last bits depend on the rows around."""
    out = np.zeros((len(X), len(coef)))
    for first in range(0, len(X), _ROWS):
        block, sums = np.asfortranarray(X[first : first + _ROWS]), out[first : first + _ROWS]
        for k, row in enumerate(coef):
            for j, weight in enumerate(row.tolist()):
                sums[:, k] += block[:, j] * weight
    return out
