"""Private stochastic gradient descent on Poisson samples."""

from benchmarks.methods.setting import Setting, total_clip
from benchmarks.problems.linear import Problem
from discreet.solvers.sgd import StochasticGradientDescent

SAMPLING_PROBABILITY = 0.1


def stochastic(problem: Problem, setting: Setting) -> StochasticGradientDescent:
    """DP-SGD."""
    step, clip = setting.step / problem.curvature, total_clip(problem, setting)
    count = max(1, round(setting.passes / SAMPLING_PROBABILITY))
    return StochasticGradientDescent(count, clip=clip, step_size=step, sampling_probability=SAMPLING_PROBABILITY)
