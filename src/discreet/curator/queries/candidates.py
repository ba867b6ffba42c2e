"""A private choice among points: the exponential mechanism on integer sums of clipped losses, or of errors.

A record adds an integer in [0, B] to the score of each candidate, so one record more moves the *differences* of scores
within an interval of length B (every difference of two numbers in [0, B], less a common shift), and an exchange
within 2 B. ``exponential_choice`` with weight exp(-score / 2^m) is then of bounded range a B / 2^m.

The 0/1 loss is such a loss, within [0, 1] as it is: a record adds B where a candidate predicts the wrong class and 0
where it predicts the right one. With loss_bound = 1 a score is B times the number of errors, whose sensitivity is 1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.curator.known_answers.gradients import check_value_kernels
from discreet.curator.lattice.lattice import place_weights, unit_for
from discreet.curator.queries.scores import score_of
from discreet.curator.queries.values import ValueQuery
from discreet.errors import PlanViolation
from discreet.losses.base import Loss, Valued

if TYPE_CHECKING:
    from discreet.curator.session import Session


def scored_by(score: str, loss: Loss) -> Valued:
    """Return what candidates are compared by: the loss itself, or whether the predicted class is wrong."""
    if score not in ("loss", "zero_one") or (score == "zero_one" and loss.task != "classification"):
        raise PlanViolation("score must be loss, or zero_one where targets are classes")
    return score_of(loss, 1.0) if score == "zero_one" else loss


def select_candidate(
    session: Session,
    points: Any,
    *,
    loss_bound: float,
    offsets: Any = None,
    rho: float | None = None,
    score: str = "loss",
) -> int:
    """Return the index of the point with (nearly) the least sum of losses, each clipped to [0, loss_bound].

    Privacy
    -------
    Sensitivity: a record adds an integer in [0, B] to each score (a person's k rows B // k each, a null record 0), so
    *differences* of scores move within a range of B, 2 B under ``replace_one`` (above). The clip is in integers, after
    the kernel, so this holds for the 0/1 loss too.
    Mechanism: exponential with weight exp(-score / 2^m), a B / 2^m <= 1/multiplier; or the papers' noisy max, discrete
    Laplace noise of the same scale on each score.
    Event: ``BoundedRange`` (``PureDP`` for noisy max) of 1/multiplier; adaptive plans: rho-zCDP, charged first.
    Conditions: points and offsets depend on public and released values only. Noisy max: losses have one sign, so that a
    record more moves all scores in one direction.
    """
    points, shape = np.asarray(points, dtype=np.float64), session.domain.shape
    if points.ndim != len(shape) + 1 or points.shape[1:] != shape or len(points) == 0:
        raise PlanViolation(f"candidates must be points of shape {shape}, one next to the other")
    extra = np.zeros(len(points)) if offsets is None else np.asarray(offsets, dtype=np.float64)
    if extra.shape != (len(points),) or not np.isfinite(extra).all():
        raise PlanViolation("offsets must be one finite, public number for each candidate")
    scored = scored_by(score, session.loss)
    check_value_kernels(scored, sparse=session.engine.is_sparse)
    release = session.spend("select_candidate", loss_bound, rho=rho)
    unit = unit_for(session.multiplier(release), session.factor, loss_bound, session.largest_n_of_choices)
    placed = tuple(place_weights(point, session.engine.grid) for point in points)
    query = ValueQuery(placed, scored, unit.bound, 1 / unit.step)
    shift = np.rint((extra - extra.min()) / unit.step)
    if float(shift.max(initial=0.0)) >= 2.0**61:
        raise PlanViolation("offsets lie too far apart for the losses' scale")
    exact = -(session.engine.total(query) + shift.astype(np.int64))
    if unit.m is None:
        chosen = int(np.argmax(exact))
    elif release.mechanism == "noisy_max":
        chosen = int(np.argmax(exact + session.discrete_laplace(len(points), unit.m)))
    else:
        chosen = session.choice(exact, unit.m)
    return int(session.release(release, unit, exact, np.array([chosen]), norm="range")[0])
