"""What a fit is doing, and how much memory it takes, watched from inside its process."""

import threading
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self
from unittest import mock


class Stages:
    """Seconds in reading and encoding, in passes over records, and in recoding them."""

    def __init__(self) -> None:
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._passes: defaultdict[str, int] = defaultdict(int)
        self._patches: list[Any] = []

    @property
    def seconds(self) -> dict[str, float]:
        """Return seconds by stage, with how often each was entered."""
        return {f"{name} x {self._passes[name]}": taken for name, taken in self._seconds.items()}

    def __enter__(self) -> Self:
        from discreet.curator import engines as parts
        from discreet.curator.records import recoding

        for place, name, stage in (
            ("discreet.curator.private_data", "admit_stream", "read and encode"),
            (parts.PartedEngine, "total", "pass"),
            (recoding.Placement, "of", "recode"),
        ):
            self._watch(place, name, stage)
        return self

    def _watch(self, place: Any, name: str, stage: str) -> None:
        owner = __import__(place, fromlist=[name]) if isinstance(place, str) else place
        honest: Callable[..., Any] = getattr(owner, name)

        def timed(*args: Any, **words: Any) -> Any:
            if threading.current_thread() is not threading.main_thread():
                return honest(*args, **words)
            kind = f"{stage}: {type(args[1]).__name__}" if stage == "pass" else stage
            start = time.perf_counter()
            try:
                return honest(*args, **words)
            finally:
                self._seconds[kind] += time.perf_counter() - start
                self._passes[kind] += 1

        patch = mock.patch.object(owner, name, timed)
        patch.start()
        self._patches.append(patch)

    def __exit__(self, *_: object) -> None:
        for patch in self._patches:
            patch.stop()


class Memory:
    """The most memory beyond what there was before, in MB: the process' own, and pages of files that it maps."""

    def __init__(self, every: float = 0.02) -> None:
        self._every, self._stop = every, threading.Event()
        self._start = self._now()
        self._most = self._start

    @staticmethod
    def _now() -> tuple[float, float]:
        lines = Path("/proc/self/status").read_text().splitlines()
        found = {line.split(":")[0]: int(line.split()[1]) / 1e3 for line in lines if line.startswith("Rss")}
        return found["RssAnon"], found["RssFile"] + found["RssShmem"]

    @property
    def anonymous(self) -> float:
        """Memory of the process' own."""
        return self._most[0] - self._start[0]

    @property
    def mapped(self) -> float:
        """Pages of scratch files, which the system gives up on demand."""
        return self._most[1] - self._start[1]

    def _watch(self) -> None:
        while not self._stop.wait(self._every):
            now = self._now()
            self._most = max(self._most[0], now[0]), max(self._most[1], now[1])

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
