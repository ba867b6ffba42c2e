"""Algorithms: one file each, a readable transcription of its source. Post-processing only.

A solver sees noisy answers, never records, so a new one needs no privacy review: whatever it does
with a curator's answers is covered by the plan that was priced. Parameters share one vocabulary: ``base``.
``Preconditioned`` estimates centers, scales or the covariance privately, and runs a solver on records that are recoded
by them; ``settings`` is the table of what a solver's name stands for.
"""

from typing import TYPE_CHECKING

from discreet.lazy_names import lazy_names

if TYPE_CHECKING:
    from discreet.inference.limits import Limits as Limits
    from discreet.inference.sandwich import Sandwich as Sandwich
    from discreet.solvers.agd import AdaptiveDescent as AdaptiveDescent
    from discreet.solvers.base import register as register
    from discreet.solvers.cd import AdaptiveClip as AdaptiveClip
    from discreet.solvers.cd import CoordinateDescent as CoordinateDescent
    from discreet.solvers.coordinate_geometry import Geometry as Geometry
    from discreet.solvers.coordinates import Preconditioned as Preconditioned
    from discreet.solvers.exponential import ExponentialMechanism as ExponentialMechanism
    from discreet.solvers.gcd import GreedyCoordinateDescent as GreedyCoordinateDescent
    from discreet.solvers.gd import GradientDescent as GradientDescent
    from discreet.solvers.objective import ObjectivePerturbation as ObjectivePerturbation
    from discreet.solvers.output import ExactMinimizer as ExactMinimizer
    from discreet.solvers.output import OutputPerturbation as OutputPerturbation
    from discreet.solvers.risk_bounds import compare_bounds as compare_bounds
    from discreet.solvers.sgd import StochasticGradientDescent as StochasticGradientDescent
    from discreet.solvers.svrg import VarianceReducedDescent as VarianceReducedDescent

__getattr__, __dir__, __all__ = lazy_names(__spec__)
