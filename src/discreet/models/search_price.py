"""What a private selection costs, known before any record is read: the candidates' plans and the runs' budget."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from discreet.accounting import gaussian, selection
from discreet.accounting.events import Event, Gaussian, NonPrivate, RepeatedSelection, gaussian_mu, merged
from discreet.accounting.plan import Plan, Release
from discreet.accounting.priced_plan import PricedPlan, price_plan
from discreet.accounting.pricing import Price, epsilon_of, in_double_precision
from discreet.accounting.selection import SHAPES, Stopping
from discreet.bounds import Bounds, Domain
from discreet.budget import Budget
from discreet.curator import idealized
from discreet.errors import Unsupported
from discreet.json_schemas import Json
from discreet.losses.base import Loss
from discreet.models.base import DPLinearModel
from discreet.models.fit import FitSettings

SCORE = Plan((Release("noisy_score", 1),))
MEAN_RUNS = 10.0
POISSON_LEAST, POISSON_MOST = 6.0, 10.0
BAD_ERROR = 0.25  # of the declared target range: an error that counts as wholly bad


def stopping_of(name: str, mean: float | None, n_candidates: int, *, pure: bool) -> Stopping:
    """Return the law of the number of runs, by name.

    ``auto`` takes Poisson for means from 6 to 10, where it reaches a good candidate most often for the same noise (the
    best tenth at epsilon = 2: 0.63 of the time at a mean of 10, against 0.42 for logarithmic, for 7 % more noise).
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
