"""Losses, one file each, and the constants that follow from them and the declared bounds."""

from discreet.lazy_names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__spec__)
