"""From a table with declared columns to a bounded matrix, and from there to a private model of the table."""

from discreet.errors import DiscreetError


class MissingTables(DiscreetError, ImportError):
    """pyarrow is not installed."""


try:
    import pyarrow  # noqa: F401  whoever reads a cell needs it
except ImportError:
    raise MissingTables('tables need pyarrow: pip install "discreet[tables]"') from None
