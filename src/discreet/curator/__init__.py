"""The wall: the one folder in which raw records and exact sums are handled, and what it offers to the rest.

Everything that leaves it is either declared public or noised on the integer lattice and paid for by a plan. Other
packages import the names of ``__init__.pyi`` from here and nothing from inside, which the import contracts check
(``pyproject.toml``). Each name is imported when it is first used.

Read ``curator.py`` for the questions, ``queries/`` for their proofs, ``lattice.py`` for the arithmetic and
``noise.py`` for the samplers.
"""

from discreet.lazy_names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__spec__)
