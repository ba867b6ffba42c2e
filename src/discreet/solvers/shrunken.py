"""Private least squares for little signal: sums of noisy gradients, shrunk by how much noise is in them.

    u_0 = 0; for t = 1, ..., T:  u_t = u_{t-1} - eta (1/n) [ sum_i clip_{C_t}(residual_i row_i) + noise ]
                                 w_t = prox_{t eta psi}( w_0 + d u_t ),      for the constant d = 1
    return the mean of w_t over the second half

C_t falls from its first to its last value over the first half, and stays there: wide clips find where the target is,
however far from the middle of its range, narrow ones have little noise. This is dual averaging (Nesterov 2009; Xiao
2010 for the prox), so that the noise in u_t is that of t independent answers: its variance, the sum of (eta s_t)^2, is
public, and d (``shrinkage``) is what empirical Bayes makes of u_t. Gradients are
asked for at the shrunken w_t: the intercept follows what the slopes were shrunk to, and slopes with signal go on
growing until they stand out. Without signal d = 0, and the model is a private mean of clipped residuals, whose noise
is that of the clip, not of the target's range.

Released: T noisy gradients. Privacy: those of ``gd``; shrinking is post-processing. Cost: T passes.
Wins for numbers where n mu / sqrt(p) is small, and where noise is pure.
"""

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from discreet.accounting.plan import Plan, Release
from discreet.bounds import Domain
from discreet.errors import Unsupported
from discreet.losses.base import Loss
from discreet.parameters import Count, Positive, check_fields
from discreet.penalties.base import Penalty
from discreet.solvers.base import UNWATCHED, Progress, Solution, public_count
from discreet.solvers.center_and_scale import longer_in_l1
from discreet.solvers.registry import register_part
from discreet.solvers.shrinkage import posterior_weights
from discreet.solvers.uncertainty.stage_noise import DirectionsTrace
from discreet.solvers.uncertainty.traces import Noise
from discreet.typing import Floats

if TYPE_CHECKING:
    from discreet.curator import Curator


@register_part("ShrunkenDescent")
@dataclass(frozen=True)
class ShrunkenDescent:
    """Sums of noisy gradients, shrunk by empirical Bayes, inside ``Declared``.

    Parameters
    ----------
    n_steps : int, default=20
        Gradients to release.
    relative_clip, last_clip : float, default=0.4 and None
        A record's gradient is clipped at this times the longest row, in units of the target: first, and in the second
        half of the steps. None: the same.
    step_size : float, default=1.0
        eta; the constant feature has curvature 1.

    Examples
    --------
    >>> from discreet.solvers import Declared, ShrunkenDescent
    >>> Declared(ShrunkenDescent(n_steps=12)).solver.name
    'shrunken'
    """

    n_steps: Count = 20
    relative_clip: Positive = 0.4
    last_clip: Positive | None = None
    step_size: Positive = 1.0
    name: ClassVar[str] = "shrunken"

    def __post_init__(self) -> None:
        check_fields(self)

    def plan(self, domain: Domain, loss: Loss, penalty: Penalty) -> Plan:
        """List ``n_steps`` noisy gradients."""
        if loss.task != "regression":
            raise Unsupported("shrunken descent is for numbers: use GradientDescent(...) for classes")
        if domain.typical is None:
            raise Unsupported("shrunken descent needs rows of a known length: use Declared(ShrunkenDescent(...))")
        return Plan((Release("noisy_gradient", self.n_steps),))

    def solve(self, curator: "Curator", penalty: Penalty, progress: Progress = UNWATCHED) -> Solution:
        """Take the steps from the starting point; the trace holds the noise in the shrunken sums."""
        domain, n, slopes = curator.domain, public_count(curator), curator.slopes  # type: ignore[attr-defined]
        assert domain.typical is not None
        norm = (domain.typical.norm or domain.row_norm) * longer_in_l1(curator, domain.n_features)
        spread = self.step_size * Noise.of(curator, "noisy_gradient").deviation(norm) / n  # of a step, per unit of clip
        start = w = domain.starting_point
        u, mean, variance = np.zeros(domain.n_features), np.zeros(domain.n_features), 0.0
        kept, tail = np.ones(domain.n_features), self.n_steps - self.n_steps // 2
        clips = self._clips()
        for t in progress(range(1, self.n_steps + 1)):
            clip = clips[t - 1]
            u = u - self.step_size * curator.noisy_gradient(w, clip=clip * norm) / n
            variance += (spread * clip) ** 2
            kept[:slopes] = posterior_weights(u[:slopes], np.ones(slopes), variance**0.5)
            w = penalty.prox(start + kept * u, t * self.step_size)
            mean += (w if t > self.n_steps - tail else 0.0) / tail
        # a slope's noise at the end bounds its average's; a constant forgets: one step's is left
        variances = np.append(np.square(kept[:slopes]) * variance, (spread * clips[-1] / self.step_size) ** 2)
        return Solution(mean, DirectionsTrace(np.eye(len(u)), variances[: len(u)]))

    def _clips(self) -> Floats:
        """Return the relative clip of every step."""
        last = self.relative_clip if self.last_clip is None else self.last_clip
        fallen = np.minimum(1.0, np.arange(self.n_steps) / max(1, self.n_steps // 2))
        return np.asarray(self.relative_clip * (last / self.relative_clip) ** fallen)

    def settings(self) -> dict[str, object]:
        """Return its public settings, for the certificate."""
        return {"name": self.name, **asdict(self)}
