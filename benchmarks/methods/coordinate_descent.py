"""Private coordinate descent with smoothness clips, uniform clips, or smoothness constants estimated with budget."""

import math

from benchmarks.methods.setting import Setting, total_clip
from benchmarks.problems.linear import DEVIATIONS, Problem
from discreet.solvers.cd import CoordinateDescent
from discreet.solvers.coordinate_geometry import Geometry


def smoothness_clips(problem: Problem, setting: Setting) -> CoordinateDescent:
    """DP-CD with C_j in proportion to sqrt(M_j)."""
    return _known(problem, setting, "smoothness")


def uniform_clips(problem: Problem, setting: Setting) -> CoordinateDescent:
    """DP-CD with equal C_j."""
    return _known(problem, setting, "uniform")


def _known(problem: Problem, setting: Setting, rule: str) -> CoordinateDescent:
    """M_j from the declared bounds: DEVIATIONS^2 times the mean square, which longer steps make up for."""
    return _coordinate(problem, setting, Geometry(clip=total_clip(problem, setting), clip_rule=rule), DEVIATIONS**2)


def estimated(problem: Problem, setting: Setting) -> CoordinateDescent:
    """DP-CD with smoothness clips and M_j estimated with a tenth of the budget.

    The noise on all M_j is the same, so this trains with each feature divided by its own bound; but for the
    estimates of M_j, coordinate descent is the same in any coordinates.
    """
    rows = 1.6 * math.sqrt(problem.scales.size) / DEVIATIONS
    geometry = Geometry(relative_clip=setting.clip / problem.target_unit, smoothness="private", row_clip=rows)
    return _coordinate(problem, setting, geometry, 1.0)


def _coordinate(problem: Problem, setting: Setting, geometry: Geometry, unit: float) -> CoordinateDescent:
    """Two outer rounds: the second starts at the first one's mean and averages, much as ``suffix`` elsewhere."""
    inner = max(1, round(setting.passes * problem.scales.size / 2))
    step, average = unit * setting.step, not problem.l1
    return CoordinateDescent(
        2, inner, geometry, relative_step=step, schedule="cyclic", average="uniform" if average else "last"
    )
