"""Replay: run a fit on two neighbors with the mechanisms' outputs frozen, and see what still differs.

Freeze what the mechanisms released on one data set and hand the same answers to a run on its neighbor.
Then everything a fit shows must be the same, because it may depend on declared facts and released
values only; and each release's exact sum may differ by no more than what its noise was scaled to. Both
are checked in integers and bits, without statistics: one run finds what would take an audit millions.
What replay cannot see: whether the noise has the right law (test the samplers), time, and memory.
"""

import io
import json
import logging
import math
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from enum import Enum
from fnmatch import fnmatch
from fractions import Fraction
from functools import lru_cache
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from discreet.accounting.certificate import Certificate
from discreet.budget import Neighbors
from discreet.curator import Measurement, SeededEntropy, SystemEntropy, chacha20_words, observe, use_entropy
from discreet.json_schemas import Json
from discreet.typing import Array, Integers, Words

Fit = Callable[..., Any]
"""Takes X, y and perhaps groups; returns what it fitted."""
Seen = dict[tuple[int, int], tuple[object, object]]
"""Pairs that were compared, by their ids."""


@lru_cache(maxsize=512)  # a series of replays with one seed asks for the same words again and again
def _stream(seed: int, release: int, request: int, count: int) -> Words:
    return chacha20_words(seed.to_bytes(32, "little"), count, nonce=(release, request, 0))


class AlignedEntropy:
    """A seeded stream that starts again at every release.

    How many words one release draws (a Poisson sample over n or over n + 1 units) then does not shift
    what the next ones get, so that two runs stay comparable.
    """

    name = SeededEntropy.name
    is_private = False

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._release = self._request = 0

    def words(self, count: int) -> Words:
        self._request += 1
        return _stream(self._seed, self._release, self._request, count)

    def next_release(self) -> None:
        """A release is done."""
        self._release, self._request = self._release + 1, 0


@dataclass
class Transcript:
    """What one run did and showed."""

    measurements: list[Measurement] = field(default_factory=list)
    released: list[Integers] = field(default_factory=list)
    fitted: Any = None
    raised: tuple[str, ...] = ()
    warned: list[str] = field(default_factory=list)
    logged: list[str] = field(default_factory=list)
    printed: str = ""
    complained: str = ""


class _Recorder:
    """Writes down every release, and answers with ``forced`` ones where they fit."""

    def __init__(self, transcript: Transcript, entropy: object, forced: Sequence[Integers]) -> None:
        self._transcript, self._entropy, self._forced = transcript, entropy, forced

    def __call__(self, measurement: Measurement) -> Integers:
        index = len(self._transcript.measurements)
        answer = measurement.noisy
        if index < len(self._forced) and self._forced[index].shape == answer.shape:
            answer = self._forced[index]
        self._transcript.measurements.append(measurement)
        self._transcript.released.append(answer.copy())
        if isinstance(self._entropy, AlignedEntropy):
            self._entropy.next_release()
        return answer.copy()


class _LogList(logging.Handler):
    def __init__(self, lines: list[str]) -> None:
        super().__init__(logging.NOTSET)
        self._lines = lines

    def emit(self, record: logging.LogRecord) -> None:
        self._lines.append(f"{record.name} {record.levelname}: {record.getMessage()}")


@contextmanager
def _logs(lines: list[str]) -> Iterator[None]:
    root, compiler, handler = logging.getLogger(), logging.getLogger("numba"), _LogList(lines)
    levels = root.level, compiler.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    compiler.setLevel(logging.WARNING)  # it tells its whole life at lower levels
    try:
        yield
    finally:
        root.removeHandler(handler)
        root.setLevel(levels[0])
        compiler.setLevel(levels[1])


def run(fit: Fit, data: Sequence[object], *, seed: int | None, forced: Sequence[Integers] = ()) -> Transcript:
    """Fit once and write it down. ``seed=None`` draws from the operating system.

    Fits that spread over other processes, or over threads that do not inherit the context, are not seen.
    """
    transcript = Transcript()
    entropy = SystemEntropy() if seed is None else AlignedEntropy(seed)
    out, err = io.StringIO(), io.StringIO()
    with (
        use_entropy(entropy),
        observe(_Recorder(transcript, entropy, forced)),
        warnings.catch_warnings(record=True) as caught,
        _logs(transcript.logged),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        warnings.simplefilter("always")
        try:
            transcript.fitted = fit(*data)
        except Exception as error:  # what it says is compared, whatever it is
            transcript.raised = tuple(_chain(error))
    transcript.warned = [f"{warning.category.__name__}: {warning.message}" for warning in caught]
    transcript.printed, transcript.complained = out.getvalue(), err.getvalue()
    return transcript


def _chain(error: BaseException | None) -> Iterator[str]:
    """An exception and all that are attached to it, also where a traceback would not show them."""
    while error is not None:
        yield f"{type(error).__name__}: {error}"
        error = error.__cause__ or error.__context__


_PLAIN = (str, bytes, int, Enum, type, range, Fraction, ModuleType, BuiltinFunctionType, frozenset, set, slice)


def differences(first: object, second: object, path: str = "") -> Iterator[tuple[str, str]]:
    """(path, what) for each place in which the two objects differ; a certificate's date is left out.

    What cannot be compared counts as different: an object without attributes and without an equality of
    its own could hide anything.
    """
    yield from _walk(first, second, path, {})


def _walk(a: Any, b: Any, path: str, seen: Seen) -> Iterator[tuple[str, str]]:
    if a is b or (id(a), id(b)) in seen:
        return
    seen[id(a), id(b)] = (a, b)  # holding both keeps their ids from being used again
    if type(a) is not type(b):
        yield path, f"{type(a).__name__} against {type(b).__name__}"
    elif isinstance(a, Certificate):
        yield from _walk(_undated(a), _undated(b), path, seen)
    elif isinstance(a, (np.ndarray, np.generic)):
        yield from _arrays(np.asarray(a), np.asarray(b), path, seen)
    elif isinstance(a, (float, complex)):
        if repr(a) != repr(b):  # as bits: -0.0 is not 0.0, NaN is NaN
            yield path, f"{a!r} against {b!r}"
    elif isinstance(a, _PLAIN):
        if a != b:
            yield path, f"{a!r} against {b!r}"
    elif isinstance(a, Mapping):
        yield from _mappings(a, b, path, seen)
    elif isinstance(a, (list, tuple)):
        yield from _sequences(a, b, path, seen)
    else:
        yield from _objects(a, b, path, seen)


def _undated(certificate: Certificate) -> Json:
    stored: Json = json.loads(certificate.to_json())
    del stored["created"]
    return stored


def _arrays(a: Array, b: Array, path: str, seen: Seen) -> Iterator[tuple[str, str]]:
    if a.dtype != b.dtype or a.shape != b.shape:
        yield path, f"array of {a.dtype} {a.shape} against {b.dtype} {b.shape}"
    elif a.dtype.hasobject:
        yield from _sequences(a.ravel().tolist(), b.ravel().tolist(), path, seen)
    elif a.tobytes() != b.tobytes():
        yield path, f"the values of the array {a.shape}"


def _mappings(a: Mapping[str, object], b: Mapping[str, object], path: str, seen: Seen) -> Iterator[tuple[str, str]]:
    if list(a) != list(b):
        yield path, f"keys {list(a)} against {list(b)}"
        return
    for key in a:
        yield from _walk(a[key], b[key], f"{path}.{key}".lstrip("."), seen)


def _sequences(a: Sequence[object], b: Sequence[object], path: str, seen: Seen) -> Iterator[tuple[str, str]]:
    if len(a) != len(b):
        yield path, f"{len(a)} items against {len(b)}"
        return
    for index, (first, second) in enumerate(zip(a, b, strict=True)):
        yield from _walk(first, second, f"{path}[{index}]", seen)


def _objects(a: object, b: object, path: str, seen: Seen) -> Iterator[tuple[str, str]]:
    inside, other = _contents(a), _contents(b)
    if hasattr(a, "equals"):  # data frames and their kin keep their contents out of sight
        if not a.equals(b):
            yield path, f"two different {type(a).__name__}"
    elif inside is not None and other is not None:
        yield from _mappings(inside, other, path, seen)
    elif not bool(np.all(a == b)):
        yield path, f"two {type(a).__name__} that differ, or cannot be compared"


def _contents(thing: object) -> Json | None:
    """What an object consists of; None where it does not tell."""
    if isinstance(thing, FunctionType):
        cells = [cell.cell_contents for cell in thing.__closure__ or ()]
        return {"code": thing.__code__.co_code, "defaults": thing.__defaults__, "closure": cells}
    if isinstance(thing, MethodType):
        return {"function": thing.__func__, "self": thing.__self__}
    names = [_mangled(name, kind) for kind in type(thing).__mro__ for name in _slots(kind)]
    slots = {name: getattr(thing, name) for name in names if hasattr(thing, name)}
    if hasattr(thing, "__dict__") or slots:
        return {**slots, **getattr(thing, "__dict__", {})}
    return None


def _slots(kind: type) -> tuple[str, ...]:
    slots = kind.__dict__.get("__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(slots)


def _mangled(name: str, kind: type) -> str:
    private = name.startswith("__") and not name.endswith("__")
    return f"_{kind.__name__.lstrip('_')}{name}" if private else name


CHOICES = ("linf", "range")
"""Norms of measurements that are choices: their answer is an index, not a sum with noise."""

OUTPUTS = ("attribute", "queries", "lattice", "noise", "sensitivity")
"""Kinds of findings about what a fit gives out, not what it says."""

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
    data: Sequence[object],
    neighbor: Sequence[object],
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
        moved = [finding for finding in findings if finding.kind == "sensitivity"]  # no rerun takes a sum back
        unstable = [finding for finding in _compare(again, first, private) if finding.kind in OUTPUTS]
        findings = [Finding("unstable", str(finding)) for finding in unstable]
        findings = list(_compare(again, second, private)) + (findings if not again.raised else [])
        findings = list(dict.fromkeys([*moved, *findings]))
    findings += [*_vacuous(first), *_unpaid(first, Neighbors(relation))]
    ratio = max(_largest_ratio(run_before, second) for run_before in firsts)
    return ReplayReport(tuple(findings), len(first.measurements), ratio)


def assert_replay(
    fit: Fit,
    data: Sequence[object],
    neighbor: Sequence[object],
    relation: str = "replace_one",
    *,
    private: Sequence[str] = (),
    seed: int = 0,
) -> ReplayReport:
    """Return the report of ``replay``, which takes the same arguments; raise an AssertionError if it has findings.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet import DPRidge
    >>> from discreet.testing import assert_replay
    >>> model = DPRidge(delta=1e-6, bounds=1.0, target=(0, 1), solver="gd")
    >>> assert_replay(model.fit, (np.eye(3), np.zeros(3)), (np.eye(3), np.array([1.0, 0, 0]))).releases > 0
    True
    """
    return _without_findings(replay(fit, data, neighbor, relation, private=private, seed=seed))


def fresh_noise(fit: Fit, data: Sequence[object], *, runs: int = 2) -> ReplayReport:
    """Look whether every release, output, coordinate and run has noise of its own, drawn from the operating system.

    Parameters
    ----------
    fit : callable
        As in ``replay``.
    data : sequence
        (X, y) or (X, y, groups).
    runs : int, default=2
        How many fits are compared.

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


def assert_fresh_noise(fit: Fit, data: Sequence[object], *, runs: int = 2) -> ReplayReport:
    """Return the report of ``fresh_noise``, which takes the same arguments; raise an AssertionError if it has findings.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet import DPRidge
    >>> from discreet.testing import assert_fresh_noise
    >>> model = DPRidge(delta=1e-6, bounds=1.0, target=(0, 1), solver="gd")
    >>> assert_fresh_noise(model.fit, (np.eye(3), np.zeros(3))).ok
    True
    """
    return _without_findings(fresh_noise(fit, data, runs=runs))


def _without_findings(report: ReplayReport) -> ReplayReport:
    if not report.ok:
        raise AssertionError(str(report))
    return report


def _repeated(answers: list[Measurement]) -> Iterator[Finding]:
    """Yield noise that comes twice: single cells, where equal ones are hardly ever drawn, or else whole rows."""
    noises = [np.atleast_1d(answer.noisy - answer.exact) for answer in answers]
    widths = [2.0 ** (answer.unit.m or 0) for answer in answers]
    rows = [row for noise in noises for row in noise.reshape(-1, noise.shape[-1])]
    groups = [noise for noise, width in zip(noises, widths, strict=True) if noise.size**2 / width < _CHANCE]
    if sum(noise.size for noise in noises) ** 2 / min(widths) < _CHANCE:
        groups = [np.concatenate([noise.ravel() for noise in noises])]
    twice = sum(count > 1 for group in groups for count in Counter(group.ravel().tolist()).values())
    if twice:
        yield Finding("noise", f"{twice} coordinate(s) of noise were used more than once")
    elif len({row.tobytes() for row in rows}) < len(rows):
        yield Finding("noise", "an answer's noise was used more than once")


def _compare(first: Transcript, second: Transcript, private: Sequence[str]) -> Iterator[Finding]:
    yield from _queries(first.measurements, second.measurements)
    for kind in ("raised", "warned", "logged", "printed", "complained"):
        before, after = getattr(first, kind), getattr(second, kind)
        if before != after:
            yield Finding(kind, f"{before!r} against {after!r}")
    if first.raised or second.raised:
        return
    for path, what in differences(first.fitted, second.fitted):
        if not any(fnmatch(path, pattern) for pattern in private):
            yield Finding("attribute", f"{path or 'the fitted object'}: {what}")


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
        if _norm_squared(_moved(a, b), a.norm) > _allowed(a, b) ** 2:
            ratio = _ratio(a, b)
            yield Finding("sensitivity", f"release {index} ({a.query}) moves by {ratio:.6g} of its sensitivity")


def _moved(a: Measurement, b: Measurement) -> list[int]:
    """The difference of the exact sums, in Python's integers."""
    pairs = zip(a.exact.ravel().tolist(), b.exact.ravel().tolist(), strict=True)
    return [int(first) - int(second) for first, second in pairs]


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
    claimed = [multiplier for event in certificate.events for multiplier in [event.multiplier] * event.count]
    if None in claimed:  # an event that says nothing of noise
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
