"""The methods that are compared, and the settings that each may be tuned over: grids of equal size.

A setting is (passes over the data, clip, step), in units that mean the same for all: the clip in units of the
root mean square row norm times the target's noise (so that 1 cuts residuals at about one standard deviation of
the noise), the step in units of what the problem's curvature allows. All of it is public by construction.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from discreet.experiments.coordinate_problems import DEVIATIONS, Problem
from discreet.solvers.cd import CoordinateDescent
from discreet.solvers.coordinate_geometry import Geometry
from discreet.solvers.gcd import GreedyCoordinateDescent
from discreet.solvers.gd import GradientDescent
from discreet.solvers.gradient_loop import Momentum
from discreet.solvers.sgd import StochasticGradientDescent

BATCH = 0.1  # DP-SGD's sampling probability


@dataclass(frozen=True)
class Setting:
    """One point of a grid."""

    passes: float
    clip: float
    step: float


@dataclass(frozen=True)
class Method:
    """A name, the solver for a setting, the grid's axes, and how features are scaled for training."""

    name: str
    label: str
    solver: Callable[[Problem, Setting], Any]
    passes: tuple[float, ...]
    clips: tuple[float, ...]
    steps: tuple[float, ...]
    scale: str = "global"

    def settings(self, passes: float) -> list[Setting]:
        """The grid at one number of passes."""
        return [Setting(passes, clip, step) for clip in self.clips for step in self.steps]


def total_clip(problem: Problem, setting: Setting) -> float:
    """The bound on a record's gradient in training coordinates."""
    return setting.clip * problem.row_norm / problem.target_unit


def smoothness_clips(problem: Problem, setting: Setting) -> CoordinateDescent:
    """DP-CD with C_j in proportion to sqrt(M_j)."""
    return _known(problem, setting, "smoothness")


def uniform_clips(problem: Problem, setting: Setting) -> CoordinateDescent:
    """DP-CD with equal C_j."""
    return _known(problem, setting, "uniform")


def _known(problem: Problem, setting: Setting, rule: str) -> CoordinateDescent:
    """M_j from the declared bounds: DEVIATIONS^2 times the mean square, which longer steps make up for."""
    return _coordinate(problem, setting, Geometry(clip=total_clip(problem, setting), clip_rule=rule), DEVIATIONS**2)


def bought(problem: Problem, setting: Setting) -> CoordinateDescent:
    """DP-CD with smoothness clips and M_j bought with a tenth of the budget.

    The noise on all M_j is the same, so this trains with each feature divided by its own bound; but for the
    estimates of M_j, coordinate descent is the same in any coordinates.
    """
    rows = 1.6 * math.sqrt(problem.scales.size) / DEVIATIONS
    geometry = Geometry(relative_clip=setting.clip / problem.target_unit, smoothness="private", row_clip=rows)
    return _coordinate(problem, setting, geometry, 1.0)


def _coordinate(problem: Problem, setting: Setting, geometry: Geometry, unit: float) -> CoordinateDescent:
    """Two outer rounds: the second starts at the first one's mean and averages, much as ``suffix`` elsewhere."""
    inner = max(1, round(setting.passes * problem.scales.size / 2))
    step, average = unit * setting.step, "last" if problem.l1 else "uniform"
    return CoordinateDescent(2, inner, geometry, relative_step=step, schedule="cyclic", average=average)


def gradient(problem: Problem, setting: Setting, momentum: Momentum = 0.0) -> GradientDescent:
    """DP-GD; a step is a pass."""
    step, clip = setting.step / problem.curvature, total_clip(problem, setting)
    return GradientDescent(
        n_steps=round(setting.passes), clip=clip, step_size=step, momentum=momentum, average="suffix"
    )


def accelerated(problem: Problem, setting: Setting) -> GradientDescent:
    """DP-GD with Nesterov's momentum."""
    return gradient(problem, setting, "nesterov")


def stochastic(problem: Problem, setting: Setting) -> StochasticGradientDescent:
    """DP-SGD."""
    step, clip = setting.step / problem.curvature, total_clip(problem, setting)
    count = max(1, round(setting.passes / BATCH))
    return StochasticGradientDescent(count, clip=clip, step_size=step, sampling_probability=BATCH)


def greedy(problem: Problem, setting: Setting) -> GreedyCoordinateDescent:
    """DP-GCD; a step is a pass."""
    geometry = Geometry(clip=total_clip(problem, setting))
    step = DEVIATIONS**2 * setting.step
    return GreedyCoordinateDescent(n_steps=round(setting.passes), geometry=geometry, relative_step=step)


_CLIPS, _STEPS, _LONG = (0.25, 0.5, 1.0, 2.0), (1.0, 0.5, 0.25), (1.5, 0.75, 0.25)
_COORDINATE, _FULL, _SAMPLED = (5, 10, 30, 100, 300), (20, 100, 300, 1000, 3000), (2, 10, 30, 100, 300)

DENSE = (
    Method("cd-smoothness", "DP-CD, smoothness clips", smoothness_clips, _COORDINATE, _CLIPS, _STEPS),
    Method("cd-bought", "DP-CD, smoothness clips, M bought", bought, _COORDINATE, _CLIPS, _STEPS, scale="feature"),
    Method("cd-uniform", "DP-CD, uniform clips", uniform_clips, _COORDINATE, _CLIPS, _STEPS),
    Method("gd", "DP-GD", gradient, _FULL, _CLIPS, _LONG),
    Method("nesterov", "DP-GD, Nesterov", accelerated, _FULL, _CLIPS, _STEPS),
    Method("sgd", "DP-SGD", stochastic, _SAMPLED, _CLIPS, _LONG),
)
RAW = tuple(method for method in DENSE if method.name in ("cd-smoothness", "gd", "nesterov"))
WIDE = (
    Method("gcd", "DP-GCD", greedy, (1, 2, 4, 8, 16), (4.0, 8.0, 16.0, 32.0), (1.0, 0.7, 0.4)),
    Method("cd-smoothness", "DP-CD", smoothness_clips, (0.1, 0.2, 0.5, 1, 2), (0.5, 1.0, 2.0, 4.0), _STEPS),
    Method("gd", "DP-GD", gradient, (1, 3, 10, 30, 100), (0.25, 1.0, 4.0, 16.0), (1.0, 0.1, 0.01)),
    Method("sgd", "DP-SGD", stochastic, (0.5, 1, 2, 5, 20), (0.25, 1.0, 4.0, 16.0), (1.0, 0.1, 0.01)),
)


def methods_for(problem: str) -> tuple[Method, ...]:
    """The methods that are compared on a problem."""
    return {"sparse": WIDE, "lognormal-raw": RAW}.get(problem, DENSE)
