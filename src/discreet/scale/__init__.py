"""Tables that are larger than memory, or than a machine: scratch files beyond memory, and Dask clusters."""

from discreet.lazy_names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__spec__)
