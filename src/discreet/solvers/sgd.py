"""DP-SGD: noisy sums over Poisson samples.

Sources: Song et al. 2013; Bassily, Smith & Thakurta 2014; Abadi et al. 2016.

    for t < T:  B = a Poisson sample: each record joins by its own coin of probability q
                v = w_t + beta_t (w_t - w_{t-1})
                g = (1 / (q n)) [ sum_{i in B} clip_C(grad l_i(v)) + noise ]
                w_{t+1} = Proj_R( prox_{eta psi}( v - eta g ) )

Released: ``n_steps`` noisy sums, each a Poisson-sampled Gaussian; priced by the privacy-loss
distribution. The sum is divided by the *expected* batch size; an empty batch is a step of noise.
Cost: q n records per step. Wins over gd where a pass is too expensive; at equal budget and enough passes,
full batches have less noise.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar

from discreet.accounting.plan import Plan
from discreet.bounds import Domain
from discreet.budget import Budget
from discreet.losses.base import Loss
from discreet.parameters import Count, OneOf, Positive
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
from discreet.solvers.gradient_loop import AVERAGES, Descent, check_sampling, drawn, fraction_of

if TYPE_CHECKING:
    from discreet.curator import Curator


@dataclass(frozen=True)
class StochasticGradientDescent(Descent):
    """DP-SGD with Poisson sampling.

    Parameters
    ----------
    n_steps : int, default=1000
        Samples to draw, and gradients to release.
    clip, step_size, momentum, restart, average, radius, relative_clip, relative_step : as for ``GradientDescent``
        ``average`` is "suffix" by default.
    step_schedule, calibration : as for ``GradientDescent``
        A step that falls to 0 averages noise out as ``average`` does.
    batch_size : float or None, default=None
        Expected batch size; the sampling probability is batch_size / n, rounded up to a multiple of 2^-16.
    sampling_probability : float or None, default=None
        Instead of ``batch_size``; needed where n is private.

    Examples
    --------
    >>> from discreet import DPLogisticRegression
    >>> from discreet.solvers import StochasticGradientDescent
    >>> solver = StochasticGradientDescent(n_steps=500, batch_size=256)
    >>> DPLogisticRegression(bounds=1.0, classes=(0, 1), solver=solver).solver.batch_size
    256
    """

    n_steps: Count = 1000
    average: Annotated[str, OneOf(*AVERAGES)] = "suffix"
    batch_size: Positive | None = None
    sampling_probability: Positive | None = None
    name: ClassVar[str] = "sgd"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_sampling(self.batch_size, self.sampling_probability)

    def fraction(self, domain: Domain) -> float:
        """Return the sampling probability, from the expected batch size or as given."""
        return fraction_of(self.batch_size, self.sampling_probability, domain)

    def plan(self, domain: Domain, loss: Loss, penalty: Penalty) -> Plan:
        """List ``n_steps`` noisy gradients of samples, and a noisy count where n is private."""
        return self._plan(domain, loss)

    def solve(self, curator: "Curator", penalty: Penalty, progress: Progress = UNWATCHED) -> Solution:
        """Run the loop from the starting point; sums are divided by the expected number of records in them."""
        domain, loss, n, q = curator.domain, curator.loss, public_count(curator), drawn(self.fraction(curator.domain))
        clip, eta = self.clip_for(domain, loss), self.step_for(domain, loss)
        path = self.path(domain.starting_point, eta, penalty)
        etas = self.steps_for(domain, loss)
        for t in progress(range(self.n_steps)):
            v = path.ahead()
            g = curator.noisy_gradient(v, clip=clip) / (q * n)
            path.move(v, project(penalty.prox(v - etas[t] * g, float(etas[t])), self.radius))
        return Solution(path.average, self.trace(curator, penalty, path, eta, clip, q * n))

    @classmethod
    def defaults(cls, domain: Domain, loss: Loss, penalty: Penalty, budget: Budget) -> Solver:
        """Return what ``sgd`` stands for (``settings``)."""
        return settings.sgd(settings.Facts(domain, loss, penalty, budget))

    @classmethod
    def audit_case(cls) -> AuditCase:
        """Take five short steps on half of the records each, which no transcript shows."""
        return AuditCase(cls(n_steps=5, clip=CANARY_CLIP, step_size=SHORT_STEP, sampling_probability=0.5), "model")
