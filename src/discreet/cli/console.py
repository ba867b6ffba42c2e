"""rich's console with escaped texts (see ``cli/terminal.py``), apart because rich is slow to import."""

from collections.abc import Iterable
from typing import Any

from rich.console import Console as RichConsole
from rich.console import ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from discreet.cli.terminal import escaped


class Console(RichConsole):
    """A console whose texts are escaped, and whose colors are its own."""

    def render_str(self, text: str, **settings: Any) -> Text:
        """Return a text with its style; escaped before it is measured and wrapped."""
        return super().render_str(escaped(text), **settings)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield the parts of anything, escaped where it is text, such as that of ``Text`` objects."""
        for part in super().render(renderable, options):
            yield part if part.control else Segment(escaped(part.text), part.style)
