"""What the one-shot solvers share: a minimizer that must be strongly convex, of a loss that must be Lipschitz."""

from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np

from discreet.bounds import Domain
from discreet.budget import Budget
from discreet.curator import Problem
from discreet.errors import Unsupported
from discreet.losses.base import Loss
from discreet.losses.constants import gradient_bound, lipschitz_within
from discreet.penalties.base import Penalty
from discreet.solvers import default_rules
from discreet.solvers.base import UNWATCHED, Progress, Solution, check_positive
from discreet.solvers.uncertainty.traces import PointTrace
from discreet.typing import Floats

if TYPE_CHECKING:
    from discreet.curator import Curator

TOLERANCE = 1e-11
"""The minimizer's certified gradient, over n times the bound on a record's."""


def point_trace(curator: "Curator", sensitivity: float, *, cut: bool = False) -> PointTrace:
    """Return what is public of one noisy point of this L2 sensitivity."""
    return PointTrace(curator.domain.shape, curator.noise_multiplier, sensitivity, curator.budget.is_pure, cut)


@dataclass(frozen=True)
class OneShot(ABC):
    """Settings that output and objective perturbation share: see ``ObjectivePerturbation``."""

    regularization: float | None = None
    clip: float | None = None
    row_norm: float | None = None
    radius: float | None = None
    tolerance: float = TOLERANCE
    name: ClassVar[str]

    def __post_init__(self) -> None:
        check_positive(self, "regularization", "clip", "row_norm", "radius", open_too=True)
        check_positive(self, "tolerance")

    def problem(self, strength: float, n: float) -> Problem:
        """Return what is minimized, at this modulus of strong convexity of the mean."""
        return Problem(strength, n, self.clip, self.row_norm, self.radius, self.tolerance)

    def strength(self, penalty: Penalty) -> float:
        """Return the modulus of strong convexity, of the mean."""
        total = self._modulus(penalty)
        if not total > 0:
            raise Unsupported(
                f"{self.name} perturbation needs strong convexity, since the minimizer of a merely convex loss can "
                "jump when one record changes (a median does): pass an L2 penalty, or a solver with regularization=..."
            )
        return total

    def _modulus(self, penalty: Penalty) -> float:
        if not penalty.ridge:
            raise Unsupported(
                f"{self.name} perturbation is proven here for smooth penalties: use L2 or none, or solver='gd', 'cd' "
                "or 'gcd' for penalties with corners"
            )
        return penalty.strong_convexity + (self.regularization or 0.0)

    def _refuse_uncovered(self, domain: Domain, loss: Loss, radius: float) -> None:
        """Refuse settings whose bias a bound on the excess risk does not count, for ||w*|| <= ``radius``.

        A clip or a row norm that reaches a record minimizes another function; a ball that w* lies outside moves it.
        """
        if self.row_norm is not None and self.row_norm < domain.row_norm:
            raise Unsupported("the bound is for records as they are: leave row_norm out")
        if self.radius is not None and self.radius < radius:
            raise Unsupported("the bound is for coefficients within the ball: give the solver a radius as large")
        if self.clip is not None and self.clip < gradient_bound(loss, domain, self.radius):
            raise Unsupported("the bound is for gradients as they are, since clips add a bias: leave clip out")

    @abstractmethod
    def solve(self, curator: "Curator", penalty: Penalty, progress: Progress = UNWATCHED) -> Solution:
        """Ask one question."""

    def _answered(self, curator: "Curator", problem: Problem, w: Floats, sensitivity: float) -> Solution:
        """Project the answer onto the ball where there is one: noise may have led out of it. Free."""
        cut = self.radius is not None and float(np.linalg.norm(w)) >= self.radius * (1 - 1e-6)
        return Solution(problem.projected(w), point_trace(curator, sensitivity, cut=cut))

    def settings(self) -> dict[str, object]:
        """Return its public settings, for the certificate."""
        return {"name": self.name, **asdict(self)}

    @abstractmethod
    def default_strength(self, domain: Domain, loss: Loss, budget: Budget) -> float:
        """Return the regularization that public facts suggest, where there is noise."""

    def filled(self, domain: Domain, loss: Loss, penalty: Penalty, budget: Budget) -> Self:
        """Shrink rows to rho, clip slopes, and choose the regularization by public facts, where they are left open."""
        made = self
        if made.clip is None and made.radius is None:
            lipschitz_within(loss, domain, None)  # refuses the squared loss without a ball
        if budget.is_private and made.row_norm is None:
            made = replace(made, row_norm=default_rules.typical_row_norm(domain))
        if budget.is_private and made.clip is None and made.radius is None and loss.n_outputs == 1:
            slope = loss.typical_slope(domain.target_bound)
            made = replace(made, clip=slope * (made.row_norm or domain.row_norm))
        if made.regularization is not None or getattr(made, "n_steps", None) is not None:
            return made
        strength = default_rules.LIMIT_STRENGTH
        if budget.is_private:
            strength = made.default_strength(domain, loss, budget)
        missing = strength - penalty.strong_convexity
        return replace(made, regularization=missing) if missing > 0 else made
