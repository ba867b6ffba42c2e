"""Objective perturbation: add a random linear term to the objective, then minimize.

Sources: Chaudhuri, Monteleoni & Sarwate 2011; Kifer, Smith & Thakurta 2012; Iyengar et al. 2019 (approximate minima);
Redberg, Koskela & Wang 2023; the USC lecture, which leaves out the Jacobian. The bounds used are this project's own,
proven in ``accounting/objective_perturbation.py``, not reviewed by others.

    w = argmin sum_i l_i(w) + (lambda/2) ||w||^2 + b.w,  b ~ N(0, (z a L)^2 I);   release w + (small) noise

Released: one point. Privacy: noise and curvature together; for the logistic loss under zero_out and add_remove, no
clip and lambda >= R^2 / (epsilon + 1/(2 z^2)), at most the Gaussian mechanism's delta at this epsilon. The second,
small noise makes an inexact minimizer part of the proof. Cost: one exact solve. Utility: E J - J* <= p (z a L)^2 /
(2 lambda), of the sums; locally (z a L)^2 trace((H + lambda I)^-1) / 2: little noise where the data say much.
Wins over output perturbation, whose noise knows no directions, and where one exact solve is cheaper than many passes.
"""

import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Self

from scipy.optimize import minimize_scalar

from discreet.accounting.plan import Plan, Release
from discreet.accounting.pricing import price_plan
from discreet.bounds import Domain
from discreet.budget import Budget
from discreet.curator import ONE_ROW, Problem
from discreet.errors import Unsupported
from discreet.losses.base import Loss, gradient_smoothness
from discreet.penalties.base import Penalty
from discreet.solvers import settings
from discreet.solvers.base import UNWATCHED, AuditCase, Progress, Solution, public_count, refuse_weights
from discreet.solvers.output import OneShot, noise_lengths
from discreet.solvers.risk_bounds import RiskBound, excess_of_zeros
from discreet.solvers.signal import Signal

if TYPE_CHECKING:
    from discreet.curator import Curator

CURVATURE_SHARE = 0.25
"""The curvature's part of the price is at most this part of epsilon, by default."""
OUTSIDE = 16.0
"""The second noise's multiplier over the first's: it adds (1/16)^2 to the squared price, 1/16 for pure budgets."""


@dataclass(frozen=True)
class ObjectivePerturbation(OneShot):
    """The exact minimizer of an objective with noise inside it.

    Parameters
    ----------
    regularization : float or None, default=None
        mu of (mu/2) ||w||^2, added to the penalty's own. None: what the estimator's defaults choose from public
        facts; used by itself, nothing is added.
    clip : float or None, default=None
        Bound on a record's gradient (L2). None: what the loss and the declared bounds imply.
    row_norm : float or None, default=None
        Records longer than this are shrunk onto it, each by itself. None: as declared.
    radius : float or None, default=None
        A ball that the coefficients are projected onto, before the noise and after it. The squared loss needs one (or
        a clip): its gradients are unbounded without.
    tolerance : float, default=1e-11
        The certified gradient norm of the minimizer over n times a record's bound. It is part of the proof, and met
        for every data set.
    calibration : {"tight", "paper"}, default="tight"
        ``"paper"``: at least the noise of Kifer, Smith and Thakurta 2012, sqrt(8 ln(2/delta) + 4 epsilon) / epsilon
        sensitivities, where their theorem holds (lambda >= 2 beta / epsilon); the price is the exact one of that noise.

    Examples
    --------
    >>> from discreet import DPLogisticRegression
    >>> from discreet.solvers import ObjectivePerturbation
    >>> DPLogisticRegression(bounds=1.0, classes=(0, 1), solver=ObjectivePerturbation(regularization=0.01)).solver.name
    'objective'
    """

    name: ClassVar[str] = "objective"

    def plan(self, domain: Domain, loss: Loss, penalty: Penalty) -> Plan:
        """List the random linear term, priced with the curvature, and the noise that covers the solver's tolerance."""
        refuse_weights(domain)
        if domain.n is None:
            raise Unsupported(
                "objective perturbation fixes its regularization in proportion to n beforehand: declare Bounds(n=...)"
            )
        if domain.grouped:
            raise Unsupported(ONE_ROW)
        problem = self.problem(self.strength(penalty), domain.n)
        problem.check_curvature(loss, domain)
        return self._plan(domain, loss, problem)

    def _plan(self, domain: Domain, loss: Loss, problem: Problem) -> Plan:
        perturbation = problem.perturbation_for(loss, domain).rounded_up
        inside = Release("perturb_objective", 1, mechanism="objective", perturbation=perturbation)
        releases = (inside, Release("perturbed_minimizer", 1, relative_noise=OUTSIDE))
        return Plan(releases, None if self.calibration == "tight" else partial(published_noise, perturbation.curvature))

    def solve(self, curator: "Curator", penalty: Penalty, progress: Progress = UNWATCHED) -> Solution:
        """Ask for the minimizer of the perturbed objective.

        The trace is a bound: the minimizer moves by -(H + lambda)^{-1} b to first order, and H >= 0 is all that is
        public of H. The second noise is left out: it covers a tolerance of ``TOLERANCE``.
        """
        problem = self.problem(self.strength(penalty), public_count(curator), self._extra(penalty))
        problem, bound = self._about_start(problem, curator.domain), problem.bound_for(curator.loss, curator.domain)
        for _ in progress(range(1)):
            # b ~ N(0, (z a L)^2 I);  w = argmin sum_i l_i(w) + (lambda/2) ||w||^2 + b.w;  w = w + small noise
            w = curator.perturbed_minimizer(problem)
        return self._answered(
            curator, "perturb_objective", problem, w, curator.budget.neighbors.sum_factor * bound / problem.total
        )

    def bound(
        self, domain: Domain, loss: Loss, budget: Budget, *, radius: float, confidence: float | None = None
    ) -> RiskBound:
        """Bound the excess risk of the mean loss, for ||w*|| <= ``radius``: in expectation, or with ``confidence``.

        (p s^2 / (2 lambda) + lambda radius^2 / 2) / n, and a little for the second noise, which is independent of all
        else: half the smoothness times its second moment. A projection may raise the loss, so a ball is not covered.
        """
        if domain.n is None or self.regularization is None or self.radius is not None:
            raise Unsupported("the bound is for a given regularization and a declared n, without a radius")
        self._refuse_uncovered(domain, loss, radius)
        problem = self.problem(self.regularization, domain.n)
        p, total, lipschitz = domain.n_features * domain.n_outputs, problem.total, problem.bound_for(loss, domain)
        multiplier = price_plan(self._plan(domain, loss, problem), budget).noise_multiplier
        noise = multiplier * budget.neighbors.sum_factor * lipschitz
        half = None if confidence is None else (1 + confidence) / 2  # each of the two noises fails half as often
        second = noise_lengths(p, pure=budget.is_pure, confidence=half)[1]
        upper = (second * noise**2 / (2 * total) + total * radius**2 / 2) / domain.n
        lower = lipschitz * radius * min(1.0, math.sqrt(p) / (domain.n * budget.epsilon))
        smoothness = gradient_smoothness(problem.loss_for(loss, domain), domain) + self.regularization
        outside = OUTSIDE * multiplier * 4 * problem.tolerance * problem.n * lipschitz / total
        if half is None:
            upper += 0.5 * smoothness * (2 * p**2 if budget.is_pure else p) * outside**2
        else:  # the perturbed minimizer is no minimum of F: L times the length of the second noise, at most
            length = noise_lengths(p, pure=budget.is_pure, confidence=half)[0]
            # Laplace entries' length is at most their sum's, a Gamma variable
            upper += lipschitz * length * (math.sqrt(p) if budget.is_pure else 1.0) * outside
        trivial = excess_of_zeros(loss, domain, radius)
        return RiskBound(upper, min(lower, trivial), trivial, confidence)

    @classmethod
    def for_diameter(cls, domain: Domain, loss: Loss, *, radius: float, budget: Budget) -> Self:
        """Choose the regularizer whose ``bound`` is least for ||w*|| <= ``radius``: the price of the curvature counts.

        Its rate is L D sqrt(p) / (n epsilon), plus beta D^2 / (n epsilon) for the least lambda that the price allows.
        """

        def risk(log_mu: float) -> float:
            try:
                return cls(regularization=math.exp(log_mu)).bound(domain, loss, budget, radius=radius).upper
            except Unsupported:
                return math.inf

        cls(regularization=1.0).bound(domain, loss, budget, radius=radius)  # refuses what has no bound
        grid = [math.log(10.0) * exponent for exponent in range(-12, 7)]
        best = min(grid, key=risk)
        optimum = minimize_scalar(risk, bounds=(best - 2.3, best + 2.3), method="bounded", options={"xatol": 1e-3})
        return cls(regularization=math.exp(float(optimum.x) if risk(float(optimum.x)) <= risk(best) else best))

    @classmethod
    def lecture(cls, domain: Domain, loss: Loss, *, radius: float, budget: Budget) -> Self:
        """Choose the lecture's regularizer: sigma sqrt(p) / (n D), sigma = L sqrt(8 ln(1.25/delta)) / epsilon.

        The lecture's sigma is not private where lambda is small (it leaves out the Jacobian), so that the noise is
        calibrated all the same; a lambda for which no noise is enough is refused.
        """
        if domain.n is None or budget.is_pure:
            raise Unsupported("the lecture needs n and a delta: declare Bounds(n=...), or use for_diameter")
        lipschitz, columns = cls().problem(0.0, domain.n).bound_for(loss, domain), domain.n_features * domain.n_outputs
        sigma = lipschitz * math.sqrt(8 * math.log(1.25 / budget.delta)) / budget.epsilon
        return cls(regularization=sigma * math.sqrt(columns) / (domain.n * radius))

    def default_strength(self, domain: Domain, loss: Loss, budget: Budget) -> float:
        """Return 0.15 (1 + 1/(4 epsilon)) rho times the noise over n, at least what keeps the curvature to a quarter.

        Chosen on six public data sets, as that of output perturbation.
        """
        signal = Signal.of(domain, budget)
        n = signal.n
        problem = self.problem(1.0 / n, n)  # lambda = 1, at which the curvature is beta
        slope = problem.bound_for(loss, domain)
        noise = slope * n / signal.single
        beta, rank = problem.perturbation_for(loss, domain).curvature, max(1, domain.n_outputs - 1)
        least = settings.least_strength(beta, rank, CURVATURE_SHARE * budget.epsilon)
        rho = settings.typical_row_norm(domain)
        return max(0.15 * (1 + 0.25 / budget.epsilon) * rho * noise, least) / n

    @classmethod
    def audit_case(cls) -> AuditCase:
        """Run with a strong penalty; the noise inside the objective is in no transcript."""
        return AuditCase(cls(), "model", alpha=0.5, effort=0.5)


def published_noise(curvature: float, budget: Budget) -> float:
    """Return the noise multiplier of Kifer, Smith and Thakurta 2012, for a curvature beta/lambda up to epsilon/2."""
    if budget.is_pure or curvature > budget.epsilon / 2:
        raise Unsupported(
            "the paper's theorem needs a delta and lambda >= 2 beta / epsilon: use calibration='tight', or more "
            "regularization"
        )
    return math.sqrt(8 * math.log(2 / budget.delta) + 4 * budget.epsilon) / budget.epsilon
