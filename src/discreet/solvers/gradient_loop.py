"""The loop that gradient methods share: step, momentum, prox, projection, average. All of it is free.

v_t     = w_t + beta_t (w_t - w_{t-1})                  beta_t = 0, a constant, or Nesterov's
w_{t+1} = Proj_R( prox_{eta psi}( v_t - eta g(v_t) ) )  g: the noisy mean gradient
"""

import math
from dataclasses import asdict, dataclass, replace
from numbers import Real
from typing import TYPE_CHECKING, ClassVar, Self, cast

import numpy as np
from numpy.typing import NDArray

from discreet.accounting.events import SAMPLING_DENOMINATOR
from discreet.accounting.plan import Plan, Release
from discreet.bounds import Domain
from discreet.budget import Budget
from discreet.errors import Unsupported
from discreet.losses.base import Loss
from discreet.losses.constants import gradient_bound, gradient_smoothness
from discreet.penalties.base import Penalty
from discreet.solvers import default_rules
from discreet.solvers.base import Progress, Solution, count_release, public_count
from discreet.solvers.uncertainty.propagation import gain, noise_deviation, tells_noise

if TYPE_CHECKING:
    from discreet.curator import Curator

AVERAGES = ("last", "uniform", "suffix", "polynomial")
MOMENTA = ("none", "heavy_ball", "nesterov")

Vector = NDArray[np.float64]


def project(w: Vector, radius: float | None) -> Vector:
    """Onto the ball: a point outside is shrunk, a point inside stays."""
    norm = float(np.linalg.norm(w))
    return w if radius is None or norm <= radius else w * (radius / norm)


def nesterov_weight(t: int, step: float, strong_convexity: float) -> float:
    """t / (t + 3), capped where strong convexity makes a constant weight the better one."""
    root = math.sqrt(min(1.0, step * strong_convexity))
    return min(t / (t + 3.0), (1.0 - root) / (1.0 + root))


class Averager:
    """The average of iterates w_0, ..., w_T that a mode asks for, in constant memory.

    ``uniform`` is the lecture's (1/(T+1)) sum of all iterates; ``suffix`` averages the last half;
    ``polynomial`` weighs iterate t in proportion to (t+1)(t+2)(t+3) (Shamir & Zhang 2013, eta = 3).
    """

    def __init__(self, mode: str, start: Vector, n_steps: int) -> None:
        self._mode, self._n_steps = mode, n_steps
        self._mean, self._count = start.copy(), 1

    def add(self, w: Vector, t: int) -> None:
        if self._mode == "last" or (self._mode == "suffix" and t <= self._n_steps // 2):
            self._mean = w
            return
        self._count += 1
        share = 4.0 / (self._count + 3) if self._mode == "polynomial" else 1.0 / self._count
        self._mean = self._mean + share * (w - self._mean)

    @property
    def result(self) -> Vector:
        return self._mean


def average_weights(mode: str, n_steps: int) -> Vector:
    """How much of each iterate w_0, ..., w_T is in the average."""
    t, half = np.arange(n_steps + 1), n_steps // 2
    if mode == "last":
        weights = np.where(t == n_steps, 1.0, 0.0)
    elif mode == "polynomial":
        weights = (t + 1.0) * (t + 2.0) * (t + 3.0)
    else:
        weights = np.where(t >= (half if mode == "suffix" else 0), 1.0, 0.0)
    return np.asarray(weights / weights.sum())


@dataclass(frozen=True)
class Descent:
    """The settings and the loop of gradient methods; a method says how it samples.

    Parameters
    ----------
    n_steps
        Gradients to release.
    clip
        Bound on a record's gradient (L2; L1 for pure budgets). None: what the loss and the declared
        bounds imply, so that nothing is clipped.
    step_size
        None: 1/beta, beta the smoothness that the declared bounds imply.
    momentum
        ``"none"``, ``"heavy_ball"`` (constant ``momentum_weight``) or ``"nesterov"``; free.
    average
        ``"last"``, ``"uniform"``, ``"suffix"`` (last half) or ``"polynomial"``; free.
    restart
        Forget the momentum where it points uphill (O'Donoghue & Candes 2015). It looks at released
        gradients only, so it is free; worth it where there is no noise.
    radius
        Project onto the ball of this radius after each step. None: no projection.
    """

    n_steps: int = 100
    clip: float | None = None
    step_size: float | None = None
    momentum: str = "none"
    momentum_weight: float = 0.7
    restart: bool = False
    average: str = "last"
    radius: float | None = None
    name: ClassVar[str]

    def __post_init__(self) -> None:
        if self.average not in AVERAGES:
            raise Unsupported(f"average must be one of {', '.join(AVERAGES)}")
        if self.momentum not in MOMENTA:
            raise Unsupported(f"momentum must be one of {', '.join(MOMENTA)}")
        if not isinstance(self.n_steps, Real) or self.n_steps < 1 or int(self.n_steps) != self.n_steps:
            raise Unsupported("n_steps must be a positive whole number")
        object.__setattr__(self, "n_steps", int(self.n_steps))
        for name in ("clip", "step_size", "radius"):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, Real) and 0 < value < math.inf):
                raise Unsupported(f"{name} must be a positive number, or None")

    def fraction(self, domain: Domain) -> float:
        """The probability with which a record joins a step: 1 for full batches."""
        return 1.0

    def _release(self, domain: Domain, loss: Loss) -> Release:
        """A record's gradient is clipped at ``clip``, else at the bound that no gradient exceeds."""
        clip = self.clip if self.clip is not None else gradient_bound(loss, domain, self.radius)
        return Release("noisy_gradient", self.n_steps, sampling_probability=self.fraction(domain), clip=clip)

    def plan(self, domain: Domain, loss: Loss, penalty: Penalty) -> Plan:
        """``n_steps`` noisy gradients, and a noisy count where n is private."""
        return Plan((self._release(domain, loss), *count_release(domain)))

    def solve(self, curator: "Curator", penalty: Penalty, progress: Progress | None = None) -> Solution:
        """Run the loop from zero; sums are divided by the expected number of records in them.

        ``noise`` is the bound for a loss that is flat but for its penalty (``spread``), since its curvature is not
        public: it is wide where the loss is curved. It takes steps to be stable, eta H <= 1, and knows nothing of the
        sampling of batches.
        """
        domain, loss = curator.domain, curator.loss
        release = self._release(domain, loss)
        clip = cast(float, release.clip)
        expected = public_count(curator) * release.sampling_numerator / SAMPLING_DENOMINATOR
        step = self.step_size if self.step_size is not None else 1.0 / gradient_smoothness(loss, domain)
        w = previous = np.zeros(domain.shape)
        averager = Averager(self.average, w, self.n_steps)
        since, momenta = 0, np.zeros(self.n_steps)
        for t in range(self.n_steps):
            momenta[t] = self._weight(since, step, penalty)
            point = w + momenta[t] * (w - previous)
            gradient = curator.noisy_gradient(point, clip=clip) / expected
            previous, w = w, project(penalty.prox(point - step * gradient, step), self.radius)
            uphill = self.restart and float(np.sum((point - w) * (w - previous))) > 0
            since = 0 if uphill else since + 1
            averager.add(w, t + 1)
            if progress is not None:
                progress(t + 1, self.n_steps)
        if not tells_noise(curator):
            return Solution(averager.result)
        shrink = 1.0 / (1.0 + step * penalty.strong_convexity)
        spread = math.sqrt(float(gain(momenta, average_weights(self.average, self.n_steps), shrink=shrink)[0]))
        deviation = step * noise_deviation(curator, release, clip) / expected * spread
        return Solution(averager.result, np.full(domain.shape, deviation))

    def _weight(self, t: int, step: float, penalty: Penalty) -> float:
        if self.momentum == "nesterov":
            return nesterov_weight(t, step, penalty.strong_convexity)
        return self.momentum_weight if self.momentum == "heavy_ball" else 0.0

    def settings(self) -> dict[str, object]:
        """Public settings, for the certificate."""
        return {"name": self.name, **asdict(self)}

    def filled(self, domain: Domain, loss: Loss, penalty: Penalty, budget: Budget) -> Self:
        """Choose the clip and the step size, where they are left open, for rows of typical length."""
        return replace(
            self,
            clip=default_rules.typical_clip(domain, loss, budget) if self.clip is None else self.clip,
            step_size=default_rules.typical_step(domain, loss, budget) if self.step_size is None else self.step_size,
        )
