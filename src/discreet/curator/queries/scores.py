"""How well a linear model predicts the records, with noise: what a private selection compares candidates by.

A record is *bad* by a number in [0, 1]: 1 for a wrong class and 0 for the right one; for numbers the squared error over
that of a declared error, at most 1. The score is the sum over records of 1/2 - bad. Centering halves what one
record can do under ``zero_out`` and ``add_remove``, since a null record counts 0, in the middle.

On the lattice a row's limit is L = B (B // k for one of a person's k rows, 0 for a null row), its badness an integer
v in [0, L], and it adds L - 2 v, within +-L. Both the sum of L and that of v come from the engines' sums of clipped
losses, the first as the badness of a score for which every record is bad.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from discreet.curator.known_answers.gradients import check_value_kernels
from discreet.curator.lattice.lattice import place_weights
from discreet.curator.queries.values import ValueQuery
from discreet.errors import PlanViolation
from discreet.losses.base import Loss, least, nothing, value, values
from discreet.losses.sigmoid import exp
from discreet.typing import Floats

if TYPE_CHECKING:
    from discreet.curator.session import Session

QUERY = "noisy_score"


class WrongSign(NamedTuple):
    """Badness of a classifier of two classes, -1 and 1: 1 for the wrong one, and never below ``floor``."""

    floor: float
    n_outputs: int = 1


class WrongClass(NamedTuple):
    """Badness of a classifier of several: 1 where the predicted class is not the target, and never below ``floor``."""

    floor: float
    n_outputs: int


class ClippedError(NamedTuple):
    """Badness of a regression: min(1, (prediction - target)^2 / bound^2), and never below ``floor``.

    ``limit`` is 0 where the margin is the prediction, else that of a Poisson loss, whose prediction is exp(margin).
    """

    floor: float
    bound: float
    limit: float
    n_outputs: int = 1


Score = WrongSign | WrongClass | ClippedError


@value.of(WrongSign)
def _wrong_sign(score, margin, target):  # type: ignore[no-untyped-def]
    predicted = 1.0 if margin > 0.0 else -1.0
    return score.floor if predicted == target else 1.0


@values.of(WrongClass)
def _wrong_class(score, margins, target):  # type: ignore[no-untyped-def]
    top = 0
    for k in range(1, margins.shape[0]):
        if margins[k] > margins[top]:
            top = k
    return score.floor if top == target else 1.0


@value.of(ClippedError)
def _error(score, margin, target):  # type: ignore[no-untyped-def]
    prediction = margin
    if score.limit > 0.0:
        prediction = exp(min(max(margin, -score.limit), score.limit))
    share = (prediction - target) / score.bound
    bad = share * share
    return max(score.floor, bad if bad < 1.0 else 1.0)


def _of_one(score, margins, target):  # type: ignore[no-untyped-def]
    return value(score, margins[0], target)


values.of(WrongSign)(_of_one)
values.of(ClippedError)(_of_one)
least.of(WrongSign)(nothing)
least.of(WrongClass)(nothing)
least.of(ClippedError)(nothing)


def score_of(loss: Loss, error: float, floor: float = 0.0) -> Score:
    """The score that belongs to a loss; ``error`` is the error that counts as wholly bad, in training coordinates."""
    if loss.task == "classification":
        return WrongSign(floor) if loss.n_outputs == 1 else WrongClass(floor, loss.n_outputs)
    if not (math.isfinite(error) and error > 0):
        raise PlanViolation("the error that counts as wholly bad must be positive and finite: declare a target range")
    return ClippedError(floor, float(error), loss.limit if loss.log_link else 0.0)


def noisy_score(session: Session, w: Floats, *, error: float = 1.0) -> float:
    """Return the sum over records of 1/2 - bad, plus noise.

    Privacy
    -------
    Sensitivity: a record adds an integer within +-B lattice steps (1/2 in real units; above), a null record 0, a
    person's k rows +-(B // k) each: B, 2 B under ``replace_one``.
    Mechanism: sum + round(2^m N(0, 1)), or discrete Laplace of scale 2^m.
    Event: ``Gaussian`` (``Laplace``) at 2^m / sensitivity >= the planned multiplier.
    Conditions: w and error are public or released; here the model was fitted on other records, so that both may cost
    the whole budget of a run (``records/split.py``).
    """
    if w.shape != session.domain.shape:
        raise PlanViolation(f"weights must have shape {session.domain.shape}")
    bad = score_of(session.loss, error)
    check_value_kernels(bad, sparse=session.engine.is_sparse)
    point = place_weights(w, session.engine.grid)
    release = session.spend(QUERY)
    unit = session.unit(release, 0.5)
    drawn = session.noise(release, unit, 1)
    limits, found = (
        session.engine.total(ValueQuery((point,), score, unit.bound, float(unit.bound)))
        for score in (bad._replace(floor=1.0), bad)
    )
    exact = limits - 2 * found
    return float(session.release(release, unit, exact, exact + drawn)[0] * unit.step)
