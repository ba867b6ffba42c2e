"""Methods with the settings that each may be tuned over: grids of equal size."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from benchmarks.methods.coordinate_descent import estimated, smoothness_clips, uniform_clips
from benchmarks.methods.gradient_descent import accelerated, gradient
from benchmarks.methods.greedy_coordinate_descent import greedy
from benchmarks.methods.setting import Setting
from benchmarks.methods.stochastic_gradient_descent import stochastic
from benchmarks.problems.linear import Problem


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


_CLIPS, _STEPS, _LONG = (0.25, 0.5, 1.0, 2.0), (1.0, 0.5, 0.25), (1.5, 0.75, 0.25)
_COORDINATE, _FULL, _SAMPLED = (5, 10, 30, 100, 300), (20, 100, 300, 1000, 3000), (2, 10, 30, 100, 300)

DENSE = (
    Method("cd-smoothness", "DP-CD, smoothness clips", smoothness_clips, _COORDINATE, _CLIPS, _STEPS),
    Method(
        "cd-estimated", "DP-CD, smoothness clips, M estimated", estimated, _COORDINATE, _CLIPS, _STEPS, scale="feature"
    ),
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
