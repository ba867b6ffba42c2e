"""What the estimators share: the fit, the linear predictor, saving, and how they are shown.

In a notebook an estimator is scikit-learn's diagram, above it the claim, and a link to the documentation: only the
certificate, parameters and released attributes are shown. Progress bars count rows and steps, which are public; never
losses, which are not. Predictions of Dask collections are lazy arrays, computed wherever the blocks are.
"""

import math
import os
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from copy import copy
from dataclasses import dataclass, field, fields
from functools import cache, wraps
from html import escape
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar, dataclass_transform

import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator
from sklearn.exceptions import DataConversionWarning
from sklearn.utils import Tags, estimator_html_repr
from sklearn.utils.validation import check_is_fitted, validate_data

from discreet import curator
from discreet.accounting.certificate import Certificate
from discreet.atomic_files import passing
from discreet.bounds import Bounds
from discreet.budget import Neighbors
from discreet.errors import MissingBounds, Unsupported
from discreet.inference.intervals import Intervals, intervals
from discreet.ledger.ledger import storable
from discreet.losses.base import Loss
from discreet.models.fit import Covariance, FitSettings, Inference, Quote, RowExtras, declared, fit_model, penalty_of
from discreet.models.words import NamedParameters, warn_of_autolog, warn_of_exact_score, warn_of_uncounted_fits
from discreet.parameters import Count, Finite, NonNegative, Positive, Probability, Rows, Share, check_settings, checked
from discreet.registry import BUILT_IN_MODELS, Registry
from discreet.solvers.base import Effects
from discreet.typing import Floats

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import TaskID
    from sklearn.pipeline import Pipeline

    from discreet.inference.summary import MeanInterval, Summary
    from discreet.models.forecast import EffectsForecast, Forecast
    from discreet.schema.schema import Schema


class Bars:
    """One bar for each kind of work, shown once it begins."""

    def __init__(self, bar: "Bar", title: str) -> None:
        self._bar, self._title = bar, title
        self._tasks: dict[str, TaskID] = {}

    def __call__(self, done: int, planned: int) -> None:
        """Steps of a solver."""
        self._show("steps", done, planned)

    def rows(self, done: int, in_all: int) -> None:
        """Rows of a table as they are read: only where their number is public."""
        self._show("rows", done, in_all)

    def _show(self, unit: str, done: int, planned: int) -> None:
        if unit not in self._tasks:
            self._tasks[unit] = self._bar.add_task(self._title, total=planned, unit=unit)
        self._bar.update(self._tasks[unit], completed=done, total=planned)


@contextmanager
def progress_bar(title: str, epsilon: float) -> Iterator[Bars]:
    """Show bars on the terminal while the block runs: on stderr, out of the way of results."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[unit]}"))
    with Bar(*columns, TimeRemainingColumn(), transient=True, console=Console(stderr=True)) as bar:
        yield Bars(bar, f"{title}, epsilon {epsilon:g}")


Predictions = TypeVar("Predictions")


def lazily(method: Callable[..., Predictions]) -> Callable[..., Predictions]:
    """Return a method that predicts; of a Dask collection it returns a Dask array that is not computed yet."""

    @wraps(method)
    def predicted(self: object, X: object, *, offset: object = None) -> Predictions:
        if not curator.is_dask(X):
            return method(self, X) if offset is None else method(self, X, offset=offset)
        if offset is not None:
            raise Unsupported("offsets of Dask collections are not read: predict block by block")
        predictions: Predictions = lazy_predictions(self, method.__name__, X)
        return predictions

    return predicted


def lazy_predictions(model: Any, name: str, X: Any) -> Any:
    """Return a model's predictions of a Dask array or frame, one block per block of rows."""
    import dask
    import dask.array as da

    if hasattr(X, "chunks"):
        if X.ndim != 2:
            raise Unsupported("X must have two dimensions, one row per record")
        whole = X if X.numblocks[1] == 1 else X.rechunk({1: -1})
        blocks, sizes = whole.to_delayed().ravel().tolist(), whole.chunks[0]
    else:
        blocks = X.to_delayed()
        sizes = [math.nan] * len(blocks)
    sample = getattr(model, name)(_one_row(model))
    predict = dask.delayed(_predicted, pure=False)
    shared = _uncharged(model), name, sample[:0]
    return da.concatenate(
        [
            da.from_delayed(predict(*shared, block), shape=(size, *sample.shape[1:]), dtype=sample.dtype)
            for block, size in zip(blocks, sizes, strict=True)
        ]
    )


def _one_row(model: Any) -> Any:
    """Return a row as the model takes rows, to see what predictions look like: of missing values, or of zeros."""
    if hasattr(model, "schema"):
        return {name: [None] for name in model.schema.columns}
    check_is_fitted(model)
    row, names = np.zeros((1, model.n_features_in_)), getattr(model, "feature_names_in_", None)
    if names is None:
        return row
    import pandas as pd

    return pd.DataFrame(row, columns=names)


def _predicted(model: Any, name: str, none: Any, block: Any) -> Any:
    return getattr(model, name)(block) if len(block) else none


def _uncharged(model: Any) -> Any:
    """Return the model without its ledger, which stays here: predictions cost nothing."""
    bare = copy(model)
    for part in ("estimator_", "estimator"):
        inner = getattr(bare, part, None)
        if inner is not None:
            setattr(bare, part, _uncharged(inner))
    if hasattr(bare, "ledger"):
        bare.ledger, bare.dataset = False, None
    return bare


_PAGES = {"TableModel": "tables", "SchemaEncoder": "tables", "DPRandomizedSearch": "results", "TableSearch": "tables"}


@cache
def documentation() -> str:
    """Return the address of the documentation, empty where the package names none."""
    try:
        urls = metadata("discreet").get_all("Project-URL") or []
    except PackageNotFoundError:
        return ""
    addresses = dict(entry.split(", ", 1) for entry in urls if ", " in entry)
    return str(addresses.get("Documentation", "")).rstrip("/")


class Shown:
    """Displays an estimator with epsilon, delta and the relation of its fit."""

    _doc_link_module = "discreet"

    @property
    def _doc_link_template(self) -> str:
        page = _PAGES.get(type(self).__name__, "estimators")
        return f"{documentation()}/reference/api/{page}.html#discreet.{type(self).__name__}" if documentation() else ""

    def _doc_link_url_param_generator(self) -> dict[str, str]:
        return {}

    def _claim_html(self) -> str:
        """Return the claim in one line, or that there is none yet."""
        is_fitted = any(hasattr(self, name) for name in ("coef_", "estimator_", "best_estimator_"))
        certificate = getattr(self, "certificate_", None) if is_fitted else None
        if certificate is None:
            claim = "not fitted: nothing was spent"
        else:
            relation = str(certificate.neighbors).replace("_", " ")
            budget = f"epsilon {certificate.epsilon:g}, delta {certificate.delta:g}"
            claim = f"{certificate.headline}: {budget}, {relation}, per {certificate.unit}"
        return f'<p style="font-family: monospace">{escape(type(self).__name__)}: {escape(claim)}</p>'

    @property
    def _repr_html_(self) -> Callable[[], str]:
        if get_config()["display"] != "diagram":
            raise AttributeError("there is no HTML unless scikit-learn's display is 'diagram'")
        return self._shown_html

    def _shown_html(self) -> str:
        return self._claim_html() + str(estimator_html_repr(self))

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        bundle = {"text/plain": repr(self)}
        return bundle | {"text/html": self._shown_html()} if get_config()["display"] == "diagram" else bundle


class Exported:
    """Ways out to other tools. They hold released and public values only, and cost nothing."""

    def to_sklearn(self) -> "Pipeline":
        """Return a plain, fitted scikit-learn pipeline that predicts the same numbers, to deploy without discreet.

        Features are clipped to their declared ranges, as here. The pipeline of an estimator takes arrays and data
        frames, not sparse matrices. That of a ``TableModel`` takes a pandas data frame with the declared columns, and
        treats missing, unknown and out-of-range cells as the schema says; labels are compared as texts.

        Returns
        -------
        Pipeline
            Its last step, ``model``, is scikit-learn's own linear model.

        Raises
        ------
        Unsupported
            If predictions have a link that scikit-learn does not have.

        Examples
        --------
        >>> type(model.to_sklearn()[-1]).__module__.split(".")[0]
        'sklearn'
        """
        check_is_fitted(self)
        if hasattr(self, "schema_"):
            from discreet.models.export import table_pipeline

            return table_pipeline(self)  # type: ignore[arg-type]
        from discreet.models.export import array_pipeline

        return array_pipeline(self)  # type: ignore[arg-type]

    @checked
    def to_onnx(self, path: str | Path) -> Path:
        """Write the model as an ONNX graph of single precision, with the certificate's digest in its metadata.

        An estimator's graph takes one matrix, ``X``. A table model's takes one input of shape (n, 1) per column: a
        number, or a text without blanks around it, empty where nothing is there. The file is written whole or not at
        all. Needs ``discreet[onnx]``.

        Raises
        ------
        Unsupported
            If predictions have a link of their own.

        Examples
        --------
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     model.to_onnx(f"{folder}/model.onnx").suffix
        '.onnx'
        """
        from discreet.models.export import onnx_model

        check_is_fitted(self)
        content = onnx_model(self).SerializeToString(deterministic=True)
        with passing(Path(path)) as scratch:
            scratch.write_bytes(content)
            os.replace(scratch, path)
        return Path(path)


@dataclass_transform(kw_only_default=True, eq_default=False, field_specifiers=(field,))
class Charged(BaseEstimator):
    """An estimator whose parameters are annotated class attributes, ``ledger`` among them.

    Each class gets the constructor of a dataclass, which stores its arguments as they are: scikit-learn's ``clone``
    relies on it. Parameters are printed, pickled, and sent to workers. So whatever sets ``ledger``, a constructor,
    ``set_params`` or an assignment, a URL with a password becomes a ``Ledger``. A ``Ledger`` is copied as itself.
    """

    def __init_subclass__(cls, **settings: object) -> None:
        if "__init__" not in vars(cls):
            dataclass(kw_only=True, eq=False, repr=False)(cls)
        super().__init_subclass__(**settings)

    def __setattr__(self, name: str, value: object) -> None:
        super().__setattr__(name, storable(value) if name == "ledger" else value)


class ExactScore:
    """The ``score`` of scikit-learn's mixins, which stands before them and warns of what it releases."""

    def score(self, X: object, y: object, sample_weight: object = None) -> float:
        """Return the exact accuracy, or R^2, on *public* rows; of private rows it releases without noise.

        Use ``private_score`` for private rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Public records.
        y : array-like of shape (n_samples,)
            Their labels or targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the records.

        Returns
        -------
        float
            The share of right predictions of classes, R^2 of numbers.

        Examples
        --------
        >>> import warnings
        >>> with warnings.catch_warnings(action="ignore"):
        ...     model.score(X, y) <= 1
        True
        """
        warn_of_exact_score()
        return self._exact_score(X, y, sample_weight)

    def _exact_score(self, X: object, y: object, sample_weight: object = None) -> float:
        return float(super().score(X, y, sample_weight))  # type: ignore[misc]


@dataclass(kw_only=True, eq=False, repr=False)
class WithInference:
    """Parameters of the models whose standard errors are proven."""

    inference: Inference = None
    cov_type: Covariance = "robust"
    even_if_empty: bool = False


_SETTINGS = (
    *("solver", "epsilon", "delta", "neighbors", "allow_large_delta", "fit_intercept", "start"),
    *("public_moments", "ledger", "dataset"),
)


class DPLinearModel(Shown, Exported, NamedParameters, Charged):
    """A linear model whose fit is differentially private. Subclasses name the loss and the facts it needs."""

    epsilon: float = field(default=1.0, kw_only=False)
    delta: float | None = field(default=None, kw_only=False)
    bounds: object = None
    solver: object = "auto"
    neighbors: str = "replace_one"
    allow_large_delta: bool = False
    fit_intercept: bool = True
    start: tuple[object, object] | None = None
    public_moments: tuple[object, object] | None = None
    ledger: object = None
    dataset: str | None = None
    verbose: bool = False

    certificate_: Certificate = field(init=False)
    coef_: Floats = field(init=False)
    intercept_: Floats = field(init=False)
    coef_noise_: Floats | None = field(init=False)
    intercept_noise_: Floats | None = field(init=False)
    coef_correlation_: Floats | None = field(init=False)
    effects_: Effects | None = field(init=False)
    n_features_in_: int = field(init=False)

    def fit(
        self,
        X: object,
        y: object = None,
        groups: object = None,
        *,
        sample_weight: object = None,
        offset: object = None,
        charge_id: str | None = None,
    ) -> Self:
        """Fit privately; the charge comes before the first record is read.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            Records. Values outside of the declared ranges are clipped; a missing value makes a record null.
        y : array-like of shape (n_samples,)
            Labels, of which one that is not declared makes a record null; or targets, clipped to their declared range.
        groups : array-like of shape (n_samples,), default=None
            The person behind each row, where a person has several: the guarantee is then for persons.
        sample_weight : array-like of shape (n_samples,), default=None
            A weight per row, clipped to the range ``Bounds(weights=(low, high))``. Uneven weights cost accuracy: noise
            is scaled for the largest one.
        offset : array-like of shape (n_samples,), default=None
            A known part of the linear predictor per row, clipped to the range ``Bounds(offsets=(low, high))``, such as
            the logarithm of the exposure of a count.
        charge_id : str, default=None
            A name for this fit in the ledger: asked again, it is charged once and gives the same model.

        Raises
        ------
        MissingBounds
            If ranges or classes are not declared.
        BudgetExceeded
            If the data set's budget in the ledger does not suffice.

        Examples
        --------
        >>> model.fit(X, y, groups=np.arange(200) // 2).certificate_.unit
        'person'
        """
        bounds, loss = self._declared()
        warn_of_autolog()
        warn_of_uncounted_fits(self.ledger, self.dataset, groups)
        X, y, extras, row_bounds = self._records(X, y, RowExtras(groups, sample_weight, offset), bounds, loss)
        self._check(X, y)
        settings = self._fit_settings(row_bounds, loss)
        with progress_bar(type(self).__name__, self.epsilon) if self.verbose else nullcontext() as progress:
            if curator.is_stream(X) and progress is not None:
                public = Neighbors(self.neighbors).n_is_public and not X.has_persons  # else persons are, rows are not
                X.reading = progress.rows if public else None
            fitted = fit_model(settings, X, y, extras, charge_id=charge_id, progress=progress)
            if curator.is_stream(X):
                X.reading = None
        self.coef_, self.intercept_, self.certificate_ = fitted.coef, fitted.intercept, fitted.certificate
        self.coef_noise_, self.intercept_noise_ = fitted.coef_noise, fitted.intercept_noise
        self.coef_correlation_, self.effects_ = fitted.correlation, fitted.effects
        self._finish(bounds)
        return self

    @abstractmethod
    def _finish(self, bounds: Bounds) -> None:
        """Set what is not alike in all models: the classes, or coefficients of a single output."""

    def _records(
        self, X: object, y: object, extras: RowExtras, bounds: Bounds, loss: Loss
    ) -> tuple[Any, Any, RowExtras, Bounds]:
        """Return records as a fit takes them, and what is known of these; Dask collections as one stream of workers."""
        if curator.is_stream(X):
            return X, y, extras, bounds
        if not curator.is_dask(X):
            return curator.container_of(X), y, extras, bounds
        classes = bounds.classes if loss.task == "classification" else None
        rows = curator.DaskRows(X, y, classes, extras.groups, extras.weights, extras.offsets)
        return rows, None, RowExtras(), bounds

    def _check(self, X: object, y: object) -> None:
        """Note the number and the names of the features, and refuse records without targets."""
        if curator.is_stream(X):
            if X.sample is None:
                self.n_features_in_ = len(X.columns)
            else:
                validate_data(self, X.sample, skip_check_array=True)
            return
        if hasattr(X, "iloc") and hasattr(X, "columns") and not X.columns.is_unique:
            raise Unsupported("X has columns of the same name: rename all but one of them")
        validate_data(self, X, skip_check_array=True)
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        warn_of_a_column(y)

    def _fit_settings(self, bounds: Bounds, loss: Loss) -> FitSettings:
        """Return the settings of a fit, in addition to its records."""
        penalty = penalty_of(getattr(self, "penalty", None), getattr(self, "alpha", 0.0))
        settings = {name: getattr(self, name) for name in _SETTINGS}
        if isinstance(self, WithInference):
            settings |= {field.name: getattr(self, field.name) for field in fields(WithInference)}
        settings["class_weights"] = self._class_weights(bounds)
        return FitSettings(type(self).__name__, bounds, loss, penalty, **settings)

    def _class_weights(self, bounds: Bounds) -> tuple[float, ...] | None:
        """Return the declared weight of each class, None where all are alike."""
        return None

    @abstractmethod
    def _facts(self) -> tuple[Bounds, Loss]:
        """Return the declared facts, complete, and the loss."""

    def _declared(self) -> tuple[Bounds, Loss]:
        """Return the declared facts and the loss, once every parameter is as its type says."""
        check_settings(self)
        return self._facts()

    def quote(
        self, X: object, y: object = None, groups: object = None, *, sample_weight: object = None, offset: object = None
    ) -> Quote:
        """Return what a fit of these records would release and cost. Only their containers are looked at.

        The number of records (of persons, with ``groups``) is counted where neighbors agree on it.

        Parameters
        ----------
        X, y, groups, sample_weight, offset : array-like
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
        extras = RowExtras(groups, sample_weight, offset)
        X, y, extras, row_bounds = self._records(X, y, extras, bounds, loss)
        return self._fit_settings(row_bounds, loss).prepare(X, y, extras).quote

    def _margins(self, X: object, offset: object = None) -> Floats:
        """Return the linear predictor of new records, clipped to the declared ranges, one column per output."""
        check_is_fitted(self)
        rows = validate_data(self, curator.container_of(X), reset=False, accept_sparse="csr", dtype=np.float64)
        rows, coef, intercept = self._within(rows), np.atleast_2d(self.coef_), np.atleast_1d(self.intercept_)
        is_sparse = hasattr(rows, "tocsr")
        margins = np.asarray(rows @ coef.T + intercept) if is_sparse else _row_by_row(rows, coef) + intercept
        return margins if offset is None else margins + self._offsets(offset, len(margins))[:, None]

    def _offsets(self, offset: object, rows: int) -> Floats:
        """Return offsets of new records, clipped to their declared range, as in training."""
        ends = declared(self.bounds).offsets
        if ends is None:
            raise MissingBounds("the range of offsets is not declared: write Bounds(..., offsets=(low, high))")
        try:
            offsets = np.asarray(offset, dtype=np.float64)
        except (TypeError, ValueError):
            offsets = np.empty(rows + 1)  # refused as of the wrong length
        if offsets.shape != (rows,):
            raise Unsupported("offset must hold one number for each row of X")
        return np.asarray(np.clip(offsets, *ends))

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
        released and public values. Some solvers know bounds only, and are wide; ``docs/report.md`` has figures.

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
        from discreet.inference.summary import summary_of

        check_is_fitted(self)
        return summary_of(self, level)

    @checked
    def predict_interval(self, X: object, level: Share = 0.95, *, offset: object = None) -> "MeanInterval":
        """Return predicted means with confidence intervals; for two classes the probability of the second.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Records that the caller may see.
        level : float, default=0.95
            About how often an interval covers the mean of all records with these features.
        offset : array-like of shape (n_samples,), default=None
            The offsets of the records, where the model was fitted with offsets.

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
        from discreet.inference.summary import mean_interval

        check_is_fitted(self)
        rows = validate_data(self, curator.container_of(X), reset=False, dtype=np.float64)
        offsets = np.zeros(len(rows)) if offset is None else self._offsets(offset, len(rows))
        return mean_interval(self, self._within(rows), level, offsets)

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
        >>> forecast = model.forecast(n=300, p=2, epsilons=[1.0], n_grid=[300], seeds=2)
        >>> forecast.asked.epsilon == model.epsilon
        True
        """
        from discreet.models.forecast import forecast

        title = f"{type(self).__name__}, forecast"
        with progress_bar(title, self.epsilon) if self.verbose else nullcontext() as progress:
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
        self,
        n: Rows,
        p: Count | None = None,
        *,
        standard_error: Positive | None = None,
        mean: Finite | None = None,
        cells: Sequence[Share] | Mapping[int, Share] = (),
        strength: NonNegative | None = None,
        fill: Probability | None = None,
    ) -> "EffectsForecast":
        """Forecast the effects of ``inference="sandwich"``: how likely they are to be shown, and their standard errors.

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
            The share of the second class, the others being alike, or the mean count. None: even classes, and 1.
        cells : sequence of float, or mapping of int to float, default=()
            The shares of rows in which yes/no columns are true, one per column or by place: ``(0.2, 0.02)``. Others are
            numbers.
        strength : float, default=None
            How well columns predict the target: the deviation of the log odds or log rates that they make; for numbers,
            in standard deviations of the residuals. None: 0.35; the least chances of ``kinds`` are near separation.
        fill : float, default=None
            The part of its declared range that a number fills. None: all; the least chances are for a tenth.

        Returns
        -------
        EffectsForecast
            Chances to be shown and standard errors by kind of column, over epsilon and n, and the rows needed.

        Examples
        --------
        >>> power = model.forecast_effects(n=20_000, p=10)
        >>> power.asked.refused is not None or power.asked.inflation > 1
        True
        """
        from discreet.models.forecast import forecast_effects

        return forecast_effects(
            self, n, p, standard_error=standard_error, mean=mean, cells=cells, strength=strength, fill=fill
        )

    @checked
    def save(self, path: str | Path) -> Path:
        """Write the model and its certificate to a file, whole or not at all: JSON and arrays, no pickle.

        ``discreet.load`` reads it.

        Examples
        --------
        >>> import tempfile, discreet
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     same = discreet.load(model.save(f"{folder}/model.discreet"))
        >>> same.certificate_ == model.certificate_
        True
        """
        from discreet.models.persist import save

        return save(self, path)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True  # at fit, where a record with a missing value counts as null
        tags.target_tags.required = True
        tags.non_deterministic = True
        return tags


MODELS: Registry[type[DPLinearModel]] = Registry("model", BUILT_IN_MODELS)
"""Estimators by name, for ``--model`` and saved models; ``@register_model("mine")`` adds one."""
register_model = MODELS.register


def default_model(schema: "Schema") -> str:
    """Return the short name of the model that suits the target: of an exposure, one with a log link."""
    if schema.target is None or schema.target.classes is None:
        counts = schema.target is None or schema.target.range is None or schema.target.range[0] >= 0
        return "poisson" if counts and schema.offset is not None and schema.offset.log else "ridge"
    return "ordinal" if schema.target.ordered else "logistic"


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
