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
        per = "" if kind.unit == 1 else f"; effects per {kind.unit:g}"
        text = f"number, {ends.format(*kind.limits)}{_effect(kind)}{per}"
    elif isinstance(kind, Category):
        against = "" if kind.base is None else f"; against {kind.base}"
        text = f"one of {_some(kind.categories)}{', or another' if kind.other else ''}{against}"
    elif isinstance(kind, Ordinal):
        text = f"in order: {_some(kind.levels)}"
    else:
        text = f"true ({_some(kind.true)}) or false ({_some(kind.false)})"
    return Said(text, str(kind.missing))


def _effect(kind: Number) -> str:
    """Say how a number's effect may bend, where that is declared."""
    places = () if isinstance(kind.knots, int) else kind.knots
    at = f" at {_some(f'{knot:g}' for knot in places)}"
    if kind.is_curve:
        return f"; a curve with knots{at}" if places else f"; a curve with {len(kind.scaled_knots)} knots"
    return f"; may bend{at}" if places else "; linear" if kind.term else ""
