"""Private gradient descent, plain and with Nesterov's momentum."""

from benchmarks.methods.setting import Setting, total_clip
from benchmarks.problems.linear import Problem
from discreet.solvers.gd import GradientDescent


def gradient(problem: Problem, setting: Setting, momentum: float | str = 0.0) -> GradientDescent:
    """DP-GD; a step is a pass."""
    step, clip = setting.step / problem.curvature, total_clip(problem, setting)
    return GradientDescent(
        n_steps=round(setting.passes), clip=clip, step_size=step, momentum=momentum, average="suffix"
    )


def accelerated(problem: Problem, setting: Setting) -> GradientDescent:
    """DP-GD with Nesterov's momentum."""
    return gradient(problem, setting, "nesterov")
