"""The wall: the one folder in which raw records are touched.

Everything that leaves it is either declared public or noised on the integer lattice and paid for by
a plan. Read ``lattice.py`` for the arithmetic, ``noise.py`` for the samplers, ``curator.py`` for the
queries and their proofs.
"""

from discreet.lazy_names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__spec__)
