"""Penalties, one file each."""

from typing import TYPE_CHECKING

from discreet.lazy_names import lazy_names

if TYPE_CHECKING:
    from discreet.penalties.base import L1 as L1
    from discreet.penalties.base import L2 as L2
    from discreet.penalties.base import Box as Box
    from discreet.penalties.base import ElasticNet as ElasticNet
    from discreet.penalties.base import GroupL2 as GroupL2
    from discreet.penalties.base import L2Ball as L2Ball
    from discreet.penalties.base import NoPenalty as NoPenalty
    from discreet.penalties.base import Penalty as Penalty
    from discreet.penalties.base import register_penalty as register_penalty

__getattr__, __dir__, __all__ = lazy_names(__spec__)
