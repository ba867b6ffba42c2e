"""DP-AGD: gradient descent that decides as it goes what a gradient and a step size may cost.

Source: Lee & Kifer, KDD 2018. The slides normalize a gradient before averaging it with a second one, use composition
where a filter is needed, and spend 97 % on choosing steps; in the authors' code a choice's noise has the wrong sign.

    while the filter allows:
        S = sum_i clip_C(grad l_i(w)) + N(0, a^2 C^2 / (2 rho_g))                      rho_g: what a gradient may cost
        repeat:  choose alpha among 0, ..., alpha_max at w - alpha S/||S||: the least sum of clipped losses, privately
                 if alpha > 0: w <- w - alpha S/||S||
                 else: measure again with gamma rho_g more, and average in proportion to precision; rho_g grows
        every tau rounds: alpha_max <- (1 + eta) max of the steps taken
    the last w, or the mean of the last half of them

Released: gradients and choices, in a number that the run finds out. Privacy: a zCDP filter (``accounting/plan.py``):
no answer is given that would cross the total, so the run is total-zCDP whatever it decides. Cost: one pass per
gradient, one for each candidate step. Wins where no step size or number of steps is known beforehand.
"""

import math
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain, count, islice
from typing import TYPE_CHECKING, Annotated, ClassVar, Self, cast

import numpy as np

from discreet.accounting.plan import AdaptivePlan, Release
from discreet.bounds import Domain
from discreet.budget import Budget
from discreet.errors import BudgetExceeded, Unsupported
from discreet.losses.base import Loss
from discreet.parameters import Count, OneOf, Positive, Probability, Share
from discreet.penalties.base import Penalty
from discreet.solvers import settings
from discreet.solvers.base import (
    CANARY_CLIP,
    UNWATCHED,
    AuditCase,
    Configured,
    Progress,
    Solution,
    Solver,
    project,
    public_count,
    refuse_weights,
)
from discreet.solvers.gradient_loop import clip_for, step_for
from discreet.solvers.risk_bounds import RiskBound
from discreet.solvers.traces import PathTrace
from discreet.typing import Floats

if TYPE_CHECKING:
    from discreet.curator import Curator


MOST_ROUNDS = 10_000
LEAST = 1e-300  # divides, where all else may be 0
BEYOND = 4.0  # a step whose penalty is this many of the largest sums of losses above the least is never chosen
NO_STEP = 1e-9  # without noise steps are halved until they are this small


@dataclass(frozen=True)
class Measured:
    """A measured gradient sum and its precision, in rho."""

    value: Floats
    rho: float

    def merged(self, other: "Measured") -> "Measured":
        """Return the average in proportion to precision: unbiased, of variance a^2 C^2 / (2 (rho + rho'))."""
        total = self.rho + other.rho
        return Measured((self.rho * self.value + other.rho * other.value) / total, total)


def _measured(curator: "Curator", w: Floats, clip: float, rho: float) -> Measured:
    return Measured(curator.noisy_gradient(w, clip=clip, rho=rho), rho)


@dataclass(frozen=True)
class AdaptiveDescent(Configured):
    """Private gradient descent with adaptive budgets and steps, DP-AGD.

    Parameters
    ----------
    gradient_rho, choice_rho : float or None, default=None
        What the first gradient and each choice may cost, as parts of the total rho. None: by ``n_rounds`` and
        ``gradient_share``.
    n_rounds : int, default=200
        The number of rounds that the total would pay for if no gradient had to be measured again.
    gradient_share : float, default=0.8
        Which part of a round is the gradient's.
    growth : float, default=0.1
        gamma: how much more a gradient costs after no step was found.
    n_step_sizes : int, default=10
        How many step sizes to choose among, 0 not counted.
    largest_step : float, default=2.0
        The first alpha_max, a distance in training coordinates. It is adjusted every ``adjust_every`` rounds to
        (1 + ``adjustment``) times the largest step taken in them, and never exceeds ``largest_step``.
    adjust_every : int, default=10
        tau.
    adjustment : float, default=0.1
        eta.
    shrink : float, default=0.9
        What the largest step is multiplied by where no step was found. 1: the paper's, which may measure for nothing.
    relative_step : float or None, default=None
        No step goes farther than this many times 1 / curvature along the mean gradient as measured: a choice that is
        noise takes longer ones where a gradient is small. None: the paper's, by ``largest_step`` alone.
    step_sizes : tuple of float or None, default=None
        The paper's set of steps, 0 not counted, as lengths in training coordinates: they stay as they are. None:
        ``n_step_sizes`` even ones up to the largest.
    clip, loss_bound : float or None, default=None
        Bounds on a record's gradient and on its loss. None: the gradient's bound that the declared ranges imply (in
        estimated coordinates by ``relative_clip``), and about four times the loss of a model that knows nothing.
    relative_clip : float or None, default=None
        The gradient's bound in units of a typical row's length, where it was estimated.
    radius : float or None, default=None
        Steps are compared and taken after projection onto the ball of this radius.
    selection : {"exponential", "noisy_max"}, default="exponential"
        How steps are chosen; the second is the paper's Laplace noise.
    papers_total : bool, default=False
        Take the total rho from the textbook's conversion, as the paper does; it is less.
    average : {"last", "tail"}, default="last"
        Whether a run ends at its last iterate (the paper's) or at the mean of the last half of them, in which the noise
        of the last few gradients averages out. Without noise it is the last.

    Examples
    --------
    >>> from discreet import DPLogisticRegression
    >>> from discreet.solvers import AdaptiveDescent
    >>> DPLogisticRegression(bounds=1.0, classes=(0, 1), solver=AdaptiveDescent(n_rounds=50)).solver.name
    'agd'
    """

    gradient_rho: Positive | None = None
    choice_rho: Positive | None = None
    n_rounds: Count = 200
    gradient_share: Share = 0.8
    growth: Positive = 0.1
    n_step_sizes: Count = 10
    largest_step: Positive = 2.0
    adjust_every: Count = 10
    adjustment: Positive = 0.1
    shrink: Probability = 0.9
    relative_step: Positive | None = None
    step_sizes: tuple[Positive, ...] | None = None
    clip: Positive | None = None
    loss_bound: Positive | None = None
    relative_clip: Positive | None = None
    radius: Positive | None = None
    selection: Annotated[str, OneOf("exponential", "noisy_max")] = "exponential"
    papers_total: bool = False
    average: Annotated[str, OneOf("last", "tail")] = "last"
    name: ClassVar[str] = "agd"

    @classmethod
    def paper(cls, budget: Budget, *, splits: int = 60, clip: float = 3.0, loss_bound: float = 3.0) -> Self:
        """Configure the authors' budgets: epsilon/(2 splits) per choice, and per gradient by a loose formula."""
        if budget.is_pure or not budget.is_private:
            raise Unsupported("the paper's budgets need a finite epsilon and a delta above 0")
        each = budget.epsilon / (2 * splits)
        total = AdaptivePlan((), papers_total=True).total(budget)
        gradient = each**2 / (4 * math.log(1.25 / budget.delta))
        return cls(
            gradient_rho=gradient / total,
            choice_rho=each**2 / 2 / total,
            clip=clip,
            loss_bound=loss_bound,
            n_step_sizes=20,
            shrink=1.0,
            selection="noisy_max",
            papers_total=True,
        )

    def loss_limit(self, domain: Domain, loss: Loss) -> float:
        """Return the bound on a record's loss: as set, or a multiple of the loss of a model that knows nothing."""
        return self.loss_bound if self.loss_bound is not None else settings.typical_loss(domain, loss)

    def clip_for(self, domain: Domain, loss: Loss) -> float:
        """Return the bound on a record's gradient."""
        return clip_for(domain, loss, self.clip, self.relative_clip)

    def plan(self, domain: Domain, loss: Loss, penalty: Penalty) -> AdaptivePlan:
        """List gradients and choices, as many as the filter lets pass."""
        refuse_weights(domain)
        if _pull(penalty, np.zeros(domain.shape)) is None:
            raise Unsupported(
                "agd compares objectives with an L2 penalty or none: use its radius=... for a ball, or solver='gd'"
            )
        if domain.n is None:
            raise Unsupported("agd weighs the penalty with n: declare Bounds(n=...)")
        gradient = Release("noisy_gradient", 0, clip=self.clip_for(domain, loss))
        choice = Release("select_candidate", 0, clip=self.loss_limit(domain, loss), mechanism=self.selection)
        return AdaptivePlan((gradient, choice), papers_total=self.papers_total)

    def rhos(self, total: float) -> tuple[float, float]:
        """Return what the first gradient and each choice cost; any positive number where nothing is limited."""
        total = total if math.isfinite(total) else 1.0
        gradient, choice = self.gradient_rho, self.choice_rho
        first = gradient if gradient is not None else self.gradient_share / self.n_rounds
        return first * total, (choice if choice is not None else (1 - self.gradient_share) / self.n_rounds) * total

    def solve(self, curator: "Curator", penalty: Penalty, progress: Progress = UNWATCHED) -> Solution:
        """Take rounds from the starting point, until the filter refuses."""
        assert isinstance(curator.plan, AdaptivePlan)
        n, clip = public_count(curator), self.clip_for(curator.domain, curator.loss)
        limit, fixed = self.loss_limit(curator.domain, curator.loss), sum(map(_share, curator.plan.releases))
        rho, choice_rho = self.rhos(curator.plan.total(curator.budget) * (1.0 - fixed))  # what estimates leave
        w, largest, taken = curator.domain.starting_point, self.largest_step, [0.0]
        path, steps, noises = [w], [0.0], [0.0]
        unit = curator.budget.neighbors.sum_factor * clip / n
        rounds = chain(progress(range(self.n_rounds)), count(self.n_rounds))
        with suppress(BudgetExceeded):  # the filter's refusal is the end of the run
            for t in islice(rounds, MOST_ROUNDS):
                curator.next_round()
                S, chosen = _measured(curator, w, clip, rho), 0
                while chosen == 0:
                    # the measured sum keeps its length: the penalty's gradient is added to it as it is
                    full = S.value + n * cast("Floats", _pull(penalty, w))
                    alphas = self._steps(min(largest, self._reach(curator, full / n)))
                    points = _along(w, full, alphas, self.radius)
                    offsets = np.array([n * penalty.value(point) for point in points])
                    offsets = np.minimum(offsets, offsets.min() + BEYOND * n * limit)
                    chosen = curator.select_candidate(points, loss_bound=limit, offsets=offsets, rho=choice_rho)
                    if chosen == 0 and not curator.budget.is_private:  # no noise to blame: no step is any good
                        break
                    if chosen == 0:
                        largest *= self.shrink
                        S = S.merged(_measured(curator, w, clip, self.growth * S.rho))
                w, rho = points[chosen], S.rho
                path.append(w)
                taken.append(float(alphas[chosen]))
                steps.append(taken[-1] * n / max(float(np.linalg.norm(full)), LEAST))
                noises.append(unit / math.sqrt(2.0 * rho))
                largest = self._adjusted(largest, taken, t + 1)
                if largest < NO_STEP:
                    break
        averaged = self.average == "tail" and curator.budget.is_private
        first = len(path) // 2 if averaged else len(path) - 1
        weights = np.where(np.arange(len(path)) >= first, 1.0 / (len(path) - first), 0.0)
        trace = PathTrace(np.array(steps[1:]), np.array(noises[1:]), weights)
        return Solution(np.mean(path[first:], axis=0) if averaged else w, trace)

    def _reach(self, curator: "Curator", gradient: Floats) -> float:
        """Return how far a step along this mean gradient may go."""
        if self.relative_step is None:
            return math.inf
        return step_for(curator.domain, curator.loss, None, self.relative_step) * float(np.linalg.norm(gradient))

    def _steps(self, largest: float) -> Floats:
        """Return the lengths to choose among, 0 first."""
        if self.step_sizes is None:
            return np.linspace(0.0, largest, self.n_step_sizes + 1)
        return np.array([0.0, *self.step_sizes])

    def _adjusted(self, largest: float, taken: list[float], rounds: int) -> float:
        """Return alpha_max for the next round: by the steps taken, every tau; its half where none is any good."""
        if taken[-1] == 0:
            return 0.5 * largest
        if rounds % self.adjust_every == 0:
            return min(self.largest_step, (1 + self.adjustment) * max(taken[-self.adjust_every :]))
        return largest

    def bound(self, domain: Domain, loss: Loss, budget: Budget) -> RiskBound:
        """Refuse: the paper proves privacy, and nothing of utility; how many steps a run takes is known afterwards."""
        raise Unsupported("agd has no bound: its paper has no theorem on utility")

    @classmethod
    def defaults(cls, domain: Domain, loss: Loss, penalty: Penalty, budget: Budget) -> Solver:
        """Return what ``agd`` stands for (``settings``)."""
        return settings.agd(settings.Facts(domain, loss, penalty, budget))

    def filled(self, domain: Domain, loss: Loss, penalty: Penalty, budget: Budget) -> Self:
        """Choose the clip, where it is left open: twice the typical one.

        A tighter one turns the gradient away from where the losses that are compared descend.
        """
        clip = settings.typical_clip(domain, loss, budget) * (2.0 if budget.is_private else 1.0)
        limit = self.loss_bound if budget.is_private or self.loss_bound is not None else settings.LIMIT_LOSS
        return replace(
            self,
            loss_bound=limit if limit is not None else settings.typical_loss(domain, loss),
            clip=clip if self.clip is None else self.clip,
        )

    @classmethod
    def audit_case(cls) -> AuditCase:
        """Run five rounds, which take long."""
        return AuditCase(cls(n_rounds=5, clip=CANARY_CLIP, loss_bound=0.25), effort=0.1)


def _share(release: Release) -> float:
    """Return the share of the total rho that a release with fixed noise takes; 0 for answers that bring their rho."""
    return release.count / release.relative_noise**2


def _pull(penalty: Penalty, w: Floats) -> Floats | None:
    """Return the penalty's gradient; None where it has corners."""
    if penalty.ridge:
        return np.asarray(penalty.strong_convexity * w)
    if penalty.hessian is not None:
        return penalty.gradient(w)
    l1, l2 = penalty.l1_l2 or (1.0, 0.0)
    return None if np.any(l1) else np.asarray((w.T * l2).T)


def _along(w: Floats, direction: Floats, alphas: Floats, radius: float | None) -> Floats:
    """Return the points w - alpha direction / ||direction||, each projected onto the ball."""
    length = float(np.linalg.norm(direction))
    points = w - np.multiply.outer(alphas, direction / length if length > 0 else direction)
    return points if radius is None else np.stack([project(point, radius) for point in points])
