"""How a column is stored, against what is declared of it: types are public, and one that cannot fit is refused.

A column stored as whole numbers can hold none of the categories "no" and "yes"; every row would be *other*, and the fit
would learn noise. That is known from the container's types alone, before anything is charged. Text may hold anything,
so it fits every declaration, as do columns of Python objects; what their cells hold is counted with noise instead
(``curator/tables/stream.py``).
"""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from discreet.schema.cell_meaning import Label, are_numbers, is_number_text
from discreet.schema.columns import Boolean, ColumnKind, Number, Target
from discreet.schema.limits import SchemaError

if TYPE_CHECKING:
    from discreet.schema.schema import Schema

Stored = Callable[[str], Iterable[pa.DataType]]
"""Maps a column to the types that it is stored as. Tables stay in the curator: this module sees types."""


def misfits(schema: "Schema", stored: Stored, columns: Iterable[str] | None = None) -> list[str]:
    """Return which of these columns (all that a fit reads) are stored as a type that cannot hold its labels."""
    roles: dict[str, ColumnKind | Target] = dict(schema.columns)
    if schema.target is not None:
        roles[schema.target.column] = schema.target
    wanted = [name for name in (schema.needed if columns is None else columns) if name in roles]
    found = (misfit(name, roles[name], kind) for name in wanted for kind in stored(name))
    return [problem for problem in dict.fromkeys(found) if problem is not None]


def check_types(schema: "Schema", stored: Stored, columns: Iterable[str] | None = None) -> None:
    """Raise a SchemaError that names all misfits."""
    if found := misfits(schema, stored, columns):
        raise SchemaError("the schema does not fit the table: " + "; ".join(found))


def misfit(name: str, declared: ColumnKind | Target, stored: pa.DataType) -> str | None:
    """Return what is wrong where a column is stored as a type that can hold none of its declared labels."""
    if pa.types.is_dictionary(stored):
        return misfit(name, declared, stored.value_type)
    for labels in _alternatives(declared):
        if not _can_hold(stored, labels):
            return (
                f"{name}: it is stored as {stored}, which holds none of {_listed(labels)}: declare the labels as they "
                "are stored, or convert the column"
            )
    return None


def _alternatives(declared: ColumnKind | Target) -> list[Sequence[Label]]:
    """Return the sets of labels of each of which a column must be able to hold one; none for a number."""
    if isinstance(declared, Number):
        return []
    if isinstance(declared, Boolean):
        return [declared.true, declared.false]
    if isinstance(declared, Target):
        return [] if declared.classes is None else [declared.classes]
    return [getattr(declared, "categories", getattr(declared, "levels", ()))]


def _can_hold(stored: pa.DataType, labels: Sequence[Label]) -> bool:
    if pa.types.is_boolean(stored):
        return any(label in (0, 1) if are_numbers(labels) else label in ("true", "false") for label in labels)
    if pa.types.is_integer(stored) or pa.types.is_floating(stored) or pa.types.is_decimal(stored):
        return are_numbers(labels) or any(is_number_text(str(label)) for label in labels)
    return True


def _listed(labels: Sequence[Label]) -> str:
    shown = ", ".join(repr(label) for label in labels[:6])
    return shown if len(labels) <= 6 else f"{shown}, ..."
