"""Tables that are larger than memory: how much of it a fit may take, and where rows are kept beyond that."""

from discreet.lazy_names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__spec__)
