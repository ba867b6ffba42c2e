"""Forked children with a time limit: what they returned, or what killed them."""

import os
import pickle
import resource
import signal
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

PATIENCE = 60


@dataclass(frozen=True)
class Outcome:
    """What a child returned (or None), and the signal that killed it (or 0)."""

    value: Any
    signal: int


class Child:
    """A forked child that runs ``call`` and hands back what it returns. One that hangs is ended by its own alarm."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self._pipe, write = os.pipe()
        self.pid = os.fork()
        if self.pid:
            os.close(write)
            return
        try:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(PATIENCE)
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            os.set_inheritable(write, False)
            try:
                value = call()
            except BaseException as error:
                value = error
            with os.fdopen(write, "wb") as file:
                file.write(pickle.dumps(value))
        finally:
            os._exit(0)

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)

    def join(self) -> Outcome:
        with os.fdopen(self._pipe, "rb") as file:
            text = file.read()
        _, status = os.waitpid(self.pid, 0)
        return Outcome(pickle.loads(text) if text else None, os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0)


def forked(call: Callable[[], Any]) -> Outcome:
    """Run in a child, and wait for it."""
    return Child(call).join()
