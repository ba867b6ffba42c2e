"""Markdown extension: ``@discreet.solvers.GradientDescent.solve`` becomes that name with its file and line.

A name that does not exist fails the build, so a page that maps papers to code cannot go stale.
"""

import inspect
import re
from importlib import import_module
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

from markdown import Extension, Markdown
from markdown.inlinepatterns import InlineProcessor
from markdown.util import AtomicString

NAME = r"@(discreet(?:\.\w+)+)"


def resolve(name: str) -> Any:
    """Return the object with this dotted name, or raise ``AttributeError`` or ``ModuleNotFoundError``."""
    first, *rest = name.split(".")
    path, found = first, import_module(first)
    for part in rest:
        path = f"{path}.{part}"
        if not hasattr(found, part):
            import_module(path)
        found = getattr(found, part)
    return found


def place(name: str) -> str:
    """Return the file of a name, and the line where it begins; of a field, those of its class."""
    thing = resolve(name)
    thing = thing.fget if isinstance(thing, property) else inspect.unwrap(thing) if callable(thing) else thing
    owner, _, last = name.rpartition(".")
    if inspect.isroutine(thing) or inspect.isclass(thing):
        file, line = inspect.getsourcefile(thing), inspect.getsourcelines(thing)[1]
    elif inspect.ismodule(resolve(owner)):
        source, file = inspect.getsource(resolve(owner)), inspect.getsourcefile(resolve(owner))
        line = next(at for at, text in enumerate(source.splitlines(), 1) if re.match(rf"{last}\b", text))
    else:
        return place(owner)
    parts = Path(file or "").parts
    return f"{'/'.join(parts[len(parts) - parts[::-1].index('discreet') :])}:{line}"


class CodePlaces(InlineProcessor):
    """Show a name without its packages, and its place in small print."""

    def handleMatch(self, m: Any, data: str) -> tuple[Element, int, int]:
        """Return the name and its place."""
        shown, code = Element("span", {"class": "code-place"}), Element("code")
        owners = [part for part in m[1].split(".") if part[0].isupper() or part == m[1].rpartition(".")[2]]
        code.text, code.tail = AtomicString(".".join(owners)), " "
        small = Element("small")
        small.text = AtomicString(place(m[1]))
        shown.extend((code, small))
        return shown, m.start(0), m.end(0)


class CodePlacesExtension(Extension):
    """Register the pattern."""

    def extendMarkdown(self, md: Markdown) -> None:
        """Register the inline pattern."""
        md.inlinePatterns.register(CodePlaces(NAME, md), "code_places", 200)


def makeExtension(**options: Any) -> CodePlacesExtension:
    """Return the extension: Python-Markdown looks for this name."""
    return CodePlacesExtension(**options)
