"""A private choice among points: the exponential mechanism on integer sums of clipped losses.

A record adds an integer in [0, B] to the score of each candidate, so one record more moves the *differences* of scores
within an interval of length B (every difference of two numbers in [0, B], less a common shift), and an exchange
within 2 B. ``exponential_choice`` with weight exp(-score / 2^m) is then of bounded range a B / 2^m.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.curator.engines.base import ValueQuery
from discreet.curator.engines.sparse import SparseEngine
from discreet.curator.known_answers.gradients import check_value_kernels
from discreet.curator.lattice import noise
from discreet.curator.lattice.lattice import place_weights, unit_for
from discreet.curator.session import Session
from discreet.errors import PlanViolation

Vector = NDArray[np.float64]


def select(session: Session, loss: Any, points: Vector, loss_bound: float, offsets: Any, rho: float | None) -> int:
    """The index of the point that a private choice picks; see ``Curator.select_candidate``."""
    shape = session.domain.shape
    if points.ndim != len(shape) + 1 or points.shape[1:] != shape or len(points) == 0:
        raise PlanViolation(f"candidates must be points of shape {shape}, one beside the other")
    extra = np.zeros(len(points)) if offsets is None else np.asarray(offsets, dtype=np.float64)
    if extra.shape != (len(points),) or not np.isfinite(extra).all():
        raise PlanViolation("offsets must be one finite, public number for each candidate")
    check_value_kernels(loss, sparse=isinstance(session.engine, SparseEngine))
    release = session.spend("select_candidate", loss_bound, rho=rho)
    unit = unit_for(session.multiplier(release), session.factor, loss_bound, session.largest_n_of_choices)
    query = ValueQuery(
        tuple(place_weights(point, session.engine.grid) for point in points), loss, unit.bound, 1 / unit.step
    )
    shift = np.rint((extra - extra.min()) / unit.step)
    if float(shift.max(initial=0.0)) >= 2.0**61:
        raise PlanViolation("offsets lie too far apart for the losses' scale")
    exact = -(session.engine.value_sums(query) + shift.astype(np.int64))
    if unit.m is None:
        chosen = int(np.argmax(exact))
    elif release.mechanism == "noisy_max":
        chosen = int(np.argmax(exact + noise.discrete_laplace(len(points), unit.m, session.entropy)))
    else:
        chosen = noise.exponential_choice(exact, unit.m, session.entropy)
    return int(session.release(release, unit, exact, np.array([chosen]), norm="range")[0])
