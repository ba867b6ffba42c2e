"""What is publicly known of a table: columns, ranges, categories and the target. Nothing here reads a cell."""

from discreet.errors import MissingTables
from discreet.lazy_names import lazy_names

try:
    import pyarrow  # noqa: F401  whatever reads a cell needs it
except ImportError:
    raise MissingTables('tables need pyarrow: pip install "discreet[tables]"') from None

__getattr__, __dir__, __all__ = lazy_names(__spec__)
