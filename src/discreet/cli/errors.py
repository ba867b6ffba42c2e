"""Errors on the command line: one line on stderr and an exit code, never a traceback, never a data value."""

import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import typer
from typer.core import TyperGroup

from discreet.cli.terminal import escaped, escaped_streams
from discreet.errors import DiscreetError, LedgerDamaged, LedgerUnavailable

NO, UNSERVED, INTERNAL = 1, 2, 3
"""Exit codes: the answer is no; the request cannot be served; an error of discreet's own."""
INTERRUPTED, TERMINATED = 130, 143
"""What shells expect of a command that was interrupted, or asked to end."""

TRACEBACK = "DISCREET_TRACEBACK"
UNCHECKED = (ImportError, OSError, LedgerUnavailable, LedgerDamaged)
"""A library is missing, a file cannot be read, a ledger is missing, out of reach or damaged."""


class Refused(DiscreetError):
    """A request that a command cannot serve; the message says what to ask instead."""


class OneLineErrors(TyperGroup):
    """Runs a command and turns what it raises into one line.

    discreet's own messages contain no data by rule. Those of other libraries may quote a value, so only
    the type of a foreign exception and the place in the source are shown.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the words before the command."""
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            raise _quoted(error) from None

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was asked for, and keep what commands a terminal out of all that it prints."""
        with escaped_streams():
            try:
                return super().invoke(ctx)
            except DiscreetError as error:
                _fail(str(error), UNSERVED, error)
            except KeyboardInterrupt as error:
                typer.echo(f"discreet: {_noted('interrupted', error)}", err=True)
                raise typer.Exit(INTERRUPTED) from None
            except OSError as error:
                if isinstance(error, BrokenPipeError):  # the reader of the output has enough: typer's to handle
                    raise
                _fail(_of_the_system(error), UNSERVED, error)
            except MemoryError as error:
                _fail(
                    "this machine does not have enough memory for that; what was charged stays charged", UNSERVED, error
                )
            except Exception as error:
                if hasattr(error, "exit_code") or isinstance(error, typer.Abort):  # typer's own
                    raise _quoted(error) from None
                hint = f"set {TRACEBACK}=1 to see where (it may show data)"
                _fail(f"unexpected {type(error).__name__}{place_of(error)}; {hint}", INTERNAL, error)


def _quoted(error: Exception) -> Exception:
    """An error of typer's, which quotes words of the command line, such as names of files."""
    if isinstance(getattr(error, "message", None), str):
        error.message = escaped(error.message)  # type: ignore[attr-defined]
    return error


def end_on_sigterm() -> None:
    """Let a command that is asked to end clean up behind itself, as one that is interrupted does."""

    def end(*_: object) -> NoReturn:
        raise SystemExit(TERMINATED)

    if signal.getsignal(signal.SIGTERM) is not signal.SIG_IGN:
        signal.signal(signal.SIGTERM, end)


def place_of(error: BaseException) -> str:
    """The innermost line of discreet's own source, or its benchmarks', without any value."""
    place, frame = "", error.__traceback__
    while frame is not None:
        module = str(frame.tb_frame.f_globals.get("__name__", ""))
        if module.startswith(("discreet.", "benchmarks.")):
            place = f" in {module}, line {frame.tb_lineno}"
        frame = frame.tb_next
    return place


def _fail(message: str, code: int, error: Exception) -> NoReturn:
    if os.environ.get(TRACEBACK) == "1":
        raise error
    typer.echo(f"discreet: {_noted(message, error)}", err=True)
    raise typer.Exit(code) from None


def _noted(message: str, error: BaseException) -> str:
    """A message in one line, with what was charged before the error where something was."""
    return " ".join("; ".join([message, *getattr(error, "__notes__", [])]).split())


def _of_the_system(error: OSError) -> str:
    where = "" if error.filename is None else f"{error.filename}: "
    return f"{where}{(error.strerror or 'cannot be used').lower()}"


@contextmanager
def checkable(as_json: bool) -> Iterator[None]:
    """Say that something could not be checked where that is so, and end the command."""
    try:
        yield
    except UNCHECKED as error:
        if as_json:
            typer.echo(json.dumps({"holds": None, "reason": _reason(error)}, indent=2))
        else:
            typer.echo(f"could not be checked: {_reason(error)}", err=True)
        raise typer.Exit(UNSERVED) from None


def _reason(error: BaseException) -> str:
    """discreet's own words; of others' errors what was not found or not readable, and nothing else."""
    if isinstance(error, OSError):
        return _of_the_system(error)
    if isinstance(error, ImportError) and type(error) in (ImportError, ModuleNotFoundError):
        return f"{error.name or 'a library'} is not installed"
    return " ".join(str(error).split())
