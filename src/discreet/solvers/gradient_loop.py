"""What gradient methods share: settings, step schedules, samples, momentum, averages, projection. All of it is free.

Step sizes over time are eta_t = eta factor_t, by name or as given:

``constant``  1
``sqrt``      1 / sqrt(t + 1), for convex losses
``inverse``   1 / (t + 1), for strongly convex ones
``linear``    1 - t / T, which averages the last steps' noise out without an average
``cosine``    (1 + cos(pi t / T)) / 2
"""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal, Self

import numpy as np

from discreet.accounting.events import SAMPLING_DENOMINATOR
from discreet.accounting.plan import Plan, Release
from discreet.bounds import Domain
from discreet.budget import Budget
from discreet.errors import Unsupported
from discreet.losses.base import Loss, gradient_bound, gradient_smoothness, slope_at_zero
from discreet.parameters import Count, OneOf, Positive, Weight, conforms
from discreet.penalties.base import Penalty
from discreet.solvers.base import Configured, count_release, project
from discreet.solvers.propagation import average_weights as average_weights
from discreet.solvers.risk_bounds import (
    CALIBRATIONS,
    NoisySteps,
    RiskBound,
    averaged_bound,
    last_bound,
    published_noise,
)
from discreet.solvers.settings import LIMIT_MARGIN, TYPICAL_SLOPE, typical_clip, typical_step
from discreet.solvers.traces import DescentTrace, Noise
from discreet.typing import Floats

if TYPE_CHECKING:
    from discreet.curator import Curator
    from discreet.solvers.decrease import Decrease


SCHEDULES = ("constant", "sqrt", "inverse", "linear", "cosine")
Schedule = str | tuple[float, ...]


def step_factors(schedule: Schedule, n_steps: int) -> Floats:
    """Return what the step size is multiplied by in each of the steps."""
    if not isinstance(schedule, str):
        return np.asarray(schedule, dtype=np.float64)
    t = np.arange(n_steps)
    factors = {
        "constant": np.ones(n_steps),
        "sqrt": 1.0 / np.sqrt(t + 1.0),
        "inverse": 1.0 / (t + 1.0),
        "linear": 1.0 - t / n_steps,
        "cosine": 0.5 * (1.0 + np.cos(np.pi * t / n_steps)),
    }
    return np.asarray(factors[schedule])


def check_schedule(schedule: object, n_steps: int) -> None:
    """Refuse what is neither a name nor one positive factor per step."""
    if isinstance(schedule, str) and schedule in SCHEDULES:
        return
    given = schedule if isinstance(schedule, tuple) else ()
    if len(given) != n_steps or not all(conforms(factor, Positive) for factor in given):
        raise Unsupported(
            f"step_schedule must be one of {', '.join(SCHEDULES)}, or a tuple of n_steps = {n_steps} positive factors"
        )


def fraction_of(batch_size: float | None, sampling_probability: float | None, domain: Domain) -> float:
    """Return the probability with which a record joins a sample, as given or from the expected batch size."""
    if sampling_probability is not None:
        return min(1.0, sampling_probability)
    if batch_size is None:
        raise Unsupported("say how to sample: give a batch_size or a sampling_probability")
    if domain.n is None:
        raise Unsupported("n is private here: give a sampling_probability, or declare Bounds(n=...)")
    return min(1.0, batch_size / domain.n)


def check_sampling(batch_size: float | None, sampling_probability: float | None) -> None:
    """Refuse both at once."""
    if batch_size is not None and sampling_probability is not None:
        raise Unsupported("give batch_size or sampling_probability, not both")


def drawn(probability: float) -> float:
    """Return the probability as the curator draws and prices it: rounded up to a multiple of 2^-16."""
    return math.ceil(Fraction(probability) * SAMPLING_DENOMINATOR) / SAMPLING_DENOMINATOR


AVERAGES = ("last", "uniform", "suffix", "tail", "polynomial")
Momentum = Weight | Literal["nesterov"]


def clip_for(
    domain: Domain, loss: Loss, clip: float | None, relative: float | None = None, radius: float | None = None
) -> float:
    """Return the bound on a record's gradient: as set, in units of typical rows, or what the declared bounds imply."""
    typical = domain.typical
    if clip is not None:
        return clip
    if typical is not None and typical.norm is not None:
        return (relative if relative is not None else TYPICAL_SLOPE * slope_at_zero(loss)) * typical.norm
    if typical is not None and not math.isfinite(loss.lipschitz_for(domain.target_bound)):
        return float(loss.lipschitz_for(domain.target_bound, LIMIT_MARGIN)) * domain.row_norm
    if typical is None and relative is not None:
        return relative * domain.row_norm
    return gradient_bound(loss, domain, radius)


def step_for(domain: Domain, loss: Loss, step_size: float | None, relative_step: float) -> float:
    """Return the step: as set, or relative to 1 / curvature, estimated or declared."""
    if step_size is not None:
        return step_size
    if domain.typical is not None:
        return relative_step / float(loss.smoothness * domain.typical.moment)
    return relative_step / gradient_smoothness(loss, domain)


def momentum_weight(momentum: Momentum, t: int, step: float, strong_convexity: float) -> float:
    """Return beta_t: a constant, or Nesterov's t / (t + 3), capped where strong convexity favors a constant."""
    if not isinstance(momentum, str):
        return momentum
    root = math.sqrt(min(1.0, step * strong_convexity))
    return min(t / (t + 3.0), (1.0 - root) / (1.0 + root))


class Averager:
    """The average of iterates w_0, ..., w_T that a word asks for (``average_weights``), in constant memory."""

    def __init__(self, average: str, start: Floats, n_steps: int) -> None:
        first = {"last": n_steps, "tail": n_steps // 2 + 1, "suffix": n_steps // 2}
        self._average, self._first = average, first.get(average, 0)
        self.result, self._count = start.copy(), 1

    def add(self, w: Floats, t: int) -> None:
        """Take iterate t into the average."""
        if t <= self._first:
            self.result = w
            return
        self._count += 1
        share = 4.0 / (self._count + 3) if self._average == "polynomial" else 1.0 / self._count
        self.result = self.result + share * (w - self.result)


class Path:
    """The iterates of a run: w_t, the momentum that leads ahead of it, the running average. Constant memory.

    ``restart`` forgets the momentum where it points uphill (O'Donoghue & Candes 2015): it looks at released gradients.
    """

    def __init__(
        self,
        start: Floats,
        n_steps: int,
        *,
        momentum: Momentum,
        average: str,
        step: float,
        strong_convexity: float = 0.0,
        restart: bool = False,
    ) -> None:
        self.w = self._previous = start
        self.momenta, self.weights = np.zeros(n_steps), average_weights(average, n_steps)
        self._averager = Averager(average, start, n_steps)
        self._done, self._since, self._restart = 0, 0, restart
        self._beta = partial(momentum_weight, momentum, step=step, strong_convexity=strong_convexity)

    def ahead(self) -> Floats:
        """Return v_t = w_t + beta_t (w_t - w_{t-1})."""
        self.momenta[self._done] = beta = self._beta(self._since)
        return np.asarray(self.w + beta * (self.w - self._previous))

    def move(self, v: Floats, w: Floats) -> None:
        """Take w_{t+1}, which was reached from v_t, and add it to the average."""
        self._previous, self.w = self.w, w
        uphill = self._restart and float(np.sum((v - w) * (w - self._previous))) > 0
        self._since = 0 if uphill else self._since + 1
        self._done += 1
        self._averager.add(w, self._done)

    @property
    def average(self) -> Floats:
        """The average of the iterates so far."""
        return self._averager.result


class OpenSteps(Configured):
    """Gradient methods whose clip and step, where they are left open, are for rows of typical length."""

    clip: float | None
    step_size: float | None

    def filled(self, domain: Domain, loss: Loss, penalty: Penalty, budget: Budget) -> Self:
        """Choose the clip and the step size, where they are left open, for rows of typical length."""
        clip = typical_clip(domain, loss, budget) if self.clip is None else self.clip
        step = typical_step(domain, loss, budget) if self.step_size is None else self.step_size
        return replace(self, clip=clip, step_size=step)  # type: ignore[type-var]


@dataclass(frozen=True)
class Descent(OpenSteps):
    """The settings of gradient methods: see ``GradientDescent``."""

    n_steps: Count = 100
    clip: Positive | None = None
    step_size: Positive | None = None
    momentum: Momentum = 0.0
    restart: bool = False
    average: Annotated[str, OneOf(*AVERAGES)] = "last"
    radius: Positive | None = None
    relative_clip: Positive | None = None
    relative_step: Positive = 1.0
    step_schedule: Schedule = "constant"
    calibration: Annotated[str, OneOf(*CALIBRATIONS)] = "tight"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_schedule(self.step_schedule, self.n_steps)

    def clip_for(self, domain: Domain, loss: Loss) -> float:
        """Return C."""
        return clip_for(domain, loss, self.clip, self.relative_clip, self.radius)

    def step_for(self, domain: Domain, loss: Loss) -> float:
        """Return eta."""
        return step_for(domain, loss, self.step_size, self.relative_step)

    def fraction(self, domain: Domain) -> float:
        """Return the share of the records that a step sees: all of them."""
        return 1.0

    def _plan(self, domain: Domain, loss: Loss) -> Plan:
        clip, fraction = self.clip_for(domain, loss), self.fraction(domain)
        steps = Release("noisy_gradient", self.n_steps, sampling_probability=fraction, clip=clip)
        least = published_noise(self.calibration, self.n_steps, drawn(fraction))
        return Plan((steps, *count_release(domain)), least)

    def steps_for(self, domain: Domain, loss: Loss) -> Floats:
        """Return eta_t for each step."""
        return np.asarray(self.step_for(domain, loss) * step_factors(self.step_schedule, self.n_steps))

    def bound(
        self,
        domain: Domain,
        loss: Loss,
        budget: Budget,
        *,
        penalty: Penalty | None = None,
        confidence: float | None = None,
    ) -> RiskBound:
        """Bound the excess risk of this run, for constants as declared: in expectation, or with ``confidence``.

        For steps of one size from 0: averaged on a ball that holds a minimizer, without a penalty
        (``averaged_bound``), or the last iterate with an L2 penalty (``last_bound``). Sampling is counted; on samples a
        confidence is that of ``bound(...).with_probability(...)``.
        """
        strength = 0.0 if penalty is None else penalty.strong_convexity
        if self.momentum or self.step_schedule != "constant" or not (penalty is None or penalty.ridge):
            raise Unsupported("the bound is for steps of one size without momentum, with an L2 penalty or none")
        clip, step = self.clip_for(domain, loss), self.step_for(domain, loss)
        run = NoisySteps.of(
            self._plan(domain, loss), domain, loss, budget, clip=clip, step=step, radius=self.radius,
            n_steps=self.n_steps, fraction=drawn(self.fraction(domain)),
        )  # fmt: skip
        if self.average == "last" and strength > 0:
            return last_bound(run, domain, loss, self.radius, strength, confidence)
        if self.average != "uniform" or self.radius is None or strength > 0:
            raise Unsupported("the bound is for average='uniform' on a ball (radius=...), or 'last' with an L2 penalty")
        return averaged_bound(run, domain, loss, self.radius, confidence)

    def path(self, start: Floats, step: float, penalty: Penalty) -> Path:
        """Return a path from here, with these settings' momentum and average."""
        return Path(
            project(start, self.radius), self.n_steps, momentum=self.momentum, average=self.average, step=step,
            strong_convexity=penalty.strong_convexity, restart=self.restart,
        )  # fmt: skip

    def trace(
        self,
        curator: "Curator",
        penalty: Penalty,
        path: Path,
        step: float,
        clip: float,
        count: float,
        decrease: "Decrease | None" = None,
    ) -> DescentTrace | None:
        """Return what a run did whose sums were over ``count`` records; None where steps differ: no figure is known."""
        if self.step_schedule != "constant":
            return None
        noise, shrink = Noise.of(curator, "noisy_gradient"), 1.0 / (1.0 + step * penalty.strong_convexity)
        return DescentTrace(path.w.shape, step, clip, count, path.momenta, path.weights, noise, shrink, decrease)
