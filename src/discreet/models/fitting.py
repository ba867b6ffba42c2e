"""The way of a fit, the same for every model: prepared and priced, carried out, mapped back to the user's units."""

import hashlib
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np

from discreet.accounting.certificate import Certificate
from discreet.accounting.plan import AdaptivePlan, Plan
from discreet.accounting.priced_plan import PricedPlan, price_plan
from discreet.accounting.pricing import Price, in_double_precision, remembered_prices
from discreet.bounds import Bounds, Domain
from discreet.budget import Budget, InvalidBudget, Neighbors
from discreet.curator import Claim, PrivateData, Recoding, given_with
from discreet.errors import AlreadyReleased, MissingBounds, Unsupported
from discreet.ledger.reservation import Reservation, noted
from discreet.losses.base import Loss
from discreet.models.lifecycle import Certify, Priced
from discreet.models.public_moments import moments_of, refuse_unused
from discreet.models.solver_choice import choose_solver, fills, inferring
from discreet.models.starting_point import refuse_without_steps, starting_point
from discreet.penalties import L1, L2, ElasticNet, NoPenalty
from discreet.penalties.base import Penalty
from discreet.solvers.base import UNWATCHED, Effects, Watched
from discreet.typing import Floats

LARGEST_DEFAULT_DELTA = 1e-6
"""What ``delta=None`` is below 1,000 records: 1/n^2 would be 0.01 for ten."""

_HOW = "Bounds(features=[(0, 120), (0, 1)])"


@dataclass(frozen=True)
class Fitted:
    """A private linear model in the user's own coordinates, with what the noise did to it where that is known."""

    coef: Floats
    intercept: Floats
    certificate: Certificate
    coef_noise: Floats | None = None
    intercept_noise: Floats | None = None
    effects: Effects | None = None

    def text(self) -> str:
        """All of it as JSON: what a ledger keeps under a charge's id."""
        arrays = {name: getattr(self, name) for name in ("coef", "intercept", "coef_noise", "intercept_noise")}
        stored = {name: None if values is None else values.tolist() for name, values in arrays.items()}
        known = {} if self.effects is None else {"effects": self.effects.to_dict()}
        return json.dumps({**stored, "certificate": self.certificate.to_json(), **known})

    @classmethod
    def from_text(cls, text: str) -> "Fitted":
        """The inverse of ``text``."""
        stored = json.loads(text)
        certificate = Certificate.from_json(stored["certificate"])
        spread = [stored[name] for name in ("coef_noise", "intercept_noise")]
        return cls(
            np.array(stored["coef"], dtype=float),
            np.array(stored["intercept"], dtype=float),
            certificate,
            None if spread[0] is None else np.array(spread[0], dtype=float),
            None if spread[1] is None else np.array(spread[1], dtype=float),
            Effects.from_dict(stored["effects"]) if "effects" in stored else None,
        )


def declared(bounds: Any, **facts: Any) -> Bounds:
    """Bounds as given, or made from a bare range, with further facts (classes, target) filled in."""
    if bounds is None:
        raise MissingBounds(
            f"the ranges of the features are not declared: pass bounds={_HOW}, "
            "from what is publicly known, not from the data"
        )
    full = bounds if isinstance(bounds, Bounds) else Bounds(features=bounds)
    given = {name: value for name, value in facts.items() if value is not None}
    return full.with_facts(**given) if given else full


def penalty_of(penalty: Any, alpha: float) -> Penalty:
    """A penalty object, or one by name with strength ``alpha``."""
    if penalty is None:
        return NoPenalty()
    if not isinstance(penalty, str):
        if isinstance(penalty, type) or not hasattr(penalty, "prox"):
            raise Unsupported("penalty must be l2, l1, elasticnet, none, or a penalty object such as L2(0.01)")
        return cast(Penalty, penalty)
    named: dict[str, Callable[[], Penalty]] = {
        "l2": lambda: L2(alpha),
        "l1": lambda: L1(alpha),
        "elasticnet": lambda: ElasticNet(alpha / 2, alpha / 2),
        "none": NoPenalty,
    }
    if penalty not in named:
        raise Unsupported(f"penalty must be one of {', '.join(named)}, or a penalty object")
    return named[penalty]()


def budget_of(
    epsilon: float, delta: float | None, neighbors: str, n: int | None, *, allow_large_delta: bool = False
) -> Budget:
    """Return the budget of a release; ``delta=None`` is 1/n^2 where n is public, and never more than 1e-6.

    A mechanism that publishes one record in full, drawn at random, is (0, 1/n)-DP. So delta >= 1/n promises a person
    nothing, and is refused where n is public, before anything is charged, unless it is asked for by name.
    """
    if delta is None:
        if n is None:
            raise MissingBounds("n is private here: give delta, such as delta=1e-6, or declare Bounds(n=...)")
        return Budget(epsilon, min(LARGEST_DEFAULT_DELTA, 1.0 / max(n, 1) ** 2), Neighbors(neighbors))
    budget = Budget(epsilon, delta, Neighbors(neighbors))
    if budget.is_private and n is not None and budget.delta * n >= 1 and not allow_large_delta:
        raise InvalidBudget(
            "delta is at least 1/n: that allows publishing a whole record. Give a delta far below 1/n, such as 1e-6, "
            "or leave it out for the default; allow_large_delta=True (--allow-large-delta) permits it"
        )
    return budget


@dataclass(frozen=True)
class Quote:
    """What a fit would release and cost, with its solver's settings and why they were chosen."""

    priced: PricedPlan
    solver: Mapping[str, Any]
    reason: tuple[str, ...]
    facts: Any = field(default=None, repr=False, compare=False)
    configured: Any = field(default=None, repr=False, compare=False)

    @property
    def price(self) -> Price:
        """What the accountants say of the events."""
        return self.priced.price

    def explain(self) -> str:
        """Say why this solver: the signal, the forms in question, a forecast of what privacy will cost, each setting.

        Returns
        -------
        str
            Text, made of public facts alone: no record is read for it.
        """
        from discreet.default.explain import explanation  # here: a fit imports no solver but its own
        from discreet.default.table import Facts

        domain, loss, penalty = self.facts
        return explanation(Facts(domain, loss, penalty, self.priced.budget), self.configured, self.reason)


@dataclass(frozen=True)
class FitSettings:
    """The settings of a fit, in addition to its records: the model's name, declared facts, method and budget."""

    model: str
    bounds: Bounds
    loss: Loss
    penalty: Penalty
    solver: Any
    epsilon: float
    delta: float | None
    neighbors: str
    fit_intercept: bool = True
    start: Any = None
    public_moments: Any = None
    allow_large_delta: bool = False
    ledger: Any = None
    dataset: str | None = None
    inference: Any = None
    cov_type: str = "robust"

    def prepare(self, X: Any, y: Any, groups: Any) -> "Prepared":
        """Declare, plan and price: everything about a fit that is known without its records."""
        data, domain, budget = self.declare(X, y, groups)
        # a solver may ask for the noise of its plan before it makes it
        with remembered_prices(), in_double_precision(ArithmeticError):
            method = self.method(domain, budget)
            data = data.filled() if domain.sparse and not method.domain.sparse else data
            plan = data.with_reading(method.plan, pure=budget.is_pure)
            reason = (*method.reason, *getattr(X, "notes", ()))
            return Prepared(self, data, method.domain, method.solver, reason, price_plan(plan, budget))

    def declare(self, X: Any, y: Any, groups: Any) -> tuple[PrivateData, Domain, Budget]:
        """Return the records behind their wall, what is public of them, and the budget."""
        relation = Budget(self.epsilon, neighbors=self.neighbors).neighbors  # type: ignore[arg-type]
        account = {"ledger": self.ledger, "dataset": self.dataset}
        data = PrivateData(X, y, self.bounds, groups=groups, fit_intercept=self.fit_intercept, **account)
        domain = self.domain(data, relation)
        budget = budget_of(self.epsilon, self.delta, relation, domain.n, allow_large_delta=self.allow_large_delta)
        return data, domain, budget

    def method(self, domain: Domain, budget: Budget) -> "Method":
        """Choose a solver and plan its releases, from public facts alone; refuse what it would not use."""
        if domain.row_norm == 0:
            raise MissingBounds("every feature is declared constant at 0: declare the ranges that they really have")
        facts = self.loss, self.penalty, budget
        if fills(self.solver, domain, *facts):
            domain = replace(domain, sparse=False)
        self.penalty.value(np.zeros(domain.shape))  # one that does not fit the coefficients fails before any release
        counts = self.inference not in (None, False) and self.solver == "auto" and self.loss.log_link
        solver, reason = choose_solver("gd" if counts else self.solver, domain, *facts)  # where their effects start
        if self.inference not in (None, False):
            solver = inferring(self.inference, self.cov_type, solver, domain, *facts, automatic=self.solver == "auto")
        plan = solver.plan(domain, self.loss, self.penalty)
        if self.start is not None:
            refuse_without_steps(plan)
        if domain.moments is not None:
            refuse_unused(solver)
        return Method(domain, solver, reason, plan)

    def domain(self, data: PrivateData, relation: Neighbors) -> Domain:
        """Return what is public of the records, with the starting point and the moments that were handed in."""
        domain = data.domain(relation, self.loss)
        if self.start is not None:
            domain = replace(domain, start=starting_point(self.start, data, self.loss))
        if self.public_moments is not None:
            moments = moments_of(self.public_moments, data)  # without noise there is nothing that they save
            domain = replace(domain, moments=moments if math.isfinite(self.epsilon) else None)
        return domain


@dataclass(frozen=True)
class Method:
    """A solver, why it was chosen, and what it will release of records with this domain."""

    domain: Domain
    solver: Any
    reason: tuple[str, ...]
    plan: Plan


@dataclass(frozen=True)
class Prepared:
    """A fit before anything is charged or read: records behind their wall, a solver, and the plan at its price."""

    fit: FitSettings
    data: PrivateData
    domain: Domain
    solver: Any
    reason: tuple[str, ...]
    priced: PricedPlan

    @property
    def quote(self) -> Quote:
        """What would be released, with how much noise, and what it costs."""
        facts = (self.domain, self.fit.loss, self.fit.penalty)
        return Quote(self.priced, self.settings, self.reason, facts, self.solver)

    @property
    def settings(self) -> dict[str, Any]:
        """The solver's public settings."""
        return dict(self.solver.settings())

    @property
    def about(self) -> str:
        """What tells one fit's public settings from another's: a charge_id is never answered with another model."""
        fit, data, settings = self.fit, self.data, {**self.settings, **given_with(self.domain)}
        declarations = (fit.bounds, fit.loss, fit.penalty, settings, data.n_columns, self.domain.n, fit.fit_intercept)
        known = (fit.model, *declarations, *([data.declared] if data.declared else []))
        return hashlib.sha256(repr(known).encode()).hexdigest()


def fit_model(
    fit: FitSettings,
    X: Any,
    y: Any,
    groups: Any,
    *,
    charge_id: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Fitted:
    """Fit any linear model privately. Only ``PrivateData`` and its curator touch the records."""
    ready = fit.prepare(X, y, groups)
    data, solver, priced = ready.data, ready.solver, ready.priced
    claim = Claim(fit.model, ready.settings, ready.reason, given=given_with(ready.domain))
    if charge_id is not None and isinstance(priced.plan, AdaptivePlan):
        progress = None  # how far it got is an answer, and a run that is stopped may be asked for again

    def answer(_: Reservation | None) -> tuple[Any, Claim, Certify]:
        curator = data.open(priced, fit.loss, start=ready.domain.start, moments=ready.domain.moments)
        solution = solver.solve(curator, fit.penalty, UNWATCHED if progress is None else Watched(progress))
        units = _units(data, fit)
        noise = solution.noise_in(units) if priced.budget.is_private else np.zeros_like(solution.coefficients)
        spread = (None, None) if noise is None else _in_own_units(noise, data)
        found = solution.effects and _effects(solution.effects, units, len(solution.coefficients))
        return (*_in_own_units(units.coefficients(solution.coefficients), data), *spread, found), claim, curator.issued

    words = {"charge_id": charge_id, "label": fit.model, "about": ready.about}
    try:
        found, certificate, reservation = Priced(data, fit.loss, priced).carry_out([claim], answer, **words)
    except AlreadyReleased as answered:
        return Fitted.from_text(answered.release)
    coef, intercept, *spread = found
    fitted = Fitted(coef, intercept, certificate, *spread)
    if reservation is None or charge_id is None:
        return fitted
    with noted(reservation):
        return Fitted.from_text(reservation.settle(fitted.text()))


def _in_own_units(w: Floats, data: PrivateData) -> tuple[Floats, Floats]:
    """Split coefficients in the user's units into slopes, 0 for features that are declared 0, and intercepts."""
    columns = np.atleast_2d(w.T)
    intercept = columns[:, -1] if data.scaling.intercept else np.zeros(len(columns))
    return columns[:, : data.n_columns] * (data.scaling.scale > 0), intercept.copy()


def _effects(effects: Effects, units: Recoding, columns: int) -> Effects:
    """Return effects in the user's units, residuals in the target's."""
    eye = np.eye(columns)
    linear = units.coefficients(eye) - units.coefficients(np.zeros_like(eye))
    return replace(effects.through(linear), deviation=effects.deviation * units.target_scale)


def _units(data: PrivateData, fit: FitSettings) -> Recoding:
    """Return the map from the user's units to training coordinates: public, so the way back is post-processing."""
    scaling = data.scaling
    scale = np.where(scaling.scale > 0, scaling.scale, 1.0)
    target_center, target_scale = data.target_place(fit.loss)
    return Recoding(scaling.center, scale, target_center=target_center, target_scale=target_scale)
