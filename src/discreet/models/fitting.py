"""The way of a fit, the same for every model: declare, plan, price, open, solve, certify, map back."""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from discreet.accounting.certificate import Certificate
from discreet.accounting.events import Event
from discreet.accounting.plan import AdaptivePlan, Plan
from discreet.accounting.pricing import Price, calibrate, epsilon_of
from discreet.bounds import Bounds, Domain
from discreet.budget import Budget, InvalidBudget, Neighbors
from discreet.curator.private_data import PrivateData
from discreet.errors import AlreadyReleased, MissingBounds, Unsupported
from discreet.ledger.reservation import settled
from discreet.models.defaults import choose_solver
from discreet.penalties import L1, L2, ElasticNet, NoPenalty
from discreet.penalties.base import Penalty
from discreet.solvers.base import UNWATCHED, Watched

LARGEST_DEFAULT_DELTA = 1e-6
"""What ``delta=None`` is below 1,000 records: 1/n^2 would be 0.01 for ten."""

_HOW = "Bounds(features=[(0, 120), (0, 1)])"


@dataclass(frozen=True)
class Fitted:
    """A private linear model in the user's own coordinates, with what the noise did to it where that is known."""

    coef: NDArray[np.float64]
    intercept: NDArray[np.float64]
    certificate: Certificate
    coef_noise: NDArray[np.float64] | None = None
    intercept_noise: NDArray[np.float64] | None = None

    def text(self) -> str:
        """All of it as JSON: what a ledger keeps under a request's name."""
        arrays = {name: getattr(self, name) for name in ("coef", "intercept", "coef_noise", "intercept_noise")}
        stored = {name: None if values is None else values.tolist() for name, values in arrays.items()}
        return json.dumps({**stored, "certificate": self.certificate.to_json()})

    @classmethod
    def from_text(cls, text: str) -> "Fitted":
        """The inverse of ``text``; earlier texts know nothing of the noise."""
        stored = json.loads(text)
        certificate = Certificate.from_json(stored["certificate"])
        spread = (stored.get(name) for name in ("coef_noise", "intercept_noise"))
        return cls(
            np.array(stored["coef"], dtype=float),
            np.array(stored["intercept"], dtype=float),
            certificate,
            *(None if values is None else np.array(values, dtype=float) for values in spread),
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
    if penalty is None or penalty == "none":
        return NoPenalty()
    if not isinstance(penalty, str):
        if isinstance(penalty, type) or not hasattr(penalty, "prox"):
            raise Unsupported("penalty must be l2, l1, elasticnet, none, or a penalty object such as L2(0.01)")
        return cast(Penalty, penalty)
    if alpha < 0:
        raise Unsupported("alpha must not be negative")
    named: dict[str, Penalty] = {"l2": L2(alpha), "l1": L1(alpha), "elasticnet": ElasticNet(alpha / 2, alpha / 2)}
    if penalty not in named:
        raise Unsupported(f"penalty must be one of {', '.join(named)}, none, or a penalty object")
    return named[penalty]


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
    """What a fit would release and cost; ``price`` is what the accountants say of the events."""

    budget: Budget
    plan: Plan
    noise_multiplier: float
    events: tuple[Event, ...]
    solver: Mapping[str, Any]
    reason: tuple[str, ...]
    price: Price


@dataclass(frozen=True)
class Prepared:
    """A fit before anything is charged or read: records behind their wall, a solver, and the plan with its budget."""

    data: PrivateData
    domain: Domain
    budget: Budget
    solver: Any
    reason: tuple[str, ...]
    plan: Plan

    @property
    def price(self) -> Quote:
        """What would be released, with how much noise, and what it costs."""
        plan = self.data.priced(self.plan, pure=self.budget.is_pure)
        noise_multiplier = calibrate(plan, self.budget)
        events = plan.events(noise_multiplier, pure=self.budget.is_pure)
        found = epsilon_of(events, self.budget.delta, self.budget.neighbors)
        return Quote(self.budget, plan, noise_multiplier, events, self.solver.settings(), self.reason, found)


def prepare(
    X: Any,
    y: Any,
    groups: Any,
    *,
    bounds: Bounds,
    loss: Any,
    penalty: Penalty,
    solver: Any,
    epsilon: float,
    delta: float | None,
    neighbors: str,
    fit_intercept: bool,
    allow_large_delta: bool = False,
    ledger: Any = None,
    dataset: str | None = None,
) -> Prepared:
    """Everything about a fit that is known without its records."""
    relation = Budget(epsilon, neighbors=neighbors).neighbors  # type: ignore[arg-type]
    data = PrivateData(X, y, bounds, groups=groups, fit_intercept=fit_intercept, ledger=ledger, dataset=dataset)
    domain = data.domain(relation, loss)
    if domain.row_norm == 0:
        raise MissingBounds("every feature is declared constant at 0: declare the ranges that they really have")
    penalty.value(np.zeros(domain.shape))  # a penalty that does not fit the coefficients fails here, before any release
    budget = budget_of(epsilon, delta, relation, domain.n, allow_large_delta=allow_large_delta)
    chosen, reason = choose_solver(solver, domain, loss, penalty, budget)
    return Prepared(data, domain, budget, chosen, reason, chosen.plan(domain, loss, penalty))


def fit_model(
    X: Any,
    y: Any,
    groups: Any,
    *,
    model: str,
    bounds: Bounds,
    loss: Any,
    penalty: Penalty,
    fit_intercept: bool,
    request: str | None = None,
    progress: Callable[[int, int], None] | None = None,
    **settings: Any,
) -> Fitted:
    """Fit any linear model privately. Only ``PrivateData`` and its curator touch the records.

    ``settings`` are the other words of ``prepare``.
    """
    ready = prepare(X, y, groups, bounds=bounds, loss=loss, penalty=penalty, fit_intercept=fit_intercept, **settings)
    data, domain, budget, chosen = ready.data, ready.domain, ready.budget, ready.solver
    declarations = (bounds, loss, penalty, chosen.settings(), data.n_columns, domain.n, fit_intercept)
    about = _digest(model, *declarations, *([data.declared] if data.declared else []))
    claim = {"model": model, "solver": chosen.settings(), "notes": ready.reason}
    try:
        curator = data.open_to_settle(ready.plan, budget, loss, claim=claim, request=request, label=model, about=about)
    except AlreadyReleased as answered:
        return Fitted.from_text(answered.release)
    if request is not None and isinstance(ready.plan, AdaptivePlan):
        progress = None  # how far it got is an answer, and a run that is stopped may be asked for again
    with settled(curator.reservation):
        solution = chosen.solve(curator, penalty, UNWATCHED if progress is None else Watched(progress))
        certificate = curator.certificate(**claim)
        coef, intercept = _in_own_units(solution.coefficients, data, loss, fit_intercept)
        noise = solution.noise if budget.is_private else np.zeros_like(solution.coefficients)
        spread = (None, None) if noise is None else _in_own_units(noise, data, loss, fit_intercept)
    fitted = Fitted(coef, intercept, certificate, *spread)
    if curator.reservation is None or request is None:
        return fitted
    return Fitted.from_text(curator.reservation.settle(fitted.text()))


def _digest(*settings: Any) -> str:
    """What tells one fit's public settings from another's, so that a request is never answered with another model."""
    return hashlib.sha256(repr(settings).encode()).hexdigest()


def _in_own_units(
    w: NDArray[np.float64], data: PrivateData, loss: Any, fit_intercept: bool
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Training coordinates back to the user's: post-processing with declared, positive numbers, so for spreads too."""
    columns = np.atleast_2d(w.T) * data.target_scale(loss)
    scale = data.scaling.scale
    inverse = np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0)
    coef = columns[:, : data.n_columns] * inverse
    intercept = columns[:, -1] if fit_intercept else np.zeros(len(columns))
    return coef, intercept.copy()
