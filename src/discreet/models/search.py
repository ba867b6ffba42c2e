"""Private search: tuning that is paid for, by a random number of runs of which only the best is released.

One run is the base mechanism that is repeated: it draws a candidate at random, fits it on one part of the records and
scores it on the other; its outcome is (candidate, model, noisy score). The two parts are fixed before the
first run, by lots that no data touch (``records/derived.py``), so that the runs are independent and alike, and each
costs the more expensive of its fit and its score. Every run opens its own curators: no noise serves twice.
"""

import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Self

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.model_selection import ParameterGrid
from sklearn.utils import Tags, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from discreet.accounting import gaussian, selection
from discreet.accounting.certificate import Certificate
from discreet.accounting.events import (
    SAMPLING_DENOMINATOR,
    Event,
    Gaussian,
    NonPrivate,
    RepeatedSelection,
    gaussian_mu,
    merged,
)
from discreet.accounting.plan import Plan, Release
from discreet.accounting.pricing import Price, PricedPlan, epsilon_of, in_double_precision, price_plan
from discreet.accounting.selection import SHAPES, Stopping
from discreet.bounds import Bounds, Domain
from discreet.budget import Budget, Neighbors
from discreet.curator import (
    Claim,
    Entropy,
    Part,
    PrivateData,
    container_of,
    current_entropy,
    gathered,
    idealized,
    is_dask,
    is_stream,
    issued,
    split,
    split_elsewhere,
    uniform_below,
)
from discreet.errors import LedgerError, MissingBounds, PlanViolation, Unsupported
from discreet.json_schemas import Json
from discreet.ledger.ledger import Reservation
from discreet.models.base import Charged, DPLinearModel, Shown, warn_of_a_column
from discreet.models.classification import DPOrdinalRegression
from discreet.models.fit import Certify, FitSettings, budget_of, carry_out, in_training_units
from discreet.models.scores import Facts, facts_of
from discreet.models.table_model import TableModel
from discreet.models.words import warn_of_exact_score, warn_of_uncounted_fits
from discreet.parameters import OneOf, Positive, Share, check_settings
from discreet.schema.schema import Schema
from discreet.typing import Array

SCORE = Plan((Release("noisy_score", 1),))
MEAN_RUNS = 10.0
POISSON_LEAST, POISSON_MOST = 6.0, 10.0


def stopping_of(name: str, mean: float | None, n_candidates: int, *, pure: bool) -> Stopping:
    """Return the law of the number of runs, by name.

    ``auto`` takes Poisson for means from 6 to 10, where it reaches a good candidate most often for the same noise.
    Below, there is no run at all too often (e^-mean); beyond, its price explodes. There logarithmic is the cheapest
    law, and for pure budgets too, at twice a run's epsilon.
    """
    wanted = min(MEAN_RUNS, max(2.0, n_candidates)) if mean is None else mean
    if name == "auto":
        name = "poisson" if not pure and POISSON_LEAST <= wanted <= POISSON_MOST else "logarithmic"
    if name not in SHAPES:
        raise Unsupported(f"stopping must be auto, {', '.join(SHAPES)}")
    return Stopping(wanted, SHAPES[name])


@dataclass(frozen=True)
class Candidate:
    """A configured estimator, what tells it apart, and its declared facts."""

    params: Json
    estimator: DPLinearModel
    facts: Facts

    @property
    def settings(self) -> FitSettings:
        """What its fits are made by; their budget is the run's."""
        return self.estimator._fit_settings(self.facts.bounds, self.facts.loss)


@dataclass(frozen=True)
class Planned:
    """A candidate's fit before it runs: the plan at its price, its solver's settings, why it may be idealized."""

    priced: PricedPlan
    solver: Mapping[str, object]
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class Offer:
    """A selection before it runs: what it costs in all, what each run may spend, and what each candidate releases.

    ``score`` is the noisy score of a run.
    """

    stopping: Stopping
    run: Budget
    priced: PricedPlan
    planned: tuple[Planned, ...]
    score: PricedPlan

    @property
    def total(self) -> Budget:
        """The guarantee of the whole selection."""
        return self.priced.budget

    @property
    def price(self) -> Price:
        """What the accountants say of it."""
        return self.priced.price

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why a candidate's proof is of real numbers, where it is."""
        return tuple(dict.fromkeys(reason for plan in self.planned for reason in plan.reasons))


def offer(candidates: Sequence[Candidate], domains: Sequence[Domain], total: Budget, law: Stopping) -> Offer:
    """Return the largest budget of a run at which the selection costs no more than ``total``.

    Runs with Gaussian noise only are exactly mu-GDP, and mu follows from the total; where another kind of candidate
    has a costlier curve at some order, all runs get less until the price is met. ``domains`` are what is public of
    the part that each candidate will be fitted on.
    """
    with in_double_precision(ArithmeticError):
        if not total.is_private:
            return _Runs(candidates, domains, total, law).offer(total)
        if total.is_pure:
            if law.shape is None:
                raise Unsupported(
                    "Poisson stopping has no pure guarantee: use geometric or logarithmic, or set a delta"
                )
            run = Budget(total.epsilon / (2 + law.shape) * (1 - 1e-9), 0.0, total.neighbors)
            return _Runs(candidates, domains, run, law).offer(total)
        mu = selection.run_mu(law, total.epsilon, total.delta) * (1 - 1e-9)
        for _ in range(30):
            epsilon = gaussian.epsilon_of(mu, total.delta)
            if not epsilon > 0:
                raise Unsupported("the budget is too small for a selection, whose runs get none of it: raise epsilon")
            runs = _Runs(candidates, domains, Budget(epsilon, total.delta, total.neighbors), law)
            cost = epsilon_of(runs.events, total.delta, total.neighbors).epsilon
            if cost <= total.epsilon:
                return runs.offer(total)
            mu *= min(0.995, 0.999 * total.epsilon / cost)
    raise Unsupported("no budget of a run meets the total: raise epsilon, or leave out candidates that draw samples")


class _Runs:
    """What runs release that may each cost ``run``: every candidate's fit at its price, and the score."""

    def __init__(self, candidates: Sequence[Candidate], domains: Sequence[Domain], run: Budget, law: Stopping) -> None:
        self.run, self.law = run, law
        self.planned = tuple(
            _planned(candidate, domain, run) for candidate, domain in zip(candidates, domains, strict=True)
        )
        self.score = price_plan(SCORE, run)
        runs = (*(candidate.priced.events for candidate in self.planned), self.score.events)
        self.events: tuple[Event, ...] = (NonPrivate(),)
        if run.is_private:
            self.events = (RepeatedSelection(kinds(runs), law.mean, law.shape),)

    def offer(self, total: Budget) -> Offer:
        """Price the selection as a whole."""
        return Offer(self.law, self.run, price_plan(self.events, total), self.planned, self.score)


def _planned(candidate: Candidate, domain: Domain, run: Budget) -> Planned:
    """Return what a candidate will release when its fit may cost ``run``."""
    _, solver, _, plan = candidate.settings.method(domain, run)
    if plan.total_variation:
        raise Unsupported("a sampler that is only approximate cannot be selected among: leave this candidate out")
    return Planned(price_plan(plan, run), solver.settings(), idealized(plan, run))


def kinds(runs: Sequence[tuple[Event, ...]]) -> tuple[tuple[Event, ...], ...]:
    """Return the different kinds of runs; those with Gaussian noise only as the least noisy one, in one release."""
    plain = [run for run in map(merged, runs) if all(isinstance(event, Gaussian) for event in run)]
    mus = [gaussian_mu(run) for run in plain]
    least: list[tuple[Event, ...]] = [(Gaussian(1 / max(mus) * (1 - 2.0**-50)),)] if mus else []
    others = dict.fromkeys(run for run in map(merged, runs) if run and run not in plain)
    return (*least, *others)


_OWN = ("epsilon", "delta", "neighbors", "verbose")


def candidates_of(estimator: object, candidates: object) -> tuple[Candidate, ...]:
    """Return every candidate, configured; what cannot be selected among is refused."""
    configured = tuple(_candidate(params, candidate) for params, candidate in _configured(estimator, candidates))
    if not configured:
        raise Unsupported("there are no candidates: pass a dictionary of lists, such as {'alpha': [1e-4, 1e-2]}")
    for key in ("classes", "target", "n"):
        if any(
            getattr(candidate.facts.bounds, key) != getattr(configured[0].facts.bounds, key) for candidate in configured
        ):
            raise Unsupported(f"candidates must declare the same {key}, or their scores cannot be compared")
    return configured


def _configured(estimator: Any, candidates: object) -> list[tuple[Json, Any]]:
    """Return each candidate's parameters, and the estimator with them."""
    if isinstance(candidates, Mapping):
        for name, values in candidates.items():
            if isinstance(values, (str, bytes, Mapping)) or not isinstance(values, Iterable) or not len(list(values)):
                raise Unsupported(f"{name} lists the values to try, at least one: such as {{'alpha': [1e-4, 1e-2]}}")
        candidates = list(ParameterGrid({name: list(values) for name, values in candidates.items()}))
    configured = []
    for index, candidate in enumerate(candidates if isinstance(candidates, (list, tuple)) else []):
        if isinstance(candidate, Mapping):
            if estimator is None:
                raise Unsupported(
                    "parameters need an estimator: DPRandomizedSearch(DPLogisticRegression(bounds=...), {...})"
                )
            fixed = [name for name in candidate if name in _OWN]
            if fixed:
                raise Unsupported(f"candidates cannot have their own {fixed[0]}: pass it to DPRandomizedSearch")
            unknown = [name for name in candidate if name not in estimator.get_params()]
            if unknown:
                raise Unsupported(f"{type(estimator).__name__} has no parameter {unknown[0]!r}: see its get_params()")
            configured.append((dict(candidate), clone(estimator).set_params(**candidate)))
        else:
            configured.append(({"candidate": index}, candidate))
    return configured


def _candidate(params: Json, estimator: object) -> Candidate:
    if isinstance(estimator, type) or not isinstance(estimator, DPLinearModel):
        raise Unsupported(
            "candidates must be discreet's own private estimators: pipelines, searches and other models read "
            "records that nobody pays for"
        )
    if isinstance(estimator, DPOrdinalRegression):
        raise Unsupported("a selection does not serve ordered classes: fit one DPOrdinalRegression with its defaults")
    return Candidate(params, clone(estimator), facts_of(estimator))


@dataclass(frozen=True)
class Outcome:
    """What one run would release; coefficients that are not finite have the least score of all.

    A fit that raises ends the selection: an outcome above all others, which the theorem allows in any order. Drawing
    again until a fit succeeds would not be covered. ``index`` is the candidate's.
    """

    index: int
    model: DPLinearModel
    score: float


@dataclass(frozen=True, repr=False)
class Runs:
    """Candidates and the two parts of the records; ``sizes`` are the parts' declared sizes where n is private."""

    candidates: tuple[Candidate, ...]
    fitting: Part
    scoring: Part
    sizes: tuple[int | None, int | None] = field(default=(None, None))

    def one(self, paid: Offer, entropy: Entropy) -> Outcome:
        """One run, with fresh noise in everything."""
        index = uniform_below(len(self.candidates), entropy)
        candidate, run = self.candidates[index], paid.run
        bounds = candidate.facts.bounds.with_facts(n=self.sizes[0])
        model = clone(candidate.estimator).set_params(
            bounds=bounds,
            epsilon=run.epsilon,
            delta=run.delta,
            neighbors=str(run.neighbors),
            allow_large_delta=True,  # the selection's own delta was checked
            ledger=False,  # the selection is charged as a whole
            verbose=False,
        )
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")  # a warning of a run that is not released would reveal it
            model.fit(self.fitting.X, self.fitting.y, self.fitting.groups)
        if model.certificate_.events != paid.planned[index].priced.events:
            raise PlanViolation("a candidate released something else than was priced: please report these candidates")
        return Outcome(index, model, self._score(candidate, model, paid.score))

    def _score(self, candidate: Candidate, model: DPLinearModel, priced: PricedPlan) -> float:
        part, loss, bounds = self.scoring, candidate.facts.loss, candidate.facts.bounds.with_facts(n=self.sizes[1])
        settings: Json = {"groups": part.groups, "fit_intercept": candidate.estimator.fit_intercept, "ledger": False}
        data = PrivateData(part.X, part.y, bounds, **settings)
        curator = data.open(priced, loss)
        w = in_training_units(model.coef_, np.atleast_1d(model.intercept_), data, loss)
        if not np.isfinite(w).all():
            return -math.inf
        assert curator.domain.n is not None
        return 0.5 + curator.noisy_score(w, error=candidate.facts.error) / curator.domain.n


_METHOD = """Return the released model's {what}.

Parameters
----------
X : array-like
    Records that the caller may see.

Returns
-------
ndarray
    {what}, in the order of the records.

Examples
--------
>>> len(search.{name}(X[:3]))
3
"""


def _of_released(name: str, what: str) -> Any:
    """Return a method that asks the released model, where it has the method itself."""

    def method(self: "DPRandomizedSearch", X: object) -> Array:
        return np.asarray(getattr(self._released, name)(X))

    method.__name__, method.__qualname__ = name, f"DPRandomizedSearch.{name}"
    method.__doc__ = _METHOD.format(name=name, what=what)
    return available_if(lambda self: hasattr(self._like_released, name))(method)


_NOTES = (
    "a run fits a candidate on one part of the records and scores it on the other; the parts are disjoint, "
    "so each may cost a whole run",
    "the number of runs is secret, and so is the time that the fit took",
)


@dataclass(frozen=True)
class _Prepared:
    """A selection before anything is charged or read; ``sizes`` are those of the parts."""

    listed: tuple[Candidate, ...]
    data: PrivateData
    n: int
    sizes: tuple[int, int]
    paid: Offer


class DPRandomizedSearch(Shown, MetaEstimatorMixin, Charged):
    """The best of several candidates, chosen privately: one budget for all fits, all scores and the choice.

    A secret, random number of runs: each draws a candidate at random, fits it privately on one part of the records and
    scores it on the other with noise. The model with the best score is released, and nothing of the others. The
    price (Papernot and Steinke 2022) does not depend on the number of candidates, but a run gets about half of the
    budget: tune only what the defaults cannot know.

    Parameters
    ----------
    estimator : estimator, default=None
        A private estimator of this library, with its bounds. Its own epsilon, delta and neighbors do not count.
    candidates : dict or list
        A dictionary of lists (every combination), a list of dictionaries of parameters, or a list of estimators
        (``estimator`` may then be None).
    epsilon : float, default=1.0
        The budget of the whole search.
    delta : float, default=None
        None: 1/n^2 where n is public, and never more than 1e-6.
    neighbors : str, default="replace_one"
        The relation of the guarantee.
    allow_large_delta : bool, default=False
        Permit delta >= 1/n, which is refused otherwise.
    stopping : {"auto", "poisson", "geometric", "logarithmic"}, default="auto"
        The law of the number of runs.
    mean_runs : float, default=None
        Its mean; None: the number of candidates, at most 10.
    validation_fraction : float, default=0.2
        The share of records (persons) that scores, and fits nothing.
    ledger : Ledger, str, Path or False, default=None
        Where the whole search is charged, once, as in the estimators. Those of the candidates do not count.
    dataset : str, default=None
        The registered name of the data in the ledger.

    Attributes
    ----------
    best_estimator_ : estimator
        The released model.
    best_params_ : dict
        What tells its candidate apart.
    best_score_ : float
        Its noisy score: the share of right classes, or one less the mean squared error (clipped) over that of a quarter
        of the target range. It is the best of several noisy numbers, so it flatters.
    certificate_ : Certificate
        What may be claimed; the model carries the same one.

    Notes
    -----
    The number of runs must stay secret, and the time of a fit tells it: do not publish the time. With Poisson stopping
    there may be no run at all (e^-mean; 4.5e-5 at 10): then the model is untrained, all zeros, and its score NaN.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet import DPLogisticRegression, DPRandomizedSearch
    >>> X = np.linspace(-1, 1, 400).reshape(200, 2)
    >>> y = (X[:, 0] > 0).astype(int)
    >>> model = DPLogisticRegression(bounds=1.0, classes=(0, 1), solver="gd")
    >>> search = DPRandomizedSearch(model, {"alpha": [1e-3, 1e-1]}, epsilon=2.0).fit(X, y)
    >>> search.certificate_.epsilon, sorted(search.best_params_)
    (2.0, ['alpha'])
    """

    estimator: BaseEstimator | None = field(default=None, kw_only=False)
    candidates: object = field(default=None, kw_only=False)
    epsilon: float = 1.0
    delta: float | None = None
    neighbors: str = "replace_one"
    allow_large_delta: bool = False
    stopping: Annotated[str, OneOf("auto", *SHAPES)] = "auto"
    mean_runs: Positive | None = None
    validation_fraction: Share = 0.2
    ledger: object = None
    dataset: str | None = None

    best_estimator_: DPLinearModel = field(init=False)
    best_params_: Json = field(init=False)
    best_score_: float = field(init=False)
    certificate_: Certificate = field(init=False)

    def fit(self, X: object, y: object = None, groups: object = None) -> Self:
        """Select and fit privately; the charge comes before the first record is read.

        Parameters
        ----------
        X, y, groups : array-like
            Records, targets, and the person behind each row, where a person has several.

        Examples
        --------
        >>> search.fit(X, y, groups=np.arange(200) // 2).certificate_.unit
        'person'
        """
        warn_of_uncounted_fits(self.ledger, self.dataset, groups)
        warn_of_a_column(y)
        X, y, groups = self._rows(X, y, groups)
        ready = self._prepared(X, y, groups)
        if is_stream(X) and X.elsewhere is not None:
            for candidate, planned in zip(ready.listed, ready.paid.planned, strict=True):
                X.elsewhere.check(planned.priced.plan, candidate.facts.loss)
        claims = self._claims(ready)
        loss, answer = ready.listed[0].facts.loss, partial(self._answer, ready, claims, X, y, groups)
        best, certificate, _ = carry_out(
            ready.data, loss, ready.paid.priced, claims, answer, opens=False, label="DPRandomizedSearch"
        )
        self._release(best, certificate, ready)
        return self

    def _answer(
        self,
        ready: "_Prepared",
        claims: list[Claim],
        X: object,
        y: object,
        groups: object,
        reservation: Reservation | None,
    ) -> tuple[Outcome, Claim, Certify]:
        """Run a secret number of candidates on two parts of the records, and keep the best."""
        rows, first = X, ready.listed[0]
        public = self._relation.n_is_public
        held = ready.sizes[1] if public else None
        if is_stream(X) and X.elsewhere is not None:
            there = ready.data.read_elsewhere(reservation, ready.n if public else None)
            parts = split_elsewhere(X, there, self._numerator, held)
            rows = np.empty((0, len(X.columns))) if X.sample is None else X.sample
        else:
            if is_stream(X):
                rows, y, groups = gathered(X, first.facts.bounds.classes)
            parts = split(rows, y, groups, self._numerator, held)
            ready.data.recognize(reservation, rows)
        best = _best(Runs(ready.listed, *parts, (None, None) if public else ready.sizes), ready.paid)
        if best is None:
            return _untrained(first, rows), claims[-1], issued
        return best, claims[best.index], issued

    def quote(self, X: object, y: object = None, groups: object = None) -> Offer:
        """Return what the search would cost on these records, as in ``fit``. Only their containers are looked at.

        Returns
        -------
        Offer
            The price in all, what each run may spend, and what each candidate releases.

        Examples
        --------
        >>> search.quote(X, y).price.epsilon <= 2.0
        True
        """
        return self._prepared(*self._rows(X, y, groups)).paid

    def _rows(self, X: Any, y: Any, groups: Any) -> tuple[Any, Any, Any]:
        """Return records as a fit takes them; Dask collections as one stream, read by workers."""
        if is_stream(X):
            return X, y, groups
        if y is not None and is_dask(X):
            from discreet.curator import DaskRows

            facts = self._listed()[0].facts
            classes = facts.bounds.classes if facts.loss.task == "classification" else None
            return DaskRows(X, y, classes, groups), None, None
        return container_of(X), y, groups

    def _prepared(self, X: object, y: object, groups: object) -> "_Prepared":
        """Return everything about the selection that is known without its records."""
        if y is None and not is_stream(X):
            raise ValueError("DPRandomizedSearch requires y to be passed, but the target y is None")
        if is_stream(X) and X.estimates is not None:
            raise Unsupported("a selection has no budget to estimate ranges with: declare every column's range")
        if is_stream(X) and X.columns_beside:
            raise Unsupported("a selection scores rows that count alike: leave weight and offset out of the schema")
        candidates, relation = self._listed(), self._relation
        if self.dataset is None and any(
            candidate.estimator.ledger or candidate.estimator.dataset for candidate in candidates
        ):
            raise LedgerError("a selection is charged as a whole: name ledger and dataset in DPRandomizedSearch itself")
        data = PrivateData(X, y, candidates[0].facts.bounds, groups=groups, ledger=self.ledger, dataset=self.dataset)
        n = data.public_n(relation)
        if n is None:
            raise MissingBounds("n is private here: declare about how many records there are, Bounds(n=...)")
        if relation.n_is_public and n < 2:
            raise Unsupported("one sample is too few to hold some of them out: use one of the candidates as it is")
        budget, sizes = self._budget(n), self._sizes(n)
        domains = _domains(candidates, (X, y, groups), budget, sizes[0])
        return _Prepared(
            candidates, data, n, sizes, offer(candidates, domains, budget, self._law(len(candidates), budget))
        )

    def offer(self, n: int, n_features: int) -> Offer:
        """Return what the search costs on so many records (persons) and features, before there are any.

        Examples
        --------
        >>> search.offer(10_000, 2).run.epsilon < 2.0
        True
        """
        candidates = tuple(
            replace(candidate, facts=replace(candidate.facts, bounds=_unnamed(candidate)))
            for candidate in self._listed()
        )
        budget = self._budget(n)
        empty = np.broadcast_to(0.0, (n, n_features))
        domains = _domains(candidates, (empty, empty[:, 0], None), budget, self._sizes(n)[0])
        return offer(candidates, domains, budget, self._law(len(candidates), budget))

    predict = _of_released("predict", "predictions")
    decision_function = _of_released("decision_function", "scores of classes")
    predict_proba = _of_released("predict_proba", "probabilities of classes")
    predict_log_proba = _of_released("predict_log_proba", "logarithms of probabilities")

    def score(self, X: object, y: object) -> float:
        """Return the released model's exact accuracy or R^2 on *public* records: see the estimators' ``score``.

        Examples
        --------
        >>> import warnings
        >>> with warnings.catch_warnings(action="ignore"):
        ...     0 <= search.score(X, y) <= 1
        True
        """
        warn_of_exact_score()
        return float(self._released._exact_score(X, y))

    def save(self, path: str | Path) -> Path:
        """Write the released model with the search's certificate to a file; ``discreet.load`` reads it.

        Examples
        --------
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     search.save(f"{folder}/model.discreet").name
        'model.discreet'
        """
        return self._released.save(path)

    @property
    def classes_(self) -> Array:
        """The declared classes."""
        return np.asarray(self._released.classes_)

    @property
    def n_features_in_(self) -> int:
        """The number of features seen."""
        return self._released.n_features_in_

    @property
    def _released(self) -> DPLinearModel:
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_

    @property
    def _like_released(self) -> Any:
        """The released model, or what will be like it."""
        if hasattr(self, "best_estimator_"):
            return self.best_estimator_
        if self.estimator is not None:
            return self.estimator
        return self.candidates[0] if isinstance(self.candidates, (list, tuple)) and self.candidates else None

    @property
    def _relation(self) -> Neighbors:
        return Budget(self.epsilon, neighbors=self.neighbors).neighbors  # type: ignore[arg-type]

    def _budget(self, n: int) -> Budget:
        return budget_of(self.epsilon, self.delta, self._relation, n, allow_large_delta=self.allow_large_delta)

    @property
    def _numerator(self) -> int:
        numerator: int = round(self.validation_fraction * SAMPLING_DENOMINATOR)
        if not 0 < numerator < SAMPLING_DENOMINATOR:
            raise Unsupported("validation_fraction is the share of records that are held out, such as 0.2")
        return numerator

    def _sizes(self, n: int) -> tuple[int, int]:
        """About how many records are fitted on, and score: for prices, and where n is only declared."""
        held = max(1, round(n * self._numerator / SAMPLING_DENOMINATOR))
        return max(1, n - held), held

    def _law(self, n_candidates: int, budget: Budget) -> Stopping:
        return stopping_of(self.stopping, self.mean_runs, n_candidates, pure=budget.is_pure)

    def _listed(self) -> tuple[Candidate, ...]:
        check_settings(self)
        return candidates_of(self.estimator, self.candidates)

    def _release(self, best: Outcome, certificate: Certificate, ready: "_Prepared") -> None:
        self.best_estimator_, self.best_score_, self.certificate_ = best.model, best.score, certificate
        candidate, total = ready.listed[best.index], ready.paid.total
        self.best_params_ = candidate.params
        self.best_estimator_.certificate_ = certificate
        self.best_estimator_.set_params(
            bounds=candidate.estimator.bounds,
            epsilon=total.epsilon,
            delta=total.delta,
            neighbors=str(total.neighbors),
            allow_large_delta=self.allow_large_delta,
            ledger=self.ledger,
            dataset=self.dataset,
        )

    def _claims(self, ready: "_Prepared") -> list[Claim]:
        """Return what may be claimed: one for each candidate that may be released, and that of no run at all."""
        trained = [
            self._claim(candidate, plan.solver, plan.priced.noise_multiplier, ready)
            for candidate, plan in zip(ready.listed, ready.paid.planned, strict=True)
        ]
        return [*trained, self._claim(ready.listed[0], {}, 0.0, ready)]

    def _claim(self, candidate: Candidate, solver: Mapping[str, object], noise: float, ready: "_Prepared") -> Claim:
        """Return what may be claimed if this candidate is released."""
        paid, law, data = ready.paid, ready.paid.stopping, ready.data
        settings = {
            "selected_from": len(ready.listed),
            "stopping": f"{law.name}, mean {law.mean:g}",
            "validation_fraction": self._numerator / SAMPLING_DENOMINATOR,
            "run_epsilon": paid.run.epsilon,
            "run_delta": paid.run.delta,
            **{f"chosen_{name}": _plain(value) for name, value in candidate.params.items()},
        }
        return Claim(
            model=f"{type(candidate.estimator).__name__}, selected by DPRandomizedSearch",
            solver={**solver, **settings},
            notes=_NOTES,
            facts={"unit": data.unit, **candidate.facts.bounds.to_dict(), "n": ready.n, **data.declared},
            noise_multiplier=noise,
            idealized=paid.reasons,
        )

    def __sklearn_tags__(self) -> Tags:
        tags, model = super().__sklearn_tags__(), self._like_released
        if model is not None:
            inner = get_tags(model)
            tags.estimator_type, tags.classifier_tags = inner.estimator_type, inner.classifier_tags
            tags.regressor_tags, tags.input_tags = inner.regressor_tags, inner.input_tags
            tags.target_tags = inner.target_tags
        tags.non_deterministic = True
        return tags


def _domains(
    candidates: tuple[Candidate, ...], records: tuple[object, object, object], budget: Budget, n: int
) -> list[Domain]:
    """Return what is public of the part of ``n`` records (persons) that each candidate will be fitted on."""
    domains, (X, y, groups) = [], records
    for candidate in candidates:
        bounds, intercept = candidate.facts.bounds, candidate.estimator.fit_intercept
        data = PrivateData(X, y, bounds, groups=groups, fit_intercept=intercept, ledger=False)
        settings = replace(candidate.settings, epsilon=budget.epsilon)
        domains.append(replace(settings.domain(data, budget.neighbors), n=n))
    return domains


def _best(runs: Runs, paid: Offer) -> Outcome | None:
    """Return the best of a secret number of runs, of equal ones the first; None where there was no run.

    Runs are independent and alike, so that the first of equal ones is a uniform choice among them.
    """
    entropy, best = current_entropy(), None
    for _ in range(paid.stopping.draw(lambda: int(entropy.words(1)[0]))):
        outcome = runs.one(paid, entropy)
        best = outcome if best is None or outcome.score > best.score else best
    return best


def _untrained(candidate: Candidate, X: Any) -> Outcome:
    """Return a model of zeros, which no record has touched: what no run at all leaves."""
    model = clone(candidate.estimator)
    validate_data(model, X, skip_check_array=True)
    loss, shape = candidate.facts.loss, model.n_features_in_
    if candidate.facts.bounds.classes is not None and loss.task == "classification":
        from discreet.models.classification import label_array

        model.classes_ = label_array(candidate.facts.bounds.classes)
        model.coef_, model.intercept_ = np.zeros((loss.n_outputs, shape)), np.zeros(loss.n_outputs)
    else:
        model.coef_, model.intercept_ = np.zeros(shape), np.float64(0.0)
    model.coef_noise_ = model.intercept_noise_ = model.coef_correlation_ = None
    return Outcome(0, model, math.nan)


def _unnamed(candidate: Candidate) -> Bounds:
    """Return the declared ranges in their order, where there are no columns to name."""
    bounds = candidate.facts.bounds
    listed = isinstance(bounds.features, Mapping)
    return bounds.with_facts(features=tuple(bounds.features.values())) if listed else bounds  # type: ignore[union-attr]


def _plain(value: object) -> Any:
    return value if value is None or isinstance(value, (str, bool, int, float)) else repr(value)


class TableSearch(Shown, BaseEstimator):
    """Private search on a table: the best of several candidates.

    Parameters
    ----------
    schema : Schema
        What is publicly known of the table, every range declared: a search has no budget to estimate one with.
    search : DPRandomizedSearch
        Configured, not fitted; its estimator without bounds, which the schema brings.

    Attributes
    ----------
    best_estimator_ : TableModel
        The released model of the table.
    best_params_ : dict
        What tells its candidate apart.
    best_score_ : float
        Its noisy score: the best of several noisy numbers, so it flatters.
    certificate_ : Certificate
        What may be claimed of the model.

    Examples
    --------
    >>> from discreet import DPLogisticRegression, DPRandomizedSearch, Schema
    >>> from discreet.models import TableSearch
    >>> from discreet.schema import Number, Target
    >>> schema = Schema({"age": Number((18, 110))}, Target("back", classes=(0, 1)))
    >>> table = {"age": [30, 60] * 100, "back": [0, 1] * 100}
    >>> search = DPRandomizedSearch(DPLogisticRegression(solver="gd"), {"alpha": [1e-3, 1e-1]}, epsilon=2.0)
    >>> sorted(TableSearch(schema, search).fit(table).best_params_)
    ['alpha']
    """

    best_estimator_: TableModel
    best_params_: Json
    best_score_: float

    def __init__(self, schema: Schema, search: DPRandomizedSearch) -> None:
        self.schema = schema
        self.search = search

    @property
    def certificate_(self) -> Certificate:
        """What may be claimed of the released model."""
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.certificate_

    def quote(self, data: object) -> Offer:
        """Return what the search on this table would cost, before a row is read (rows are counted where n is public).

        Examples
        --------
        >>> TableSearch(schema, search).quote(table).price.epsilon <= 2.0
        True
        """
        stream = self._table().stream(data)
        return self._with_bounds(stream.bounds).quote(stream)

    def fit(self, data: object) -> Self:
        """Select privately on a data frame, or on files of CSV or Parquet. The charge comes first.

        The encoded rows are held in memory as doubles.

        Parameters
        ----------
        data : data frame, path or list of paths
            The table, with its target.

        Examples
        --------
        >>> TableSearch(schema, search).fit(table).certificate_.epsilon
        2.0
        """
        table = self._table()
        stream = table.stream(data)
        search = self._with_bounds(stream.bounds).fit(stream)
        table.estimator_, table.schema_ = search.best_estimator_, self.schema
        self.best_estimator_, self.best_params_, self.best_score_ = table, search.best_params_, search.best_score_
        return self

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array, tags.non_deterministic = False, True
        return tags

    def _table(self) -> TableModel:
        check_settings(self)
        if self.search.estimator is None:
            raise Unsupported(
                "a search on a table needs an estimator: DPRandomizedSearch(DPLogisticRegression(), {...})"
            )
        estimator = clone(self.search.estimator).set_params(neighbors=self.search.neighbors)
        return TableModel(self.schema, estimator, terms="linear")

    def _with_bounds(self, bounds: object) -> DPRandomizedSearch:
        estimator = clone(self.search.estimator).set_params(bounds=bounds)
        search: DPRandomizedSearch = clone(self.search).set_params(estimator=estimator)
        return search
