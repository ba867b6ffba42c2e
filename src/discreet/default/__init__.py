"""What ``solver="auto"`` is: one algorithm (``recipe``), and one table of its settings (``table``)."""

from typing import TYPE_CHECKING

from discreet.lazy_names import lazy_names

if TYPE_CHECKING:
    from discreet.default.recipe import Recipe as Recipe
    from discreet.default.recipe import Shares as Shares

__getattr__, __dir__, __all__ = lazy_names(__spec__)
