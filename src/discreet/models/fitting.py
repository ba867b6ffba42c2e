"""The way of a fit, the same for every model: declare, plan, price, open, solve, certify, map back."""

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from discreet.accounting.certificate import Certificate
from discreet.bounds import Bounds
from discreet.budget import Budget, Neighbors
from discreet.curator.private_data import PrivateData
from discreet.errors import AlreadyReleased, LedgerError, MissingBounds, Unsupported
from discreet.ledger.reservation import Reservation
from discreet.models.defaults import choose_solver
from discreet.penalties import L1, L2, ElasticNet, NoPenalty
from discreet.penalties.base import Penalty
from discreet.solvers.base import Progress

_HOW = "Bounds(features=[(0, 120), (0, 1)])"


@dataclass(frozen=True)
class Fitted:
    """A private linear model in the user's own coordinates."""

    coef: NDArray[np.float64]
    intercept: NDArray[np.float64]
    certificate: Certificate

    def text(self) -> str:
        """All of it as JSON: what a ledger keeps under a request's name."""
        stored = {"coef": self.coef.tolist(), "intercept": self.intercept.tolist()}
        return json.dumps({**stored, "certificate": self.certificate.to_json()})

    @classmethod
    def from_text(cls, text: str) -> "Fitted":
        """The inverse of ``text``."""
        stored = json.loads(text)
        certificate = Certificate.from_json(stored["certificate"])
        return cls(np.array(stored["coef"], dtype=float), np.array(stored["intercept"], dtype=float), certificate)


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


def budget_of(epsilon: float, delta: float | None, neighbors: str, n: int | None) -> Budget:
    """The budget; ``delta=None`` is 1/n^2 where n is public."""
    if delta is None:
        if n is None:
            raise MissingBounds("n is private here: give delta, such as delta=1e-6, or declare Bounds(n=...)")
        delta = 1.0 / max(n, 2) ** 2
    return Budget(epsilon, delta, Neighbors(neighbors))


def fit_model(
    X: Any,
    y: Any,
    groups: Any,
    *,
    model: str,
    bounds: Bounds,
    loss: Any,
    penalty: Penalty,
    solver: Any,
    epsilon: float,
    delta: float | None,
    neighbors: str,
    fit_intercept: bool,
    ledger: Any = None,
    dataset: str | None = None,
    request: str | None = None,
    progress: Progress | None = None,
) -> Fitted:
    """Fit any linear model privately. Only ``PrivateData`` and its curator touch the records."""
    relation = Budget(epsilon, neighbors=neighbors).neighbors  # type: ignore[arg-type]
    data = PrivateData(X, y, bounds, groups=groups, fit_intercept=fit_intercept, ledger=ledger, dataset=dataset)
    domain = data.domain(relation, loss)
    if domain.row_norm == 0:
        raise MissingBounds("every feature is declared constant at 0: declare the ranges that they really have")
    penalty.value(np.zeros(domain.shape))  # a penalty that does not fit the coefficients fails here, before any release
    budget = budget_of(epsilon, delta, relation, domain.n)
    chosen, reason = choose_solver(solver, domain, loss, penalty, budget)
    about = _digest(model, bounds, loss, penalty, chosen.settings(), data.n_columns, domain.n, fit_intercept)
    try:
        curator = data.open_to_settle(
            chosen.plan(domain, loss, penalty), budget, loss, request=request, label=model, about=about
        )
    except AlreadyReleased as answered:
        return Fitted.from_text(answered.release)
    with _settled(curator.reservation):
        solution = chosen.solve(curator, penalty, progress)
        certificate = curator.certificate(model=model, solver=chosen.settings(), notes=reason)
        coef, intercept = _in_own_units(solution.coefficients, data, loss, fit_intercept)
    fitted = Fitted(coef, intercept, certificate)
    if curator.reservation is None or request is None:
        return fitted
    return Fitted.from_text(curator.reservation.settle(fitted.text()))


def _digest(*settings: Any) -> str:
    """What tells one fit's public settings from another's, so that a request is never answered with another model."""
    return hashlib.sha256(repr(settings).encode()).hexdigest()


@contextmanager
def _settled(reservation: Reservation | None) -> Iterator[None]:
    """A run that fails is never run again under the same charge: its failure was an answer."""
    try:
        yield
    except BaseException:
        if reservation is not None:
            with suppress(LedgerError):  # what went wrong first is what is told
                reservation.abandon()
        raise


def _in_own_units(
    w: NDArray[np.float64], data: PrivateData, loss: Any, fit_intercept: bool
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Training coordinates back to the user's: post-processing with declared numbers."""
    columns = np.atleast_2d(w.T) * data.target_scale(loss)
    scale = data.scaling.scale
    inverse = np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0)
    coef = columns[:, : data.n_columns] * inverse
    intercept = columns[:, -1] if fit_intercept else np.zeros(len(columns))
    return coef, intercept.copy()
