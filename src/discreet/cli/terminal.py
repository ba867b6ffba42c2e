"""Print escaped texts, and errors as one line on stderr with an exit code: no traceback, no data value.

A certificate, a schema, a model or a file's name may hold anything, also sequences that move the cursor, hide lines,
open links or turn the direction of writing. While a command runs, stdout and stderr write such characters out
(``\\u001b``), so whatever a command prints is harmless. rich writes its own colors past these streams, and
``rich_console`` escapes every text that is given to it.
"""

import json
import os
import re
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn, TextIO

import typer
from typer.core import TyperGroup

from discreet.errors import DiscreetError, LedgerDamaged, LedgerUnavailable

if TYPE_CHECKING:
    from rich.console import Console as Console

_COMMANDS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters, but for the tabulator and the new line
    "\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"  # not seen, or turn the text
    "\ud800-\udfff"  # halves of characters, such as stand for bytes in file names
    "\U000e0000-\U000e007f]"  # tags, which are not seen
)


def number_of(count: int, noun: str, plural: str = "") -> str:
    """Return a number and its noun: "1 column", "2 columns"."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def escaped(text: str) -> str:
    """Return a text with the signs that command a terminal written out, in the way of JSON and TOML."""
    return _COMMANDS.sub(_written, text)


def _written(match: re.Match[str]) -> str:
    sign = ord(match[0])
    return f"\\u{sign:04x}" if sign < 0x10000 else f"\\U{sign:08x}"


class EscapedStream:
    """A stream of text that writes such signs out, and what its alphabet does not have.

    It has no ``buffer``, so that nobody writes past it unawares. rich looks for ``rich_proxied_file``.
    """

    def __init__(self, stream: TextIO) -> None:
        self.rich_proxied_file = stream

    def write(self, text: str) -> int:
        """Write a text."""
        alphabet = self.rich_proxied_file.encoding or "utf-8"
        self.rich_proxied_file.write(escaped(text).encode(alphabet, "backslashreplace").decode(alphabet))
        return len(text)

    def writelines(self, lines: Any) -> None:
        """Write several texts."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        if name == "buffer":
            raise AttributeError(name)
        return getattr(self.rich_proxied_file, name)


@contextmanager
def escaped_streams() -> Iterator[None]:
    """Let stdout and stderr write out such signs."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (
        stream if isinstance(stream, EscapedStream) else EscapedStream(stream) for stream in before
    )
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


class _Bytes:
    """Bytes of a text in UTF-8, for a terminal."""

    closed = False

    def __init__(self, write: Callable[[str], object]) -> None:
        self._write = write

    def write(self, content: Any) -> int:
        self._write(bytes(content).decode("utf-8", "replace"))
        return len(content)

    def flush(self) -> None:
        sys.stdout.flush()

    def close(self) -> None:
        self.flush()


def stdout_for_data() -> Any:
    """Return where a table is printed to: exactly as it is into a pipe or a file, escaped on a terminal."""
    stream = getattr(sys.stdout, "rich_proxied_file", sys.stdout)
    return _Bytes(EscapedStream(stream).write) if stream.isatty() else stream.buffer


def rich_console(**settings: Any) -> "Console":
    """Return rich's console, with colors of its own and escaped texts; rich is imported here, since that is slow."""
    from rich.console import Console
    from rich.segment import Segment

    class EscapingConsole(Console):
        def render_str(self, text: str, **style: Any) -> Any:
            return super().render_str(escaped(text), **style)  # before it is measured and wrapped

        def render(self, renderable: Any, options: Any = None) -> Iterator[Segment]:
            for part in super().render(renderable, options):  # texts of ``Text`` objects, too
                yield part if part.control else Segment(escaped(part.text), part.style)

    return EscapingConsole(**{"markup": False, "highlight": False, **settings})


NO, UNSERVED, INTERNAL = 1, 2, 3
"""Exit codes: the answer is no; the request cannot be served; an error of discreet's own."""
INTERRUPTED, TERMINATED = 130, 143
"""What shells expect of a command that was interrupted, or asked to end."""

HEARD: list[signal.Signals] = []
"""Signals that asked this process to end."""
_ENDS = {signal.SIGINT: ("interrupted", INTERRUPTED), signal.SIGTERM: ("ended", TERMINATED)}

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
                if HEARD:  # a library made an error of its own of it, as imports of compiled modules do
                    word, code = _ENDS[HEARD[-1]]
                    typer.echo(f"discreet: {word}", err=True)
                    raise typer.Exit(code) from None
                hint = f"set {TRACEBACK}=1 to see where (it may show data)"
                _fail(f"unexpected {type(error).__name__}{place_of(error)}; {hint}", INTERNAL, error)


def _quoted(error: Exception) -> Exception:
    """Return an error of typer's, which quotes words of the command line, such as names of files."""
    if isinstance(getattr(error, "message", None), str):
        error.message = escaped(error.message)  # type: ignore[attr-defined]
    return error


def hear_signals(interrupt: Any) -> None:
    """Let a command that is interrupted or asked to end clean up behind itself; ``interrupt`` is SIGINT's handler."""

    def interrupted(*_: object) -> NoReturn:
        HEARD.append(signal.SIGINT)
        raise KeyboardInterrupt

    def ended(*_: object) -> NoReturn:
        HEARD.append(signal.SIGTERM)
        raise SystemExit(TERMINATED)

    signal.signal(signal.SIGINT, interrupted if interrupt is signal.default_int_handler else interrupt)
    if signal.getsignal(signal.SIGTERM) is not signal.SIG_IGN:
        signal.signal(signal.SIGTERM, ended)


def place_of(error: BaseException) -> str:
    """Return the innermost line of discreet's own source, or its benchmarks', without any value."""
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
    """Return a message in one line, with what was charged before the error where something was."""
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
