"""The audit table: every solver under every relation, claimed against proved."""

from collections.abc import Callable

from discreet.audit.audit_result import Audit
from discreet.audit.model_audit import model
from discreet.audit.solver_cases import SolverCase, neighbors_of
from discreet.audit.transcript_audit import transcript
from discreet.budget import Neighbors


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
