"""The example data set: a synthetic hospital, generated, of no real person."""

from discreet.lazy_names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__spec__)
