"""The audit table: every solver under every relation, claimed against proved."""

from collections.abc import Callable, Iterable

from discreet.audit.audit_result import Audit
from discreet.audit.model_audit import model
from discreet.audit.solver_cases import Subject, neighbors_of
from discreet.audit.transcript_audit import transcript
from discreet.budget import Neighbors


def audited(
    subject: Subject,
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


def markdown(audits: Iterable[Audit]) -> str:
    """The table for the documentation."""
    lines = ["| solver | relation | level | claimed epsilon | proved epsilon | runs a side | confidence | verdict |"]
    lines.append("|---|---|---|---|---|---|---|---|")
    for one in audits:
        bound = "-" if one.bound is None else f"{one.bound:.2f}"
        lines.append(
            f"| {one.subject} | {one.neighbors} | {one.level} | {one.claimed:g} | {bound} | {one.runs} "
            f"| {one.confidence:g} | {one.verdict} |"
        )
    return "\n".join(lines) + "\n"


def into_page(page: str, text: str, name: str) -> str:
    """Return the page with ``text`` in place of what stands between its two markers."""
    start, end = f"<!-- {name}: generated -->", f"<!-- {name}: end -->"
    before, found, rest = page.partition(start)
    _, closed, after = rest.partition(end)
    if not (found and closed):
        raise ValueError(f"the page needs the lines {start} and {end}")
    return f"{before}{start}\n\n{text}\n\n{end}{after}"
