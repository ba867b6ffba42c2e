"""What ``solver="auto"`` is: one algorithm (``recipe``), and one table of its settings (``table``)."""

from discreet.lazy_names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__spec__)
