"""How well a released model predicts other rows: with noise, for a budget of its own; or exactly, of public rows."""

from discreet.lazy_names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__spec__)
