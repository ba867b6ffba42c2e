"""Private greedy coordinate descent."""

from benchmarks.methods.setting import Setting, total_clip
from benchmarks.problems.linear import DEVIATIONS, Problem
from discreet.solvers.coordinate_geometry import Geometry
from discreet.solvers.gcd import GreedyCoordinateDescent


def greedy(problem: Problem, setting: Setting) -> GreedyCoordinateDescent:
    """DP-GCD; a step is a pass."""
    geometry = Geometry(clip=total_clip(problem, setting))
    return GreedyCoordinateDescent(
        n_steps=round(setting.passes), geometry=geometry, relative_step=DEVIATIONS**2 * setting.step
    )
