"""``discreet`` in a forked child that has imported everything already: quick enough to be killed often."""

import os
import pty
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from tests.promises.crash.children import Child

OUT, ERR = "child.stdout", "child.stderr"


@dataclass(frozen=True)
class Ended:
    """How a command ended: its exit code (or minus the signal that killed it), and what it said."""

    code: int
    stdout: str
    stderr: str


class Command:
    """A command that runs in ``folder``, with ``around`` (a context manager) about it."""

    def __init__(
        self, folder: Path, *arguments: object, around: Callable[[], Any] | None = None, terminal: int | None = None
    ) -> None:
        self._folder = folder
        words = [str(argument) for argument in arguments]
        self._child = Child(lambda: _ran(folder, words, around, terminal))
        self.pid = self._child.pid

    def send(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    def join(self) -> Ended:
        outcome = self._child.join()
        code = -outcome.signal if outcome.signal else outcome.value
        return Ended(code, (self._folder / OUT).read_text(), (self._folder / ERR).read_text())


def command(folder: Path, *arguments: object, around: Callable[[], Any] | None = None) -> Ended:
    """Run a command to its end."""
    return Command(folder, *arguments, around=around).join()


def on_terminal(folder: Path, *arguments: object, around: Callable[[], Any] | None = None) -> Ended:
    """Run a command whose stderr is a terminal."""
    ours, theirs = pty.openpty()
    child = Command(folder, *arguments, around=around, terminal=theirs)
    os.close(theirs)
    shown = b""
    with suppress(OSError):  # how a terminal tells its end
        while part := os.read(ours, 1 << 16):
            shown += part
    os.close(ours)
    ended = child.join()
    return Ended(ended.code, ended.stdout, shown.decode())


def _ran(folder: Path, words: list[str], around: Callable[[], Any] | None, terminal: int | None) -> int:
    """As the installed script does it; what Python itself would print of an exception is printed."""
    from discreet.cli import main

    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(folder)
    for number, name in ((1, OUT), (2, ERR)):
        os.dup2(os.open(name, os.O_CREAT | os.O_WRONLY | os.O_TRUNC), number)
    if terminal is not None:
        os.dup2(terminal, 2)
    sys.stdout, sys.stderr = (os.fdopen(os.dup(number), "w") for number in (1, 2))
    sys.argv = ["discreet", *words]
    try:
        with ExitStack() as stack:
            stack.enter_context(
                patch("discreet.report.model_report.cost_forecast", lambda *_, **__: None)
            )  # it takes seconds
            if around is not None:
                stack.enter_context(around())
            main()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    return code


@dataclass(frozen=True)
class Point:
    """A moment in a command's life: before or after a function's ``nth`` call."""

    place: str
    after: bool = False
    nth: int = 1

    @contextmanager
    def meets(self, act: Callable[[], None]) -> Iterator[None]:
        """Do something at that moment."""
        module, *rest = self.place.split(":")[0].split("/")
        owner: Any = import_module(module)
        for part in rest:
            owner = getattr(owner, part)
        name = self.place.split(":")[1]
        call, calls = getattr(owner, name), 0

        def met(*arguments: Any, **words: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls == self.nth and not self.after:
                act()
            found = call(*arguments, **words)
            if calls == self.nth and self.after:
                act()
            return found

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(owner, name, met)
            yield

    def sends(self, number: signal.Signals) -> Callable[[], Any]:
        """The command kills itself at that moment."""
        return lambda: self.meets(lambda: os.kill(os.getpid(), number))
