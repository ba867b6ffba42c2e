"""The command line: ``discreet``."""

import os
import signal
import sys
import threading
from collections.abc import Callable
from functools import partial
from typing import Any


def main() -> None:
    """The ``discreet`` command."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    for number, usual in before.items():
        if usual is not signal.SIG_IGN:  # as in a script that goes on when its terminal is closed
            signal.signal(number, _leave)
    from discreet.cli.app import app
    from discreet.cli.terminal import hear_signals

    hear_signals(before[signal.SIGINT])
    sys.unraisablehook = partial(heard_again, sys.unraisablehook)
    try:
        app(prog_name="discreet")
    except KeyboardInterrupt:  # before a command has begun, which says it by itself
        _leave(signal.SIGINT, None)


def _leave(number: int, _: object) -> None:
    """End at once, in one line: while modules are imported, an exception may surface anywhere, and nothing is open."""
    os.write(2, b"discreet: interrupted\n" if number == signal.SIGINT else b"discreet: ended\n")
    os._exit(128 + number)


def heard_again(usual: Callable[[Any], None], caught: Any) -> None:
    """Send a signal again that fell into a callback of Python's own, such as an import's: it would be swallowed."""
    number = {KeyboardInterrupt: signal.SIGINT, SystemExit: signal.SIGTERM}.get(caught.exc_type)
    if number is None:
        return usual(caught)
    later = threading.Timer(0.01, os.kill, (os.getpid(), number))  # here it would be swallowed, too
    later.daemon = True
    later.start()
