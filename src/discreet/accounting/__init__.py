"""What a release costs: plans, events, prices and certificates. Nothing here reads data."""

from discreet.lazy_names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__spec__)
