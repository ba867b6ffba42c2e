"""Replay: run a fit on two neighbors with the mechanisms' outputs frozen, and see what still differs.

Freeze what the mechanisms released on one data set and hand the same answers to a run on its neighbor.
Then everything a fit shows must be the same, because it may depend on declared facts and released
values only; and each release's exact sum may differ by no more than what its noise was scaled to. Both
are checked in integers and bits, without statistics: one run finds what would take an audit millions.
What replay cannot see: whether the noise has the right law (test the samplers), time, and memory.
"""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.accounting.events import BoundedRange, Event, Gaussian, Laplace, PureDP
from discreet.audit.deep_diff import differences
from discreet.audit.recorder import Fit, Transcript, run
from discreet.budget import Neighbors
from discreet.curator import Measurement

CHOICES = ("linf", "range")
"""Norms of measurements that are choices: their answer is an index, not a sum with noise."""

_CHANCE = 1e-9
"""Two noises may be equal by chance where that is likelier than this; then whole answers are compared."""


@dataclass(frozen=True)
class Finding:
    """One way in which a fit gives away more than it says.

    Parameters
    ----------
    kind : str
        The rule that is broken.
    text : str
        What was found.

    Examples
    --------
    >>> from discreet.testing import Finding
    >>> print(Finding("noise", "something was released without noise"))
    noise: something was released without noise
    """

    kind: str
    text: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.text}"


@dataclass(frozen=True)
class ReplayReport:
    """What a replay found.

    Parameters
    ----------
    findings : tuple of Finding
        Empty where nothing was found.
    releases : int
        How many answers were compared.
    ratio : float, default=0.0
        The largest difference of exact sums over what the noise covers.

    Examples
    --------
    >>> from discreet.testing import ReplayReport
    >>> ReplayReport((), releases=3).ok
    True
    """

    findings: tuple[Finding, ...]
    releases: int
    ratio: float = 0.0

    @property
    def ok(self) -> bool:
        """Whether nothing was found."""
        return not self.findings

    def __str__(self) -> str:
        verdict = "replays" if self.ok else f"{len(self.findings)} finding(s)"
        head = f"{verdict}: {self.releases} releases, largest difference {self.ratio:.4g} of the sensitivity"
        return "\n".join([head, *(f"  {finding}" for finding in self.findings)])


def replay(
    fit: Fit,
    data: Sequence[Any],
    neighbor: Sequence[Any],
    relation: str = "replace_one",
    *,
    private: Sequence[str] = (),
    seed: int = 0,
) -> ReplayReport:
    """Run ``fit(X, y, groups)`` on data, then on a neighbor with the same answers, and compare.

    Parameters
    ----------
    fit : callable
        Returns the fitted object. Its attributes are compared in depth and in bits.
    data, neighbor : sequence
        (X, y) or (X, y, groups), such as ``neighbor_pairs`` makes. For fits that draw Poisson samples under
        ``add_remove`` the changed unit must be the last (of persons: in the order of their names): with
        the same seed both runs then draw the same units, except for that one.
    relation : str, default="replace_one"
        The relation under which the two are neighbors.
    private : sequence of str, default=()
        Patterns of attribute paths (``"diagnostics_.*"``) that are not public and may differ. Coefficients do
        not belong here: with the answers frozen even they are equal.
    seed : int, default=0
        Of the samples.

    Returns
    -------
    ReplayReport
        What differs.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet import DPRidge
    >>> from discreet.testing import replay
    >>> model = DPRidge(delta=1e-6, bounds=1.0, target=(0, 1), solver="gd")
    >>> replay(model.fit, (np.eye(3), np.zeros(3)), (np.eye(3), np.array([1.0, 0, 0]))).ok
    True
    """
    first = run(fit, data, seed=seed)
    second = run(fit, neighbor, seed=seed, forced=first.released)
    firsts, findings = [first], list(_compare(first, second, private))
    if findings:
        # imports and compilers speak on a first run only; and a fit that differs from itself is another fault
        again = run(fit, data, seed=seed, forced=first.released)
        firsts.append(again)
        moved = [found for found in findings if found.kind == "sensitivity"]  # no rerun takes back a sum that was made
        findings = [Finding("unstable", str(found)) for found in _compare(again, first, private) if _is_output(found)]
        findings = list(_compare(again, second, private)) + (findings if not again.raised else [])
        findings = list(dict.fromkeys([*moved, *findings]))
    findings += [*_vacuous(first), *_unpaid(first, Neighbors(relation))]
    ratio = max(_largest_ratio(one, second) for one in firsts)
    return ReplayReport(tuple(findings), len(first.measurements), ratio)


def assert_replay(
    fit: Fit,
    data: Sequence[Any],
    neighbor: Sequence[Any],
    relation: str = "replace_one",
    *,
    private: Sequence[str] = (),
    seed: int = 0,
) -> ReplayReport:
    """Raise an AssertionError with the findings of ``replay``, if there are any.

    Parameters
    ----------
    fit : callable
        As in ``replay``.
    data, neighbor : sequence
        As in ``replay``.
    relation : str, default="replace_one"
        As in ``replay``.
    private : sequence of str, default=()
        As in ``replay``.
    seed : int, default=0
        As in ``replay``.

    Returns
    -------
    ReplayReport
        Without findings.

    Raises
    ------
    AssertionError
        If something differs.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet import DPRidge
    >>> from discreet.testing import assert_replay
    >>> model = DPRidge(delta=1e-6, bounds=1.0, target=(0, 1), solver="gd")
    >>> assert_replay(model.fit, (np.eye(3), np.zeros(3)), (np.eye(3), np.array([1.0, 0, 0]))).releases > 0
    True
    """
    report = replay(fit, data, neighbor, relation, private=private, seed=seed)
    if not report.ok:
        raise AssertionError(str(report))
    return report


def fresh_noise(fit: Fit, data: Sequence[Any], *, runs: int = 2) -> ReplayReport:
    """Look whether every release, output, coordinate and run has noise of its own, drawn from the operating system.

    Parameters
    ----------
    fit : callable
        As in ``replay``.
    data : sequence
        (X, y) or (X, y, groups).
    runs : int, default=2
        How many fits are compared.

    Returns
    -------
    ReplayReport
        Noise that is missing or comes twice.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet import DPRidge
    >>> from discreet.testing import fresh_noise
    >>> fresh_noise(DPRidge(delta=1e-6, bounds=1.0, target=(0, 1), solver="gd").fit, (np.eye(3), np.zeros(3))).ok
    True
    """
    transcripts = [run(fit, data, seed=None) for _ in range(runs)]
    findings = list(_vacuous(transcripts[0]))
    seen = [measurement for transcript in transcripts for measurement in transcript.measurements]
    answers = [measurement for measurement in seen if not _is_draw(measurement)]
    if any(measurement.unit.m is None for measurement in answers):
        findings.append(Finding("noise", "something was released without noise"))
    sums = [answer for answer in answers if answer.norm not in CHOICES and answer.unit.m is not None]
    if sums:  # a choice shows no noise of its own
        findings += _repeated(sums)
    return ReplayReport(tuple(findings), len(seen))


def assert_fresh_noise(fit: Fit, data: Sequence[Any], *, runs: int = 2) -> ReplayReport:
    """Raise an AssertionError if ``fresh_noise`` finds noise that is missing or comes twice.

    Parameters
    ----------
    fit : callable
        As in ``replay``.
    data : sequence
        (X, y) or (X, y, groups).
    runs : int, default=2
        How many fits are compared.

    Returns
    -------
    ReplayReport
        Without findings.

    Raises
    ------
    AssertionError
        If noise is missing or comes twice.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet import DPRidge
    >>> from discreet.testing import assert_fresh_noise
    >>> model = DPRidge(delta=1e-6, bounds=1.0, target=(0, 1), solver="gd")
    >>> assert_fresh_noise(model.fit, (np.eye(3), np.zeros(3))).ok
    True
    """
    report = fresh_noise(fit, data, runs=runs)
    if not report.ok:
        raise AssertionError(str(report))
    return report


def _repeated(answers: list[Measurement]) -> Iterator[Finding]:
    noises = (np.atleast_1d(answer.noisy - answer.exact) for answer in answers)
    rows = [row for noise in noises for row in noise.reshape(-1, noise.shape[-1])]
    cells = [int(cell) for row in rows for cell in row]
    width = min(2.0 ** (answer.unit.m or 0) for answer in answers)
    if len(cells) ** 2 / width < _CHANCE:
        twice = [cell for cell, count in Counter(cells).items() if count > 1]
        if twice:
            yield Finding("noise", f"{len(twice)} coordinate(s) of noise were used more than once")
    elif len({row.tobytes() for row in rows}) < len(rows):
        yield Finding("noise", "an answer's noise was used more than once")


def _compare(first: Transcript, second: Transcript, private: Sequence[str]) -> Iterator[Finding]:
    yield from _queries(first.measurements, second.measurements)
    for kind in ("raised", "warned", "logged", "printed", "complained"):
        one, other = getattr(first, kind), getattr(second, kind)
        if one != other:
            yield Finding(kind, f"{one!r} against {other!r}")
    if first.raised or second.raised:
        return
    for path, what in differences(first.fitted, second.fitted):
        if not any(fnmatch(path, pattern) for pattern in private):
            yield Finding("attribute", f"{path or 'the fitted object'}: {what}")


def _is_output(finding: Finding) -> bool:
    return finding.kind in ("attribute", "queries", "lattice", "noise", "sensitivity")


def _alike(a: Measurement, b: Measurement) -> bool:
    return (a.query, a.norm, a.exact.shape, a.exact.dtype) == (b.query, b.norm, b.exact.shape, b.exact.dtype)


def _queries(first: list[Measurement], second: list[Measurement]) -> Iterator[Finding]:
    if len(first) != len(second):
        yield Finding("queries", f"{len(first)} releases against {len(second)}")
    for index, (a, b) in enumerate(zip(first, second, strict=False)):
        if not _alike(a, b):
            yield Finding("queries", f"release {index} is {a.query} {a.exact.shape} against {b.query} {b.exact.shape}")
            continue
        if a.unit != b.unit or a.factor != b.factor:
            yield Finding("lattice", f"release {index} ({a.query}) has another lattice or factor")
        elif a.norm not in CHOICES and (a.noisy - a.exact != b.noisy - b.exact).any():
            yield Finding("noise", f"the noise of release {index} ({a.query}) depends on the data")
        if _exceeds(a, b):
            ratio = _ratio(a, b)
            yield Finding("sensitivity", f"release {index} ({a.query}) moves by {ratio:.6g} of its sensitivity")


def _moved(a: Measurement, b: Measurement) -> list[int]:
    """The difference of the exact sums, in Python's integers."""
    pairs = zip(a.exact.ravel().tolist(), b.exact.ravel().tolist(), strict=True)
    return [int(one) - int(other) for one, other in pairs]


def _norm_squared(moved: list[int], norm: str) -> int:
    if norm == "l2":
        return sum(step * step for step in moved)
    if norm == "l1":
        return sum(abs(step) for step in moved) ** 2
    if norm == "linf":
        return max((abs(step) for step in moved), default=0) ** 2
    if norm == "range":  # only differences of scores matter to a choice
        return (max(moved, default=0) - min(moved, default=0)) ** 2
    raise ValueError(f"replay does not know the norm {norm!r}: use 'l1', 'l2', 'linf' or 'range'")


def _allowed(a: Measurement, b: Measurement) -> int | Fraction:
    return min(a.factor * a.unit.bound, b.factor * b.unit.bound)


def _exceeds(a: Measurement, b: Measurement) -> bool:
    return _norm_squared(_moved(a, b), a.norm) > _allowed(a, b) ** 2


def _ratio(a: Measurement, b: Measurement) -> float:
    return math.sqrt(Fraction(_norm_squared(_moved(a, b), a.norm)) / _allowed(a, b) ** 2)


def _largest_ratio(first: Transcript, second: Transcript) -> float:
    pairs = zip(first.measurements, second.measurements, strict=False)
    return max((_ratio(a, b) for a, b in pairs if _alike(a, b)), default=0.0)


def _vacuous(transcript: Transcript) -> Iterator[Finding]:
    """A fit that fails, or asks nothing, proves nothing."""
    if transcript.raised:
        yield Finding("vacuous", f"the fit raised on the data itself: {transcript.raised[0]}")
    elif not transcript.measurements:
        yield Finding("vacuous", "no release was seen: fit in this thread, and without an observer of your own")


def _unpaid(transcript: Transcript, relation: Neighbors) -> Iterator[Finding]:
    """The certificate, where there is one, names the relation and at least as many, as noisy releases as there were."""
    certificate = getattr(transcript.fitted, "certificate_", None)
    if certificate is None:
        return
    if certificate.neighbors != relation:
        yield Finding("price", f"the certificate is for {certificate.neighbors}, not for {relation}")
    claimed = [multiplier for event in certificate.events for multiplier in _multipliers(event)]
    if None in claimed:
        return
    realized = sorted(_realized(measurement) for measurement in transcript.measurements if not _is_draw(measurement))
    if len(realized) > len(claimed):
        yield Finding("price", f"{len(realized)} releases were made and {len(claimed)} paid for")
    elif any(has < Fraction(needs) for has, needs in zip(realized, sorted(claimed), strict=False)):
        yield Finding("price", "a release has less noise than the certificate says")


def _is_draw(measurement: Measurement) -> bool:
    """Whether the answer itself is drawn, from a law of its own, and no noise is added to anything."""
    return measurement.query.startswith("sample_")


def _realized(measurement: Measurement) -> Fraction:
    """Noise over sensitivity; for a selection, over the range by which scores can move apart."""
    m = measurement.unit.m
    spread = 2 if measurement.norm == "linf" else 1
    return Fraction(0 if m is None else 1 << m) / (spread * measurement.factor * measurement.unit.bound)


def _multipliers(event: Event) -> list[Any]:
    """The noise multipliers that an event pays for; None where it says nothing of noise."""
    inner = event.inner
    if isinstance(inner, (BoundedRange, PureDP)):
        return [1 / Fraction(inner.epsilon)] * inner.count
    return [inner.noise_multiplier] * inner.count if isinstance(inner, (Gaussian, Laplace)) else [None]
