"""Private least squares by few filtered Newton steps, with a privately estimated second moment as the Hessian.

    M = V diag(l) V^T, l floored             M: the second moment that the stage ``Whitened`` released, of the same rows
    for t < T:  q = V^T (1/n) [ sum_i clip_C(residual_i row_i) + noise ]
                w <- w - V diag( d ) q,  d = E[ x / (l x + s^2) | q ]
                w <- prox of psi in the metric V diag(l) V^T, for penalties with corners

x is a prior variance (times l) from the mixture under which the noisy q is likeliest, 0 in it: empirical Bayes, on
released numbers only (``shrinkage``). A direction in which there is only noise moves by next to nothing, and with no
signal at all x = 0: the model predicts the noisy mean. s is the noise's standard deviation, which is public. Rows are
standardized, or whitened too (``Whitened(..., whiten_rows=True)``).

Released: T noisy gradients, Gaussian. Privacy: with the stage's releases exactly mu-Gaussian-DP under each relation.
Cost: T passes. Without noise: least squares. Wins for numbers wherever p^2 numbers can be estimated.
"""

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from discreet.accounting.plan import Plan, Release
from discreet.bounds import Domain
from discreet.errors import Unsupported
from discreet.losses.base import Loss
from discreet.losses.constants import gradient_bound
from discreet.parameters import Count, Positive, check_fields
from discreet.penalties.base import Penalty
from discreet.solvers.base import UNWATCHED, Progress, Solution, public_count
from discreet.solvers.center_and_scale import longer_in_l1, noise_of
from discreet.solvers.registry import register_part
from discreet.solvers.shrinkage import posterior_weights
from discreet.solvers.uncertainty.stage_noise import DirectionsTrace
from discreet.typing import Floats

if TYPE_CHECKING:
    from discreet.curator import Curator


LIMIT_RADIUS = 16.0
"""Without noise: coefficients of standardized rows stay within this ball, and residuals on a fine lattice."""


@register_part("NewtonDescent")
@dataclass(frozen=True)
class NewtonDescent:
    """Filtered Newton steps for squared and Huber losses, inside ``Whitened``.

    Parameters
    ----------
    n_steps : int, default=4
        Gradients to release.
    relative_clip : float, default=1.0
        A record's gradient is clipped at this times the longest row, in standard deviations of the target.
    floor : float, default=0.5
        The smallest eigenvalue, in units of the noise's edge.

    Examples
    --------
    >>> from discreet.solvers import NewtonDescent, Whitened
    >>> Whitened(NewtonDescent(n_steps=4)).solver.name
    'newton'
    """

    n_steps: Count = 4
    relative_clip: Positive = 1.0
    floor: Positive = 0.5
    name: ClassVar[str] = "newton"
    takes_moments: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_fields(self)

    def plan(self, domain: Domain, loss: Loss, penalty: Penalty) -> Plan:
        """List ``n_steps`` noisy gradients."""
        if not loss.movable_target:
            raise Unsupported(
                "Newton steps need a loss of residuals, such as squared or Huber: use Whitened(GradientDescent(...))"
            )
        if domain.typical is None:
            raise Unsupported("Newton steps need a second moment: use Whitened(NewtonDescent(...))")
        return Plan((Release("noisy_gradient", self.n_steps),))

    def solve(self, curator: "Curator", penalty: Penalty, progress: Progress = UNWATCHED) -> Solution:
        """Take the steps from the starting point; the filter draws them back to it.

        The trace holds what the steps' noise became through the filters that were used. A step forgets l d of what was
        there (d: ``filter_weights``), for the share of records whose gradient is not clipped; that share is taken from
        a Gaussian residual as wide as the target, directions within the noise forget nothing, and what a penalty's
        corners swallow is left in.
        """
        domain, n, moment = curator.domain, public_count(curator), curator.moment  # type: ignore[attr-defined]
        noise = noise_of(curator, "noisy_gradient", 1.0, float(curator.budget.neighbors.sum_factor)) / n
        quiet = curator.noise_multiplier == 0
        clip = gradient_bound(curator.loss, domain, LIMIT_RADIUS) if quiet else self.relative_clip * domain.row_norm
        clip *= longer_in_l1(curator, domain.n_features)
        hessian = penalty.hessian
        values, vectors = np.linalg.eigh(moment.matrix if hessian is None else moment.matrix + hessian)
        floored = np.maximum(values, max(self.floor * moment.edge, 1e-12 * max(float(values[-1]), 1e-300)))
        w, used = domain.starting_point, []
        for _ in progress(range(self.n_steps)):
            g = curator.noisy_gradient(w, clip=clip) / n
            q = vectors.T @ (g if hessian is None else g + penalty.gradient(w))
            used.append(filter_weights(q, floored, noise * clip, moment.edge))
            w = w - vectors @ (used[-1] * q)
            if hessian is None:
                w = penalty.metric_prox(w, (vectors * floored) @ vectors.T)
        curved = self._unclipped(curator.loss) * np.where(values >= moment.edge, np.maximum(values, 0.0), 0.0)
        return Solution(w, DirectionsTrace.of_steps(vectors, used, curved, noise, clip))

    def _unclipped(self, loss: Loss) -> float:
        """Return the share of Gaussian residuals, as wide as the target, that neither clip nor Huber's width cuts."""
        width = min(self.relative_clip, loss.lipschitz)
        return math.erf(width / math.sqrt(2.0))

    def settings(self) -> dict[str, object]:
        """Return its public settings, for the certificate."""
        return {"name": self.name, **asdict(self)}


def filter_weights(q: Floats, values: Floats, noise: float, edge: float) -> Floats:
    """Return what empirical Bayes multiplies q by; its prior is learned where values stand above the edge."""
    return posterior_weights(q, values, noise, values >= edge)
