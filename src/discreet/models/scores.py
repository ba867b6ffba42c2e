"""How well a released model predicts other rows: with noise, for a budget of its own; or exactly, of public rows.

``private_score`` goes the way of a fit: declare, plan, price, reserve, open, answer, certify.
"""

import hashlib
import json
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from discreet.accounting.certificate import Certificate
from discreet.accounting.pricing import PricedPlan, price_plan
from discreet.bounds import Bounds
from discreet.budget import Budget
from discreet.curator import (
    METRICS,
    ROC_RATES,
    Claim,
    Groups,
    Measured,
    Metric,
    NoisySums,
    PrivateData,
    Released,
    check_measurable,
    container_of,
    expected_interval,
    is_dask,
    is_stream,
    measure_private,
    measure_public,
    plan_of,
    two_dimensional,
)
from discreet.errors import AccountingError, AlreadyReleased, MissingBounds, Unsupported
from discreet.json_schemas import Json
from discreet.ledger.ledger import Reservation, noted
from discreet.losses.base import Loss
from discreet.models.base import DPLinearModel
from discreet.models.fit import Certify, budget_of, carry_out
from discreet.parameters import Share, checked

if TYPE_CHECKING:
    from matplotlib.axes import Axes


BAD_ERROR = 0.25  # of the declared target range: an error that counts as wholly bad


@dataclass(frozen=True)
class Facts:
    """An estimator's declared facts and its loss."""

    bounds: Bounds
    loss: Loss
    intercept: bool = True

    @property
    def error(self) -> float:
        """The error that counts as wholly bad, in training coordinates; 1 for classes."""
        if self.bounds.target is None or self.loss.task == "classification":
            return 1.0
        low, high = self.bounds.target
        _, scale = self.loss.target_place((low, high), intercept=self.intercept)
        return BAD_ERROR * (high - low) / scale


def facts_of(estimator: DPLinearModel) -> Facts:
    """Return what an estimator declares, complete, or an error that says what is missing."""
    return Facts(*estimator._declared(), estimator.fit_intercept)


@dataclass(frozen=True)
class ScorePart:
    """One of several numbers of a score: a group's, a class's, a tenth's, or a cell of a confusion matrix.

    Parameters
    ----------
    name : str
        Such as ``"ward = a"``, ``"0.2 to 0.3"`` or ``"no predicted as yes"``.
    value, low, high : float
        The number, and its interval over the noise, at the score's level for each part by itself.
    population_low, population_high : float or None
        The same for rows like these; None for counts.

    Examples
    --------
    >>> from discreet.models import ScorePart
    >>> ScorePart("ward = a", 0.8, 0.7, 0.9, 0.6, 0.95).name
    'ward = a'
    """

    name: str
    value: float
    low: float
    high: float
    population_low: float | None
    population_high: float | None

    def to_dict(self) -> Json:
        """Return a dictionary for JSON: numbers that are not finite become None."""
        return {name: _finite(value) if isinstance(value, float) else value for name, value in vars(self).items()}


@dataclass(frozen=True)
class PrivateScore:
    """How well a model predicts some rows, with intervals.

    Parameters
    ----------
    metric : str
        Such as ``"accuracy"``, ``"auc"`` or ``"r2"``.
    value : float
        The score. NaN where the noise leaves nothing to say.
    low, high : float
        With at least the probability ``level`` over the noise, the score of exactly these rows, computed without noise,
        lies within. Equal to the value where the rows are not private.
    level : float
        The level of the intervals.
    population_low, population_high : float
        The same for rows yet unseen of the same kind: the sampling error of these rows is added, which is an
        approximation.
    certificate : Certificate or None
        What may be claimed of the release. None: the rows were declared public, and nothing protects them.
    n : int or None
        The number of rows (persons); None where it is private.
    sampling : str
        How the sampling error was estimated.
    parts : tuple of ScorePart
        The numbers of groups, classes, tenths or cells, where the score has some.

    Examples
    --------
    ``private_score`` and ``public_score`` return one:

    >>> from discreet.models import PrivateScore
    >>> PrivateScore("accuracy", 0.8, 0.7, 0.9, 0.95, 0.6, 0.95, None, 100, "Wilson").is_private
    False
    """

    metric: str
    value: float
    low: float
    high: float
    level: float
    population_low: float
    population_high: float
    certificate: Certificate | None
    n: int | None
    sampling: str
    parts: tuple[ScorePart, ...] = ()

    @property
    def is_private(self) -> bool:
        """Whether the release has a guarantee."""
        return self.certificate is not None and self.certificate.is_private

    def text(self) -> str:
        """Return the score as a text to read."""
        lines = [f"{words_of(self.metric)} {_shown(self.value)}"]
        if self.certificate is None:
            lines.append("  rows declared public: the score is exact, and nothing protects them")
        else:
            lines.append(f"  on these rows        {self._between(self.low, self.high)} (the noise)")
        lines.append(
            f"  on rows like these   {self._between(self.population_low, self.population_high)} "
            f"({'' if self.certificate is None else 'and '}their sampling, {self.sampling})"
        )
        width = max((len(part.name) for part in self.parts), default=0)
        lines += [f"  {part.name:<{width}}  {self._part(part)}" for part in self.parts]
        if self.certificate is not None:
            claim = self.certificate
            said = f"epsilon = {claim.epsilon:.6g}, delta = {claim.delta!r}, {claim.neighbors}, per {claim.unit}"
            lines.append(f"  {claim.stamp}: {said}" if claim.is_private else f"  {claim.stamp}")
            lines += [f"  weak: {reason}" for reason in claim.weaknesses]
        return "\n".join(lines)

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw the ROC curve of an area, or observed by predicted shares of a calibration, with bands over the noise.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None: a new figure.

        Returns
        -------
        Axes
            The picture.
        """
        return unit_square(self, ax)

    def to_dict(self) -> Json:
        """Return a dictionary for JSON: numbers that are not finite become None."""
        return {
            "metric": self.metric,
            **{name: _finite(getattr(self, name)) for name in _NUMBERS},
            "n": self.n,
            "sampling": self.sampling,
            "parts": [part.to_dict() for part in self.parts],
            "rows": "private" if self.certificate is not None else "declared public",
            "certificate": None if self.certificate is None else json.loads(self.certificate.to_json()),
        }

    @classmethod
    def from_dict(cls, stored: Json) -> "PrivateScore":
        """Return the score that ``to_dict``, or ``discreet score --json``, wrote.

        Its certificate is priced again: what a score claims to have cost is not taken on the file's word.
        """
        try:
            return cls._read(stored)
        except (AccountingError, AttributeError, KeyError, OverflowError, TypeError, ValueError):
            raise Unsupported("this is not a score as `discreet score --json` writes it") from None

    @classmethod
    def _read(cls, stored: Json) -> "PrivateScore":
        certificate = None
        if stored["certificate"] is not None:
            certificate = Certificate.from_json(json.dumps(stored["certificate"]))
            certificate.verify()
        words_of(stored["metric"])  # an error for a metric that is not known
        values = {name: _number(stored[name]) for name in _NUMBERS}
        parts = tuple(
            ScorePart(
                str(part["name"]),
                *(_number(part[name]) for name in ("value", "low", "high")),
                *(None if part[name] is None else float(part[name]) for name in ("population_low", "population_high")),
            )
            for part in stored.get("parts", ())
        )
        n = None if stored["n"] is None else int(stored["n"])
        return cls(
            stored["metric"], **values, certificate=certificate, n=n, sampling=str(stored["sampling"]), parts=parts
        )

    def to_text(self) -> str:
        """Return all of it as a text, numbers to the last bit: what a ledger keeps under a charge's id."""
        certificate = None if self.certificate is None else self.certificate.to_json()
        return json.dumps({**vars(self), "certificate": certificate, "parts": [vars(part) for part in self.parts]})

    @classmethod
    def from_text(cls, text: str) -> "PrivateScore":
        """Return the score of a text that ``to_text`` made."""
        stored = json.loads(text)
        claim = stored["certificate"]
        stored["certificate"] = None if claim is None else Certificate.from_json(claim)
        return cls(**{**stored, "parts": tuple(ScorePart(**part) for part in stored["parts"])})

    def __str__(self) -> str:
        return self.text()

    def _part(self, part: ScorePart) -> str:
        shown = _shown if part.population_low is not None else "{:,.0f}".format
        if self.certificate is None:
            return shown(part.value)
        return f"{shown(part.value)}, {shown(part.low)} to {shown(part.high)}"

    def _between(self, low: float, high: float) -> str:
        return f"{_shown(low)} to {_shown(high)} at level {self.level:g}"


SHARES_AT = {"auc": ROC_RATES, "calibration": tuple((tenth + 0.5) / 10 for tenth in range(10))}
"""The shares by which a score's parts are shares: false positive rates, and the middles of predicted chances."""


def unit_square(score: PrivateScore, ax: "Axes | None") -> "Axes":
    """Draw a score whose parts are shares by shares."""
    names = {
        "auc": ("false positive rate", "true positive rate"),
        "calibration": ("predicted chance", "observed share"),
    }
    if score.metric not in names or not score.parts:
        raise Unsupported("a curve is drawn of metric='auc' and metric='calibration': score one of these")
    places, (across, upward) = SHARES_AT[score.metric], names[score.metric]
    if ax is None:
        try:
            import matplotlib.pyplot as plt
        except ImportError:
            raise Unsupported('pictures need matplotlib: pip install "discreet[plot]"') from None
        ax = plt.subplots(figsize=(4.4, 4.4), layout="constrained")[1]
    values = np.array([(part.value, part.low, part.high) for part in score.parts])
    ax.plot([0, 1], [0, 1], color="0.6", linewidth=1.0, linestyle=":")
    ax.fill_between(places, values[:, 1], values[:, 2], alpha=0.2, linewidth=0)
    ax.plot(places, values[:, 0], marker="o", markersize=4)
    ax.set(xlim=(0, 1), ylim=(0, 1), xlabel=across, ylabel=upward)
    ax.set_title(f"{words_of(score.metric)} {_shown(score.value)}")
    return ax


def words_of(metric: str) -> str:
    """Return what a metric is called."""
    return METRICS[metric].words


def _shown(value: float) -> str:
    return f"{value:.4f}" if math.isfinite(value) else "unknown" if math.isnan(value) else f"{value:g}"


_NUMBERS = ("value", "low", "high", "level", "population_low", "population_high")


def _number(stored: float | None) -> float:
    return math.nan if stored is None else float(stored)


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _own(model: object) -> DPLinearModel:
    if not isinstance(model, DPLinearModel):
        raise Unsupported("a private score needs one of discreet's fitted estimators, such as DPLogisticRegression")
    return model


def released(model: Any, X: Any) -> Released:
    """Return the model's numbers, after a check that these columns are its own: by names and shapes only."""
    check_is_fitted(_own(model))
    facts = facts_of(model)
    if facts.bounds.offsets is not None and not (is_stream(X) and "offsets" in X.columns_beside):
        raise Unsupported(
            "the model has offsets, and a score of arrays does not take them: score a TableModel, whose schema names "
            "their column"
        )
    coef = np.atleast_2d(np.asarray(model.coef_, dtype=np.float64))
    names = getattr(model, "feature_names_in_", None)
    if is_stream(X):
        if X.shape[1] != coef.shape[1] or (names is not None and list(X.columns) != [str(name) for name in names]):
            raise Unsupported("these columns are not the ones that the model was fitted on")
    else:
        two_dimensional(X)  # else the message of the check below would have the number of rows
        validate_data(model, X, reset=False, skip_check_array=True)
    if not (np.isfinite(coef).all() and np.isfinite(np.asarray(model.intercept_)).all()):
        raise Unsupported("the model's coefficients are not finite: it predicts nothing that could be scored")
    low, high = facts.bounds.ranges(coef.shape[1], names)
    intercept = np.atleast_1d(np.asarray(model.intercept_, dtype=np.float64))
    return Released(type(model).__name__, facts.bounds.with_facts(n=None), facts.loss, coef, intercept, low, high)


def groups_of(model: object, fitted: Released, by: object, metric: Metric) -> Groups:
    """Return the groups that one feature makes, cut in the middle of its range, or several of which one is 1."""
    if not metric.by_group:
        raise Unsupported(
            f"{metric.words} is not taken by group: use accuracy, brier, log_loss, rmse or mae, or leave by out"
        )
    if isinstance(by, Groups):
        return by
    names = [str(name) for name in getattr(model, "feature_names_in_", range(fitted.coef.shape[1]))]
    columns = tuple(_place(feature, names) for feature in (by if isinstance(by, list | tuple) else [by]))
    if not columns:
        raise Unsupported("by must name a feature, or several")
    low, high = float(fitted.low[columns[0]]), float(fitted.high[columns[0]])
    middle = (low + high) / 2
    if len(columns) > 1:
        if any((fitted.low[j], fitted.high[j]) != (0.0, 1.0) for j in columns):
            raise Unsupported("by takes one feature, or several with the declared range (0, 1) of which one is 1")
        return Groups(tuple(names[j] for j in columns), columns, middle)
    is_binary = (low, high) == (0.0, 1.0)
    ends = (" = 0", " = 1") if is_binary else (f" < {middle:g}", f" > {middle:g}")
    return Groups(tuple(names[columns[0]] + end for end in ends), columns, middle)


def _place(feature: object, names: list[str]) -> int:
    if isinstance(feature, int) and not isinstance(feature, bool) and 0 <= feature < len(names):
        return feature
    if isinstance(feature, str) and feature in names:
        return names.index(feature)
    raise Unsupported("by must name features of the model, or their places")


_RELEASED_BEFORE = "the model was released before, and is taken as public here"


@checked
def private_score(
    model: Any,
    X: Any,
    y: Any = None,
    groups: object = None,
    *,
    metric: str = "auto",
    by: object = None,
    epsilon: float,
    delta: float | None = None,
    neighbors: str = "replace_one",
    allow_large_delta: bool = False,
    level: Share = 0.95,
    ledger: object = None,
    dataset: str | None = None,
    charge_id: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> PrivateScore:
    """Score a released model on private rows that it was not fitted on, with noise, for a budget of its own.

    Parameters
    ----------
    model : estimator
        A fitted estimator of discreet's.
    X, y, groups : array-like
        The rows, in the model's features; ``groups`` names the person behind each. Or X a stream, which brings its
        own targets and persons. A row with a missing feature or without a declared label is not scored.
    metric : str, default="auto"
        One of accuracy, balanced_accuracy, auc, brier, log_loss, calibration, confusion, r2, rmse and mae.
        ``"auto"``, the default: accuracy for classes, R2 for numbers, with the root mean squared error. ``"rmse"`` and
        ``"mae"`` are errors in the target's unit, clipped into its declared range: they need fewer rows than R2.
        ``"auc"`` and ``"calibration"`` are for two classes; ``"brier"``, ``"log_loss"`` and ``"calibration"`` need
        predicted probabilities.
    by : feature or list of features, default=None
        Score each group of rows, too, for accuracy, Brier score, log loss, rmse and mae; groups cost nothing extra.
        Features by name or place: one, whose groups lie below and above the middle of its declared range, or several
        with the range (0, 1) of which one is 1.
    epsilon : float
        What the score may cost, in addition to what the model cost.
    delta : float, default=None
        None: 1/n^2 where n is public, and never more than 1e-6.
    neighbors : str, default="replace_one"
        The relation, as in the estimators.
    allow_large_delta : bool, default=False
        Permit delta >= 1/n, which is refused otherwise.
    level : float, default=0.95
        How often an interval contains the score of these rows without noise: at least.
    ledger : Ledger, str, Path or False, default=None
        Where the score is charged before a row is read, as in the estimators.
    dataset : str, default=None
        The registered name of the rows in the ledger.
    charge_id : str, default=None
        A name for this score in the ledger: asked again, it is charged once and gives the same score.
    progress : callable, default=None
        Called with the number of releases made, and planned.

    Returns
    -------
    PrivateScore
        The noisy score with its intervals and its certificate.

    Raises
    ------
    Unsupported
        If the targets are missing, or the model cannot be scored.
    MissingBounds
        If n is private, and neither it nor delta is given.

    Examples
    --------
    >>> from discreet import DPLogisticRegression, private_score
    >>> from discreet.datasets import hospital
    >>> table = hospital(2000)
    >>> model = DPLogisticRegression(bounds=table.bounds).fit(table.X[:1000], table.y[:1000])
    >>> score = private_score(model, table.X[1000:], table.y[1000:], epsilon=1.0)
    >>> score.metric, score.low <= score.value <= score.high
    ('accuracy', True)
    """
    settings: Json = {"metric": metric, "by": by, "epsilon": epsilon, "delta": delta, "neighbors": neighbors}
    settings |= {"allow_large_delta": allow_large_delta, "level": level, "ledger": ledger, "dataset": dataset}
    X, y, groups = _rows_of(model, X, y, groups)
    ready = _prepared(model, X, y, groups, **settings)
    claim = ready.claim

    def answer(reservation: Reservation | None) -> tuple[Measured, Claim, Certify]:
        if not is_stream(X):
            ready.data.recognize(reservation)
        noisy = NoisySums(ready.priced, groups, progress)
        n = ready.n if ready.priced.budget.neighbors.n_is_public else None
        how: Json = {"level": level, "groups": ready.parts, "n": n}
        measured = measure_private(ready.name, ready.fitted, X, y, noisy, reservation=reservation, **how)
        return measured, claim, noisy.issued

    words = {"label": claim.model}
    if charge_id is not None:
        words |= {"charge_id": charge_id, "about": ready.about(level)}
    try:
        measured, certificate, reservation = carry_out(
            ready.data, ready.fitted.loss, ready.priced, [claim], answer, opens=False, **words
        )
    except AlreadyReleased as answered:
        return PrivateScore.from_text(answered.release)
    score = scored(ready.name, measured, level, certificate, ready.n, ready.kind.sampling)
    if reservation is None or charge_id is None:
        return score
    with noted(reservation):
        return PrivateScore.from_text(reservation.settle(score.to_text()))


def _rows_of(model: object, X: object, y: object, groups: object) -> tuple[Any, Any, Any]:
    """Return rows as a score takes them; Dask collections as one stream, read by workers."""
    if is_stream(X):
        return X, y, groups
    if not is_dask(X):
        return container_of(X), y, groups
    if y is None:
        raise Unsupported("a score needs the targets: pass y")
    from discreet.curator import DaskRows

    facts = facts_of(_own(model))
    return DaskRows(X, y, facts.bounds.classes if facts.loss.task == "classification" else None, groups), None, None


def priced_score(model: DPLinearModel, X: object, **settings: Any) -> PricedPlan:
    """Return what ``private_score`` would release of these rows, at its price: X is a stream that is not read."""
    return _prepared(model, X, None, None, **{"ledger": False, **settings}).priced


@dataclass(frozen=True)
class _Prepared:
    """A score before anything is charged or read."""

    data: PrivateData
    fitted: Released
    kind: Metric
    name: str
    parts: Groups | None
    priced: PricedPlan
    n: int | None
    claim: Claim

    def about(self, level: float) -> str:
        """Return what tells one score from another: the model's numbers, the settings, the declared facts."""
        fitted = self.fitted
        arrays = fitted.coef.tolist(), fitted.intercept.tolist()
        facts = (self.claim, level, fitted.name, fitted.bounds, fitted.loss, list(arrays))
        return hashlib.sha256(repr(facts).encode()).hexdigest()


def _prepared(
    model: object,
    X: object,
    y: object,
    groups: object,
    *,
    epsilon: float,
    metric: str = "auto",
    by: object = None,
    delta: float | None = None,
    neighbors: str = "replace_one",
    allow_large_delta: bool = False,
    level: float = 0.95,
    ledger: object = None,
    dataset: str | None = None,
) -> _Prepared:
    """Declare, plan and price: everything about a score that is known without its rows."""
    fitted = released(model, X)
    kind, name = metric_of(fitted, metric)
    parts = None if by is None else groups_of(model, fitted, by, kind)
    relation = Budget(epsilon, neighbors=neighbors).neighbors  # type: ignore[arg-type]
    if is_stream(X) and X.estimates is not None:
        raise Unsupported(
            "the ranges of these columns are to be estimated: score with the ranges that the model's fit estimated"
        )
    if y is None and not is_stream(X):
        raise Unsupported("a score needs the targets: pass y")
    data = PrivateData(X, y, fitted.bounds, groups=groups, ledger=ledger, dataset=dataset)
    n = data.public_n(relation)
    if n is None and delta is None:
        raise MissingBounds("n is private here: give delta, such as delta=1e-6")
    budget = budget_of(epsilon, delta, relation, n, allow_large_delta=allow_large_delta)
    priced = price_plan(plan_of(kind.shares, pure=budget.is_pure), budget)
    check_measurable(name, fitted, priced, level=level, groups=parts)
    declared = fitted.bounds.to_dict()
    facts = {"unit": data.unit, "n": n, **{key: declared.get(key) for key in ("features", "target", "classes")}}
    settings: Json = {"metric": name} if parts is None else {"metric": name, "by": list(parts.names)}
    claim = Claim(f"{name} of {fitted.name}", settings, (_RELEASED_BEFORE,), facts)
    return _Prepared(data, fitted, kind, name, parts, priced, n, claim)


def outlook(
    model: DPLinearModel, n: int, *, metric: str, epsilon: float, delta: float | None, neighbors: str, level: float
) -> str | None:
    """Say of R2, from public facts alone, when its interval would leave nothing to say; None where it would not."""
    if metric not in ("auto", "r2") or facts_of(model).loss.task == "classification":
        return None
    relation = Budget(epsilon, neighbors=neighbors).neighbors  # type: ignore[arg-type]
    budget = budget_of(epsilon, delta, relation, n, allow_large_delta=True)
    priced = price_plan(plan_of(METRICS["r2"].shares, pure=budget.is_pure), budget)
    low, high = expected_interval(priced, n, level)
    if high - low < 1:
        return None
    return (
        f"at epsilon = {epsilon:g} and {n:,} rows, the interval of R2 would probably be wider than 0 to 1: "
        "--metric rmse or mae, in the target's unit, needs fewer rows"
    )


def metric_of(model: Released, metric: str) -> tuple[Metric, str]:
    """Return the metric and its name, or a word on what does not go together."""
    if metric == "auto":
        metric = "accuracy" if model.is_classifier else "r2"
    if metric not in METRICS:
        raise Unsupported(f"metric must be auto, {', '.join(METRICS)}")
    kind = METRICS[metric]
    if model.is_classifier == kind.is_regression:
        raise Unsupported("r2, rmse and mae are for numeric targets, the other metrics for classes: use metric='auto'")
    if kind.two_classes and len(model.class_names) != 2:
        raise Unsupported(f"{metric} is for two classes: use metric='accuracy' for more")
    if kind.probabilities and model.loss.n_outputs == 1 and not model.loss.sigmoid_link:
        raise Unsupported(f"{metric} needs predicted probabilities, as of DPLogisticRegression: use metric='accuracy'")
    return kind, metric


def scored(
    name: str, measured: Measured, level: float, certificate: Certificate | None, n: int | None, sampling: str
) -> PrivateScore:
    """Return the result, with the sampling error added on both sides and nothing beyond what a score can be."""
    least, most = METRICS[name].least, METRICS[name].most
    counts = name == "confusion"  # its parts are numbers of these rows, and have no like among others
    return PrivateScore(
        metric=name,
        value=measured.value,
        low=measured.low,
        high=measured.high,
        level=level,
        population_low=max(least, measured.low - measured.sampling),
        population_high=min(most, measured.high + measured.sampling),
        certificate=certificate,
        n=n,
        sampling=sampling,
        parts=tuple(
            ScorePart(
                *(part.name, part.value, part.low, part.high),
                None if counts else max(least if part.most is None else 0.0, part.low - part.sampling),
                None if counts else min(most if part.most is None else part.most, part.high + part.sampling),
            )
            for part in measured.parts
        ),
    )


@checked
def public_score(
    model: object, X: object, y: object = None, metric: str = "auto", level: Share = 0.95, *, by: object = None
) -> PrivateScore:
    """Score a model on rows that are declared public: exact, without noise and without a guarantee.

    ``population_low`` and ``population_high`` are the usual interval for the sampling of the rows: Wilson's for
    accuracy, DeLong's for the area under the curve, the delta method's for R2.

    Parameters
    ----------
    model : estimator
        A fitted estimator of discreet's.
    X, y : array-like
        Rows that everybody may see, in the model's features, and their targets.
    metric : str, default="auto"
        As for ``private_score``.
    level : float, default=0.95
        The level of the interval.
    by : feature or list of features, default=None
        Score each group of rows, too, as for ``private_score``.

    Returns
    -------
    PrivateScore
        The exact score; its ``certificate`` is None.

    Raises
    ------
    Unsupported
        If the targets are missing, or the model cannot be scored.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet import DPRidge, public_score
    >>> X, y = np.linspace(-1, 1, 100).reshape(50, 2), np.linspace(0, 1, 50)
    >>> model = DPRidge(epsilon=1.0, bounds=1.0, target=(0, 1)).fit(X, y)
    >>> public_score(model, X, y).metric
    'r2'
    """
    X = container_of(X)
    fitted = released(model, X)
    kind, name = metric_of(fitted, metric)
    groups = None if by is None else groups_of(model, fitted, by, kind)
    if y is None and not is_stream(X):
        raise Unsupported("a score needs the targets: pass y")
    if y is not None and is_stream(X):
        raise Unsupported("a stream brings its own targets: leave y out")
    exact = measure_public(name, fitted, X, y, level, groups)
    result = scored(name, exact.measured, level, None, exact.n, exact.sampling)
    if exact.ends is None:
        return result
    return replace(result, population_low=exact.ends[0], population_high=exact.ends[1])
