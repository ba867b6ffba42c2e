"""The exponential mechanism for empirical risk minimization: draw the coefficients, the better the likelier.

Sources: McSherry & Talwar 2007; Bassily, Smith & Thakurta 2014; Gopi, Lee & Liu 2022 (regularized, Gaussian DP); Wang,
Fienberg & Smola 2015 (posterior sampling).

    candidates:   index i with probability proportional to exp(-k sum_j min(l_j(w_i), bound))
    0/1 loss:     index i with probability proportional to exp(-k number of errors of w_i)
    a ball:       w with density proportional to exp(-k sum_j l_j(w))                           one coefficient
    regularized:  w with density proportional to exp(-k (sum_j l_j(w) + (lambda/2) ||w||^2))    any number

Released: one index, or one point. Privacy: bounded range for the first two (pure epsilon too), Gaussian DP for the
third. Cost: exact where there is an exact sampler: finitely many candidates (on the lattice), one coefficient, the
squared loss (a Gaussian in a ball), few coefficients (rejection). Else a Markov chain, whose distance from its limit is
an ASSUMPTION, named in the certificate and paid for in delta. Utility: E F - F* <= sqrt(2) a G D sqrt(p) / (n mu).
"""

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from discreet.accounting.gaussian import mu_of
from discreet.accounting.plan import Plan, Release
from discreet.bounds import Domain
from discreet.budget import Budget
from discreet.curator import LEAST_ACCEPTANCE, Problem, expected_acceptance
from discreet.errors import Unsupported
from discreet.losses.base import Loss, gradient_bound, least, lipschitz_within, values
from discreet.losses.proofs import require_proof
from discreet.parameters import OneOf, Positive
from discreet.penalties.base import Penalty
from discreet.solvers import settings
from discreet.solvers.base import (
    UNWATCHED,
    AuditCase,
    Configured,
    Progress,
    Solution,
    count_release,
    public_count,
    refuse_weights,
)
from discreet.solvers.output import point_trace
from discreet.typing import Floats

if TYPE_CHECKING:
    from discreet.curator import Curator


@dataclass(frozen=True)
class ExponentialMechanism(Configured):
    """One draw from the exponential mechanism.

    Parameters
    ----------
    candidates : array-like or None, default=None
        Coefficients to choose among, in training coordinates, one row each: chosen exactly, on the lattice.
    loss_bound : float or None, default=None
        For candidates: a record's loss is clipped to [0, loss_bound]. None: the largest that the declared bounds allow.
    score : {"loss", "zero_one"}, default="loss"
        For candidates: what they are compared by, the losses and the penalty, or the number of records whose class they
        predict wrongly, without the penalty.
    regularization : float or None, default=None
        mu of (mu/2) ||w||^2, added to the penalty's own: makes the draw Gaussian DP. None: the estimator's defaults
        choose it; used by itself, nothing is added.
    radius : float or None, default=None
        The ball that is drawn from. Needed by the squared loss, whose gradients are unbounded elsewhere, and where
        there is no regularization (pure epsilon).
    row_norm : float or None, default=None
        Records longer than this are shrunk onto it, each by itself. None: as declared.
    sampler : {"auto", "interval", "gaussian", "rejection", "chain"}, default="auto"
        ``"auto"`` takes an exact one where there is one.
    total_variation : float or None, default=None
        For the chain: how far the law of its last state is assumed to be from its limit. Paid for in delta. None: a
        thousandth of what delta could pay for; 1e-13 where a solver is used by itself.

    Examples
    --------
    >>> from discreet import DPLogisticRegression
    >>> from discreet.solvers import ExponentialMechanism
    >>> DPLogisticRegression(bounds=1.0, classes=(0, 1), solver=ExponentialMechanism(radius=3.0)).solver.name
    'exponential'
    """

    candidates: ArrayLike | None = None
    loss_bound: Positive | None = None
    score: Annotated[str, OneOf("loss", "zero_one")] = "loss"
    regularization: Positive | None = None
    radius: Positive | None = None
    row_norm: Positive | None = None
    sampler: Annotated[str, OneOf("auto", "interval", "gaussian", "rejection", "chain")] = "auto"
    total_variation: Positive | None = None
    name: ClassVar[str] = "exponential"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.candidates is not None:
            object.__setattr__(self, "candidates", _finite(self.candidates).tolist())
        if self.score == "zero_one" and (self.candidates is None or self.loss_bound is not None):
            raise Unsupported("score='zero_one' counts errors of candidates=..., and takes no loss_bound")

    @classmethod
    def for_diameter(cls, domain: Domain, loss: Loss, *, radius: float, budget: Budget) -> Self:
        """Choose the regularizer whose bound is least for ||w*|| <= ``radius``: a G sqrt(2 p) / (n mu radius)."""
        if domain.n is None or budget.is_pure:
            raise Unsupported("this needs n and a delta: declare Bounds(n=...), or draw from a ball, unregularized")
        lipschitz = gradient_bound(loss, domain, radius)
        mu = mu_of(budget.epsilon, budget.delta)
        root = math.sqrt(2 * domain.n_features * domain.n_outputs)
        best = budget.neighbors.sum_factor * lipschitz * root / (domain.n * mu * radius)
        is_bounded = math.isfinite(loss.lipschitz_for(domain.target_bound))
        return cls(regularization=best, radius=None if is_bounded else radius)

    def _problem(self, penalty: Penalty, n: float) -> Problem:
        if not penalty.ridge:
            raise Unsupported("the exponential mechanism is drawn here with an L2 penalty or none: use solver='gd'")
        strength = penalty.strong_convexity + (self.regularization or 0.0)
        return Problem(strength, n, row_norm=self.row_norm, radius=self.radius)

    def sampler_for(self, domain: Domain, loss: Loss, problem: Problem) -> str:
        """Return the sampler that ``"auto"`` means, from public facts."""
        if self.sampler != "auto":
            return self.sampler
        if domain.n_features == 1 and self.radius is not None:
            return "interval"
        if loss.quadratic:
            return "gaussian"
        return "rejection" if expected_acceptance(loss, domain, problem) >= LEAST_ACCEPTANCE else "chain"

    def plan(self, domain: Domain, loss: Loss, penalty: Penalty) -> Plan:
        """List one draw; a chain's plan also states its total variation."""
        refuse_weights(domain)
        require_proof(loss, domain)
        if self.score == "zero_one" and loss.task != "classification":
            raise Unsupported("score='zero_one' counts wrong classes: use score='loss' for numbers")
        count = () if self.score == "zero_one" else count_release(domain)  # errors are a sum: no n is needed
        if self.candidates is not None:
            return Plan(
                (Release("select_candidate", 1, clip=self._loss_bound(domain, loss), mechanism="exponential"), *count)
            )
        if domain.n_outputs > 1:
            raise Unsupported("the exponential mechanism is drawn for one output: use solver='gd' for softmax")
        problem = self._problem(penalty, float(domain.n or 1))
        gradient_bound(loss, problem.seen(domain), self.radius)  # refuses the squared loss without a ball
        if problem.total == 0 and not (domain.n_features == 1 and self.radius is not None):
            raise Unsupported(
                "without regularization there is an exact sampler for one coefficient in a ball only: pass "
                "candidates=..., or regularization=... (which needs a delta)"
            )
        mechanism = "additive" if problem.total > 0 else "exponential"
        if self.sampler_for(domain, loss, problem) != "interval":
            problem.check_curvature(loss, domain)
        drawn = Release("sample_minimizer", 1, mechanism=mechanism)
        chained = self.sampler_for(domain, loss, problem) == "chain"
        return Plan((drawn, *count), total_variation=(self.total_variation or 1e-13) if chained else 0.0)

    def solve(self, curator: "Curator", penalty: Penalty, progress: Progress = UNWATCHED) -> Solution:
        """Ask for one draw.

        Where it is regularized, the trace bounds the draw's spread about its median: the exponent is (k
        lambda)-strongly convex, so no coefficient spreads more than a Gaussian of variance 1 / (k lambda), k = lambda /
        (z a G)^2 (Brascamp & Lieb 1976; Caffarelli 2000). No trace without regularization, nor for candidates.
        """
        if self.candidates is not None:
            return self._choose(curator, penalty, progress)
        domain, loss = curator.domain, curator.loss
        problem = self._problem(penalty, public_count(curator))
        for _ in progress(range(1)):
            # w with density proportional to exp(-k (sum_j l_j(w) + (lambda/2) ||w||^2)), within the ball
            w = curator.sample_minimizer(problem, sampler=self.sampler_for(domain, loss, problem))
        if problem.total == 0:
            return Solution(w)
        slope = gradient_bound(loss, problem.seen(domain), self.radius)
        return Solution(
            w, point_trace(curator, "sample_minimizer", domain.neighbors.sum_factor * slope / problem.total)
        )

    def _choose(self, curator: "Curator", penalty: Penalty, progress: Progress) -> Solution:
        points, bound = self._points(curator.domain), self._loss_bound(curator.domain, curator.loss)
        offsets = None
        if self.score == "loss":
            n = public_count(curator)
            offsets = [n * penalty.value(point) for point in points]
        for _ in progress(range(1)):
            # i with probability proportional to exp(-k [ sum_j min(l_j(w_i), bound) + n psi(w_i) ]), or exp(-k errors)
            chosen = curator.select_candidate(points, loss_bound=bound, offsets=offsets, score=self.score)
        return Solution(points[chosen])

    def _points(self, domain: Domain) -> Floats:
        points = np.array(self.candidates, dtype=np.float64)
        if points.shape[1:] != domain.shape or len(points) == 0 or not np.isfinite(points).all():
            raise Unsupported(f"candidates must be finite coefficients of shape {domain.shape}, one after the other")
        if self.radius is not None and any(float(np.linalg.norm(point)) > self.radius for point in points):
            raise Unsupported("a candidate lies outside the ball: leave it out, or the radius")
        return points

    def _loss_bound(self, domain: Domain, loss: Loss) -> float:
        """Return the largest loss that the declared bounds allow at any candidate.

        |x.w| is at most R ||w|| and at most sum_j r_j |w_j|. A convex loss is largest at the ends of margins and
        targets, that of several classes where the right one's margin is least and all others are largest.
        """
        points = self._points(domain)
        if self.score == "zero_one":
            return 1.0
        if self.loss_bound is not None:
            return self.loss_bound
        columns = points.reshape(len(points), domain.n_features, -1)
        by_entries = np.einsum("j,ijk->ik", domain.feature_bounds, np.abs(columns))
        reach = float(np.minimum(domain.row_norm * np.linalg.norm(columns, axis=1), by_entries).max())
        margins = np.full(domain.n_outputs, reach)
        margins[0] = -reach
        if domain.n_outputs > 1:
            return float(values(loss, margins, 0.0) - least(loss, 0.0))
        targets = (-domain.target_bound, domain.target_bound)
        return max(float(values(loss, sign * margins, t) - least(loss, t)) for t in targets for sign in (1.0, -1.0))

    def filled(self, domain: Domain, loss: Loss, penalty: Penalty, budget: Budget) -> Self:
        """Shrink rows to rho, regularize best for the typical length, and leave a thousandth of delta to the chain."""
        solver = self
        if solver.candidates is not None:
            return solver
        if budget.is_private and not budget.is_pure:
            distance = 1e-3 * budget.delta / (1 + math.exp(min(budget.epsilon, 700.0)))
            solver = replace(solver, total_variation=solver.total_variation or distance)
        if solver.radius is None:
            lipschitz_within(loss, domain, None)
        if budget.is_private and solver.row_norm is None and solver.radius is None:
            solver = replace(solver, row_norm=settings.typical_row_norm(domain))
        if solver.regularization is not None or budget.is_pure or domain.n_outputs > 1:
            return solver
        best: float | None = settings.LIMIT_STRENGTH
        if budget.is_private:
            counted = replace(domain, n=settings.count_of(domain), row_norm=solver.row_norm or domain.row_norm)
            radius = solver.radius or settings.TYPICAL_LENGTH / settings.typical_row_norm(domain)
            best = type(self).for_diameter(counted, loss, radius=radius, budget=budget).regularization
        missing = (best or 0.0) - penalty.strong_convexity
        return replace(solver, regularization=missing) if missing > 0 else solver

    @classmethod
    def audit_case(cls) -> AuditCase:
        """Run with a strong penalty. A draw is no sum under noise: there is nothing to replay."""
        return AuditCase(cls(), "model", alpha=0.5, replays=False)


def _finite(candidates: ArrayLike) -> Floats:
    """Return candidates as numbers, or refuse what are none."""
    try:
        array = np.asarray(candidates)
        numbers = np.asarray(array, dtype=np.float64) if array.dtype.kind in "fiu" else np.full(1, np.nan)
    except (TypeError, ValueError, OverflowError):
        numbers = np.full(1, np.nan)
    if not numbers.size or not np.isfinite(numbers).all():
        raise Unsupported("candidates must be finite numbers, one row of coefficients each")
    return numbers
