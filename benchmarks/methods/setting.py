"""A point of a tuning grid, in units that mean the same for every method.

A setting is (passes over the data, clip, step): the clip in units of the root mean square row norm times the target's
noise (so that 1 cuts residuals at about one standard deviation of the noise), the step in units of what the problem's
curvature allows. All of it is public by construction.
"""

from dataclasses import dataclass

from benchmarks.problems.linear import Problem


@dataclass(frozen=True)
class Setting:
    """One point of a grid."""

    passes: float
    clip: float
    step: float


def total_clip(problem: Problem, setting: Setting) -> float:
    """The bound on a record's gradient in training coordinates."""
    return setting.clip * problem.row_norm / problem.target_unit
