"""The way of a fit, the same for every model: declare, plan, price, reserve, open, answer, certify.

A private score and a private selection go the same way from the price on (``carry_out``): they differ in what they plan
and in how they answer. Coefficients are mapped back to the user's units at the end.

``choose_solver`` makes a complete solver of a name or an object, from public facts alone: what a solver's name means is
in ``solvers/settings.py``, what ``auto`` means in ``default/table.py``.
"""

from __future__ import annotations  # the curator brings the compiler, which a model needs when it is fitted

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

import numpy as np
from numpy.linalg import LinAlgError

from discreet import curator
from discreet.accounting.certificate import Certificate
from discreet.accounting.plan import AdaptivePlan, Plan
from discreet.accounting.pricing import Price, PricedPlan, in_double_precision, price_plan
from discreet.bounds import Bounds, Domain, Moments
from discreet.budget import Budget, InvalidBudget, Neighbors
from discreet.errors import AlreadyReleased, Diverged, MissingBounds, Unsupported
from discreet.json_schemas import Json
from discreet.ledger.ledger import Reservation, noted, settled
from discreet.losses.base import Loss
from discreet.parameters import OneOf
from discreet.penalties import L1, L2, ElasticNet, NoPenalty
from discreet.penalties.base import Penalty
from discreet.solvers.base import (
    COV_TYPES,
    SOLVERS,
    UNWATCHED,
    Effects,
    Solution,
    Solver,
    Watched,
    filled,
    solver_named,
)
from discreet.solvers.signal import PRIVATE_N
from discreet.typing import Floats

if TYPE_CHECKING:
    from discreet.curator import Claim, PrivateData
    from discreet.inference.forecast import ExpectedEffect
    from discreet.inference.sandwich import Sandwich


Inference = Annotated[str, OneOf("sandwich")] | Literal[False] | None
"""What ``inference=`` takes."""
Covariance = Annotated[str, OneOf(*COV_TYPES)]
START_RADIUS = 0.8
"""Where inference starts, rows are shrunk to this many typical lengths at most."""
DECLARED = "unset parameters were chosen from declared facts only"
PRIVATE_COUNT = (
    f"n is private: unset parameters, what is released and any forecast are for {PRIVATE_N:,} records; where the noisy "
    "count is far smaller, what is made of the answers may follow it"
)
NARROW = 32
"""Sparse records of at most so many columns are stored with their zeros, however many they are."""
FILLED = 1 << 25
"""The most cells that a sparse table may have to be stored with its zeros: 256 MB while it is read."""


def solver_names() -> tuple[str, ...]:
    """Return every name that ``solver=`` takes."""
    return ("auto", *SOLVERS.names())


def check_solver(solver: object) -> None:
    """Refuse what is neither the name of a solver nor a solver object."""
    if isinstance(solver, str):
        is_solver = solver == "auto" or solver in solver_names()
    else:
        parts = ("plan", "solve", "settings")
        is_solver = not isinstance(solver, type) and all(hasattr(solver, name) for name in parts)
    if not is_solver:
        names = ", ".join(solver_names())
        raise Unsupported(f"solver must be one of {names}, or a solver object such as GradientDescent(n_steps=50)")


def choose_solver(
    solver: object, domain: Domain, loss: Loss, penalty: Penalty, budget: Budget
) -> tuple[Solver, tuple[str, ...]]:
    """Return a configured solver from a name or a solver object, and the reasons for what was chosen."""
    declared = DECLARED if domain.n is not None else PRIVATE_COUNT
    if isinstance(solver, str) and solver == "auto":
        from discreet.default.table import (
            Facts,
            choose,
            expectations,  # here: a fit imports no solver but its own
        )

        facts = Facts(domain, loss, penalty, budget)
        chosen, why = choose(facts)
        return chosen, (why, *expectations(facts, chosen), declared)
    check_solver(solver)
    if not isinstance(solver, str):
        custom: Any = solver
        return filled(custom, domain, loss, penalty, budget), ("solver configured by the user",)
    return solver_named(solver, domain, loss, penalty, budget), (f"{solver} was asked for", declared)


def fills(solver: object, domain: Domain, loss: Loss, penalty: Penalty, budget: Budget) -> bool:
    """Say whether sparse records are stored with their zeros: narrow ones whose shape would be estimated if dense.

    A few hundred columns have a covariance that can be estimated, whatever the container. Public facts only: where n is
    private, or a person may have several rows, their number must not decide, but so few columns that zeros cost little.
    """
    is_counted = not domain.grouped and domain.n is not None
    small = domain.n_features <= (FILLED / domain.n if is_counted and domain.n else NARROW)
    if not small or solver not in ("auto", "recipe") or not budget.is_private:
        return False
    from discreet.default.table import Facts, choose  # here: a fit imports no solver but its own

    chosen, _ = choose(Facts(replace(domain, sparse=False), loss, penalty, budget))
    return getattr(chosen, "gives_shape", False)


def inferring(
    cov_type: str,
    solver: Solver,
    domain: Domain,
    loss: Loss,
    penalty: Penalty,
    budget: Budget,
    *,
    automatic: bool,
    even_if_empty: bool = False,
) -> Sandwich:
    """Return a solver that refines what ``solver`` finds and estimates its covariance; refuse what cannot be.

    ``automatic``: the solver was not asked for by name, so that another may be where inference starts.
    ``even_if_empty``: fit, too, where the summary would probably show nothing.
    """
    from discreet.inference.sandwich import Sandwich  # here: a fit imports no solver but its own

    start = inference_start(solver, loss, penalty, automatic=automatic)
    method = Sandwich(start(domain, budget), cov_type, even_if_empty=even_if_empty)
    return method.filled(domain, loss, penalty, budget, start)


def inference_start(
    solver: Solver, loss: Loss, penalty: Penalty, *, automatic: bool
) -> Callable[[Domain, Budget], Solver]:
    """Return the rule for where inference starts: the solver, for its domain and budget and for others in advice."""
    from discreet.default.recipe import Recipe  # here: a fit imports no solver but its own
    from discreet.default.table import Facts, recipe_for
    from discreet.solvers.coordinates import Preconditioned

    def start(domain: Domain, budget: Budget) -> Solver:
        facts, inner = Facts(domain, loss, penalty, budget), solver
        if automatic and (loss.log_link or not budget.is_private):
            inner = solver_named("gd", domain, loss, penalty, budget)
        elif isinstance(solver, Recipe) or (automatic and facts.is_recipe):
            recipe = solver if isinstance(solver, Recipe) and not automatic else recipe_for(facts, weighted=False)
            # its own weighted steps refine the start; wide rows would only bring noise to it
            recipe = replace(recipe, n_travel=0, n_newton=0, row_radius=min(recipe.row_radius, START_RADIUS))
            if automatic:
                recipe = replace(recipe, coordinates="full")  # which the refinement goes on in
            if automatic and loss.task == "classification":  # effects settle from any start: no answer is spent on it
                recipe = replace(recipe, shares=replace(recipe.shares, target=0.0))
            inner = recipe
        if isinstance(inner, Preconditioned) and not inner.gives_shape:
            inner = inner.solver  # inference estimates scales itself
        return inner

    return start


STEPS = ("noisy_gradient", "noisy_weighted_gradient", "noisy_coordinate_gradient")
"""What a solver that moves from a point asks for."""
_HOW_START = "start=(model.coef_, model.intercept_)"


def starting_point(start: object, data: PrivateData, loss: Loss) -> Floats:
    """Return (coefficients, intercept) as weights in training coordinates, (p,) or (p, K)."""
    if not isinstance(start, (tuple, list)) or len(start) != 2:
        raise Unsupported(f"start is a pair of coefficients and intercept: {_HOW_START}")
    try:
        coef, intercept = (np.asarray(part, dtype=np.float64) for part in start)
    except (TypeError, ValueError):
        raise Unsupported(f"start is a pair of numbers: {_HOW_START}") from None
    outputs = loss.n_outputs
    if coef.size != outputs * data.n_columns or intercept.size not in (1, outputs):
        raise Unsupported(
            f"start has {coef.size} coefficients and {intercept.size} intercepts: this model has {data.n_columns} "
            f"features and {outputs} outputs"
        )
    if not (np.isfinite(coef).all() and np.isfinite(intercept).all()):
        raise Unsupported("start must be finite numbers")
    w = in_training_units(coef, intercept, data, loss)
    if not data.scaling.intercept and intercept.any():
        raise Unsupported("this model has no intercept to start from: give an intercept of 0")
    return w


def single_steps(plan: Plan) -> tuple[str, ...]:
    """Say what steps of one coordinate cost on a cluster, where each is a pass over all parts, and what costs less."""
    steps = sum(release.count for release in plan.releases if release.query == STEPS[-1] and release.dimension == 1)
    if not steps:
        return ()
    return (
        f"{steps:,} steps of one coordinate are as many passes over the cluster: with block_size=8, as in "
        "CoordinateDescent(block_size=8), a pass answers eight of them",
    )


def in_training_units(coef: Floats, intercept: Floats, data: PrivateData, loss: Loss) -> Floats:
    """Return coefficients in the user's own units as the curator's weights: the way back of a fit."""
    place, outputs = data.target_place(loss), loss.n_outputs
    center, scale = loss.coefficient_place(*place) if loss.log_link else place
    w = coef.reshape(outputs, data.n_columns) * data.scaling.scale / scale
    if data.scaling.intercept:
        middle = coef.reshape(outputs, data.n_columns) @ data.scaling.center
        w = np.column_stack([w, (np.broadcast_to(intercept.reshape(-1), outputs) + middle - center) / scale])
    return np.ascontiguousarray(w[0] if outputs == 1 else w.T)


def check_units(data: PrivateData, loss: Loss) -> None:
    """Refuse units of a numeric target and of columns in which squares of coefficients are no numbers."""
    factor, scale = 1.0 if loss.log_link else data.target_place(loss)[1], data.scaling.scale
    with np.errstate(over="ignore"):
        units = np.append(factor / scale[scale > 0], factor)
    if not (units.min() >= 1.0 / LARGEST_UNIT and units.max() <= LARGEST_UNIT):
        raise Unsupported(
            "double precision does not hold coefficients of these ranges: give the target and columns in units in "
            "which their ranges end between 1e-70 and 1e70"
        )


LARGEST_UNIT = 1e140
"""Of a coefficient; 1 over it is the least."""
_HOW_MOMENTS = "public_moments=(means, covariance), or (means, standard deviations)"
_ROUNDING = 1e-9


def moments_of(given: object, data: PrivateData) -> Moments:
    """Return (means, covariance) or (means, standard deviations) in training coordinates."""
    if not isinstance(given, (tuple, list)) or len(given) != 2:
        raise Unsupported(f"public moments are a pair: {_HOW_MOMENTS}")
    try:
        mean, spread = (np.asarray(part, dtype=np.float64) for part in given)
    except (TypeError, ValueError):
        raise Unsupported(f"public moments are numbers: {_HOW_MOMENTS}") from None
    p = data.n_columns
    if mean.shape != (p,) or spread.shape not in ((p,), (p, p)):
        raise Unsupported(f"public moments need a number for each of {p} features: {_HOW_MOMENTS}")
    if not (np.isfinite(mean).all() and np.isfinite(spread).all()):
        raise Unsupported("public moments must be finite numbers")
    scaling = data.scaling
    inverse = np.divide(1.0, scaling.scale, out=np.zeros(p), where=scaling.scale > 0)
    placed = (mean - scaling.center) * inverse
    if spread.ndim == 1:
        if (spread < 0).any():
            raise Unsupported("standard deviations must not be negative")
        return Moments(placed, spread * inverse)
    covariance = spread * np.outer(inverse, inverse)
    _check_covariance(covariance)
    return Moments(placed, np.sqrt(np.diag(covariance).clip(0.0)), covariance)


def _check_covariance(covariance: Floats) -> None:
    """Refuse a matrix that no table has as its covariance."""
    largest = float(np.abs(covariance).max(initial=0.0))
    if np.abs(covariance - covariance.T).max(initial=0.0) > _ROUNDING * largest:
        raise Unsupported("a covariance must be symmetric")
    if np.linalg.eigvalsh(covariance).min(initial=0.0) < -_ROUNDING * len(covariance) * largest:
        raise Unsupported("a covariance must have no negative eigenvalue: compute it from complete rows")


def refuse_unused(solver: Solver) -> None:
    """Refuse moments that a solver would not look at: the user would believe that they helped."""
    stage: object = solver
    while stage is not None:
        if getattr(stage, "takes_public_moments", False):
            return
        stage = getattr(stage, "solver", None)
    raise Unsupported(
        f"{solver.name} estimates no moments here, so public ones would not be used: leave public_moments out, or use "
        "solver=Preconditioned(...), with coordinates='diagonal' for sparse or very wide records"
    )


Answer = TypeVar("Answer")
_DIVERGED = (
    "the steps ended in numbers that double precision does not hold: take smaller steps, or settings nearer to their "
    "defaults"
)
Certify = Callable[[Certificate, Reservation | None], Certificate]
"""Adds to what was promised what only the run tells."""


def carry_out(
    data: PrivateData,
    loss: Loss,
    priced: PricedPlan,
    claims: Sequence[Claim],
    answer: Callable[[Reservation | None], tuple[Answer, Claim, Certify]],
    *,
    opens: bool = True,
    **words: str | None,
) -> tuple[Answer, Certificate, Reservation | None]:
    """Reserve, answer, certify: what was declared, planned and priced before.

    ``claims`` are those of which one will be issued. ``answer`` reads the records, after the charge, and returns its
    answer, which claim holds, and what adds to it what only the run tells. ``opens`` says whether the records are read
    by a curator of this very plan. ``words`` are those of ``Ledger.reserve``. Returns the answer, its certificate, and
    the charge (None without a ledger); raises ``AlreadyReleased`` where the same request was answered before.
    """
    data.check(priced, loss, opens=opens)
    reservation = data.reserve(priced, claims, **words)
    with settled(reservation):
        try:
            answered, claim, certify = answer(reservation)
            certificate = certify(curator.promise(priced, data.facts(priced), claim), reservation)
        except (ArithmeticError, LinAlgError):  # a computation on released values failed: nothing else is said of it
            raise Diverged(_DIVERGED) from None
    return answered, certificate, reservation


LARGEST_DEFAULT_DELTA = 1e-6
"""What ``delta=None`` is below 1,000 records: 1/n^2 would be 0.01 for ten."""

_MISSING = {
    name: f"{what} not declared: pass {how}, from what is publicly known, not from the data"
    for name, what, how in (
        ("bounds", "the ranges of the features are", "bounds=Bounds(features=[(0, 120), (0, 1)])"),
        ("classes", "the classes are", "classes=(0, 1)"),
        ("target", "the target's range is", "target=(low, high)"),
    )
}


_FITTED = ("coef", "intercept", "coef_noise", "intercept_noise", "correlation")


@dataclass(frozen=True)
class Fitted:
    """A private linear model in the user's own coordinates, with what the noise did to it where that is known."""

    coef: Floats
    intercept: Floats
    certificate: Certificate
    coef_noise: Floats | None = None
    intercept_noise: Floats | None = None
    correlation: Floats | None = None
    effects: Effects | None = None

    def text(self) -> str:
        """Return all of it as JSON: what a ledger keeps under a charge's id."""
        arrays = {name: getattr(self, name) for name in _FITTED}
        stored: Json = {name: None if values is None else values.tolist() for name, values in arrays.items()}
        if self.effects is not None:
            stored["effects"] = self.effects.to_dict()
        return json.dumps({**stored, "certificate": self.certificate.to_json()})

    @classmethod
    def from_text(cls, text: str) -> Fitted:
        """Read what ``text`` wrote."""
        stored = json.loads(text)
        arrays: Json = {name: None if stored[name] is None else np.array(stored[name], dtype=float) for name in _FITTED}
        effects = Effects.from_dict(stored["effects"]) if "effects" in stored else None
        return cls(**arrays, certificate=Certificate.from_json(stored["certificate"]), effects=effects)


def declared(bounds: Any, **facts: object) -> Bounds:
    """Bounds as given, or made from a bare range, with further facts (classes, target) filled in, which are needed."""
    if bounds is None:
        raise MissingBounds(_MISSING["bounds"])
    full = bounds if isinstance(bounds, Bounds) else Bounds(features=bounds)
    given: Json = {name: value for name, value in facts.items() if value is not None}
    full = replace(full, **given) if given else full
    for name in facts:
        if getattr(full, name) is None:
            raise MissingBounds(_MISSING[name])
    return full


def penalty_of(penalty: Any, alpha: float) -> Penalty:
    """Return a penalty object, or one by name with strength ``alpha``."""
    if penalty is None:
        return NoPenalty()
    if not isinstance(penalty, str):
        if isinstance(penalty, type) or not hasattr(penalty, "prox"):
            raise Unsupported("penalty must be l2, l1, elasticnet, none, or a penalty object such as L2(0.01)")
        custom: Penalty = penalty
        return custom
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
    solver: Mapping[str, object]
    reason: tuple[str, ...]
    facts: tuple[Domain, Loss, Penalty] = field(repr=False, compare=False)
    configured: Any = field(repr=False, compare=False)

    @property
    def price(self) -> Price:
        """What the accountants say of the events."""
        return self.priced.price

    def explain(self) -> str:
        """Say why this solver: the signal, the forms in question, a forecast of what privacy will cost, each setting.

        Made of public facts alone: no record is read for it.
        """
        from discreet.default.table import (
            Facts,
            explanation,  # here: a fit imports no solver but its own
        )
        from discreet.inference.forecast import assumption

        domain, loss, penalty = self.facts
        text = explanation(Facts(domain, loss, penalty, self.priced.budget), self.configured, self.reason)
        if not self._forecasts_effects:
            return text
        columns = self.facts[0].n_features - self.facts[0].intercept
        cells = () if self.facts[0].indicators else (0.1, 0.02)[:columns]
        kinds = (f"{kind.name} {kind.chances}" for kind in self.effects(cells=cells))
        return f"{text}\nChance that an effect is shown, by its column: {', '.join(kinds)}. {assumption(loss)}"

    @property
    def _forecasts_effects(self) -> bool:
        is_sandwich = getattr(self.configured, "name", "") == "sandwich"
        return is_sandwich and self.facts[0].n is not None and self.priced.budget.is_private

    def effects(
        self,
        *,
        cells: Sequence[float] | Mapping[int, float] = (),
        mean: float | None = None,
        strength: float | None = None,
        fill: float | None = None,
    ) -> tuple[ExpectedEffect, ...]:
        """Return how likely effects of this fit are to be shown, and their standard errors. No record is read.

        Parameters
        ----------
        cells : sequence of float, or mapping of int to float, default=()
            The shares of rows in which yes/no columns are true, one per column or by place. A schema's other yes/no
            columns are true in half of the rows, and its categories' other values share the rest alike; all other
            columns are numbers.
        mean : float, default=None
            The share of the second class, the others being alike, or the mean count. None: even classes, and 1.
        strength : float, default=None
            How well columns predict the target: the deviation of the log odds or log rates that they make; for numbers,
            in standard deviations of the residuals. None: 0.35 for ``chance``, near separation for ``least``.
        fill : float, default=None
            The part of its declared range that a number fills. None: all for ``chance``, a tenth for ``least``.

        Returns
        -------
        tuple of ExpectedEffect
            One per kind of column.

        Raises
        ------
        Unsupported
            For fits without ``inference``, or where n is private.
        """
        from discreet.inference.forecast import expected_effects, usual_law  # here: a fit imports no solver but its own

        domain, loss, penalty = self.facts
        if not self._forecasts_effects:
            raise Unsupported("effects are forecast for fits with inference='sandwich' and a public n")
        law = usual_law(loss, cells, mean, strength, fill)
        return expected_effects(self.configured, domain, loss, penalty, self.priced.budget, law)


@dataclass(frozen=True)
class RowExtras:
    """What stands next to a record: its person, its weight and its offset, a column each, or None."""

    groups: object = None
    weights: object = None
    offsets: object = None


@dataclass(frozen=True)
class FitSettings:
    """The settings of a fit, in addition to its records: the model's name, declared facts, method and budget."""

    model: str
    bounds: Bounds
    loss: Loss
    penalty: Penalty
    solver: object
    epsilon: float
    delta: float | None
    neighbors: str
    fit_intercept: bool = True
    start: object = None
    public_moments: object = None
    allow_large_delta: bool = False
    ledger: object = None
    dataset: str | None = None
    inference: str | bool | None = None
    cov_type: str = "robust"
    class_weights: tuple[float, ...] | None = None
    even_if_empty: bool = False

    def prepare(self, X: object, y: object, extras: RowExtras) -> Prepared:
        """Declare, plan and price: everything about a fit that is known without its records."""
        data, domain, budget = self.declare(X, y, extras)
        with in_double_precision(ArithmeticError):
            stored, solver, reason, plan = self.method(domain, budget)
            data = data.filled() if domain.sparse and not stored.sparse else data
            priced = price_plan(data.with_reading(plan, pure=budget.is_pure), budget)
            notes = (*reason, *(self.cost_of_weights(stored.n) if stored.weighted else ()), *getattr(X, "notes", ()))
            return Prepared(self, data, stored, solver, notes, priced)

    def cost_of_weights(self, n: int | None) -> tuple[str, ...]:
        """Say what uneven weights cost, from their declared ranges; nothing where none are declared.

        Noise is that of the largest weight, so n rows count as n mean / largest against it, and as
        n mean^2 / (mean of squares) against the sampling error. Weights spread evenly over [low, high] have the mean
        (low + high) / 2 and squares of (low^2 + low high + high^2) / 3 on average. At worst, all but a few weights are
        the least one; against the sampling error, as many are at each end as makes 4 low high / (low + high)^2.
        """
        ranges = [] if self.bounds.weights is None else [self.bounds.weights]
        if self.loss.offsets_weigh and self.bounds.offsets is not None:
            low, high = self.bounds.offsets
            ranges.append((math.exp(low - high), 1.0))
        if self.class_weights is not None:
            ranges.append((min(self.class_weights), max(self.class_weights)))
        if not ranges:
            return ()
        noise = math.prod((low + high) / (2 * high) for low, high in ranges)
        squares = math.prod((low**2 + low * high + high**2) / 3 / high**2 for low, high in ranges)
        least = math.prod(low / high for low, high in ranges)
        worst = math.prod(4 * low * high / (low + high) ** 2 for low, high in ranges)

        def rows(share: float) -> str:
            return f"{share:.0%}" if n is None else f"{share * n:,.0f}"

        count = "rows" if n is None else f"{n:,} rows"
        return (
            f"noise is scaled for the largest weight: with weights spread evenly over the declared range, {count} "
            f"count as {rows(noise)} against the noise and {rows(noise**2 / squares)} against the sampling error, at "
            f"worst as {rows(least)} and {rows(worst)}; a narrower range costs less",
        )

    def declare(self, X: object, y: object, extras: RowExtras) -> tuple[PrivateData, Domain, Budget]:
        """Return the records behind their wall, what is public of them, and the budget."""
        relation = Budget(self.epsilon, neighbors=self.neighbors).neighbors  # type: ignore[arg-type]
        settings: Json = {"ledger": self.ledger, "dataset": self.dataset}
        settings |= {"groups": extras.groups, "weights": extras.weights, "offsets": extras.offsets}
        settings |= {"class_weights": self.class_weights, "fit_intercept": self.fit_intercept}
        data = curator.PrivateData(X, y, self.bounds, **settings)
        domain = self.domain(data, relation)
        budget = budget_of(self.epsilon, self.delta, relation, domain.n, allow_large_delta=self.allow_large_delta)
        return data, domain, budget

    def method(self, domain: Domain, budget: Budget) -> tuple[Domain, Solver, tuple[str, ...], Plan]:
        """Choose a solver and plan its releases, from public facts alone; refuse what it would not use.

        The domain that is returned first is that of the records as they are stored.
        """
        if domain.row_norm == 0:
            raise MissingBounds("every feature is declared constant at 0: declare the ranges that they really have")
        facts = self.loss, self.penalty, budget
        if domain.sparse and fills(self.solver, domain, *facts):
            domain = replace(domain, sparse=False)
        self.penalty.value(np.zeros(domain.shape))  # one that does not fit the coefficients fails before any release
        counts = self.inference not in (None, False) and self.solver == "auto" and self.loss.log_link
        solver, reason = choose_solver("gd" if counts else self.solver, domain, *facts)  # where their effects start
        if self.inference not in (None, False):
            automatic = self.solver == "auto"
            solver = inferring(
                self.cov_type, solver, domain, *facts, automatic=automatic, even_if_empty=self.even_if_empty
            )
        plan = solver.plan(domain, self.loss, self.penalty)
        if self.start is not None and not any(release.query in STEPS for release in plan.releases):
            raise Unsupported(
                "this solver releases a minimizer, which no start changes: leave start out, or use gd or cd"
            )
        if domain.moments is not None:
            refuse_unused(solver)
        return domain, solver, (*reason, *(single_steps(plan) if domain.remote else ())), plan

    def domain(self, data: PrivateData, relation: Neighbors) -> Domain:
        """Return what is public of the records, with the starting point and the moments that were handed in."""
        domain = data.domain(relation, self.loss)
        if self.loss.task == "regression":
            check_units(data, self.loss)
        if self.start is not None:
            domain = replace(domain, start=starting_point(self.start, data, self.loss))
        if self.public_moments is not None:
            moments = moments_of(self.public_moments, data)  # without noise there is nothing that they save
            domain = replace(domain, moments=moments if math.isfinite(self.epsilon) else None)
        return domain


@dataclass(frozen=True)
class Prepared:
    """A fit before anything is charged or read: records behind their wall, a solver, and the plan at its price."""

    fit: FitSettings
    data: PrivateData
    domain: Domain
    solver: Solver
    reason: tuple[str, ...]
    priced: PricedPlan

    @property
    def quote(self) -> Quote:
        """What would be released, with how much noise, and what it costs."""
        facts = self.domain, self.fit.loss, self.fit.penalty
        return Quote(self.priced, dict(self.solver.settings()), self.reason, facts, self.solver)


def fit_model(
    fit: FitSettings,
    X: object,
    y: object,
    extras: RowExtras,
    *,
    charge_id: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Fitted:
    """Fit any linear model privately. Only ``PrivateData`` and its curator touch the records."""
    ready = fit.prepare(X, y, extras)
    data, domain, solver, priced = ready.data, ready.domain, ready.solver, ready.priced
    settings, given = dict(solver.settings()), curator.given_with(domain)
    claim = curator.Claim(fit.model, settings, ready.reason, given=given)
    if charge_id is not None and isinstance(priced.plan, AdaptivePlan):
        progress = None  # how far it got is an answer, and a run that is stopped may be asked for again

    cones, curves, together = getattr(X, "cones", ()), getattr(X, "curves", ()), getattr(X, "together", ())

    def answer(_: Reservation | None) -> tuple[Json, Claim, Certify]:
        opened = data.open(priced, fit.loss, start=domain.start, moments=domain.moments)
        solution = solver.solve(opened, fit.penalty, UNWATCHED if progress is None else Watched(progress))
        if curves or cones or together:
            from discreet.models.curves import monotone, noise_correlations, smoothed  # here: arrays have none

            solution = smoothed(solution, curves, ready.domain, fit.loss) if curves else solution
            solution = monotone(solution, cones, domain, data.scaling.scale) if cones else solution
        released = _in_user_units(solution, data, fit.loss, is_private=priced.budget.is_private)
        if together and "coef_noise" in released:
            released["correlation"] = noise_correlations(solution, ready.domain, together)
        return released, claim, opened.issued

    # what tells one fit's public settings from another's: a charge_id is never answered with another model
    declarations = (fit.bounds, fit.loss, fit.penalty, {**settings, **given}, data.n_columns, domain.n)
    public = (fit.model, *declarations, fit.fit_intercept, *([data.declared] if data.declared else []))
    about = hashlib.sha256(repr(public).encode()).hexdigest()
    words: Json = {"charge_id": charge_id, "label": fit.model, "about": about}
    try:
        released, certificate, reservation = carry_out(data, fit.loss, priced, [claim], answer, **words)
    except AlreadyReleased as answered:
        return Fitted.from_text(answered.release)
    fitted = Fitted(certificate=certificate, **released)
    if reservation is None or charge_id is None:
        return fitted
    with noted(reservation):
        return Fitted.from_text(reservation.settle(fitted.text()))


def _in_user_units(solution: Solution, data: PrivateData, loss: Loss, *, is_private: bool) -> Json:
    """Return a solution in the user's units, with what the noise did to it where that is known.

    The map to training coordinates is public, so the way back is post-processing.
    """
    place = data.target_place(loss)
    target_center, target_scale = loss.coefficient_place(*place) if loss.log_link else place
    scale = np.where(data.scaling.scale > 0, data.scaling.scale, 1.0)
    units = curator.Recoding(data.scaling.center, scale, target_center=target_center, target_scale=target_scale)
    coef, intercept = _slopes_and_intercepts(units.coefficients(solution.coefficients), data)
    released = {"coef": coef, "intercept": intercept}
    noise = solution.noise_in(units) if is_private else np.zeros_like(solution.coefficients)
    if noise is not None:
        released["coef_noise"], released["intercept_noise"] = _slopes_and_intercepts(noise, data)
    if solution.effects is None:
        return released
    eye = np.eye(len(solution.coefficients))
    linear = units.coefficients(eye) - units.coefficients(np.zeros_like(eye))
    effects = replace(solution.effects.through(linear), deviation=solution.effects.deviation * target_scale)
    return {**released, "effects": effects}


def _slopes_and_intercepts(w: Floats, data: PrivateData) -> tuple[Floats, Floats]:
    """Split coefficients in the user's units into slopes, 0 for features that are declared 0, and intercepts."""
    columns = np.atleast_2d(w.T)
    intercept = columns[:, -1] if data.scaling.intercept else np.zeros(len(columns))
    return columns[:, : data.n_columns] * (data.scaling.scale > 0), intercept.copy()
