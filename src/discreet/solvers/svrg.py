"""Private variance-reduced gradient descent: one full gradient per epoch, then sampled *changes* from it.

Source: Wang, Ye & Xu 2017, whose noise is given up to unspecified constants and whose inner steps read the anchor's
exact gradient again; here the anchor's gradient is released once, and the changes are clipped.

    for s < S:  g = (1/n) [ sum_i clip_C(grad l_i(a)) + noise ]                                   a: the anchor
        for t < m:  v = w + beta (w - previous w)
                    D = min(2 C, beta_f ||v - a||)
                    d = (1 / (q n)) [ sum over a Poisson sample of clip_D(grad l_i(v) - grad l_i(a)) + noise ]
                    (d = 0 where v = a)
                    w = Proj_R( prox_{eta psi}( v - eta (g + d) ) )
        a = the last inner iterate (or their mean)

Released: S noisy gradients and the noisy changes. D is a function of released points, and the noise is D times a fixed
multiplier: each change is the same event, Poisson-sampled Gaussian. Privacy: the composition of both kinds, by their
privacy loss distributions. Cost: 1 + 2 q m passes per epoch. Utility: the noise of the changes vanishes as w nears the
anchor, so that what is left is the anchors'. Wins over sgd where many cheap steps are wanted; gd has an exact price and
less to set.
"""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar

import numpy as np

from discreet.accounting.plan import Plan, Release
from discreet.bounds import Domain
from discreet.budget import Budget
from discreet.errors import Unsupported
from discreet.losses.base import Loss, gradient_smoothness
from discreet.parameters import Count, OneOf, Positive, Share
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
    count_release,
    project,
    public_count,
)
from discreet.solvers.gradient_loop import (
    Momentum,
    OpenSteps,
    Path,
    check_sampling,
    clip_for,
    drawn,
    fraction_of,
    step_for,
)
from discreet.solvers.risk_bounds import RiskBound
from discreet.solvers.traces import EpochsTrace, Noise

if TYPE_CHECKING:
    from discreet.curator import Curator


LEAST_REACH = 1e-200
"""Below this the points are the same: there is no change to ask for."""

CHANGE = 2.0
"""D in units of a typical change where rows' lengths are estimated: of a typical row whose margin moves as most do."""


@dataclass(frozen=True)
class VarianceReducedDescent(OpenSteps):
    """Private variance-reduced gradient descent, DP-SVRG.

    Parameters
    ----------
    n_epochs, n_inner : int, default=5 and 10
        S anchors, and m inner steps from each.
    batch_size, sampling_probability : float or None, default=None
        The expected number of records in an inner step, or the probability with which a record joins it; give one, or
        none for all records.
    clip : float or None, default=None
        Bound on a record's gradient at the anchor. None: what the loss and the declared bounds imply.
    step_size : float or None, default=None
        Absolute step; None: ``relative_step`` / curvature.
    anchor_share : float, default=0.5
        About which part of the budget the anchors' gradients get.
    momentum : float or "nesterov", default=0.0
        Weight of the last move, over all inner steps; free.
    average : {"last", "uniform"}, default="last"
        Whether the next anchor is the last inner iterate or the mean of the inner iterates; free.
    radius : float or None, default=None
        Project onto the ball of this radius after each step.
    relative_clip : float or None, default=None
        The clip in units of a typical row's length, where it was estimated.
    relative_step : float, default=1.0
        The step in units of 1 / curvature.
    calibration : {"tight"}, default="tight"
        Exact prices. There is no published noise to run: its constants were left open.

    Examples
    --------
    >>> from discreet import DPLogisticRegression
    >>> from discreet.solvers import VarianceReducedDescent
    >>> DPLogisticRegression(bounds=1.0, classes=(0, 1), solver=VarianceReducedDescent(n_epochs=3)).solver.name
    'svrg'
    """

    n_epochs: Count = 5
    n_inner: Count = 10
    batch_size: Positive | None = None
    sampling_probability: Positive | None = None
    clip: Positive | None = None
    step_size: Positive | None = None
    anchor_share: Share = 0.5
    momentum: Momentum = 0.0
    average: Annotated[str, OneOf("last", "uniform")] = "last"
    radius: Positive | None = None
    relative_clip: Positive | None = None
    relative_step: Positive = 1.0
    calibration: str = "tight"
    name: ClassVar[str] = "svrg"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_sampling(self.batch_size, self.sampling_probability)
        if self.calibration != "tight":
            raise Unsupported("svrg's published noise has unspecified constants, so none can be run: use 'tight'")

    def fraction(self, domain: Domain) -> float:
        """Return the probability with which a record joins an inner step: 1 where nothing is said."""
        if self.sampling_probability is None and self.batch_size is None:
            return 1.0
        return fraction_of(self.batch_size, self.sampling_probability, domain)

    def plan(self, domain: Domain, loss: Loss, penalty: Penalty) -> Plan:
        """List S gradients and the sampled changes; a change with probability q costs about q^2 of a gradient.

        From the anchor itself there is no change to ask: without momentum that is an epoch's first step.
        """
        q, share = self.fraction(domain), self.anchor_share
        count = self.n_epochs * self.n_inner - 1 if self.momentum else self.n_epochs * (self.n_inner - 1)
        relative = math.sqrt((1 - share) / share * self.n_epochs / max(1, count)) / q
        clip = clip_for(domain, loss, self.clip, self.relative_clip, self.radius)
        anchors = Release("noisy_gradient", self.n_epochs, clip=clip, relative_noise=relative)
        changes = Release("noisy_gradient_change", count, sampling_probability=q)
        return Plan((anchors, changes, *count_release(domain)))

    def solve(self, curator: "Curator", penalty: Penalty, progress: Progress = UNWATCHED) -> Solution:
        """Run the epochs from the starting point."""
        domain, loss, n = curator.domain, curator.loss, public_count(curator)
        C, beta = clip_for(domain, loss, self.clip, self.relative_clip, self.radius), _smoothness(domain, loss)
        eta, q = step_for(domain, loss, self.step_size, self.relative_step), drawn(self.fraction(domain))
        start, modulus = project(domain.starting_point, self.radius), penalty.strong_convexity
        D = np.zeros((self.n_epochs, self.n_inner))
        path = Path(start, D.size, momentum=self.momentum, average="last", step=eta, strong_convexity=modulus)
        a = path.w
        for s in progress(range(self.n_epochs)):
            g, total = curator.noisy_gradient(a, clip=C) / n, np.zeros(domain.shape)
            path.w = a
            for t in range(self.n_inner):
                v, d = path.ahead(), np.zeros(domain.shape)
                change = min(2 * C, beta * float(np.linalg.norm(v - a)))
                if change > LEAST_REACH:
                    D[s, t] = change
                    d = curator.noisy_gradient_change(v, a, clip=change) / (q * n)
                path.move(v, project(penalty.prox(v - eta * (g + d), eta), self.radius))
                total += path.w
            a = total / self.n_inner if self.average == "uniform" else path.w
        momenta, shrink = path.momenta.reshape(D.shape), 1.0 / (1.0 + eta * modulus)
        noises = Noise.of(curator, "noisy_gradient"), Noise.of(curator, "noisy_gradient_change")
        return Solution(a, EpochsTrace(a.shape, eta, C, n, q * n, momenta, D, *noises, shrink, self.average))

    def bound(self, domain: Domain, loss: Loss, budget: Budget) -> RiskBound:
        """Refuse: no proof gives a number for this run.

        The published rate has no constants and is for steps that read the anchor's exact gradient each time. Here the
        anchor's noise stays the same for an epoch, so that it is not independent of the iterates that it moves.
        """
        raise Unsupported("svrg has no bound: its published rate has no constants, and is for another algorithm")

    @classmethod
    def defaults(cls, domain: Domain, loss: Loss, penalty: Penalty, budget: Budget) -> Solver:
        """Return what ``svrg`` stands for (``settings``)."""
        return settings.svrg(settings.Facts(domain, loss, penalty, budget))

    @classmethod
    def audit_case(cls) -> AuditCase:
        """Run two epochs of short steps on half of the records each, which no transcript shows."""
        return AuditCase(
            cls(n_epochs=2, n_inner=2, clip=CANARY_CLIP, step_size=SHORT_STEP, sampling_probability=0.5), "model"
        )


def _smoothness(domain: Domain, loss: Loss) -> float:
    """Return beta of D: what the declared bounds imply, or that of typical changes where rows' lengths are estimated.

    A move of length r changes a margin by about r sqrt(moment), and the gradient by f'' times that times the row.
    """
    if domain.typical is None or domain.typical.norm is None:
        return gradient_smoothness(loss, domain)
    return CHANGE * float(loss.smoothness) * domain.typical.norm * math.sqrt(domain.typical.moment)
