"""What is publicly known of a table: columns, ranges, categories and the target. Nothing here reads a cell."""

from typing import TYPE_CHECKING

from discreet.errors import MissingTables
from discreet.lazy_names import lazy_names

try:
    import pyarrow  # noqa: F401  whatever reads a cell needs it
except ImportError:
    raise MissingTables('tables need pyarrow: pip install "discreet[tables]"') from None

if TYPE_CHECKING:
    from discreet.schema.columns import Boolean as Boolean
    from discreet.schema.columns import Category as Category
    from discreet.schema.columns import Number as Number
    from discreet.schema.columns import Offset as Offset
    from discreet.schema.columns import Ordinal as Ordinal
    from discreet.schema.columns import SchemaError as SchemaError
    from discreet.schema.columns import Target as Target
    from discreet.schema.columns import Weight as Weight
    from discreet.schema.schema import Schema as Schema

__getattr__, __dir__, __all__ = lazy_names(__spec__)
