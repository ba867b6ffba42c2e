"""One run of a fit with everything written down: what it asked, what it got, what it returned and said."""

import io
import logging
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from discreet.curator import Measurement, SeededEntropy, SystemEntropy, chacha20_words, observe, use_entropy
from discreet.typing import Integers, Words

Fit = Callable[..., Any]
"""Called with (X, y, groups); returns the fitted object."""


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

    def __init__(self, transcript: Transcript, entropy: Any, forced: Sequence[Integers]) -> None:
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


def run(fit: Fit, data: Sequence[Any], *, seed: int | None, forced: Sequence[Integers] = ()) -> Transcript:
    """Fit once and write it down. ``seed=None`` draws from the operating system.

    Fits that spread over other processes, or over threads that do not inherit the context, are not seen.
    """
    transcript = Transcript()
    entropy: Any = SystemEntropy() if seed is None else AlignedEntropy(seed)
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
