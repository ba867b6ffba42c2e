"""``DPRandomizedSearch``: tuning that is paid for, by a random number of runs of which only the best is released."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, Self

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.utils import get_tags
from sklearn.utils.validation import validate_data

from discreet.accounting.certificate import Certificate
from discreet.accounting.events import SAMPLING_DENOMINATOR
from discreet.accounting.number_of_runs import SHAPES, Stopping
from discreet.accounting.pricing import remembered_prices
from discreet.bounds import Bounds, Domain
from discreet.budget import Budget, Neighbors
from discreet.curator import (
    Claim,
    PrivateData,
    container_of,
    current_entropy,
    gathered,
    is_stream,
    issued,
    split,
)
from discreet.errors import LedgerError, MissingBounds, Unsupported
from discreet.ledger.reservation import Reservation
from discreet.models.base import DPLinearModel, warn_of_a_column
from discreet.models.charged import Charged
from discreet.models.exposure import warn_of_lost_groups, warn_of_repeated_fits
from discreet.models.fitting import budget_of
from discreet.models.lifecycle import Certify, Priced
from discreet.models.selection.runs import Outcome, Runs
from discreet.models.selection.search_candidates import candidates_of
from discreet.models.selection.search_price import Candidate, Offer, offer, stopping_of
from discreet.models.selection.shows_released import ShowsReleased
from discreet.models.shown import Shown
from discreet.parameters import OneOf, Positive, Share, check_settings

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


class DPRandomizedSearch(Shown, ShowsReleased, MetaEstimatorMixin, Charged):
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

    best_estimator_: DPLinearModel
    best_params_: dict[str, Any]
    best_score_: float
    certificate_: Certificate

    def __init__(
        self,
        estimator: BaseEstimator | None = None,
        candidates: Any = None,
        *,
        epsilon: float = 1.0,
        delta: float | None = None,
        neighbors: str = "replace_one",
        allow_large_delta: bool = False,
        stopping: Annotated[str, OneOf("auto", *SHAPES)] = "auto",
        mean_runs: Positive | None = None,
        validation_fraction: Share = 0.2,
        ledger: Any = None,
        dataset: str | None = None,
    ) -> None:
        self._keep(locals())

    def fit(self, X: Any, y: Any = None, groups: Any = None) -> Self:
        """Select and fit privately; the charge comes before the first record is read.

        Parameters
        ----------
        X, y, groups : array-like
            Records, targets, and the person behind each row, where a person has several.

        Returns
        -------
        DPRandomizedSearch
            Itself, fitted.

        Examples
        --------
        >>> search.fit(X, y, groups=np.arange(200) // 2).certificate_.unit
        'person'
        """
        warn_of_repeated_fits(self.ledger, self.dataset)
        warn_of_lost_groups(self.ledger, groups)
        warn_of_a_column(y)
        X = container_of(X)
        with remembered_prices():  # every run fits and scores at a price that was worked out for all of them
            ready = self._prepared(X, y, groups)
            claims = self._claims(ready)
            whole = Priced(ready.data, ready.listed[0].facts.loss, ready.paid.priced, opens=False)
            best, certificate, _ = whole.carry_out(
                claims, partial(self._answer, ready, claims, X, y, groups), label="DPRandomizedSearch"
            )
        self._release(best, certificate, ready)
        return self

    def _answer(
        self, ready: "_Prepared", claims: list[Claim], X: Any, y: Any, groups: Any, reservation: Reservation | None
    ) -> tuple[Outcome, Claim, Certify]:
        """Run a secret number of candidates on two parts of the records, and keep the best."""
        rows, first = X, ready.listed[0]
        if is_stream(X):
            rows, y, groups = gathered(X, first.facts.bounds.classes)
        public = self._relation.n_is_public
        parts = split(rows, y, groups, self._numerator, ready.sizes[1] if public else None)
        ready.data.recognize(reservation, rows)
        best = _best(Runs(ready.listed, *parts, (None, None) if public else ready.sizes), ready.paid)
        if best is None:
            return _untrained(first, rows), claims[-1], issued
        return best, claims[best.index], issued

    def quote(self, X: Any, y: Any = None, groups: Any = None) -> Offer:
        """Return what the search would cost on these records. Only their containers are looked at.

        Parameters
        ----------
        X, y, groups : array-like
            As in ``fit``.

        Returns
        -------
        Offer
            The price in all, what each run may spend, and what each candidate releases.

        Examples
        --------
        >>> search.quote(X, y).price.epsilon <= 2.0
        True
        """
        return self._prepared(container_of(X), y, groups).paid

    def _prepared(self, X: Any, y: Any, groups: Any) -> "_Prepared":
        """Return everything about the selection that is known without its records."""
        if y is None and not is_stream(X):
            raise ValueError("DPRandomizedSearch requires y to be passed, but the target y is None")
        if is_stream(X) and X.estimates is not None:
            raise Unsupported("a selection has no budget to estimate ranges with: declare every column's range")
        listed, relation = self._listed(), self._relation
        if self.dataset is None and any(one.estimator.ledger or one.estimator.dataset for one in listed):
            raise LedgerError("a selection is charged as a whole: name ledger and dataset in DPRandomizedSearch itself")
        data = PrivateData(X, y, listed[0].facts.bounds, groups=groups, ledger=self.ledger, dataset=self.dataset)
        n = data.public_n(relation)
        if n is None:
            raise MissingBounds("n is private here: declare about how many records there are, Bounds(n=...)")
        if relation.n_is_public and n < 2:
            raise Unsupported("one sample is too few to hold some of them out: use one of the candidates as it is")
        budget, sizes = self._budget(n), self._sizes(n)
        domains = _domains(listed, (X, y, groups), budget, sizes[0])
        return _Prepared(listed, data, n, sizes, offer(listed, domains, budget, self._law(len(listed), budget)))

    def offer(self, n: int, n_features: int) -> Offer:
        """Return what the search costs on so many records (persons) and features, before there are any.

        Parameters
        ----------
        n, n_features : int
            The size of the table that is planned.

        Returns
        -------
        Offer
            As ``quote``.

        Examples
        --------
        >>> search.offer(10_000, 2).run.epsilon < 2.0
        True
        """
        listed = tuple(replace(one, facts=replace(one.facts, bounds=_unnamed(one))) for one in self._listed())
        budget = self._budget(n)
        empty = np.broadcast_to(0.0, (n, n_features))
        domains = _domains(listed, (empty, empty[:, 0], None), budget, self._sizes(n)[0])
        return offer(listed, domains, budget, self._law(len(listed), budget))

    @property
    def _relation(self) -> Neighbors:
        return Budget(self.epsilon, neighbors=self.neighbors).neighbors

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

    def _claim(self, candidate: Candidate, solver: Mapping[str, Any], noise: float, ready: "_Prepared") -> Claim:
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

    def __sklearn_tags__(self) -> Any:
        tags, shown = super().__sklearn_tags__(), self._shown
        if shown is not None:
            inner = get_tags(shown)
            tags.estimator_type, tags.classifier_tags = inner.estimator_type, inner.classifier_tags
            tags.regressor_tags, tags.input_tags = inner.regressor_tags, inner.input_tags
            tags.target_tags = inner.target_tags
        tags.non_deterministic = True
        return tags


def _domains(listed: tuple[Candidate, ...], records: tuple[Any, Any, Any], budget: Budget, n: int) -> list[Domain]:
    """What is public of the part of ``n`` records (persons) that each candidate will be fitted on."""
    found, (X, y, groups) = [], records
    for candidate in listed:
        bounds, intercept = candidate.facts.bounds, candidate.estimator.fit_intercept
        data = PrivateData(X, y, bounds, groups=groups, fit_intercept=intercept, ledger=False)
        settings = replace(candidate.settings, epsilon=budget.epsilon)
        found.append(replace(settings.domain(data, budget.neighbors), n=n))
    return found


def _best(runs: Runs, paid: Offer) -> Outcome | None:
    """The best of a secret number of runs, of equal ones the first; None where there was no run.

    Runs are independent and alike, so that the first of equal ones is a uniform choice among them.
    """
    entropy, best = current_entropy(), None
    for _ in range(paid.stopping.draw(lambda: int(entropy.words(1)[0]))):
        outcome = runs.one(paid, entropy)
        best = outcome if best is None or outcome.score > best.score else best
    return best


def _untrained(candidate: Candidate, X: Any) -> Outcome:
    """A model of zeros, which no record has touched: what no run at all leaves."""
    model = clone(candidate.estimator)
    validate_data(model, X, skip_check_array=True)
    loss, shape = candidate.facts.loss, model.n_features_in_
    if candidate.facts.bounds.classes is not None and loss.task == "classification":
        from discreet.models.classification import _label_array

        model.classes_ = _label_array(candidate.facts.bounds.classes)
        model.coef_, model.intercept_ = np.zeros((loss.n_outputs, shape)), np.zeros(loss.n_outputs)
    else:
        model.coef_, model.intercept_ = np.zeros(shape), np.float64(0.0)
    model.coef_noise_ = model.intercept_noise_ = None
    return Outcome(0, model, math.nan)


def _unnamed(candidate: Candidate) -> Bounds:
    """The declared ranges in their order, where there are no columns to name."""
    bounds = candidate.facts.bounds
    listed = isinstance(bounds.features, Mapping)
    return bounds.with_facts(features=tuple(bounds.features.values())) if listed else bounds  # type: ignore[union-attr]


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, (str, bool, int, float)) else repr(value)
