"""Private projected gradient descent: full batches, Gaussian noise on the clipped sum.

Sources: Bassily, Smith & Thakurta 2014; the CSC2412 lecture (step, ball, average of the iterates).

    w_0 = the starting point, 0 unless ``start`` says otherwise
    for t < T:  v = w_t + beta_t (w_t - w_{t-1})                                 beta_t = 0, a constant, or Nesterov's
                g = (1/n) [ sum_i clip_C(grad l_i(v)) + noise ]
                w_{t+1} = Proj_R( prox_{eta psi}( v - eta g ) )

Released: ``n_steps`` noisy sums, each a Gaussian of noise multiplier z. Privacy: exactly
sqrt(n_steps)/z-Gaussian-DP, without loss in composition. Cost: one pass over the records per step.
Utility (averaged, R and L as declared, replace_one): E F - F* <= R sqrt(L^2/T + 4 p L^2 / (n mu)^2).
Wins where n is large against p and the features are of like scale.
"""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Self

from discreet.accounting.plan import Plan, Release
from discreet.accounting.pricing import price_plan
from discreet.bounds import Domain
from discreet.budget import Budget
from discreet.errors import Unsupported
from discreet.losses.base import Loss, gradient_bound
from discreet.penalties.base import Penalty
from discreet.solvers import settings
from discreet.solvers.base import (
    CANARY_CLIP,
    SHORT_STEP,
    UNWATCHED,
    AuditCase,
    Progress,
    Solution,
    Solver,
    project,
    public_count,
)
from discreet.solvers.decrease import Decrease
from discreet.solvers.gradient_loop import Descent
from discreet.solvers.traces import Noise

if TYPE_CHECKING:
    from discreet.curator import Curator


@dataclass(frozen=True)
class GradientDescent(Descent):
    """Private projected (proximal) gradient descent.

    Parameters
    ----------
    n_steps : int, default=100
        Gradients to release.
    clip : float or None, default=None
        Bound on a record's gradient (L2; L1 for pure budgets). None: what the loss and the declared bounds imply, so
        that nothing is clipped; in estimated coordinates, by ``relative_clip``.
    step_size : float or None, default=None
        Absolute step; None: ``relative_step`` / curvature, as the declared bounds imply it or as it was estimated.
    momentum : float or "nesterov", default=0.0
        Constant weight of the last move, or Nesterov's; free.
    restart : bool, default=False
        Forget the momentum where it points uphill; worth it where there is no noise.
    average : {"last", "uniform", "suffix", "tail", "polynomial"}, default="last"
        Which iterates are averaged; free.
    radius : float or None, default=None
        Project onto the ball of this radius after each step.
    relative_clip : float or None, default=None
        The clip in units of a typical row's length, where it was estimated (of the declared row norm elsewhere).
    relative_step : float, default=1.0
        The step in units of 1 / curvature.
    step_schedule : {"constant", "sqrt", "inverse", "linear", "cosine"} or tuple of float, default="constant"
        What the step is multiplied by in step t (``step_schedules``), or one factor per step; free.
    calibration : {"tight", "slides"}, default="tight"
        Exact prices, or the larger noise of the slides' theorem for DP-SGD.

    Examples
    --------
    >>> from discreet import DPLogisticRegression
    >>> from discreet.solvers import GradientDescent
    >>> solver = GradientDescent(n_steps=50, momentum="nesterov")
    >>> DPLogisticRegression(bounds=1.0, classes=(0, 1), solver=solver).solver.name
    'gd'
    """

    name: ClassVar[str] = "gd"

    def plan(self, domain: Domain, loss: Loss, penalty: Penalty) -> Plan:
        """List ``n_steps`` noisy gradients, and a noisy count where n is private."""
        return self._plan(domain, loss)

    def solve(self, curator: "Curator", penalty: Penalty, progress: Progress = UNWATCHED) -> Solution:
        """Run the loop from the starting point."""
        domain, loss, n = curator.domain, curator.loss, public_count(curator)
        clip, eta = self.clip_for(domain, loss), self.step_for(domain, loss)
        path = self.path(domain.starting_point, eta, penalty)
        noise = Noise.of(curator, "noisy_gradient").deviation(clip) / n
        decrease = Decrease(noise, penalty) if noise > 0 and self.average == "last" else None
        etas = self.steps_for(domain, loss)
        for t in progress(range(self.n_steps)):
            v = path.ahead()
            g = curator.noisy_gradient(v, clip=clip) / n
            path.move(v, project(penalty.prox(v - etas[t] * g, float(etas[t])), self.radius))
            if decrease is not None:
                decrease.add(v, g, path.w, float(etas[t]), float(path.momenta[t]))
        if decrease is not None:
            decrease.end(path.w)
        return Solution(path.average, self.trace(curator, penalty, path, eta, clip, n, decrease))

    @classmethod
    def lecture(cls, domain: Domain, loss: Loss, *, n_steps: int, radius: float, budget: Budget) -> Self:
        """Configure the lecture's method: projection on the ball, average of all iterates, and the step of its bound.

        The step is R / (G sqrt(T)), where G^2 = L^2 + p s^2 bounds the noisy mean gradient's second moment
        (s: the noise's standard deviation per coordinate), so that E F - F* <= R G / sqrt(T).
        """
        if domain.n is None:
            raise Unsupported("the lecture's step needs n: declare Bounds(n=...)")
        lipschitz = gradient_bound(loss, domain, radius)
        multiplier = price_plan(Plan([Release("noisy_gradient", n_steps, clip=lipschitz)]), budget).noise_multiplier
        s = budget.neighbors.sum_factor * multiplier * lipschitz / domain.n
        coordinates = domain.n_features * domain.n_outputs
        step = radius / math.sqrt(n_steps * (lipschitz**2 + coordinates * s**2))
        return cls(n_steps=n_steps, clip=lipschitz, step_size=step, average="uniform", radius=radius)

    @classmethod
    def defaults(cls, domain: Domain, loss: Loss, penalty: Penalty, budget: Budget) -> Solver:
        """Return what ``gd`` stands for (``settings``)."""
        return settings.gd(settings.Facts(domain, loss, penalty, budget))

    @classmethod
    def audit_case(cls) -> AuditCase:
        """Take five short steps."""
        return AuditCase(cls(n_steps=5, clip=CANARY_CLIP, step_size=SHORT_STEP))
