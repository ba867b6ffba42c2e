"""Output perturbation: minimize exactly, then add noise to the minimizer; and the minimizer itself, without privacy.

Sources: Chaudhuri, Monteleoni & Sarwate 2011 and the USC lecture (sensitivity of a strongly convex minimizer); Wu et
al. 2017 (stability of gradient steps).

    w = argmin (1/n) sum_i l_i(w) + (mu/2) ||w||^2;   release Proj_R(Proj_R(w) + noise)

Released: one point. Privacy: neighbors' minimizers are within a L / (n mu) (a = 2 under replace_one), plus what the
solver's certified gradient allows; Gaussian noise, or noise of Gamma length for pure epsilon. Cost: one exact solve.
Utility: E F - F* <= a L^2 sqrt(p) z / (n mu) for L-Lipschitz losses, ((beta + mu)/2) p (a L z / (n mu))^2 for smooth
ones. A merely convex loss has no such minimizer (the median's jumps): mu must come from a penalty or be added, at the
cost of mu R^2 / 2. Wins where the penalty is strong or n is large against p.

``OneShot`` is what it shares with the other one-shot solvers: a minimizer that must be strongly convex, of a loss that
must be Lipschitz. Without privacy (``epsilon=inf``, ``ExactMinimizer``) w is released as it is, for any penalty,
however wide declared ranges are: n p^2 once, and n p for each step; squares take one.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, ClassVar, Self

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import gammaincinv

from discreet.accounting.plan import Plan, Release
from discreet.accounting.pricing import price_plan
from discreet.accounting.textbook import classical_gaussian
from discreet.bounds import Domain
from discreet.budget import Budget
from discreet.curator import STEPS_NEED_N, Problem
from discreet.errors import Unsupported
from discreet.losses.base import Loss, gradient_bound, gradient_smoothness
from discreet.parameters import Between, Count, OneOf, Positive
from discreet.penalties import NoPenalty
from discreet.penalties.base import Penalty, Strength
from discreet.solvers import settings
from discreet.solvers.base import (
    UNWATCHED,
    AuditCase,
    Configured,
    Progress,
    Solution,
    Solver,
    count_release,
    planned,
    public_count,
    refuse_weights,
)
from discreet.solvers.risk_bounds import RiskBound, excess_of_zeros
from discreet.solvers.traces import PointTrace
from discreet.typing import Floats

if TYPE_CHECKING:
    from discreet.curator import Curator


LIMIT_SLOPE = 1e6
"""Without noise: beyond any residual near an optimum of an unbounded loss."""
TOLERANCE = 1e-11
"""The minimizer's certified gradient, over n times the bound on a record's."""


def point_trace(
    curator: "Curator", query: str, sensitivity: float, *, cut: bool = False, inside: bool = False
) -> PointTrace:
    """Return what is public of one noisy point of this L2 sensitivity, by the noise of ``query``."""
    multiplier = curator.noise_multiplier * planned(curator, query).relative_noise
    return PointTrace(curator.domain.shape, multiplier, sensitivity, curator.budget.is_pure, cut, inside)


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
class OneShot(Configured, ABC):
    """Settings that output and objective perturbation share: see ``ObjectivePerturbation``."""

    regularization: Positive | None = None
    clip: Positive | None = None
    row_norm: Positive | None = None
    radius: Positive | None = None
    tolerance: Annotated[float, Between("a number from 2.3e-16 to 1", 2.0**-52, 1.0, ends="both")] = TOLERANCE
    calibration: Annotated[str, OneOf("tight", "paper")] = "tight"

    @classmethod
    def defaults(cls, domain: Domain, loss: Loss, penalty: Penalty, budget: Budget) -> Solver:
        """Return what the solver's name stands for (``settings``)."""
        return settings.one_shot(settings.Facts(domain, loss, penalty, budget), cls)

    def problem(self, strength: float, n: float, extra: Floats | None = None, l1: float = 0.0) -> Problem:
        """Return what is minimized, at this modulus of strong convexity of the mean."""
        return Problem(strength, n, self.clip, self.row_norm, self.radius, self.tolerance, extra, l1)

    def _about_start(self, problem: Problem, domain: Domain) -> Problem:
        """Return the problem with this solver's own regularization about a released start: (mu/2) ||w - w0||^2."""
        if domain.start is None or not self.regularization:
            return problem
        return replace(problem, linear=-self.regularization * domain.start)

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
        strength = _smooth_strength(penalty)
        if strength is None:
            steps = "OutputPerturbation(n_steps=...) for L1 and elastic net, " if self.name == "output" else ""
            raise Unsupported(
                f"{self.name} perturbation is proven here for smooth penalties: use L2 or none, the solver's "
                f"radius=... for a ball, {steps}or solver='gd'"
            )
        return (0.0 if np.ndim(strength) else float(strength)) + (self.regularization or 0.0)

    def _extra(self, penalty: Penalty) -> Floats | None:
        """Return the strengths of an L2 penalty in recoded coordinates, one per column; None for other penalties."""
        strength = _smooth_strength(penalty)
        return None if strength is None or not np.ndim(strength) else np.asarray(strength, dtype=np.float64)

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
        trace = point_trace(curator, query, sensitivity, cut=cut, inside=query == "perturb_objective")
        return Solution(problem.projected(w), trace)

    @abstractmethod
    def default_strength(self, domain: Domain, loss: Loss, budget: Budget) -> float:
        """Return the regularization that public facts suggest, where there is noise."""

    def filled(self, domain: Domain, loss: Loss, penalty: Penalty, budget: Budget) -> Self:
        """Shrink rows to rho, clip slopes, and choose the regularization by public facts, where they are left open."""
        solver = self
        if budget.is_private and solver.row_norm is None:
            solver = replace(solver, row_norm=settings.typical_row_norm(domain))
        if solver.clip is None and solver.radius is None and loss.n_outputs == 1:
            solver = replace(solver, clip=self._default_clip(domain, loss, budget, solver.row_norm or domain.row_norm))
        if solver.regularization is not None or getattr(solver, "n_steps", None) is not None:
            return solver
        strength = settings.LIMIT_STRENGTH
        if budget.is_private:
            strength = solver.default_strength(domain, loss, budget)
        missing = strength - penalty.strong_convexity
        return replace(solver, regularization=missing) if missing > 0 else solver

    def _default_clip(self, domain: Domain, loss: Loss, budget: Budget, row_norm: float) -> float | None:
        """Return a typical slope's clip, wider where there is signal; without noise one that bites nowhere, or none."""
        if not budget.is_private:
            return None if np.isfinite(loss.lipschitz_for(domain.target_bound)) else LIMIT_SLOPE * row_norm
        slope = settings.typical_width(domain, loss, budget)
        if loss.sigmoid_link and self.name == "objective":
            slope = settings.Facts(domain, loss, NoPenalty(), budget).value("objective.clip")
        return slope * row_norm


@dataclass(frozen=True)
class OutputPerturbation(OneShot):
    """Exact minimizer plus noise; with ``n_steps`` gradient steps instead of the minimizer.

    Parameters
    ----------
    regularization, clip, row_norm, radius, tolerance : as for ``ObjectivePerturbation``
        What is minimized, how far, and within which bounds.
    calibration : {"tight", "paper"}, default="tight"
        ``"paper"``: at least the classical noise sqrt(2 ln(1.25/delta)) / epsilon, where that theorem holds (epsilon
        up to 1); the price is the exact one of that noise.
    n_steps : int or None, default=None
        Take this many projected gradient steps from zero, and add noise to where they end: needs no minimizer, and no
        strong convexity; L1 and elastic net are followed by proximal steps. None: the exact minimizer.
    step_size : float or None, default=None
        Of those steps, at most 2/(beta + 2 mu). None: 1/(beta + mu).

    Examples
    --------
    >>> from discreet import DPLogisticRegression
    >>> from discreet.solvers import OutputPerturbation
    >>> DPLogisticRegression(bounds=1.0, classes=(0, 1), solver=OutputPerturbation(regularization=0.01)).solver.name
    'output'
    """

    n_steps: Count | None = None
    step_size: Positive | None = None
    name: ClassVar[str] = "output"

    def plan(self, domain: Domain, loss: Loss, penalty: Penalty) -> Plan:
        """List one noisy point, and a noisy count where n is private."""
        refuse_weights(domain)
        problem = self.problem(self.strength(penalty), domain.n or 1)
        problem.bound_for(loss, domain)  # refuses what has none
        problem.objective(loss, domain)  # refuses clips of several outputs
        if self.n_steps is None:
            problem.check_curvature(loss, domain)
        if self.n_steps is not None and not domain.neighbors.n_is_public:
            raise Unsupported(STEPS_NEED_N)
        least = None if self.calibration == "tight" else published_noise
        return Plan((Release(self._query, 1), *count_release(domain)), least)

    @property
    def _query(self) -> str:
        return "noisy_minimizer" if self.n_steps is None else "noisy_descent"

    def strength(self, penalty: Penalty) -> float:
        """Return the modulus of strong convexity; gradient steps do without."""
        if self.n_steps is None:
            return super().strength(penalty)
        corners = _corners(penalty)
        return self._modulus(penalty) if corners is None else corners[1] + (self.regularization or 0.0)

    def solve(self, curator: "Curator", penalty: Penalty, progress: Progress = UNWATCHED) -> Solution:
        """Ask for the noisy minimizer, or for where noisy-ended gradient steps end."""
        l1, _ = _corners(penalty) or (0.0, 0.0)
        strength, extra = self.strength(penalty), self._extra(penalty)
        if extra is not None and self.n_steps is None:  # what all columns have of it makes the objective steeper
            strength, extra = strength + float(extra.min()), extra - extra.min()
        problem = self.problem(strength, public_count(curator), extra, l1)
        bound = curator.budget.neighbors.sum_factor * problem.bound_for(curator.loss, curator.domain) / problem.n
        for _ in progress(range(1)):
            if self.n_steps is None:
                # w = argmin (1/n) sum_i l_i(w) + (mu/2) ||w||^2;  w = Proj_R(w) + noise of scale a L / (n mu)
                problem = self._about_start(problem, curator.domain)
                w, sensitivity = curator.noisy_minimizer(problem), bound / problem.regularization
            else:
                # T times: w = Proj_R(prox_{eta l1}(w - eta grad F(w)))
                # w = w + noise of scale (eta a L / n) sum_t (1 - eta mu)^t
                eta = self._step(curator, problem)
                w = curator.noisy_descent(problem, n_steps=self.n_steps, step_size=eta)
                sensitivity = eta * bound * _moves(self.n_steps, eta * problem.regularization)
        return self._answered(curator, self._query, problem, w, sensitivity)

    def _step(self, curator: "Curator", problem: Problem) -> float:
        if self.step_size is not None:
            return self.step_size
        domain = curator.domain
        smoothness = gradient_smoothness(problem.loss_for(curator.loss, domain), problem.seen(domain))
        return 1.0 / (smoothness + problem.regularization)

    @classmethod
    def for_diameter(
        cls,
        domain: Domain,
        loss: Loss,
        *,
        radius: float,
        budget: Budget,
        clip: float | None = None,
        row_norm: float | None = None,
    ) -> Self:
        """Choose, for a convex loss, the regularizer whose bound on E F - F* is least for ||w*|| <= ``radius``."""
        solver = cls(radius=radius, clip=clip, row_norm=row_norm)
        risk = solver._risk(domain, loss, budget)
        optimum = minimize_scalar(
            lambda log_mu: math.log(risk(math.exp(log_mu))), bounds=(-30.0, 30.0), method="bounded"
        )
        return replace(solver, regularization=math.exp(float(optimum.x)))

    @classmethod
    def lecture(cls, domain: Domain, loss: Loss, *, radius: float, budget: Budget) -> Self:
        """Choose the lecture's regularizer: (L/D) sqrt(6 sqrt(p ln(1.25/delta)) / (epsilon n)) with D = ``radius``."""
        n, p = _public_n(domain), domain.n_features * domain.n_outputs
        lipschitz = cls(radius=radius).problem(0.0, n).bound_for(loss, domain)
        root = math.sqrt(p * math.log(1.25 / budget.delta))
        return cls(radius=radius, regularization=lipschitz / radius * math.sqrt(6 * root / (budget.epsilon * n)))

    def bound(
        self, domain: Domain, loss: Loss, budget: Budget, *, radius: float, confidence: float | None = None
    ) -> RiskBound:
        """Bound the excess risk of the unregularized mean loss, for ||w*|| <= ``radius``.

        In expectation, or with a probability of ``confidence``. On a ball (the solver's ``radius`` R) the release is in
        it, so that L (R + radius) is a bound too; the others hold as well, because the minimizer with the penalty is no
        longer than w*, hence in the ball, and projection brings no point further from it. Without a ball the noise is
        unbounded: for little regularization or few records this is larger than the excess risk of a model of zeros,
        and so may be what is released.
        """
        if self.regularization is None or self.n_steps is not None:
            raise Unsupported(
                "the bound is for a minimizer of given regularization: use OutputPerturbation.for_diameter"
            )
        self._refuse_uncovered(domain, loss, radius)
        n, p = _public_n(domain), domain.n_features * domain.n_outputs
        lipschitz = self.problem(0.0, n).bound_for(loss, domain)
        lower = lipschitz * radius * min(1.0, math.sqrt(p) / (n * budget.epsilon))
        upper = self._risk(domain, loss, budget, radius, confidence)(self.regularization)
        trivial, reach = excess_of_zeros(loss, domain, radius), None
        if self.radius is not None and math.isfinite(loss.lipschitz_for(domain.target_bound)):
            upper = min(upper, lipschitz * (self.radius + radius))
            reach = lipschitz * self.radius if domain.n_outputs == 1 else None
        return RiskBound(upper, min(lower, trivial), trivial, confidence, reach)

    def _risk(
        self, domain: Domain, loss: Loss, budget: Budget, radius: float | None = None, confidence: float | None = None
    ) -> Callable[[float], float]:
        """The bound as a function of mu: the better of the Lipschitz and the smooth one, plus mu D^2 / 2."""
        n, p = _public_n(domain), domain.n_features * domain.n_outputs
        diameter = radius if radius is not None else self.radius
        assert diameter is not None
        problem = self.problem(0.0, n)
        lipschitz = problem.bound_for(loss, domain)
        bounded = problem.loss_for(loss, domain)
        smoothness = gradient_smoothness(bounded, problem.seen(domain))
        slope = lipschitz if bounded == loss else math.inf  # Huber's, where it stands for the squared loss on a ball
        multiplier = price_plan(Plan([Release("noisy_minimizer", 1)]), budget).noise_multiplier
        noise = multiplier * budget.neighbors.sum_factor * lipschitz / n
        first, second = noise_lengths(p, pure=budget.is_pure, confidence=confidence)

        def risk(mu: float) -> float:
            scale = noise / mu
            return min(slope * first * scale, 0.5 * (smoothness + mu) * second * scale**2) + 0.5 * mu * diameter**2

        return risk

    def default_strength(self, domain: Domain, loss: Loss, budget: Budget) -> float:
        """Return the best for coefficients of length ``TYPICAL_LENGTH`` / rho: about how long a good model's are.

        Chosen on six public data sets (credit default, electricity, spambase, bank marketing, IPUMS-BR, Adult), among
        some 25 settings.
        """
        counted = replace(domain, n=settings.count_of(domain))
        radius = self.radius or settings.TYPICAL_LENGTH / settings.typical_row_norm(domain)
        solver = type(self).for_diameter(
            counted, loss, radius=radius, budget=budget, clip=self.clip, row_norm=self.row_norm
        )
        return solver.regularization or settings.LIMIT_STRENGTH

    @classmethod
    def audit_case(cls) -> AuditCase:
        """Run with a strong penalty."""
        return AuditCase(cls(), alpha=0.5)


def _smooth_strength(penalty: Penalty) -> Strength | None:
    """Return the strength of an L2 penalty, or one per column; None for penalties with corners."""
    if penalty.ridge:
        return penalty.strong_convexity
    strengths = penalty.l1_l2
    return None if strengths is None or np.any(strengths[0]) else strengths[1]


def _corners(penalty: Penalty) -> tuple[float, float] | None:
    """Return (l1, l2) of an L1 penalty or an elastic net, one number each; None for other penalties."""
    strengths = None if penalty.ridge else penalty.l1_l2
    if strengths is None or np.ndim(strengths[0]) or np.ndim(strengths[1]):
        return None
    return float(strengths[0]), float(strengths[1])


def _moves(n_steps: int, pull: float) -> float:
    """Return sum_{t < T} (1 - pull)^t: how often one step's difference counts."""
    return -math.expm1(n_steps * math.log1p(-min(pull, 1 - 2.0**-53))) / pull if pull else float(n_steps)


def _public_n(domain: Domain) -> int:
    if domain.n is None:
        raise Unsupported("this needs n: declare Bounds(n=...)")
    return domain.n


def published_noise(budget: Budget) -> float:
    """Return the classical noise multiplier; a pure budget's Gamma noise is what the papers have."""
    return 0.0 if budget.is_pure else classical_gaussian(budget.epsilon, budget.delta)


MOST_COLUMNS = 2000
"""Of more columns the second moment does not pay."""


@dataclass(frozen=True)
class ExactMinimizer(Configured):
    """The minimizer, without privacy: what ``solver="auto"`` is for ``epsilon=inf`` wherever records are at hand.

    Parameters
    ----------
    n_steps : int, default=5000
        Steps at most; they end where they move nothing beyond rounding.

    Examples
    --------
    >>> from discreet import DPLinearRegression
    >>> from discreet.solvers import ExactMinimizer
    >>> DPLinearRegression(epsilon=float("inf"), solver=ExactMinimizer(), bounds=1.0).solver.n_steps
    5000
    """

    n_steps: Count = 5000
    name: ClassVar[str] = "exact"

    def plan(self, domain: Domain, loss: Loss, penalty: Penalty) -> Plan:
        """List the minimizer, and a count where n is private or records have weights."""
        if domain.remote or domain.n_features > MOST_COLUMNS or not math.isfinite(loss.smoothness):
            raise Unsupported("exact minimizers are of records on one machine with at most 2,000 columns: use 'gd'")
        return Plan((Release("exact_minimizer", 1), *count_release(domain)))

    def solve(self, curator: "Curator", penalty: Penalty, progress: Progress = UNWATCHED) -> Solution:
        """Ask for the minimizer."""
        n = public_count(curator)
        (w,) = (curator.exact_minimizer(penalty, n=n, n_steps=self.n_steps) for _ in progress(range(1)))
        return Solution(w)
