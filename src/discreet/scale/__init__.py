"""Tables that are larger than memory, or than a machine: scratch files beyond memory, and Dask clusters."""

from typing import TYPE_CHECKING

from discreet.lazy_names import lazy_names

if TYPE_CHECKING:
    from discreet.curator import cluster as cluster
    from discreet.curator import limited as limited
    from discreet.curator import local_cluster as local_cluster

__getattr__, __dir__, __all__ = lazy_names(__spec__)
