"""One call with hostile parameters, what became of it, and many of them in processes that may crash."""

import json
import linecache
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np

from discreet import DiscreetError, Ledger
from tests.fuzz.entries import DATASET, entries
from tests.fuzz.values import VALUES

SERVED, REFUSED, LATE = "served", "refused", "refused after the charge, which the message says"
FOREIGN, SILENT, CRASH, ENDLESS = "foreign error", "charged without a word", "signal", "endless"
FAILURES = (FOREIGN, SILENT, CRASH, ENDLESS)
SECONDS = 60
BATCH = 500
ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Case:
    """A call: what is called, and the names of the values that stand for some of its parameters."""

    entry: str
    words: dict[str, str]

    def __str__(self) -> str:
        return f"{self.entry}({', '.join(f'{name}={value}' for name, value in self.words.items())})"


@dataclass(frozen=True)
class Outcome:
    """What became of a call."""

    case: str
    kind: str
    text: str = ""


@dataclass(frozen=True)
class Report:
    """What became of all calls."""

    outcomes: list[Outcome]
    seconds: float
    counts: Counter[str] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "counts", Counter(outcome.kind for outcome in self.outcomes))

    @property
    def failures(self) -> list[Outcome]:
        """Calls that ended otherwise than in a release, or in an error of ours before the charge."""
        return [outcome for outcome in self.outcomes if outcome.kind in FAILURES]

    def __str__(self) -> str:
        kinds = (SERVED, REFUSED, LATE, *FAILURES)
        counted = ", ".join(f"{self.counts[kind]:,} {kind}" for kind in kinds)
        return f"{len(self.outcomes):,} calls in {self.seconds:.0f} s: {counted}"


class Endless(BaseException):
    """A call took too long."""


@contextmanager
def _limited() -> Iterator[None]:
    def stop(*_: Any) -> None:
        raise Endless

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def is_ours(error: BaseException) -> bool:
    """Say whether an error is discreet's own, or one that a line of discreet raises in its own words."""
    if isinstance(error, DiscreetError):
        return True
    frame = traceback.extract_tb(error.__traceback__)[-1]
    line = linecache.getline(frame.filename, frame.lineno or 0).strip()
    return f"{os.sep}src{os.sep}discreet{os.sep}" in frame.filename and line.startswith("raise ")


def says_charged(error: BaseException) -> bool:
    """Say whether an error tells that something was charged."""
    return "charged" in " ".join([str(error), *getattr(error, "__notes__", [])])


def call(case: Case) -> Outcome:
    """Make a call, charged to a ledger of its own, and look at what became of it."""
    ledger = Ledger(":memory:")
    ledger.grant(DATASET, 1e6, 0.5)
    account = {"ledger": ledger, "dataset": DATASET}
    words = {name: VALUES[value]() for name, value in case.words.items()}
    try:
        with _limited(), warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            entries()[case.entry].run(account, words)
    except Endless:
        return Outcome(str(case), ENDLESS)
    except (Exception, SystemExit) as error:
        charged = len(ledger.entries()) > 1
        text = f"{type(error).__name__}: {error}"[:300]
        if not is_ours(error):
            frame = traceback.extract_tb(error.__traceback__)[-1]
            where = f" ({Path(frame.filename).name}:{frame.lineno}{', charged' if charged else ''})"
            return Outcome(str(case), FOREIGN, text + where)
        if charged:
            return Outcome(str(case), LATE if says_charged(error) else SILENT, text)
        return Outcome(str(case), REFUSED, text)
    return Outcome(str(case), SERVED)


def cases(*, pairs: bool = False, only: Sequence[str] = ()) -> list[Case]:
    """Return every case of one hostile parameter; with ``pairs`` also some of two, of values that differ in kind."""
    found = []
    for entry in entries().values():
        if only and not any(part.lower() in entry.name.lower() for part in only):
            continue
        found += [Case(entry.name, {name: value}) for name, value in product(entry.parameters, VALUES)]
        if pairs:
            some = list(VALUES)[::5]
            both = product(combinations(entry.parameters, 2), some, some)
            found += [Case(entry.name, {a: x, b: y}) for (a, b), x, y in both]
    return found


def drawn(count: int | None, seed: int, **which: Any) -> list[Case]:
    """Return so many cases by lot, None for all."""
    found = cases(**which)
    if count is None or count >= len(found):
        return found
    return random.Random(seed).sample(found, count)


def fuzz(chosen: Sequence[Case], *, progress: Callable[[int], None] = lambda more: None) -> Report:
    """Make calls one after the other in other processes, each of which may crash."""
    begin, outcomes = time.monotonic(), list[Outcome]()
    for batch in _batches(chosen):
        left = list(batch)
        while left:
            ended = _in_a_process(left)
            outcomes += ended
            left = left[len(ended) :]
            progress(len(ended))
    return Report(outcomes, time.monotonic() - begin)


def _batches(chosen: Sequence[Case]) -> Iterator[Sequence[Case]]:
    for first in range(0, len(chosen), BATCH):
        yield chosen[first : first + BATCH]


def _in_a_process(some: Sequence[Case]) -> list[Outcome]:
    """Return what became of the calls up to the end, or up to the one that ended the process."""
    command = [sys.executable, "-X", "faulthandler", "-m", "tests.fuzz.calls"]
    text = "\n".join(json.dumps(asdict(case)) for case in some)
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}", "MALLOC_PERTURB_": "165"}
    with tempfile.TemporaryDirectory() as folder:
        ran = subprocess.run(command, input=text, capture_output=True, text=True, cwd=folder, env=environment)
    outcomes = [Outcome(**json.loads(line)) for line in ran.stdout.splitlines() if line.startswith("{")]
    if ran.returncode:
        told = f"exit code {ran.returncode}: {ran.stderr[-600:]}"
        outcomes.append(Outcome(str(some[len(outcomes)]), CRASH, told))
    return outcomes


def serve() -> None:
    """Make the calls that stand on the standard input, a line each, and write what became of them."""
    for line in sys.stdin.read().splitlines():
        if json.loads(line)["entry"] == os.environ.get("DISCREET_FUZZ_CRASH"):  # a test's control
            os.abort()
        print(json.dumps(asdict(call(Case(**json.loads(line))))), flush=True)


if __name__ == "__main__":
    serve()
