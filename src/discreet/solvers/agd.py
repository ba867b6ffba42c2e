"""DP-AGD: gradient descent that decides as it goes what a gradient and a step size may cost.

Source: Lee & Kifer, KDD 2018. The slides normalize a gradient before averaging it with a second one, use composition
where a filter is needed, and spend 97 % on choosing steps; in the authors' code a choice's noise has the wrong sign.

    while the filter allows:
        S = sum_i clip_C(grad l_i(w)) + N(0, a^2 C^2 / (2 rho_g))                      rho_g: what a gradient may cost
        repeat:  choose alpha among 0, ..., alpha_max at w - alpha S/||S||: the least sum of clipped losses, privately
                 if alpha > 0: take the step
                 else: measure again with gamma rho_g more, and average in proportion to precision; rho_g grows
        every tau rounds: alpha_max follows the steps taken

Released: gradients and choices, in a number that the run finds out. Privacy: a zCDP filter (``zcdp_filter.py``):
no answer is given that would cross the total, so the run is total-zCDP whatever it decides. Cost: one pass a gradient,
one for each candidate step. Wins where no step size or number of steps is known beforehand.
"""

import math
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from discreet.accounting.plan import AdaptivePlan, Release
from discreet.bounds import Domain
from discreet.budget import Budget
from discreet.errors import BudgetExceeded, Unsupported
from discreet.losses.base import Loss
from discreet.losses.constants import gradient_bound
from discreet.penalties.base import Penalty
from discreet.solvers import default_rules
from discreet.solvers.base import Progress, Solution, public_count
from discreet.solvers.registry import CANARY_CLIP, AuditCase, register

if TYPE_CHECKING:
    from discreet.curator import Curator

Vector = NDArray[np.float64]

MOST_ROUNDS = 10_000
TYPICAL_LOSS = 3.0  # more than four times the logistic loss at zero
NO_STEP = 1e-9  # without noise steps are halved until they are this small


@dataclass(frozen=True)
class Measured:
    """A measured gradient sum and its precision, in rho."""

    value: Vector
    rho: float

    def merged(self, other: "Measured") -> "Measured":
        """The average in proportion to precision: unbiased, of variance a^2 C^2 / (2 (rho + rho'))."""
        total = self.rho + other.rho
        return Measured((self.rho * self.value + other.rho * other.value) / total, total)


@register("agd")
@dataclass(frozen=True)
class AdaptiveDescent:
    """DP-AGD; see the module for the algorithm.

    Parameters
    ----------
    gradient_rho, choice_rho
        What the first gradient and each choice may cost, as parts of the total rho. None: by ``n_rounds`` and
        ``gradient_share``.
    n_rounds
        The number of rounds that the total would pay for if no gradient had to be measured again.
    gradient_share
        Which part of a round is the gradient's.
    growth
        gamma: how much more a gradient costs after no step was found.
    n_steps
        How many step sizes to choose among, 0 not counted.
    largest_step
        The first alpha_max, a distance in training coordinates. It is adjusted every ``adjust_every`` rounds to
        (1 + ``adjustment``) times the largest step taken in them, and never exceeds ``largest_step``.
    shrink
        What the largest step is multiplied by where no step was found. 1: the paper's, which may measure in vain.
    clip, loss_bound
        Bounds on a record's gradient and on its loss. None: the gradient's bound that the declared ranges imply; 3.
    selection
        ``"exponential"``, or ``"noisy_max"`` (the paper's Laplace noise).
    papers_total
        Take the total rho from the textbook's conversion, as the paper does; it is less.
    """

    gradient_rho: float | None = None
    choice_rho: float | None = None
    n_rounds: int = 200
    gradient_share: float = 0.8
    growth: float = 0.1
    n_steps: int = 10
    largest_step: float = 2.0
    adjust_every: int = 10
    adjustment: float = 0.1
    shrink: float = 0.9
    clip: float | None = None
    loss_bound: float | None = None
    selection: str = "exponential"
    papers_total: bool = False
    name: ClassVar[str] = "agd"

    def __post_init__(self) -> None:
        if self.selection not in ("exponential", "noisy_max"):
            raise Unsupported("selection must be exponential or noisy_max")
        for name in ("n_rounds", "n_steps", "adjust_every"):
            if not (isinstance(getattr(self, name), (int, np.integer)) and getattr(self, name) >= 1):
                raise Unsupported(f"{name} must be a positive whole number")
        for name in ("gradient_rho", "choice_rho", "clip", "loss_bound"):
            if getattr(self, name) is not None and not _is_positive(getattr(self, name)):
                raise Unsupported(f"{name} must be a positive number, or None")
        for name in ("growth", "largest_step", "adjustment", "shrink", "gradient_share"):
            if not _is_positive(getattr(self, name)):
                raise Unsupported(f"{name} must be a positive number")
        if self.gradient_share >= 1 or self.shrink > 1:
            raise Unsupported("gradient_share must be below 1, and shrink at most 1")

    @classmethod
    def paper(cls, budget: Budget, *, splits: int = 60, clip: float = 3.0, loss_bound: float = 3.0) -> Self:
        """The authors' budgets: epsilon/(2 splits) a choice, and a gradient of the same epsilon by a loose formula."""
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
            n_steps=20,
            shrink=1.0,
            selection="noisy_max",
            papers_total=True,
        )

    @property
    def loss_limit(self) -> float:
        """The bound on a record's loss."""
        return self.loss_bound if self.loss_bound is not None else TYPICAL_LOSS

    def clip_for(self, domain: Domain, loss: Loss) -> float:
        """The bound on a record's gradient."""
        return self.clip if self.clip is not None else gradient_bound(loss, domain)

    def plan(self, domain: Domain, loss: Loss, penalty: Penalty) -> AdaptivePlan:
        """Gradients and choices, as many as the filter lets pass."""
        if not penalty.ridge:
            raise Unsupported("agd compares objectives with an L2 penalty or none: use solver='gd' or 'cd' for others")
        if domain.n is None:
            raise Unsupported("agd weighs the penalty with n: declare Bounds(n=...)")
        gradient = Release("noisy_gradient", 0, clip=self.clip_for(domain, loss))
        choice = Release("select_candidate", 0, clip=self.loss_limit, mechanism=self.selection)
        return AdaptivePlan((gradient, choice), papers_total=self.papers_total)

    def rhos(self, total: float) -> tuple[float, float]:
        """What the first gradient and each choice cost; any positive number where nothing is limited."""
        total = total if math.isfinite(total) else 1.0
        gradient, choice = self.gradient_rho, self.choice_rho
        first = gradient if gradient is not None else self.gradient_share / self.n_rounds
        return first * total, (choice if choice is not None else (1 - self.gradient_share) / self.n_rounds) * total

    def solve(self, curator: "Curator", penalty: Penalty, progress: Progress | None = None) -> Solution:
        """Rounds from zero, until nothing more can be bought.

        No ``noise``: which step is taken, and how often, are noisy choices; without noise the run would be another.
        """
        run = _Run(self, curator, penalty)
        for t in range(MOST_ROUNDS):
            curator.next_round()
            try:
                step = run.round()
            except BudgetExceeded:  # the filter's word is the end of the run
                break
            if not run.goes_on(t + 1, step):
                break
            if progress is not None:
                progress(min(t + 1, self.n_rounds), self.n_rounds)
        return Solution(run.w)

    def settings(self) -> dict[str, object]:
        """Public settings, for the certificate."""
        return {"name": self.name, **asdict(self)}

    @classmethod
    def defaults(cls, domain: Domain, loss: Loss, penalty: Penalty, budget: Budget) -> Self:
        """Many cheap rounds, up to steps that move a margin of a typical row by 2.

        200 rounds, a fifth of each for the choice among 10 steps: fewer and more expensive rounds were worse on three
        public data sets (credit default, bank marketing, electricity), since steepest descent needs many.
        """
        return cls(largest_step=2.0 / default_rules.typical_row_norm(domain))

    def filled(self, domain: Domain, loss: Loss, penalty: Penalty, budget: Budget) -> Self:
        """Choose the clip, where it is left open: twice the typical one.

        A tighter one turns the gradient away from where the losses that are compared descend.
        """
        clip = default_rules.typical_clip(domain, loss, budget) * (2.0 if budget.is_private else 1.0)
        limit = self.loss_bound if budget.is_private or self.loss_bound is not None else default_rules.LIMIT_LOSS
        return replace(self, loss_bound=limit, clip=clip if self.clip is None else self.clip)

    @classmethod
    def audit_case(cls) -> AuditCase:
        """Five rounds; they take long."""
        return AuditCase(cls(n_rounds=5, clip=CANARY_CLIP, loss_bound=0.25), effort=0.1)


def _is_positive(value: object) -> bool:
    return isinstance(value, (int, float, np.number)) and bool(0 < value < math.inf)


class _Run:
    """One run's state: the point, what a gradient costs by now, and the largest step."""

    def __init__(self, solver: AdaptiveDescent, curator: "Curator", penalty: Penalty) -> None:
        assert isinstance(curator.plan, AdaptivePlan)
        self.solver, self.curator, self.penalty = solver, curator, penalty
        self.n = public_count(curator)
        self.rho, self.choice_rho = solver.rhos(curator.plan.total(curator.budget))
        self.w = np.zeros(curator.domain.shape)
        self.largest = solver.largest_step
        self.taken: list[float] = []

    def round(self) -> float:
        """Measure, choose and move; the step's size. 0 only where there is no noise to blame it on."""
        solver, gradient = self.solver, self._measured(self.rho)
        while True:
            # the measured sum keeps its length: the penalty's gradient is added to it as it is
            full = gradient.value + self.n * self.penalty.strong_convexity * self.w
            length = float(np.linalg.norm(full))
            steps = np.linspace(0.0, self.largest, solver.n_steps + 1)
            points = self.w - np.multiply.outer(steps, full / length if length > 0 else full)
            chosen = self.curator.select_candidate(
                points,
                loss_bound=solver.loss_limit,
                offsets=[self.n * self.penalty.value(point) for point in points],
                rho=self.choice_rho,
            )
            if chosen > 0 or not self.curator.budget.is_private:
                self.w, self.rho = points[chosen], gradient.rho
                return float(steps[chosen])
            self.largest *= solver.shrink
            gradient = gradient.merged(self._measured(solver.growth * gradient.rho))

    def _measured(self, rho: float) -> Measured:
        clip = self.solver.clip_for(self.curator.domain, self.curator.loss)
        return Measured(self.curator.noisy_gradient(self.w, clip=clip, rho=rho), rho)

    def goes_on(self, rounds: int, step: float) -> bool:
        """Adjust the largest step: to the steps taken, every so often; to its half where none is any good."""
        solver = self.solver
        self.taken.append(step)
        if step == 0:
            self.largest *= 0.5
        elif rounds % solver.adjust_every == 0:
            self.largest = min(solver.largest_step, (1 + solver.adjustment) * max(self.taken[-solver.adjust_every :]))
        return self.largest >= NO_STEP
