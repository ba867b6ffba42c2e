"""``private_score``: declare, plan, price, reserve, open, answer, certify."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from discreet.accounting.certificate import Certificate
from discreet.accounting.priced_plan import PricedPlan, price_plan
from discreet.budget import Budget
from discreet.curator import (
    METRICS,
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
    is_stream,
    measure_private,
    plan_of,
)
from discreet.errors import AlreadyReleased, MissingBounds, Unsupported
from discreet.ledger.reservation import Reservation, noted
from discreet.models.fitting import budget_of
from discreet.models.lifecycle import Certify, Priced
from discreet.models.scoring.released import groups_of, released
from discreet.models.scoring.result import PrivateScore, ScorePart
from discreet.models.selection.search_price import facts_of
from discreet.parameters import Share, checked

_RELEASED_BEFORE = "the model was released before, and is taken as public here"


@checked
def private_score(
    model: Any,
    X: Any,
    y: Any = None,
    groups: Any = None,
    *,
    metric: str = "auto",
    by: Any = None,
    epsilon: float,
    delta: float | None = None,
    neighbors: str = "replace_one",
    allow_large_delta: bool = False,
    level: Share = 0.95,
    ledger: Any = None,
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
    asked = {"metric": metric, "by": by, "epsilon": epsilon, "delta": delta, "neighbors": neighbors}
    asked |= {"allow_large_delta": allow_large_delta, "level": level, "ledger": ledger, "dataset": dataset}
    X = container_of(X)
    ready = _prepared(model, X, y, groups, **asked)
    claim = ready.claim

    def answer(reservation: Reservation | None) -> tuple[Measured, Claim, Certify]:
        if not is_stream(X):
            ready.data.recognize(reservation)
        noisy = NoisySums(ready.priced, groups, progress)
        how: dict[str, Any] = {"level": level, "groups": ready.parts}
        found = measure_private(ready.name, ready.known, X, y, noisy, reservation=reservation, **how)
        return found, claim, noisy.issued

    words = {"label": claim.model} if charge_id is None else {"label": claim.model, "charge_id": charge_id}
    if charge_id is not None:
        words["about"] = ready.about(level)
    whole = Priced(ready.data, ready.known.loss, ready.priced, opens=False)
    try:
        found, certificate, reservation = whole.carry_out([claim], answer, **words)
    except AlreadyReleased as answered:
        return PrivateScore.from_text(answered.release)
    score = scored(ready.name, found, level, certificate, ready.n, ready.kind.sampling)
    if reservation is None or charge_id is None:
        return score
    with noted(reservation):
        return PrivateScore.from_text(reservation.settle(score.to_text()))


def priced_score(model: Any, X: Any, **asked: Any) -> PricedPlan:
    """Return what ``private_score`` would release of these rows, at its price: X is a stream that is not read."""
    usual = {"metric": "auto", "by": None, "delta": None, "neighbors": "replace_one", "allow_large_delta": False}
    return _prepared(model, X, None, None, **{**usual, "level": 0.95, "ledger": False, "dataset": None, **asked}).priced


@dataclass(frozen=True)
class _Prepared:
    """A score before anything is charged or read."""

    data: PrivateData
    known: Released
    kind: Metric
    name: str
    parts: Groups | None
    priced: PricedPlan
    n: int | None
    claim: Claim

    def about(self, level: float) -> str:
        """What tells one score from another: the model's numbers, the settings, the declared facts."""
        known, arrays = self.known, (self.known.coef, self.known.intercept)
        facts = (self.claim, level, known.name, known.bounds, known.loss, [one.tolist() for one in arrays])
        return hashlib.sha256(repr(facts).encode()).hexdigest()


def _prepared(
    model: Any,
    X: Any,
    y: Any,
    groups: Any,
    *,
    metric: str,
    by: Any,
    epsilon: float,
    delta: float | None,
    neighbors: str,
    allow_large_delta: bool,
    level: float,
    ledger: Any,
    dataset: str | None,
) -> _Prepared:
    """Declare, plan and price: everything about a score that is known without its rows."""
    known = released(model, X)
    kind, name = metric_of(known, metric)
    parts = None if by is None else groups_of(model, known, by, kind)
    relation = Budget(epsilon, neighbors=neighbors).neighbors  # type: ignore[arg-type]
    if is_stream(X) and X.estimates is not None:
        raise Unsupported(
            "the ranges of these columns are to be estimated: score with the ranges that the model's fit estimated"
        )
    if y is None and not is_stream(X):
        raise Unsupported("a score needs the targets: pass y")
    data = PrivateData(X, y, known.bounds, groups=groups, ledger=ledger, dataset=dataset)
    n = data.public_n(relation)
    if n is None and delta is None:
        raise MissingBounds("n is private here: give delta, such as delta=1e-6")
    budget = budget_of(epsilon, delta, relation, n, allow_large_delta=allow_large_delta)
    priced = price_plan(plan_of(kind.shares, pure=budget.is_pure), budget)
    check_measurable(name, known, priced, level=level, groups=parts)
    declared = known.bounds.to_dict()
    facts = {"unit": data.unit, "n": n, **{key: declared.get(key) for key in ("features", "target", "classes")}}
    settings: dict[str, Any] = {"metric": name} if parts is None else {"metric": name, "by": list(parts.names)}
    claim = Claim(f"{name} of {known.name}", settings, (_RELEASED_BEFORE,), facts)
    return _Prepared(data, known, kind, name, parts, priced, n, claim)


def outlook(
    model: Any, n: int, *, metric: str, epsilon: float, delta: float | None, neighbors: str, level: float
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
    """The metric and its name, or a word on what does not go together."""
    if metric == "auto":
        metric = "accuracy" if model.is_classifier else "r2"
    if metric not in METRICS:
        raise Unsupported(f"metric must be auto, {', '.join(METRICS)}")
    kind = METRICS[metric]
    if model.is_classifier == kind.numbers:
        raise Unsupported("r2, rmse and mae are for numeric targets, the other metrics for classes: use metric='auto'")
    if kind.two_classes and model.loss.n_outputs != 1:
        raise Unsupported(f"{metric} is for two classes: use metric='accuracy' for more")
    if kind.probabilities and model.loss.n_outputs == 1 and not model.loss.sigmoid_link:
        raise Unsupported(f"{metric} needs predicted probabilities, as of DPLogisticRegression: use metric='accuracy'")
    return kind, metric


def scored(
    name: str, found: Measured, level: float, certificate: Certificate | None, n: int | None, sampling: str
) -> PrivateScore:
    """The result, with the sampling error added on both sides and nothing beyond what a score can be."""
    least, most = METRICS[name].least, METRICS[name].most
    counts = name == "confusion"  # its parts are numbers of these rows, and have no like among others
    return PrivateScore(
        metric=name,
        value=found.value,
        low=found.low,
        high=found.high,
        level=level,
        population_low=max(least, found.low - found.sampling),
        population_high=min(most, found.high + found.sampling),
        certificate=certificate,
        n=n,
        sampling=sampling,
        parts=tuple(
            ScorePart(
                part.name,
                part.value,
                part.low,
                part.high,
                None if counts else max(least if part.most is None else 0.0, part.low - part.sampling),
                None if counts else min(most if part.most is None else part.most, part.high + part.sampling),
            )
            for part in found.parts
        ),
    )
