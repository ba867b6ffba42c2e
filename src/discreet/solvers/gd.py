"""Private projected gradient descent: full batch, Gaussian noise on the clipped sum.

Sources: Bassily, Smith & Thakurta 2014; the CSC2412 lecture (step, ball, average of the iterates).

    w_0 = 0;   w_{t+1} = Proj_R( prox_{eta psi}( w_t - (eta/n) [ sum_i clip_C(grad l_i(w_t)) + noise ] ) )

Released: ``n_steps`` noisy sums, each a Gaussian of noise multiplier z. Privacy: exactly
sqrt(n_steps)/z-Gaussian-DP, without loss in composition. Cost: one pass over the records a step.
Utility (averaged, R and L as declared, replace_one): E F - F* <= R sqrt(L^2/T + 4 p L^2 / (n mu)^2).
Wins where n is large against p and the features are of like scale.
"""

import math
from dataclasses import dataclass
from typing import ClassVar, Self

from discreet.accounting.plan import Plan, Release
from discreet.accounting.priced_plan import price_plan
from discreet.bounds import Domain
from discreet.budget import Budget
from discreet.errors import Unsupported
from discreet.losses.base import Loss
from discreet.losses.constants import gradient_bound
from discreet.penalties.base import Penalty
from discreet.solvers.default_rules import step_count
from discreet.solvers.gradient_loop import Descent
from discreet.solvers.registry import CANARY_CLIP, SHORT_STEP, AuditCase, register


@register("gd")
@dataclass(frozen=True)
class GradientDescent(Descent):
    """Private projected (proximal) gradient descent; see ``Descent`` for its settings."""

    name: ClassVar[str] = "gd"

    @classmethod
    def lecture(cls, domain: Domain, loss: Loss, *, n_steps: int, radius: float, budget: Budget) -> Self:
        """The lecture's method: projection on the ball, average of all iterates, and the step of its bound.

        The step is R / (G sqrt(T)), where G^2 = L^2 + p s^2 bounds the noisy mean gradient's second moment
        (s: the noise's standard deviation a coordinate), so that E F - F* <= R G / sqrt(T).
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
    def defaults(cls, domain: Domain, loss: Loss, penalty: Penalty, budget: Budget) -> Self:
        """Nesterov's momentum, which is free and makes T steps travel as far as T^2 / 4 plain ones."""
        return cls(n_steps=step_count(domain, budget), momentum="nesterov", restart=not budget.is_private)

    @classmethod
    def audit_case(cls) -> AuditCase:
        """Five short steps."""
        return AuditCase(cls(n_steps=5, clip=CANARY_CLIP, step_size=SHORT_STEP))
