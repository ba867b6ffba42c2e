"""What settings of a solver will probably cost, from public facts: a solver by name has those that cost least.

The excess of a run is predicted for a few problems, all about as likely: columns that say nothing to nearly everything,
labels even or rare. With h_j the mean square of rows along direction j, k the loss's mean curvature, theta^2 the
variance of the best predictor, T steps of length eta, clipped at C, with noise sigma in each coordinate
(``propagation`` has what is left of the start, and the gain of noise):

    steps    k/2 [ sum_j (theta_j^2 + sampling_j) left_j^2  +  eta^2 sigma^2 sum_j h_j gain_j  +  lost(C)^2 ]
    output   k/2 [ sum_j (theta_j^2 + sampling_j) (lambda / (H_j + lambda))^2 + (s / lambda)^2 sum_j h_j + lost(C)^2 ]

theta_j^2 is in proportion to h_j, and ``lost`` is what a clip takes of the mean of skewed slopes. Settings are the
argmin of the geometric mean over these problems: a factor on one of them counts as much as on any other. Privacy does
not depend on a prediction.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import erf

from discreet.solvers.propagation import average_weights, gain, left_of_start
from discreet.typing import Floats

EFFECTS = (0.0, 0.3, 1.0, 3.0)
"""Deviations of the best predictor: of labels in margins, of numbers over that of their errors."""
RARE = 2.2
"""The intercept of rare labels, one in ten; that of even ones is 0."""
GROUPS = 12
"""Of many directions this many stand for all."""
LEAST = 1e-300
"""Divides, where all else may be 0."""


@dataclass(frozen=True)
class Problem:
    """What is assumed: deviation of the best predictor, intercept, curvature, deviation of the slopes of its errors."""

    effect: float
    intercept: float
    curvature: float
    errors: float
    is_regression: bool = True

    def kept(self, clips: Floats) -> Floats:
        """Return the part of the curvature that clips leave: normal errors within, or labels' slopes at 0 shortened."""
        if self.is_regression:
            return np.asarray(erf(clips / (math.sqrt(2.0) * self.errors)))
        return np.minimum(1.0, clips / self.errors)

    def lost(self, clips: Floats) -> Floats:
        """Return what clips take of the mean slope of errors of an exponential law, over the curvature.

        Labels' slopes are bounded by twice their size at 0.
        """
        if self.is_regression:
            return np.asarray(self.errors * np.exp(-(1.0 + clips / self.errors)) / self.curvature)
        return np.square(np.maximum(0.0, 1.0 - clips / (2.0 * self.errors)))


@dataclass(frozen=True)
class Rows:
    """The rows that a solver sees: mean squares along directions, how many each stands for, the constant's square.

    ``norm`` is the length that clips are in units of, ``moment`` the mean square that steps are made for, ``penalty``
    the strength of an L2 penalty in these coordinates, of features and of the constant.
    """

    squares: tuple[float, ...]
    counts: tuple[float, ...]
    constant: float
    norm: float = 1.0
    moment: float = 1.0
    penalty: tuple[float, float] = (0.0, 0.0)

    @classmethod
    def of(
        cls, squares: Floats, counts: Floats, constant: float, *, norm: float = 1.0, moment: float = 1.0,
        penalty: tuple[float, float] = (0.0, 0.0),
    ) -> "Rows":  # fmt: skip
        """Return rows with these mean squares."""
        return cls(tuple(squares.tolist()), tuple(counts.tolist()), constant, norm, moment, penalty)

    @property
    def all(self) -> Floats:
        """Mean squares, the constant's last."""
        return np.array([*self.squares, self.constant])

    @property
    def numbers(self) -> Floats:
        """How many directions each stands for, the constant last."""
        return np.array([*self.counts, float(self.constant > 0)])

    @property
    def strengths(self) -> Floats:
        """The penalty along each direction, the constant last."""
        return np.array([*(self.penalty[0] for _ in self.squares), self.penalty[1]])

    @property
    def effects(self) -> Floats:
        """Shares of the best predictor's variance."""
        parts = self.all[:-1] * self.numbers[:-1]
        return np.asarray(parts / max(float(parts.sum()), LEAST))


@dataclass(frozen=True)
class Steps:
    """The settings in question, and what their steps have in common.

    ``signal`` is that of one answer with all the budget of the steps for rows of length 1, ``bias`` the part of what a
    clip takes that stays in the model, ``smoothness`` the curvature that steps of length 1 are made for.
    """

    clips: tuple[float, ...]
    lengths: tuple[float, ...]
    counts: tuple[int, ...]
    signal: float
    n: float
    bias: float
    smoothness: float = 1.0
    momentum: float | str = 0.0
    average: str = "last"


@dataclass(frozen=True)
class Best:
    """The settings of least predicted excess, and the logarithm of that: ``length`` is of steps, or lambda / n."""

    count: int
    clip: float
    length: float
    excess: float = 0.0


def spectrum(count: int) -> tuple[Floats, Floats]:
    """Return mean squares 1, 1/2, 1/3, ... over their mean, and how many directions each stands for."""
    edges = np.unique(np.round(np.geomspace(1, count + 1, min(count, GROUPS) + 1)))
    counts = np.diff(edges)
    values = np.log(edges[1:] / edges[:-1]) / counts
    return values / ((values * counts).sum() / counts.sum()), counts


def _excess(problem: Problem, rows: Rows, left: Floats, noise: Floats, lost: Floats, n: float) -> Floats:
    """Return the logarithm of the predicted excess.

    ``left`` is what is left of the start along each direction, ``noise`` the variance there. An L2 penalty draws the
    best predictor to 0, and makes the objective steeper.
    """
    bends = problem.curvature * rows.all
    steeper = bends + rows.strengths
    kept = np.square(bends / np.maximum(steeper, LEAST)) * steeper / np.maximum(bends, LEAST)
    sampling = float(rows.numbers.sum()) * (problem.errors / problem.curvature) ** 2 / n
    effects = np.append((problem.effect**2 + sampling) * rows.effects, problem.intercept**2) * kept
    spread = noise * (steeper / problem.curvature * rows.numbers)
    found = (effects * np.square(left) + spread).sum(axis=-1) + np.square(lost)
    return np.asarray(np.log(0.5 * problem.curvature * found + LEAST))


@lru_cache(maxsize=256)
def best_steps(rows: Rows, steps: Steps, likely: tuple[Problem, ...]) -> Best:
    """Return the number, the clip and the length of steps of least predicted excess."""
    clips, lengths = np.array(steps.clips)[:, None], np.array(steps.lengths)[None, :]

    def costs(count: int) -> Floats:
        momenta = np.full(count, 0.0 if isinstance(steps.momentum, str) else steps.momentum)
        if isinstance(steps.momentum, str):
            momenta = np.arange(count) / (np.arange(count) + 3.0)
        weights = average_weights(steps.average, count)
        eta = lengths / (steps.smoothness * rows.moment)
        noise = np.square(eta * clips * rows.norm * math.sqrt(count) / steps.signal)
        pull = np.stack([(eta * one.kept(clips) * one.curvature)[..., None] * rows.all for one in likely])
        shrink = 1.0 / (1.0 + eta[..., None] * rows.strengths)  # the penalty's proximal step
        flat = 1.0 - shrink * (1.0 - np.minimum(pull, 1.0))
        left = left_of_start(momenta, weights, flat.ravel()).reshape(flat.shape)
        felt = gain(momenta, weights, flat.ravel()).reshape(flat.shape) * np.square(shrink) * noise[..., None]
        parts = [
            _excess(one, rows, left[i], felt[i], steps.bias * one.lost(clips), steps.n) for i, one in enumerate(likely)
        ]
        return np.asarray(np.mean(parts, axis=0))

    return _least(costs, steps.counts, steps.clips, steps.lengths)


def _least(
    costs: Callable[[int], Floats], counts: tuple[int, ...], clips: tuple[float, ...], lengths: tuple[float, ...]
) -> Best:
    found = []
    for count in counts:
        table = costs(count)
        i, j = divmod(int(np.argmin(table)), table.shape[1])
        found.append(Best(count, clips[i], lengths[j], float(table[i, j])))
    return min(found, key=lambda one: one.excess)


@dataclass(frozen=True)
class Shot:
    """What is in question of one-shot methods: clips and lambda / n, for rows of about length 1.

    Noise in the output is that of the minimizer, clip / lambda, to which a penalty adds what it is ``certain`` to have
    along every direction. Noise in the objective moves it by 1 / (H + lambda), and pays for the curvature of a record
    by a factor 1 + ``price`` n / lambda on its variance.
    """

    clips: tuple[float, ...]
    strengths: tuple[float, ...]
    signal: float
    n: float
    bias: float
    price: float | None = None
    certain: float = 0.0


@lru_cache(maxsize=256)
def best_shot(rows: Rows, shot: Shot, likely: tuple[Problem, ...]) -> Best:
    """Return the clip and the regularization, lambda / n, of least predicted excess."""
    clips, strengths = np.array(shot.clips)[:, None], np.array(shot.strengths)[None, :]
    noise = np.square(clips / shot.signal)  # of the mean gradient

    def cost(problem: Problem) -> Floats:
        added = strengths[..., None]
        hessian = (problem.curvature * problem.kept(clips))[..., None] * rows.all + rows.strengths
        least = added + (shot.certain if shot.price is None else hessian)
        paid = 1.0 if shot.price is None else 1.0 + shot.price / added
        felt = noise[..., None] * paid / np.square(least) * np.ones_like(rows.all)
        left = added / (hessian + added)
        return _excess(problem, rows, left, felt, shot.bias * problem.lost(clips), shot.n)

    return _least(
        lambda _: np.asarray(np.mean([cost(one) for one in likely], axis=0)), (1,), shot.clips, shot.strengths
    )
