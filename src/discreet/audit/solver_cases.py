"""Registered solvers as cases of audits: settings under which a canary shows all it can, and two neighbors.

One feature, a handful of records, and steps so short that the weights stay near 0: there the canary's gradient is
longer than the clip, whatever the noise did before, so that it contributes the whole sensitivity to every answer.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from discreet.audit.guessing import model, transcript
from discreet.audit.replay_pair import Fit
from discreet.audit.result import Audit
from discreet.bounds import Bounds
from discreet.budget import Neighbors
from discreet.models.classification import DPLogisticRegression
from discreet.solvers.base import SOLVERS, Solver, audit_case
from discreet.typing import Array

ROWS = 2
BOUNDS = Bounds(features=1.0, classes=(0, 1), n=None)


@dataclass(frozen=True)
class SolverCase:
    """A solver, and how it is audited: see ``AuditCase``."""

    name: str
    solver: Solver | str
    level: str = "transcript"
    alpha: float = 0.0
    effort: float = 1.0
    replays: bool = True

    def fit(self, epsilon: float, delta: float, relation: Neighbors) -> Fit:
        """A fit function at this claim."""
        return partial(_fit, self, epsilon, delta, relation)


def _fit(
    subject: SolverCase, epsilon: float, delta: float, relation: Neighbors, X: object, y: object, groups: object = None
) -> DPLogisticRegression:
    bounds = BOUNDS if relation.n_is_public else BOUNDS.with_facts(n=ROWS)
    model = DPLogisticRegression(
        epsilon=epsilon,
        delta=delta,
        bounds=bounds,
        penalty="l2" if subject.alpha else None,
        alpha=subject.alpha,
        solver=subject.solver,
        neighbors=str(relation),
        fit_intercept=False,
        ledger=False,
    )
    return model.fit(X, y, groups)


def solver_case(name: str) -> SolverCase:
    """Return the case that a registered solver makes, as its own file says."""
    case = audit_case(name)
    return SolverCase(name, case.solver, case.level, case.alpha, case.effort, case.replays)


def solver_cases() -> tuple[SolverCase, ...]:
    """Return all that can be audited by name."""
    return tuple(solver_case(name) for name in SOLVERS.names())


def neighbors_of(relation: Neighbors) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    """Two tables of one feature: a canary's label is exchanged, or it is blanked, or there is one more."""
    X, y = np.ones((ROWS, 1)), np.ones(ROWS, dtype=int)
    if relation is Neighbors.REPLACE_ONE:
        other = y.copy()
        other[0] = 0
        return (X, y), (X, other)
    if relation is Neighbors.ZERO_OUT:
        blank = X.copy()
        blank[0] = np.nan
        return (X, y), (blank, y)
    return (X, y), (np.ones((ROWS + 1, 1)), np.ones(ROWS + 1, dtype=int))


def audited(
    subject: SolverCase,
    relation: Neighbors | str,
    *,
    epsilon: float,
    delta: float,
    runs: int,
    confidence: float,
    progress: Callable[[int, int], None] | None = None,
) -> Audit:
    """One solver under one relation, at the level that suits it."""
    relation = Neighbors(relation)
    data, neighbor = neighbors_of(relation)
    fit, count = subject.fit(epsilon, delta, relation), max(50, round(runs * subject.effort))
    if subject.level == "transcript":
        return transcript(
            fit, data, neighbor, runs=count, confidence=confidence, subject=subject.name, progress=progress
        )
    return model(
        fit,
        data,
        neighbor,
        epsilon=epsilon,
        delta=delta,
        neighbors=str(relation),
        runs=count,
        confidence=confidence,
        events=fit(*data).certificate_.events,
        subject=subject.name,
        progress=progress,
    )
