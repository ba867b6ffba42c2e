"""Output perturbation: minimize exactly, then add noise to the minimizer; and the minimizer itself, without privacy.

Sources: Chaudhuri, Monteleoni & Sarwate 2011 and the USC lecture (sensitivity of a strongly convex minimizer); Wu et
al. 2017 (stability of gradient steps).

    w = argmin (1/n) sum_i l_i(w) + (mu/2) ||w||^2;   release Proj_R(Proj_R(w) + noise)

Released: one point. Privacy: neighbors' minimizers are within a L / (n mu) (a = 2 under replace_one), plus what the
solver's certified gradient allows; Gaussian noise, or noise of Gamma length for pure epsilon. Cost: one exact solve.
Utility: E F - F* <= a L^2 sqrt(p) z / (n mu) for L-Lipschitz losses, ((beta + mu)/2) p (a L z / (n mu))^2 for smooth
ones. A merely convex loss has no such minimizer (the median's jumps): mu must come from a penalty or be added, at the
cost of mu R^2 / 2. Wins where the penalty is strong or n is large against p.

Without privacy (``epsilon=inf``, ``ExactMinimizer``) w is released as it is, for any penalty, however wide declared
ranges are: n p^2 once, and n p for each step; squares take one.
"""

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
from scipy.optimize import minimize_scalar

from discreet.accounting.plan import Plan, Release
from discreet.accounting.pricing import price_plan
from discreet.accounting.textbook import classical_gaussian
from discreet.bounds import Domain
from discreet.budget import Budget
from discreet.curator import STEPS_NEED_N, Problem
from discreet.errors import Unsupported
from discreet.losses.base import Loss, gradient_smoothness
from discreet.parameters import Count, Positive, check_fields
from discreet.penalties.base import Penalty
from discreet.solvers import settings
from discreet.solvers.base import (
    UNWATCHED,
    AuditCase,
    Progress,
    Solution,
    Solver,
    count_release,
    public_count,
    refuse_weights,
)
from discreet.solvers.perturbation import OneShot, noise_lengths
from discreet.solvers.risk_bounds import RiskBound, excess_of_zeros

if TYPE_CHECKING:
    from discreet.curator import Curator


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
        made = cls(radius=radius, clip=clip, row_norm=row_norm)
        risk = made._risk(domain, loss, budget)
        found = minimize_scalar(lambda log_mu: math.log(risk(math.exp(log_mu))), bounds=(-30.0, 30.0), method="bounded")
        return replace(made, regularization=math.exp(float(found.x)))

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
        self,
        domain: Domain,
        loss: Loss,
        budget: Budget,
        radius: float | None = None,
        confidence: float | None = None,
    ) -> Callable[[float], float]:
        """The bound as a function of mu: the better of the Lipschitz and the smooth one, plus mu D^2 / 2."""
        n, p = _public_n(domain), domain.n_features * domain.n_outputs
        diameter = radius if radius is not None else self.radius
        assert diameter is not None
        problem = self.problem(0.0, n)
        lipschitz = problem.bound_for(loss, domain)
        known = problem.loss_for(loss, domain)
        smoothness = gradient_smoothness(known, problem.seen(domain))
        slope = lipschitz if known == loss else math.inf  # Huber's, where it stands for the squared loss on a ball
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
        known = replace(domain, n=settings.count_of(domain))
        radius = self.radius or settings.TYPICAL_LENGTH / settings.typical_row_norm(domain)
        made = type(self).for_diameter(
            known, loss, radius=radius, budget=budget, clip=self.clip, row_norm=self.row_norm
        )
        return made.regularization or settings.LIMIT_STRENGTH

    @classmethod
    def defaults(cls, domain: Domain, loss: Loss, penalty: Penalty, budget: Budget) -> Solver:
        """Return what ``output`` stands for (``settings``)."""
        return settings.one_shot(settings.Facts(domain, loss, penalty, budget), cls)

    @classmethod
    def audit_case(cls) -> AuditCase:
        """Run with a strong penalty."""
        return AuditCase(cls(), alpha=0.5)


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
class ExactMinimizer:
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

    def __post_init__(self) -> None:
        check_fields(self)

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

    def settings(self) -> dict[str, object]:
        """Return its public settings, for the certificate."""
        return {"name": self.name, **asdict(self)}
