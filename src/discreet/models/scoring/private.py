"""``private_score``: declare, plan, price, charge, read, buy, certify."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from types import ModuleType
from typing import Any

from discreet.accounting.certificate import Certificate
from discreet.accounting.pricing import calibrate
from discreet.budget import Budget
from discreet.curator.metrics import accuracy, r_squared, roc
from discreet.curator.metrics.measurement import Measured
from discreet.curator.metrics.noisy_sums import Buyer, plan_of
from discreet.curator.metrics.predictions import Released, read
from discreet.curator.private_data import PrivateData
from discreet.curator.records.containers import container_of
from discreet.curator.records.stream import is_stream
from discreet.curator.wall import promise
from discreet.errors import MissingBounds, Unsupported
from discreet.ledger.reservation import Reservation
from discreet.models.fitting import budget_of
from discreet.models.scoring.released import released
from discreet.models.scoring.result import PrivateScore

METRICS: dict[str, ModuleType] = {"accuracy": accuracy, "auc": roc, "r2": r_squared}


def private_score(
    model: Any,
    X: Any,
    y: Any = None,
    groups: Any = None,
    *,
    metric: str = "auto",
    epsilon: float,
    delta: float | None = None,
    neighbors: str = "replace_one",
    allow_large_delta: bool = False,
    level: float = 0.95,
    ledger: Any = None,
    dataset: str | None = None,
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
    metric : {"auto", "accuracy", "auc", "r2"}, default="auto"
        ``"auto"``: accuracy for classes, R2 for numbers; ``"auc"`` is for two classes.
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
    X = container_of(X)
    known = released(model, X)
    kind, name = metric_of(known, metric, level)
    relation = Budget(epsilon, neighbors=neighbors).neighbors  # type: ignore[arg-type]
    if is_stream(X) and X.purchase is not None:
        raise Unsupported(
            "the ranges of these columns are to be bought: score with the ranges that the model's fit bought"
        )
    if y is None and not is_stream(X):
        raise Unsupported("a score needs the targets: pass y")
    data = PrivateData(X, y, known.bounds, groups=groups, ledger=ledger, dataset=dataset)
    n = data.public_n(relation)
    if n is None and delta is None:
        raise MissingBounds("n is private here: give delta, such as delta=1e-6")
    budget = budget_of(epsilon, delta, relation, n, allow_large_delta=allow_large_delta)
    plan = plan_of(kind.SHARES, pure=budget.is_pure)
    noise_multiplier = calibrate(plan, budget)
    promised = replace(
        promise(
            plan,
            budget,
            noise_multiplier,
            {"unit": data.unit, **_declared(known, n)},
            model=f"{name} of {known.name}",
            solver={"metric": name},
        ),
        notes=("the model was released before, and is taken as public here",),
    )
    data.check(known.loss)
    reservation = data.reserve(promised.events, budget, lambda: [promised], label=promised.model)
    rows, persons = read(known, X, y, partial(kind.seen, known), reservation)
    if not is_stream(X):
        data.recognize(reservation)
    buyer = Buyer(plan, budget, groups if persons is None else persons, progress)
    found: Measured = kind.measure(known, rows, buyer, level)
    return scored(name, found, level, _certificate(promised, buyer, reservation), n, kind.SAMPLING)


def _certificate(promised: Certificate, buyer: Buyer, reservation: Reservation | None) -> Certificate:
    """What was promised, with what only the purchases tell: where their noise came from, and who looked."""
    assert buyer.curator is not None
    made = buyer.curator.certificate(model=promised.model, solver=dict(promised.solver))
    return replace(
        promised,
        entropy=made.entropy,
        not_private=made.not_private,
        created=made.created,
        ledger=None if reservation is None else reservation.reference,
    )


def metric_of(model: Released, metric: str, level: float) -> tuple[ModuleType, str]:
    """The metric's module and its name, or a word on what does not go together."""
    if not 0 < level < 1:
        raise Unsupported("level is a probability, such as 0.95")
    if metric == "auto":
        metric = "accuracy" if model.is_classifier else "r2"
    if metric not in METRICS:
        raise Unsupported(f"metric must be auto, {', '.join(METRICS)}")
    if model.is_classifier != (metric != "r2"):
        raise Unsupported("r2 is for numeric targets, accuracy and auc for classes: use metric='auto'")
    if metric == "auc" and model.loss.n_outputs != 1:
        raise Unsupported("auc is for two classes: use metric='accuracy' for more")
    return METRICS[metric], metric


def scored(
    name: str, found: Measured, level: float, certificate: Certificate | None, n: int | None, sampling: str
) -> PrivateScore:
    """The result, with the sampling error added on both sides and nothing beyond what a score can be."""
    least = -float("inf") if name == "r2" else 0.0
    return PrivateScore(
        metric=name,
        value=found.value,
        low=found.low,
        high=found.high,
        level=level,
        population_low=max(least, found.low - found.sampling),
        population_high=min(1.0, found.high + found.sampling),
        certificate=certificate,
        n=n,
        sampling=sampling,
    )


def _declared(model: Released, n: int | None) -> dict[str, Any]:
    ranges = model.bounds.features
    facts = {
        "features": ranges if isinstance(ranges, (float, dict)) else [list(pair) for pair in ranges],
        "target": model.bounds.target,
        "classes": model.bounds.classes,
        "n": n,
    }
    return {name: value for name, value in facts.items() if value is not None}
