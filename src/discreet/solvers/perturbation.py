"""What the one-shot solvers share: a minimizer that must be strongly convex, of a loss that must be Lipschitz."""

import math
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Annotated, ClassVar, Self

import numpy as np
from scipy.special import gammaincinv

from discreet.accounting.plan import Plan
from discreet.bounds import Domain
from discreet.budget import Budget
from discreet.curator import Problem
from discreet.errors import Unsupported
from discreet.losses.base import Loss, gradient_bound
from discreet.parameters import Between, OneOf, Positive, check_fields
from discreet.penalties import NoPenalty
from discreet.penalties.base import Penalty
from discreet.solvers import settings
from discreet.solvers.base import UNWATCHED, Progress, Solution, planned
from discreet.solvers.traces import PointTrace
from discreet.typing import Floats

if TYPE_CHECKING:
    from discreet.curator import Curator


LIMIT_SLOPE = 1e6
"""Without noise: beyond any residual near an optimum of an unbounded loss."""
TOLERANCE = 1e-11
"""The minimizer's certified gradient, over n times the bound on a record's."""


def point_trace(
    curator: "Curator", query: str, sensitivity: float, *, cut: bool = False, strength: float = 0.0
) -> PointTrace:
    """Return what is public of one noisy point of this L2 sensitivity, by the noise of ``query``."""
    multiplier = curator.noise_multiplier * planned(curator, query).relative_noise
    return PointTrace(curator.domain.shape, multiplier, sensitivity, curator.budget.is_pure, cut, strength)


def noise_lengths(size: int, *, pure: bool, confidence: float | None = None) -> tuple[float, float]:
    """Return E ||b|| (at most) and E ||b||^2 of noise of scale 1; with a ``confidence``, its quantile and the square.

    Gaussian noise: sqrt(p) and p, the quantile of a chi variable; pure budgets: p and p (p + 1), that of a Gamma one.
    """
    if confidence is None:
        return (float(size), float(size * (size + 1))) if pure else (math.sqrt(size), float(size))
    if not 0 < confidence < 1:
        raise Unsupported("the confidence lies between 0 and 1, such as 0.95")
    length = float(gammaincinv(size, confidence) if pure else math.sqrt(2 * gammaincinv(size / 2, confidence)))
    return length, length**2


@dataclass(frozen=True)
class OneShot(ABC):
    """Settings that output and objective perturbation share: see ``ObjectivePerturbation``."""

    regularization: Positive | None = None
    clip: Positive | None = None
    row_norm: Positive | None = None
    radius: Positive | None = None
    tolerance: Annotated[float, Between("a number from 2.3e-16 to 1", 2.0**-52, 1.0, ends="both")] = TOLERANCE
    calibration: Annotated[str, OneOf("tight", "paper")] = "tight"
    name: ClassVar[str]

    def __post_init__(self) -> None:
        check_fields(self)

    def problem(self, strength: float, n: float, extra: Floats | None = None, l1: float = 0.0) -> Problem:
        """Return what is minimized, at this modulus of strong convexity of the mean."""
        return Problem(strength, n, self.clip, self.row_norm, self.radius, self.tolerance, extra, l1)

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
        if not penalty.ridge and self._extra(penalty) is None:
            steps = "OutputPerturbation(n_steps=...) for L1 and elastic net, " if self.name == "output" else ""
            raise Unsupported(
                f"{self.name} perturbation is proven here for smooth penalties: use L2 or none, the solver's "
                f"radius=... for a ball, {steps}or solver='gd'"
            )
        return (penalty.strong_convexity if penalty.ridge else 0.0) + (self.regularization or 0.0)

    def _extra(self, penalty: Penalty) -> Floats | None:
        """Return the strengths of an L2 penalty in recoded coordinates, one per column; None for other penalties."""
        strengths = None if penalty.ridge else penalty.l1_l2
        if strengths is None or np.any(strengths[0]):
            return None
        return np.asarray(strengths[1], dtype=np.float64)

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
    def plan(self, domain: Domain, loss: Loss, penalty: Penalty) -> Plan:
        """List what is released."""

    @abstractmethod
    def solve(self, curator: "Curator", penalty: Penalty, progress: Progress = UNWATCHED) -> Solution:
        """Ask one question."""

    def _answered(self, curator: "Curator", query: str, problem: Problem, w: Floats, sensitivity: float) -> Solution:
        """Project the answer onto the ball where there is one: noise may have led out of it. Free."""
        cut = self.radius is not None and float(np.linalg.norm(w)) >= self.radius * (1 - 1e-6)
        strength = problem.regularization if query == "perturb_objective" else 0.0
        return Solution(problem.projected(w), point_trace(curator, query, sensitivity, cut=cut, strength=strength))

    def settings(self) -> dict[str, object]:
        """Return its public settings, for the certificate."""
        return {"name": self.name, **asdict(self)}

    @abstractmethod
    def default_strength(self, domain: Domain, loss: Loss, budget: Budget) -> float:
        """Return the regularization that public facts suggest, where there is noise."""

    def filled(self, domain: Domain, loss: Loss, penalty: Penalty, budget: Budget) -> Self:
        """Shrink rows to rho, clip slopes, and choose the regularization by public facts, where they are left open."""
        made = self
        if budget.is_private and made.row_norm is None:
            made = replace(made, row_norm=settings.typical_row_norm(domain))
        if made.clip is None and made.radius is None and loss.n_outputs == 1:
            made = replace(made, clip=self._default_clip(domain, loss, budget, made.row_norm or domain.row_norm))
        if made.regularization is not None or getattr(made, "n_steps", None) is not None:
            return made
        strength = settings.LIMIT_STRENGTH
        if budget.is_private:
            strength = made.default_strength(domain, loss, budget)
        missing = strength - penalty.strong_convexity
        return replace(made, regularization=missing) if missing > 0 else made

    def _default_clip(self, domain: Domain, loss: Loss, budget: Budget, row_norm: float) -> float | None:
        """Return a typical slope's clip, wider where there is signal; without noise one that bites nowhere, or none."""
        if not budget.is_private:
            return None if np.isfinite(loss.lipschitz_for(domain.target_bound)) else LIMIT_SLOPE * row_norm
        slope = settings.typical_width(domain, loss, budget)
        if loss.sigmoid_link and self.name == "objective":
            slope = settings.Facts(domain, loss, NoPenalty(), budget).value("objective.clip")
        return slope * row_norm
