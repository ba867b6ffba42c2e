"""What a schema declares, in words."""

from collections.abc import Iterable
from typing import NamedTuple

from discreet.schema.cell_meaning import Label
from discreet.schema.columns import Category, ColumnKind, Number, Ordinal
from discreet.schema.limits import some as listed


def _some(labels: Iterable[Label]) -> str:
    return listed(labels, most=30, how=str)


class Said(NamedTuple):
    """A declaration in words."""

    text: str
    missing: str


def describe(kind: ColumnKind) -> Said:
    """What was declared of a column, and what stands for a missing value."""
    if isinstance(kind, Number):
        ends = "private, within {:,.12g} to {:,.12g}" if kind.is_private else "{:,.12g} to {:,.12g}"
        bends = f"; may bend at {_some(f'{knot:g}' for knot in kind.knots)}" if kind.knots else ""
        text = f"number, {ends.format(*kind.limits)}{bends}"
    elif isinstance(kind, Category):
        against = "" if kind.base is None else f"; against {kind.base}"
        text = f"one of {_some(kind.categories)}{', or another' if kind.other else ''}{against}"
    elif isinstance(kind, Ordinal):
        text = f"in order: {_some(kind.levels)}"
    else:
        text = f"true ({_some(kind.true)}) or false ({_some(kind.false)})"
    return Said(text, str(kind.missing))
