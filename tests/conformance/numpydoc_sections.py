"""What a public docstring must have: numpydoc's sections, with what the signature says."""

import ast
import inspect
import re
import textwrap
from typing import Any

_SECTION = re.compile(r"^([A-Z][A-Za-z ]+)\n-{3,}\n", re.MULTILINE)


def sections(text: str) -> dict[str, str]:
    """Return the sections of a docstring by their titles, and what precedes them under ``""``."""
    pieces = _SECTION.split(text)
    return {"": pieces[0], **dict(zip(pieces[1::2], pieces[2::2], strict=True))}


def described(section: str) -> dict[str, str]:
    """Return name -> type of a section's entries; an entry of several names counts for each."""
    heads = [line for line in section.splitlines() if line and not line[0].isspace()]
    found = {}
    for head in heads:
        names, _, kind = head.partition(" : ")
        found |= {name.strip().lstrip("*"): kind for name in names.split(",")}
    return found


def problems(thing: Any, name: str) -> list[str]:
    """Return what a docstring lacks, in words."""
    if inspect.isclass(thing) and issubclass(thing, Exception | Warning):
        return [] if thing.__doc__ else [f"{name}: no docstring"]
    found, said = sections(inspect.getdoc(thing) or ""), summary_problems(thing, name)
    said += _parameters(thing, name, found)
    said += [] if ">>>" in found.get("Examples", "") else [f"{name}: no Examples"]
    return said if inspect.isclass(thing) else said + _results(thing, name, found)


def summary_problems(thing: Any, name: str) -> list[str]:
    """Return whether a docstring begins with a summary in one line, in words."""
    summary = sections(inspect.getdoc(thing) or "")[""].strip().split("\n\n")[0]
    return [] if summary and "\n" not in summary else [f"{name}: no summary in one line"]


def _parameters(thing: Any, name: str, found: dict[str, str]) -> list[str]:
    try:
        signature = list(inspect.signature(thing).parameters)
    except (TypeError, ValueError):
        return []
    expected = [one for one in signature if one not in ("self", "cls") and one.strip("_")]
    if (inspect.isclass(thing) and getattr(thing, "_is_protocol", False)) or _is_enumeration(thing):
        return []
    told = described(found.get("Parameters", ""))
    said = [f"{name}: parameter {one} has no type" for one, kind in told.items() if not kind]
    if list(told) != expected:
        said.append(f"{name}: Parameters are {list(told)}, the signature's {expected}")
    return said


def _is_enumeration(thing: Any) -> bool:
    return inspect.isclass(thing) and hasattr(thing, "__members__")


def _results(thing: Any, name: str, found: dict[str, str]) -> list[str]:
    said = []
    silent = inspect.signature(thing).return_annotation in (None, "None")
    if not silent and not {"Returns", "Yields"} & set(found):
        said.append(f"{name}: no Returns")
    body = ast.parse(textwrap.dedent(inspect.getsource(thing)))
    if any(isinstance(node, ast.Raise) and node.exc for node in ast.walk(body)) and "Raises" not in found:
        said.append(f"{name}: no Raises")
    return said
