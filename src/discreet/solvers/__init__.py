"""Algorithms: one file each, a readable transcription of its source. Post-processing only.

A solver sees noisy answers, never records, so a new one needs no privacy review: whatever it does
with a curator's answers is covered by the plan that was priced. Parameters share one vocabulary: ``base``.
``Preconditioned`` estimates centers, scales or the covariance privately, and runs a solver on records that are recoded
by them; ``settings`` is the table of what a solver's name stands for.
"""

from discreet.lazy_names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__spec__)
