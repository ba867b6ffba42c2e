"""Print texts from files and names without the characters that command a terminal.

A certificate, a schema, a model or a file's name may hold anything, also sequences that move the cursor, hide lines,
open links or turn the direction of writing. While a command runs, stdout and stderr write such characters out
(``\\u001b``), so whatever a command prints is harmless. rich writes its own colors past these streams, and
``Console`` of ``cli/console.py`` escapes every text that is given to it.
"""

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

_COMMANDS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters, but for the tabulator and the new line
    "\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"  # not seen, or turn the text
    "\ud800-\udfff"  # halves of characters, such as stand for bytes in file names
    "\U000e0000-\U000e007f]"  # tags, which are not seen
)


def number_of(count: int, one: str, several: str = "") -> str:
    """Return a number and its noun: "1 column", "2 columns"."""
    return f"{count:,} {one if count == 1 else several or one + 's'}"


def escaped(text: str) -> str:
    """Return a text with the signs that command a terminal written out, in the way of JSON and TOML."""
    return _COMMANDS.sub(_written, text)


def _written(found: re.Match[str]) -> str:
    sign = ord(found[0])
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
