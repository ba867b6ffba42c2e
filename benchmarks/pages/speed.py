"""Times against peers as tables: Markdown for the documentation."""

from collections.abc import Mapping
from typing import Any

from benchmarks.measures.stored_ratios import is_compared

HEADER = "| what | ratio to the peer | target | spread |\n|---|---|---|---|"


def markdown(groups: Mapping[str, Any]) -> str:
    """One table per group, of the rows that have a peer."""
    return "\n\n".join(_table(name, group) for name, group in groups.items() if _compared(group))


def _compared(group: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [row for row in group["rows"] if is_compared(row)]


def _table(name: str, group: Mapping[str, Any]) -> str:
    machine, (before, after) = group["machine"], group["load"]
    where = f"{machine['cpu']}, {machine['cores']} cores; load {before:.1f} before, {after:.1f} after."
    return "\n".join([f"## {name}", "", where, "", HEADER, *map(_line, _compared(group))])


def _line(row: Mapping[str, Any]) -> str:
    ratio = f"{row['ratio']:.3g} ×" + (" (higher is faster)" if row["higher_is_faster"] else "")
    spread = "" if row["spread"] is None else f"{row['spread']:.2f}"
    return f"| {row['what']} | {ratio} | {_target(row)} | {spread} |"


def _target(row: Mapping[str, Any]) -> str:
    goal = row["goal"]
    if goal is None or goal["absolute"]:
        return ""
    sign = {"<=": "≤", ">=": "≥"}[goal["sense"]]
    return f"{sign} {goal['value']:g}" + ("" if row["met"] else ", missed")
