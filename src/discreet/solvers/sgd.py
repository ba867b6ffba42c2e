"""DP-SGD: noisy sums over Poisson samples.

Sources: Song et al. 2013; Bassily, Smith & Thakurta 2014; Abadi et al. 2016.

    each record joins the batch by its own coin of probability q
    w_{t+1} = Proj_R( prox_{eta psi}( w_t - (eta / (q n)) [ sum_batch clip_C(grad l_i(w_t)) + noise ] ) )

Released: ``n_steps`` noisy sums, each a Poisson-sampled Gaussian; priced by the privacy-loss
distribution. The sum is divided by the *expected* batch size; an empty batch is a step of noise.
Cost: q n records a step. Wins over gd where a pass is too dear; at equal budget and enough passes,
full batches have less noise.
"""

import math
from dataclasses import dataclass
from typing import ClassVar, Self

from discreet.bounds import Domain
from discreet.budget import Budget
from discreet.errors import Unsupported
from discreet.losses.base import Loss
from discreet.penalties.base import Penalty
from discreet.solvers.default_rules import BATCH, EPOCHS
from discreet.solvers.gradient_loop import Descent
from discreet.solvers.registry import CANARY_CLIP, SHORT_STEP, AuditCase, register


@register("sgd")
@dataclass(frozen=True)
class StochasticGradientDescent(Descent):
    """DP-SGD with Poisson sampling.

    Parameters are those of ``GradientDescent``, and:

    batch_size
        The expected batch size; the sampling probability is batch_size / n, rounded up to a multiple of 2^-16.
    sampling_probability
        Instead of ``batch_size``; needed where n is private.
    """

    n_steps: int = 1000
    average: str = "suffix"
    batch_size: float | None = None
    sampling_probability: float | None = None
    name: ClassVar[str] = "sgd"

    def fraction(self, domain: Domain) -> float:
        """The sampling probability, from the expected batch size or as given."""
        if self.sampling_probability is not None:
            return self.sampling_probability
        if self.batch_size is None:
            raise Unsupported("give sgd a batch_size or a sampling_probability")
        if domain.n is None:
            raise Unsupported("n is private here: give sgd a sampling_probability, or declare Bounds(n=...)")
        return min(1.0, self.batch_size / domain.n)

    @classmethod
    def defaults(cls, domain: Domain, loss: Loss, penalty: Penalty, budget: Budget) -> Self:
        """Ten passes in batches of 1,024; a hundred without noise."""
        if domain.n is None:
            raise Unsupported(
                "n is private here: configure StochasticGradientDescent(sampling_probability=...), or declare "
                "Bounds(n=...)"
            )
        batch = float(min(domain.n, BATCH))
        epochs = EPOCHS if budget.is_private else 10 * EPOCHS
        return cls(n_steps=max(20, math.ceil(epochs * domain.n / batch)), batch_size=batch)

    @classmethod
    def audit_case(cls) -> AuditCase:
        """Five short steps on half of the records each, which no transcript shows."""
        return AuditCase(cls(n_steps=5, clip=CANARY_CLIP, step_size=SHORT_STEP, sampling_probability=0.5), "model")
